"""Solutions of a sparse regression for many sparsities, each a start for the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hsreject.classify.solvers import solve
from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from hsreject.classify.multinomial import FloatArray, MultinomialProblem, Solution


@dataclass(frozen=True)
class RegressionPath:
    """Solutions along descending sparsities.

    Parameters
    ----------
    sparsity : array (point,)
        Sparsities, from the largest to the smallest.
    coef : array (point, category, function)
        Weights.
    intercept : array (point, category)
        Intercepts.
    objective, duality_gap : array (point,)
        Objective, and the proven bound on its distance from the optimum.
    n_iterations : array (point,)
        Iterations of the solver.
    """

    sparsity: FloatArray
    coef: FloatArray
    intercept: FloatArray
    objective: FloatArray
    duality_gap: FloatArray
    n_iterations: FloatArray

    @classmethod
    def of(cls, sparsities: FloatArray, solutions: list[Solution]) -> RegressionPath:
        """Return the path of the solutions."""
        return cls(
            sparsities,
            np.stack([solution.coef.T for solution in solutions]),
            np.stack([solution.intercept for solution in solutions]),
            np.array([solution.objective for solution in solutions]),
            np.array([solution.duality_gap for solution in solutions]),
            np.array([solution.n_iterations for solution in solutions]),
        )


def solve_path(
    problem: MultinomialProblem,
    sparsities: FloatArray,
    *,
    solver: str,
    tol: float,
    max_iter: int,
) -> list[Solution]:
    """Solve for each sparsity, starting at the solution before; intercepts are of raw features."""
    solutions: list[Solution] = []
    start = None
    for sparsity in sparsities:
        start = solve(
            problem, float(sparsity), solver=solver, tol=tol, max_iter=max_iter, start=start
        )
        solutions.append(problem.restore(start))
    return solutions


def sparsity_grid(
    problem: MultinomialProblem, sparsities: ArrayLike | int, smallest: float
) -> FloatArray:
    """Return descending sparsities: those given, or so many from the largest that matters down.

    Parameters
    ----------
    problem : MultinomialProblem
        Tells the smallest sparsity that zeroes all weights: the grid begins there.
    sparsities : array or int
        The values, or how many to place geometrically.
    smallest : float
        Where the grid ends, as a share of where it begins.
    """
    if isinstance(sparsities, int | np.integer) and sparsities >= 1:
        largest = max(problem.largest_sparsity(), np.finfo(np.float64).tiny)
        return np.geomspace(largest, smallest * largest, int(sparsities))
    values = np.asarray(sparsities, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all() or values.min() < 0:
        raise InputError(
            f"sparsities must be a number of points or a list of values at least 0 "
            f"(got {sparsities!r})."
        )
    return np.sort(values)[::-1]
