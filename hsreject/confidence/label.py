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


def first_largest(
    field: NDArray[np.floating],
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.floating]]:
    """Return where the first largest value along the first axis stands, and that value.

    Without branches and several times faster than an argmax along the first axis. Where any value
    is NaN, the position is the number of categories and the value NaN.

    Parameters
    ----------
    field : array (category, ...)
    """
    n_categories = len(field)
    dtype = label_dtype(n_categories).type
    largest = field.max(axis=0)
    # The code of a category is the larger the earlier it stands, so that the first one wins; equal
    # to NaN is nothing, which leaves 0.
    code, here = np.zeros(largest.shape, dtype), np.empty(largest.shape, dtype)
    for position, plane in enumerate(field):
        np.equal(plane, largest, out=here, casting="unsafe")
        np.multiply(here, dtype(n_categories - position), out=here)
        np.maximum(code, here, out=code)
    return np.subtract(dtype(n_categories), code, out=code), largest


def value_at_label(
    field: NDArray[np.floating], beside: NDArray[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Return the largest value of `field` over its first axis and `beside` at the same category."""
    position, largest = first_largest(field)
    inside = np.minimum(position, len(field) - 1).astype(np.intp)
    return largest, np.take_along_axis(beside, inside[np.newaxis], axis=0)[0]


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
        label = on_map_of(field, values[first_largest(field.values)[0]])
    else:
        label = xr.apply_ufunc(
            lambda planes: values[first_largest(np.moveaxis(planes, -1, 0))[0]],
            field,
            input_core_dims=[[CATEGORY]],
            dask="parallelized",
            output_dtypes=[values.dtype],
        )
    return _described(label, field)


def on_map_of(field: xr.DataArray, data: NDArray[Any]) -> xr.DataArray:
    """Return `data` (...) on the map of a field (category, ...), with its coordinates."""
    coords = {name: c for name, c in field.coords.items() if CATEGORY not in c.dims}
    return xr.DataArray(data, dims=[dim for dim in field.dims if dim != CATEGORY], coords=coords)


def label_map_of_positions(position: NDArray[np.integer], field: xr.DataArray) -> xr.DataArray:
    """Return the label map of positions along `category`, on the grid of a field.

    Parameters
    ----------
    position : array of int (y, x)
        Counted from 0; the number of categories where there is no data.
    field : DataArray (category, y, x)
        Whose classes and coordinates the map gets.

    Examples
    --------
    >>> field = xr.DataArray(np.zeros((2, 1, 3)), dims=("category", "y", "x"),
    ...                      coords={"category": [3, 7]})
    >>> label_map_of_positions(np.array([[0, 1, 2]]), field).values
    array([[  3,   7, 255]], dtype=uint8)
    """
    field = check_dims(field, FIELD_DIMS, name="field")
    return _described(on_map_of(field, _label_values(field)[position]), field)


def _label_values(field: xr.DataArray) -> NDArray[Any]:
    """Return the labels of the categories and, last, nodata, in the type of the label map."""
    values = np.arange(1, field.sizes[CATEGORY] + 1)
    if CATEGORY in field.coords:
        values = np.asarray(field.coords[CATEGORY].values)
    dtype = label_dtype(int(values.max()))
    return np.append(values, nodata_label(dtype)).astype(dtype)


def _described(label: xr.DataArray, field: xr.DataArray) -> xr.DataArray:
    if CATEGORY not in field.coords:
        field = field.assign_coords({CATEGORY: _label_values(field)[:-1]})
    label.attrs = {"_FillValue": nodata_label(label.dtype)}
    return attach_classes(label.rename("label"), class_table(field))
