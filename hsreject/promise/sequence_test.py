"""The test behind a certificate: exact tails, a fixed sequence, where it stops, what is missing.

Plain arrays only. A region is what an operating point keeps; the sampled pixels in it are a simple
random sample of it, however many they happen to be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import chi2, hypergeom

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDING = 1e-9  # 0.29 * 100 is 28.999999999999996
_MOST_ERRORS = 10_000


@dataclass(frozen=True, eq=False)
class Regions:
    """What a sequence of operating points keeps, from the smallest region to the largest."""

    n_pixels: NDArray[np.int64]  # kept, of the whole map
    n_kept: NDArray[np.int64]  # sampled and kept
    n_errors: NDArray[np.int64]  # of these
    n_hidden: int = 0  # pixels of the map that could not be drawn, and nobody knows which


@dataclass(frozen=True, eq=False)
class SequenceTest:
    """The tests that were made, in their order: the regions `first`, `first` + 1, ..."""

    first: int
    p_value: NDArray[np.float64]  # the last one is above delta, unless all regions passed
    n_passed: int


def fixed_sequence(
    regions: Regions, *, n: int, n_all: int, max_error: float, confidence_level: float
) -> SequenceTest:
    """Test one region after the other until one fails (fixed-sequence testing).

    Region j with N_j pixels, n_j of them sampled and k_j of those wrong, fails unless::

        p_j = P[H(N_j, floor(alpha N_j) + 1, n_j) <= k_j] <= delta

    where H is the hypergeometric number of wrong pixels in a sample of n_j if just too many of the
    N_j are wrong. The first region tested is the first that is expected to hold 1.5 times the
    sampled pixels that could pass without an error, n N_j / N >= 1.5 ln(delta) / ln(1 - alpha), or
    the last one; this does not depend on the labels.
    """
    expected = n * regions.n_pixels / n_all
    enough = np.flatnonzero(expected >= 1.5 * least_points(max_error, confidence_level))
    first = int(enough[0]) if enough.size else regions.n_pixels.size - 1
    tested = slice(first, None)
    counts = regions.n_pixels[tested], regions.n_kept[tested], regions.n_errors[tested]
    p_value = _largest_p_value(*counts, max_error=max_error, n_hidden=regions.n_hidden)
    failed = np.flatnonzero(p_value > 1 - confidence_level + _ROUNDING)
    n_passed = int(failed[0]) if failed.size else p_value.size
    return SequenceTest(first, p_value[: n_passed + 1], n_passed)


def least_points(max_error: float, confidence_level: float) -> float:
    """Return how many sampled pixels, all right, certify a large region."""
    return math.log(1 - confidence_level) / math.log1p(-max_error)


def _too_many(n_pixels: NDArray[np.int64], max_error: float) -> NDArray[np.int64]:
    """Return the smallest number of wrong pixels that breaks the promise."""
    return np.asarray(np.floor(max_error * n_pixels + _ROUNDING).astype(np.int64) + 1)


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
    p_value = hypergeom.cdf(n_errors, n_pixels, _too_many(n_pixels, max_error), n_kept)
    for step in range(1, math.ceil(max_error * n_hidden) + 1 if n_hidden else 0):
        wrong = _too_many(n_pixels, max_error) - step
        size = np.ceil(wrong / max_error - _ROUNDING).astype(np.int64) - 1
        possible = (wrong > 0) & (size >= n_pixels - n_hidden) & (size >= n_kept)
        size, wrong = np.where(possible, size, n_pixels), np.where(possible, wrong, n_pixels)
        p_value = np.maximum(p_value, hypergeom.cdf(n_errors, size, wrong, n_kept))
    return np.asarray(np.where(n_kept > 0, p_value, 1.0))


def upper_bounds(
    n_pixels: NDArray[np.int64],
    n_kept: NDArray[np.int64],
    n_errors: NDArray[np.int64],
    *,
    confidence_level: float,
) -> NDArray[np.float64]:
    """Return the exact upper confidence bound of the share of wrong pixels, region by region.

    The largest number M of wrong pixels for which P[H(N, M, n) <= k] > delta, as a share of N: the
    only one for a region that was chosen beforehand.
    """
    low, high = n_errors.copy(), n_pixels - (n_kept - n_errors)  # what the sample allows
    while (low < high).any():
        middle = (low + high + 1) // 2
        likely = hypergeom.cdf(n_errors, n_pixels, middle, n_kept) > 1 - confidence_level
        low, high = np.where(likely, middle, low), np.where(likely, high, middle - 1)
    return np.asarray(low / n_pixels)


def points_needed(
    regions: Regions, *, n: int, n_all: int, max_error: float, confidence_level: float
) -> int | None:
    """Return about how large a sample would certify something; None if none is in sight.

    If k of m sampled pixels are wrong, m must be about chi2(2 k + 2; 1 - delta) / (2 alpha). The
    error rate of a region is guessed from this sample as (k + 1/2) / (n + 1), and the region that
    gets by with the smallest sample counts.
    """
    least = math.ceil(1.5 * least_points(max_error, confidence_level))
    if n < least:
        return least
    errors = np.arange(_MOST_ERRORS)
    enough = chi2.ppf(confidence_level, 2 * errors + 2) / (2 * max_error)
    rate = (regions.n_errors + 0.5) / (regions.n_kept + 1)
    best = math.inf
    for share, guess in zip(regions.n_pixels / n_all, rate, strict=True):
        affordable = np.flatnonzero(guess * enough <= errors)
        if affordable.size:
            best = min(best, float(enough[affordable[0]] / share))
    if best > n_all:
        return None
    digits = int(10 ** max(math.floor(math.log10(best)) - 1, 0))
    return max(digits * math.ceil(best / digits), n + 1)
