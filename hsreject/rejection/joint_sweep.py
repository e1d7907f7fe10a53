"""Finding failure probabilities: a search for one fraction, a sweep over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hsreject.rejection.joint_search import FIRST_GRID, Probe, bracket, next_batch, next_probe
from hsreject.rejection.joint_solution import JointSolution
from hsreject.rejection.solve_progress import SolveProgress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.progress import ProgressCallback
    from hsreject.rejection.joint_problem import JointProblem

MOST_SOLVES = 12
"""Solves of a search, the one without rejection included."""

BATCH = 4
"""Points that a sweep places at a time, whatever the number of workers."""


@dataclass(frozen=True, eq=False)
class Found:
    """A failure probability that was solved for, and how it came to be chosen.

    Attributes
    ----------
    failure_probability : float or array (y, x)
    solution : JointSolution
    threshold : float
        The smallest confidence that is kept: 0, or infinity where everything is rejected.
    reachable : tuple of two floats, optional
        The nearest rejected fractions found below and above a wanted one.
    """

    failure_probability: float | NDArray[np.float64]
    solution: JointSolution
    threshold: float = 0.0
    reachable: tuple[float, float] | None = None


def everything_rejected(problem: JointProblem) -> Found:
    """Return the end of every sweep: the labels of the context, and none of them kept."""
    return Found(problem.rejects_all, problem.solve(0.0), threshold=np.inf)


def search_fraction(
    problem: JointProblem, wanted: float, *, tolerance: float, progress: ProgressCallback
) -> Found:
    """Return the failure probability whose rejected fraction is nearest to the wanted one.

    It stops within `tolerance`, or when the bracket is too narrow to divide (the fraction jumps
    there), or after `MOST_SOLVES` solves.
    """
    solves = SolveProgress(progress, "joint search", MOST_SOLVES)
    has_data = problem.has_data
    base = problem.solve(0.0, progress=solves.of_solve())
    found = {0.0: base}
    probes = [Probe(0.0, 0.0), Probe(problem.rejects_all, 1.0)]
    while len(found) < MOST_SOLVES and not _near(probes, wanted, tolerance):
        q = next_probe(probes, wanted)
        if q is None:
            break
        found[q] = problem.solve(q, progress=solves.of_solve())
        probes.append(Probe(q, float(found[q].rejected[has_data].mean())))
    solves.finish()
    best = min(probes, key=lambda probe: (abs(probe.fraction - wanted), probe.fraction))
    below, above = bracket(probes, wanted)
    exact = best.fraction == wanted
    everything = best.failure_probability not in found
    return Found(
        best.failure_probability,
        base if everything else found[best.failure_probability],
        threshold=np.inf if everything else 0.0,
        reachable=(wanted, wanted) if exact else (below.fraction, above.fraction),
    )


def _near(probes: list[Probe], wanted: float, tolerance: float) -> bool:
    if wanted in {0.0, 1.0}:
        return True  # the ends are known, and exact
    return any(abs(probe.fraction - wanted) <= tolerance for probe in probes[2:])


def sweep_fractions(
    problem: JointProblem,
    within: NDArray[np.bool_],
    *,
    n_points: int,
    workers: int,
    progress: ProgressCallback,
) -> list[Found]:
    """Return `n_points` solves or fewer, by failure probability, the first without rejection.

    Fewer when the fraction between neighbours changes by less than a pixel everywhere.
    """
    solves = SolveProgress(progress, "joint sweep", n_points)
    resolution = 1 / within.sum()
    end = problem.rejects_all
    batch = [share * end for share in FIRST_GRID[:n_points]]
    found: dict[float, JointSolution] = {}
    while batch:
        found |= zip(batch, problem.solve_all(batch, workers=workers, progress=solves), strict=True)
        probes = [Probe(q, float(one.rejected[within].mean())) for q, one in found.items()]
        room = min(BATCH, n_points - len(found))
        batch = next_batch([*probes, Probe(end, 1.0)], room, resolution=resolution)
        batch = [q for q in batch if q not in found]
    solves.finish()
    return [Found(q, found[q]) for q in sorted(found)]
