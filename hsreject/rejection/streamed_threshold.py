"""Thresholds on more confidences than fit into memory, exact all the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import dask.array as da
import numpy as np
from dask.delayed import delayed

from hsreject.errors import InputError
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.threshold import Threshold, nearer_threshold

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

T = TypeVar("T")

_BITS = 16  # of a confidence looked at in one pass: a histogram of 65 536 counts
_BLOCKS_AT_A_TIME = 64


def streamed_threshold(
    confidence: xr.DataArray | NDArray[Any],
    fraction: float,
    *,
    progress: ProgressCallback = no_progress,
) -> Threshold:
    """Return the threshold whose rejected fraction is nearest to the wanted one, block by block.

    The answer is exactly that of :func:`hsreject.rejection.threshold.threshold_for_fraction` on
    all pixels that have data. Bit patterns of floating-point numbers, with the sign turned, are
    ordered as the numbers are; a histogram of their first 16 bits tells which of them the wanted
    rank has, the next pass looks at the next 16 bits of only those, and so on. So single precision
    takes two passes over the data and double precision four, and one more for the next larger
    confidence; memory holds a few blocks and one histogram.

    Parameters
    ----------
    confidence : DataArray or dask array of float32 or float64
        NaN where there is no data.
    fraction : float in [0, 1]
    progress : ProgressCallback
        Called as blocks are done.

    Examples
    --------
    >>> confidence = da.from_array(np.array([0.2, 0.2, np.nan, 0.8, 0.9]), chunks=2)
    >>> streamed_threshold(confidence, 0.2)
    Threshold(value=0.2, rejected_fraction=0.0, reachable_below=0.0, reachable_above=0.5)
    """
    blocks = _Blocks(getattr(confidence, "data", confidence), progress)
    n_bits = 8 * blocks.dtype.itemsize
    known, rank, n_pixels = 0, 0, 0
    for shift in range(n_bits - _BITS, -1, -_BITS):
        histogram = blocks.add_up(partial(_histogram, known=known, shift=shift))
        if not n_pixels:
            n_pixels = int(histogram.sum())
            if not n_pixels:
                raise InputError(
                    "No pixel of the scene has data, so there is nothing to reject or keep."
                )
            rank = min(int(fraction * n_pixels), n_pixels - 1)
        ends = np.cumsum(histogram)
        digit = int(np.searchsorted(ends, rank, side="right"))
        rank -= int(ends[digit] - histogram[digit])
        known = (known << _BITS) | digit
    pivot = _value_of(known, blocks.dtype)
    below = min(int(fraction * n_pixels), n_pixels - 1) - rank
    above = below + int(histogram[digit])
    found = nearer_threshold(
        fraction * n_pixels,
        n_pixels,
        at=(float(pivot), below),
        after=lambda: (blocks.least(partial(_least_above, pivot=pivot)), above),
        above=above,
    )
    blocks.finish()
    return found


class _Blocks:
    """The blocks of an array, passed over several times."""

    def __init__(self, array: Any, progress: ProgressCallback) -> None:
        lazy = da.asanyarray(array)  # type: ignore[no-untyped-call]  # dask has few types
        if lazy.dtype not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise InputError(f"confidence must be float32 or float64 (got {lazy.dtype}).")
        self.dtype = lazy.dtype
        self._blocks = list(lazy.to_delayed().ravel())
        self._progress = progress
        self._n_passes = 8 * lazy.dtype.itemsize // _BITS + 1
        self._n_done = 0

    def add_up(self, count: Callable[[NDArray[Any]], NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the sum of the counts of all blocks."""
        return self._reduce(count, lambda parts: np.sum(parts, axis=0))

    def least(self, find: Callable[[NDArray[Any]], float]) -> float:
        """Return the smallest of the numbers found in all blocks."""
        return float(self._reduce(find, min))

    def _reduce(self, function: Callable[..., T], merge: Callable[[list[T]], T]) -> T:
        merged: list[T] = []
        for start in range(0, len(self._blocks), _BLOCKS_AT_A_TIME):
            some = self._blocks[start : start + _BLOCKS_AT_A_TIME]
            parts = delayed(list)([delayed(function)(block) for block in some]).compute()
            merged = [merge([*merged, *parts])]
            self._n_done += len(some)
            self._progress("threshold", self._n_done, self._n_passes * len(self._blocks))
        return merged[0]

    def finish(self) -> None:
        """Say that no further pass is needed."""
        total = self._n_passes * len(self._blocks)
        self._progress("threshold", total, total)


def _histogram(block: NDArray[Any], *, known: int, shift: int) -> NDArray[np.int64]:
    """Return the counts of the 16 bits above `shift`, of confidences that begin with `known`."""
    keys = _keys(block[~np.isnan(block)])
    total = 8 * keys.dtype.itemsize
    if shift + _BITS < total:
        keys = keys[keys >> keys.dtype.type(shift + _BITS) == known]
    digits = (keys >> keys.dtype.type(shift)) & keys.dtype.type(2**_BITS - 1)
    return np.bincount(digits.astype(np.intp), minlength=2**_BITS)


def _least_above(block: NDArray[Any], *, pivot: Any) -> float:
    return float(block[block > pivot].min(initial=np.inf))


def _keys(values: NDArray[Any]) -> NDArray[Any]:
    """Return unsigned integers in the order of the values: bits turned if negative, else sign set.

    Examples
    --------
    >>> _keys(np.array([-1.0, -0.5, 0.0, 2.0])).argsort()
    array([0, 1, 2, 3])
    """
    kind = np.dtype(f"u{values.dtype.itemsize}").type
    bits = (values + values.dtype.type(0)).view(kind)  # -0 becomes 0, which it equals
    sign = kind(1) << kind(8 * values.dtype.itemsize - 1)
    keys: NDArray[Any] = np.where(bits & sign, ~bits, bits | sign)
    return keys


def _value_of(key: int, dtype: np.dtype[Any]) -> Any:
    kind = np.dtype(f"u{dtype.itemsize}").type
    sign = kind(1) << kind(8 * dtype.itemsize - 1)
    bits = kind(key)
    turned = bits ^ sign if bits & sign else ~bits
    return np.array(turned, dtype=kind).view(dtype)[()]
