"""The Dataset of a curve: counts of operating points with all measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures import counts
from hsreject.measures.point import OperatingPoint
from hsreject.measures.ranking import Groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MEANING = {
    "rejected_fraction": "share of samples rejected (r)",
    "nonrejected_accuracy": "share of accurate samples among the kept (A)",
    "classification_quality": "share of right decisions (Q)",
    "rejection_quality": "odds of an error among the rejected over those among all (phi)",
    "threshold": "samples with a confidence below it are rejected",
    "accurate_kept": "accurate samples kept",
    "misclassified_kept": "misclassified samples kept",
    "accurate_rejected": "accurate samples rejected",
    "misclassified_rejected": "misclassified samples rejected",
}


def curve_of_points(points: Sequence[OperatingPoint]) -> xr.Dataset:
    """Return separate operating points as a Dataset like that of :func:`rejection_curve`.

    For rejectors that no threshold drives, such as joint classification and rejection, where each
    point is a computation of its own. Points are put in ascending order of rejected fraction,
    then of nonrejected accuracy; `threshold` is NaN.

    Parameters
    ----------
    points : sequence of OperatingPoint
        At least one.

    Examples
    --------
    >>> curve = curve_of_points([OperatingPoint(50, 30, 5, 15), OperatingPoint(55, 45, 0, 0)])
    >>> curve.rejected_fraction.values
    array([0. , 0.2])
    """
    if not points:
        raise InputError("There are no operating points. Give at least one.")
    ordered = sorted(points, key=lambda point: (point.rejected_fraction, point.accurate_kept))
    table = np.array([astuple(point) for point in ordered]).T
    accurate_kept, misclassified_kept, accurate_rejected, misclassified_rejected = table
    return curve_of_counts(
        np.full(len(ordered), np.nan),
        accurate_rejected,
        accurate_kept,
        misclassified_rejected,
        misclassified_kept,
        totals=(accurate_kept + accurate_rejected, misclassified_kept + misclassified_rejected),
        weighted=table.dtype.kind == "f",
    )


def curve_of_groups(groups: Groups, *, weighted: bool = False) -> xr.Dataset:
    """Return the curve whose points reject the groups one after the other."""
    threshold = np.append(groups.confidence, np.inf)
    return curve_of_counts(
        threshold,
        *_running_sums(groups.accurate),
        *_running_sums(groups.misclassified),
        weighted=weighted,
    )


def curve_of_counts(
    threshold: NDArray[np.float64],
    accurate_rejected: NDArray[Any],
    accurate_kept: NDArray[Any],
    misclassified_rejected: NDArray[Any],
    misclassified_kept: NDArray[Any],
    *,
    totals: tuple[Any, Any] | None = None,
    weighted: bool = False,
) -> xr.Dataset:
    """Return the curve of given counts, with all measures.

    `totals` are the accurate and the misclassified samples; those of the first point, which
    rejects nothing, when not given.
    """
    kept = accurate_kept + misclassified_kept
    rejected = accurate_rejected + misclassified_rejected
    if totals is None:
        totals = (accurate_kept[0], misclassified_kept[0])
    variables = {
        "rejected_fraction": counts.rejected_fraction(kept, rejected),
        "nonrejected_accuracy": counts.nonrejected_accuracy(accurate_kept, kept),
        "classification_quality": counts.classification_quality(
            accurate_kept, misclassified_rejected, totals[0] + totals[1]
        ),
        "rejection_quality": counts.rejection_quality(
            accurate_rejected, misclassified_rejected, *totals
        ),
        "threshold": threshold,
        "accurate_kept": accurate_kept,
        "misclassified_kept": misclassified_kept,
        "accurate_rejected": accurate_rejected,
        "misclassified_rejected": misclassified_rejected,
    }
    return xr.Dataset(
        {
            name: (schema.OPERATING_POINT, values, {"long_name": _MEANING[name]})
            for name, values in variables.items()
        },
        attrs={"weighted": int(weighted)},
    )


def _running_sums(steps: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what is rejected and what is kept before the first step and after each one.

    Weights are added up from both ends: a difference from the total would leave rounding noise
    where nothing is kept.
    """
    rejected = np.zeros(steps.size + 1, dtype=steps.dtype)
    np.cumsum(steps, out=rejected[1:])
    if steps.dtype.kind == "i":
        return rejected, rejected[-1] - rejected
    kept = np.zeros_like(rejected)
    np.cumsum(steps[::-1], out=kept[-2::-1])
    return rejected, kept
