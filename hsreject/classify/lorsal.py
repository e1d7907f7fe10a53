"""LORSAL: the readable reference solver of the sparse regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject.classify.multinomial import Solution, duality_gap

if TYPE_CHECKING:
    from hsreject.classify.multinomial import FloatArray, MultinomialProblem

_RELAXATION = 1.6
_CHECK_EVERY = 10
_IMBALANCE = 5.0


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
