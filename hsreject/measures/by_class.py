"""Rejection curves class by class: which classes are rejected, which errors remain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.measures import inputs
from hsreject.measures.counts import share
from hsreject.measures.curve import rejection_curve
from hsreject.measures.optimality import nearest_points

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def rejection_curve_by_class(
    reference: ArrayLike | xr.DataArray,
    label: ArrayLike | xr.DataArray,
    confidence: ArrayLike | xr.DataArray,
    *,
    n_points: int | None = 101,
) -> xr.Dataset:
    """Return what each threshold on the confidence does to each class.

    Parameters
    ----------
    reference, label : arrays of int, same shape
        True and assigned class of each sample (see :func:`hsreject.evaluation_samples`).
    confidence : array of float, same shape
        Larger is surer; finite.
    n_points : int or None
        Show the points of :func:`hsreject.rejection_curve` nearest to this many equally spaced
        rejected fractions; None shows all, which takes (samples x classes) numbers a variable.

    Returns
    -------
    Dataset over `operating_point`, and `category` (the classes, by value)
        `rejected_fraction` and `threshold` of all samples together; `accurate_kept`,
        `misclassified_kept`, `accurate_rejected`, `misclassified_rejected` and
        `rejected_fraction_of_class` of the samples whose *reference* is the class;
        `wrongly_assigned_kept`, kept samples with that *label* but another reference;
        `producer_accuracy` and `user_accuracy`, the shares of accurate samples among those kept of
        the reference class and of the label. Shares of nothing are NaN.

    Examples
    --------
    >>> curves = rejection_curve_by_class([1, 1, 2, 2], [1, 2, 2, 2], [0.9, 0.4, 0.7, 0.8])
    >>> curves.rejected_fraction_of_class.sel(category=1).values
    array([0. , 0.5, 0.5, 0.5, 1. ])
    >>> curves.user_accuracy.sel(category=2).values.round(2)
    array([0.67, 1.  , 1.  ,  nan,  nan])
    """
    truth, decision, values = _samples(reference, label, confidence)
    correct = truth == decision
    curve = rejection_curve(correct, values)
    if n_points is not None:
        chosen = nearest_points(curve["rejected_fraction"].values, n_points)
        curve = curve.isel({schema.OPERATING_POINT: chosen})
    threshold = curve["threshold"].values
    classes = np.union1d(truth, decision)
    groups = {
        "accurate": (correct, truth),
        "misclassified": (~correct, truth),
        "wrongly_assigned": (~correct, decision),
    }
    rejected, kept = {}, {}
    for name, (belongs, of_class) in groups.items():
        columns = [values[belongs & (of_class == value)] for value in classes]
        rejected[name] = np.stack([_rejected(column, threshold) for column in columns], axis=1)
        kept[name] = rejected[name][-1] - rejected[name]  # the last threshold rejects everything
    table = _measures(rejected, kept)
    dims = (schema.OPERATING_POINT, schema.CATEGORY)
    return xr.Dataset(
        {
            "rejected_fraction": curve["rejected_fraction"],
            "threshold": curve["threshold"],
            **{name: (dims, array) for name, array in table.items()},
        },
        coords={schema.CATEGORY: classes},
    )


def _samples(
    reference: ArrayLike | xr.DataArray,
    label: ArrayLike | xr.DataArray,
    confidence: ArrayLike | xr.DataArray,
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.float64]]:
    """Return the three as flat arrays, or say what is wrong with them."""
    arrays = {"reference": reference, "label": label, "confidence": confidence}
    plain = [np.asarray(array) for array in inputs.same_layout(arrays)]
    return (
        inputs.class_values(plain[0], name="reference"),
        inputs.class_values(plain[1], name="label"),
        inputs.confidence_values(plain[2]),
    )


def _rejected(confidence: NDArray[np.float64], threshold: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.searchsorted(np.sort(confidence), threshold, side="left")


def _measures(
    rejected: dict[str, NDArray[Any]], kept: dict[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    accurate = kept["accurate"]
    all_rejected = rejected["accurate"] + rejected["misclassified"]
    all_kept = accurate + kept["misclassified"]
    return {
        "accurate_kept": accurate,
        "misclassified_kept": kept["misclassified"],
        "accurate_rejected": rejected["accurate"],
        "misclassified_rejected": rejected["misclassified"],
        "wrongly_assigned_kept": kept["wrongly_assigned"],
        "rejected_fraction_of_class": share(all_rejected, all_rejected + all_kept),
        "producer_accuracy": share(accurate, all_kept),
        "user_accuracy": share(accurate, accurate + kept["wrongly_assigned"]),
    }
