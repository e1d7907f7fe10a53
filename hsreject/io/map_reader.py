"""Open maps that were written: what is rejected, what has no data, and what 0 means survive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.classes import ClassTable
from hsreject.errors import FileError
from hsreject.io.class_names import StatedClasses, stated_classes
from hsreject.io.raster_file import RasterInfo, raster_info, read_pixels
from hsreject.io.source import existing, raster_source

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from numpy.typing import NDArray


def open_map(path: str | PathLike[str], *, chunks: Any = None) -> xr.DataArray:
    """Open a map or a field: the inverse of :func:`hsreject.write_map`.

    Unlike `open_labels`, which reads a reference, it keeps pixels without data apart from 0, which
    means rejected in a reject map.

    Parameters
    ----------
    path : path
        A GeoTIFF or an ENVI file, the data or its header.
    chunks : optional
        Opens lazily: anything dask takes for (band, y, x), such as "auto". No pixel is read before
        it is needed, so the classes are those that the file names.

    Returns
    -------
    DataArray, dims (y, x) or (category, y, x)
        Integers are labels: the class table and what 0 means (`schema.zero_meaning`) are in the
        attributes, `schema.nodata_label` is no data. Floats have NaN where there is no data;
        several bands become the categories 1, 2, ...
    """
    source = raster_source(existing(path))
    info = raster_info(source.path, driver=source.driver)
    bands = read_pixels(info, chunks=chunks)
    if info.dtype.kind == "f":
        return info.grid.attach(_field(bands, info))
    if info.n_bands != 1:
        raise FileError(f"{path} has {info.n_bands} bands of integers, but a label map has one.")
    stated = stated_classes(source.path)
    named = {value: name for value, name in stated.names.items() if value > 0}
    if chunks is None:
        dtype = _label_type(bands[0], info, largest=max(named, default=0))
        values = _encoded(bands[0], info.path, dtype)
    else:  # no looking at values: uint8 only if they cannot take the place of nodata
        roomy = info.dtype == np.uint8 and info.nodata == schema.nodata_label(np.uint8)
        dtype = np.dtype(np.uint8 if roomy else np.uint16)
        values = bands[0].map_blocks(_encoded, info.path, dtype, dtype=dtype)
    labels = xr.DataArray(values, dims=schema.MAP_DIMS, name=info.names[0] or None)
    labels = schema.attach_classes(labels, _table(labels, stated))
    if stated.names.get(0):
        labels.attrs[schema.ZERO_MEANING] = stated.names[0]
    return info.grid.attach(labels)


def _field(bands: NDArray[Any], info: RasterInfo) -> xr.DataArray:
    if info.n_bands == 1:
        return xr.DataArray(bands[0], dims=schema.MAP_DIMS, name=info.names[0] or None)
    values = range(1, info.n_bands + 1)
    field = xr.DataArray(bands, dims=schema.FIELD_DIMS, coords={schema.CATEGORY: list(values)})
    if all(info.names) and len(set(info.names)) == info.n_bands:
        return schema.attach_classes(field, ClassTable.from_names(info.names))
    return schema.attach_classes(field, ClassTable.plain(list(values)))


def _label_type(band: NDArray[Any], info: RasterInfo, *, largest: int) -> np.dtype[Any]:
    """Return the file's type of labels; a narrow one is widened when nodata has no room."""
    if info.dtype == np.uint16:
        return info.dtype
    present = band[~np.isnan(band)] if band.dtype.kind == "f" else band
    return schema.label_dtype(max(int(present.max(initial=0)), largest))


def _encoded(band: NDArray[Any], path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return labels of `dtype`, pixels without data at its last value."""
    without_data = np.isnan(band) if band.dtype.kind == "f" else np.zeros(band.shape, dtype=bool)
    present = band[~without_data]
    if present.size and (present.min() < 0 or present.max() >= schema.nodata_label(np.uint16)):
        raise FileError(
            f"{path}: labels must lie between 0 and {schema.nodata_label(np.uint16) - 1} "
            f"(found {present.min():g} to {present.max():g})."
        )
    return np.where(without_data, schema.nodata_label(dtype), band).astype(dtype)


def _table(labels: xr.DataArray, stated: StatedClasses) -> ClassTable:
    """Return the classes that the file names and, unless it is lazy, those that occur."""
    there = np.unique(labels.values) if labels.chunks is None else np.array([], labels.dtype)
    values = {int(v) for v in there if v not in {0, schema.nodata_label(labels.dtype)}}
    values |= {value for value in stated.names if value > 0}
    plain = ClassTable.plain(sorted(values))
    names = [stated.names.get(value) or plain.name_of(value) for value in plain.values]
    colors = [
        stated.colors.get(value, color)
        for value, color in zip(plain.values, plain.colors, strict=True)
    ]
    return ClassTable.from_names(names, values=plain.values, colors=colors)
