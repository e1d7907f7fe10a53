"""The one raster reader: GDAL through rasterio and rioxarray, for ENVI, GeoTIFF and their kin."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import rasterio
import rasterio.shutil
import rioxarray
from rasterio.enums import MaskFlags
from rasterio.errors import NotGeoreferencedWarning, RasterioError

from hsreject.errors import FileError
from hsreject.io.chunking import block_sizes
from hsreject.io.grid import Grid

if TYPE_CHECKING:
    from affine import Affine


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
        Value that means no data, if the pixel type can hold it.
    masked : bool
        Whether some pixels may be without data: by `nodata` or by a mask in the file.
    scales, offsets : tuple of float
        Of each band: true value = value in the file * scale + offset.
    names : tuple of str
        Descriptions of the bands, empty where there are none.
    tags, envi : dict
        Tags of the file, and those of its ENVI domain.
    band_tags : tuple of dict
        Tags of each band.
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
    scales: tuple[float, ...]
    offsets: tuple[float, ...]
    names: tuple[str, ...]
    tags: dict[str, str]
    envi: dict[str, str]
    band_tags: tuple[dict[str, str], ...]


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
        _check_memory(info, shape)
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
                return np.asarray(opened.values)
        blocks = block_sizes(chunks, shape=shape, dtype=info.dtype)
        # By position: tags left over from NetCDF can give the first dimension another name.
        lazy = opened.chunk(dict(zip(opened.dims, blocks, strict=True)))
        return lazy.data


def virtual_raster(path: Path) -> str:
    """Return GDAL's own description of a file as a virtual raster, in clean UTF-8."""
    with tempfile.TemporaryDirectory() as folder, gdal_errors(path), _quiet():
        target = Path(folder, "description.vrt")
        rasterio.shutil.copy(str(path.absolute()), str(target), driver="VRT")
        lines = target.read_bytes().splitlines(keepends=True)
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
        nodata = _usable_nodata(dataset.nodata, dtype)
        flags = [flag for band in dataset.mask_flag_enums for flag in band]
        return RasterInfo(
            name=name,
            path=path,
            driver=dataset.driver,
            interleave=str(dataset.profile.get("interleave", "band")),
            dtype=dtype,
            n_bands=dataset.count,
            grid=Grid(dataset.height, dataset.width, _clean(dataset.transform), dataset.crs),
            nodata=nodata,
            masked=nodata is not None or MaskFlags.per_dataset in flags,
            scales=dataset.scales,
            offsets=dataset.offsets,
            names=tuple(text or "" for text in dataset.descriptions),
            tags=dataset.tags(),
            envi=dataset.tags(ns="ENVI"),
            band_tags=tuple(
                dataset.tags(band) | dataset.tags(band, ns="IMAGERY") for band in dataset.indexes
            ),
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


def _usable_nodata(nodata: float | None, dtype: np.dtype[Any]) -> float | None:
    if nodata is None or dtype.kind == "f":
        return nodata
    limits = np.iinfo(dtype)
    fits = nodata == np.round(nodata) and limits.min <= nodata <= limits.max
    return nodata if fits else None


def _clean(transform: Affine) -> Affine:
    """Return the transform without the negative zeros that GDAL's ENVI driver makes."""
    return type(transform)(*(number + 0.0 for number in transform[:6]))


def _check_memory(info: RasterInfo, shape: tuple[int, ...]) -> None:
    wanted = int(np.prod(shape, dtype=object)) * max(info.dtype.itemsize, 4)
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # not a POSIX system: let the allocation decide
        return
    if wanted > there:
        raise FileError(
            f"{info.path} needs {wanted / 2**30:.0f} GiB for {shape[0]} bands of {shape[1]} rows x "
            f"{shape[2]} columns, this machine has {there / 2**30:.0f}. Open it with chunks='auto'."
        )


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
