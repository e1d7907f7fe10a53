r"""Summaries that people quote: AURC, the accuracy at a rejected fraction, calibration errors.

Integration convention of AURC. The risk at coverage k/n is the share of errors among the k most
confident samples, and AURC is its mean over k = 1..n (Geifman and El-Yaniv 2017). Samples of equal
confidence have no order, so the mean is also taken over all their orders: within a tie the expected
number of errors grows in a straight line. A tie of g samples with m errors after k samples with e
errors therefore adds

.. math:: \sum_{j=1}^{g} \frac{e + m j / g}{k + j}
          = m + \left(e - \frac{m k}{g}\right) (H_{k+g} - H_k)

with harmonic numbers H. Weighted curves have no k; there AURC is the integral of the risk over the
coverage, the same expression with the logarithm in place of H.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.special import digamma

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.curve import counts_of
from hsreject.registry import check_count

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def aurc(curve: xr.Dataset) -> float:
    """Compute the area under the risk-coverage curve: the mean risk over all coverages.

    0 is perfect; a random confidence has the error rate of the classifier.
    :mod:`hsreject.measures.summary` states the integration convention.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve`, from nothing to everything rejected.

    See Also
    --------
    hsreject.excess_aurc : without the part that is due to the classifier.
    hsreject.accuracy_at : at one fraction.

    Examples
    --------
    >>> from hsreject import aurc, rejection_curve
    >>> curve = rejection_curve([True, False, True], [0.9, 0.5, 0.1])
    >>> round(aurc(curve), 4)  # (0 + 1/2 + 1/3) / 3
    0.2778
    """
    n_kept, errors, weighted = _kept_and_errors(curve)
    return _mean_risk(n_kept, errors, weighted=weighted)


def excess_aurc(curve: xr.Dataset) -> float:
    """Compute AURC minus that of the best confidence for the same classifier: errors last.

    0 means that no accurate sample is less confident than an error (Geifman et al. 2019, with the
    exact sum in place of their logarithm).

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve`, from nothing to everything rejected.

    See Also
    --------
    hsreject.aurc : includes the errors of the classifier.

    Examples
    --------
    >>> from hsreject import excess_aurc, rejection_curve
    >>> round(excess_aurc(rejection_curve([True, False, True], [0.9, 0.5, 0.1])), 4)  # 1/6
    0.1667
    """
    n_kept, errors, weighted = _kept_and_errors(curve)
    best_kept = np.array([0, n_kept[-1] - errors[-1], n_kept[-1]])
    best_errors = np.array([0, 0, errors[-1]])
    best = _mean_risk(best_kept, best_errors, weighted=weighted)
    return _mean_risk(n_kept, errors, weighted=weighted) - best


def accuracy_at(curve: xr.Dataset, rejected_fraction: ArrayLike) -> xr.DataArray:
    """Compute the nonrejected accuracy at given rejected fractions.

    Where no operating point rejects exactly that fraction, the counts of the two neighbours are
    interpolated in a straight line: the expected accuracy when the samples between them, which the
    confidence cannot tell apart, are rejected at random. The coordinate `reached` tells which
    fractions are operating points.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`.
    rejected_fraction : float or sequence of float
        In [0, 1].

    Returns
    -------
    DataArray over `rejected_fraction`
        NaN where everything is rejected and outside the fractions of the curve.

    See Also
    --------
    hsreject.rejection_curve : makes the curve.
    hsreject.aurc : one number for all fractions.

    Examples
    --------
    >>> from hsreject import accuracy_at, rejection_curve
    >>> curve = rejection_curve([True, False, True, True], [0.1, 0.1, 0.6, 0.9])
    >>> accuracy = accuracy_at(curve, [0, 0.25, 0.5])
    >>> accuracy.values.round(3), accuracy.reached.values
    (array([0.75 , 0.833, 1. ]), array([ True, False, True]))
    """
    inputs.check_single_curve(curve, needed_by="accuracy_at")
    targets = inputs.fraction_values(rejected_fraction)
    fraction = curve["rejected_fraction"].values
    counts = counts_of(curve)
    share = np.interp(targets, fraction, counts.accurate_kept / counts.n, left=np.nan, right=np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = np.where(targets < 1, share / (1 - targets), np.nan)
    reached = np.isin(targets, fraction)
    exact = np.searchsorted(fraction, targets[reached])
    accuracy[reached] = curve["nonrejected_accuracy"].values[exact]
    return xr.DataArray(
        accuracy,
        dims=schema.REJECTED_FRACTION,
        coords={
            schema.REJECTED_FRACTION: targets,
            "reached": (schema.REJECTED_FRACTION, reached),
        },
        name="nonrejected_accuracy",
    )


def _kept_and_errors(curve: xr.Dataset) -> tuple[NDArray[Any], NDArray[Any], bool]:
    """Count kept samples and errors among them, ascending from none kept, and if weighted."""
    inputs.check_single_curve(curve, needed_by="AURC")
    fraction = curve["rejected_fraction"].values
    if fraction[0] != 0 or fraction[-1] != 1:
        raise InputError(
            "AURC needs a whole curve, from nothing to everything rejected (this one covers "
            f"rejected fractions from {fraction[0]:g} to {fraction[-1]:g}). Use the result of "
            "rejection_curve."
        )
    counts = counts_of(curve)
    return counts.kept[::-1], counts.misclassified_kept[::-1], bool(curve.attrs.get("weighted", 0))


def _mean_risk(n_kept: NDArray[Any], errors: NDArray[Any], *, weighted: bool) -> float:
    """Compute the module's sum over all ties; `n_kept` and `errors` count up to the end of each."""
    new = np.diff(n_kept) > 0
    before, errors_before = n_kept[:-1][new], errors[:-1][new]
    size, new_errors = np.diff(n_kept)[new], np.diff(errors)[new]
    slope = errors_before - new_errors * (before / size)
    if weighted:  # log((k + g) / k); at k = 0, where its factor is 0 as well, any number does
        growth = np.log1p(size / np.where(before > 0, before, 1))
    else:  # H(k + g) - H(k)
        growth = digamma(before + size + 1) - digamma(before + 1)
    return float((new_errors + slope * growth).sum() / n_kept[-1])


def reliability(
    correct: ArrayLike | xr.DataArray,
    probability: ArrayLike | xr.DataArray,
    *,
    n_bins: int = 15,
    sample_weight: ArrayLike | xr.DataArray | None = None,
) -> xr.Dataset:
    r"""Compare, bin by bin, the stated probability of labels with how often they were right.

    Parameters
    ----------
    correct : array of bool, any shape
        Whether the label of each sample is right.
    probability : array of float, same shape
        The stated probability that it is, in [0, 1].
    n_bins : int, at least 1
        Bin m of M holds the probabilities in :math:`((m - 1)/M, m/M]`, the first one 0 as well;
        empty ones are left out.
    sample_weight : array of float, same shape, optional
        What each sample stands for, as in :func:`hsreject.rejection_curve`; 1 when not given.
        `n_samples` is then the weight in the bin.

    Returns
    -------
    Dataset over `bin`, probability ascending
        `n_samples`, `mean_probability` and `accuracy`. Its attribute
        `expected_calibration_error` is that of :func:`expected_calibration_error`.

    See Also
    --------
    hsreject.expected_calibration_error : one number of it.
    hsreject.plot.ReliabilityDisplay : draws it.

    Examples
    --------
    >>> from hsreject import reliability
    >>> table = reliability([True, False, True, True], [0.6, 0.6, 0.9, 0.7], n_bins=2)
    >>> table.n_samples.values, table.mean_probability.values, table.accuracy.values
    (array([4]), array([0.7]), array([0.75]))
    """
    check_count("n_bins", n_bins, least=1)
    plain = inputs.same_layout(
        {"correct": correct, "probability": probability, "sample_weight": sample_weight}
    )
    right = inputs.correct_values(plain["correct"])
    values = inputs.confidence_values(plain["probability"], name="probability").astype(np.float64)
    if values.min() < 0 or values.max() > 1:
        raise InputError(
            f"probability must lie in [0, 1] (found values from {values.min():g} to "
            f"{values.max():g}). A confidence that only ranks pixels has no reliability."
        )
    number = np.maximum(np.ceil(values * n_bins).astype(np.intp) - 1, 0)
    weight = np.ones(values.size, dtype=np.int64)
    if sample_weight is not None:
        weight = inputs.weight_values(plain["sample_weight"])
    counts = np.bincount(number, weight, n_bins).astype(weight.dtype)
    used = counts > 0
    n_samples = counts[used]
    stated = np.bincount(number, weight * values, n_bins)[used] / n_samples
    accuracy = np.bincount(number, weight * right, n_bins)[used] / n_samples
    error = float((n_samples * np.abs(accuracy - stated)).sum() / n_samples.sum())
    return xr.Dataset(
        {
            "n_samples": (schema.BIN, n_samples, {"long_name": "samples"}),
            "mean_probability": (schema.BIN, stated, {"long_name": "probability of the label"}),
            "accuracy": (schema.BIN, accuracy, {"long_name": "share of right labels"}),
        },
        attrs={"expected_calibration_error": error},
    )


def expected_calibration_error(
    correct: ArrayLike | xr.DataArray,
    probability: ArrayLike | xr.DataArray,
    *,
    n_bins: int = 15,
    sample_weight: ArrayLike | xr.DataArray | None = None,
) -> float:
    r"""Measure how far probabilities are from observed frequencies, on average, in [0, 1].

    .. math:: ECE = \sum_m \frac{n_m}{n} \left| acc_m - conf_m \right|

    with :math:`acc_m` the share of right labels among the :math:`n_m` samples of bin m and
    :math:`conf_m` their mean probability. 0 is calibrated; rejecting at a threshold on such a
    probability leaves the error that it states. It depends on the bins: compare only values of
    equal bins.

    Parameters
    ----------
    correct, probability, n_bins, sample_weight
        As for :func:`reliability`.

    See Also
    --------
    hsreject.reliability : the bins behind it.

    References
    ----------
    M. Naeini, G. Cooper, M. Hauskrecht, "Obtaining well calibrated probabilities using Bayesian
    binning", AAAI 2015; C. Guo et al., "On calibration of modern neural networks", ICML 2017.

    Examples
    --------
    Ten labels, all with a stated probability of 0.9, of which eight are right:

    >>> from hsreject import expected_calibration_error
    >>> round(expected_calibration_error([True] * 8 + [False] * 2, [0.9] * 10), 3)
    0.1
    """
    table = reliability(correct, probability, n_bins=n_bins, sample_weight=sample_weight)
    return float(table.attrs["expected_calibration_error"])
