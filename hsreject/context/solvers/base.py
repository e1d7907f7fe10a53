"""What a solver is, and how it knows when to stop."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hsreject.context.problem import Array, Certificate, Checkpoint, Problem, Solution, State

if TYPE_CHECKING:
    from hsreject.context.workers import Workers
    from hsreject.progress import ProgressCallback

STAGE = "context"
COMPILING = "compiling kernels (first use)"
FIRST_SLOPE = -3.5  # on Indian Pines -3.5 to -3.7 for weights from 0.5 to 4


class Solver(ABC):
    """A method that minimises a :class:`~hsreject.context.problem.Problem` to a certified gap.

    A solver knows its terms only through :class:`~hsreject.context.priors.base.Term`.
    """

    @abstractmethod
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


@dataclass(frozen=True)
class Stop:
    """When to stop: at a gap of `tol` times the objective, or after `max_iterations`."""

    tol: float
    max_iterations: int


@dataclass
class Journal:
    """The certificates so far, and when the next one is worth its price.

    The gap falls like a power of the number of iterations. The next certificate is due where the
    line through the last two (at first: through the last, with a usual slope) reaches the
    tolerance.
    """

    problem: Problem
    stop: Stop
    progress: ProgressCallback
    next_check: int = 8
    history: list[Checkpoint] = field(default_factory=list)
    converged: bool = False

    def __post_init__(self) -> None:
        self.next_check = min(self.next_check, self.stop.max_iterations)

    def tick(self, n_iterations: int) -> None:
        """Say how far the work is: iterations done, of those that will probably be needed."""
        self.progress(STAGE, n_iterations, max(self.next_check, n_iterations))

    def is_due(self, n_iterations: int) -> bool:
        """Return whether a certificate is due after `n_iterations`."""
        return n_iterations >= self.next_check

    def note(self, n_iterations: int, certificate: Certificate) -> bool:
        """Take down a certificate; return whether the work is over."""
        self.history.append(Checkpoint(n_iterations, certificate.objective, certificate.gap))
        target = max(self.stop.tol * certificate.objective, self.problem.rounding)
        self.converged = certificate.gap <= target
        if not self.converged:
            self.next_check = min(self._forecast(target), self.stop.max_iterations)
        return self.converged or n_iterations >= self.stop.max_iterations

    def _forecast(self, target: float) -> int:
        last = self.history[-1]
        slope = FIRST_SLOPE
        if len(self.history) > 1:
            before = self.history[-2]
            run = math.log(last.n_iterations / before.n_iterations)
            rise = math.log(max(last.gap, target) / max(before.gap, target))
            slope = min(rise / run, -0.5)
        ratio = math.pow(last.gap / target, -1.0 / slope)
        wanted = math.ceil(last.n_iterations * min(ratio, 2.0))
        return max(wanted, last.n_iterations + 2, math.ceil(1.03 * last.n_iterations))

    def solution(self, state: State) -> Solution:
        """Return the solution that ends this journal."""
        return Solution(state=state, history=tuple(self.history), converged=self.converged)


def starting_state(problem: Problem, start: State | None) -> tuple[Array, tuple[Array, ...]]:
    """Return fresh arrays Z and Y to start from: `start`, or the uniform field and zero duals."""
    if start is not None:
        return start.field.copy(), tuple(dual.copy() for dual in start.duals)
    shape = problem.probability.shape
    uniform = np.full(shape, 1 / shape[1], problem.probability.dtype)
    return uniform, tuple(term.new_dual() for term in problem.terms)
