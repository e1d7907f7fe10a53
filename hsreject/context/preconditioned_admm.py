"""The default solver: ADMM with a preconditioner that makes every step explicit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from hsreject.context.problem import Array, Problem
from hsreject.context.site_kernels import Steps, new_multipliers, site_rows
from hsreject.context.solver import (
    CACHED,
    FIRST_SLOPE,
    Journal,
    Solver,
    objective_and_bound,
    settle,
    site_step,
    site_tolerance,
)
from hsreject.registry import check_number
from hsreject.threads import Threads

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
        self.step = check_number("step", step, above=0)
        self.relaxation = check_number("relaxation", relaxation, least=1, below=2)

    def solve(self, problem: Problem, journal: Journal, threads: Threads) -> Array:
        """Return the field, (y, category, x), whose certificate ends the journal."""
        field, duals = problem.start()
        (term, *others), (dual, *_) = problem.terms, duals
        fused = None if others else term.fuse(problem.probability, field, dual)
        iteration = fused or GeneralIteration(problem, field, duals)
        relaxed, exact = (self._steps(problem, rho) for rho in (self.relaxation, 1.0))
        journal.next_check = _usual_iterations(problem.strength, journal.tol)
        if iteration.kernel.first_use is not None:
            journal.progress(iteration.kernel.first_use, 0, None)
        while True:
            due = journal.begin_iteration()
            if journal.n_iterations % TINY_EVERY == 0:
                for array in (field, *duals):
                    _forget_tiny(array, threads)
            inexactness = max(10 / (journal.n_iterations + 9) ** 2, relaxed.site_tolerance)
            steps = exact if due else relaxed._replace(site_tolerance=inexactness)
            iteration.step(steps, threads)
            if due:
                settle(problem.terms, field, threads)
                if journal.note(*iteration.objective_and_bound(threads)):
                    return field

    def _steps(self, problem: Problem, relaxation: float) -> Steps:
        # Condat proves convergence for tau sigma |H|^2 <= 1. H stacks the operators of all terms,
        # and its squared norm is at most the sum of theirs. Without any edge that is 0: the duals
        # stay 0 whatever sigma is.
        tau = self.step / problem.strength
        squared_norm = sum(term.squared_norm for term in problem.terms)
        sigma = 1 / (tau * squared_norm) if squared_norm > 0 else 1.0
        return Steps(tau, sigma, relaxation, site_tolerance(problem.probability, tau))


def _usual_iterations(strength: float, tol: float) -> int:
    """Return how many iterations a scene usually needs, which saves a certificate on the way.

    For a gap of 1e-3, Indian Pines needs 11 to 15, 22 to 28, 42 to 48 and 75 to 87 iterations with
    weights of 0.5, 1, 2 and 4, by classifier and features; smaller gaps are forecast from there.
    """
    usual: float = 23 * strength**0.9 * (max(tol, 1e-3) / 1e-3) ** (1 / FIRST_SLOPE)
    return round(min(max(usual, 8), 128))


def _forget_tiny(array: Array, threads: Threads) -> None:
    """Set unknowns that approach 0 to 0.

    Over-relaxation shrinks them by the same factor in every iteration, so they never reach 0. After
    200 iterations of single precision their squares would be denormal numbers, with which an
    iteration takes three times as long.
    """
    numbers = array.ravel(order="K")  # a view
    tiny = 0.01 * np.finfo(array.dtype).eps

    def forget(first: int, last: int) -> None:
        part = numbers[first:last]
        part *= np.abs(part) > tiny

    threads.share(numbers.size, forget, most=CACHED)  # no second copy of a large dual


class Iteration(ABC):
    """Z and Y of a running solver, and how to move and to judge them."""

    kernel: Any  # the first compiled function that a step calls

    @abstractmethod
    def step(self, steps: Steps, threads: Threads) -> None:
        """Update Z and Y in place."""

    @abstractmethod
    def objective_and_bound(self, threads: Threads) -> tuple[float, float]:
        """Return F(Z) and the lower bound of min F by Y as they are: after relaxation 1."""


class GeneralIteration(Iteration):
    """The iteration in terms of what every term has."""

    kernel = site_rows

    def __init__(self, problem: Problem, field: Array, duals: tuple[Array, ...]) -> None:
        self.problem = problem
        self.field = field
        self.duals = duals
        self.multipliers = new_multipliers(field.shape, field.dtype)
        self.other_multipliers = new_multipliers(field.shape, field.dtype)
        self.buffer = np.empty_like(field)  # H'Y before the site step, Zbar after it

    def step(self, steps: Steps, threads: Threads) -> None:
        """Update Z and Y in place."""
        # two sets in turn: the guess of a pixel is from the iteration before last (see step_chunk)
        self.multipliers, self.other_multipliers = self.other_multipliers, self.multipliers
        self.buffer.fill(0)
        terms = tuple(zip(self.problem.terms, self.duals, strict=True))
        for term, dual in terms:
            term.add_adjoint(dual, self.buffer, threads)
        probability, multipliers = self.problem.probability, self.multipliers
        site_step(self.field, probability, self.buffer, multipliers, steps, threads)
        options = {"step": steps.dual, "relaxation": steps.relaxation}
        for term, dual in terms:
            term.update_dual(dual, self.buffer, **options, threads=threads)

    def objective_and_bound(self, threads: Threads) -> tuple[float, float]:
        """Return F(Z) and the lower bound of min F by Y as they are."""
        return objective_and_bound(self.problem, self.field, self.duals, threads)
