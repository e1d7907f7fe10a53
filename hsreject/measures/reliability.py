"""Reliability: whether a probability comes true as often as it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.registry import check_choice, check_count

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Binning = Literal["width", "count"]


def reliability(
    correct: ArrayLike | xr.DataArray,
    probability: ArrayLike | xr.DataArray,
    *,
    n_bins: int = 15,
    binning: Binning = "width",
) -> xr.Dataset:
    r"""Return, bin by bin, how probable labels were said to be and how often they were right.

    Parameters
    ----------
    correct : array of bool, any shape
        Whether the label of each sample is right.
    probability : array of float, same shape
        How probable that was said to be, in [0, 1].
    n_bins : int, at least 1
        Into how many bins the samples are dealt by their probability; empty ones are left out.
    binning : {"width", "count"}
        "width": bin m holds the probabilities in :math:`((m - 1)/M, m/M]`, the first one 0 as well.
        "count": bins of about equally many samples; equal probabilities stay together, in the bin
        that their middle rank falls into.

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
    check_choice("binning", binning, ("width", "count"))
    given = inputs.same_layout({"correct": correct, "probability": probability})
    right = inputs.correct_values(given["correct"])
    values = inputs.confidence_values(given["probability"], name="probability").astype(np.float64)
    if values.min() < 0 or values.max() > 1:
        raise InputError(
            f"probability must lie in [0, 1] (found values from {values.min():g} to "
            f"{values.max():g}). A confidence that only ranks pixels has no reliability."
        )
    number = _by_width(values, n_bins) if binning == "width" else _by_count(values, n_bins)
    counts = np.bincount(number, minlength=n_bins)
    used = counts > 0
    n_samples = counts[used]
    mean_probability = np.bincount(number, values, n_bins)[used] / n_samples
    accuracy = np.bincount(number, right, n_bins)[used] / n_samples
    error = float((n_samples * np.abs(accuracy - mean_probability)).sum() / n_samples.sum())
    return xr.Dataset(
        {
            "n_samples": (schema.BIN, n_samples, {"long_name": "samples"}),
            "mean_probability": (
                schema.BIN,
                mean_probability,
                {"long_name": "probability of the label"},
            ),
            "accuracy": (schema.BIN, accuracy, {"long_name": "share of right labels"}),
        },
        attrs={"expected_calibration_error": error},
    )


def expected_calibration_error(
    correct: ArrayLike | xr.DataArray,
    probability: ArrayLike | xr.DataArray,
    *,
    n_bins: int = 15,
    binning: Binning = "width",
) -> float:
    r"""Return how far probabilities are from the frequencies that they claim to be, in [0, 1].

    .. math:: ECE = \sum_m \frac{n_m}{n} \left| acc_m - conf_m \right|

    with :math:`acc_m` the share of right labels among the :math:`n_m` samples of bin m and
    :math:`conf_m` their mean probability. 0 is calibrated; rejecting at a threshold on such a
    probability keeps what it promises. It depends on the bins: compare only values of equal bins.

    Parameters
    ----------
    correct, probability, n_bins, binning
        As for :func:`reliability`.

    See Also
    --------
    hsreject.reliability : the bins behind it.

    References
    ----------
    M. Naeini, G. Cooper, M. Hauskrecht, "Obtaining well calibrated probabilities using Bayesian
    binning", AAAI 2015; C. Guo et al., "On calibration of modern neural networks", ICML 2017
    (bins of equal width); K. Nguyen, B. O'Connor, "Posterior calibration and exploratory analysis
    for natural language processing models", EMNLP 2015 (bins of equal count).

    Examples
    --------
    Ten labels, all said to be right with probability 0.9, of which eight are:

    >>> from hsreject import expected_calibration_error
    >>> round(expected_calibration_error([True] * 8 + [False] * 2, [0.9] * 10), 3)
    0.1
    """
    table = reliability(correct, probability, n_bins=n_bins, binning=binning)
    return float(table.attrs["expected_calibration_error"])


def _by_width(values: NDArray[np.float64], n_bins: int) -> NDArray[np.intp]:
    return np.maximum(np.ceil(values * n_bins).astype(np.intp) - 1, 0)


def _by_count(values: NDArray[np.float64], n_bins: int) -> NDArray[np.intp]:
    _, position, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / values.size
    return np.asarray((middle * n_bins).astype(np.intp)[position])
