"""Proximal Newton method with a working set: the default solver of the sparse regression."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from hsreject.classify.multinomial import Solution, duality_gap, others
from hsreject.compilation import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.classify.multinomial import FloatArray, MultinomialProblem

# The penalty falls by at most this factor per iteration.
_CONTINUATION = 0.1
# Accuracy of the inner problem, as a share of the violation that it starts from.
_INNER_ACCURACY = 0.05
_SUFFICIENT_DECREASE = 1e-4
_SMALLEST_STEP = 1e-10
_PATIENCE = 10  # iterations without a measurable fall of the objective
_PASSES = 20  # of coordinate descent between two solutions on the support
_ROUNDS = 50  # of passes and a solution on the support
_FEW = 4  # zeros at once, up to which the inverse is corrected rather than factorised anew


def proximal_newton(
    problem: MultinomialProblem,
    sparsity: float,
    *,
    tol: float,
    max_iter: int,
) -> Solution:
    """Solve a sparse multinomial regression by Newton steps on the weights that matter.

    At the optimum most weights are zero, and the gradient says which may stay so. An iteration

    1. takes the gradient and the duality gap, which says how far the optimum can be;
    2. chooses a working set: the nonzero weights and, for each class, the zero weights that
       violate optimality most;
    3. minimises the second-order model of the loss plus the penalty over the working set and all
       intercepts (a small quadratic problem whatever the number of samples) and goes there, or
       part of the way.

    The penalty starts at a tenth of what zeroes all weights and falls, at most tenfold per
    iteration, to `sparsity`: few weights are nonzero early, so working sets stay small. The true
    Hessian makes the last iterations converge quadratically.

    The solver stops when the duality gap is below `tol` times the objective. An objective below
    `tol` times that of zero weights counts as that, because with little sparsity it is nearly 0.
    """
    now = _Iterate.begin(problem)
    gradient = -problem.class_totals  # exact at zero weights
    floor = tol * problem.null_objective()
    idle = 0
    while True:
        # 1. how far can the optimum be?
        objective = now.loss + sparsity * float(np.abs(now.coef).sum())
        gap = duality_gap(
            problem, now.probability, gradient, objective=objective, sparsity=sparsity
        )
        converged = bool(gap <= tol * max(objective, floor))
        if converged or idle > _PATIENCE or now.n_iterations == max_iter:
            return Solution(now.coef, now.intercept, objective, gap, now.n_iterations, converged)
        # 2. which weights matter? The penalty is soon the sparsity, and stays so.
        steepest = float(np.abs(gradient).max())
        now.penalty = max(sparsity, min(now.penalty, _CONTINUATION * steepest))
        row, column = _working_set(now.coef, gradient, now.penalty)
        # 3. go to their best values, or part of the way
        direction = _newton_direction(problem, now, row, column)
        idle = 0 if _advance(problem, now, direction) else idle + 1
        gradient = problem.gradient(now.probability)
        now.n_iterations += 1


@dataclass
class _Iterate:
    """Weights and intercepts, with what follows from them and how far the descent has come."""

    coef: FloatArray
    intercept: FloatArray
    scores: FloatArray
    probability: FloatArray
    loss: float
    penalty: float = np.inf
    n_iterations: int = 1

    @classmethod
    def begin(cls, problem: MultinomialProblem) -> _Iterate:
        coef = np.zeros((len(problem.features), problem.target.shape[1]))
        intercept = problem.null_intercept
        scores = problem.scores(coef, intercept)
        return cls(coef, intercept, scores, *problem.probability_and_loss(scores))


@dataclass(frozen=True)
class _Direction:
    """A step in some of the weights (those at `row`, `column`) and in all intercepts.

    `slope` is the derivative of the loss along it, `scores` (sample, category) what it adds.
    """

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    coef: FloatArray
    intercept: FloatArray
    scores: FloatArray
    slope: float


def _working_set(
    coef: FloatArray, gradient: FloatArray, penalty: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return row and column of the weights to move, ordered by column.

    Choosing per class matters: the worst violators overall are neighbours of one class, which say
    the same thing many times.
    """
    n_features, n_classes = coef.shape
    nonzero = coef != 0
    # Over all classes this adds about 64 weights, half as many as are nonzero, or two per class,
    # whichever is most: the quadratic problem stays small, and the set can still grow quickly.
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
) -> _Direction:
    """Minimise the second-order model plus penalty over the chosen weights and all intercepts.

    Intercepts have no penalty: for given weights their best values solve a linear system. Putting
    these in (a Schur complement) leaves a quadratic problem in the weights alone.
    """
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
    move = _penalized_quadratic(curvature, reduced, coef, now.penalty) - coef
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
    # The matrix is singular along (1, ..., 1). A constant matrix, whose eigenvalue there is the
    # mean of the diagonal, fills that direction, in which nothing pulls, and leaves all others
    # alone.
    own += own.trace() / n_classes**2  # a constant added to all intercepts changes nothing
    np.fill_diagonal(own, own.diagonal() * (1 + 1e-12))
    return curvature, coupling, own


def _rows_of_classes(column: NDArray[np.intp], n_classes: int) -> list[slice]:
    """Return where the weights of each category stand; they are ordered by it."""
    border = np.searchsorted(column, np.arange(n_classes + 1))
    return [slice(first, last) for first, last in pairwise(border)]


def _advance(problem: MultinomialProblem, now: _Iterate, direction: _Direction) -> bool:
    """Go along the direction, halving it until the objective falls enough; return whether it fell.

    When the fall to expect is below the rounding of the objective, the step is taken on trust: the
    gap, which is first order in the error, still has digits where the objective has none.
    """
    place = (direction.row, direction.column)
    coef = now.coef[place]
    absolute = float(np.abs(coef).sum())
    growth = float(np.abs(coef + direction.coef).sum()) - absolute
    # What the objective would change by if the loss were linear, negative on a way down. A step is
    # accepted when it brings a small part of that (Armijo's rule, with the penalty as in Tseng and
    # Yun, Math. Program. 117, 2009).
    promised = direction.slope + now.penalty * growth
    size = 1 + np.abs(now.scores).max(axis=1)
    rounding = float(np.finfo(np.float64).eps * (problem.weight @ size))
    step = 1.0
    while step > _SMALLEST_STEP:
        scores = now.scores + step * direction.scores
        probability, loss = problem.probability_and_loss(scores)
        change = float(np.abs(coef + step * direction.coef).sum()) - absolute
        fall = now.loss - loss - now.penalty * change
        if fall >= -_SUFFICIENT_DECREASE * step * promised - rounding:
            now.coef[place] = coef + step * direction.coef
            now.intercept = now.intercept + step * direction.intercept
            now.scores, now.probability, now.loss = scores, probability, loss
            return bool(fall > rounding)
        step /= 2
    return False


def _penalized_quadratic(
    curvature: FloatArray, gradient: FloatArray, coef: FloatArray, penalty: float
) -> FloatArray:
    """Minimise g'd + d'Qd/2 + penalty * ||w + d||_1 over d; return w + d.

    Passes of coordinate descent find which coordinates are zero; the linear system of the others
    then moves them all at once, because correlated features would make single moves creep.
    """
    violation = np.where(
        coef != 0,
        np.abs(gradient + penalty * np.sign(coef)),
        np.abs(gradient) - penalty,
    )
    tol = _INNER_ACCURACY * float(violation.max(initial=0.0))
    updated, slope = coef.copy(), gradient.copy()
    for _ in range(_ROUNDS):
        if _descend(curvature, slope, updated, penalty, tol, _PASSES):
            break
        _solve_on_support(curvature, slope, updated, penalty)
    return updated


@compiled
def _descend(
    curvature: FloatArray,
    slope: FloatArray,
    coef: FloatArray,
    penalty: float,
    tol: float,
    n_passes: int,
) -> bool:
    """Do passes of coordinate descent in place; return whether nothing moves any more.

    Coordinate j goes to its own minimum, a soft threshold of w_j - slope_j / Q_jj, and `slope`, the
    derivative of the quadratic at `coef`, follows. Passes over all coordinates alternate with
    passes over the nonzero ones, until a pass over all moves no derivative by more than `tol`.
    """
    everywhere = True
    for _ in range(n_passes):
        largest = 0.0
        for j in range(len(coef)):
            # No curvature: a constant feature, or probabilities of 0 and 1 on all samples. The
            # coordinate stays where it is, and nothing divides by 0.
            diagonal = curvature[j, j]
            if diagonal <= 0.0 or not (everywhere or coef[j] != 0.0):
                continue
            best = coef[j] - slope[j] / diagonal
            threshold = penalty / diagonal
            if best > threshold:
                best -= threshold
            elif best < -threshold:
                best += threshold
            else:
                best = 0.0
            move = best - coef[j]
            if move != 0.0:
                largest = max(largest, abs(move) * diagonal)
                coef[j] = best
                for other in range(len(coef)):
                    slope[other] += curvature[j, other] * move
        if everywhere and largest <= tol:
            return True
        everywhere = largest <= tol
    return False


def _solve_on_support(
    curvature: FloatArray, slope: FloatArray, coef: FloatArray, penalty: float
) -> None:
    """Move the nonzero coordinates to their joint minimum in place; some become zero on the way.

    While the minimum has other signs than the coordinates, those that would change sign stop at
    zero if that lowers the objective; if not, all stop where the first of them is zero, which
    always does. With fewer coordinates left, the system is solved again.
    """
    while coef.any():
        # Every round but the last sets a coordinate to exactly 0 and none back, so the loop ends.
        support = np.flatnonzero(coef)
        inner, now = curvature[np.ix_(support, support)], coef[support]
        gradient = slope[support] + penalty * np.sign(now)
        try:
            factor = cho_factor(inner, check_finite=False)
        except LinAlgError:
            return  # no curvature in some direction: coordinate descent goes on alone
        minimum = now - cho_solve(factor, gradient, check_finite=False)
        if crosses := (minimum * now < 0).any():
            minimum = _through_zeros(inner, factor, gradient, now, minimum - now)
        coef[support] = minimum
        slope += curvature[:, support] @ (minimum - now)
        if not crosses:
            return


def _through_zeros(
    inner: FloatArray,
    factor: tuple[FloatArray, bool],
    gradient: FloatArray,
    coef: FloatArray,
    move: FloatArray,
) -> FloatArray:
    """Return the coordinates after moves that each stop where some of them become zero.

    Without coordinate j the inverse of the curvature is H - H_j H_j' / H_jj: far cheaper than
    another factor. Where many become zero at once a new factor is cheaper, and comes next.
    """
    inverse = cho_solve(factor, np.eye(len(coef)), check_finite=False)
    coef, gradient = coef.copy(), gradient.copy()
    while len(crossing := np.flatnonzero((coef + move) * coef < 0)):
        before = coef != 0
        move = _stop_at_zero(inner, gradient, coef, move, crossing)
        coef += move
        gradient += inner @ move
        zeroed = np.flatnonzero(before & (coef == 0))
        if len(zeroed) > _FEW:
            break
        for j in zeroed:
            column = inverse[j].copy()
            inverse -= np.outer(column, column / column[j])
            inverse[j] = inverse[:, j] = 0.0
        move = -(inverse @ gradient)
    return coef


def _stop_at_zero(
    inner: FloatArray,
    gradient: FloatArray,
    now: FloatArray,
    move: FloatArray,
    crossing: NDArray[np.intp],
) -> FloatArray:
    """Return the move, cut so that no coordinate changes sign."""
    clipped = move.copy()
    clipped[crossing] = -now[crossing]
    if gradient @ clipped + clipped @ inner @ clipped / 2 < 0:
        return clipped
    # Up to the first zero no sign changes, so the penalty is linear there and the objective is the
    # quadratic whose minimum is the full move: every part of the way towards it goes down. The
    # first zero is set, not computed, because rounding would miss it.
    share = -now[crossing] / move[crossing]
    shortened: FloatArray = share.min() * move
    first = crossing[share.argmin()]
    shortened[first] = -now[first]
    return shortened
