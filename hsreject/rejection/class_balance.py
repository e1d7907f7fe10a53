"""One threshold a class: confidences put on a scale on which all classes are treated alike.

A threshold for each class is the same as one threshold on a transformed confidence g_k(c), with one
nondecreasing function a class k. So nothing else has to know about classes: fractions, ties and
curves work on the transformed confidence as on any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Thresholds = Literal["common", "equal_rejection", "equal_accuracy"]


def check_thresholds(thresholds: str) -> None:
    """Raise unless it is one of the ways to set thresholds."""
    if thresholds not in get_args(Thresholds):
        raise InputError(
            f"thresholds must be one of {', '.join(map(repr, get_args(Thresholds)))} "
            f"(got {thresholds!r})."
        )


def equal_rejection(
    label: NDArray[np.integer], confidence: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return the rank of every pixel's confidence within its class, from 0 to below 1.

    g_k(c) is the share of the pixels labelled k that have a confidence below c, so a common
    threshold t rejects the share t of every class (up to ties).

    Parameters
    ----------
    label, confidence : arrays (pixel)

    Examples
    --------
    >>> equal_rejection(np.array([1, 1, 2, 2]), np.array([0.9, 0.8, 0.4, 0.3]))
    array([0.5, 0. , 0.5, 0. ])
    """
    rank = np.empty(confidence.size)
    for value in np.unique(label):
        of_class = label == value
        rank[of_class] = _share_below(confidence[of_class])
    return rank


def _share_below(confidence: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return for every confidence the share of all of them that lie below it."""
    order = np.argsort(confidence)
    ascending = confidence[order]
    below = np.arange(confidence.size)
    below[1:][ascending[1:] == ascending[:-1]] = 0
    share = np.empty(confidence.size)
    share[order] = np.maximum.accumulate(below) / confidence.size  # equals: as many as the first
    return share


def equal_accuracy(
    label: NDArray[np.integer],
    confidence: NDArray[np.floating],
    *,
    used: NDArray[np.bool_],
    correct: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return the kept accuracy of its class up to which every pixel is kept.

    With A_k(t) the accuracy of the calibration pixels labelled k with a confidence of at least t,
    g_k(c) = max of A_k(t) over t <= c. A common threshold a keeps of every class the pixels from
    the smallest t with A_k(t) >= a on: all classes are kept as accurately, as far as they can be.
    A class that has no calibration pixel uses the curve of all classes together.

    Parameters
    ----------
    label, confidence : arrays (pixel)
    used : array of bool (pixel)
        Calibration pixels.
    correct : array of bool, one value for each pixel of `used`
        Whether the label is right.

    Examples
    --------
    >>> confidence = np.array([0.9, 0.7, 0.5, 0.3])
    >>> equal_accuracy(np.ones(4, int), confidence, used=np.ones(4, bool),
    ...                correct=np.array([True, True, False, True])).round(2)
    array([1.  , 1.  , 0.75, 0.75])
    """
    level = np.empty(confidence.size)
    for value in np.unique(label):
        of_class = label == value
        own = label[used] == value
        if not own.any():
            own = np.ones(own.size, dtype=bool)
        level[of_class] = _kept_accuracy(confidence[of_class], confidence[used][own], correct[own])
    return level


def _kept_accuracy(
    confidence: NDArray[np.floating],
    calibrating: NDArray[np.floating],
    correct: NDArray[np.bool_],
) -> NDArray[np.float64]:
    order = np.argsort(calibrating, kind="stable")
    threshold, first = np.unique(calibrating[order], return_index=True)
    right_from = np.cumsum(correct[order][::-1])[::-1][first]
    accuracy = right_from / (calibrating.size - first)
    best = np.maximum.accumulate(accuracy)
    # A pixel less sure than every calibration pixel is kept as long as all of those are.
    place = np.searchsorted(threshold, confidence, side="right") - 1
    return np.asarray(best[np.maximum(place, 0)], dtype=np.float64)
