"""The label that a field gives to a pixel: the first category with the largest value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.classes import ClassTable
from hsreject.confidence.largest import first_largest
from hsreject.errors import InputError
from hsreject.schema import (
    CATEGORY,
    FIELD_DIMS,
    check_dims,
    label_dtype,
    nodata_label,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

LARGEST_LABEL = nodata_label(np.uint16) - 1


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
    values = label_values(field)
    if field.chunks is None:
        return label_map_of_positions(first_largest(field.values).position, field)
    label: xr.DataArray = xr.apply_ufunc(
        lambda planes: values[first_largest(np.moveaxis(planes, -1, 0)).position],
        whole_categories(field),
        input_core_dims=[[CATEGORY]],
        dask="parallelized",
        output_dtypes=[values.dtype],
    )
    return label.rename("label").assign_attrs(_label_attrs(field, values))


def on_map_of(
    field: xr.DataArray, data: NDArray[Any], *, name: str, attrs: Mapping[str, Any] | None = None
) -> xr.DataArray:
    """Return `data` (...) on the map of a field (category, ...), with its coordinates."""
    coords = {key: c for key, c in field.coords.items() if CATEGORY not in c.dims}
    dims = [dim for dim in field.dims if dim != CATEGORY]
    return xr.DataArray(data, dims=dims, coords=coords, name=name, attrs=attrs)


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
    values = label_values(field)
    return on_map_of(field, values[position], name="label", attrs=_label_attrs(field, values))


def label_values(field: xr.DataArray) -> NDArray[Any]:
    """Return the labels of the categories and, last, nodata, in the type of the label map.

    Examples
    --------
    >>> label_values(xr.DataArray(np.zeros((2, 1, 3)), dims=("category", "y", "x")))
    array([  1,   2, 255], dtype=uint8)
    """
    values = category_labels(field)
    labels = np.empty(values.size + 1, label_dtype(int(values.max())))
    labels[:-1] = values
    labels[-1] = nodata_label(labels.dtype)
    return labels


def category_labels(field: xr.DataArray) -> NDArray[np.integer]:
    """Return the labels of the categories: their coordinate, or 1..K."""
    known = field.coords.variables  # not .coords[...], which would make a DataArray
    if CATEGORY not in known:
        return np.arange(1, field.sizes[CATEGORY] + 1)
    indexed = isinstance(known[CATEGORY], xr.IndexVariable)  # whose .values take twice as long
    values = field.get_index(CATEGORY).to_numpy() if indexed else known[CATEGORY].values
    labels = values.tolist()  # of a few numbers Python is the faster judge
    if values.dtype.kind == "f" and all(map(float.is_integer, labels)):
        values = values.astype(np.int64)
    distinct = values.dtype.kind in "iu" and len(set(labels)) == len(labels)
    if not labels or not distinct or min(labels) < 1 or max(labels) > LARGEST_LABEL:
        shown = ", ".join(map(str, labels[:8])) + (", ..." if len(labels) > 8 else "") or "none"
        raise InputError(
            f"The coordinate '{CATEGORY}' must hold whole numbers from 1 to {LARGEST_LABEL}, all "
            f"different: the labels of the classes (got {shown}). Number the classes, for example "
            f"with .assign_coords({CATEGORY}=range(1, {len(labels) + 1}))."
        )
    return values


def whole_categories(array: xr.DataArray) -> xr.DataArray:
    """Return an array whose chunks, if it has any, hold all categories of their pixels."""
    return array if array.chunks is None else array.chunk({CATEGORY: -1})


def _label_attrs(field: xr.DataArray, values: NDArray[Any]) -> dict[str, Any]:
    """Return the attributes of a label map: its nodata and the class table of the field."""
    table = ClassTable.from_attrs(field.attrs) or ClassTable.plain(values[:-1].tolist())
    return {"_FillValue": nodata_label(values.dtype), **table.to_attrs()}
