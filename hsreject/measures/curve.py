"""Rejection curves: every operating point that a threshold on the confidence can reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from hsreject.measures import inputs
from hsreject.measures.curve_table import curve_of_groups, curve_of_samples
from hsreject.measures.ranking import group_weighted_ties

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def rejection_curve(
    correct: ArrayLike | xr.DataArray,
    confidence: ArrayLike | xr.DataArray,
    *,
    weights: ArrayLike | xr.DataArray | None = None,
) -> xr.Dataset:
    """Return every operating point that a threshold on the confidence can reach.

    A threshold cannot tell equal confidences apart, so they are rejected together: d distinct
    confidences give d + 1 points, from nothing rejected to everything rejected. The result does
    not depend on the order of the samples. One sort and one pass.

    Dask-backed arrays are streamed by :func:`hsreject.streamed_rejection_curve`: every point is
    still exact, but where there are very many, only some are given.

    Parameters
    ----------
    correct : array of bool, any shape
        Whether each sample was classified accurately.
    confidence : array of float, same shape
        Larger is surer; finite. Maps have NaN where there is no data, and
        :func:`hsreject.evaluation_samples` leaves those pixels out.
    weights : array of float, same shape, optional
        What each sample stands for (area, inverse sampling probability); samples of weight 0 take
        no part. 1 when not given.

    Returns
    -------
    Dataset over `operating_point`, rejected fraction ascending from 0 to 1
        `rejected_fraction`, `nonrejected_accuracy`, `classification_quality`, `rejection_quality`,
        `threshold`, `accurate_kept`, `misclassified_kept`, `accurate_rejected`,
        `misclassified_rejected`. A point rejects the samples with ``confidence < threshold``: the
        first threshold is the lowest confidence, the last one infinite. Degenerate values are
        those of :mod:`hsreject.measures.counts`.

    Examples
    --------
    >>> curve = rejection_curve([True, False, True, False], [0.9, 0.2, 0.6, 0.6])
    >>> curve.rejected_fraction.values
    array([0.  , 0.25, 0.75, 1.  ])
    >>> curve.classification_quality.values
    array([0.5 , 0.75, 0.75, 0.5 ])
    >>> curve.threshold.values
    array([0.2, 0.6, 0.9, inf])
    """
    arrays = {"correct": correct, "confidence": confidence}
    if weights is not None:
        arrays["weights"] = weights
    plain = inputs.same_layout(arrays)
    if any(inputs.is_lazy(array) for array in plain):
        # dask is slow to import and only lazy input needs it
        from hsreject.measures.streaming import streamed_rejection_curve  # noqa: PLC0415

        return streamed_rejection_curve(correct, confidence, weights=weights)
    accurate = inputs.correct_values(plain[0]).ravel()
    if weights is None:
        return curve_of_samples(accurate, inputs.sortable_values(plain[1]))
    values = inputs.confidence_values(plain[1])
    return curve_of_groups(
        group_weighted_ties(accurate, values, inputs.weight_values(plain[2])), weighted=True
    )
