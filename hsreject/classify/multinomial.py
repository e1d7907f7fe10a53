"""The sparse multinomial regression problem, and what a solver of it returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.floating[Any]]

# Below this share of a feature's size its spread is rounding, and the feature is constant.
_ROUNDING = 64 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Solution:
    """What a solver found, and how far it can be from the optimum.

    Parameters
    ----------
    coef : array (feature, category)
        The weights W.
    intercept : array (category,)
        The intercepts b, of centred features until :meth:`MultinomialProblem.restore`.
    objective : float
        F(W, b).
    duality_gap : float
        A proven bound: F(W, b) - min F is never larger.
    n_iterations : int
        Iterations done.
    converged : bool
        Whether the gap reached the tolerance.
    """

    coef: FloatArray
    intercept: FloatArray
    objective: float
    duality_gap: float
    n_iterations: int
    converged: bool


@dataclass(frozen=True)
class MultinomialProblem:
    """Samples of a sparse multinomial regression, ready for a solver.

    The problem is, over weights W (feature, category) and intercepts b (category,),

        F(W, b) = -sum_i v_i log p(y_i | h_i) + sparsity * ||W||_1,
        p(k | h) = exp(h' W_k + b_k) / sum_l exp(h' W_l + b_l),

    with v_i the weight of sample i. Features are centred here: the free intercept makes that an
    equivalent problem, and a far better conditioned one.

    Parameters
    ----------
    features : array (feature, sample)
        Centred features, one contiguous row each.
    offset : array (feature,)
        What centring took away.
    target : array (sample, category)
        One where the sample has the category, zero elsewhere.
    weight : array (sample,)
        Positive sample weights.

    Examples
    --------
    >>> import numpy as np
    >>> problem = MultinomialProblem.from_samples(np.array([[0.0], [1.0], [2.0]]), [0, 0, 1])
    >>> problem.features
    array([[-1.,  0.,  1.]])
    >>> float(problem.largest_sparsity())
    1.0
    """

    features: FloatArray
    offset: FloatArray
    target: FloatArray
    weight: FloatArray

    @classmethod
    def from_samples(
        cls, features: FloatArray, codes: NDArray[np.intp], weight: FloatArray | None = None
    ) -> MultinomialProblem:
        """Return the problem of `features` (sample, feature) and class numbers from 0 on."""
        codes = np.asarray(codes)
        weight = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
        offset = weight @ features / weight.sum()
        centred = np.empty((features.shape[1], len(codes)))
        np.subtract(features.T, offset[:, None], out=centred)
        spread = np.sqrt(np.einsum("ji,ji->j", centred, centred) / len(codes))
        centred[spread <= _ROUNDING * np.abs(offset)] = 0.0
        return cls(centred, offset, np.eye(codes.max() + 1)[codes], weight)

    def in_single_precision(self) -> MultinomialProblem:
        """Return the same problem with features, hence gradients, in single precision.

        Its products are several times faster. Those too large for it are infinite or NaN, those too
        small zero.
        """
        with np.errstate(over="ignore"):
            return replace(self, features=self.features.astype(np.float32))

    @cached_property
    def class_weight(self) -> FloatArray:
        """Total sample weight of each category."""
        return self.weight @ self.target

    @cached_property
    def class_totals(self) -> FloatArray:
        """Weighted sum of the features of each category, (feature, category).

        Features are centred, so this is minus the gradient wherever all weights are zero.
        """
        return self._products(self.weight[:, None] * self.target)

    @property
    def null_intercept(self) -> FloatArray:
        """The best intercepts when all weights are zero: logarithms of the class shares."""
        share: FloatArray = self.class_weight / self.weight.sum()
        return np.log(share)

    def null_objective(self) -> float:
        """Return F at zero weights and their best intercepts."""
        return float(-self.class_weight @ self.null_intercept)

    def largest_sparsity(self) -> float:
        """Return the smallest sparsity whose optimum has all weights zero."""
        return float(np.abs(self.class_totals).max(initial=0.0))

    def scores(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """Return W'h + b, (sample, category)."""
        used = np.flatnonzero(coef.any(axis=1))
        return self.features[used].T @ coef[used] + intercept

    def probability_and_loss(self, scores: FloatArray) -> tuple[FloatArray, float]:
        """Return the class probabilities (sample, category) and the loss, without the penalty."""
        shifted = scores - scores.max(axis=1, keepdims=True)
        own = np.einsum("ik,ik->i", shifted, self.target)
        np.exp(shifted, out=shifted)
        total = shifted.sum(axis=1)
        shifted /= total[:, None]
        return shifted, float(self.weight @ (np.log(total) - own))

    def gradient(self, probability: FloatArray) -> FloatArray:
        """Return the derivative of the loss by the weights, (feature, category)."""
        return self._products(self.weight[:, None] * self.residual(probability))

    def _products(self, columns: FloatArray) -> FloatArray:
        """Return the products of features and columns (sample, category), in float64."""
        with np.errstate(over="ignore", invalid="ignore"):
            product = self.features @ columns.astype(self.features.dtype, copy=False)
        return product.astype(np.float64, copy=False)

    def residual(self, probability: FloatArray) -> FloatArray:
        """Return probability - target, exact also where the probability is nearly one."""
        return np.where(self.target > 0, -others(probability), probability)

    def restore(self, solution: Solution) -> Solution:
        """Return the solution for the features as they were before centring."""
        return replace(solution, intercept=solution.intercept - self.offset @ solution.coef)


def others(probability: FloatArray) -> FloatArray:
    """Return 1 - probability, (sample, category), as the sum of the other probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> others(np.array([[1 - 1e-30, 1e-30]]))
    array([[1.e-30, 1.e+00]])
    """
    n_classes = probability.shape[1]
    return probability @ (1 - np.eye(n_classes))
