r"""Which failure probability rejects a given fraction, and which ones trace a whole curve.

The idea. Let :math:`\lambda = \log(q / (1 - q))` be the log-odds of the failure probability, and
:math:`G(\lambda)` the optimum of the joint problem per pixel, with all likelihoods divided by
1 - q. A field costs :math:`-\log(p_i'z_i + e^\lambda r_i)` in pixel i, where r is its value of
rejection: that is concave in :math:`\lambda`, so G, the least of such functions, is concave too.
Its negative slope is the rejected mass (the mean posterior probability of rejection), which is
close to the rejected fraction. So every solve gives a tangent of G, and the tangents of two solves
meet between them: at the jump, if the fraction jumps there, else where it changes. At a jump two
fields are equally good. Next to it a solve may end, within its tolerance, on a field between them,
whose fraction counts like any other.

Away from jumps the fraction is close to a logistic function of :math:`\lambda`: log-odds of the
fraction over log-odds of q are a straight line.

The search (:func:`search_fraction`) keeps a bracket, two solves around the target fraction, and
tries a q between them: at the straight line or, next to a jump, at the crossing of the tangents.
The sweep (:func:`sweep_fractions`) starts from a coarse grid and puts batch after batch of new
solves where the fraction changes most from one solve to the next.
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
"""How much the log-odds of q grow with those of a small fraction, on scenes where it was tried."""

AWAY_FROM_ENDS = (0.01, 0.05, 0.25, 0.5)
"""Share of a bracket that a try stays away from its ends, after 0, 1, 2 and more tries in vain."""

FIRST_GRID = (0.0, 0.25, 0.5, 0.75)
"""Where every sweep begins, in shares of the failure probability that rejects everything."""

BATCH = 6
"""Points that a sweep places at a time, so that they do not depend on the number of workers."""


@dataclass(frozen=True, eq=False)
class JointPoint:
    """A failure probability that was solved for, and how it came to be chosen.

    `threshold` is the smallest confidence kept: 0, or infinity where everything is rejected.
    `reachable` are the nearest rejected fractions found below and above the target; there may be
    others between them unless the search ended at a jump. `ended` says why it ended.
    """

    failure_probability: float
    solution: JointSolution
    threshold: float = 0.0
    reachable: tuple[float, float] | None = None
    ended: str | None = None


class Probe(NamedTuple):
    """What one solve tells a search: the rejected fraction, and value and negative slope of G."""

    failure_probability: float
    fraction: float
    objective: float = math.nan
    rejected_mass: float = math.nan

    @property
    def log_odds(self) -> float:
        """Log-odds of the failure probability, -inf for 0."""
        return _log_odds(self.failure_probability)


class Bracket(NamedTuple):
    """Two neighbouring probes, by failure probability."""

    low: Probe
    high: Probe

    @property
    def width(self) -> float:
        """In log-odds of q; infinite from q = 0."""
        return self.high.log_odds - self.low.log_odds

    @property
    def change(self) -> float:
        """Of the rejected fraction."""
        return self.high.fraction - self.low.fraction

    @property
    def has_line(self) -> bool:
        """Whether a straight line in log-odds exists: not next to nothing or everything."""
        return 0 < self.low.fraction < self.high.fraction < 1


def search_fraction(
    problem: JointProblem, target: float, *, fraction_tol: float, progress: ProgressCallback
) -> JointPoint:
    """Return the failure probability whose rejected fraction is nearest to the target.

    The search starts between what the problem was solved for already, and ends within
    `fraction_tol`, where the bracket is too narrow to divide, or after `MOST_SOLVES` solves.
    """
    solves = SolveProgress(progress, "joint search", MOST_SOLVES)
    problem.solve(0.0, progress=solves.of_solve())
    # A solve depends on its q alone, so whatever was solved before counts as a probe. q = 0 and the
    # end of the scale, where everything is rejected, are always among them: there is a bracket.
    solutions = problem.solved.items()
    probes = [problem.everything, *(probe_of(q, one, problem.asked_of) for q, one in solutions)]
    brackets: list[Bracket] = []
    while True:
        bracket = bracket_of(probes, target)
        brackets.append(bracket)
        nearest = min(probes, key=lambda probe: (abs(probe.fraction - target), probe.fraction))
        ended = _why_it_ends(nearest, target, fraction_tol, bracket, n_solves=len(brackets))
        if ended is not None:
            break
        q = next_try(bracket, target, n_in_vain=_tries_in_vain(brackets))
        solution = problem.solve(q, progress=solves.of_solve())
        probes.append(probe_of(q, solution, problem.asked_of))
    solves.finish()
    if nearest.failure_probability == problem.rejects_all:
        point = everything_rejected(problem)
    else:
        point = JointPoint(nearest.failure_probability, problem.solve(nearest.failure_probability))
    exact = nearest.fraction == target
    reachable = (target, target) if exact else (bracket.low.fraction, bracket.high.fraction)
    return replace(point, reachable=reachable, ended=ended)


def _why_it_ends(
    nearest: Probe, target: float, fraction_tol: float, bracket: Bracket, *, n_solves: int
) -> str | None:
    """Return why a search ends here, or None. Nothing and everything must be met exactly."""
    near = 0 < nearest.fraction < 1 and abs(nearest.fraction - target) <= fraction_tol
    if near or nearest.fraction == target:
        return "near enough"
    if bracket.width < NARROWEST:
        return "jump"
    return "out of solves" if n_solves == MOST_SOLVES else None


def _tries_in_vain(brackets: list[Bracket]) -> int:
    """Return how many of the latest tries together did not halve the bracket.

    Brackets only shrink, in width or in change, so these are the earlier ones that were less than
    twice as large as the last one is.
    """
    *earlier, last = (bracket.width * bracket.change for bracket in brackets)
    return sum(size < 2 * last for size in earlier)


def next_try(bracket: Bracket, target: float, *, n_in_vain: int) -> float:
    """Return the failure probability in a bracket that probably rejects the target fraction.

    It lies on the straight line in log-odds. There is no such line where an end rejects nothing or
    everything, and where the line has just failed there may be a jump or a plateau: then it is
    where the tangents cross. Every further try in vain stays closer to the middle of the bracket.
    """
    low, high = bracket
    left, right = low.log_odds, high.log_odds
    if n_in_vain == 0 and bracket.has_line:
        start, end = _log_odds(low.fraction), _log_odds(high.fraction)
        aim = left + (right - left) * (_log_odds(target) - start) / (end - start)
    else:
        aim = crossing(bracket)
        if low.failure_probability == 0 and high.fraction == 1:
            # the whole scale, at the first try: small fractions lie a little below the crossing
            aim += STEEPNESS * min(_log_odds(target), 0.0)
    if not math.isfinite(aim):  # nothing is known of the objective: halve, or step far down
        aim = (left + right) / 2 if math.isfinite(left) else right - 1 - abs(right)
    # Guesses may creep towards one end of the bracket for ever. After three tries in vain the share
    # is one half: a finite bracket is then bisected, whatever the curve does.
    share = AWAY_FROM_ENDS[min(n_in_vain, len(AWAY_FROM_ENDS) - 1)]
    return _probability(_inside(aim, left, right, share))


def _inside(log_odds: float, left: float, right: float, share: float) -> float:
    """Return log-odds that keep a share of the bracket away from its ends."""
    # from q = 0 a bracket is infinitely wide: what lies above the aim then counts as its width
    width = right - (left if math.isfinite(left) else log_odds)
    margin = max(NARROWEST / 2, share * width)
    return min(max(log_odds, left + margin), right - margin)


def crossing(bracket: Bracket) -> float:
    """Return the log-odds where the tangents of G at both ends meet, NaN if they do not."""
    low, high = bracket
    step = high.rejected_mass - low.rejected_mass
    if not step > 0:
        return math.nan
    # A tangent is G(l) = objective - mass (l - log-odds); at q = 0, where log-odds are -inf, it
    # is flat.
    end = high.rejected_mass * high.log_odds
    start = low.rejected_mass * low.log_odds if low.rejected_mass else 0.0
    return (high.objective - low.objective + end - start) / step


def bracket_of(probes: list[Probe], target: float) -> Bracket:
    """Return the first neighbours of which the second rejects more than the target, or the last.

    The first: solves end within their tolerance, so a larger q may reject a pixel less.
    """
    brackets = [Bracket(*pair) for pair in pairwise(sorted(probes))]
    return next((one for one in brackets if one.high.fraction > target), brackets[-1])


def everything_rejected(problem: JointProblem) -> JointPoint:
    """Return the end of the scale: the labels of the context, and none of them kept."""
    return JointPoint(problem.rejects_all, problem.solve(0.0), threshold=math.inf)


def sweep_fractions(
    problem: JointProblem,
    within: NDArray[np.bool_],
    *,
    n_points: int,
    n_workers: int,
    progress: ProgressCallback,
) -> list[JointPoint]:
    """Return `n_points` solves, by failure probability, the first without rejection.

    They lie where the rejected fraction of the pixels `within` changes; there are fewer when it
    changes by less than a pixel between all neighbours.
    """
    solves = SolveProgress(progress, "joint sweep", n_points)
    batch = [share * problem.rejects_all for share in FIRST_GRID[:n_points]]
    solutions: dict[float, JointSolution] = {}
    while batch:
        solutions |= zip(batch, _solve_all(problem, batch, n_workers, solves), strict=True)
        probes = [probe_of(q, solution, within) for q, solution in solutions.items()]
        batch = next_batch(
            [*probes, problem.everything],
            min(BATCH, n_points - len(solutions)),
            resolution=1 / within.sum(),
        )
        # points of a narrow bracket may round to its ends; a batch without a new one ends the sweep
        batch = [q for q in batch if q not in solutions]
    solves.finish()
    return [JointPoint(q, solutions[q]) for q in sorted(solutions)]


def next_batch(probes: list[Probe], size: int, *, resolution: float) -> list[float]:
    """Return up to `size` new failure probabilities where the fraction changes most.

    One after the other goes into the bracket whose change, divided by the points placed in it, is
    still the largest, unless that is smaller than `resolution`.
    """
    brackets = [Bracket(*pair) for pair in pairwise(sorted(probes))]
    brackets = [bracket for bracket in brackets if bracket.width > NARROWEST]
    changes = np.array([bracket.change for bracket in brackets])
    counts = np.zeros(len(brackets), dtype=int)
    for _ in range(size):
        # n points divide the change of a bracket by n + 1 at best; the largest step left gets the
        # next
        steps = changes / (counts + 1)
        if not steps.max(initial=0) >= resolution:
            break
        counts[steps.argmax()] += 1
    return [
        _probability(log_odds)
        for bracket, count in zip(brackets, counts.tolist(), strict=True)
        for log_odds in _between(bracket, count)
    ]


def _between(bracket: Bracket, count: int) -> list[float]:
    """Return the log-odds of `count` new points in a bracket.

    Where nothing becomes everything, they crowd around the crossing of the tangents. On a straight
    line they divide the change of the fraction evenly. Else they divide the log-odds of q evenly.
    """
    low, high = bracket
    left, right = low.log_odds, high.log_odds
    centre = crossing(bracket)
    if (low.fraction, high.fraction) == (0, 1) and math.isfinite(centre):
        # q = 0 is infinitely far away: take as much room to the left of the centre as to its right
        left = left if math.isfinite(left) else 2 * centre - right
        return _around(_inside(centre, left, right, AWAY_FROM_ENDS[0]), left, right, count)
    if not math.isfinite(left):
        left = right - count * math.log(4)  # the more points, the further down they reach
    shares = np.arange(1, count + 1) / (count + 1)
    if bracket.has_line:
        start, end = _log_odds(low.fraction), _log_odds(high.fraction)
        aims = low.fraction + shares * bracket.change
        shares = (np.log(aims / (1 - aims)) - start) / (end - start)
    return [left + float(share) * (right - left) for share in shares]


def _around(centre: float, left: float, right: float, count: int) -> list[float]:
    """Return a centre and, in turn on its left and right, points ever four times as near to it."""
    points = [centre]
    for step in range(1, count):
        points += [centre + (end - centre) / 4**step for end in (left, right)]
    return points[:count]


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
