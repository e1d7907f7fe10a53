"""Sorting samples by confidence: the one sort behind every curve.

The order is canonical (confidence, then correct, then weight), so nothing that is computed from it
depends on the order in which the samples were given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ONE = np.uint64(1)


def sort_samples(
    correct: NDArray[np.bool_], confidence: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the samples in ascending order of (confidence, correct).

    `correct` rides in the lowest bit of the sort key, so that one value sort, several times faster
    than an argsort and a gather, does the work. The bit pattern of a float64 that is not negative
    grows with its value and leaves the top bit free: shifting it left by one loses nothing.
    Negative confidences are sorted by magnitude and turned round.

    Parameters
    ----------
    correct, confidence : ndarray, shape (n,)
        Confidences are finite and hold no negative zero.
    """
    negative = confidence < 0
    if not negative.any():
        return _sort_not_negative(correct, confidence)
    upper = _sort_not_negative(correct[~negative], confidence[~negative])
    lower = _sort_not_negative(~correct[negative], -confidence[negative])
    return (
        np.concatenate([~lower[0][::-1], upper[0]]),
        np.concatenate([-lower[1][::-1], upper[1]]),
    )


def _sort_not_negative(
    correct: NDArray[np.bool_], confidence: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    key = confidence.view(np.uint64) << _ONE
    key |= correct
    key.sort()
    flag = (key & _ONE).astype(np.bool_)
    key >>= _ONE
    return flag, key.view(np.float64)


class Groups(NamedTuple):
    """Samples added up by distinct confidence, ascending: the steps between operating points."""

    confidence: NDArray[np.float64]
    accurate: NDArray[Any]
    misclassified: NDArray[Any]


def group_ties(correct: NDArray[np.bool_], confidence: NDArray[np.float64]) -> Groups:
    """Return how many accurate and misclassified samples each distinct confidence has."""
    correct, confidence = sort_samples(correct, confidence)
    ends = last_of_each(confidence)
    if ends.size == confidence.size:
        accurate = correct.astype(np.int64)
        return Groups(confidence, accurate, 1 - accurate)
    accurate = np.diff(np.cumsum(correct, dtype=np.int64)[ends], prepend=0)
    return Groups(confidence[ends], accurate, np.diff(ends, prepend=-1) - accurate)


def group_weighted_ties(
    correct: NDArray[np.bool_], confidence: NDArray[np.float64], weights: NDArray[Any]
) -> Groups:
    """Return the weight of accurate and misclassified samples at each distinct confidence.

    Samples of weight 0 take no part.
    """
    used = weights > 0
    correct, confidence, weights = correct[used], confidence[used], weights[used]
    order = np.lexsort((weights, correct, confidence))
    confidence = confidence[order]
    if not confidence.size:
        return Groups(confidence, weights, weights)
    starts = np.concatenate([[0], last_of_each(confidence)[:-1] + 1])
    accurate = np.add.reduceat(np.where(correct[order], weights[order], 0), starts)
    misclassified = np.add.reduceat(np.where(correct[order], 0, weights[order]), starts)
    return Groups(confidence[starts], accurate, misclassified)


def last_of_each(ascending: NDArray[Any]) -> NDArray[np.intp]:
    """Return the position of the last of each run of equal values."""
    is_last = np.empty(ascending.size, dtype=np.bool_)
    is_last[-1:] = True
    np.not_equal(ascending[1:], ascending[:-1], out=is_last[:-1])
    return np.flatnonzero(is_last)
