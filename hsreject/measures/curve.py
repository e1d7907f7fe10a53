"""Rejection curves: every operating point that a threshold on the confidence can reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.point import (
    COUNTS,
    FRACTION_AXIS,
    MEASURES,
    Counts,
    OperatingPoint,
)
from hsreject.registry import check_choice, check_count
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


BLOCK = 1 << 14
"""Points of a curve whose measures are computed at once."""


def rejection_curve(
    correct: ArrayLike | xr.DataArray,
    confidence: ArrayLike | xr.DataArray,
    *,
    sample_weight: ArrayLike | xr.DataArray | None = None,
) -> xr.Dataset:
    """Compute every operating point that a threshold on the confidence can reach.

    A threshold cannot tell equal confidences apart, so they are rejected together: d distinct
    confidences give d + 1 points, from nothing rejected to everything rejected. The result does
    not depend on the order of the samples. Lazy (dask) arrays are computed.

    Parameters
    ----------
    correct : array of bool, any shape
        Whether each sample was classified accurately.
    confidence : array of float, same shape
        Larger is more certain; finite. Maps have NaN where there is no data, and
        :func:`hsreject.evaluation_samples` leaves those pixels out.
    sample_weight : array of float, same shape, optional
        What each sample stands for (area, inverse sampling probability); samples of weight 0 do not
        count. 1 when not given. Where the same number of reference pixels was drawn from each
        class, a sample of class h stands for the size of h over the number drawn from h.

    Returns
    -------
    Dataset over `operating_point`, rejected fraction ascending from 0 to 1
        `rejected_fraction`, `nonrejected_accuracy`, `classification_quality`, `rejection_quality`,
        `threshold`, `accurate_kept`, `misclassified_kept`, `accurate_rejected`,
        `misclassified_rejected`. A point rejects the samples with ``confidence < threshold``: the
        first threshold is the lowest confidence, the last one infinite. Degenerate values are
        those of :mod:`hsreject.measures.point`.

    See Also
    --------
    hsreject.operating_point : one rejection.
    hsreject.accuracy_at : reads a curve.
    hsreject.evaluate : with intervals.
    hsreject.plot.RejectionCurveDisplay : draws it.

    Examples
    --------
    >>> from hsreject import rejection_curve
    >>> curve = rejection_curve([True, False, True, False], [0.9, 0.2, 0.6, 0.6])
    >>> curve.rejected_fraction.values
    array([0.  , 0.25, 0.75, 1.  ])
    >>> curve.classification_quality.values
    array([0.5 , 0.75, 0.75, 0.5 ])
    >>> curve.threshold.values
    array([0.2, 0.6, 0.9, inf])
    """
    plain = inputs.same_layout(
        {"correct": correct, "confidence": confidence, "sample_weight": sample_weight}
    )
    right = inputs.correct_values(plain["correct"])
    ranks = inputs.confidence_values(plain["confidence"])
    if sample_weight is None:
        order = np.argsort(ranks)
        ascending = ranks[order]
        bounds = tie_bounds(ascending)
        n_right = np.zeros(ranks.size + 1, dtype=np.int64)  # among the least confident
        np.cumsum(right[order].astype(np.int64), out=n_right[1:])
        accurate_rejected = n_right[bounds]
        rejected = [accurate_rejected, bounds - accurate_rejected]
        kept = [count[-1] - count for count in rejected]
    else:
        amount = inputs.weight_values(plain["sample_weight"])
        # tied samples by weight: their sum is then the same for any order of the samples
        order = np.lexsort((amount, right, ranks))
        order = order[amount[order] > 0]
        ascending = ranks[order]
        bounds = tie_bounds(ascending)
        amounts = np.stack([right[order], ~right[order]]) * amount[order]
        steps = np.add.reduceat(amounts, bounds[:-1], axis=1)
        # Added up from both ends: a difference from a large total would lose the digits of the
        # little that is kept near the end.
        rejected = list(np.pad(np.cumsum(steps, axis=1), ((0, 0), (1, 0))))
        kept = list(np.pad(np.cumsum(steps[:, ::-1], axis=1)[:, ::-1], ((0, 0), (0, 1))))
    threshold = np.append(np.add(ascending[bounds[:-1]], 0.0, dtype=np.float64), np.inf)
    return curve_columns(threshold, Counts(*kept, *rejected), weighted=sample_weight is not None)


def curve_of_points(points: Sequence[OperatingPoint]) -> xr.Dataset:
    """Join separate operating points into a curve, a Dataset like that of `rejection_curve`.

    For rejectors without a threshold, such as joint rejection, where every point is computed
    separately. Points are put in ascending order of rejected fraction, then of accurate samples
    kept; their `threshold` is usually NaN.

    Parameters
    ----------
    points : sequence of OperatingPoint
        At least one.

    Returns
    -------
    Dataset over `operating_point`
        The columns of :func:`hsreject.rejection_curve`.

    See Also
    --------
    hsreject.rejection_curve : all points of one confidence.
    hsreject.operating_point : makes one point.

    Examples
    --------
    >>> from hsreject import OperatingPoint, curve_of_points
    >>> curve = curve_of_points([OperatingPoint(50, 30, 5, 15), OperatingPoint(55, 45, 0, 0)])
    >>> curve.rejected_fraction.values
    array([0. , 0.2])
    """
    if not points:
        raise InputError("There are no operating points. Give at least one.")
    for point in points:
        if not isinstance(point, OperatingPoint):
            raise InputError(
                "curve_of_points takes a list of hsreject.OperatingPoint "
                f"(got {inputs.described(point)} in it)."
            )
    ordered = sorted(points, key=lambda point: (point.rejected_fraction, point.accurate_kept))
    table = np.array([point.counts for point in ordered]).T
    threshold = np.array([point.threshold for point in ordered], dtype=np.float64)
    return curve_columns(threshold, Counts(*table), weighted=table.dtype.kind == "f")


def class_curves(
    reference: ArrayLike | xr.DataArray,
    label: ArrayLike | xr.DataArray,
    confidence: ArrayLike | xr.DataArray,
    *,
    by: Literal["label", "reference"] = "label",
    sample_weight: ArrayLike | xr.DataArray | None = None,
    classes: ClassTable | None = None,
) -> dict[str, xr.Dataset]:
    """Compute the rejection curve of each class, by name: what displays of curves take.

    The thresholds are those of all classes together, the samples are those of one: of the map's
    class (`by` label, as in user's accuracy) or of the true one (`by` reference, as in producer's
    accuracy). The counts of all curves add up to those of :func:`hsreject.rejection_curve` at any
    threshold.

    Parameters
    ----------
    reference, label : arrays of int, same shape
        True and assigned class of each sample (see :func:`hsreject.evaluation_samples`).
    confidence : array of float, same shape
        Larger is more certain; finite.
    by : {"label", "reference"}
        Which of the two makes a sample one of a class.
    sample_weight : array of float, same shape, optional
        As in :func:`hsreject.rejection_curve`.
    classes : ClassTable, optional
        Names of the classes; their values when not given.

    Returns
    -------
    dict of str to Dataset
        Those of :func:`hsreject.rejection_curve`, in the order of the classes; classes without a
        sample are left out.

    See Also
    --------
    hsreject.rejection_curve : all classes together.
    hsreject.plot.RejectionCurveDisplay : draws several curves.

    Examples
    --------
    >>> from hsreject import class_curves
    >>> curves = class_curves([1, 1, 2, 2], [1, 2, 2, 2], [0.9, 0.2, 0.6, 0.8])
    >>> {name: curve.nonrejected_accuracy.values.round(2) for name, curve in curves.items()}
    {'class 1': array([ 1., nan]), 'class 2': array([0.67, 1.  , 1.  ,  nan])}
    """
    check_choice("by", by, ("label", "reference"))
    plain = inputs.same_layout(
        {
            "reference": reference,
            "label": label,
            "confidence": confidence,
            "sample_weight": sample_weight,
        }
    )
    truth = inputs.class_values(plain["reference"], name="reference")
    decision = inputs.class_values(plain["label"], name="label")
    ranks = inputs.confidence_values(plain["confidence"])
    weight = None if sample_weight is None else inputs.weight_values(plain["sample_weight"])
    counted = np.ones(truth.size, dtype=bool) if weight is None else weight > 0
    own, curves = (decision if by == "label" else truth), {}
    table = classes or ClassTable.plain(np.union1d(truth, decision).tolist())
    for value in table.values:
        member = (own == value) & counted
        if member.any():
            curves[table.name_of(value)] = rejection_curve(
                (truth == decision)[member],
                ranks[member],
                sample_weight=None if weight is None else weight[member],
            )
    return curves


def tie_bounds(ascending: NDArray[np.floating]) -> NDArray[np.intp]:
    """Find where each distinct value begins, and the number of values."""
    return np.flatnonzero(np.concatenate(([True], ascending[1:] != ascending[:-1], [True])))


def curve_columns(
    threshold: NDArray[np.float64], counts: Counts[NDArray[Any]], *, weighted: bool
) -> xr.Dataset:
    """Compute the columns of a curve: what `MEASURES` and `COUNTS` list, and the threshold."""
    meanings = {"rejected_fraction": FRACTION_AXIS, **MEASURES}
    measures = {name: np.empty(threshold.size) for name in meanings}
    four = [getattr(counts, name) for name in COUNTS]
    # some points at a time: sums on the way to a measure then never leave the cache
    for start in range(0, threshold.size, BLOCK):
        block = slice(start, start + BLOCK)
        some = Counts(*(count[block].astype(np.float64, copy=False) for count in four))
        for name, column in measures.items():
            column[block] = getattr(some, name)
    columns = {
        **{name: (column, meanings[name].meaning) for name, column in measures.items()},
        "threshold": (threshold, "samples with a confidence below it are rejected"),
        **{name: (n, name.replace("_", " samples ")) for name, n in zip(COUNTS, four, strict=True)},
    }
    dim = schema.OPERATING_POINT
    return xr.Dataset(
        {name: (dim, values, {"long_name": words}) for name, (values, words) in columns.items()},
        attrs={"weighted": int(weighted)},  # NetCDF has no booleans
    )


def counts_of(curve: xr.Dataset) -> Counts[NDArray[Any]]:
    """Read the counts of a curve's points as arrays."""
    return Counts(*(curve[name].values for name in COUNTS))


def nearest_points(fraction: NDArray[np.float64], n_points: int) -> NDArray[np.intp]:
    """Pick the points of an ascending `fraction` nearest to equally spaced fractions."""
    check_count("n_points", n_points, least=2)  # the two ends
    targets = np.linspace(fraction[0], fraction[-1], n_points)
    # the ends are wanted exactly, so they are always among the points
    above = np.minimum(np.searchsorted(fraction, targets), fraction.size - 1)
    below = np.maximum(above - 1, 0)
    nearer_below = targets - fraction[below] <= fraction[above] - targets
    return np.unique(np.where(nearer_below, below, above))
