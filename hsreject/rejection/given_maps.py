"""Maps that users give to joint rejection beside the evidence: on its grid, and in bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.schema import MAP_DIMS, X, Y, check_dims, check_no_mask, check_same_grid

if TYPE_CHECKING:
    from numpy.typing import NDArray


def failure_probabilities(
    given: float | xr.DataArray | NDArray[Any], probability: xr.DataArray
) -> NDArray[np.float64]:
    """Return a failure probability, or a map of them, or say why it is none.

    Parameters
    ----------
    given : float, DataArray or array (y, x)
        In [0, 1) wherever there is data.
    probability : DataArray (category, y, x)
        The class probabilities, NaN where there is no data.
    """
    values = _values(given, probability, name="failure_probability")
    if values.dtype.kind not in "biuf":
        shown = f"a map of {values.dtype}" if values.ndim else repr(given)
        raise InputError(f"failure_probability must be a number (got {shown}).")
    used = values
    if values.ndim:
        _check_shape(values, probability, name="failure_probability")
        has_data = ~np.isnan(probability.values[0])
        used = values[has_data]
        values = np.where(has_data, values, 0)
    if not ((used >= 0) & (used < 1)).all():
        raise InputError(
            f"failure_probability must lie in [0, 1) (got {_shown(used)}); "
            "with 1 no class would be possible."
        )
    return values.astype(np.float64)


def pixels_within(
    given: xr.DataArray | NDArray[Any], probability: xr.DataArray
) -> NDArray[np.bool_]:
    """Return a mask (y, x), or say why it does not fit the scene."""
    values = _values(given, probability, name="within")
    _check_shape(values, probability, name="within")
    if values.dtype.kind not in "biu":
        raise InputError(
            f"within must be boolean, True where pixels count (got {values.dtype}). "
            "Compare, for example within=labels > 0."
        )
    return values.astype(np.bool_)


def _values(given: Any, probability: xr.DataArray, *, name: str) -> NDArray[Any]:
    if isinstance(given, xr.DataArray) and given.ndim:
        given = check_dims(given, MAP_DIMS, name=name)
        check_same_grid(probability, given, names=("probability", name))
    check_no_mask(given, name=name, remedy="Fill them first, with .filled(...).")
    return np.asarray(given)


def _check_shape(values: NDArray[Any], probability: xr.DataArray, *, name: str) -> None:
    shape = (probability.sizes[Y], probability.sizes[X])
    if values.shape != shape:
        raise InputError(
            f"{name} must be a map (y, x) of the shape {shape} (got the shape {values.shape})."
        )


def _shown(values: NDArray[Any]) -> str:
    if values.ndim == 0:
        return f"{values:g}"
    missing = int(np.isnan(values).sum())
    if missing:
        return f"NaN in {missing} pixels that have data"
    return f"values from {values.min():g} to {values.max():g}"
