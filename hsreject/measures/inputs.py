"""What the measures accept: samples, fractions, costs and curves, checked at the boundary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

ROUNDING = 1e-9
"""Shares of weighted samples are ratios of rounded sums: closer than this they are the same."""


def same_layout(arrays: Mapping[str, ArrayLike | xr.DataArray | None]) -> dict[str, NDArray[Any]]:
    """Align the arrays that are not None: NumPy arrays of one shape and order, by name.

    DataArrays are brought to the dimension order of the first one; maps must share their grid.
    """
    present = {name: array for name, array in arrays.items() if array is not None}
    first_name, first = next(iter(present.items()))
    remedy = "Leave those samples out of all arrays, for example with array[~mask]."
    for name, array in present.items():
        schema.check_no_mask(array, name=name, remedy=remedy)
        if isinstance(first, xr.DataArray) and isinstance(array, xr.DataArray):
            present[name] = _like(first, array, names=(first_name, name))
    plain = dict(zip(present, _loaded(present.values()), strict=True))
    shape = plain[first_name].shape
    for name, values in plain.items():
        if values.shape != shape:
            raise InputError(
                f"{first_name} has shape {shape} but {name} has shape {values.shape}. "
                "Both must describe the same samples in the same order."
            )
    if 0 in shape:
        raise InputError(f"{first_name} is empty. The measures need at least one sample.")
    return plain


def _like(first: xr.DataArray, other: xr.DataArray, *, names: tuple[str, str]) -> xr.DataArray:
    if set(first.dims) != set(other.dims):
        dims = [f"({', '.join(map(str, array.dims))})" for array in (first, other)]
        raise InputError(
            f"{names[0]} has the dims {dims[0]} but {names[1]} has {dims[1]}. "
            "Rename or squeeze one of them."
        )
    other = other.transpose(*first.dims)
    if set(schema.MAP_DIMS) <= set(first.dims):
        schema.check_same_grid(first, other, names=names)
    return other


def _loaded(arrays: Iterable[Any]) -> list[NDArray[Any]]:
    """Load arrays into NumPy; lazy ones together, since they often share their work."""
    data = [array.variable.data if isinstance(array, xr.DataArray) else array for array in arrays]
    if any(hasattr(array, "__dask_graph__") for array in data):
        from dask.base import compute  # noqa: PLC0415 - slow to import, rarely needed

        data = compute(*data, traverse=False)
    return [np.asarray(array) for array in data]


def correct_values(array: NDArray[Any], *, name: str = "correct") -> NDArray[np.bool_]:
    """Check the accuracy vector of the paper, and flatten it."""
    return _boolean(array, name=name, remedy="Compare the maps: correct = label == reference.")


def rejected_values(array: NDArray[Any]) -> NDArray[np.bool_]:
    """Check the rejection vector of the paper, and flatten it."""
    return _boolean(array, name="rejected", remedy="Use rejected = confidence < threshold.")


def _boolean(array: NDArray[Any], *, name: str, remedy: str) -> NDArray[np.bool_]:
    if array.dtype.kind in "iu" and np.isin(array, (0, 1)).all():
        array = array.astype(np.bool_)
    if array.dtype != np.bool_:
        raise InputError(
            f"{name} must be boolean, or whole numbers 0 and 1 (got {array.dtype}). {remedy}"
        )
    return array.ravel()


def class_values(array: NDArray[Any], *, name: str) -> NDArray[np.int64]:
    """Check classes, and flatten them; an error names a value that is not one."""
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} must hold integer classes (got {array.dtype}).")
    if array.min() <= 0:
        raise InputError(
            f"{name} holds {array.min()}, which is not a class: classes start at 1. Leave pixels "
            "without reference out with hsreject.evaluation_samples, and give rejected ones as "
            "'rejected'."
        )
    return array.ravel().astype(np.int64)


def confidence_values(array: NDArray[Any], *, name: str = "confidence") -> NDArray[np.floating]:
    """Check that confidences are finite, and flatten them: float32 where they are, else float64."""
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold real numbers (got {array.dtype}).")
    flat = array.ravel()
    values = flat if flat.dtype == np.float32 else flat.astype(np.float64, copy=False)
    if not np.isfinite(values).all():
        n_nan, n_infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
        raise InputError(
            f"{name} must be finite (found {n_nan} NaN and {n_infinite} infinite of {values.size} "
            "values). Leave pixels without data out, for example with "
            "hsreject.evaluation_samples(reference, label, confidence), and clip infinite ones."
        )
    return values


def weight_values(array: NDArray[Any]) -> NDArray[Any]:
    """Check sample weights, and flatten them: int64 if they are integers, else float64."""
    if array.dtype.kind not in "iuf":
        raise InputError(f"sample_weight must hold real numbers (got {array.dtype}).")
    values = array.ravel().astype(np.float64 if array.dtype.kind == "f" else np.int64)
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError(
            f"sample_weight must be finite and not negative (found values from {values.min()} to "
            f"{values.max()}). Give weight 0 to samples that must not count."
        )
    if not values.any():
        raise InputError("sample_weight is 0 everywhere. Give some sample a weight.")
    return values


def cost_values(rejection_cost: ArrayLike) -> NDArray[np.float64]:
    """Check rejection costs, one or several, all in [0, 1]."""
    remedy = "An error costs 1: divide the cost of a rejection by that of an error."
    return _unit_interval(rejection_cost, name=schema.REJECTION_COST, remedy=remedy)


def fraction_values(rejected_fraction: ArrayLike) -> NDArray[np.float64]:
    """Check rejected fractions, all in [0, 1], and list them."""
    remedy = "Write 10 % as 0.1."
    return np.atleast_1d(
        _unit_interval(rejected_fraction, name=schema.REJECTED_FRACTION, remedy=remedy)
    )


def _unit_interval(numbers: ArrayLike, *, name: str, remedy: str) -> NDArray[np.float64]:
    try:
        values = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number or several (got {numbers!r}).") from None
    if values.size == 0 or not ((values >= 0) & (values <= 1)).all():
        shown = np.array2string(values, threshold=10)
        raise InputError(f"{name} must lie in [0, 1] (got {shown}). {remedy}")
    return values


def check_curve(curve: xr.Dataset) -> None:
    """Raise unless the curve is one, and has an operating point."""
    is_one = isinstance(curve, xr.Dataset) and "accurate_kept" in curve
    if not is_one or schema.OPERATING_POINT not in curve.dims:
        raise InputError(
            "A curve is a Dataset over 'operating_point', as hsreject.rejection_curve and "
            f"hsreject.curve_of_points make them (got {described(curve)})."
        )
    if not curve.sizes[schema.OPERATING_POINT]:
        raise InputError("The curve has no operating point. Give one that has at least one.")


def described(given: object) -> str:
    """Describe what was given instead of a curve or a point, in a few words."""
    if isinstance(given, xr.Dataset):
        names = ", ".join(map(str, given.variables)) or "nothing"
        return f"a Dataset over ({', '.join(map(str, given.dims))}) of {names}"
    return type(given).__name__ if np.ndim(given) else repr(given)  # type: ignore[arg-type]


def check_single_curve(curve: xr.Dataset, *, needed_by: str) -> None:
    """Raise unless the points are those of one curve, rejected fraction ascending.

    A table may list the points of several rejectors one after the other.
    """
    check_curve(curve)
    if schema.REJECTOR in curve.coords:
        names = list(dict.fromkeys(curve[schema.REJECTOR].values.ravel().tolist()))
        if len(names) > 1:
            raise InputError(
                f"{needed_by} needs the curve of one rejector, but this table holds those of "
                f"{len(names)} ({', '.join(names)}). Choose one: table.isel("
                f"{schema.OPERATING_POINT}=table.{schema.REJECTOR}.values == {names[0]!r})."
            )
    fraction = curve["rejected_fraction"].values
    falls = np.flatnonzero(np.diff(fraction) < -ROUNDING)
    if falls.size:
        before, after = fraction[falls[0] : falls[0] + 2]
        raise InputError(
            f"{needed_by} needs the points of one curve, rejected fraction ascending (here it "
            f"falls from {before:g} to {after:g}). Select the points of one curve, or sort them "
            "with .sortby('rejected_fraction')."
        )
