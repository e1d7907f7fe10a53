"""Rasters, which GDAL reads: the path, a :class:`RasterSource`, a :class:`RasterInfo`, pixels."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import dask.array as da
import numpy as np
import rasterio
import rasterio.shutil
import rioxarray
import xarray as xr
from affine import Affine
from dask.array.core import normalize_chunks
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.io import MemoryFile

from hsreject.errors import FileError, InputError
from hsreject.files import reading, starts_with
from hsreject.io import envi
from hsreject.io.geotiff import UNPACKED, check_tiff
from hsreject.io.grid import Grid, grid_of_file, local_system, quiet_without_place
from hsreject.io.products.remote import RemotePath, gdal_name
from hsreject.schema import CUBE_DIMS

if TYPE_CHECKING:
    from numpy.typing import NDArray

HDF5 = b"\x89HDF\r\n\x1a\n"
_CLASSIC_NETCDF = (b"CDF\1", b"CDF\2", b"CDF\5")
_MOST_BANDS = 10_000  # rasterio reads them in quadratic time; an infrared sounder has 8,461
_CACHE = 128  # MB of unpacked blocks that GDAL keeps
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_DRIVERS = {
    "GTiff": _TIFF,
    "HFA": (b"EHFA_HEADER_TAG",),
    "JP2OpenJPEG": (b"\0\0\0\x0cjP  ", b"\xffO\xffQ"),
}
"""Formats that are known by their first bytes."""
_TIFF_SUFFIXES = {".tif", ".tiff", ".gtiff", ".btf", ".tf8"}
_PACKED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}


# Which files belong together.


@dataclass(frozen=True)
class RasterSource:
    """A raster file, the GDAL driver that reads it, and the header beside it."""

    path: Path
    driver: str
    header: Path | None = None
    fields: dict[str, str] = field(default_factory=dict)  # of an ENVI header
    guesses: tuple[str, ...] = ()  # what was decided without the user saying it

    @property
    def described_in(self) -> str:
        """The file that says what the bands are, for messages."""
        return str(self.header or self.path)


def raster_source(path: Path) -> RasterSource:
    """Return how to open a raster, after checking what can be checked before GDAL opens it."""
    suffix = path.suffix.lower()
    if suffix == envi.HEADER:
        return _from_header(path)
    if suffix == ".vrt":
        return RasterSource(path, "VRT")
    if isinstance(path, RemotePath) and path.only_by_gdal and suffix in _TIFF_SUFFIXES:
        return RasterSource(path, "GTiff")
    header = envi.header_of(path)
    driver = next((name for name, marks in _DRIVERS.items() if starts_with(path, *marks)), None)
    # The first pixels of an ENVI file may look like the start of a TIFF: its header knows better.
    if header is not None and suffix not in _TIFF_SUFFIXES and envi.belongs(path, header):
        return _pair(path, header, f"The header is {header.name}, found beside {path.name}.")
    if driver == "GTiff":
        return _tiff(path, header if suffix in _TIFF_SUFFIXES else None)
    if driver is not None:
        return RasterSource(path, driver)
    target = path.resolve()  # the header may stand beside the file that a link leads to
    if not path.is_symlink() or envi.header_of(target) is None:
        raise _unknown_file(path, header)
    source = raster_source(target)
    return replace(source, guesses=(f"{path.name} is a link to {target}.", *source.guesses))


def _from_header(header: Path) -> RasterSource:
    text = envi.read_text(header)
    if text.startswith("ENVI") and _describes_tiff(envi.parse_fields(text, path=header)):
        return _tiff(envi.tiff_of(header, _TIFF_SUFFIXES), header)
    data = envi.data_of(header)
    used = envi.header_of(data)
    if used is not None and used != header:
        raise FileError(
            f"{data} has two headers, {header.name} and {used.name}, and the second comes first. "
            "Remove one of them."
        )
    return _pair(data, header, f"The data file is {data.name}, found beside {header.name}.")


def _pair(data: Path, header: Path, guess: str) -> RasterSource:
    """Return the source of a data file and its header, which must fit each other."""
    text = envi.read_text(header)
    if not text.startswith("ENVI") and envi.is_esri_header(text):
        envi.check_esri_length(text, header=header, data=data)
        return RasterSource(data, "EHdr", header, guesses=(guess,))
    fields = envi.parse_fields(text, path=header)
    noted = envi.check_length(fields, header=header, data=data)
    return RasterSource(data, "ENVI", header, fields, (guess, *noted))


def _tiff(path: Path, header: Path | None) -> RasterSource:
    """Return a TIFF as it is, or with the header that ENVI wrote beside it."""
    text = "" if header is None else envi.read_text(header)
    fields = envi.parse_fields(text, path=header or path) if text.startswith("ENVI") else {}
    if header is None or not _describes_tiff(fields):
        return RasterSource(path, "GTiff")
    guess = f"Bands are described by {header.name}, found beside {path.name}."
    return RasterSource(path, "GTiff", header, fields, (guess,))


def _describes_tiff(fields: Mapping[str, str]) -> bool:
    return "tif" in fields.get("file type", "").lower()


def _unknown_file(path: Path, header: Path | None) -> FileError:
    for mark, name in _PACKED.items():
        if starts_with(path, mark):
            return FileError(f"{path} is packed ({name}). Unpack it and open what was in it.")
    if starts_with(path, HDF5, *_CLASSIC_NETCDF):
        return FileError(
            f"{path} is an HDF5 or NetCDF file of another kind than expected here. Open it with "
            "open_dataset if hsreject wrote it, else with xarray, with the dims band, y and x."
        )
    if header is not None:
        return FileError(
            f"{path} does not hold the pixels that {header.name} beside it describes. Give the "
            "file that does, or the header itself."
        )
    looked = " and ".join(dict.fromkeys((f"{path.name}.hdr", f"{path.stem}.hdr")))
    return FileError(
        f"{path} is not a GeoTIFF, ERDAS Imagine, JPEG 2000, .mat or .npy file, and has no header "
        f"beside it: looked for {looked}."
    )


# What a file says before its pixels are read.


class RasterBand(NamedTuple):
    """What a raster says about one band: true value = value in the file * scale + offset."""

    nodata: float | None  # only a value that pixels of this type can have
    scale: float
    offset: float
    name: str  # its description, or nothing
    tags: dict[str, str]
    alpha: bool  # an alpha channel, not light


@dataclass(frozen=True)
class RasterInfo:
    """What a raster file says before any pixel is read; others decide what follows from it."""

    source: RasterSource
    name: str  # what GDAL opens: the path, or the text of a virtual raster over it
    driver: str
    layout: str  # how bands follow each other: "band", "line", "pixel"; of ENVI "bsq", "bil", "bip"
    dtype: np.dtype[Any]  # of the pixels in the file
    grid: Grid
    bands: tuple[RasterBand, ...]
    fields: dict[str, str]  # of ENVI: from the header, or from the tags of the file
    grain: tuple[int, int]  # rows and columns that are stored together
    has_mask: bool  # the file holds a mask of pixels with data, or one per band
    common_nodata: bool  # a pixel has no data only where every band has its nodata value
    n_control_points: int  # ground control points, which are not used
    local_system: str  # name of a system of coordinates without a place on the earth: not used

    @property
    def n_bands(self) -> int:
        """Number of bands."""
        return len(self.bands)

    @property
    def nodata(self) -> float | None:
        """The nodata value of the first band that has one."""
        return next((band.nodata for band in self.bands if band.nodata is not None), None)


def raster_info(source: RasterSource) -> RasterInfo:
    """Return what GDAL says about a raster file, without reading pixels."""
    try:
        return _info(source, gdal_name(source.path), source.driver)
    except UnicodeDecodeError:
        # rasterio expects UTF-8 everywhere; Latin-1 headers are common.
        return _info(source, virtual_raster(source.path), "VRT")


def _info(source: RasterSource, name: str, driver: str) -> RasterInfo:
    with _quiet(), rasterio.open(name, driver=driver) as dataset:
        _check_claims(dataset, source)
        dtype = np.dtype(dataset.dtypes[0])
        bands = _bands(dataset, dtype)
        masks = [set(flags) for flags in dataset.mask_flag_enums]
        layout = dataset.profile.get("interleave", "band")
        if dataset.driver == "ENVI":
            layout = source.fields["interleave"]
        return RasterInfo(
            source=source,
            name=name,
            driver=dataset.driver,
            layout=layout.lower(),
            dtype=dtype,
            grid=grid_of_file(dataset, source.path),
            bands=bands,
            fields=source.fields
            or envi.fields_from_tags(dataset.tags(ns="ENVI"), dataset.tags(), len(bands)),
            grain=dataset.block_shapes[0],
            has_mask=any(not flags & {MaskFlags.all_valid, MaskFlags.nodata} for flags in masks),
            common_nodata={MaskFlags.per_dataset, MaskFlags.nodata} <= masks[0],
            n_control_points=len(dataset.gcps[0]),
            local_system=local_system(dataset.crs),
        )


def _check_claims(dataset: Any, source: RasterSource) -> None:
    """Raise if a file cannot hold what GDAL makes of it, or in a type that is not read."""
    if dataset.subdatasets:
        raise FileError(
            f"{source.path} holds {len(dataset.subdatasets)} images, not one. "
            "Export the one you want as a file of its own."
        )
    if not 1 <= dataset.count <= _MOST_BANDS:
        raise FileError(
            f"{source.path} claims {dataset.count} bands; hsreject opens 1 to {_MOST_BANDS}. "
            "If it is damaged, copy it again; else extract the bands you need."
        )
    types = sorted(set(dataset.dtypes))
    if any("complex" in name for name in types):
        raise FileError(f"{source.path} holds complex numbers ({types[0]}). Write their amplitude.")
    if len(types) > 1:
        raise FileError(
            f"{source.path} has bands of different types ({', '.join(types)}). "
            "Convert them to one type, for example with gdal_translate -ot Float32."
        )
    if dataset.driver == "ENVI":
        envi.check_same(source.fields, dataset.tags(ns="ENVI"), path=source.described_in)
    if dataset.driver == "GTiff":
        check_tiff(dataset, source.path)
    if source.driver == "VRT" and not isinstance(source.path, RemotePath):
        _check_virtual(dataset, source.path)


def _check_virtual(dataset: Any, path: Path) -> None:
    """Raise if a virtual raster claims far more pixels than the files that it names can hold."""
    text = envi.decoded(path.read_bytes())
    named = set(re.findall(r"<SourceFilename[^>]*>(?:[^<]*/)?([^</]+)<", text))
    parts = [Path(file) for file in dataset.files if Path(file).name in named]
    if not parts or len(parts) < len(named) or not all(part.is_file() for part in parts):
        return  # some are not files of their own, as parts of archives or of HDF5 files
    length = sum(part.stat().st_size for part in parts)
    claimed = dataset.count * math.prod(dataset.shape) * np.dtype(dataset.dtypes[0]).itemsize
    if claimed > max(UNPACKED.values()) * length:
        raise FileError(
            f"{path} is damaged: it claims {claimed} bytes of pixels, and the files that it names "
            f"have only {length}. Make it again, around them."
        )


def _bands(dataset: Any, dtype: np.dtype[Any]) -> tuple[RasterBand, ...]:
    # each of these properties asks GDAL about every band: once is enough
    nodata = [usable_nodata(value, dtype) for value in dataset.nodatavals]
    names = [name or "" for name in dataset.descriptions]
    tags = [dataset.tags(band) | dataset.tags(band, ns="IMAGERY") for band in dataset.indexes]
    alpha = [color is ColorInterp.alpha for color in dataset.colorinterp]
    rows = zip(nodata, dataset.scales, dataset.offsets, names, tags, alpha, strict=True)
    return tuple(RasterBand(*row) for row in rows)


def usable_nodata(nodata: float | None, dtype: np.dtype[Any]) -> float | None:
    """Return a nodata value if pixels of a type can have it."""
    if nodata is None or dtype.kind == "f":
        return nodata
    limits = np.iinfo(dtype)
    fits = nodata == np.round(nodata) and limits.min <= nodata <= limits.max
    return nodata if fits else None


def virtual_raster(path: Path) -> str:
    """Return GDAL's own description of a file as a virtual raster, in clean UTF-8."""
    with MemoryFile(ext=".vrt") as target, _quiet():
        rasterio.shutil.copy(gdal_name(path), target.name, driver="VRT")
        lines = target.read().splitlines(keepends=True)
    return "".join(envi.decoded(line) for line in lines)


# Pixels.


def read_pixels(info: RasterInfo, *, chunks: Any = None, nodata: float | None = None) -> Any:
    """Return the pixels (band, y, x): float with NaN where there is no data, else as in the file.

    8- and 16-bit integers with a mask become float32, wider ones float64, which hold them exactly.
    `chunks` is anything dask takes for (band, y, x): then no pixel is read yet. `nodata` is a value
    that GDAL does not know of.
    """
    # GDAL masks its nodata value, but not in 64-bit integers nor beside a mask in the file.
    wide = info.dtype.kind in "iu" and info.dtype.itemsize == 8 and not info.common_nodata
    overlooked = [band.nodata if wide or info.has_mask else None for band in info.bands]
    if info.nodata is None:
        overlooked = [nodata] * info.n_bands
    with _quiet():
        opened: Any = rioxarray.open_rasterio(
            info.name,
            masked=info.has_mask or info.common_nodata or (info.nodata is not None and not wide),
            cache=False,
            parse_coordinates=False,
            decode_times=False,
            # every thread has a file handle of its own, but for files without a place: rasterio
            # would warn whenever one of them is opened
            lock=None if info.grid.transform == Affine.identity() else False,
            driver=info.driver,
        )
        if chunks is None:
            with opened:
                pixels = np.asarray(opened.values)
        else:
            blocks = block_sizes(
                chunks, shape=opened.shape, dtype=info.dtype, stored=(1, *info.grain)
            )
            lazy = _LazyPixels(info.source.path, opened, opened.shape, opened.ndim, opened.dtype)
            pixels = da.from_array(lazy, blocks, name=False)
    if any(value is not None for value in overlooked):
        values = np.array(overlooked, dtype=float)[:, None, None]  # None becomes NaN: no value
        pixels = xr.DataArray(pixels).where(pixels != values).data
    return pixels


@dataclass(frozen=True, eq=False)
class _LazyPixels:
    """Pixels that dask reads block by block: whatever fails then is said about the file."""

    path: Path
    opened: xr.DataArray
    shape: tuple[int, ...]
    ndim: int
    dtype: np.dtype[Any]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        # whatever process this is: by default GDAL would keep 5 % of the memory of the machine
        with rasterio.Env(GDAL_CACHEMAX=_CACHE), reading(self.path):
            return np.asarray(self.opened[key])


def block_sizes(
    chunks: Any,
    *,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    stored: tuple[int, ...] | None = None,
) -> tuple[tuple[int, ...], ...]:
    """Return the sizes of the blocks along (band, y, x).

    Classifiers and features work pixel by pixel on whole spectra: "auto" and True make blocks that
    hold all bands of some pixels, whole rows if those are small enough, and so does a mapping that
    does not name the bands. Sizes that are left open become multiples of the chunks that are
    `stored` together.
    """
    limit = 64 * 2**20  # bytes
    if chunks is True or (isinstance(chunks, str) and chunks == "auto"):
        n_rows = 1 if stored is None else stored[1]
        row = shape[0] * min(n_rows, shape[1]) * shape[2] * dtype.itemsize
        chunks = (-1, "auto", -1 if row <= limit else "auto")
    elif isinstance(chunks, Mapping):
        unknown = [str(dim) for dim in chunks if dim not in CUBE_DIMS]
        if unknown:
            raise InputError(
                f"chunks names {', '.join(unknown)}, which a cube does not have. "
                f"It has {', '.join(CUBE_DIMS)}."
            )
        chunks = tuple(chunks.get(dim, -1) for dim in CUBE_DIMS)
    if stored is not None:  # all bands of the pixels in one chunk, unless that is far too much
        together = shape[0] * stored[1] * stored[2] * dtype.itemsize
        limit = max(limit, min(together, 2 * limit))
    try:
        sizes: tuple[tuple[int, ...], ...] = normalize_chunks(
            chunks, shape=shape, dtype=dtype, limit=limit, previous_chunks=stored
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"chunks={chunks!r} does not fit a cube of {shape} (band, y, x): {error}."
        ) from error
    return sizes


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings about what is fine here or handled here."""
    with quiet_without_place():
        warnings.filterwarnings("ignore", r"\w+ differ across bands", UserWarning)
        yield
