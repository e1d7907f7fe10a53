"""Write maps: the ending of the name chooses the format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import xarray as xr
from rasterio._err import CPLE_BaseError
from rasterio.errors import RasterioError

from hsreject.errors import FileError, InputError
from hsreject.files import check_space, free_space, replacing
from hsreject.io import envi_map, geotiff_map
from hsreject.io.block_store import store, stored_size
from hsreject.io.raster import Raster
from hsreject.progress import ProgressCallback, no_progress

# What rasterio lets out when GDAL cannot write: the last where GDAL has not even said so.
_OF_GDAL = (RasterioError, CPLE_BaseError, SystemError)


@dataclass(frozen=True)
class _Format:
    side_files: Callable[[Path], list[str]]
    finish: Callable[[Raster, Path, Path], None]
    check: Callable[[Raster], None] = lambda _raster: None


_GEOTIFF = _Format(geotiff_map.side_files, geotiff_map.finish_geotiff)
_ENVI = _Format(envi_map.side_files, envi_map.finish_envi, envi_map.check_names)
_FORMATS = dict.fromkeys(geotiff_map.SUFFIXES, _GEOTIFF) | dict.fromkeys(envi_map.SUFFIXES, _ENVI)


def write_map(
    array: xr.DataArray,
    path: str | PathLike[str],
    *,
    overwrite: bool = False,
    progress: ProgressCallback = no_progress,
) -> None:
    """Write a map that GIS programs open with its classes, colours and place.

    A name that ends in ``.tif`` makes a Cloud-Optimised GeoTIFF (tiled, compressed, with overviews;
    the names of the classes stand in the side file ``.tif.aux.xml``, where GDAL and QGIS look for
    them); ``.img``, ``.dat`` or ``.bsq`` an ENVI file with a header. The file appears under its
    name only when it is complete.

    Parameters
    ----------
    array : DataArray, dims (y, x) or (category, y, x)
        Integers are labels: the class table in the attributes gives names and colours, 0 is called
        what `schema.zero_meaning` says (rejected, no reference), `schema.nodata_label` is no data
        and transparent. Booleans are written as 0 and 1. Floats (confidence, probability) have NaN
        for no data. Lazy arrays are computed and written block by block.
    path : path
        The file to make; its folder must exist.
    overwrite : bool
        Replace a file that is already there.
    progress : ProgressCallback
        Called as blocks of a lazy array are done.

    Examples
    --------
    >>> import numpy as np, rasterio, tempfile
    >>> from hsreject.schema import attach_classes
    >>> from hsreject.classes import ClassTable
    >>> labels = xr.DataArray(np.array([[1, 2]], dtype="uint8"), dims=("y", "x"))
    >>> labels = attach_classes(labels, ClassTable.from_names(["soil", "water"]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_map(labels.rio.write_crs("EPSG:32633"), f"{folder}/map.tif")
    ...     with rasterio.open(f"{folder}/map.tif") as file:
    ...         file.crs.to_epsg(), file.nodata, file.read(1).tolist()
    (32633, 255.0, [[1, 2]])
    """
    write_maps({path: array}, overwrite=overwrite, progress=progress)


def write_maps(
    maps: Mapping[str | PathLike[str], xr.DataArray],
    *,
    overwrite: bool = False,
    progress: ProgressCallback = no_progress,
) -> None:
    """Write several maps in one pass over their blocks: what they share is computed once.

    Parameters
    ----------
    maps : mapping of path to DataArray
        As for :func:`write_map`. None of them appears before all are complete.
    overwrite : bool
        Replace files that are already there.
    progress : ProgressCallback
        Called as blocks of lazy arrays are done.
    """
    targets = [Path(path) for path in maps]
    formats = [_format(path) for path in targets]
    rasters = [Raster.from_array(array) for array in maps.values()]
    for raster, form in zip(rasters, formats, strict=True):
        form.check(raster)
    with ExitStack() as stack:
        finals = [
            stack.enter_context(
                replacing(path, side_files=form.side_files(path), overwrite=overwrite)
            )
            for path, form in zip(targets, formats, strict=True)
        ]
        stack.enter_context(_failures_of_gdal(targets[0]))
        check_space(targets[0], sum(stored_size(raster) for raster in rasters))
        plain = [path.with_name("plain.tmp") for path in finals]
        store(rasters, plain, progress=progress)
        for raster, source, path, form in zip(rasters, plain, finals, formats, strict=True):
            form.finish(raster, source, path)


@contextmanager
def _failures_of_gdal(path: Path) -> Iterator[None]:
    """Say in our words that GDAL could not write; it does not say why, but a full disk shows."""
    try:
        yield
    except _OF_GDAL as error:
        said = str(error.__cause__ or error).partition(". ")[0]
        raise FileError(
            f"Could not write {path}: GDAL gave up ({said}; {free_space(path.parent)})."
        ) from error


def _format(path: Path) -> _Format:
    if path.suffix.lower() not in _FORMATS:
        raise InputError(
            f"Cannot tell the format of '{path.name}'. A map may end in: {', '.join(_FORMATS)}; "
            "write a whole dataset (.nc) with write_dataset."
        )
    return _FORMATS[path.suffix.lower()]
