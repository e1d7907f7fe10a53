"""The label that a field gives to a pixel: the first category with the largest value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.schema import (
    CATEGORY,
    FIELD_DIMS,
    attach_classes,
    check_dims,
    class_table,
    label_dtype,
    nodata_label,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


def value_at_label(
    field: NDArray[np.floating], beside: NDArray[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return the largest value of `field` over its first axis and `beside` at the same category.

    One pass over the categories: no index array and no gather, which cost more than the maximum.
    """
    largest, chosen = np.array(field[0]), np.array(beside[0])
    for plane, other in zip(field[1:], beside[1:], strict=True):
        np.copyto(chosen, other, where=plane > largest)
        np.maximum(largest, plane, out=largest)
    return largest, chosen


def label_map(field: xr.DataArray) -> xr.DataArray:
    """Return the label of every pixel of a field.

    Parameters
    ----------
    field : DataArray (category, y, x)
        Class probabilities or a hidden field, NaN where there is no data. The coordinate
        `category` holds the label values; without it they are 1..K.

    Returns
    -------
    DataArray of uint8 or uint16 (y, x)
        The value of the first category with the largest value; ``schema.nodata_label`` where there
        is no data. The class table and the coordinates of the map are kept.

    Examples
    --------
    >>> field = xr.DataArray(
    ...     [[[0.9, 0.2, np.nan]], [[0.1, 0.8, np.nan]]], dims=("category", "y", "x"),
    ...     coords={"category": [3, 7]},
    ... )
    >>> label_map(field).values
    array([[  3,   7, 255]], dtype=uint8)
    """
    field = check_dims(field, FIELD_DIMS, name="field")
    values = _label_values(field)
    if field.chunks is None:
        label = on_map_of(field, label_values(field.values, values))
    else:
        label = xr.apply_ufunc(
            lambda planes: label_values(np.moveaxis(planes, -1, 0), values),
            field,
            input_core_dims=[[CATEGORY]],
            dask="parallelized",
            output_dtypes=[values.dtype],
        )
    return _described(label, field)


def label_values(field: NDArray[np.floating], values: NDArray[Any]) -> NDArray[Any]:
    """Return the value of the first largest category of each pixel of a field (category, ...).

    One pass over the categories, several times faster than an argmax along the first axis. The
    largest of numbers one of which is NaN is NaN, so it also tells pixels without data.
    """
    largest = np.array(field[0])
    label = np.full(largest.shape, values[0])
    for plane, value in zip(field[1:], values[1:], strict=True):
        np.copyto(label, value, where=plane > largest)
        np.maximum(largest, plane, out=largest)
    label[np.isnan(largest)] = nodata_label(values.dtype)
    return label


def on_map_of(field: xr.DataArray, data: NDArray[Any]) -> xr.DataArray:
    """Return `data` (...) on the map of a field (category, ...), with its coordinates."""
    coords = {name: c for name, c in field.coords.items() if CATEGORY not in c.dims}
    return xr.DataArray(data, dims=[dim for dim in field.dims if dim != CATEGORY], coords=coords)


def label_map_of_positions(position: NDArray[np.integer], field: xr.DataArray) -> xr.DataArray:
    """Return the label map of positions along `category`, on the grid of a field.

    Parameters
    ----------
    position : array of int (y, x)
        Counted from 0; negative where there is no data.
    field : DataArray (category, y, x)
        Whose classes and coordinates the map gets.

    Examples
    --------
    >>> field = xr.DataArray(np.zeros((2, 1, 3)), dims=("category", "y", "x"),
    ...                      coords={"category": [3, 7]})
    >>> label_map_of_positions(np.array([[0, 1, -1]]), field).values
    array([[  3,   7, 255]], dtype=uint8)
    """
    field = check_dims(field, FIELD_DIMS, name="field")
    return _described(on_map_of(field, _filled(_label_values(field), position)), field)


def _label_values(field: xr.DataArray) -> NDArray[Any]:
    """Return the labels of the categories, in the type of the label map."""
    values = np.arange(1, field.sizes[CATEGORY] + 1)
    if CATEGORY in field.coords:
        values = np.asarray(field.coords[CATEGORY].values)
    return values.astype(label_dtype(int(values.max())))


def _filled(values: NDArray[Any], position: NDArray[np.integer]) -> NDArray[Any]:
    nodata = values.dtype.type(nodata_label(values.dtype))
    filled: NDArray[Any] = np.where(position < 0, nodata, values[position])
    return filled


def _described(label: xr.DataArray, field: xr.DataArray) -> xr.DataArray:
    if CATEGORY not in field.coords:
        field = field.assign_coords({CATEGORY: _label_values(field)})
    label.attrs = {"_FillValue": nodata_label(label.dtype)}
    return attach_classes(label.rename("label"), class_table(field))
