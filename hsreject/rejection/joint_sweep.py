"""Finding failure probabilities: a search for one fraction, a sweep over all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hsreject.errors import InputError
from hsreject.rejection.joint_search import (
    FIRST_GRID,
    Probe,
    bracket,
    is_jump,
    next_batch,
    next_probe,
)
from hsreject.rejection.joint_solution import JointSolution
from hsreject.rejection.solve_progress import SolveProgress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.progress import ProgressCallback
    from hsreject.rejection.joint_problem import JointProblem

MOST_SOLVES = 12
"""Solves of a search, the one without rejection included."""

BATCH = 6
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
        The nearest rejected fractions found below and above a wanted one. A search that came near
        enough looks no further: only at a jump are they next to each other.
    ended : {"near enough", "jump", "out of solves"}, optional
        Why a search for a wanted fraction ended.
    """

    failure_probability: float | NDArray[np.float64]
    solution: JointSolution
    threshold: float = 0.0
    reachable: tuple[float, float] | None = None
    ended: str | None = None


def everything_rejected(problem: JointProblem) -> Found:
    """Return the end of every sweep: the labels of the context, and none of them kept."""
    return Found(problem.rejects_all, problem.solve(0.0), threshold=np.inf)


def search_fraction(
    problem: JointProblem,
    wanted: float,
    known: list[Probe],
    *,
    tolerance: float,
    progress: ProgressCallback,
) -> Found:
    """Return the failure probability whose rejected fraction is nearest to the wanted one.

    It stops within `tolerance`, or when the bracket is too narrow to divide (the fraction jumps
    there), or after `MOST_SOLVES` solves. It starts between the `known` probes, if there are any.
    """
    solves = SolveProgress(progress, "joint search", MOST_SOLVES)
    most = MOST_SOLVES - (3 if known else 1)  # that without rejection, and two of the known ones
    nothing = problem.solve(0.0, progress=solves.of_solve())
    probes = [
        Probe(0.0, 0.0, nothing.objective, 0.0),
        Probe(problem.rejects_all, 1.0, problem.rejecting_all_costs, 1.0),
        *known,
    ]
    first = len(probes)
    while len(probes) - first < most and not _near(probes, wanted, tolerance):
        q = next_probe(probes, wanted, n_tried=len(probes) - first)
        if q is None:
            break
        probes.append(_solved(problem, q, solves))
    best = min(probes, key=lambda probe: (abs(probe.fraction - wanted), probe.fraction))
    ends = bracket(probes, wanted)
    near = _near(probes, wanted, tolerance)
    for probe in known:
        if probe is best or (probe in ends and not near):
            _check_known(_solved(problem, probe.failure_probability, solves), probe, tolerance)
    reachable = (ends[0].fraction, ends[1].fraction)
    if best.fraction == wanted:
        reachable = (wanted, wanted)
    if best is probes[1]:
        chosen = everything_rejected(problem)
    else:
        chosen = Found(best.failure_probability, problem.solve(best.failure_probability))
    solves.finish()
    ended = "near enough" if near else "jump" if is_jump(*ends) else "out of solves"
    return replace(chosen, reachable=reachable, ended=ended)


def _solved(problem: JointProblem, q: float, solves: SolveProgress) -> Probe:
    solution = problem.solve(q, progress=solves.of_solve())
    fraction = problem.rejected_fraction(solution)
    return Probe(q, fraction, solution.objective, solution.rejected_mass)


def _check_known(found: Probe, told: Probe, tolerance: float) -> None:
    if abs(found.fraction - told.fraction) > tolerance:
        raise InputError(
            f"points say that a failure probability of {told.failure_probability:g} rejects "
            f"{told.fraction:.3f} of the scene, but it rejects {found.fraction:.3f}. Pass the "
            "operating points of the same rejector on the same maps."
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
        probes = [
            Probe(q, float(one.rejected[within].mean()), one.objective, one.rejected_mass)
            for q, one in found.items()
        ]
        room = min(BATCH, n_points - len(found))
        everything = Probe(end, 1.0, problem.rejecting_all_costs, 1.0)
        batch = next_batch([*probes, everything], room, resolution=resolution)
        batch = [q for q in batch if q not in found]
    solves.finish()
    return [Found(q, found[q]) for q in sorted(found)]
