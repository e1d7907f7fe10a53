"""The default solver: ADMM with a preconditioner that makes every step explicit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject.context.iteration import GeneralIteration, Iteration
from hsreject.context.kernels.compilation import announcing, are_loaded
from hsreject.context.kernels.site_row import Steps
from hsreject.context.problem import Array, Problem, Solution, State
from hsreject.context.solvers.base import (
    COMPILING,
    FIRST_SLOPE,
    Journal,
    Solver,
    Stop,
    starting_state,
)
from hsreject.errors import InputError

if TYPE_CHECKING:
    from hsreject.context.workers import Workers
    from hsreject.progress import ProgressCallback

WARM = 1000  # how many iterations a start counts for
TINY_EVERY = 100  # iterations after which tiny numbers are forgotten


class PreconditionedADMM(Solver):
    r"""Preconditioned ADMM, also known as the over-relaxed primal-dual method.

    .. math::
        x &= siteprox(Z - \tau H'Y, \tau), & \bar Z &= 2x - Z, & Z &\leftarrow Z + \rho (x - Z) \\
        T &= prox_{\sigma g^*}(Y + \sigma H \bar Z), & & & Y &\leftarrow Y + \rho (T - Y)

    with :math:`\tau = step / L`, L the summed strengths of the priors, and :math:`\sigma = 1 /
    (\tau \|H\|^2)`. No linear system is solved: every prior works, whatever its operator, with
    nodata and edge weights. The step before a certificate is exact and not over-relaxed, so that Z
    is on the simplex and Y feasible. Before that the site prox of iteration n may miss its two
    equations by :math:`10 / (n + 9)^2`: most pixels then need one pass instead of two. The method
    converges with errors of finite sum (Condat), and the certificate holds whatever came before.

    On Indian Pines steps of 0.1 to 0.2 need the same iterations within two, and relaxations of 1.8
    to 1.9 within one; a start from the probabilities, or a step that changes on the way, does not
    save any.

    Parameters
    ----------
    step : float, above 0
        Size of the primal step, in units of 1 / L. It changes the speed, not the answer.
    relaxation : float, 1 to below 2
        Over-relaxation rho.

    References
    ----------
    A. Chambolle, T. Pock, "A first-order primal-dual algorithm for convex problems with
    applications to imaging", J. Math. Imaging Vis. 40, 2011; L. Condat, J. Optim. Theory Appl.
    158, 2013 (relaxation, errors).
    """

    def __init__(self, *, step: float = 0.15, relaxation: float = 1.85) -> None:
        if not step > 0:
            raise InputError(f"step must be above 0 (got {step}).")
        if not 1 <= relaxation < 2:
            raise InputError(f"relaxation must be at least 1 and below 2 (got {relaxation}).")
        self.step = step
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
        field, duals = starting_state(problem, start)
        iteration = _iteration(problem, field, duals)
        relaxed, exact = (self._steps(problem, rho) for rho in (self.relaxation, 1.0))
        first_check = 2 if start is not None else _usual_iterations(problem.strength, stop.tol)
        journal = Journal(problem, stop, progress, next_check=first_check)
        if not are_loaded(iteration.kernels, field.dtype):
            with announcing(lambda: progress(COMPILING, 0, None)):
                iteration.compile(exact, workers)
        n_before = 0 if start is None else WARM  # a good start must not be blurred
        n_iterations = 0
        while True:
            n_iterations += 1
            due = journal.is_due(n_iterations)
            if n_iterations % TINY_EVERY == 0:
                iteration.forget_tiny(workers)
            iteration.step(exact if due else _inexact(relaxed, n_before + n_iterations), workers)
            journal.tick(n_iterations)
            if due and journal.note(n_iterations, iteration.certify(workers)):
                return journal.solution(State(field, duals))

    def _steps(self, problem: Problem, relaxation: float) -> Steps:
        tau = self.step / problem.strength
        squared_norm = sum(term.squared_norm for term in problem.terms)
        sigma = 1 / (tau * squared_norm) if squared_norm > 0 else 1.0
        n_classes = problem.probability.shape[1]
        rounding = float(np.finfo(problem.probability.dtype).eps)
        return Steps(tau, sigma, relaxation, rounding * (32 + 2 * n_classes) * (1 + tau))


def _inexact(steps: Steps, n_iterations: int) -> Steps:
    """Return the steps of an iteration whose site prox may be off by a little."""
    tolerance = max(10 / (n_iterations + 9) ** 2, steps.site_tolerance)
    return steps._replace(site_tolerance=tolerance)


def _usual_iterations(strength: float, tol: float) -> int:
    """Return how many iterations a scene usually needs, which saves a certificate on the way.

    For a gap of 1e-3, Indian Pines needs 11 to 15, 22 to 28, 42 to 48 and 75 to 87 iterations with
    weights of 0.5, 1, 2 and 4, by classifier and features; smaller gaps are forecast from there.
    """
    usual: float = 23 * strength**0.9 * (max(tol, 1e-3) / 1e-3) ** (1 / FIRST_SLOPE)
    return round(min(max(usual, 8), 128))


def _iteration(problem: Problem, field: Array, duals: tuple[Array, ...]) -> Iteration:
    fused = None
    if len(problem.terms) == 1:
        fused = problem.terms[0].fuse(problem.probability, field, duals[0])
    return fused or GeneralIteration(problem, field, duals)
