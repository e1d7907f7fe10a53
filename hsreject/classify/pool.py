"""Pooling candidates by how well they predict training pixels that they have not seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.classify.multinomial import FloatArray

_TEMPERATURES = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
_N_BOOTSTRAPS = 500
_NEGLIGIBLE = 1e-3
_DOUBT_OF_ONE_GROUP = 0.05
_TINY = 1e-12  # probabilities have a floor before their logarithm is taken
_FLOOR = 0.01  # share of the uniform distribution in a candidate's probability before its logarithm
# Outside this range a temperature says that the held-out samples are too few to tell.
_COLDEST, _HOTTEST = 0.1, 10.0


class Pool(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""A weighted mean of candidates: each counts as much as its held-out predictions deserve.

    A candidate is any way to get class probabilities. It hands in scores z (log-probabilities up to
    a constant) of training samples that it was fitted without. Its temperature T is the one of .5,
    .7, 1, 1.4, 2 and 2.8 with the smallest mean Brier score of :math:`\mathrm{softmax}(z / T)`.
    With :math:`s_{ci}` the negative Brier score of candidate c on sample i, the weights are those
    of pseudo-BMA+,

    .. math:: w_c = \mathrm{E}_u \, \mathrm{softmax}_c \Big( n \sum_i u_i s_{ci} \Big),
              \quad u \sim \mathrm{Dirichlet}(1, \ldots, 1)

    the expectation being a mean over 500 draws of u. A candidate that is better only by luck does
    not get all the weight: averaging beats picking. The mean of the candidates is brought to one
    last temperature, the one with the smallest log-loss on the same samples.

    Where samples have groups (pixels of one polygon), groups are the sample: a sample weighs
    1 / size of its group, :math:`s_{cg}` is the mean over a group and n their number. Labels of the
    only group of a class, whose halves are not independent, count as right in 95 of 100 cases when
    the last temperature is set.

    Parameters
    ----------
    seed : int, default 0
        Seed of the draws.

    Attributes
    ----------
    names_ : list of str
        The candidates, in the order given.
    weights_ : ndarray (candidate,)
        They sum to one; below a thousandth they are set to 0.
    temperatures_ : ndarray (candidate,)
        The temperature of each.
    scores_ : ndarray (candidate,)
        The mean held-out Brier score of each, from 0 (certain and right) to 2; NaN if there were no
        held-out samples: all weights are then equal and all temperatures 1.
    temperature_ : float
        The temperature of the mean.

    See Also
    --------
    hsreject.AutoClassifier : chooses the candidates itself.
    hsreject.SceneClassifier : a candidate.

    References
    ----------
    Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Using stacking to average Bayesian predictive
    distributions", Bayesian Analysis 13(3), 2018, section 3.4.

    Examples
    --------
    Two candidates and four samples of two classes; the second candidate has learned nothing.

    >>> import numpy as np
    >>> from hsreject import Pool
    >>> codes = np.array([0, 1, 0, 1])
    >>> knows = np.where(np.eye(2)[codes] > 0, 2.0, 0.0)
    >>> pool = Pool().fit({"knows": knows, "guesses": np.zeros((4, 2))}, codes)
    >>> pool.weights_.round(2)
    array([0.88, 0.12])
    >>> pool.combine({"knows": knows, "guesses": np.zeros((4, 2))}).argmax(axis=1)
    array([0, 1, 0, 1])
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    def fit(
        self,
        held_out: Mapping[str, FloatArray],
        codes: NDArray[np.intp],
        groups: NDArray[np.intp] | None = None,
    ) -> Self:
        """Weigh candidates by their scores on samples that they were fitted without.

        Parameters
        ----------
        held_out : mapping of str to array (sample, category)
            The scores of each candidate.
        codes : array (sample,) of int
            The number of each sample's category, from 0.
        groups : array (sample,) of int, optional
            The group of each sample, all of one category; by default every sample stands alone.
        """
        codes = np.asarray(codes)
        scores = {str(name): np.asarray(values) for name, values in held_out.items()}
        shapes = {values.shape for values in scores.values()}
        if len(shapes) != 1 or any(len(one) != 2 or one[0] != len(codes) for one in shapes):
            raise InputError(
                "A pool needs at least one candidate, and of each the scores (sample, category) of "
                f"the {len(codes)} samples with the same categories (got the shapes {shapes})."
            )
        self.names_ = list(scores)
        if not len(codes):
            count = len(scores)
            self.scores_, self.temperatures_ = np.full(count, np.nan), np.ones(count)
            self.weights_, self.temperature_ = np.full(count, 1 / count), 1.0
            return self
        doubt: FloatArray | float = 0.0
        if groups is None:
            groups = np.arange(len(codes))
        else:
            groups = np.unique(groups, return_inverse=True)[1]
            n_groups = np.bincount(codes[np.unique(groups, return_index=True)[1]])
            doubt = np.where(n_groups[codes] == 1, _DOUBT_OF_ONE_GROUP, 0.0)
        weight = 1 / np.bincount(groups)[groups]
        # First the temperatures, then the weights: a candidate is judged by what it knows, not by
        # how certain it claims to be.
        best = [_best_of_temperatures(z, codes, weight) for z in scores.values()]
        self.temperatures_ = np.array([temperature for temperature, _ in best])
        # weights are 1 / size, so a sum over a group is its mean
        brier = np.array([np.bincount(groups, weight * score) for _, score in best], dtype=float)
        self.scores_ = brier.mean(axis=1)
        weights = pseudo_bma(-brier, n_bootstraps=_N_BOOTSTRAPS, seed=self.seed)
        weights[weights < _NEGLIGIBLE] = 0.0  # so that such a candidate need not be computed
        self.weights_ = weights / weights.sum()
        mean = np.log(np.maximum(self._mean(scores), _TINY))
        # by log-loss: where no sample is wrong the Brier score would make the pool completely
        # certain
        temperature = best_temperature(mean, codes, weight, doubt)
        self.temperature_ = float(np.clip(temperature, min(_TEMPERATURES), max(_TEMPERATURES)))
        return self

    def combine(self, scores: Mapping[str, FloatArray]) -> FloatArray:
        """Return the pooled probabilities (sample, category) of the candidates' scores.

        A candidate whose weight is 0 may be missing.
        """
        check_is_fitted(self, "weights_")
        log_mean = np.log(np.maximum(self._mean(scores), _TINY))
        return np.asarray(softmax(log_mean / self.temperature_, axis=1))

    @property
    def names_in_use(self) -> list[str]:
        """The candidates that have a weight."""
        return [name for name, weight in zip(self.names_, self.weights_, strict=True) if weight > 0]

    def rows(self) -> list[tuple[str, float, float, float]]:
        """Return name, score, temperature and weight of each candidate."""
        columns = (self.scores_, self.temperatures_, self.weights_)
        return list(zip(self.names_, *(column.tolist() for column in columns), strict=True))

    def _mean(self, scores: Mapping[str, FloatArray]) -> FloatArray:
        parts = zip(self.names_, self.weights_, self.temperatures_, strict=True)
        return np.asarray(
            sum(
                float(weight) * softmax(scores[name] / float(temperature), axis=1)
                for name, weight, temperature in parts
                if weight > 0
            )
        )


def pseudo_bma(scores: FloatArray, *, n_bootstraps: int, seed: int) -> NDArray[np.float64]:
    """Return pseudo-BMA+ weights (candidate,) of scores (candidate, sample), larger is better."""
    n_samples = scores.shape[1]
    # exponential numbers over their sum are a draw of Dirichlet(1, ..., 1)
    share = np.random.default_rng(seed).standard_exponential((n_samples, n_bootstraps))
    share /= share.sum(axis=0)
    # Shares sum to 1; times n they weigh scores like a resample of n samples. A candidate that is
    # clearly the best in every resample takes nearly all, and candidates that take turns share.
    return np.asarray(softmax(n_samples * (scores @ share), axis=0).mean(axis=1))


def brier_scores(probability: FloatArray, codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the Brier score of each sample: sum_k (p_k - [k is its class])^2, from 0 to 2.

    `probability` is (sample, category), `codes` holds the number of each sample's category.
    """
    probability = np.asarray(probability, dtype=np.float64)
    own = probability[np.arange(len(codes)), codes]
    return np.asarray((probability**2).sum(axis=1) + 1 - 2 * own)


def best_temperature(
    scores: FloatArray,
    codes: NDArray[np.intp],
    weight: FloatArray | None = None,
    doubt: FloatArray | float = 0.0,
) -> float:
    """Return the temperature T in [0.1, 10] with the smallest log-loss of softmax(scores / T).

    The log-loss is the weighted mean of -log p at the true classes; with a `doubt` a_i about a
    label, (1 - a_i) times that plus a_i times the mean over classes. `scores` (sample, category)
    are of samples that the model was not trained on. It is convex in 1 / T, so its minimum is the
    only one (Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks", ICML
    2017).
    """

    def log_loss(inverse: float) -> float:
        logs = log_softmax(scores * inverse, axis=1)
        own = (1 - doubt) * logs[np.arange(len(codes)), codes] + doubt * logs.mean(axis=1)
        return float(-np.average(own, weights=weight))

    bounds = (1 / _HOTTEST, 1 / _COLDEST)
    optimum = minimize_scalar(log_loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    return float(1 / optimum.x)


def floored_log(probability: Any, *, axis: int = -1) -> Any:
    """Return log(.99 p + .01 / K): no class is ruled out by a probability of exactly zero."""
    n_classes = probability.shape[axis]
    return np.log((1 - _FLOOR) * probability + probability.dtype.type(_FLOOR / n_classes))


def at_temperature(probability: Any, temperature: float, *, axis: int = -1) -> Any:
    """Return probabilities p^(1/T), scaled to sum to one over `axis`, after a floor of .01 / K."""
    return softmax(floored_log(probability, axis=axis) / temperature, axis=axis)


def _best_of_temperatures(
    scores: FloatArray, codes: NDArray[np.intp], weight: FloatArray
) -> tuple[float, NDArray[np.float64]]:
    """Return the temperature with the smallest mean Brier score, and the score of each sample."""
    tried = [brier_scores(softmax(scores / T, axis=1), codes) for T in _TEMPERATURES]
    best = int(np.argmin([weight @ score for score in tried]))
    return _TEMPERATURES[best], tried[best]
