"""The reference solver: ADMM as in the papers, short enough to be checked by eye."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hsreject.context.certificate import certify
from hsreject.context.problem import Array, Certificate, Problem, Solution, State
from hsreject.context.site_prox import site_prox
from hsreject.context.solvers.base import Journal, Solver, Stop, starting_state
from hsreject.context.solvers.quadratic import quadratic_step
from hsreject.errors import InputError

if TYPE_CHECKING:
    from hsreject.context.workers import Workers
    from hsreject.progress import ProgressCallback


class ADMM(Solver):
    r"""Alternating direction method of multipliers with one split for each part of the objective.

    The field Z is copied into U (data and simplex) and into :math:`V_j = H_j Z` (priors). With
    scaled multipliers D, penalty :math:`\mu = penalty \cdot L` (L the summed strengths of the
    priors) and over-relaxation :math:`\hat A = \rho A + (1 - \rho) B` of a copy A towards its
    last value B:

    .. math::
        Z &= (I + \sum_j H_j'H_j)^{-1} (U - D_0 + \sum_j H_j'(V_j - D_j)) \\
        U &= siteprox(\hat Z + D_0, 1/\mu), & D_0 &\leftarrow D_0 + \hat Z - U \\
        V_j &= prox_{g_j/\mu}(\widehat{H_j Z} + D_j), & D_j &\leftarrow D_j + \widehat{H_j Z} - V_j

    U is on the simplex and :math:`Y_j = \mu D_j` is a subgradient of :math:`g_j`: both are
    feasible, so that the certificate of :func:`~hsreject.context.certificate.certify` holds at
    any iteration.

    Parameters
    ----------
    penalty : float, above 0
        Penalty of the splits, in units of L. It changes the speed, not the answer.
    relaxation : float, 1 to below 2
        Over-relaxation rho.

    References
    ----------
    M. Afonso, J. Bioucas-Dias, M. Figueiredo, "An augmented Lagrangian approach to the
    constrained optimization formulation of imaging inverse problems", IEEE Trans. Image Process.
    20, 2011 (SALSA).
    """

    def __init__(self, *, penalty: float = 2.0, relaxation: float = 1.8) -> None:
        if not penalty > 0:
            raise InputError(f"penalty must be above 0 (got {penalty}).")
        if not 1 <= relaxation < 2:
            raise InputError(f"relaxation must be at least 1 and below 2 (got {relaxation}).")
        self.penalty = penalty
        self.relaxation = relaxation

    def solve(
        self,
        problem: Problem,
        *,
        stop: Stop,
        start: State | None,
        workers: Workers,
        progress: ProgressCallback,
    ) -> Solution:
        """Return a solution whose gap is at most `stop.tol`, or the last one before the limit."""
        penalty = self.penalty * problem.strength
        rho = self.relaxation
        quadratic = quadratic_step(problem)
        field, duals = starting_state(problem, start)
        terms = problem.terms
        site = field
        site_multiplier = -_pull(problem, duals) / penalty
        copies = [term.forward(field) for term in terms]
        multipliers = [dual / penalty for dual in duals]
        journal = Journal(problem, stop, progress)
        n_iterations = 0
        while True:
            n_iterations += 1
            right = site - site_multiplier
            for term, copy, multiplier in zip(terms, copies, multipliers, strict=True):
                right = right + term.adjoint(copy - multiplier)
            field = quadratic(right, field)

            relaxed = rho * field + (1 - rho) * site + site_multiplier
            site = site_prox(relaxed, problem.probability, 1 / penalty, workers=workers)
            site_multiplier = relaxed - site
            for j, term in enumerate(terms):
                relaxed = rho * term.forward(field) + (1 - rho) * copies[j] + multipliers[j]
                copies[j] = term.prox(relaxed, 1 / penalty)
                multipliers[j] = relaxed - copies[j]

            journal.tick(n_iterations)
            if journal.is_due(n_iterations):
                duals = tuple(penalty * multiplier for multiplier in multipliers)
                if journal.note(n_iterations, _certify(problem, site, duals, workers)):
                    return journal.solution(State(site, duals))


def _pull(problem: Problem, duals: tuple[Array, ...]) -> Array:
    pulls = [term.adjoint(dual) for term, dual in zip(problem.terms, duals, strict=True)]
    return sum(pulls[1:], start=pulls[0])


def _certify(
    problem: Problem, site: Array, duals: tuple[Array, ...], workers: Workers
) -> Certificate:
    return certify(problem, site, duals, _pull(problem, duals), workers)
