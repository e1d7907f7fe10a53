"""What a solver is, how it knows how far it is from the optimum, and when to stop."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from hsreject.context.bound_kernels import new_bound_scratch, site_bounds
from hsreject.context.problem import Array, Checkpoint, Problem
from hsreject.context.site_kernels import Steps, new_site_scratch, site_rows
from hsreject.progress import ProgressCallback
from hsreject.threads import Threads

if TYPE_CHECKING:
    from hsreject.context.prior import Term

CACHED = 2**16  # numbers that fit into the cache of a core, temporaries included
FIRST_SLOPE = -3.5  # on Indian Pines -3.5 to -3.7 for weights from 0.5 to 4


class Solver(ABC):
    """A method that minimises a :class:`~hsreject.context.problem.Problem` to a certified gap.

    A solver knows its terms only through :class:`~hsreject.context.prior.Term`.
    """

    @abstractmethod
    def solve(self, problem: Problem, journal: Journal, threads: Threads) -> Array:
        """Return the field, (y, category, x), whose certificate ends the journal."""


def site_step(
    field: Array,
    probability: Array,
    pull: Array,
    multipliers: Array,
    steps: Steps,
    threads: Threads,
) -> None:
    """Update Z, (y, category, x), in place and replace `pull` = H'Y by Zbar."""

    def rows(first: int, last: int) -> None:
        scratch = new_site_scratch(field.shape[1], field.dtype)
        site_rows(field, probability, pull, multipliers, steps, scratch, first, last)

    threads.share(len(field), rows)


def site_tolerance(field: Array, step: float) -> float:
    """Return how exactly the equations of the site prox can be met: up to rounding."""
    rounding, (_, n_classes, _) = np.finfo(field.dtype).eps, field.shape
    return float(rounding) * (32 + 2 * int(n_classes)) * (1 + step)


def objective_and_bound(
    problem: Problem, field: Array, duals: tuple[Array, ...], threads: Threads
) -> tuple[float, float]:
    r"""Return the objective F(Z) of a settled field, and a lower bound of min F from duals.

    For all duals Y, with q = H'Y summed over the terms,

    .. math:: \min F \ \ge\ \sum_i \min_z [-\log(p_i'z) + q_i'z] - g^*(Y)

    by Fenchel-Young for g, the minima over the simplex; at the optimum they are equal. Each minimum
    is bounded from below by tangents of -log (:mod:`~hsreject.context.bound_kernels`).

    Z and Y are taken as they are, as numbers of double precision: Z is divided by its sums again,
    Y moved into the domain of g*, and only then are H Z and H'Y formed. In single precision their
    rounding would be multiplied by the weight, and the gap could lie below the truth.
    """
    terms = [term.in_double_precision() for term in problem.terms]
    exact = settle(terms, field.astype(np.float64), threads)
    objective = sum(term.value_of_field(exact, threads) for term in terms)
    del exact
    pull, conjugate = np.zeros(field.shape), 0.0
    room = 1 - 16 * float(np.finfo(field.dtype).eps)  # most duals then miss their domain no more
    for term, dual in zip(terms, duals, strict=True):
        inside, value = into_domain(term, np.multiply(dual, room, dtype=np.float64))
        conjugate += value
        pull += term.adjoint(inside)
    data, bound = data_and_bound(problem.probability, field, lambda a, b: pull[a:b], threads)
    return objective + data, bound - conjugate


def settle(terms: Sequence[Term], field: Array, threads: Threads) -> Array:
    """Bring a field in place to where its objective is defined, and return it.

    It is divided by its sums, which are 1 up to the rounding of the prox, and moved into the
    constraints of the terms.
    """

    def divide(first: int, last: int) -> None:
        rows = field[first:last]
        rows /= rows.sum(axis=1, keepdims=True)

    threads.share(len(field), divide)
    for term in terms:
        feasible = term.feasible(field)
        if feasible is not field:
            np.copyto(field, feasible)
    return field


def into_domain(term: Term, dual: Array) -> tuple[Array, float]:
    """Return a dual next to `dual` where g* is finite, and g* there.

    A dual that was formed as a difference of large numbers misses the ball of a small weight by
    their rounding, not by its own. Any dual gives a bound, so it may move: by the prox of g*, whose
    step is so short that it only projects, and then towards 0 by a few roundings.
    """
    value = term.conjugate(dual)
    if value < np.inf:
        return dual, value
    eps = float(np.finfo(dual.dtype).eps)
    largest = float(np.abs(dual).max(initial=0.0))
    projected = term.prox_conjugate(dual, eps * largest) if largest > 0 else dual
    for n_roundings in (0, 4, 16, 64, 256):
        inside = projected * dual.dtype.type(1 - n_roundings * eps)
        value = term.conjugate(inside)
        if value < np.inf:
            break
    return inside, value


def data_and_bound(
    probability: Array, field: Array, pull: Callable[[int, int], Array], threads: Threads
) -> tuple[float, float]:
    """Return the data term and the lower bound of its minima; `pull` makes rows of H'Y.

    Sums are in double precision, row by row: the same for any number of threads.
    """
    sums = np.empty((len(field), 2))

    def write(first: int, last: int) -> None:
        rows = slice(first, last)
        scratch = new_bound_scratch(field.shape[1])
        site_bounds(field[rows], probability[rows], pull(first, last), scratch, sums[rows])

    threads.share(len(field), write, most=cached_rows(field.shape))
    data, bound = sums.sum(axis=0)
    return float(data), float(bound)


def cached_rows(shape: tuple[int, ...]) -> int:
    """Return how many rows of a field (y, category, x) NumPy should work on at a time."""
    return max(1, CACHED // (shape[1] * shape[2]))


@dataclass
class Journal:
    """The certificates so far, and when the next one is worth its time.

    The work ends at a gap of `tol` times the objective, or after `max_iter` iterations. The gap
    falls like a power of the number of iterations: a line on log-log paper. The next certificate
    is due where the line through the last two (at first: through the last one, with the usual
    slope) reaches the tolerance.
    """

    problem: Problem
    tol: float
    max_iter: int
    progress: ProgressCallback
    n_iterations: int = 0
    next_check: int = 8
    history: list[Checkpoint] = field(default_factory=list)
    converged: bool = False

    def begin_iteration(self) -> bool:
        """Count and report an iteration; return whether a certificate is due after it."""
        self.n_iterations += 1
        expected = min(self.next_check, self.max_iter)  # the progress bar's end
        self.progress("context", self.n_iterations, max(expected, self.n_iterations))
        return self.n_iterations >= expected

    def note(self, objective: float, bound: float) -> bool:
        """Record an objective and a lower bound of the least; return whether the work is over."""
        gap = objective - bound
        gap = math.inf if math.isnan(gap) else max(gap, 0.0)  # below 0 by rounding only
        gap += self.problem.uncertainty(objective)
        self.history.append(Checkpoint(self.n_iterations, objective, gap))
        target = max(self.tol * objective, self.problem.rounding)
        self.converged = gap <= target < math.inf
        self.next_check = self._forecast(target)
        return self.converged or self.n_iterations >= self.max_iter

    def _forecast(self, target: float) -> int:
        last = self.history[-1]
        if not math.isfinite(last.gap):  # a field or duals that are not feasible yet
            return 2 * last.n_iterations
        slope = FIRST_SLOPE
        before = self.history[-2] if len(self.history) > 1 else last
        if before is not last and math.isfinite(before.gap):
            run = math.log(last.n_iterations / before.n_iterations)
            rise = math.log(max(last.gap, target) / max(before.gap, target))
            slope = min(rise / run, -0.5)
        # A line through two certificates may be far off, on a plateau for example: so it is never
        # flatter than -0.5, and the next certificate at most at twice as many iterations.
        ratio = math.pow(last.gap / target, -1.0 / slope)
        iterations = math.ceil(last.n_iterations * min(ratio, 2.0))
        return max(iterations, last.n_iterations + 2, math.ceil(1.03 * last.n_iterations))
