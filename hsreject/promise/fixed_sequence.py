"""The test of a sample that was drawn at once: exact tails, a fixed sequence, where it stops.

Plain arrays only. A region is what an operating point keeps; the sampled pixels in it are a simple
random sample of it, however many they happen to be.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binom, hypergeom

if TYPE_CHECKING:
    from numpy.typing import NDArray

COVERAGES = tuple(percent / 100 for percent in range(2, 101, 2))
"""The sequence that is tested unless another one is given. Every step can end it: with steps of 1 %
a little less is certified on average, with steps of 5 % hardly more."""

ROUNDING = 1e-9  # 0.29 * 100 is 28.999999999999996
_WRONG_BY = (0.35, 0.6, 1.0, 1.7, 2.8)  # factors by which a prediction may be wrong
_NEARLY_BEST = 0.97


@dataclass(frozen=True, eq=False)
class Counts:
    """Sampled pixels of regions, from the smallest region to the largest, and wrong ones.

    Of a stratified sample, `n_thinned` points of one `density` (per pixel) are left for each
    region, and `n_kept` and `n_errors` count these.
    """

    n_pixels: NDArray[np.int64]  # kept, of the whole map
    n_kept: NDArray[np.int64]  # sampled and kept
    n_errors: NDArray[np.int64]  # of these
    n_thinned: NDArray[np.int64] | None = None
    density: NDArray[np.float64] | None = None

    def chance(self, n_wrong: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the chance of so few errors if `n_wrong` pixels of each region are wrong.

        Of a simple random sample P[H(N, M, n) <= k], where H is hypergeometric. Of a stratified
        sample thinned to a density d, wrong pixels among the m points left are a sum of independent
        draws with a mean of at least d M, so that, by Hoeffding (1956), it is at most
        P[Bin(m, d M / m) <= k] if k <= d M - 1, else 1.
        """
        if self.n_thinned is None or self.density is None:
            chance = hypergeom.cdf(self.n_errors, self.n_pixels, n_wrong, self.n_kept)
            return np.where(self.n_kept > 0, chance, 1.0)
        mean = self.density * n_wrong
        share = np.minimum(mean / np.maximum(self.n_thinned, 1), 1.0)
        chance = binom.cdf(self.n_errors, self.n_thinned, share)
        return np.where(self.n_errors <= mean - 1, chance, 1.0)

    def p_values(self, max_error: float, n_hidden: int = 0) -> NDArray[np.float64]:
        """Return the chance of so few errors if just too many pixels of a region are wrong.

        Where `n_hidden` pixels of the map could not be drawn and nobody says which, it is the
        largest over the sizes that a region may have without them. It grows with the size as long
        as the number of wrong pixels stays, so only the sizes just before that number steps up
        need to be looked at.
        """
        n_wrong = too_many(self.n_pixels, max_error)
        if self.n_thinned is not None:
            return self.chance(too_many(np.maximum(self.n_pixels - n_hidden, 0), max_error))
        p_value = self.chance(n_wrong)
        for step in range(1, math.ceil(max_error * n_hidden) + 1):
            fewer = n_wrong - step
            size = np.ceil(fewer / max_error - ROUNDING).astype(np.int64) - 1
            possible = (fewer > 0) & (size >= self.n_pixels - n_hidden) & (size >= self.n_kept)
            smaller = replace(self, n_pixels=np.where(possible, size, self.n_pixels))
            chance = smaller.chance(np.where(possible, fewer, self.n_pixels))
            p_value = np.where(possible, np.maximum(p_value, chance), p_value)
        return p_value

    def upper_bounds(self, confidence_level: float) -> NDArray[np.float64]:
        """Return the upper confidence bound of the share of wrong pixels, region by region.

        The largest number of wrong pixels whose p-value is above delta, as a share of N: the only
        one for a region that was chosen beforehand.
        """
        low, high = self.n_errors.copy(), self.n_pixels - (self.n_kept - self.n_errors)
        while (low < high).any():
            middle = (low + high + 1) // 2
            likely = self.chance(middle) > 1 - confidence_level
            low, high = np.where(likely, middle, low), np.where(likely, high, middle - 1)
        return np.asarray(low / self.n_pixels)

    def __getitem__(self, which: slice) -> Counts:
        columns = self.n_pixels, self.n_kept, self.n_errors, self.n_thinned, self.density
        return Counts(*(None if column is None else column[which] for column in columns))  # type: ignore[arg-type]


def least_points(max_error: float, confidence_level: float) -> float:
    """Return how many sampled pixels, all right, certify a large region."""
    return math.log(1 - confidence_level) / math.log1p(-max_error)


def too_many(n_pixels: NDArray[np.int64], max_error: float) -> NDArray[np.int64]:
    """Return the smallest number of wrong pixels that breaks the promise: floor(alpha N) + 1."""
    return np.asarray(np.floor(max_error * n_pixels + ROUNDING).astype(np.int64) + 1)


def n_passed(p_value: NDArray[np.float64], confidence_level: float) -> int:
    """Return how many tests pass before the first that fails (fixed-sequence testing)."""
    failed = np.flatnonzero(p_value > 1 - confidence_level + ROUNDING)
    return int(failed[0]) if failed.size else p_value.size


def tolerated_error(max_error: float, n_points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the error at which a region probably passes: alpha - 1.5 sqrt(alpha (1 - alpha) / n).

    It is a rule of thumb for plans.
    """
    spread = np.sqrt(max_error * (1 - max_error) / np.maximum(n_points, 1))
    return np.asarray(max_error - 1.5 * spread)


def best_start(
    sizes: NDArray[np.int64],
    error: NDArray[np.float64],
    reach: Callable[[NDArray[np.float64], int], int | None],
) -> int | None:
    """Return the region to begin with, by the error predicted for each; None if none is promising.

    `reach` tells the last region that passes if errors are so and one begins at some region. The
    highest start within 3 % of the best is taken, on average over predictions that are wrong by
    factors of 0.35 to 2.8. Labels have no part in it, so only power depends on the prediction.
    """
    gain = np.zeros(sizes.size)
    for factor in _WRONG_BY:
        for start in range(sizes.size):
            end = reach(factor * error, start)
            gain[start] += 0 if end is None else sizes[end]
    return int(np.flatnonzero(gain >= _NEARLY_BEST * gain.max())[-1]) if gain.any() else None


def first_region(
    expected: NDArray[np.float64],
    sizes: NDArray[np.int64],
    error: NDArray[np.float64] | None,
    *,
    max_error: float,
    confidence_level: float,
) -> int:
    """Return the region to begin with, given how many points each is `expected` to hold.

    By the predicted errors, if they promise something. Else the first that is expected to hold 1.5
    times the sampled pixels that could pass without an error, or the last one.
    """

    def reach(error: NDArray[np.float64], start: int) -> int | None:
        failing = np.flatnonzero(error[start:] > tolerated_error(max_error, expected)[start:])
        end = start + (int(failing[0]) if failing.size else error.size - start) - 1
        return end if end >= start else None

    start = None if error is None else best_start(sizes, error, reach)
    if start is not None:
        return start
    enough = np.flatnonzero(expected >= 1.5 * least_points(max_error, confidence_level))
    return int(enough[0]) if enough.size else expected.size - 1
