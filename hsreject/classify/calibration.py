"""Temperature: how sharp class probabilities should be, learned from samples that were held out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from hsreject.classify.multinomial import FloatArray
    from hsreject.classify.training_samples import TrainingSamples

# Outside this range a temperature says that the held-out samples are too few to tell.
COLDEST, HOTTEST = 0.1, 10.0


def log_loss(scores: FloatArray, codes: NDArray[np.intp], weight: FloatArray) -> float:
    """Return the weighted mean of -log softmax(scores) at the true classes.

    Examples
    --------
    >>> import numpy as np
    >>> round(log_loss(np.zeros((3, 4)), np.array([0, 1, 2]), np.ones(3)), 4)  # log 4
    1.3863
    """
    own = log_softmax(scores, axis=1)[np.arange(len(codes)), codes]
    return float(-np.average(own, weights=weight))


def best_temperature(scores: FloatArray, codes: NDArray[np.intp], weight: FloatArray) -> float:
    """Return the temperature T in [0.1, 10] with the smallest log-loss of softmax(scores / T).

    The loss is convex in 1 / T, so the minimum is the only one.

    Parameters
    ----------
    scores : array (sample, category)
        Scores of samples that the model was not trained on.
    codes : array (sample,)
        Number of the true class.
    weight : array (sample,)
        Sample weights.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks", ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.log([[0.8, 0.2]] * 5)  # right four times in five: just as sure as it should be
    >>> round(best_temperature(3 * scores, np.array([0, 0, 0, 0, 1]), np.ones(5)), 3)
    3.0
    """
    found = minimize_scalar(
        lambda inverse: log_loss(scores * inverse, codes, weight),
        bounds=(1 / HOTTEST, 1 / COLDEST),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(1 / found.x)


def held_out_scores(
    samples: TrainingSamples,
    score: Callable[[TrainingSamples, FloatArray], FloatArray],
    *,
    n_folds: int,
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Score each sample by a model that did not see it.

    Parameters
    ----------
    samples : TrainingSamples
        The samples.
    score : callable
        Trains on its first argument and returns the scores (sample, category) of its second.
    n_folds : int
        Number of parts that the samples are dealt out to.

    Returns
    -------
    scores : array (sample, category)
        Held-out scores.
    held_out : array (sample,)
        False for samples that are alone in their class, which are never held out.
    """
    fold = samples.folds(n_folds)
    scores = np.zeros((len(fold), len(samples.classes)))
    for number in range(fold.max() + 1):
        out = fold == number
        scores[out] = score(samples.subset(~out), samples.features[out])
    return scores, fold >= 0
