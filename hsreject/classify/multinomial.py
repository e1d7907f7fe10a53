"""The sparse multinomial regression problem, a proven bound, and LORSAL, its readable solver."""

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

_RELAXATION = 1.6
_CHECK_EVERY = 10
_IMBALANCE = 5.0


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

    The problem is, over weights W (feature, category) and intercepts b (category,),

        F(W, b) = -sum_i v_i log p(y_i | h_i) + sparsity * ||W||_1,
        p(k | h) = exp(h' W_k + b_k) / sum_l exp(h' W_l + b_l),

    with v_i the weight of sample i. Features are centred here: the free intercept makes that an
    equivalent problem, and a far better conditioned one.
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

    With sparsity 0 the first constraint becomes an equality and step 2 a projection of the residual
    on what is orthogonal to all features; if that leaves the simplex, Y remains, and D(Y) = 0.

    `probability` (sample, category), `gradient` (feature, category) of the loss and `objective` are
    those at the weights and intercepts in question. But for rounding, the result is never smaller
    than F(W, b) - min F.
    """
    dual, slack = _meet_intercepts(problem, probability, gradient)
    if sparsity > 0:
        shrink = min(1.0, sparsity / max(float(np.abs(slack).max(initial=0.0)), sparsity))
        dual = problem.target + shrink * (dual - problem.target)
    else:
        dual = _meet_features(problem, dual)
    return objective + float(problem.weight @ xlogy(dual, dual).sum(axis=1))


def _meet_intercepts(
    problem: MultinomialProblem, probability: FloatArray, gradient: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return U with the class totals of the samples, and its inner product with the features."""
    class_weight = problem.class_weight
    missing = class_weight - problem.weight @ probability
    missing -= missing.mean()  # rows of probability sum to one but for rounding
    mix = float(np.max(-missing / (class_weight - missing)))
    if mix <= _ROUNDING:
        return probability, gradient
    total = problem.weight.sum()
    common = np.maximum(class_weight + (1 - mix) / mix * missing, 0.0) / total
    dual = (1 - mix) * probability + mix * common
    # Features are centred with the same weights, so `common` alone adds nothing to the second term.
    return dual, (1 - mix) * gradient - mix * problem.class_totals


def _meet_features(problem: MultinomialProblem, dual: FloatArray) -> FloatArray:
    """Return the nearest U that is orthogonal to all features, or Y if it leaves the simplex."""
    root = np.sqrt(problem.weight)
    residual = root[:, None] * (dual - problem.target)
    _, size, rows = np.linalg.svd(problem.features * root, full_matrices=False)
    rows = rows[size > 1e-12 * size.max(initial=0.0)]
    met = problem.target + (residual - rows.T @ (rows @ residual)) / root[:, None]
    return met if met.min() >= 0 else problem.target


def lorsal(
    problem: MultinomialProblem,
    sparsity: float,
    *,
    tol: float,
    max_iter: int,
    start: Solution | None = None,
) -> Solution:
    """Solve a sparse multinomial regression by variable splitting and augmented Lagrangian.

    The Hessian of the loss is nowhere larger than 1/2 (I - 11'/K) (x) S with S = sum_i v_i h_i h_i'
    (Boehning 1992). With W = Z split off for the penalty, and scaled multiplier D, an iteration is

        W = argmin  <grad(W_t), W> + |W - W_t|^2_bound / 2 + penalty |W - Z - D|^2 / 2
        Z = soft threshold of (W - D) at sparsity / penalty
        D = D - (W - Z)

    The first line is linear, and one eigendecomposition of S serves all iterations: the weights
    centred over the classes are divided by eigenvalue / 2 + penalty, and their mean over the
    classes, which the bound ignores, by the penalty. Three changes to the published algorithm:
    all K classes have weights (the K - 1 form favours the last class and has another optimum),
    the penalty follows the ratio of the residuals instead of growing, and the answer is Z, which
    has true zeros, at a certified gap. It stops as `proximal_newton` does.

    Bioucas-Dias and Figueiredo, "Logistic regression via variable splitting and augmented
    Lagrangian tools", Instituto Superior Tecnico, 2009.
    """
    shape = (len(problem.features), problem.target.shape[1])
    coef = np.zeros(shape) if start is None else start.coef.copy()
    intercept = problem.null_intercept if start is None else start.intercept
    weighted = problem.features * problem.weight
    eigenvalues, vectors = np.linalg.eigh(weighted @ problem.features.T)
    split, multiplier = coef.copy(), np.zeros(shape)
    penalty = max(float(eigenvalues.mean()), np.finfo(np.float64).tiny)
    total = problem.weight.sum()
    floor = tol * problem.null_objective()
    for iteration in range(1, max_iter + 1):
        probability, loss = problem.probability_and_loss(problem.scores(coef, intercept))
        intercept = intercept - 2 / total * (problem.weight @ (probability - problem.target))
        bound_step = 0.5 * weighted @ (problem.features.T @ _centered(coef))
        pull = bound_step - problem.gradient(probability) + penalty * (split + multiplier)
        coef = _divide(pull, eigenvalues, vectors, penalty)
        relaxed = _RELAXATION * coef + (1 - _RELAXATION) * split
        previous, split = split, _soft_threshold(relaxed - multiplier, sparsity / penalty)
        multiplier -= relaxed - split
        if iteration % _CHECK_EVERY and iteration != max_iter:
            continue
        probability, loss = problem.probability_and_loss(problem.scores(split, intercept))
        objective = loss + sparsity * float(np.abs(split).sum())
        gradient = problem.gradient(probability)
        gap = duality_gap(problem, probability, gradient, objective=objective, sparsity=sparsity)
        converged = gap <= tol * max(objective, floor)
        if converged:
            break
        rescale = _rebalance(coef - split, penalty * (split - previous))
        penalty *= rescale
        multiplier /= rescale
    return Solution(split, intercept, objective, gap, iteration, converged)


def _centered(coef: FloatArray) -> FloatArray:
    return np.asarray(coef - coef.mean(axis=1, keepdims=True))


def _divide(
    pull: FloatArray, eigenvalues: FloatArray, vectors: FloatArray, penalty: float
) -> FloatArray:
    """Divide by the Hessian bound plus `penalty` times the identity."""
    mean = pull.mean(axis=1, keepdims=True)
    turned = vectors.T @ (pull - mean)
    return np.asarray(mean / penalty + vectors @ (turned / (eigenvalues[:, None] / 2 + penalty)))


def _soft_threshold(value: FloatArray, threshold: float) -> FloatArray:
    shrunk: FloatArray = np.sign(value) * np.maximum(np.abs(value) - threshold, 0.0)
    return shrunk


def _rebalance(primal: FloatArray, dual: FloatArray) -> float:
    """Return by what to multiply the penalty so that neither residual lags far behind."""
    primal_norm, dual_norm = np.linalg.norm(primal), np.linalg.norm(dual)
    if primal_norm > _IMBALANCE * dual_norm:
        return 2.0
    return 0.5 if dual_norm > _IMBALANCE * primal_norm else 1.0
