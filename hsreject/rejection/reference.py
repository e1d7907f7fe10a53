"""Reference labels beside a label map: which pixels have one, and which of those are right."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.schema import (
    MAP_DIMS,
    NO_REFERENCE,
    X,
    Y,
    check_label_type,
    check_labels,
    check_no_mask,
    check_same_grid,
    check_same_size,
    fill_value,
    nodata_label,
    reference_values,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


def as_label_map(labels: xr.DataArray | NDArray[Any], *, name: str) -> xr.DataArray:
    """Return labels (y, x) as a DataArray, 0 where there is none, or say why they are none."""
    if not isinstance(labels, xr.DataArray):
        labels = xr.DataArray(_plain_map(labels, name=name), dims=MAP_DIMS)
    labels = check_labels(labels, name=name)
    fill = fill_value(labels)
    values = reference_values(np.asarray(labels.values), fill=fill, name=name)
    return labels if fill is None else labels.copy(data=values)


def reference_pixels(
    label: xr.DataArray, reference: xr.DataArray | NDArray[Any], *, name: str = "reference"
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which pixels of a label map have a reference, and which of those are right.

    Parameters
    ----------
    label : DataArray of int (y, x)
        ``schema.nodata_label`` where there is no data.
    reference : DataArray or array of int (y, x)
        0, or the `_FillValue` of a DataArray, where there is no reference.
    name : str
        What the reference is called in messages.

    Returns
    -------
    used : array of bool (y, x)
        Pixels that have both a label and a reference.
    correct : array of bool (pixel)
        One value for each pixel of `used`, in row order.
    """
    labels = labels_on_grid(label, reference, name=name)
    found = np.asarray(label.values)
    has_reference = labels != NO_REFERENCE
    used = has_reference & (found != nodata_label(found.dtype))
    if not used.any():
        raise _nothing_to_compare(int(has_reference.sum()), name=name)
    return used, found[used] == labels[used]


def samples_with_data(
    correct: NDArray[np.bool_], confidence: NDArray[np.floating]
) -> tuple[NDArray[np.bool_], NDArray[np.floating]]:
    """Return the samples of a reference (sample) without those whose confidence is NaN: no data."""
    if not math.isnan(confidence.min(initial=np.inf)) and confidence.size:
        return correct, confidence  # nearly always
    has_data = ~np.isnan(confidence)
    if not has_data.any():
        raise _nothing_to_compare(confidence.size, name="reference")
    return correct[has_data], confidence[has_data]


def labels_on_grid(
    grid: xr.DataArray, labels: xr.DataArray | NDArray[Any], *, name: str = "reference"
) -> NDArray[np.integer]:
    """Return the values of labels (y, x), or say why they do not lie on the grid of a map.

    Only pixels with a label differ from 0: the fill value of a DataArray counts as no label.
    """
    names = ("the label map", name)
    if isinstance(labels, xr.DataArray):
        checked = check_labels(labels, name=name)
        check_same_grid(grid, checked, names=names)
        values = np.asarray(checked.values)
        return reference_values(values, fill=fill_value(checked), name=name)
    plain = _plain_map(labels, name=name)
    check_label_type(plain.dtype, name=name)
    sizes = grid.sizes
    check_same_size((sizes[Y], sizes[X]), plain.shape, names=names)
    return reference_values(plain, name=name)


def _plain_map(labels: NDArray[Any], *, name: str) -> NDArray[Any]:
    check_no_mask(labels, name=name, remedy="Fill them with 0 (no reference): labels.filled(0).")
    plain = np.asarray(labels)
    if plain.ndim != len(MAP_DIMS):
        raise InputError(f"{name} must be a map (y, x) (got an array of shape {plain.shape}).")
    return plain


def _nothing_to_compare(n_pixels: int, *, name: str) -> InputError:
    if n_pixels == 0:
        return InputError(
            f"{name} has no pixel to compare with: it is 0 everywhere, which means no reference. "
            "Give labels with class values from 1."
        )
    return InputError(
        f"{name} has no pixel to compare with: {n_pixels} pixels have a label in it, "
        "and none of them has data in this scene. Check that both show the same place."
    )
