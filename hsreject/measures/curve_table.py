"""The Dataset of a curve: counts of operating points with all measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures.counts import MEASURES, Counts
from hsreject.measures.curve_kernels import MEASURED, measure_points
from hsreject.measures.point import OperatingPoint
from hsreject.measures.ranking import Groups, threshold_points

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MEANING = {
    "rejected_fraction": "share of samples rejected (r)",
    "threshold": "samples with a confidence below it are rejected",
    "accurate_kept": "accurate samples kept",
    "misclassified_kept": "misclassified samples kept",
    "accurate_rejected": "accurate samples rejected",
    "misclassified_rejected": "misclassified samples rejected",
    "overall_accuracy": "accuracy with nothing rejected",
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
    threshold = np.full(len(ordered), np.nan)
    return curve_of_counts(threshold, Counts(*table), weighted=table.dtype.kind == "f")


def curve_of_samples(
    correct: NDArray[np.bool_],
    confidence: NDArray[np.floating],
    *,
    with_overall_accuracy: bool = False,
) -> xr.Dataset:
    """Return the curve of samples that count alike.

    Parameters
    ----------
    correct : array of bool (sample)
    confidence : array of float32 or float64 (sample), finite
    with_overall_accuracy : bool
        Whether to say at every point how accurate the labels are with nothing rejected. A Dataset
        that is built at once takes half the time of one to which a variable is added.
    """
    variables = _variables(*threshold_points(correct, confidence))
    if with_overall_accuracy:
        accuracy = variables["nonrejected_accuracy"][0]
        variables["overall_accuracy"] = np.full_like(variables["threshold"], accuracy)
    return _curve(variables, weighted=False)


def curve_of_groups(groups: Groups, *, weighted: bool = False) -> xr.Dataset:
    """Return the curve whose points reject the groups one after the other."""
    accurate_rejected, accurate_kept = _running_sums(groups.accurate)
    misclassified_rejected, misclassified_kept = _running_sums(groups.misclassified)
    counts = Counts(accurate_kept, misclassified_kept, accurate_rejected, misclassified_rejected)
    return curve_of_counts(np.append(groups.confidence, np.inf), counts, weighted=weighted)


def curve_of_counts(
    threshold: NDArray[np.float64], counts: Counts, *, weighted: bool = False
) -> xr.Dataset:
    """Return the curve of given counts, with all measures."""
    measures = np.empty((len(MEASURED), threshold.size))
    measure_points(*counts, measures)
    return _curve(_variables(threshold, counts, measures), weighted=weighted)


def _variables(
    threshold: NDArray[np.float64], counts: Counts, measures: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """Return the columns of a curve, given the rows `MEASURED` of its measures."""
    columns = dict(zip(MEASURED, measures, strict=True))
    for name, measure in MEASURES.items():
        if name not in columns:
            columns[name] = measure.kernel(counts)
    return columns | {"threshold": threshold} | counts._asdict()


def _curve(variables: dict[str, NDArray[Any]], *, weighted: bool) -> xr.Dataset:
    # As coordinates without an index first: the constructor of a Dataset would align and merge
    # columns that need neither, in a quarter more time.
    columns = {
        name: xr.Variable((schema.OPERATING_POINT,), values, fastpath=True)
        for name, values in variables.items()
    }
    curve = xr.Coordinates(columns, indexes={}).to_dataset().reset_coords()
    held = curve.variables
    for name in variables:  # not before: attributes are copied each time
        meaning = MEASURES[name].meaning if name in MEASURES else _MEANING[name]
        held[name].attrs["long_name"] = meaning
    curve.attrs["weighted"] = int(weighted)
    return curve


def _running_sums(steps: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return what is rejected and what is kept before the first step and after each one.

    Weights are added up from both ends: a difference from a large total would lose the digits of
    the little that is kept near the end.
    """
    rejected = np.zeros(steps.size + 1, dtype=steps.dtype)
    np.cumsum(steps, out=rejected[1:])
    if steps.dtype.kind == "i":
        return rejected, rejected[-1] - rejected
    kept = np.zeros_like(rejected)
    np.cumsum(steps[::-1], out=kept[-2::-1])
    return rejected, kept
