"""How far from the optimum a sparse multinomial regression can be: a proven bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import xlogy

if TYPE_CHECKING:
    from hsreject.classify.multinomial import FloatArray, MultinomialProblem


_ROUNDING = 16 * np.finfo(np.float64).eps


def duality_gap(
    problem: MultinomialProblem,
    probability: FloatArray,
    gradient: FloatArray | None = None,
    *,
    objective: float,
    sparsity: float,
) -> float:
    """Bound the distance of an objective value from the optimum.

    The conjugate of log-sum-exp is the negative entropy on the simplex, so the Fenchel dual of
    :class:`~hsreject.classify.multinomial.MultinomialProblem` is, over U (sample, category) with
    every row on the simplex,

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

    Parameters
    ----------
    problem : MultinomialProblem
        The problem.
    probability : array (sample, category)
        Class probabilities at the current weights and intercepts.
    gradient : array (feature, category), optional
        Derivative of the loss by the weights there, if it is known.
    objective : float
        F there.
    sparsity : float
        Weight of the penalty.

    Returns
    -------
    float
        Never smaller than F(W, b) - min F, but for rounding.
    """
    dual, slack = _meet_intercepts(problem, probability, gradient)
    if sparsity > 0:
        shrink = min(1.0, sparsity / max(float(np.abs(slack).max(initial=0.0)), sparsity))
        dual = problem.target + shrink * (dual - problem.target)
    else:
        dual = _meet_features(problem, dual)
    return objective + float(problem.weight @ xlogy(dual, dual).sum(axis=1))


def _meet_intercepts(
    problem: MultinomialProblem, probability: FloatArray, gradient: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return U with the class totals of the samples, and its inner product with the features."""
    class_weight = problem.class_weight
    missing = class_weight - problem.weight @ probability
    missing -= missing.mean()  # rows of probability sum to one but for rounding
    mix = float(np.max(-missing / (class_weight - missing)))
    if mix <= _ROUNDING:
        return probability, problem.gradient(probability) if gradient is None else gradient
    total = problem.weight.sum()
    common = np.maximum(class_weight + (1 - mix) / mix * missing, 0.0) / total
    dual = (1 - mix) * probability + mix * common
    if gradient is None:
        return dual, problem.gradient(dual)
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
