"""Label maps: their types, nodata, classes, and the reference labels they are compared with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import HsrejectError, InputError
from hsreject.schema.class_tree import GROUPS_ATTRIBUTE
from hsreject.schema.classes import ClassTable
from hsreject.schema.dims import (
    CATEGORY,
    CLASS_NAME,
    LABEL_WITH_REJECTION,
    LARGEST_LABEL,
    MAP_DIMS,
    NO_REFERENCE,
    NO_REFERENCE_MEANING,
    REJECTED,
    ZERO_MEANING,
    as_map,
    category_labels,
    check_dims,
    check_same_grid,
    plain_array,
)

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

_ROWS = 512  # of a map, read at once


def label_dtype(largest: int) -> np.dtype[Any]:
    """Choose the smallest unsigned type whose last value stays free for nodata."""
    return np.dtype(np.uint8) if largest < np.iinfo(np.uint8).max else np.dtype(np.uint16)


def nodata_label(dtype: DTypeLike) -> int:
    """Compute the label that means "no data": the largest value of a label type, 255 for uint8."""
    return int(np.iinfo(np.dtype(dtype)).max)


def check_labels(labels: xr.DataArray, *, name: str = "labels") -> xr.DataArray:
    """Check reference labels (y, x), and return them."""
    labels = check_dims(labels, MAP_DIMS, name=name)
    check_label_type(labels.dtype, name=name)
    return labels


def check_label_type(dtype: np.dtype[Any], *, name: str) -> None:
    """Raise unless labels are integers."""
    if dtype.kind not in "iu":
        raise InputError(
            f"{name} must hold integers, 0 where there is no reference (got {dtype}). "
            "Convert them, for example with .fillna(0).astype('uint8')."
        )


def label_values(field: xr.DataArray) -> NDArray[Any]:
    """List the labels of the categories and, last, nodata, in the type of the label map."""
    labels = category_labels(field)
    dtype = label_dtype(int(labels.max(initial=1)))
    return np.append(labels, nodata_label(dtype)).astype(dtype)


def fill_value(labels: object) -> Any:
    """Read the value that means "no label" beside 0, or None: the `_FillValue` of a DataArray."""
    if not isinstance(labels, xr.DataArray):
        return None
    stated: Any = labels.attrs.get("_FillValue", labels.encoding.get("_FillValue"))
    return np.ravel(stated)[0] if np.size(stated) == 1 else None


def nodata_values(labels: xr.DataArray) -> list[Any]:
    """List the labels of a map that mean "no data": :func:`nodata_label`, :func:`fill_value`."""
    last, fill = nodata_label(labels.dtype), fill_value(labels)
    return [last] if fill is None else [last, fill]


def canonical_labels(
    values: NDArray[Any],
    *,
    nodata: Iterable[Any] = (),
    dtype: DTypeLike | None = None,
    name: str = "label",
    error: type[HsrejectError] = InputError,
) -> NDArray[np.unsignedinteger[Any]]:
    """Convert labels to unsigned integers: the one place where they become so.

    Pixels without data, which are NaN or one of `nodata`, get :func:`nodata_label` of the type:
    of `dtype`, or of the smallest that has room.
    """
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
    for value in nodata:
        missing |= values == value
    values = np.where(missing, values.dtype.type(0), values)
    lowest, highest = (values.min(), values.max()) if values.size else (0, 0)
    if lowest < 0 or highest > LARGEST_LABEL:
        raise error(
            f"{name}: labels must lie between 0 and {LARGEST_LABEL} (found {lowest} to {highest}). "
            "If one of them means no data, say so with nodata=VALUE, or as '_FillValue' in the "
            "attributes of an array."
        )
    labels = values.astype(dtype or label_dtype(int(highest)))
    if values.dtype.kind == "f" and not np.array_equal(labels, values):
        odd = values[labels != values].flat[0]
        raise error(f"{name}: labels must be whole numbers (found {odd}). Is it a label map?")
    return np.where(missing, nodata_label(labels.dtype), labels)


def reference_values(
    values: NDArray[np.integer], *, fill: Any = None, name: str = "labels"
) -> NDArray[np.integer]:
    """Set reference labels to 0 wherever there is no reference; refuse negative ones.

    `fill` is another value that means that there is none (:func:`fill_value`).
    """
    if fill is not None:
        values = np.where(values == fill, values.dtype.type(NO_REFERENCE), values)
    if values.dtype.kind == "i" and values.min(initial=0) < 0:
        raise InputError(
            f"{name} must not be negative (found {values.min()}). "
            "Use 0 where there is no reference."
        )
    return values


def reference_labels(
    labels: xr.DataArray | NDArray[Any], *, name: str = "labels"
) -> NDArray[np.integer]:
    """Check the values of reference labels: only pixels with a label differ from 0."""
    if isinstance(labels, xr.DataArray):
        values = np.asarray(check_labels(labels, name=name).values)
    else:
        values = plain_array(labels, name=name, fill="0")
        check_label_type(values.dtype, name=name)
    return reference_values(values, fill=fill_value(labels), name=name)


def as_label_map(labels: xr.DataArray | NDArray[Any], *, name: str) -> xr.DataArray:
    """Make reference labels (y, x) a DataArray, 0 where there is none."""
    values = reference_labels(labels, name=name)
    return as_map(labels, name=name).copy(data=values)


def reference_pixels(
    label: xr.DataArray, reference: xr.DataArray | NDArray[Any], *, name: str = "reference"
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Find which pixels (y, x) have a label and a reference, and which of those are right.

    The second array has one value for each of these pixels, in row order.
    """
    on_grid = as_label_map(reference, name=name)
    check_same_grid(label, on_grid, names=("the label map", name))
    truth, labels = on_grid.values, np.asarray(label.values)
    has_reference = truth != NO_REFERENCE
    used = has_reference & (labels != nodata_label(labels.dtype))
    if not has_reference.any():
        raise InputError(
            f"{name} has no pixel to compare with: it is 0 everywhere, which means no reference. "
            "Give labels with class values from 1."
        )
    if not used.any():
        raise InputError(
            f"{name} has no pixel to compare with: {has_reference.sum()} pixels have a label in "
            "it, and none of them has data in this scene. Check that both show the same place."
        )
    return used, labels[used] == truth[used]


def zero_meaning(labels: xr.DataArray) -> str:
    """Read what 0 means in a label map: its attribute `zero_meaning`, or what its name says."""
    default = "rejected" if labels.name == LABEL_WITH_REJECTION else NO_REFERENCE_MEANING
    return str(labels.attrs.get(ZERO_MEANING, default))


def attach_classes(array: xr.DataArray, classes: ClassTable) -> xr.DataArray:
    """Attach the class table to the attributes of `array` (and `class_name` along `category`)."""
    array = array.assign_attrs(classes.to_attrs())
    if CATEGORY in array.dims and CATEGORY in array.coords:
        names = [classes.name_of(int(value)) for value in array.coords[CATEGORY].values]
        array = array.assign_coords({CLASS_NAME: (CATEGORY, names)})
    return array


def class_table(array: xr.DataArray) -> ClassTable:
    """Read the class table that `array` carries, or make a plain one from its values."""
    table = ClassTable.from_attrs(array.attrs)
    if table is not None:
        return table
    if CATEGORY in array.coords:
        return ClassTable.plain([int(value) for value in array.coords[CATEGORY].values])
    if array.dtype.kind not in "iu":
        raise InputError(
            f"No class table: the array has no flag_values attribute and holds {array.dtype}. "
            "Attach one with hsreject.schema.attach_classes."
        )
    values = np.unique(np.asarray(array.values))
    without_class = {NO_REFERENCE, fill_value(array)}
    return ClassTable.plain([int(value) for value in values if value not in without_class])


def map_id(label: xr.DataArray, confidence: xr.DataArray | None = None) -> str:
    """Compute 16 hexadecimal digits that identify a label map, or a ranking.

    They do not depend on the type that numbers are stored in, nor on chunks: a map in memory and
    the same one in a file agree. A lazy map is read some rows at a time.
    """
    digest, missing = hashlib.sha256(f"{label.shape}".encode()), nodata_values(label)
    if confidence is not None:
        digest.update(str(confidence.attrs.get(GROUPS_ATTRIBUTE, "")).encode())
    for start in range(0, len(label), _ROWS):
        rows = {label.dims[0]: slice(start, start + _ROWS)}
        values = np.asarray(label.isel(rows).values)
        labels = canonical_labels(values, nodata=missing, dtype=np.uint16)
        digest.update(labels.astype("<u2").tobytes())
        if confidence is not None:
            numbers = np.asarray(confidence.isel(rows).values, dtype="<f8") + 0.0  # not -0.0
            unranked = (labels == nodata_label(np.uint16)) | (labels == REJECTED)
            digest.update(np.where(unranked, 0.0, numbers).tobytes())
    return digest.hexdigest()[:16]
