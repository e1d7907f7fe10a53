"""The one raster reader: GDAL through rasterio and rioxarray, for ENVI, GeoTIFF and their kin."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import rasterio
import rasterio.shutil
import rioxarray
import xarray as xr
from affine import Affine
from rasterio.enums import ColorInterp, MaskFlags
from rasterio.errors import NotGeoreferencedWarning, RasterioError
from rasterio.io import MemoryFile

from hsreject.errors import FileError
from hsreject.io.chunking import block_sizes
from hsreject.io.grid import Grid, crs_name
from hsreject.io.memory import check_memory


@dataclass(frozen=True)
class RasterInfo:
    """What GDAL says about a raster file before any pixel is read.

    Parameters
    ----------
    name : str
        What GDAL opens: the path, or the text of a virtual raster over it.
    path : Path
        The file.
    driver, interleave : str
        Name of the GDAL driver, and how bands follow each other ("band", "line", "pixel").
    dtype : numpy.dtype
        Type of the pixels in the file.
    n_bands : int
        Number of bands.
    grid : Grid
        Size, transform and reference system.
    nodata : float or None
        Value that means no data, if the pixel type can hold it; of the first band that has one.
    masked : bool
        Whether GDAL knows pixels without data: by a nodata value or by a mask in the file.
    overlooked : bool
        Whether GDAL's mask leaves out `nodata`: beside a mask in the file, and in 64-bit integers.
    scales, offsets : tuple of float
        Of each band: true value = value in the file * scale + offset.
    names : tuple of str
        Descriptions of the bands, empty where there are none.
    tags, envi : dict
        Tags of the file, and those of its ENVI domain.
    band_tags : tuple of dict
        Tags of each band.
    alpha : tuple of bool
        Which bands are an alpha channel.
    n_control_points : int
        Ground control points, which are not used.
    n_nodata_values : int
        How many nodata values there are: bands may have their own.
    """

    name: str
    path: Path
    driver: str
    interleave: str
    dtype: np.dtype[Any]
    n_bands: int
    grid: Grid
    nodata: float | None
    masked: bool
    overlooked: bool
    scales: tuple[float, ...]
    offsets: tuple[float, ...]
    names: tuple[str, ...]
    tags: dict[str, str]
    envi: dict[str, str]
    band_tags: tuple[dict[str, str], ...]
    alpha: tuple[bool, ...]
    n_control_points: int
    n_nodata_values: int


def raster_info(path: Path, *, driver: str) -> RasterInfo:
    """Return what GDAL says about a raster file, without reading pixels."""
    with gdal_errors(path):
        try:
            return _info(str(path.absolute()), path, driver)
        except UnicodeDecodeError:
            # rasterio takes every text for UTF-8; Latin-1 headers are common.
            return _info(virtual_raster(path), path, "VRT")


def read_pixels(info: RasterInfo, *, chunks: Any = None) -> Any:
    """Return the pixels (band, y, x): float with NaN where masked, else the type of the file.

    8- and 16-bit integers with a mask become float32, wider ones float64, which hold them exactly.

    Parameters
    ----------
    info : RasterInfo
        The file.
    chunks : optional
        Anything dask takes for (band, y, x): a dask array is returned and no pixel is read.
        True or "auto" keeps the spectrum of a pixel in one chunk. None reads all pixels.
    """
    shape = (info.n_bands, info.grid.height, info.grid.width)
    if chunks is None:
        check_memory(info.path, shape, max(info.dtype.itemsize, 4))
    with gdal_errors(info.path), _quiet():
        opened: Any = rioxarray.open_rasterio(
            info.name,
            masked=info.masked,
            cache=False,
            parse_coordinates=False,
            decode_times=False,
            driver=info.driver,
        )
        if chunks is None:
            with opened:
                pixels = np.asarray(opened.values)
        else:
            blocks = block_sizes(chunks, shape=shape, dtype=info.dtype)
            # By position: tags left over from NetCDF can give the first dimension another name.
            pixels = opened.chunk(dict(zip(opened.dims, blocks, strict=True))).data
    if info.overlooked:
        pixels = xr.DataArray(pixels).where(xr.DataArray(pixels) != info.nodata).data
    return pixels


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


def _info(name: str, path: Path, driver: str) -> RasterInfo:
    with _quiet(), rasterio.open(name, driver=driver) as dataset:
        if dataset.subdatasets:
            raise FileError(
                f"{path} holds {len(dataset.subdatasets)} images, not one. "
                "Export the one you want as a file of its own."
            )
        dtype = _pixel_type(dataset.dtypes, path)
        values = [usable_nodata(value, dtype) for value in dataset.nodatavals]
        stated = [value for value in values if value is not None]
        nodata = stated[0] if stated else None
        in_file = any(MaskFlags.per_dataset in band for band in dataset.mask_flag_enums)
        wide = dtype.kind in "iu" and dtype.itemsize == 8
        return RasterInfo(
            name=name,
            path=path,
            driver=dataset.driver,
            interleave=str(dataset.profile.get("interleave", "band")),
            dtype=dtype,
            n_bands=dataset.count,
            grid=_grid(dataset, path),
            nodata=nodata,
            masked=in_file or (bool(stated) and not wide),
            overlooked=bool(stated) and (in_file or wide),
            scales=dataset.scales,
            offsets=dataset.offsets,
            names=tuple(text or "" for text in dataset.descriptions),
            tags=dataset.tags(),
            envi=dataset.tags(ns="ENVI"),
            band_tags=tuple(
                dataset.tags(band) | dataset.tags(band, ns="IMAGERY") for band in dataset.indexes
            ),
            alpha=tuple(meaning is ColorInterp.alpha for meaning in dataset.colorinterp),
            n_control_points=len(dataset.gcps[0]),
            n_nodata_values=len({str(value) for value in values}),
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


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the warnings about things that are welcome here or handled here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        warnings.filterwarnings("ignore", r"\w+ differ across bands", UserWarning)
        yield


@contextmanager
def gdal_errors(path: Path) -> Iterator[None]:
    """Turn what GDAL has to say into one line about the file."""
    try:
        yield
    except (RasterioError, rasterio.errors.RasterioIOError) as error:
        cause = error.__cause__ or error
        said = " ".join(str(cause).split()) or type(error).__name__
        said = said.replace(f"'{path.absolute()}' not", "not")
        raise FileError(f"{path} cannot be read: {said}") from error
