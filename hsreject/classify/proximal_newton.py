"""Proximal Newton method with a working set: the default solver of the sparse regression."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from hsreject.classify.coordinate_descent import penalised_quadratic
from hsreject.classify.duality import duality_gap
from hsreject.classify.multinomial import Solution, others

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.classify.multinomial import FloatArray, MultinomialProblem

# On the way to a small sparsity, the penalty falls by at most this factor an iteration.
_CONTINUATION = 0.3
# Accuracy of the inner problem, as a share of the violation that it starts from.
_INNER_ACCURACY = 0.05
_SUFFICIENT_DECREASE = 1e-4
_SMALLEST_STEP = 1e-10
_PATIENCE = 10  # iterations without a measurable fall of the objective


@dataclass
class _Iterate:
    """Weights and intercepts with what follows from them."""

    coef: FloatArray
    intercept: FloatArray
    scores: FloatArray
    probability: FloatArray
    loss: float

    @classmethod
    def begin(cls, problem: MultinomialProblem, start: Solution | None) -> _Iterate:
        shape = (len(problem.features), problem.target.shape[1])
        coef = np.zeros(shape) if start is None else start.coef.copy()
        intercept = problem.null_intercept if start is None else start.intercept
        scores = problem.scores(coef, intercept)
        return cls(coef, intercept, scores, *problem.probability_and_loss(scores))


@dataclass(frozen=True)
class _Direction:
    """A step in some of the weights (those at `row`, `column`) and in all intercepts."""

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    coef: FloatArray
    intercept: FloatArray


def proximal_newton(
    problem: MultinomialProblem,
    sparsity: float,
    *,
    tol: float,
    max_iter: int,
    start: Solution | None = None,
) -> Solution:
    """Solve a sparse multinomial regression by Newton steps on the weights that matter.

    Each iteration takes the gradient, bounds the distance from the optimum
    (:func:`~hsreject.classify.duality.duality_gap`), chooses the nonzero weights and, for each
    class, the zero weights that violate optimality most, minimises the second-order model plus
    penalty over them and the intercepts
    (:func:`~hsreject.classify.coordinate_descent.penalised_quadratic`) and goes there, or part of
    the way. The true Hessian makes the last iterations converge quadratically; the penalty
    descends to `sparsity` geometrically, so that working sets stay small.

    Parameters
    ----------
    problem : MultinomialProblem
        The problem.
    sparsity : float
        Weight of the penalty, not negative.
    tol : float
        Stop when the duality gap is below this share of the objective. (An objective below
        `tol` times that of zero weights counts as that: with sparsity 0 the optimum may be 0.)
    max_iter : int
        Iterations at most.
    start : Solution, optional
        Where to start; zero weights by default.
    """
    now = _Iterate.begin(problem, start)
    floor = tol * problem.null_objective()
    penalty = np.inf
    idle = 0
    for iteration in range(1, max_iter + 1):
        cold = start is None and iteration == 1
        gradient = -problem.class_totals if cold else problem.gradient(now.probability)
        objective = now.loss + sparsity * float(np.abs(now.coef).sum())
        gap = duality_gap(
            problem, now.probability, gradient, objective=objective, sparsity=sparsity
        )
        converged = gap <= tol * max(objective, floor)
        if converged or iteration == max_iter or idle > _PATIENCE:
            break
        penalty = max(sparsity, min(penalty, _CONTINUATION * float(np.abs(gradient).max())))
        row, column = _working_set(now.coef, gradient, penalty)
        direction = _newton_direction(problem, now, gradient, row, column, penalty)
        fell = _advance(problem, now, gradient, direction, penalty)
        idle = 0 if fell else idle + 1
    return Solution(now.coef, now.intercept, objective, gap, iteration, converged)


def _working_set(
    coef: FloatArray, gradient: FloatArray, penalty: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return row and column of the weights to move, ordered by column.

    Choosing per class matters: the worst violators overall are neighbours of one class, which say
    the same thing many times.
    """
    n_features, n_classes = coef.shape
    nonzero = coef != 0
    count = max(2, 32 // n_classes, int(nonzero.sum()) // (2 * n_classes))
    violation = np.where(nonzero, 0.0, np.abs(gradient) - penalty)
    least = 0.0
    if count < n_features:
        least = np.maximum(np.partition(violation, -count, axis=0)[-count], 0.0)
    column, row = np.nonzero((nonzero | ((violation > 0) & (violation >= least))).T)
    return row, column


def _newton_direction(
    problem: MultinomialProblem,
    now: _Iterate,
    gradient: FloatArray,
    row: NDArray[np.intp],
    column: NDArray[np.intp],
    penalty: float,
) -> _Direction:
    """Minimise the second-order model plus penalty over the chosen weights and all intercepts."""
    curvature, coupling, own = _second_derivatives(problem, now.probability, row, column)
    slope = problem.weight @ problem.residual(now.probability)
    solved = np.linalg.solve(own, np.column_stack([coupling.T, slope]))
    chosen_gradient = gradient[row, column] - coupling @ solved[:, -1]
    curvature -= coupling @ solved[:, :-1]
    diagonal = np.einsum("ii->i", curvature)
    diagonal *= 1 + 1e-10  # collinear features: keeps every two of them distinguishable
    coef = now.coef[row, column]
    violation = np.where(
        coef != 0,
        np.abs(chosen_gradient + penalty * np.sign(coef)),
        np.abs(chosen_gradient) - penalty,
    )
    accuracy = _INNER_ACCURACY * float(violation.max(initial=0.0))
    target = penalised_quadratic(curvature, chosen_gradient, coef, penalty=penalty, tol=accuracy)
    move = target - coef
    return _Direction(row, column, move, -(solved[:, -1] + solved[:, :-1] @ move))


def _second_derivatives(
    problem: MultinomialProblem,
    probability: FloatArray,
    row: NDArray[np.intp],
    column: NDArray[np.intp],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the Hessian of the loss: weights, weights with intercepts, intercepts.

    Between (j, k) and (l, m) it is sum_i v_i h_ij h_il p_ik (1[k = m] - p_im). Where k = m, the
    last factor is the sum of the other probabilities: a difference from 1 would lose its digits.
    """
    n_classes = probability.shape[1]
    root = np.sqrt(problem.weight)
    rooted = root[:, None] * probability
    variance = rooted * others(probability)
    features = problem.features[row]
    spread = features * rooted.T[column]
    curvature = -(spread @ spread.T)
    coupling = -(spread @ rooted)
    scaled = features * (root[:, None] * variance).T[column]
    border = np.searchsorted(column, np.arange(n_classes + 1))
    for first, last in pairwise(border):
        curvature[first:last, first:last] = scaled[first:last] @ features[first:last].T
    coupling[np.arange(len(row)), column] = scaled.sum(axis=1)
    own = -(rooted.T @ rooted)
    np.fill_diagonal(own, root @ variance)
    own += own.trace() / n_classes**2  # a constant added to all intercepts changes nothing
    np.fill_diagonal(own, own.diagonal() * (1 + 1e-12))
    return curvature, coupling, own


def _advance(
    problem: MultinomialProblem,
    now: _Iterate,
    gradient: FloatArray,
    direction: _Direction,
    penalty: float,
) -> bool:
    """Go along the direction, halving it until the objective falls enough; tell if it did.

    When the fall to expect is below the rounding of the objective, the step is taken on trust: the
    gap, which is first order in the error, still has digits where the objective has none.
    """
    place = (direction.row, direction.column)
    move = np.zeros_like(now.coef)
    move[place] = direction.coef
    ahead = problem.scores(move, direction.intercept)
    coef = now.coef[place]
    absolute = float(np.abs(coef).sum())
    promised = (
        gradient[place] @ direction.coef
        + direction.intercept @ (problem.weight @ problem.residual(now.probability))
        + penalty * (float(np.abs(coef + direction.coef).sum()) - absolute)
    )
    size = 1 + np.abs(now.scores).max(axis=1)
    rounding = float(np.finfo(np.float64).eps * (problem.weight @ size))
    step = 1.0
    while step > _SMALLEST_STEP:
        scores = now.scores + step * ahead
        probability, loss = problem.probability_and_loss(scores)
        change = float(np.abs(coef + step * direction.coef).sum()) - absolute
        fall = now.loss - loss - penalty * change
        if fall >= -_SUFFICIENT_DECREASE * step * promised - rounding:
            now.coef[place] = coef + step * direction.coef
            now.intercept = now.intercept + step * direction.intercept
            now.scores, now.probability, now.loss = scores, probability, loss
            return bool(fall > rounding)
        step /= 2
    return False
