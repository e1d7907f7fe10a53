"""Sorting samples by confidence: the one sort behind every curve.

The order is canonical (confidence, then correct, then weight), so nothing that is computed from it
depends on the order in which the samples were given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hsreject.measures.counts import Counts
from hsreject.measures.curve_kernels import MEASURED, count_samples, decode, encode

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Points(NamedTuple):
    """Operating points as columns, rejected fraction ascending, all in one piece of memory.

    Memory that is new to the process costs as much as the arithmetic, least so in one large piece.
    """

    threshold: NDArray[np.float64]
    counts: Counts
    measures: NDArray[np.float64]  # rows `MEASURED`


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
    ascending, accurate, n_distinct = _sorted(correct, confidence)
    table = np.empty((5 + len(MEASURED), n_distinct + 1))
    threshold, counts, measures = table[0], table[1:5].view(np.int64), table[5:]
    count_samples(ascending, accurate, threshold, counts, measures)
    return Points(threshold, Counts(*counts), measures)


def _sorted(
    correct: NDArray[np.bool_], confidence: NDArray[np.floating]
) -> tuple[NDArray[np.floating], NDArray[np.bool_], int]:
    """Return confidences and whether they are accurate in ascending order, and how many differ.

    Whether a sample is accurate rides in the lowest bit of the sort key, so that one value sort,
    several times faster than an argsort and a gather, does the work. Negative confidences are
    sorted by magnitude and turned round.
    """
    bits = confidence.view(f"u{confidence.itemsize}")
    key, accurate = np.empty_like(bits), np.empty(bits.size, np.bool_)
    if encode(bits, correct, key):
        key.sort()
        n_distinct = decode(key, accurate)
        return key.view(confidence.dtype), accurate, n_distinct
    negative = confidence < 0
    low, wrong, n_low = _sorted(~correct[negative], -confidence[negative])
    high, right, n_high = _sorted(correct[~negative], confidence[~negative])
    return (
        np.concatenate([-low[::-1], high]),
        np.concatenate([~wrong[::-1], right]),
        n_low + n_high,
    )


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
