"""Thresholds on a confidence: equal confidences are rejected together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import dask.array as da
import numpy as np
import xarray as xr
from dask.base import compute

from hsreject.errors import InputError
from hsreject.progress import ProgressCallback, no_progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

N_BINS = 1 << 16
"""Of each histogram over all blocks of a large scene."""

FEW = 1 << 22
"""So many confidences are fetched into memory; among more, a histogram is made first."""


@dataclass(frozen=True)
class Threshold:
    """A threshold and the fractions that thresholds can reach around the wanted one.

    Pixels with a confidence below `value` are rejected, the share `rejected_fraction`; infinity
    rejects everything. `reachable_below` and `reachable_above` are the nearest fractions that some
    threshold rejects, both equal to the wanted one where that can be reached.
    """

    value: float
    rejected_fraction: float
    reachable_below: float
    reachable_above: float


def threshold_for_fraction(
    confidence: xr.DataArray | NDArray[np.floating],
    fraction: float,
    *,
    progress: ProgressCallback = no_progress,
) -> Threshold:
    """Return the threshold whose rejected fraction is nearest to the wanted one.

    A threshold cannot separate equal confidences, so the fractions that can be reached are those
    of the distinct confidences. Halfway between two of them, fewer pixels are rejected. The
    fractions 0 and 1 can always be reached. Confidences come in any order and shape, NaN without
    data. A dask array is passed over a few times, block by block, and the answer is the same.
    """
    values: Any = confidence.data if isinstance(confidence, xr.DataArray) else confidence
    if values.dtype.kind != "f":
        raise InputError(f"confidence must be float32 or float64 (got {values.dtype}).")
    if isinstance(values, da.Array):
        place, n_pixels = _lazy_place(values, fraction, progress)
    else:
        values = values[~np.isnan(values)]
        n_pixels = values.size
        place = _place(values, _rank(fraction, n_pixels))
    # The nearest thresholds are this confidence, which rejects what lies below it, and the next
    # larger one, which rejects this one and its equals, too.
    target, below, above = fraction * n_pixels, place.below, place.not_above
    nearer_below = target - below <= above - target
    value, n_rejected = (place.value, below) if nearer_below else (place.next_larger, above)
    for count in (above, below):
        if abs(count - target) < 1e-6:  # 0.29 * 100 is 28.999999999999996
            below = above = count
    return Threshold(value, n_rejected / n_pixels, below / n_pixels, above / n_pixels)


class _Place(NamedTuple):
    """A confidence, how many lie below it and how many not above it, and the next larger one."""

    value: float
    below: int
    not_above: int
    next_larger: float  # infinity if there is none


def _rank(fraction: float, n_pixels: int) -> int:
    """Return how many of the ascending confidences lie before the one that the fraction hits."""
    if not n_pixels:
        raise InputError("No pixel of the scene has data, so there is nothing to reject or keep.")
    return min(int(fraction * n_pixels), n_pixels - 1)


def _place(values: NDArray[np.floating], rank: int) -> _Place:
    """Return the place of the value at a rank, by a selection instead of a sort."""
    value = np.partition(values, rank)[rank]
    below, not_above = (int(np.count_nonzero(which)) for which in (values < value, values <= value))
    next_larger = values[values > value].min(initial=np.inf)
    return _Place(float(value), below, not_above, float(next_larger))


def _lazy_place(
    values: da.Array, fraction: float, progress: ProgressCallback
) -> tuple[_Place, int]:
    """Return the same of a dask array, and how many numbers it has.

    Histograms narrow the range [low, high] that holds the rank until few enough confidences are
    in it to be fetched, or until they are all equal.
    """
    n_passes = 0

    def passed_over(*lazy: Any) -> list[Any]:
        nonlocal n_passes
        numbers: list[Any] = list(compute(*lazy))
        n_passes += 1
        progress("threshold", n_passes, None)
        return numbers

    def extremes(which: da.Array) -> tuple[Any, Any]:
        return da.where(which, values, np.inf).min(), da.where(which, values, -np.inf).max()

    number = ~da.isnan(values)
    n_pixels, low, high = passed_over(number.sum(), *extremes(number))
    rank = _rank(fraction, int(n_pixels))
    # Invariant: n_below confidences are smaller than `low`, and n_inside lie in [low, high], that
    # of the rank among them. Both ends are confidences, the one in the first bin and the other in
    # the last, so every pass narrows the range.
    n_below, n_inside = 0, int(n_pixels)
    while n_inside > FEW and low < high:
        edges = np.linspace(low, high, N_BINS + 1)
        (counts,) = passed_over(da.histogram(values, bins=edges)[0])
        ends = n_below + np.cumsum(counts)
        k = int(np.searchsorted(ends, rank, side="right"))
        n_below, n_inside = int(ends[k] - counts[k]), int(counts[k])
        last = k == N_BINS - 1  # the only bin that its upper edge belongs to
        below_end = values <= high if last else values < edges[k + 1]
        low, high = passed_over(*extremes((values >= edges[k]) & below_end))
    if low == high:
        place = _Place(float(low), n_below, n_below + n_inside, np.inf)
    else:
        (few,) = passed_over(values[(values >= low) & (values <= high)])
        place = _place(few, rank - n_below)
        place = place._replace(below=n_below + place.below, not_above=n_below + place.not_above)
    if np.isinf(place.next_larger):  # none in the range: it lies beyond, or there is none
        (next_larger,) = passed_over(da.where(values > place.value, values, np.inf).min())
        place = place._replace(next_larger=float(next_larger))
    progress("threshold", n_passes, n_passes)
    return place, int(n_pixels)
