"""Sorting samples by confidence: the one sort behind every curve.

The order is canonical (confidence, then correct, then weight), so nothing that is computed from it
depends on the order in which the samples were given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hsreject.measures.counts import Counts
from hsreject.measures.curve_kernels import MEASURED, count_samples

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Points(NamedTuple):
    """Operating points as columns, rejected fraction ascending, all in one piece of memory.

    Memory that is new to the process costs as much as the arithmetic, least so in one large piece.
    """

    threshold: NDArray[np.float64]
    counts: Counts
    measures: NDArray[np.float64]  # rows for `MEASURED`, not filled in yet


def threshold_points(correct: NDArray[np.bool_], confidence: NDArray[np.floating]) -> Points:
    """Return the operating point of every threshold that makes a difference.

    The thresholds are the distinct confidences, ascending, and infinity. Samples are counted in
    the order of (confidence, correct); a point rejects all before the first of its confidence.

    Parameters
    ----------
    correct : array of bool (sample)
    confidence : array of float32 or float64 (sample), finite
        Single precision is sorted in half the time.
    """
    ascending, accurate = _sorted(correct, confidence)
    n_points = 1 + np.count_nonzero(ascending[1:] != ascending[:-1]) + bool(ascending.size)
    table = np.empty((5 + len(MEASURED), n_points))
    threshold, counts = table[0], table[1:5].view(np.int64)
    count_samples(ascending, accurate, threshold, counts)
    return Points(threshold, Counts(*counts), table[5:])


def _sorted(
    correct: NDArray[np.bool_], confidence: NDArray[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """Return confidences and whether they are accurate in ascending order of both.

    Whether a sample is accurate rides in the lowest bit of the sort key, so that one value sort,
    several times faster than an argsort and a gather, does the work. The bit pattern of a
    floating-point number that is not negative grows with its value and leaves the top bit free:
    shifting it left by one loses nothing but the sign of a zero. Negative confidences are sorted by
    magnitude and turned round.
    """
    if confidence.min(initial=0) < 0:
        negative = confidence < 0
        upper = _sorted(correct[~negative], confidence[~negative])
        lower = _sorted(~correct[negative], -confidence[negative])
        return (
            np.concatenate([-lower[0][::-1], upper[0]]),
            np.concatenate([~lower[1][::-1], upper[1]]),
        )
    bits = np.dtype(f"u{confidence.itemsize}")
    key = confidence.view(bits) << bits.type(1)
    key |= correct
    key.sort()
    accurate = (key & bits.type(1)).astype(np.bool_)
    key >>= bits.type(1)
    return key.view(confidence.dtype), accurate


class Groups(NamedTuple):
    """Samples added up by distinct confidence, ascending: the steps between operating points."""

    confidence: NDArray[np.float64]
    accurate: NDArray[Any]
    misclassified: NDArray[Any]


def group_ties(correct: NDArray[np.bool_], confidence: NDArray[np.float64]) -> Groups:
    """Return how many accurate and misclassified samples each distinct confidence has."""
    threshold, counts, _ = threshold_points(correct, confidence)
    return Groups(
        threshold[:-1], np.diff(counts.accurate_rejected), np.diff(counts.misclassified_rejected)
    )


def group_weighted_ties(
    correct: NDArray[np.bool_], confidence: NDArray[np.float64], weights: NDArray[Any]
) -> Groups:
    """Return the weight of accurate and misclassified samples at each distinct confidence.

    Samples of weight 0 take no part.
    """
    used = weights > 0
    correct, confidence, weights = correct[used], confidence[used] + 0.0, weights[used]
    order = np.lexsort((weights, correct, confidence))
    confidence = confidence[order]
    if not confidence.size:
        return Groups(confidence, weights, weights)
    starts = np.flatnonzero(_is_first(confidence))
    accurate = np.add.reduceat(np.where(correct[order], weights[order], 0), starts)
    misclassified = np.add.reduceat(np.where(correct[order], 0, weights[order]), starts)
    return Groups(confidence[starts], accurate, misclassified)


def _is_first(ascending: NDArray[Any]) -> NDArray[np.bool_]:
    is_first = np.empty(ascending.size, dtype=np.bool_)
    is_first[:1] = True
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    return is_first


def last_of_each(ascending: NDArray[Any]) -> NDArray[np.intp]:
    """Return the position of the last of each run of equal values."""
    is_last = np.empty(ascending.size, dtype=np.bool_)
    is_last[-1:] = True
    np.not_equal(ascending[1:], ascending[:-1], out=is_last[:-1])
    return np.flatnonzero(is_last)
