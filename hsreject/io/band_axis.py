"""Which axis of a bare array holds the bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SAMPLES_PER_AXIS = 16
# Of the variance of a scene, the mean spectrum explains far more than the mean row or column.
_CLEAR_EVIDENCE = 2.0


def given_axis(band_axis: int) -> int:
    """Return a band axis as a number from 0 to 2."""
    if band_axis not in range(-3, 3):
        raise InputError(f"band_axis must be 0, 1 or 2 (or -1 for the last), got {band_axis}.")
    return band_axis % 3


def axis_by_shape(shape: tuple[int, ...]) -> tuple[int, str] | None:
    """Return the band axis of a square image, and why; None if the sizes do not tell.

    Examples
    --------
    >>> axis_by_shape((145, 145, 200))[0], axis_by_shape((200, 145, 145))[0]
    (2, 0)
    """
    first, middle, last = shape
    if first == middle != last:
        return 2, "the other two axes are equally long"
    if middle == last != first:
        return 0, "the other two axes are equally long"
    return None


def axis_by_profile(array: NDArray[np.generic]) -> tuple[int, str]:
    """Return the band axis of an array on disk, first or last, and why.

    Bands differ in brightness far more than rows do. The share of variance that the mean profile
    along an axis explains tells them apart; up to 16 x 16 x 16 values are looked at. Without clear
    evidence the shorter axis is taken.
    """
    steps = tuple(slice(None, None, -(-size // _SAMPLES_PER_AXIS)) for size in array.shape)
    sample = np.asarray(array[steps], dtype=np.float64)
    first, last = (_explained(sample, axis) for axis in (0, 2))
    if max(first, last) > 0.05 and max(first, last) > _CLEAR_EVIDENCE * min(first, last):
        return (0 if first > last else 2), "brightness changes most along it"
    return (0 if array.shape[0] < array.shape[2] else 2), "it is the shorter one"


def _explained(sample: NDArray[np.float64], axis: int) -> float:
    known = np.isfinite(sample)
    mean = sample[known].mean() if known.any() else 0.0
    sample = np.subtract(sample, mean, out=np.zeros(sample.shape), where=known)
    others = tuple(other for other in range(3) if other != axis)
    total = float((sample**2).mean())
    return float((sample.mean(axis=others) ** 2).mean()) / total if total > 0 else 0.0
