"""The one raster reader: GDAL through rasterio and rioxarray, for ENVI, GeoTIFF and their kin."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import rasterio
import rasterio.shutil
import rioxarray
import xarray as xr
from affine import Affine
from dask.array.core import normalize_chunks
from rasterio.crs import CRS
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.errors import CRSError, RasterioError
from rasterio.io import MemoryFile

from hsreject.errors import FileError, InputError
from hsreject.io import envi
from hsreject.io.grid import Grid, crs_name, quiet_without_place
from hsreject.io.source import RasterSource
from hsreject.schema import CUBE_DIMS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import DTypeLike

_BLOCK = "64MiB"


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
    """What a raster file says before any pixel is read; what follows is for others to decide."""

    source: RasterSource
    name: str  # what GDAL opens: the path, or the text of a virtual raster over it
    driver: str
    interleave: str  # how bands follow each other: "band", "line", "pixel"
    dtype: np.dtype[Any]  # of the pixels in the file
    grid: Grid
    bands: tuple[RasterBand, ...]
    fields: dict[str, str]  # of ENVI: from the header, or from the tags of the file
    has_mask: bool  # the file holds a mask of pixels with data
    n_control_points: int  # ground control points, which are not used

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
    with gdal_errors(source.path):
        try:
            return _info(source, str(source.path.absolute()), source.driver)
        except UnicodeDecodeError:
            # rasterio takes every text for UTF-8; Latin-1 headers are common.
            return _info(source, virtual_raster(source.path), "VRT")


def _info(source: RasterSource, name: str, driver: str) -> RasterInfo:
    with _quiet(), rasterio.open(name, driver=driver) as dataset:
        if dataset.subdatasets:
            raise FileError(
                f"{source.path} holds {len(dataset.subdatasets)} images, not one. "
                "Export the one you want as a file of its own."
            )
        dtype = _pixel_type(dataset.dtypes, source.path)
        bands = tuple(
            RasterBand(
                nodata=usable_nodata(dataset.nodatavals[index - 1], dtype),
                scale=dataset.scales[index - 1],
                offset=dataset.offsets[index - 1],
                name=dataset.descriptions[index - 1] or "",
                tags=dataset.tags(index) | dataset.tags(index, ns="IMAGERY"),
                alpha=dataset.colorinterp[index - 1] is ColorInterp.alpha,
            )
            for index in dataset.indexes
        )
        return RasterInfo(
            source=source,
            name=name,
            driver=dataset.driver,
            interleave=str(dataset.profile.get("interleave", "band")),
            dtype=dtype,
            grid=_grid(dataset, source.path),
            bands=bands,
            fields=source.fields
            or envi.fields_from_tags(dataset.tags(ns="ENVI"), dataset.tags(), len(bands)),
            has_mask=any(MaskFlags.per_dataset in flags for flags in dataset.mask_flag_enums),
            n_control_points=len(dataset.gcps[0]),
        )


def _pixel_type(dtypes: tuple[str, ...], path: Path) -> np.dtype[Any]:
    if any("complex" in dtype for dtype in dtypes):
        raise FileError(
            f"{path} holds complex numbers ({dtypes[0]}). Write their amplitude and open that."
        )
    if len(set(dtypes)) > 1:
        raise FileError(
            f"{path} has bands of different types ({', '.join(sorted(set(dtypes)))}). "
            "Convert them to one type, for example with gdal_translate -ot Float32."
        )
    return np.dtype(dtypes[0])


def usable_nodata(nodata: float | None, dtype: np.dtype[Any]) -> float | None:
    """Return a nodata value if pixels of a type can have it."""
    if nodata is None or dtype.kind == "f":
        return nodata
    limits = np.iinfo(dtype)
    fits = nodata == np.round(nodata) and limits.min <= nodata <= limits.max
    return nodata if fits else None


def _grid(dataset: Any, path: Path) -> Grid:
    """Return the grid, without the negative zeros that GDAL's ENVI driver makes."""
    transform = Affine(*(number + 0.0 for number in dataset.transform[:6]))
    if not transform.determinant:
        raise FileError(
            f"{path} has pixels of size 0 (its transform is {transform[:6]}). "
            "Correct its place on the map, or remove it."
        )
    # What ENVI calls an arbitrary map has coordinates and no reference system.
    arbitrary = dataset.crs is not None and crs_name(dataset.crs) == "Arbitrary"
    return Grid(dataset.height, dataset.width, transform, None if arbitrary else dataset.crs)


def raster_notes(info: RasterInfo) -> Iterator[str]:
    """Yield a sentence about each thing that a raster says and that cannot simply be followed."""
    header = info.source.fields
    unplaced = info.grid.transform == Affine.identity()
    if unplaced and info.n_control_points:
        yield (
            f"The file lies on the map by {info.n_control_points} ground control points only, "
            "which are not used: warp it first, for example with gdalwarp."
        )
    elif unplaced and header.get("map info"):
        yield "The map info of the header is not understood: no place on a map."
    elif unplaced and info.grid.crs is not None:
        yield "The file has a reference system but no coordinates: pixels count from 0."
    stated = header.get("coordinate system string")
    if stated and not _is_understood(stated):
        yield "The coordinate system string of the header is not understood: not used."
    for number, band in enumerate(info.bands, start=1):
        if band.alpha:
            yield f"Band {number} is an alpha channel: no data where it is 0, and no band of light."
    if len({str(band.nodata) for band in info.bands}) > 1:
        yield "Bands have different nodata values: each band its own."
    names = envi.items(header, "band names")
    if names and len(names) != info.n_bands:
        yield f"The header has {len(names)} band names for {info.n_bands} bands: not used."


def _is_understood(wkt: str) -> bool:
    try:
        with rasterio.Env():  # else GDAL complains on the screen
            CRS.from_wkt(wkt, morph_from_esri_dialect=True)
    except CRSError:
        return False
    return True


def virtual_raster(path: Path) -> str:
    """Return GDAL's own description of a file as a virtual raster, in clean UTF-8."""
    with MemoryFile(ext=".vrt") as target, gdal_errors(path), _quiet():
        rasterio.shutil.copy(str(path.absolute()), target.name, driver="VRT")
        lines = target.read().splitlines(keepends=True)
    return "".join(_decoded(line) for line in lines)


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def read_pixels(info: RasterInfo, *, chunks: Any = None, nodata: float | None = None) -> Any:
    """Return the pixels (band, y, x): float with NaN where there is no data, else as in the file.

    8- and 16-bit integers with a mask become float32, wider ones float64, which hold them exactly.
    `chunks` is anything dask takes for (band, y, x): then no pixel is read yet. `nodata` is a value
    that GDAL does not know of.
    """
    # GDAL leaves its nodata value out of its mask beside a mask in the file and in 64-bit integers.
    wide = info.dtype.kind in "iu" and info.dtype.itemsize == 8
    masked_by_value = info.nodata is not None and not wide
    overlooked = info.nodata if info.has_mask or wide else None
    if info.nodata is None:
        overlooked = nodata
    with gdal_errors(info.source.path), _quiet():
        opened: Any = rioxarray.open_rasterio(
            info.name,
            masked=info.has_mask or masked_by_value,
            cache=False,
            parse_coordinates=False,
            decode_times=False,
            driver=info.driver,
        )
        if chunks is None:
            with opened:
                pixels = np.asarray(opened.values)
        else:
            blocks = block_sizes(chunks, shape=opened.shape, dtype=info.dtype)
            # By position: tags left over from NetCDF can give the first dimension another name.
            pixels = opened.chunk(dict(zip(opened.dims, blocks, strict=True))).data
    if overlooked is not None:
        pixels = xr.DataArray(pixels).where(xr.DataArray(pixels) != overlooked).data
    return pixels


def block_sizes(
    chunks: Any, *, shape: tuple[int, ...], dtype: DTypeLike
) -> tuple[tuple[int, ...], ...]:
    """Return the sizes of the blocks along (band, y, x).

    Classifiers and features work pixel by pixel on whole spectra: "auto" and True make blocks that
    hold all bands of some pixels, and so does a mapping that does not name the bands.
    """
    if chunks is True or (isinstance(chunks, str) and chunks == "auto"):
        chunks = (-1, "auto", "auto")
    elif isinstance(chunks, Mapping):
        unknown = [str(dim) for dim in chunks if dim not in CUBE_DIMS]
        if unknown:
            raise InputError(
                f"chunks names {', '.join(unknown)}, which a cube does not have. "
                f"It has {', '.join(CUBE_DIMS)}."
            )
        chunks = tuple(chunks.get(dim, -1) for dim in CUBE_DIMS)
    try:
        sizes: tuple[tuple[int, ...], ...] = normalize_chunks(
            chunks, shape=shape, dtype=np.dtype(dtype), limit=_BLOCK
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"chunks={chunks!r} does not fit a cube of {shape} (band, y, x): {error}."
        ) from error
    return sizes


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the warnings about things that are welcome here or handled here."""
    with quiet_without_place():
        warnings.filterwarnings("ignore", r"\w+ differ across bands", UserWarning)
        yield


@contextmanager
def gdal_errors(path: Path) -> Iterator[None]:
    """Turn what GDAL has to say, and a lack of memory, into one line about the file."""
    try:
        yield
    except MemoryError as error:
        raise no_memory(path, error) from error
    except (RasterioError, rasterio.errors.RasterioIOError) as error:
        cause = error.__cause__ or error
        said = " ".join(str(cause).split()) or type(error).__name__
        said = said.replace(f"'{path.absolute()}' not", "not")
        raise FileError(f"{path} cannot be read: {said}") from error


def no_memory(path: Path, error: MemoryError) -> FileError:
    """Return the error about a file that does not fit into memory."""
    return FileError(f"{path} does not fit into memory ({error}). Open it with chunks='auto'.")
