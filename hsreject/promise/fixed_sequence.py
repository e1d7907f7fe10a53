"""The test of a sample that was drawn at once: exact tails, a fixed sequence, where it stops.

Plain arrays only. A region is what an operating point keeps; the sampled pixels in it are a simple
random sample of it, however many they happen to be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binom, hypergeom

if TYPE_CHECKING:
    from numpy.typing import NDArray

COVERAGES = tuple(percent / 100 for percent in range(2, 101, 2))
"""The sequence that is tested unless another one is given. Every step can end it: with steps of 1 %
a little less is certified on average, with steps of 5 % hardly more."""

ROUNDING = 1e-9  # 0.29 * 100 is 28.999999999999996
WRONG_BY = (0.35, 0.6, 1.0, 1.7, 2.8)  # factors by which a prediction may be wrong
_NEARLY_BEST = 0.97


@dataclass(frozen=True, eq=False)
class Regions:
    """What a sequence of operating points keeps, from the smallest region to the largest.

    Of a stratified sample, `n_thinned` points of one density are left for each region, and `n_kept`
    and `n_errors` count these.
    """

    n_pixels: NDArray[np.int64]  # kept, of the whole map
    n_kept: NDArray[np.int64]  # sampled and kept
    n_errors: NDArray[np.int64]  # of these
    n_hidden: int = 0  # pixels of the map that could not be drawn, and nobody knows which
    n_thinned: NDArray[np.int64] | None = None
    density: NDArray[np.float64] | None = None  # points per pixel, at least

    def p_values(self, max_error: float) -> NDArray[np.float64]:
        """Return for each region the chance of so few errors if just too many pixels are wrong.

        Of a simple random sample, with M = floor(alpha N) + 1::

            p = P[H(N, M, n) <= k]

        where H is hypergeometric. Of a stratified sample thinned to a density d, wrong pixels among
        the m points left are a sum of independent draws with a mean of at least d M, so that, by
        Hoeffding (1956), p = P[Bin(m, d M / m) <= k] if k <= d M - 1, else 1.
        """
        if self.n_thinned is None or self.density is None:
            return _largest_p_value(
                self.n_pixels, self.n_kept, self.n_errors,
                max_error=max_error, n_hidden=self.n_hidden,
            )  # fmt: skip
        wrong = too_many(np.maximum(self.n_pixels - self.n_hidden, 0), max_error)
        return _thinned_p_value(self.n_errors, self.n_thinned, self.density * wrong)

    def upper_bounds(self, confidence_level: float) -> NDArray[np.float64]:
        """Return the upper confidence bound of the share of wrong pixels, region by region.

        The largest number of wrong pixels whose p-value is above delta, as a share of N: the only
        one for a region that was chosen beforehand.
        """
        low, high = self.n_errors.copy(), self.n_pixels - (self.n_kept - self.n_errors)
        while (low < high).any():
            middle = (low + high + 1) // 2
            if self.n_thinned is None or self.density is None:
                p_value = hypergeom.cdf(self.n_errors, self.n_pixels, middle, self.n_kept)
            else:
                p_value = _thinned_p_value(self.n_errors, self.n_thinned, self.density * middle)
            likely = p_value > 1 - confidence_level
            low, high = np.where(likely, middle, low), np.where(likely, high, middle - 1)
        return np.asarray(low / self.n_pixels)

    def select(self, which: slice) -> Regions:
        """Return some of the regions."""
        thinned = (
            (None if self.n_thinned is None else self.n_thinned[which]),
            (None if self.density is None else self.density[which]),
        )
        counts = self.n_pixels[which], self.n_kept[which], self.n_errors[which]
        return Regions(*counts, self.n_hidden, *thinned)


def least_points(max_error: float, confidence_level: float) -> float:
    """Return how many sampled pixels, all right, certify a large region."""
    return math.log(1 - confidence_level) / math.log1p(-max_error)


def too_many(n_pixels: NDArray[np.int64], max_error: float) -> NDArray[np.int64]:
    """Return the smallest number of wrong pixels that breaks the promise."""
    return np.asarray(np.floor(max_error * n_pixels + ROUNDING).astype(np.int64) + 1)


def _thinned_p_value(
    n_errors: NDArray[np.int64], n_points: NDArray[np.int64], mean: NDArray[np.float64]
) -> NDArray[np.float64]:
    share = np.minimum(mean / np.maximum(n_points, 1), 1.0)
    return np.where(n_errors <= mean - 1, binom.cdf(n_errors, n_points, share), 1.0)


def _largest_p_value(
    n_pixels: NDArray[np.int64],
    n_kept: NDArray[np.int64],
    n_errors: NDArray[np.int64],
    *,
    max_error: float,
    n_hidden: int,
) -> NDArray[np.float64]:
    """Return p_j; with hidden pixels the largest over the region sizes that are possible.

    The tail grows with the size as long as the number of wrong pixels stays, so only the sizes
    just before that number steps up need to be looked at.
    """
    p_value = hypergeom.cdf(n_errors, n_pixels, too_many(n_pixels, max_error), n_kept)
    for step in range(1, math.ceil(max_error * n_hidden) + 1 if n_hidden else 0):
        wrong = too_many(n_pixels, max_error) - step
        size = np.ceil(wrong / max_error - ROUNDING).astype(np.int64) - 1
        possible = (wrong > 0) & (size >= n_pixels - n_hidden) & (size >= n_kept)
        size, wrong = np.where(possible, size, n_pixels), np.where(possible, wrong, n_pixels)
        p_value = np.maximum(p_value, hypergeom.cdf(n_errors, size, wrong, n_kept))
    return np.asarray(np.where(n_kept > 0, p_value, 1.0))


def n_passed(p_value: NDArray[np.float64], confidence_level: float) -> int:
    """Return how many tests pass before the first that fails (fixed-sequence testing)."""
    failed = np.flatnonzero(p_value > 1 - confidence_level + ROUNDING)
    return int(failed[0]) if failed.size else p_value.size


def first_region(
    expected: NDArray[np.float64],
    *,
    max_error: float,
    confidence_level: float,
    error: NDArray[np.float64] | None = None,
    sizes: NDArray[np.int64] | None = None,
) -> int:
    """Return the region to begin with; it must not depend on the labels.

    The first that is expected to hold 1.5 times the sampled pixels that could pass without an
    error, or the last one. If errors are predicted, the highest start from which the sequence comes
    nearly as far as from the best one (:func:`nearly_best`), should a region pass at an error of
    alpha - 1.5 sqrt(alpha (1 - alpha) / n).
    """
    if error is not None and sizes is not None:
        spread = np.sqrt(max_error * (1 - max_error) / np.maximum(expected, 1))
        gain = np.zeros(sizes.size)
        for factor in WRONG_BY:
            passes = factor * error <= max_error - 1.5 * spread
            for start in np.flatnonzero(passes):
                ends = np.flatnonzero(~passes[start:])
                gain[start] += sizes[start + ends[0] - 1 if ends.size else -1]
        if gain.any():
            return nearly_best(gain)
    enough = np.flatnonzero(expected >= 1.5 * least_points(max_error, confidence_level))
    return int(enough[0]) if enough.size else expected.size - 1


def nearly_best(gain: NDArray[np.float64]) -> int:
    """Return the last place whose gain is within 3 % of the best."""
    return int(np.flatnonzero(gain >= _NEARLY_BEST * gain.max())[-1])
