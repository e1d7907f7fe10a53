"""The sparse multinomial regression problem, and a proven bound on the distance to its optimum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import xlogy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.floating[Any]]

# Below this share of a feature's size its spread is rounding, and the feature is constant.
_CONSTANT = 64 * np.finfo(np.float64).eps
# Class totals that agree to this are equal.
_ROUNDING = 16 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Solution:
    """What a solver found, and how far it can be from the optimum."""

    coef: FloatArray  # the weights W, (feature, category)
    intercept: FloatArray  # b, (category,); of centred features until `restore` of the problem
    objective: float  # F(W, b)
    duality_gap: float  # a proven bound: F(W, b) - min F is never larger
    n_iterations: int
    converged: bool  # whether the gap reached the tolerance


@dataclass(frozen=True)
class MultinomialProblem:
    """Samples of a sparse multinomial regression, ready for a solver.

    Over weights W (feature, category) and intercepts b (category,) it minimises F(W, b), the
    objective of :class:`~hsreject.SparseMultinomialRegression` with the loss of sample i weighted
    by v_i. Features are centred here: the free intercept makes that an equivalent problem, and a
    far better conditioned one.
    """

    features: FloatArray  # (feature, sample): centred, one contiguous row per feature
    offset: FloatArray  # (feature,): what centring took away
    target: FloatArray  # (sample, category): 1 where the sample has the category, 0 elsewhere
    weight: FloatArray  # (sample,): positive

    @classmethod
    def from_samples(
        cls, features: FloatArray, codes: NDArray[np.intp], weight: FloatArray | None = None
    ) -> MultinomialProblem:
        """Return the problem of `features` (sample, feature) and class numbers from 0 on."""
        codes = np.asarray(codes)
        weight = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
        offset = weight @ features / weight.sum()
        centered = np.empty((features.shape[1], len(codes)))
        np.subtract(features.T, offset[:, None], out=centered)
        spread = np.sqrt(np.einsum("ji,ji->j", centered, centered) / len(codes))
        centered[spread <= _CONSTANT * np.abs(offset)] = 0.0
        return cls(centered, offset, np.eye(codes.max() + 1)[codes], weight)

    @cached_property
    def class_weight(self) -> FloatArray:
        """Total sample weight of each category."""
        return self.weight @ self.target

    @cached_property
    def class_totals(self) -> FloatArray:
        """Weighted sum of the features of each category, (feature, category).

        Features are centred, so this is minus the gradient wherever all weights are zero.
        """
        return self.features @ (self.weight[:, None] * self.target)

    @property
    def null_intercept(self) -> FloatArray:
        """The best intercepts when all weights are zero: logarithms of the class shares."""
        return np.asarray(np.log(self.class_weight / self.weight.sum()))

    def null_objective(self) -> float:
        """Return F at zero weights and their best intercepts."""
        return float(-self.class_weight @ self.null_intercept)

    def scores(self, coef: FloatArray, intercept: FloatArray) -> FloatArray:
        """Return W'h + b, (sample, category)."""
        used = np.flatnonzero(coef.any(axis=1))
        return self.features[used].T @ coef[used] + intercept

    def probability_and_loss(self, scores: FloatArray) -> tuple[FloatArray, float]:
        """Return the class probabilities (sample, category) and the loss, without the penalty."""
        # The largest score becomes 0: exp cannot overflow, and the total is at least 1.
        shifted = scores - scores.max(axis=1, keepdims=True)
        own = np.einsum("ik,ik->i", shifted, self.target)
        np.exp(shifted, out=shifted)
        total = shifted.sum(axis=1)
        shifted /= total[:, None]
        return shifted, float(self.weight @ (np.log(total) - own))

    def gradient(self, probability: FloatArray) -> FloatArray:
        """Return the derivative of the loss by the weights, (feature, category)."""
        return self.features @ (self.weight[:, None] * self.residual(probability))

    def residual(self, probability: FloatArray) -> FloatArray:
        """Return probability - target, exact also where the probability is nearly one."""
        return np.where(self.target > 0, -others(probability), probability)

    def restore(self, solution: Solution) -> Solution:
        """Return the solution for the features as they were before centring."""
        return replace(solution, intercept=solution.intercept - self.offset @ solution.coef)


def others(probability: FloatArray) -> FloatArray:
    """Return 1 - probability, (sample, category), as the sum of the other probabilities.

    A difference from 1 would lose the digits of a probability that is nearly one.
    """
    n_classes = probability.shape[1]
    return probability @ (1 - np.eye(n_classes))


def duality_gap(
    problem: MultinomialProblem,
    probability: FloatArray,
    gradient: FloatArray,
    *,
    objective: float,
    sparsity: float,
) -> float:
    """Bound the distance of an objective value from the optimum.

    The conjugate of log-sum-exp is the negative entropy on the simplex, so the Fenchel dual of
    :class:`MultinomialProblem` is, over U (sample, category) with every row on the simplex,

        maximise  D(U) = -sum_i v_i sum_k U_ik log U_ik
        subject to  |sum_i v_i h_ij (Y_ik - U_ik)| <= sparsity    (the penalty)
                    sum_i v_i (Y_ik - U_ik) = 0                   (the free intercepts)

    and any feasible U proves F(W, b) - min F <= F(W, b) - D(U). At the optimum U is the
    probability P. Away from it two steps make the probability feasible, exactly:

    1. *Intercepts.* Let c_k = sum_i v_i (Y_ik - P_ik). Mixing every row with one distribution,
       U = (1 - t) P + t q, q_k = n_k / n + (1 - t) c_k / (t n), with n_k the weight of class k
       and n that of all, meets the second constraint for any t that leaves q >= 0; the
       smallest is t = max_k -c_k / (n_k - c_k).
    2. *Penalty.* Y itself is feasible, so (1 - s) Y + s U is feasible for
       s = min(1, sparsity / max_jk |sum_i v_i h_ij (Y_ik - U_ik)|) and stays on the simplex.

    `probability` (sample, category), `gradient` (feature, category) of the loss and `objective` are
    those at the weights and intercepts in question. Up to rounding, the result is never smaller
    than F(W, b) - min F.
    """
    dual, slack = _meet_intercepts(problem, probability, gradient)
    shrink = min(1.0, sparsity / max(float(np.abs(slack).max(initial=0.0)), sparsity))
    dual = problem.target + shrink * (dual - problem.target)
    return objective + float(problem.weight @ xlogy(dual, dual).sum(axis=1))


def _meet_intercepts(
    problem: MultinomialProblem, probability: FloatArray, gradient: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return U with the class totals of the samples, and its inner product with the features."""
    class_weight = problem.class_weight
    missing = class_weight - problem.weight @ probability
    missing -= missing.mean()  # rows of probability sum to one up to rounding
    mix = float(np.max(-missing / (class_weight - missing)))
    if mix <= _ROUNDING:
        return probability, gradient
    # mix is above 0 here, and so large that `common` is negative by rounding at most
    total = problem.weight.sum()
    common = np.maximum(class_weight + (1 - mix) / mix * missing, 0.0) / total
    dual = (1 - mix) * probability + mix * common
    # Features are centred with the same weights, so `common` alone adds nothing to the second term.
    return dual, (1 - mix) * gradient - mix * problem.class_totals
