"""Scores of held-out probabilities, and the temperature that makes probabilities honest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.classify.multinomial import FloatArray

# Outside this range a temperature says that the held-out samples are too few to tell.
_COLDEST, _HOTTEST = 0.1, 10.0
_FLOOR = 0.01  # share of the uniform distribution in a probability before its logarithm is taken


def brier_scores(probability: FloatArray, codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the Brier score of each sample: sum_k (p_k - [k is its class])^2, from 0 to 2.

    `probability` is (sample, category), `codes` holds the number of each sample's category.
    """
    probability = np.asarray(probability, dtype=np.float64)
    own = probability[np.arange(len(codes)), codes]
    scores: NDArray[np.float64] = (probability**2).sum(axis=1) + 1 - 2 * own
    return scores


def log_loss(
    scores: FloatArray,
    codes: NDArray[np.intp],
    weight: FloatArray,
    doubt: FloatArray | float = 0.0,
) -> float:
    """Return the weighted mean of -log softmax(scores) at the true classes.

    With `doubt` a_i about a label it is (1 - a_i) times that, plus a_i times the mean over classes.
    """
    logs = log_softmax(scores, axis=1)
    own = (1 - doubt) * logs[np.arange(len(codes)), codes] + doubt * logs.mean(axis=1)
    return float(-np.average(own, weights=weight))


def best_temperature(
    scores: FloatArray,
    codes: NDArray[np.intp],
    weight: FloatArray | None = None,
    doubt: FloatArray | float = 0.0,
) -> float:
    """Return the temperature T in [0.1, 10] with the smallest log-loss of softmax(scores / T).

    `scores` (sample, category) are of samples that the model was not trained on. It is convex
    in 1 / T, so its minimum is the only one (Guo, Pleiss, Sun and Weinberger, "On calibration of
    modern neural networks", ICML 2017).
    """
    weight = np.ones(len(codes)) if weight is None else weight
    optimum = minimize_scalar(
        lambda inverse: log_loss(scores * inverse, codes, weight, doubt),
        bounds=(1 / _HOTTEST, 1 / _COLDEST),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(1 / optimum.x)


def floored_log(probability: Any, *, axis: int = -1) -> Any:
    """Return log(.99 p + .01 / K): no class is ruled out by a probability of exactly zero."""
    n_classes = probability.shape[axis]
    return np.log((1 - _FLOOR) * probability + probability.dtype.type(_FLOOR / n_classes))


def at_temperature(probability: Any, temperature: float, *, axis: int = -1) -> Any:
    """Return probabilities p^(1/T), scaled to sum to one over `axis`, after a floor of .01 / K."""
    return softmax(floored_log(probability, axis=axis) / temperature, axis=axis)


def best_of_temperatures(
    scores: FloatArray,
    codes: NDArray[np.intp],
    temperatures: Sequence[float],
    weight: FloatArray | None = None,
) -> tuple[float, NDArray[np.float64]]:
    """Return the temperature with the smallest mean Brier score, and the score of each sample."""
    weight = np.ones(len(codes)) if weight is None else weight
    tried = [brier_scores(softmax(scores / T, axis=1), codes) for T in temperatures]
    best = int(np.argmin([weight @ score for score in tried]))
    return float(temperatures[best]), tried[best]
