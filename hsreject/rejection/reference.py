"""Reference labels beside a label map: which pixels have one, and which of those are right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.schema import (
    MAP_DIMS,
    NO_REFERENCE,
    check_labels,
    check_same_grid,
    nodata_label,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


def as_label_map(labels: xr.DataArray | NDArray[Any], *, name: str) -> xr.DataArray:
    """Return labels (y, x) as a DataArray, or say why they are none."""
    if not isinstance(labels, xr.DataArray):
        plain = np.asarray(labels)
        if plain.ndim != len(MAP_DIMS):
            raise InputError(f"{name} must be a map (y, x) (got an array of shape {plain.shape}).")
        labels = xr.DataArray(plain, dims=MAP_DIMS)
    return check_labels(labels, name=name)


def reference_pixels(
    label: xr.DataArray, reference: xr.DataArray | NDArray[Any], *, name: str = "reference"
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which pixels of a label map have a reference, and which of those are right.

    Parameters
    ----------
    label : DataArray of int (y, x)
        ``schema.nodata_label`` where there is no data.
    reference : DataArray or array of int (y, x)
        0 where there is no reference.
    name : str
        What the reference is called in messages.

    Returns
    -------
    used : array of bool (y, x)
        Pixels that have both a label and a reference.
    correct : array of bool (pixel)
        One value for each pixel of `used`, in row order.
    """
    labels = as_label_map(reference, name=name)
    check_same_grid(label, labels, names=("the label map", name))
    found = np.asarray(label.values)
    used = (labels.values != NO_REFERENCE) & (found != nodata_label(found.dtype))
    if not used.any():
        raise InputError(
            f"{name} has no pixel to compare with: "
            f"{int((labels.values != NO_REFERENCE).sum())} pixels have a label in it, "
            "and none of them has data in this scene."
        )
    return used, found[used] == labels.values[used]
