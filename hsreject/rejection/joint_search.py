r"""Which failure probability rejects a wanted fraction, and which ones draw a whole curve.

The idea. Let :math:`\lambda = \log(q / (1 - q))` be the log-odds of the failure probability, and
:math:`G(\lambda)` the optimum of the joint problem per pixel, with all likelihoods divided by
1 - q. A field costs :math:`-\log(p_i'z_i + e^\lambda r_i)` in pixel i, where r is its value of
rejection: that is concave in :math:`\lambda`, so G, the least of such functions, is concave too.
Its slope is minus the rejected mass (the mean posterior probability of rejection), which is close
to the rejected fraction. So every solve gives a tangent of G, and the tangents of two solves meet
between them: at the jump, if the fraction jumps there, else where it changes.

Away from jumps the fraction is close to a logistic function of :math:`\lambda`: a straight line
from log-odds to log-odds.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hsreject.progress import ProgressCallback, no_progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.rejection.joint_problem import JointProblem, JointSolution

MOST_SOLVES = 12
"""Solves of a search, the one without rejection included."""

NARROWEST = 1e-4
"""Width of a bracket in log-odds of q that is not divided further: there the fraction jumps."""

STEEPNESS = 0.03
"""By how much log-odds of q go up with those of small fractions, on scenes where this was tried."""

AWAY_FROM_ENDS = (0.01, 0.05, 0.25, 0.5)
"""Share of a bracket that a try keeps away from its ends, after 0, 1, 2 and more tries in vain."""

FIRST_GRID = (0.0, 0.25, 0.5, 0.75)
"""Where every sweep begins, in shares of the failure probability that rejects everything."""

BATCH = 6
"""Points that a sweep places at a time, so that they do not depend on the number of workers."""


@dataclass(frozen=True, eq=False)
class Found:
    """A failure probability that was solved for, and how it came to be chosen.

    `threshold` is the smallest confidence kept: 0, or infinity where everything is rejected.
    `reachable` are the nearest rejected fractions found below and above a wanted one, next to each
    other only at a jump. `ended` says why a search ended.
    """

    failure_probability: float | NDArray[np.float64]
    solution: JointSolution
    threshold: float = 0.0
    reachable: tuple[float, float] | None = None
    ended: str | None = None


class Probe(NamedTuple):
    """What one solve tells a search: the rejected fraction, and value and -slope of G."""

    failure_probability: float
    fraction: float
    objective: float = math.nan
    rejected_mass: float = math.nan

    @property
    def log_odds(self) -> float:
        """Log-odds of the failure probability, -inf for 0."""
        return _log_odds(self.failure_probability)


def search_fraction(
    problem: JointProblem, wanted: float, *, fraction_tol: float, progress: ProgressCallback
) -> Found:
    """Return the failure probability whose rejected fraction is nearest to the wanted one.

    The search starts between what the problem was solved for already, and ends within
    `fraction_tol`, where the bracket is too narrow to divide, or after `MOST_SOLVES` solves.
    """
    solves = SolveProgress(progress, "joint search", MOST_SOLVES)
    problem.solve(0.0, progress=solves.of_solve())
    known = problem.solved.items()
    probes = [problem.everything, *(probe_of(q, one, problem.has_data) for q, one in known)]
    brackets: list[tuple[Probe, Probe]] = []
    while True:
        low, high = bracket(probes, wanted)
        brackets.append((low, high))
        best = min(probes, key=lambda probe: (abs(probe.fraction - wanted), probe.fraction))
        ended = _why_it_ends(best, wanted, fraction_tol, brackets)
        if ended is not None:
            break
        # Brackets only shrink, in width or in fraction. Those less than twice as large as the last
        # one belong to the latest tries, which together did not halve it.
        sizes = [_width(*pair) * (pair[1].fraction - pair[0].fraction) for pair in brackets]
        n_in_vain = sum(size < 2 * sizes[-1] for size in sizes[:-1])
        q = next_probe(low, high, wanted, n_in_vain=n_in_vain)
        solution = problem.solve(q, progress=solves.of_solve())
        probes.append(probe_of(q, solution, problem.has_data))
    solves.finish()
    reachable = (wanted, wanted) if best.fraction == wanted else (low.fraction, high.fraction)
    if best.failure_probability == problem.rejects_all:
        found = everything_rejected(problem)
    else:
        found = Found(best.failure_probability, problem.solve(best.failure_probability))
    return replace(found, reachable=reachable, ended=ended)


def _why_it_ends(
    best: Probe, wanted: float, fraction_tol: float, brackets: list[tuple[Probe, Probe]]
) -> str | None:
    """Return why a search ends here, or None. An end of the scale is not near, only exact."""
    near = 0 < best.fraction < 1 and abs(best.fraction - wanted) <= fraction_tol
    if near or best.fraction == wanted:
        return "near enough"
    if _width(*brackets[-1]) < NARROWEST:
        return "jump"
    return "out of solves" if len(brackets) == MOST_SOLVES else None


def _width(low: Probe, high: Probe) -> float:
    return high.log_odds - low.log_odds


def next_probe(low: Probe, high: Probe, wanted: float, *, n_in_vain: int) -> float:
    """Return the failure probability to try next, between two probes around a wanted fraction.

    A straight line in log-odds tells it. Next to a probe that rejects nothing or everything there
    is none, and where it failed a moment ago there may be a jump or a plateau: then the tangents
    tell it. With every further try in vain it moves closer to the middle of the bracket.
    """
    left, right = low.log_odds, high.log_odds
    if n_in_vain == 0 and 0 < low.fraction < high.fraction < 1:
        start, end = _log_odds(low.fraction), _log_odds(high.fraction)
        aim = left + (right - left) * (_log_odds(wanted) - start) / (end - start)
    else:
        aim = crossing(low, high)
        if (low.failure_probability, high.fraction) == (0, 1):  # before the first try
            aim += STEEPNESS * min(_log_odds(wanted), 0.0)
    if not math.isfinite(aim):  # nothing is known of the objective: halve, or step far down
        aim = (left + right) / 2 if math.isfinite(left) else right - 1 - abs(right)
    share = AWAY_FROM_ENDS[min(n_in_vain, len(AWAY_FROM_ENDS) - 1)]
    return _probability(_inside(aim, left, right, share))


def _inside(log_odds: float, left: float, right: float, share: float) -> float:
    """Return log-odds that keep a share of the bracket away from its ends."""
    width = right - (left if math.isfinite(left) else log_odds)
    margin = max(NARROWEST / 2, share * width)
    return min(max(log_odds, left + margin), right - margin)


def crossing(low: Probe, high: Probe) -> float:
    """Return the log-odds where the tangents of G at two probes meet, NaN if they tell nothing."""
    step = high.rejected_mass - low.rejected_mass
    if not step > 0:
        return math.nan
    # a tangent is G(l) = objective - mass (l - log-odds); with q = 0 nothing is rejected
    end = high.rejected_mass * high.log_odds
    start = low.rejected_mass and low.rejected_mass * low.log_odds
    return (high.objective - low.objective + end - start) / step


def bracket(probes: list[Probe], wanted: float) -> tuple[Probe, Probe]:
    """Return the neighbouring probes around a wanted fraction."""
    ordered = monotone(probes)
    above = [i for i, probe in enumerate(ordered) if i > 0 and probe.fraction > wanted]
    high = above[0] if above else len(ordered) - 1
    return ordered[high - 1], ordered[high]


def monotone(probes: list[Probe]) -> list[Probe]:
    """Return the probes by failure probability, each fraction raised to the largest before it.

    Solves end within their tolerance, so a larger failure probability may reject a pixel less.
    """
    ordered = sorted(probes)
    raised = np.maximum.accumulate([probe.fraction for probe in ordered])
    return [p._replace(fraction=float(f)) for p, f in zip(ordered, raised, strict=True)]


def sweep_fractions(
    problem: JointProblem,
    within: NDArray[np.bool_],
    *,
    n_points: int,
    n_workers: int,
    progress: ProgressCallback,
) -> list[Found]:
    """Return `n_points` solves, by failure probability, the first without rejection.

    They lie where the rejected fraction of the pixels `within` changes; there are fewer when it
    changes by less than a pixel between all neighbours.
    """
    solves = SolveProgress(progress, "joint sweep", n_points)
    batch = [share * problem.rejects_all for share in FIRST_GRID[:n_points]]
    found: dict[float, JointSolution] = {}
    while batch:
        found |= zip(batch, _solve_all(problem, batch, n_workers, solves), strict=True)
        probes = [probe_of(q, solution, within) for q, solution in found.items()]
        batch = next_batch(
            [*probes, problem.everything],
            min(BATCH, n_points - len(found)),
            resolution=1 / within.sum(),
        )
        batch = [q for q in batch if q not in found]
    solves.finish()
    return [Found(q, found[q]) for q in sorted(found)]


def everything_rejected(problem: JointProblem) -> Found:
    """Return the end of every sweep: the labels of the context, and none of them kept."""
    return Found(problem.rejects_all, problem.solve(0.0), threshold=math.inf)


def next_batch(probes: list[Probe], size: int, *, resolution: float) -> list[float]:
    """Return up to `size` new failure probabilities where the fraction changes most.

    One after the other goes into the interval whose steps from point to point, those placed there
    counted, are still the largest, unless they are smaller than `resolution`.
    """
    pairs = pairwise(monotone(probes))
    intervals = [pair for pair in pairs if _width(*pair) > NARROWEST]
    changes = np.array([high.fraction - low.fraction for low, high in intervals])
    counts = np.zeros(len(intervals), dtype=int)
    for _ in range(size):
        steps = changes / (counts + 1)
        if not steps.max(initial=0) >= resolution:
            break
        counts[steps.argmax()] += 1
    return [
        _probability(log_odds)
        for (low, high), count in zip(intervals, counts, strict=True)
        for log_odds in _between(low, high, int(count))
    ]


def _between(low: Probe, high: Probe, count: int) -> list[float]:
    """Return the log-odds of `count` new points between two probes.

    On the straight line in log-odds they divide the change of the fraction evenly. Where nothing
    becomes everything there is no line, and they crowd around the crossing of the tangents, from
    both sides. Next to nothing or everything they divide the log-odds of q evenly.
    """
    left, right = low.log_odds, high.log_odds
    centre = crossing(low, high)
    if (low.fraction, high.fraction) == (0, 1) and math.isfinite(centre):
        ends = (left if math.isfinite(left) else 2 * centre - right, right)
        centre = _inside(centre, *ends, share=AWAY_FROM_ENDS[0])
        aside = [(ends[i % 2] - centre) / 4 ** (1 + i // 2) for i in range(count - 1)]
        return [centre + shift for shift in (0, *aside)][:count]
    if not math.isfinite(left):
        left = right - count * math.log(4)  # the more points, the further down they reach
    shares = np.arange(1, count + 1) / (count + 1)
    if low.fraction > 0 and high.fraction < 1:
        start, end = _log_odds(low.fraction), _log_odds(high.fraction)
        aims = low.fraction + shares * (high.fraction - low.fraction)
        shares = (np.log(aims / (1 - aims)) - start) / (end - start)
    return [left + float(share) * (right - left) for share in shares]


def _solve_all(
    problem: JointProblem, batch: list[float], n_workers: int, solves: SolveProgress
) -> list[JointSolution]:
    """Return the solutions of several failure probabilities, `n_workers` solves at a time."""
    if n_workers == 1:
        return [problem.solve(q, progress=solves.of_solve()) for q in batch]
    with ThreadPoolExecutor(n_workers) as pool:
        futures = {  # larger ones take longer and go first, so that the workers end together
            q: pool.submit(problem.solve, q, n_threads=1, progress=solves.of_solve())
            for q in sorted(batch, reverse=True)
        }
        try:
            return [futures[q].result() for q in batch]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class SolveProgress:
    """Adds up the progress of at most `n_solves` solves, in any threads, and never goes back."""

    def __init__(self, progress: ProgressCallback, stage: str, n_solves: int) -> None:
        self._progress, self._stage, self._n_solves = progress, stage, n_solves
        self._shares: list[float] = []
        self._lock = Lock()

    def of_solve(self) -> ProgressCallback:
        """Return the callback of one more solve."""
        if self._progress is no_progress:
            return no_progress
        with self._lock:
            self._shares.append(0.0)
            number = len(self._shares) - 1

        def callback(stage: str, done: float, total: float | None) -> None:
            share = min(done / total, 1.0) if total else 0.0
            with self._lock:
                if share > self._shares[number]:
                    self._shares[number] = share
                    self._progress(self._stage, sum(self._shares), self._n_solves)

        return callback

    def finish(self) -> None:
        """Say that nothing is left to do."""
        with self._lock:
            self._progress(self._stage, self._n_solves, self._n_solves)


def probe_of(q: float, solution: JointSolution, within: NDArray[np.bool_]) -> Probe:
    """Return what a solve tells of the fraction of the pixels `within`."""
    fraction = float(solution.rejected[within].mean())
    return Probe(q, fraction, solution.objective, solution.rejected_mass)


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(min(-log_odds, 700.0)))  # beyond that there are no numbers


def _log_odds(value: float) -> float:
    return math.log(value / (1 - value)) if value > 0 else -math.inf
