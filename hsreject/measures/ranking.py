"""Sorting samples by confidence: the one sort behind every curve.

The order is canonical (confidence, then correct, then weight), so nothing that is computed from it
depends on the order in which the samples were given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hsreject.measures.counts import CurveCounts

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Points(NamedTuple):
    """Operating points as columns, rejected fraction ascending, all in one piece of memory.

    Memory that is new to the process costs as much as the arithmetic, least so in one large piece.
    """

    threshold: NDArray[np.float64]
    counts: CurveCounts
    spare: NDArray[np.float64]  # rows for what else belongs to each point

    @classmethod
    def empty(cls, n_points: int, *, n_spare: int) -> Points:
        """Return columns that are not filled in yet."""
        table = np.empty((5 + n_spare, n_points))
        return cls(table[0], CurveCounts(*table[1:5].view(np.int64)), table[5:])


def threshold_points(
    correct: NDArray[np.bool_], confidence: NDArray[np.floating], *, n_spare: int = 0
) -> Points:
    """Return the operating point of every threshold that makes a difference.

    The thresholds are the distinct confidences, ascending, and infinity. Samples are counted in
    the order of (confidence, correct); a point rejects all before the first of its confidence.

    Parameters
    ----------
    correct : array of bool (sample)
    confidence : array of float32 or float64 (sample), finite
        Single precision is sorted in half the time.
    n_spare : int
        How many further columns the points shall have room for.
    """
    points = Points.empty(confidence.size + 1, n_spare=n_spare)
    threshold, (_, _, accurate, _), _ = points
    _sort(correct, confidence, into=(threshold[:-1], accurate[1:]))
    threshold[-1] = np.inf
    accurate[0] = 0
    np.cumsum(accurate, out=accurate)
    n_rejected = np.flatnonzero(_is_first(threshold))
    if n_rejected.size < threshold.size:
        points = Points.empty(n_rejected.size, n_spare=n_spare)
        # every place exists: with "clip" NumPy writes straight into the columns
        threshold.take(n_rejected, out=points.threshold, mode="clip")
        accurate.take(n_rejected, out=points.counts.accurate_rejected, mode="clip")
    _, _, accurate, misclassified = points.counts
    np.subtract(n_rejected, accurate, out=misclassified)
    for kept, rejected in zip(points.counts[:2], points.counts[2:], strict=True):
        np.subtract(rejected[-1], rejected, out=kept)
    return points


def _sort(
    correct: NDArray[np.bool_],
    confidence: NDArray[np.floating],
    *,
    into: tuple[NDArray[np.float64], NDArray[np.int64]],
) -> None:
    """Write the confidences and whether they are accurate (1 or 0) in ascending order of both.

    Whether a sample is accurate rides in the lowest bit of the sort key, so that one value sort,
    several times faster than an argsort and a gather, does the work. The bit pattern of a
    floating-point number that is not negative grows with its value and leaves the top bit free:
    shifting it left by one loses nothing but the sign of a zero. Negative confidences are sorted by
    magnitude and turned round.
    """
    ascending, accurate = into
    negative = confidence < 0
    n_negative = np.count_nonzero(negative)
    if n_negative:
        upper = (ascending[n_negative:], accurate[n_negative:])
        lower = (ascending[:n_negative], accurate[:n_negative])
        _sort(correct[~negative], confidence[~negative], into=upper)
        _sort(~correct[negative], -confidence[negative], into=lower)
        lower[0][:] = -lower[0][::-1]
        lower[1][:] = 1 - lower[1][::-1]
        return
    bits = np.dtype(f"u{confidence.itemsize}")
    one = bits.type(1)
    in_place = confidence.dtype == ascending.dtype
    key = np.left_shift(confidence.view(bits), one, out=ascending.view(bits) if in_place else None)
    key |= correct
    key.sort()
    np.bitwise_and(key, one, out=accurate, casting="unsafe")
    key >>= one
    if not in_place:
        ascending[:] = key.view(confidence.dtype)


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
