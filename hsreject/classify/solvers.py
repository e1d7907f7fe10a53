"""The solvers of the sparse regression by name, and what is said when one did not get there."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from hsreject.classify.lorsal import lorsal
from hsreject.classify.proximal_newton import proximal_newton
from hsreject.errors import NotConvergedWarning

if TYPE_CHECKING:
    from hsreject.classify.multinomial import MultinomialProblem, Solution

SOLVERS = {"proximal_newton": proximal_newton, "lorsal": lorsal}


def solve(
    problem: MultinomialProblem,
    sparsity: float,
    *,
    solver: str,
    tol: float,
    max_iter: int,
    start: Solution | None = None,
) -> Solution:
    """Solve by the named solver; warn, with the gap and the knob to turn, if not certified."""
    solution = SOLVERS[solver](problem, sparsity, tol=tol, max_iter=max_iter, start=start)
    if not solution.converged:
        gap = solution.duality_gap / max(solution.objective, 1e-300)
        warnings.warn(
            f"The sparse regression stopped after {solution.n_iterations} iterations with a "
            f"duality gap of {gap:.1e} of its objective (tol={tol:g}). "
            f"{_advice(sparsity, exhausted=solution.n_iterations >= max_iter)}",
            NotConvergedWarning,
            stacklevel=5,  # whoever called fit
        )
    return solution


def _advice(sparsity: float, *, exhausted: bool) -> str:
    if exhausted:
        return "Raise max_iter, tol or sparsity."
    if sparsity == 0:
        return "Without sparsity the bound is loose: give a small positive sparsity."
    return "Rounding does not let it come closer: raise tol, or standardise the features."
