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
"""Of one histogram over all blocks of a large scene."""

FEW = 1 << 22
"""So many confidences are fetched into memory; among more, a histogram is made first."""


@dataclass(frozen=True)
class Threshold:
    """A threshold and the fractions that thresholds can reach around the wanted one.

    Attributes
    ----------
    value : float
        Pixels with a confidence below it are rejected; infinity rejects everything.
    rejected_fraction : float
        The share of pixels below it.
    reachable_below, reachable_above : float
        The nearest fractions that some threshold rejects, at most and at least the wanted one.
        They are equal where the wanted fraction itself can be reached.
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
    fractions 0 and 1 can always be reached.

    Parameters
    ----------
    confidence : array or DataArray
        In any order and any shape, NaN where there is no data. A dask array is passed over a few
        times, block by block; the answer is the same.
    fraction : float in [0, 1]
    progress : callable
        Called with ("threshold", passes done, None) where there are several.

    Examples
    --------
    Two of four pixels are equally unsure, so a quarter cannot be rejected:

    >>> threshold_for_fraction(np.array([0.2, 0.2, 0.8, 0.9]), 0.25)
    Threshold(value=0.2, rejected_fraction=0.0, reachable_below=0.0, reachable_above=0.5)
    """
    values: Any = confidence.data if isinstance(confidence, xr.DataArray) else confidence
    if values.dtype.kind != "f":
        raise InputError(f"confidence must be float32 or float64 (got {values.dtype}).")
    if isinstance(values, da.Array):
        place, n_pixels = _lazy_place(values, fraction, progress)
    else:
        values = values[~np.isnan(values)]
        n_pixels = values.size
        _check_any(n_pixels)
        place = _place(values, _rank(fraction, n_pixels))
    wanted = fraction * n_pixels
    nearer_below = wanted - place.below <= place.above - wanted
    value, count = (place.value, place.below) if nearer_below else (place.after, place.above)
    exact = [number for number in (place.below, place.above) if abs(number - wanted) < 1e-6]
    reachable = (exact[0], exact[0]) if exact else (place.below, place.above)
    return Threshold(value, count / n_pixels, reachable[0] / n_pixels, reachable[1] / n_pixels)


class _Place(NamedTuple):
    """A confidence, how many lie below it and not above it, and the next larger one (or inf)."""

    value: float
    below: int
    above: int
    after: float


def _rank(fraction: float, n_pixels: int) -> int:
    return min(int(fraction * n_pixels), n_pixels - 1)


def _check_any(n_pixels: int) -> None:
    if not n_pixels:
        raise InputError("No pixel of the scene has data, so there is nothing to reject or keep.")


def _place(values: NDArray[np.floating], rank: int) -> _Place:
    """Return the place of the value at a rank, by a selection instead of a sort."""
    value = np.partition(values, rank)[rank]
    below, above = (int(np.count_nonzero(which)) for which in (values < value, values <= value))
    return _Place(float(value), below, above, float(values[values > value].min(initial=np.inf)))


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
        found: list[Any] = list(compute(*lazy))
        n_passes += 1
        progress("threshold", n_passes, None)
        return found

    def least_above(bound: float) -> Any:
        return da.where(values > bound, values, np.inf).min()

    number = ~da.isnan(values)
    n_pixels, low, high = passed_over(
        number.sum(), least_above(-np.inf), da.where(number, values, -np.inf).max()
    )
    _check_any(n_pixels)
    below, count, rank = 0, int(n_pixels), _rank(fraction, int(n_pixels))
    while count > FEW and low < high:
        edges = np.linspace(low, high, N_BINS + 1)
        lazy_counts, _ = da.histogram(values, bins=edges)
        (counts,) = passed_over(lazy_counts)
        ends = below + np.cumsum(counts)
        k = int(np.searchsorted(ends, rank, side="right"))
        below, count = int(ends[k] - counts[k]), int(counts[k])
        inside = (values >= edges[k]) & (values < edges[k + 1])
        if k == N_BINS - 1:
            inside = (values >= edges[k]) & (values <= high)
        low, high = passed_over(
            da.where(inside, values, np.inf).min(), da.where(inside, values, -np.inf).max()
        )
    if low == high:
        place = _Place(float(low), below, below + count, np.inf)
    else:
        (few,) = passed_over(values[(values >= low) & (values <= high)])
        place = _place(few, rank - below)
        place = place._replace(below=below + place.below, above=below + place.above)
    if np.isinf(place.after):
        place = place._replace(after=float(passed_over(least_above(place.value))[0]))
    progress("threshold", n_passes, n_passes)
    return place, int(n_pixels)
