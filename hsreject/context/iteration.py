r"""One iteration of the preconditioned solver, for any list of terms.

With x = site_prox(Z - tau H'Y, tau) and T = prox of g* at Y + sigma H Zbar:

.. math:: \bar Z = 2x - Z, \quad Z \leftarrow Z + \rho (x - Z), \quad Y \leftarrow Y + \rho (T - Y).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.context.certificate import certify
from hsreject.context.kernels.certificate import site_bounds
from hsreject.context.kernels.site import new_multipliers, new_site_scratch
from hsreject.context.kernels.site_row import Steps, site_rows
from hsreject.context.problem import Array, Certificate, Problem
from hsreject.context.workers import Rehearsal

if TYPE_CHECKING:
    from collections.abc import Callable

    from hsreject.context.priors.base import Term
    from hsreject.context.workers import Workers


TINY = 0.01  # times the rounding of 1


class Iteration(ABC):
    """Arrays of a running solver, and the ways to move and to judge them."""

    @property
    @abstractmethod
    def unknowns(self) -> tuple[Array, ...]:
        """Z and the duals, as they are stored."""

    def forget_tiny(self, workers: Workers) -> None:
        """Set unknowns to 0 that are on their way there.

        What over-relaxation leaves of them shrinks by the same factor in every iteration and is
        never 0. After 200 iterations of single precision their squares would be denormal numbers,
        and an iteration takes three times as long with those.
        """
        for array in self.unknowns:
            workers.share(len(array), partial(_forget_tiny, array))

    @abstractmethod
    def step(self, steps: Steps, workers: Workers) -> None:
        """Update Z and Y in place."""

    @property
    @abstractmethod
    def kernels(self) -> tuple[Callable[..., Any], ...]:
        """The compiled functions that are called."""

    @abstractmethod
    def compile(self, steps: Steps, workers: Workers) -> None:
        """Have the kernels compiled, without a change of Z and Y."""

    @abstractmethod
    def certify(self, workers: Workers) -> Certificate:
        """Return objective and gap of Z and Y as they are: after a step with relaxation 1."""


class GeneralIteration(Iteration):
    """The iteration in terms of what every term has."""

    def __init__(self, problem: Problem, field: Array, duals: tuple[Array, ...]) -> None:
        self.problem = problem
        self.field = field
        self.duals = duals
        self.multipliers = new_multipliers(field.shape, field.dtype)
        self.other_multipliers = new_multipliers(field.shape, field.dtype)
        self.buffer = np.empty_like(field)

    @property
    def kernels(self) -> tuple[Callable[..., Any], ...]:
        """The compiled functions that are called, those of the terms included."""
        of_terms = [kernel for term in self.problem.terms for kernel in term.kernels]
        return (site_rows, site_bounds, *of_terms)

    @property
    def unknowns(self) -> tuple[Array, ...]:
        """Z and the duals."""
        return (self.field, *self.duals)

    def compile(self, steps: Steps, workers: Workers) -> None:
        """Have the kernels compiled, without a change of Z and Y."""
        self._site_step(steps, 0, 0)
        for term, dual in zip(self.problem.terms, self.duals, strict=True):
            if term.kernels:
                self._update_dual(term, dual, steps, Rehearsal())
        self.certify(workers)

    def step(self, steps: Steps, workers: Workers) -> None:
        """Update Z and Y in place."""
        self.multipliers, self.other_multipliers = self.other_multipliers, self.multipliers
        self._pull(workers)
        workers.share(len(self.field), partial(self._site_step, steps))
        for term, dual in zip(self.problem.terms, self.duals, strict=True):
            self._update_dual(term, dual, steps, workers)

    def certify(self, workers: Workers) -> Certificate:
        """Return objective and gap of Z and Y as they are."""
        self._pull(workers)
        return certify(self.problem, self.field, self.duals, self.buffer, workers)

    def _site_step(self, steps: Steps, first_row: int, last_row: int) -> None:
        scratch = new_site_scratch(self.field.shape[1], self.field.dtype)
        probability, multipliers = self.problem.probability, self.multipliers
        site_rows(
            self.field, probability, self.buffer, multipliers, steps, scratch, first_row, last_row
        )

    def _update_dual(self, term: Term, dual: Array, steps: Steps, workers: Workers) -> None:
        term.update_dual(
            dual, self.buffer, step=steps.dual, relaxation=steps.relaxation, workers=workers
        )

    def _pull(self, workers: Workers) -> None:
        self.buffer.fill(0)
        for term, dual in zip(self.problem.terms, self.duals, strict=True):
            term.add_adjoint(dual, self.buffer, workers)


def _forget_tiny(array: Array, first: int, last: int) -> None:
    part = array[first:last]
    part *= np.abs(part) > TINY * np.finfo(part.dtype).eps
