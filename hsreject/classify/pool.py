"""Pooling candidates by how well they predict training pixels that they have not seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hsreject.classify.temperature import (
    best_of_temperatures,
    best_temperature,
)
from hsreject.errors import InputError
from hsreject.registry import check_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.classify.multinomial import FloatArray

TEMPERATURES = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
_NEGLIGIBLE = 1e-3
_DOUBT_OF_ONE_GROUP = 0.05
_TINY = 1e-12  # probabilities have a floor before their logarithm is taken


class Pool(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""A weighted mean of candidates: each counts as much as its held-out predictions deserve.

    A candidate is any way to get class probabilities. It hands in scores z (log-probabilities but
    for a constant) of training samples that it was fitted without. Its temperature T is the one of
    a short list with the smallest mean Brier score of :math:`\mathrm{softmax}(z / T)`. With
    :math:`s_{ci}` the negative Brier score of candidate c on sample i, the weights are those of
    pseudo-BMA+,

    .. math:: w_c = \mathrm{E}_u \, \mathrm{softmax}_c \Big( n \sum_i u_i s_{ci} \Big),
              \quad u \sim \mathrm{Dirichlet}(1, \ldots, 1)

    the expectation being a mean over bootstraps. A candidate that is better by luck of a few
    samples does not take all: averaging beats picking. The mean of the candidates is brought to one
    last temperature, the one with the smallest log-loss on the same samples.

    Samples of one group (pixels of one polygon) are near copies of each other. Then groups are the
    sample: a sample weighs 1 / size of its group, :math:`s_{cg}` is the mean over a group and n
    their number. Two halves of the only group of a class know each other: its labels count as right
    in 95 of 100 cases when the last temperature is set.

    Parameters
    ----------
    temperatures : sequence of float
        What is tried for each candidate, positive.
    n_bootstraps : int, default 500
        Draws of u.
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
    Two candidates and four samples of two classes; the second candidate knows nothing.

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

    def __init__(
        self,
        *,
        temperatures: Sequence[float] = TEMPERATURES,
        n_bootstraps: int = 500,
        seed: int = 0,
    ) -> None:
        self.temperatures = temperatures
        self.n_bootstraps = n_bootstraps
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
        check_count("n_bootstraps", self.n_bootstraps, least=1)
        codes = np.asarray(codes)
        scores = {str(name): np.asarray(values) for name, values in held_out.items()}
        _check_candidates(scores, len(codes))
        self.names_ = list(scores)
        if not len(codes):
            self._keep_equal()
            return self
        doubt: FloatArray | float = 0.0
        if groups is None:
            groups = np.arange(len(codes))
        else:
            groups = np.unique(groups, return_inverse=True)[1]
            n_groups = np.bincount(codes[np.unique(groups, return_index=True)[1]])
            doubt = np.where(n_groups[codes] == 1, _DOUBT_OF_ONE_GROUP, 0.0)
        weight = 1 / np.bincount(groups)[groups]
        best = [best_of_temperatures(z, codes, self.temperatures, weight) for z in scores.values()]
        self.temperatures_ = np.array([temperature for temperature, _ in best])
        brier = np.array([np.bincount(groups, weight * score) for _, score in best], dtype=float)
        self.scores_ = brier.mean(axis=1)
        weights = pseudo_bma(-brier, n_bootstraps=self.n_bootstraps, seed=self.seed)
        weights[weights < _NEGLIGIBLE] = 0.0  # nobody needs to compute such a candidate
        self.weights_ = weights / weights.sum()
        mean = np.log(np.maximum(self._mean(scores), _TINY))
        # by log-loss: where no sample is wrong the Brier score would have the pool dead certain
        wanted = best_temperature(mean, codes, weight, doubt)
        self.temperature_ = float(np.clip(wanted, min(self.temperatures), max(self.temperatures)))
        return self

    def combine(self, scores: Mapping[str, FloatArray]) -> FloatArray:
        """Return the pooled probabilities (sample, category) of the candidates' scores.

        A candidate whose weight is 0 may be missing.
        """
        check_is_fitted(self, "weights_")
        mean = self._mean(scores)
        np.maximum(mean, _TINY, out=mean)
        np.log(mean, out=mean)
        mean /= self.temperature_
        return np.asarray(softmax(mean, axis=1))

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

    def _keep_equal(self) -> None:
        count = len(self.names_)
        self.temperatures_ = np.ones(count)
        self.scores_ = np.full(count, np.nan)
        self.weights_ = np.full(count, 1 / count)
        self.temperature_ = 1.0


def pseudo_bma(scores: FloatArray, *, n_bootstraps: int, seed: int) -> NDArray[np.float64]:
    """Return pseudo-BMA+ weights (candidate,) of scores (candidate, sample), larger is better."""
    n_samples = scores.shape[1]
    # exponential numbers over their sum are a draw of Dirichlet(1, ..., 1)
    share = np.random.default_rng(seed).standard_exponential((n_samples, n_bootstraps))
    share /= share.sum(axis=0)
    weights: NDArray[np.float64] = softmax(n_samples * (scores @ share), axis=0).mean(axis=1)
    return weights


def _check_candidates(scores: Mapping[str, FloatArray], n_samples: int) -> None:
    if not scores:
        raise InputError("A pool needs at least one candidate (got none).")
    shapes = {name: values.shape for name, values in scores.items()}
    if any(len(shape) != 2 or shape[0] != n_samples for shape in shapes.values()):
        raise InputError(
            f"Every candidate needs scores (sample, category) of the {n_samples} samples "
            f"(got the shapes {shapes})."
        )
    if len(set(shapes.values())) > 1:
        raise InputError(f"All candidates must have the same categories (got {shapes}).")
