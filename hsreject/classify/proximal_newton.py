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
_CONTINUATION = 0.1
# Accuracy of the inner problem, as a share of the violation that it starts from.
_INNER_ACCURACY = 0.05
_SUFFICIENT_DECREASE = 1e-4
_SMALLEST_STEP = 1e-10
# From so many feature values on, gradients in single precision pay, until the gap is this share of
# the objective. They only say where to look: steps and certificate are in double precision.
_ROUGH_PAYS = 2**20
_ROUGH_TOL = 1e-4
_PATIENCE = 10  # iterations without a measurable fall of the objective


@dataclass
class _Iterate:
    """Weights and intercepts with what follows from them."""

    coef: FloatArray
    intercept: FloatArray
    scores: FloatArray
    probability: FloatArray
    loss: float
    is_null: bool  # zero weights and the best intercepts for them

    @classmethod
    def begin(cls, problem: MultinomialProblem, start: Solution | None) -> _Iterate:
        shape = (len(problem.features), problem.target.shape[1])
        coef = np.zeros(shape) if start is None else start.coef.copy()
        intercept = problem.null_intercept if start is None else start.intercept
        scores = problem.scores(coef, intercept)
        probability, loss = problem.probability_and_loss(scores)
        return cls(coef, intercept, scores, probability, loss, is_null=start is None)

    def gradient(self, problem: MultinomialProblem) -> FloatArray:
        """Return the derivative of the loss, in the precision of `problem`."""
        return -problem.class_totals if self.is_null else problem.gradient(self.probability)


@dataclass(frozen=True)
class _Direction:
    """A step in some of the weights (those at `row`, `column`) and in all intercepts.

    `slope` is the derivative of the loss along it, `scores` (sample, category) where it leads.
    """

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    coef: FloatArray
    intercept: FloatArray
    scores: FloatArray
    slope: float


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
    rough = problem.in_single_precision() if problem.features.size >= _ROUGH_PAYS else problem
    penalty = np.inf
    idle = 0
    for iteration in range(1, max_iter + 1):
        gradient = now.gradient(rough)
        if rough is not problem and not np.isfinite(gradient).all():
            rough, gradient = problem, now.gradient(problem)
        last = iteration == max_iter or idle > _PATIENCE
        # while the penalty descends the gap is large, except to sparsity 0, where it never gets to
        if last or iteration == 1 or sparsity in (penalty, 0):
            objective = now.loss + sparsity * float(np.abs(now.coef).sum())
            scale = max(objective, floor)
            gap = duality_gap(
                rough, now.probability, gradient, objective=objective, sparsity=sparsity
            )
            if rough is not problem and (last or gap <= max(tol, _ROUGH_TOL) * scale):
                rough = problem
                gap = duality_gap(problem, now.probability, objective=objective, sparsity=sparsity)
            converged = rough is problem and gap <= tol * scale
            if converged or last:
                break
        penalty = max(sparsity, min(penalty, _CONTINUATION * float(np.abs(gradient).max())))
        row, column = _working_set(now.coef, gradient, penalty)
        direction = _newton_direction(problem, now, row, column, penalty)
        idle = 0 if _advance(problem, now, direction, penalty) else idle + 1
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
    count = max(2, 64 // n_classes, int(nonzero.sum()) // (2 * n_classes))
    violation = np.where(nonzero, 0.0, np.abs(gradient) - penalty)
    least = 0.0
    if count < n_features:
        least = np.maximum(np.partition(violation, -count, axis=0)[-count], 0.0)
    column, row = np.nonzero((nonzero | ((violation > 0) & (violation >= least))).T)
    return row, column


def _newton_direction(
    problem: MultinomialProblem,
    now: _Iterate,
    row: NDArray[np.intp],
    column: NDArray[np.intp],
    penalty: float,
) -> _Direction:
    """Minimise the second-order model plus penalty over the chosen weights and all intercepts."""
    features = problem.features[row]
    pull = (problem.weight[:, None] * problem.residual(now.probability)).T.copy()
    rows = _rows_of_classes(column, len(pull))
    gradient = np.concatenate([features[own] @ pull[k] for k, own in enumerate(rows)])
    slope = pull.sum(axis=1)
    curvature, coupling, inner = _second_derivatives(problem, now.probability, features, column)
    solved = np.linalg.solve(inner, np.column_stack([coupling.T, slope]))
    reduced = gradient - coupling @ solved[:, -1]
    curvature -= coupling @ solved[:, :-1]
    diagonal = np.einsum("ii->i", curvature)
    diagonal *= 1 + 1e-10  # collinear features: keeps every two of them distinguishable
    coef = now.coef[row, column]
    violation = np.where(
        coef != 0,
        np.abs(reduced + penalty * np.sign(coef)),
        np.abs(reduced) - penalty,
    )
    accuracy = _INNER_ACCURACY * float(violation.max(initial=0.0))
    target = penalised_quadratic(curvature, reduced, coef, penalty=penalty, tol=accuracy)
    move = target - coef
    intercept = -(solved[:, -1] + solved[:, :-1] @ move)
    scores = intercept + np.column_stack([move[own] @ features[own] for own in rows])
    return _Direction(
        row, column, move, intercept, scores, float(gradient @ move + slope @ intercept)
    )


def _second_derivatives(
    problem: MultinomialProblem,
    probability: FloatArray,
    features: FloatArray,
    column: NDArray[np.intp],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the Hessian of the loss: weights, weights with intercepts, intercepts.

    Between (j, k) and (l, m) it is sum_i v_i h_ij h_il p_ik (1[k = m] - p_im). Where k = m, the
    last factor is the sum of the other probabilities: a difference from 1 would lose its digits.
    """
    n_classes = probability.shape[1]
    root = np.sqrt(problem.weight)
    # contiguous rows of samples, like the features
    rooted = np.multiply(root, probability.T, order="C")
    variance = np.multiply(rooted, root * others(probability).T, order="C")
    spread = features * rooted[column]
    curvature = -(spread @ spread.T)
    coupling = -(spread @ rooted.T)
    scaled = features * variance[column]
    for same in _rows_of_classes(column, n_classes):
        curvature[same, same] = scaled[same] @ features[same].T
    coupling[np.arange(len(column)), column] = scaled.sum(axis=1)
    own = -(rooted @ rooted.T)
    np.fill_diagonal(own, variance.sum(axis=1))
    own += own.trace() / n_classes**2  # a constant added to all intercepts changes nothing
    np.fill_diagonal(own, own.diagonal() * (1 + 1e-12))
    return curvature, coupling, own


def _rows_of_classes(column: NDArray[np.intp], n_classes: int) -> list[slice]:
    """Return where the weights of each category stand; they are ordered by it."""
    border = np.searchsorted(column, np.arange(n_classes + 1))
    return [slice(first, last) for first, last in pairwise(border)]


def _advance(
    problem: MultinomialProblem, now: _Iterate, direction: _Direction, penalty: float
) -> bool:
    """Go along the direction, halving it until the objective falls enough; tell if it did.

    When the fall to expect is below the rounding of the objective, the step is taken on trust: the
    gap, which is first order in the error, still has digits where the objective has none.
    """
    place = (direction.row, direction.column)
    coef = now.coef[place]
    absolute = float(np.abs(coef).sum())
    promised = direction.slope + penalty * (float(np.abs(coef + direction.coef).sum()) - absolute)
    size = 1 + np.abs(now.scores).max(axis=1)
    rounding = float(np.finfo(np.float64).eps * (problem.weight @ size))
    step = 1.0
    while step > _SMALLEST_STEP:
        scores = now.scores + step * direction.scores
        probability, loss = problem.probability_and_loss(scores)
        change = float(np.abs(coef + step * direction.coef).sum()) - absolute
        fall = now.loss - loss - penalty * change
        if fall >= -_SUFFICIENT_DECREASE * step * promised - rounding:
            now.coef[place] = coef + step * direction.coef
            now.intercept = now.intercept + step * direction.intercept
            now.scores, now.probability, now.loss = scores, probability, loss
            now.is_null = False
            return bool(fall > rounding)
        step /= 2
    return False
