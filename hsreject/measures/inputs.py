"""What the measures accept: checks at the boundary, one clear sentence each."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

LARGEST_EXACT_INTEGER = 2**53  # beyond it float64 merges neighbouring integers


def is_lazy(array: object) -> bool:
    """Return whether an array is dask-backed, without importing dask."""
    return hasattr(array, "__dask_graph__")


def same_layout(arrays: Mapping[str, ArrayLike | xr.DataArray]) -> list[Any]:
    """Return the plain (NumPy or dask) arrays behind `arrays`, all of one shape and order.

    DataArrays are brought to the dimension order of the first one; maps must share their grid.
    """
    plain: list[Any] = []
    first_name, first = next(iter(arrays.items()))
    for name, array in arrays.items():
        if isinstance(first, xr.DataArray) and isinstance(array, xr.DataArray):
            ordered = _like(first, array, names=(first_name, name))
            plain.append(ordered.variable.data)
        else:
            values = array.variable.data if isinstance(array, xr.DataArray) else array
            schema.check_no_mask(
                values,
                name=name,
                remedy="Leave those samples out of all arrays, for example with array[~mask].",
            )
            plain.append(values if is_lazy(values) else np.asarray(values))
        if not _same_shape(plain[-1].shape, plain[0].shape):
            raise InputError(
                f"{first_name} has shape {plain[0].shape} but {name} has shape "
                f"{plain[-1].shape}. Both must describe the same samples in the same order."
            )
    if plain[0].size == 0:
        raise InputError(f"{first_name} is empty. The measures need at least one sample.")
    return plain


def _same_shape(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    # dask gives the unknown lengths of masked arrays as NaN
    return first == second or np.array_equal(
        np.array(first, float), np.array(second, float), equal_nan=True
    )


def _like(first: xr.DataArray, other: xr.DataArray, *, names: tuple[str, str]) -> xr.DataArray:
    if set(first.dims) != set(other.dims):
        raise InputError(
            f"{names[0]} has the dims {_words(first.dims)} but {names[1]} has "
            f"{_words(other.dims)}. Rename or squeeze one of them."
        )
    other = other.transpose(*first.dims)
    if set(schema.MAP_DIMS) <= set(first.dims):
        schema.check_same_grid(first, other, names=names)
    return other


def boolean(array: Any, *, name: str, remedy: str) -> Any:
    """Return a boolean array unchanged, or say what would make it one."""
    if array.dtype != np.bool_:
        raise InputError(f"{name} must be boolean (got {array.dtype}). {remedy}")
    return array


def correct_values(array: Any, *, name: str = "correct") -> Any:
    """Return the accuracy vector of the paper, or say how to make one."""
    return boolean(array, name=name, remedy="Compare the maps: correct = label == reference.")


def rejected_values(array: Any, *, name: str = "rejected") -> Any:
    """Return the rejection vector of the paper, or say how to make one."""
    return boolean(array, name=name, remedy="Use rejected = confidence < threshold.")


def class_values(array: NDArray[Any], *, name: str) -> NDArray[np.int64]:
    """Return classes as a flat array, or say which of them are none."""
    if array.dtype.kind not in "iu":
        raise InputError(f"{name} must hold integer classes (got {array.dtype}).")
    if array.min() <= 0:
        raise InputError(
            f"{name} holds {array.min()}, which is no class: classes start at 1. Leave pixels "
            "without reference out with hsreject.evaluation_samples, and give rejected ones as "
            "'rejected'."
        )
    return array.ravel().astype(np.int64)


def confidence_values(array: NDArray[Any], *, name: str = "confidence") -> NDArray[np.float64]:
    """Return confidences as a flat float64 array, all finite."""
    return sortable_values(array, name=name).astype(np.float64, copy=False)


def sortable_values(array: NDArray[Any], *, name: str = "confidence") -> NDArray[np.floating]:
    """Return confidences as a flat array, all finite, float32 where they are and else float64."""
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold real numbers (got {array.dtype}).")
    flat = array.ravel()
    if flat.dtype.kind in "iu" and flat.dtype.itemsize == 8 and _beyond_exact(flat):
        raise InputError(
            f"{name} holds integers beyond 2**53, which float64 cannot tell apart. "
            "Replace them by their ranks."
        )
    values = flat if flat.dtype == np.float32 else flat.astype(np.float64, copy=False)
    if not math.isfinite(values.min(initial=0)) or not math.isfinite(values.max(initial=0)):
        n_nan, n_infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
        raise InputError(
            f"{name} must be finite (found {n_nan} NaN and {n_infinite} infinite of {values.size} "
            "values). Leave pixels without data out, for example with "
            "hsreject.evaluation_samples(reference, label, confidence)."
        )
    return values


def _beyond_exact(integers: NDArray[Any]) -> bool:
    return bool(integers.size) and bool(
        integers.max() > LARGEST_EXACT_INTEGER or int(integers.min()) < -LARGEST_EXACT_INTEGER
    )


def weight_values(
    array: NDArray[Any], *, name: str = "weights", may_be_zero: bool = False
) -> NDArray[Any]:
    """Return sample weights, flat: int64 if they are integers, else float64.

    `may_be_zero` is for blocks of a larger array, which may have weight elsewhere.
    """
    if array.dtype.kind not in "iuf":
        raise InputError(f"{name} must hold real numbers (got {array.dtype}).")
    flat = array.ravel()
    values = flat.astype(np.float64 if flat.dtype.kind == "f" else np.int64)
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError(
            f"{name} must be finite and not negative (found values from {values.min()} to "
            f"{values.max()}). Give weight 0 to samples that must not count."
        )
    if not may_be_zero and not values.any():
        raise InputError(f"{name} are all 0, so there is no sample. Give some sample a weight.")
    return values


def cost_values(rejection_cost: ArrayLike) -> NDArray[np.float64]:
    """Return rejection costs as float64, all in [0, 1]."""
    values = _numbers(rejection_cost, name="rejection_cost")
    if values.size == 0 or not ((values >= 0) & (values <= 1)).all():
        raise InputError(
            f"rejection_cost must lie in [0, 1], the cost of a misclassification being 1 "
            f"(got {_shown(values)}). Divide the cost of a rejection by that of an error."
        )
    return values


def fraction_values(fractions: ArrayLike, *, name: str) -> NDArray[np.float64]:
    """Return fractions as float64, all in [0, 1]."""
    values = _numbers(fractions, name=name)
    if values.size == 0 or not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"{name} must lie in [0, 1] (got {_shown(values)}). Write 10 % as 0.1.")
    return values


def one_fraction(fraction: ArrayLike, *, name: str) -> float:
    """Return a single fraction, in [0, 1]."""
    values = fraction_values(fraction, name=name)
    if values.ndim:
        raise InputError(f"{name} must be one number (got {values.size}: {_shown(values)}).")
    return float(values)


def _numbers(given: ArrayLike, *, name: str) -> NDArray[np.float64]:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number or several (got {given!r}).") from None


def _shown(values: NDArray[np.float64]) -> str:
    if values.size == 0:
        return "nothing"
    if values.ndim == 0:
        return f"{float(values):g}"
    return f"values from {values.min():g} to {values.max():g}"


def _words(dims: tuple[Hashable, ...]) -> str:
    return "(" + ", ".join(str(dim) for dim in dims) + ")"
