"""Rasters, which GDAL reads: the path, a :class:`RasterSource`, a :class:`RasterInfo`, pixels."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import rasterio
import rasterio.shutil
import rioxarray
from affine import Affine
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.io import MemoryFile

from hsreject.errors import FileError
from hsreject.files import starts_with
from hsreject.io import remote
from hsreject.io.arrays import (
    AXES,
    HDF5,
    Layer,
    Pixels,
    StoredScene,
    file_length,
    read_or_lazy,
    usable_nodata,
)
from hsreject.io.grid import Grid, grid_of_file, quiet_without_place
from hsreject.io.rasters import envi
from hsreject.io.remote import RemotePath, gdal_name
from hsreject.io.wavelengths import band_info

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

CLASSIC_NETCDF = (b"CDF\1", b"CDF\2", b"CDF\5")
_MOST_BANDS = 10_000  # rasterio reads them in quadratic time; an infrared sounder has 8,461
_SCALE_FACTOR = "reflectance scale factor"
_CACHE = 128  # MB of unpacked blocks that GDAL keeps
_TIFF = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_DRIVERS = {
    "GTiff": _TIFF,
    "HFA": (b"EHFA_HEADER_TAG",),
    "JP2OpenJPEG": (b"\0\0\0\x0cjP  ", b"\xffO\xffQ"),
}
"""Formats that are known by their first bytes."""
_TIFF_SUFFIXES = {".tif", ".tiff", ".gtiff", ".btf", ".tf8"}
_PLAIN = (*_TIFF, *_DRIVERS["HFA"], *_DRIVERS["JP2OpenJPEG"], HDF5, b"\x89PNG", b"\xff\xd8\xff")
_TRUSTED: ContextVar[bool] = ContextVar("trusted virtual rasters", default=False)


# Which files belong together.


@dataclass(frozen=True)
class RasterSource:
    """A raster file, the GDAL driver that reads it, and the header beside it."""

    path: Path
    driver: str
    header: Path | None = None
    fields: dict[str, str] = field(default_factory=dict)  # of an ENVI header
    guesses: tuple[str, ...] = ()  # what was decided without the user saying it
    parts: tuple[Path, ...] | None = None  # the files that a virtual raster names, if it is checked

    @property
    def described_in(self) -> str:
        """The file that says what the bands are, for messages."""
        return str(self.header or self.path)


def raster_source(path: Path) -> RasterSource:
    """Return how to open a raster, after checking what can be checked before GDAL opens it."""
    suffix = path.suffix.lower()
    if suffix == ".vrt":
        return RasterSource(path, "VRT", parts=_named_files(path))
    if suffix == envi.HEADER:
        fields = envi.read_fields(path)
        tiff = _describes_tiff(fields)
        data = envi.data_of(path, _TIFF_SUFFIXES if tiff else None)
        guess = f"The data file is {data.name}, found beside {path.name}."
        return _with_header(data, path, fields, "GTiff" if tiff else "ENVI", guess)
    header = envi.header_of(path)
    # The first pixels of an ENVI file may look like the start of a TIFF: its header knows better.
    if header is not None and suffix not in _TIFF_SUFFIXES and envi.belongs(path, header):
        guess = f"The header is {header.name}, found beside {path.name}."
        return _with_header(path, header, envi.read_fields(header), "ENVI", guess)
    driver = next((name for name, marks in _DRIVERS.items() if starts_with(path, *marks)), None)
    if driver == "GTiff" and header is not None and starts_with(header, b"ENVI"):
        fields = envi.read_fields(header)
        if _describes_tiff(fields):
            return _with_header(path, header, fields, driver)
    if driver is not None:
        return RasterSource(path, driver)
    names = " and ".join(dict.fromkeys((f"{path.name}.hdr", f"{path.stem}.hdr")))
    reason = f"has no header beside it: looked for {names}"
    if header is not None:
        reason = f"does not hold the pixels that {header.name} beside it describes"
    raise FileError(
        f"{path} is not a raster (GeoTIFF, ERDAS Imagine, JPEG 2000, ENVI), and {reason}. If it is "
        "packed, unpack it; HDF5 and NetCDF files are opened with open_scene or open_dataset."
    )


def _with_header(
    data: Path, header: Path, fields: dict[str, str], driver: str, guess: str = ""
) -> RasterSource:
    """Return the source of a data file and its header, which must fit each other."""
    if driver != "ENVI":
        guess = f"Bands are described by {header.name}, found beside {data.name}."
        return RasterSource(data, driver, header, fields, (guess,))
    noted = envi.check_length(fields, header=header, data=data)
    return RasterSource(data, driver, header, fields, (guess, *noted))


def _describes_tiff(fields: Mapping[str, str]) -> bool:
    return "tif" in fields.get("file type", "").lower()


# Virtual rasters, which name other files: a stranger's could name any.


@contextmanager
def trusting_vrt(trust: bool) -> Iterator[None]:  # noqa: FBT001
    """Let virtual rasters name files outside of their folder, and URLs, where a user says so."""
    before = _TRUSTED.set(trust or _TRUSTED.get())
    try:
        yield
    finally:
        _TRUSTED.reset(before)


def _named_files(path: Path) -> tuple[Path, ...] | None:
    """Return the files that a virtual raster names, all in its own folder; None of a trusted one.

    Raises where it names anything else: GDAL would open it, whatever and wherever it is.
    """
    if _TRUSTED.get():
        return None
    try:
        root = ET.fromstring(path.read_bytes())  # noqa: S314  read, never expanded
    except (ET.ParseError, ValueError) as error:
        raise FileError(f"{path} is not a virtual raster ({error}). Make it again.") from error
    plain = {None, "VRTSourcedRasterBand", "VRTRawRasterBand"}
    odd = [
        f"is computed ({e.get('subClass')})" for e in root.iter() if e.get("subClass") not in plain
    ]
    odd += [f"names {e.text!r}" for e in root.iter("MDI") if e.get("key") == "OVERVIEW_FILE"]
    files: dict[Path, None] = {}
    for element in root.iter("SourceFilename"):
        name = (element.text or "").strip()
        file = path.parent / name  # which is the name itself where that is absolute
        if isinstance(path, RemotePath):
            inside = not Path(name).is_absolute()
        else:
            inside = path.parent.resolve() in file.resolve().parents
        # a relative name that is not relative to the virtual raster is so to where one works
        inside &= element.get("relativeToVRT") == "1" or Path(name).is_absolute()
        leads_away = re.match(r"[<{]|\w\w+:|/vsi", name) or ".." in Path(name).parts
        if leads_away or not inside or not file.is_file():
            odd.append(f"names {name!r}")
        elif starts_with(file, *_PLAIN) or envi.header_of(file) is not None:
            files[file] = None
        else:
            odd.append(f"names {name!r}")
    if odd:
        raise FileError(
            f"{path} {odd[0]}: a virtual raster may read plain rasters in its own folder only, "
            "because one from a stranger could read any file of yours. If you know where it comes "
            "from, open it with --trust-vrt (in Python trust_vrt=True)."
        )
    return tuple(files)


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
    n_control_points: int  # ground control points, which are not used
    length: int | None  # bytes of the files that hold the pixels; None where nobody knows

    @property
    def n_bands(self) -> int:
        """Number of bands."""
        return len(self.bands)

    @property
    def format(self) -> str:
        """What people call it."""
        return f"{self.driver} {self.layout}"

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
        return _info(source, virtual_raster(source), "VRT")


def _info(source: RasterSource, name: str, driver: str) -> RasterInfo:
    with gdal(), rasterio.open(name, driver=driver) as dataset:
        _check_claims(dataset, source)
        dtype = np.dtype(dataset.dtypes[0])
        bands = _bands(dataset, dtype)
        plain = ({MaskFlags.all_valid}, {MaskFlags.nodata})
        files = source.parts if source.driver == "VRT" else (source.path,)
        lengths = [file_length(file) for file in files or ()]
        all_known = None not in lengths and bool(lengths)
        layout = source.fields.get("interleave") or "pixel"
        if dataset.driver not in {"ENVI", "JP2OpenJPEG"}:  # which GDAL may look for for ever
            layout = dataset.profile.get("interleave", "band")
        return RasterInfo(
            source=source,
            name=name,
            driver=dataset.driver,
            layout=str(layout).lower(),
            dtype=dtype,
            grid=grid_of_file(dataset, source.path),
            bands=bands,
            fields=source.fields
            or envi.fields_from_tags(dataset.tags(ns="ENVI"), dataset.tags(), len(bands)),
            grain=dataset.block_shapes[0],
            has_mask=any(set(flags) not in plain for flags in dataset.mask_flag_enums),
            n_control_points=len(dataset.gcps[0]),
            length=sum(size or 0 for size in lengths) if all_known else None,
        )


def _check_claims(dataset: Any, source: RasterSource) -> None:
    """Raise if a file cannot hold what GDAL claims, or holds a type that is not read."""
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


def _bands(dataset: Any, dtype: np.dtype[Any]) -> tuple[RasterBand, ...]:
    # each of these properties asks GDAL about every band: once is enough
    nodata = [usable_nodata(value, dtype) for value in dataset.nodatavals]
    names = [name or "" for name in dataset.descriptions]
    tags = [dataset.tags(band) | dataset.tags(band, ns="IMAGERY") for band in dataset.indexes]
    alpha = [color is ColorInterp.alpha for color in dataset.colorinterp]
    rows = zip(nodata, dataset.scales, dataset.offsets, names, tags, alpha, strict=True)
    return tuple(RasterBand(*row) for row in rows)


def virtual_raster(source: RasterSource) -> str:
    """Return GDAL's own description of a file as a virtual raster, in clean UTF-8."""
    name = gdal_name(source.path)
    with gdal(), MemoryFile(ext=".vrt") as target:
        with rasterio.open(name, driver=source.driver) as opened:
            rasterio.shutil.copy(opened, target.name, driver="VRT")
        lines = target.read().splitlines(keepends=True)
    return "".join(envi.decoded(line) for line in lines)


# Pixels.


def raster_layer(info: RasterInfo, *, masked: bool = False) -> Layer:
    """Return the pixels of a raster as they are or, if `masked`, with NaN where GDAL says so.

    8- and 16-bit integers with a mask become float32, wider ones float64, which hold them.
    """
    with gdal():
        opened: Any = rioxarray.open_rasterio(
            info.name,
            masked=masked,
            cache=False,
            parse_coordinates=False,
            decode_times=False,
            # every thread has its own file handle, except for files without a place: rasterio
            # would warn whenever one of them is opened
            lock=None if info.grid.transform == Affine.identity() else False,
            driver=info.driver,
        )
    together = info.n_bands if info.layout in {"pixel", "bip"} else 1
    described = (info.source.path, "", AXES, opened.shape, opened.dtype, info.format)
    read = partial(_read_opened, opened.variable)
    row_of_blocks = info.n_bands * info.grain[0] * info.grid.width * info.dtype.itemsize
    cached = row_of_blocks <= _CACHE * 2**20
    return Layer(*described, read, (together, *info.grain), info.length, cached)


def _read_opened(variable: xr.Variable, key: tuple[slice, ...]) -> NDArray[Any]:
    with gdal():  # in whatever process this is
        return np.asarray(variable[key])


def raster_pixels(
    info: RasterInfo,
    *,
    nodata: float | None = None,
    gain: NDArray[np.float64] | float = 1.0,
    offset: NDArray[np.float64] | float = 0.0,
) -> Pixels:
    """Return the pixels of a raster; `nodata` is a value that GDAL does not know of."""
    # GDAL compares floats with nodata as they were rounded, but overlooks it beside a mask in the
    # file and in 64-bit integers; comparing integers here takes half the memory, too
    by_value = info.has_mask or info.dtype.kind in "iu"
    fill = tuple(band.nodata if by_value else None for band in info.bands)
    if info.nodata is None:
        fill = (nodata,) * info.n_bands
    masked = info.has_mask or (info.nodata is not None and not by_value)
    return Pixels.of(raster_layer(info, masked=masked), gain=gain, offset=offset, fill=fill)


def read_pixels(info: RasterInfo, *, chunks: Any = None) -> Any:
    """Return the pixels (band, y, x): float with NaN where there is no data, else as in the file.

    `chunks` is anything dask takes for (band, y, x): then no pixel is read yet.
    """
    return read_or_lazy(raster_pixels(info), chunks)


def read_raster_scene(path: Path) -> StoredScene:
    """Return the scene in a file that GDAL opens: its values scaled, NaN where it has no data."""
    info = raster_info(raster_source(path))
    bands = band_info(info)
    gain, offset, note_on_scale = _stated_scale(info)
    nodata, note_on_nodata = info.nodata, ""
    stated = info.fields.get("data ignore value")
    if nodata is None and stated is not None:
        value = envi.number(stated, name="data ignore value", where=str(info.source.path))
        nodata = usable_nodata(value, info.dtype)
        if nodata is None:
            note_on_nodata = f"The data ignore value {stated} cannot occur in {info.dtype} pixels."
    return StoredScene(
        pixels=raster_pixels(info, nodata=nodata, gain=gain, offset=offset),
        bands=bands,
        place=info.grid,
        attrs={
            "source": info.source.path.name,
            "type_in_file": str(info.dtype),
            "nodata_in_file": nodata,
            "acquisition_time": info.fields.get("acquisition time"),
        },
        notes=(*raster_notes(info), *filter(None, (note_on_scale, note_on_nodata))),
    )


def raster_notes(info: RasterInfo) -> Iterator[str]:
    """Yield a sentence about each thing that a raster says and that cannot simply be followed."""
    yield from info.source.guesses
    header, crs, transform = info.source.fields, info.grid.crs, info.grid.transform
    unplaced = transform == Affine.identity()
    if unplaced and info.n_control_points:
        yield (
            f"The file lies on the map by {info.n_control_points} ground control points only, "
            "which are not used: warp it first, for example with gdalwarp."
        )
    elif unplaced and header.get("map info"):
        yield "The map info of the header is not understood: no place on a map."
    if crs is not None and crs.is_geographic and max(abs(transform.c) / 4, abs(transform.f)) > 180:
        yield "The coordinates are not degrees, as the reference system says: correct one of them."
    if crs is None and header.get("coordinate system string"):
        yield "The coordinate system string of the header is not understood: not used."
    for number, band in enumerate(info.bands, start=1):
        if band.alpha:
            yield f"Band {number} is an alpha channel: no data where it is 0, and no band of light."
    if info.source.driver == "ENVI" and info.dtype.itemsize > 1 and "byte order" not in header:
        yield "The header does not tell the byte order: read as little endian (0)."


def _stated_scale(info: RasterInfo) -> tuple[NDArray[np.float64], NDArray[np.float64], str]:
    """Return gain and offset per band that a file or the header beside it states, and a note.

    Where a file has band gains and a `reflectance scale factor`, both say the same: only the factor
    counts, so that nothing is scaled twice.
    """
    where = info.source.described_in
    gain, offset = np.array([(band.scale, band.offset) for band in info.bands], dtype=float).T
    if np.all(gain == 1) and not offset.any():
        # GDAL reads the header of an ENVI file, not the one beside a TIFF
        listed = [
            envi.band_numbers(info.source.fields, name, n_bands=info.n_bands, where=where)
            for name in ("data gain values", "data offset values")
        ]
        gain = gain if listed[0] is None else listed[0]
        offset = offset if listed[1] is None else listed[1]
    text = info.fields.get(_SCALE_FACTOR)
    if not text:
        return gain, offset, ""
    factor = envi.number(text, name=_SCALE_FACTOR, where=where)
    if not (np.isfinite(factor) and factor > 0):
        raise FileError(f"{where}: '{_SCALE_FACTOR} = {text[:40]}' must be a number above 0.")
    doubly = bool(np.any(gain != 1) or offset.any())
    note = (
        f"The file has band gains or offsets and a {_SCALE_FACTOR} ({factor:g}): only the factor "
        "was applied."
    )
    return np.full(info.n_bands, 1 / factor), np.zeros(info.n_bands), note if doubly else ""


@contextmanager
def gdal() -> Iterator[None]:
    """Keep GDAL quiet about what is fine, small in memory, and not waiting for dead servers."""
    # by default GDAL keeps 5 % of the memory of the machine, and waits for ever
    limits = {
        "GDAL_CACHEMAX": _CACHE,
        "GDAL_HTTP_CONNECTTIMEOUT": remote.SILENCE,
        "GDAL_HTTP_LOW_SPEED_TIME": remote.SILENCE,
        "GDAL_HTTP_LOW_SPEED_LIMIT": 1,
    }
    with quiet_without_place(), rasterio.Env(**limits):
        warnings.filterwarnings("ignore", r"\w+ differ across bands", UserWarning)
        yield
