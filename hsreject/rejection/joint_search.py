"""Failure probabilities that are worth a solve: for a wanted fraction, and for a sweep.

The rejected fraction r grows with the failure probability q, from 0 at q = 0 to 1 where the
rejection class is at least as likely as any other class, at q = 1/2 or before. In between it is
close to a logistic function of log(q / (1 - q)), whose place and width depend on the scene. So new
points are found by linear interpolation of log-odds against log-odds between known points. Every
choice depends on the finished solves, never on their order or on the number of workers.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

FIRST_GRID = (0.0, 0.25, 0.5, 0.75)
"""Where every sweep begins, in shares of the failure probability that rejects everything."""

NARROWEST = 1e-4
"""Width of an interval, in log-odds of the failure probability, that is not divided any further."""


STEEPNESS = 0.03
"""By how much log-odds of the failure probability go up with those of the fraction, at first."""

NEARLY = 1e-4
"""What counts as the fraction of a probe that rejects nothing, where a line is drawn through it."""


class Probe(NamedTuple):
    r"""A failure probability, the fraction that it rejects, and what more is known of its solve.

    With :math:`\lambda` the log-odds of q, and all likelihoods divided by 1 - q, let
    :math:`G(\lambda)` be the optimum of the joint problem. As the smallest of concave functions of
    :math:`\lambda` it is concave, and its slope is minus the rejected mass: the sum over the pixels
    of the posterior probability of rejection. Where regions fall all at once, the slope jumps.

    Attributes
    ----------
    failure_probability, fraction : float
    objective : float
        G, a pixel; NaN where it is not known.
    rejected_mass : float
        Minus the slope of G, a pixel, in [0, 1].
    """

    failure_probability: float
    fraction: float
    objective: float = math.nan
    rejected_mass: float = math.nan


def between(low: Probe, high: Probe, share: float, *, reach: float = 4.0) -> float:
    """Return where the fraction should have gone a `share` of the way between two probes.

    Next to a probe that rejects nothing or everything the logistic shape says nothing: the change
    may begin anywhere. There the share is one of the log-odds of the failure probability. A failure
    probability of 0 has none; log-odds then begin at the `reach`-th part of the upper one.

    Examples
    --------
    >>> round(between(Probe(0.2, 0.1), Probe(0.3, 0.5), 0.5), 4)
    0.2582
    """
    if 0 < low.fraction < high.fraction < 1:
        left, right = _log_odds(low.fraction), _log_odds(high.fraction)
        aim = _log_odds(low.fraction + share * (high.fraction - low.fraction))
        share = (aim - left) / (right - left)
    end = high.failure_probability
    return _part_way(low.failure_probability or end / reach, end, share)


def next_probe(probes: list[Probe], wanted: float, *, n_tried: int) -> float | None:
    """Return the failure probability to try next for a wanted fraction, None when there is none.

    The line through the two probes that come nearest to the wanted fraction tells it. Where one end
    of the bracket rejects nothing or everything, or the last try met a plateau, or two have not
    halved the bracket (next to a jump), the tangents of the objective tell more (:func:`crossing`);
    where three have not, it is halved. As long as every try rejects too much and nothing is known
    of the objective, each goes down further than the one before: novelty may move all changes to
    failure probabilities of a thousandth and less.

    Parameters
    ----------
    probes : list of Probe
        What is known beforehand, both ends included, and then the tries, in their order.
    wanted : float
    n_tried : int
        How many of the probes were tries.
    """
    low, high = bracket(probes, wanted)
    start, end = low.failure_probability, high.failure_probability
    if is_jump(low, high):
        return None
    stuck = _is_stuck(probes, wanted, tries=2, n_tried=n_tried)
    if _is_stuck(probes, wanted, tries=3, n_tried=n_tried):
        return _part_way(start, end, 0.5)
    on_plateau = n_tried > 1 and _is_plateau(probes, wanted)
    if stuck or on_plateau or low.fraction == 0 or high.fraction == 1:
        meeting = crossing(low, high)
        if n_tried == 0:
            meeting += STEEPNESS * _log_odds(wanted)
        if math.isfinite(meeting):
            return _inside(meeting, low, high)
    if stuck:
        return _part_way(start, end, 0.5)
    if start == 0 or high.fraction == 1:
        doublings = min(max(n_tried - 1, 0), 4)
        return between(low, high, 0.5, reach=4.0 ** (2**doublings))
    aim = start
    if low.fraction > 0:
        aim = _on_line(*_nearest_two(probes, wanted), wanted)
    if not start < aim < end:
        aim = _on_line(_with_log_odds(low), high, wanted)
    # the bracket shrinks, whatever the shape in between
    return min(max(aim, _part_way(start, end, 0.05)), _part_way(start, end, 0.95))


def is_jump(low: Probe, high: Probe) -> bool:
    """Return whether two probes are so near that the fraction counts as jumping between them."""
    return _width(low, high) < NARROWEST


def _is_stuck(probes: list[Probe], wanted: float, *, tries: int, n_tried: int) -> bool:
    """Return whether that many tries have not halved the bracket."""
    if n_tried < tries:
        return False
    return _width(*bracket(probes, wanted)) > _width(*bracket(probes[:-tries], wanted)) / 2


def _is_plateau(probes: list[Probe], wanted: float) -> bool:
    """Return whether the last try changed next to nothing: the ends differ as before."""
    now, before = (bracket(known, wanted) for known in (probes, probes[:-1]))
    step, former = (high.rejected_mass - low.rejected_mass for low, high in (now, before))
    return step > 0.95 * former


def crossing(low: Probe, high: Probe) -> float:
    r"""Return the log-odds where the tangents of G at two probes meet, NaN if they tell nothing.

    Where the rejected mass jumps between two values, the tangents of either side meet at the jump;
    else, as G is concave, somewhere in the middle of the change.

    Examples
    --------
    With nothing rejected a pixel costs 0.5; with everything rejected, minus the log-odds:

    >>> crossing(Probe(0.0, 0.0, 0.5, 0.0), Probe(0.5, 1.0, 0.0, 1.0))
    -0.5
    """
    step = high.rejected_mass - low.rejected_mass
    if not step > 0:
        return math.nan
    end = high.rejected_mass * _log_odds(high.failure_probability)
    start = low.rejected_mass and low.rejected_mass * _log_odds(low.failure_probability)
    return (high.objective - low.objective + end - start) / step


def _inside(log_odds: float, low: Probe, high: Probe) -> float:
    """Return the failure probability of log-odds, at least a little inside of a bracket."""
    right = _log_odds(high.failure_probability)
    width = right - log_odds
    if low.failure_probability > 0:
        width = right - _log_odds(low.failure_probability)
        log_odds = max(log_odds, right - width + max(NARROWEST / 2, width / 100))
    return _probability(min(log_odds, right - max(NARROWEST / 2, width / 100)))


def _part_way(start: float, end: float, share: float) -> float:
    """Return the failure probability a share of the way between two, in log-odds."""
    return _probability(_log_odds(start) + share * (_log_odds(end) - _log_odds(start)))


def _width(low: Probe, high: Probe) -> float:
    """Return the distance of two probes in log-odds, infinite from a failure probability of 0."""
    if low.failure_probability == 0:
        return math.inf
    return _log_odds(high.failure_probability) - _log_odds(low.failure_probability)


def _nearest_two(probes: list[Probe], wanted: float) -> tuple[Probe, Probe]:
    """Return the probes of different fractions, neither 0 nor 1, nearest to the wanted one."""
    rising = {probe.fraction: probe for probe in monotone(probes) if 0 < probe.fraction < 1}
    first, second = sorted(rising, key=lambda fraction: (abs(fraction - wanted), fraction))[:2]
    return rising[min(first, second)], rising[max(first, second)]


def _with_log_odds(probe: Probe) -> Probe:
    """Return a probe whose fraction has log-odds: nothing is taken for nearly nothing."""
    return Probe(probe.failure_probability, max(probe.fraction, NEARLY))


def _on_line(low: Probe, high: Probe, wanted: float) -> float:
    return between(low, high, (wanted - low.fraction) / (high.fraction - low.fraction))


def bracket(probes: list[Probe], wanted: float) -> tuple[Probe, Probe]:
    """Return the neighbouring probes around a wanted fraction.

    Fractions are made monotone first: solves end within their tolerance, so a larger failure
    probability may reject a pixel less.
    """
    ordered = monotone(probes)
    below = max(i for i, probe in enumerate(ordered) if probe.fraction <= wanted or i == 0)
    below = min(below, len(ordered) - 2)
    return ordered[below], ordered[below + 1]


def monotone(probes: list[Probe]) -> list[Probe]:
    """Return the probes by failure probability, each fraction raised to the largest before it."""
    ordered, largest = [], 0.0
    for probe in sorted(probes):
        largest = max(largest, probe.fraction)
        ordered.append(probe._replace(fraction=largest))
    return ordered


def next_batch(probes: list[Probe], size: int, *, resolution: float) -> list[float]:
    """Return up to `size` new failure probabilities where the fraction changes most.

    One after the other goes where, with the points already placed there, the step of the fraction
    from point to point is still largest, unless that is less than `resolution`; within an
    interval the fractions aimed at are equally spaced. The more points go above a failure
    probability of 0, the further down they reach.
    """
    ordered = monotone(probes)
    intervals = [(low, high) for low, high in pairwise(ordered) if _width(low, high) > NARROWEST]
    counts = [0] * len(intervals)
    for _ in range(size):
        steps = [
            (high.fraction - low.fraction) / (count + 1)
            for (low, high), count in zip(intervals, counts, strict=True)
        ]
        if not steps or max(steps) < resolution:
            break
        counts[steps.index(max(steps))] += 1
    return [
        q
        for (low, high), count in zip(intervals, counts, strict=True)
        for q in _spread(low, high, count)
    ]


def _spread(low: Probe, high: Probe, count: int) -> list[float]:
    """Return failure probabilities between two probes, ascending.

    Where nothing becomes everything, they lie the denser the nearer to where tangents meet.
    """
    meeting = crossing(low, high)
    if (low.fraction, high.fraction) != (0, 1) or not math.isfinite(meeting):
        shares = [(place + 1) / (count + 1) for place in range(count)]
        return [between(low, high, share, reach=4.0**count) for share in shares]
    right = _log_odds(high.failure_probability)
    left = _log_odds(low.failure_probability) if low.failure_probability else 2 * meeting - right
    centre = min(max(meeting, left + (right - left) / 100), right - (right - left) / 100)
    spread = [centre]
    for place in range(1, count):
        side = left if place % 2 else right
        spread.append(centre + (side - centre) / 4 ** ((place + 1) // 2))
    return sorted(map(_probability, spread[:count]))


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))


def _log_odds(value: float) -> float:
    return math.log(value / (1 - value))
