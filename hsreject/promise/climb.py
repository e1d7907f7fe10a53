"""The climb: which pixels to look at next, exactly how many may be wrong, and where to begin.

Plain arrays only. Regions are the surest pixels of a map, each a part of the next one. All pixels
stand in one random order, fixed beforehand, so that the first k pixels of a region in this order
are a simple random sample of it, for every k and every region.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import bdtr, gammaln

from hsreject.promise.fixed_sequence import (
    ROUNDING,
    best_start,
    least_points,
    tolerated_error,
    too_many,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

OPEN, WRONG, RIGHT = -1, 0, 127
"""What is known of a pixel: nobody has looked at it, or the first region in which its answer is
wrong. That of a wrong label is the first of all, and a right label is wrong in none; an answer that
gets finer from region to region may be right in some and wrong from one on."""

_N_LOOKS = 16
LAST_LOOK = 0.92  # of all labels: the others went to pixels of smaller regions

_START_WITHOUT_PREDICTION = 0.1
_LIKELY, _PROBABLE = 0.5, 0.75
_FEWEST = 10  # points of a batch


@dataclass(frozen=True)
class Terms:
    """What is to be promised, and with how many labels."""

    n: int  # labels that one is ready to make
    max_error: float
    delta: float  # 1 - confidence level

    @cached_property
    def looks(self) -> tuple[int, ...]:
        """After how many pixels of a region one looks whether it passes.

        16 geometric steps from what could pass at all, or n / 10, to 0.92 n; none if n is too
        small.
        """
        first = max(least_points(self.max_error, 1 - self.delta), self.n / 10)
        last = LAST_LOOK * self.n
        if last < first:
            return ()
        steps = np.ceil(np.geomspace(first, last, _N_LOOKS) - ROUNDING)
        return tuple(np.unique(steps).astype(int).tolist())

    def boundaries(self, n_pixels: int) -> tuple[tuple[int, int], ...]:
        """Return the looks of a region and the most errors with which each passes."""
        return boundaries(n_pixels, self.looks, self.max_error, self.delta)

    def pass_chance(self, n_pixels: int, rate: float) -> float:
        """Return the chance to pass at the best look, a little less than that to pass at all."""
        looks, boundary = np.array(self.boundaries(n_pixels), dtype=np.int64).reshape(-1, 2).T
        return float(_chance(boundary, looks, rate).max(initial=0.0))


@lru_cache(maxsize=4096)
def boundaries(
    n_pixels: int, looks: tuple[int, ...], max_error: float, delta: float
) -> tuple[tuple[int, int], ...]:
    """Return the looks at which a region of `n_pixels` can pass, and with how many wrong pixels.

    With M = floor(alpha N) + 1 wrong pixels, the fewest that break the promise, f[k] is the chance
    that k are among those looked at and no look has passed yet. Between looks f is convolved with
    the hypergeometric of the pixels that are added. The boundary of look l is the largest b with ::

        P(passed before) + sum_{k <= b} f[k] <= delta n_l / n_L

    and a look where nothing can pass is left out. A region smaller than a look is looked at whole,
    where all of delta may be spent. So a region with M or more wrong pixels ever passes with a
    chance of at most delta.
    """
    if not looks:
        return ()
    n_wrong = int(too_many(np.array(n_pixels), max_error))
    whole = n_pixels <= looks[-1]
    steps = sorted({min(look, n_pixels) for look in looks})
    # more errors than this never pass, so their chances need not be followed
    most = min(n_wrong, _most_errors(steps[-1], n_pixels, n_wrong, delta))
    chance = np.zeros(most + 1)
    chance[0] = 1.0
    spent, drawn, passable = 0.0, 0, []
    for look in steps:
        chance = chance @ _transitions(most, n_pixels - drawn, n_wrong, look - drawn)
        drawn = look
        may_spend = delta if whole and look == steps[-1] else delta * look / looks[-1]
        allowed = np.flatnonzero(spent + np.cumsum(chance) <= may_spend + ROUNDING * delta)
        boundary = int(allowed[-1]) if allowed.size else -1
        spent += float(chance[: boundary + 1].sum())
        chance[: boundary + 1] = 0.0
        if boundary >= 0:
            passable.append((look, boundary))
    return tuple(passable)


def _most_errors(look: int, n_pixels: int, n_wrong: int, delta: float) -> int:
    """Return a number of errors that no boundary exceeds: the median is within 1 of the mean."""
    return math.ceil(look * n_wrong / n_pixels) + 1 if delta < 0.5 else look


def _transitions(most: int, n_pixels: int, n_wrong: int, n_drawn: int) -> NDArray[np.float64]:
    """Return the chances to come from k wrong pixels (row) to others (column) by more draws.

    `n_pixels` are left, `n_wrong` - k of them wrong. More than `most` wrong pixels are not
    followed.
    """
    before = np.arange(most + 1)[:, None]
    wrong, right = n_wrong - before, n_pixels - n_wrong + before
    more = np.arange(most + 1)[None, :] - before
    possible = (more >= 0) & (more <= wrong) & (n_drawn - more <= right) & (more <= n_drawn)
    possible &= right >= 0
    some, size = np.where(possible, more, 0), np.where(possible, right, n_pixels)
    logarithm = (
        _log_choose(np.where(possible, wrong, 0), some)
        + _log_choose(size, np.where(possible, n_drawn - more, 0))
        - _log_choose(np.array(n_pixels), np.array(n_drawn))
    )
    return np.where(possible, np.exp(logarithm), 0.0)


def _log_choose(n: NDArray[np.int64], k: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


@dataclass(frozen=True)
class Step:
    """How far the looks at a region have come."""

    region: int
    n_looked: int  # pixels of the last look that was made; 0 before the first one
    n_errors: int  # among these
    boundary: int  # the most errors with which that look passes; -1 for none

    @property
    def passed(self) -> bool:
        """Whether the region is certified."""
        return self.n_errors <= self.boundary


@dataclass(frozen=True, eq=False)
class Walk:
    """How far a climb has come with the labels that there are."""

    steps: tuple[Step, ...]  # the last one has failed or waits for labels, unless all have passed
    asked: NDArray[np.intp]  # places in the random order to label for the next look; none at an end

    @property
    def reached(self) -> Step | None:
        """The last region that passed."""
        passed = [step for step in self.steps if step.passed]
        return passed[-1] if passed else None


@dataclass(frozen=True, eq=False)
class Climb:
    """Regions of growing size, looked at one after the other until one of them does not pass.

    The rule has no memory: it goes through the regions from `start` on and through the looks of
    each. A look with an unlabelled pixel asks for its label; one with few enough errors certifies
    the region and leads to the next; a region none of whose looks passes ends the climb.

    It holds whenever one stops: whether a region would ever pass depends on the order and the truth
    only, and a broken promise needs the first bad region from the start on to pass.
    """

    sizes: NDArray[np.int64]  # pixels of each region, ascending
    depth: NDArray[np.intp]  # smallest region around each pixel, in the random order
    start: int  # the first region to look at
    terms: Terms

    @cached_property
    def _places(self) -> dict[int, NDArray[np.intp]]:
        return {}

    def places(self, region: int) -> NDArray[np.intp]:
        """Return the first pixels of a region in the random order, as many as are looked at."""
        if region not in self._places:
            self._places[region] = np.flatnonzero(self.depth <= region)[: self.terms.looks[-1]]
        return self._places[region]

    def walk(self, outcome: NDArray[np.int8]) -> Walk:
        """Return how far the climb comes if `outcome` (OPEN, WRONG to RIGHT) is known of pixels."""
        steps: list[Step] = []
        for region in range(self.start, self.sizes.size):
            places = self.places(region)
            n_open, n_wrong = _counted(outcome[places], region)
            step = Step(region, 0, 0, -1)
            for look, boundary in self.terms.boundaries(int(self.sizes[region])):
                if n_open[look]:
                    first = places[:look]
                    return Walk((*steps, step), first[outcome[first] == OPEN])
                step = Step(region, look, int(n_wrong[look]), boundary)
                if step.passed:
                    break
            steps.append(step)
            if not step.passed:
                break
        return Walk(tuple(steps), np.empty(0, dtype=np.intp))

    def n_more(self, walk: Walk, outcome: NDArray[np.int8]) -> int | None:
        """Return how many more labels are likely to certify one more region; None if none are.

        Those of the first look that passes with a chance of at least 1/2 at the error rate seen so
        far in its region; before any label, half of what is allowed.
        """
        if not walk.asked.size:
            return None
        region = walk.steps[-1].region
        n_open, n_wrong = _counted(outcome[self.places(region)], region)
        n_labelled = n_open.size - 1 - n_open[-1]
        looks, boundary = np.array(self.terms.boundaries(int(self.sizes[region]))).T
        more, spare = n_open[looks], boundary - n_wrong[looks]
        chance = _chance(spare, more, (n_wrong[-1] + 0.5) / (n_labelled + 1 / self.terms.max_error))
        likely = np.flatnonzero((more > 0) & (chance >= _LIKELY))
        return int(more[likely[0]]) if likely.size else None

    def gain_per_label(self, walk: Walk, outcome: NDArray[np.int8]) -> float:
        """Return how many pixels a label is likely to certify; -1 at the end."""
        if not walk.asked.size:
            return -1.0
        n_labels = self.n_more(walk, outcome)
        before = 0 if walk.reached is None else self.sizes[walk.reached.region]
        gain = float(self.sizes[walk.steps[-1].region] - before)
        return 0.0 if n_labels is None else gain / n_labels

    def start_rate(self, outcome: NDArray[np.int8]) -> float:
        """Return the error rate seen in the first region."""
        n_open, n_wrong = _counted(outcome[self.places(self.start)], self.start)
        return float((n_wrong[-1] + 0.5) / (n_open.size - n_open[-1]))


def _counted(outcome: NDArray[np.int8], region: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many of the first 0, 1, 2, ... pixels are open, and how many wrong in a region."""
    counts = np.zeros((2, outcome.size + 1), dtype=np.int64)
    np.cumsum(outcome == OPEN, out=counts[0, 1:])
    np.cumsum((outcome >= WRONG) & (outcome <= region), out=counts[1, 1:])
    return counts[0], counts[1]


def _chance(most: NDArray[np.int64], n: NDArray[np.int64], rate: float) -> NDArray[np.float64]:
    """Return the chance of at most so many errors among n pixels."""
    return np.where(most < 0, 0.0, bdtr(np.maximum(most, 0).astype(float), n, rate))


def first_batch(climbs: Sequence[Climb], *, n: int) -> NDArray[np.intp]:
    """Return the places of the first looks in the random order, at most n, the largest climb first.

    All climbs are over the same pixels; what is labelled for one serves the others.
    """
    nothing = np.full(climbs[0].depth.size, OPEN, dtype=np.int8)
    largest_first = sorted(climbs, key=lambda climb: -int(climb.sizes[-1]))
    places = np.concatenate([climb.walk(nothing).asked for climb in largest_first])
    return places[np.sort(np.unique(places, return_index=True)[1])][:n]


def next_batch(
    climbs: Sequence[Climb], outcomes: Sequence[NDArray[np.int8]], *, n: int, n_left: int
) -> NDArray[np.intp]:
    """Return the places in the random order to label next, given what is known by each climb.

    Each step goes to the climb with the most pixels per label. Those of its next look come first;
    the others are those that would be asked for if all of them turn out right, so that one need not
    come back for every few points. At most n are handed out, and at most a quarter of the `n_left`
    labels that may still be made (but 10), to keep some for later.
    """
    outcomes = [outcome.copy() for outcome in outcomes]
    walks = [climb.walk(outcome) for climb, outcome in zip(climbs, outcomes, strict=True)]
    gains = list(map(Climb.gain_per_label, climbs, walks, outcomes))
    count = min(n, n_left, max(-(-n_left // 4), _FEWEST))
    batch = [np.empty(0, dtype=np.intp)]
    while count > 0 and max(gains) >= 0:
        places = walks[gains.index(max(gains))].asked[:count]
        batch.append(places)
        count -= places.size
        for number, (climb, outcome) in enumerate(zip(climbs, outcomes, strict=True)):
            outcome[places] = RIGHT
            if np.isin(places, walks[number].asked).any():
                walks[number] = climb.walk(outcome)
                gains[number] = climb.gain_per_label(walks[number], outcome)
    return np.concatenate(batch)


def labelled(
    climbs: Sequence[Climb], truths: Sequence[NDArray[np.int8]], *, n: int, n_batch: int = 50
) -> list[NDArray[np.int8]]:
    """Return what is known when climbs have ended or used up n labels, given the whole truth."""
    outcomes = [np.full(truth.size, OPEN, dtype=np.int8) for truth in truths]
    places, n_left = first_batch(climbs, n=n), n
    while places.size:
        for outcome, truth in zip(outcomes, truths, strict=True):
            outcome[places] = truth[places]
        n_left -= places.size
        places = next_batch(climbs, outcomes, n=n_batch, n_left=n_left)
    return outcomes


def labels_needed(n_pixels: int, rate: float, terms: Terms, *, most: int) -> int | None:
    """Return how many labels, more than planned, would probably certify a region of some error.

    With a chance of 3/4, to two digits; None if `most` are not enough.
    """
    size = max(terms.n, least_points(terms.max_error, 1 - terms.delta))
    while (size := 1.1 * size) <= most:
        digits = int(10 ** max(math.floor(math.log10(size)) - 1, 0))
        wanted = min(digits * math.ceil(size / digits), most)
        if replace(terms, n=wanted).pass_chance(n_pixels, rate) >= _PROBABLE:
            return wanted
    return None


def smallest_error(n_pixels: int, rate: float, terms: Terms) -> float | None:
    """Return the smallest larger percentage that the labels would probably certify of a region."""
    for percentage in range(math.floor(100 * terms.max_error + ROUNDING) + 1, 51):
        larger = replace(terms, max_error=percentage / 100)
        if larger.pass_chance(n_pixels, rate) >= _PROBABLE:
            return percentage / 100
    return None


def first_places(
    depth: NDArray[np.intp], key: NDArray[np.uint64], n_regions: int, most: int
) -> NDArray[np.intp]:
    """Return the pixels that can be among the first `most` of a region in the order of their keys.

    `depth` is the smallest region around each pixel, `n_regions` for those outside of all.
    """
    rings = []
    for region in range(n_regions):
        ring = np.flatnonzero(depth == region)
        if ring.size > most:
            ring = ring[np.argpartition(key[ring], most)[:most]]
        rings.append(ring)
    return np.concatenate(rings)


def climb_start(
    sizes: NDArray[np.int64], error: NDArray[np.float64] | None, terms: Terms, *, n_all: int
) -> int:
    """Return the region to begin with, given the share of wrong pixels predicted for each.

    That from which :func:`forecast` says that it comes far; where nothing is likely to pass the
    one with the smallest error, and 10 % without a prediction.
    """
    if error is None:
        return min(int(np.searchsorted(sizes, _START_WITHOUT_PREDICTION * n_all)), sizes.size - 1)
    start = best_start(sizes, error, lambda errors, start: forecast(sizes, errors, start, terms))
    return int(np.argmin(error)) if start is None else start


def forecast(
    sizes: NDArray[np.int64], error: NDArray[np.float64], start: int, terms: Terms
) -> int | None:
    """Return the last region that a climb would reach if `error` were true and labels sufficed."""
    looks = np.array(terms.looks)
    tolerated = tolerated_error(terms.max_error, looks)
    rings = np.diff(sizes, prepend=0)
    share = np.zeros(sizes.size)  # of each ring that is labelled
    reached = None
    for region in range(start, sizes.size):
        passing = np.flatnonzero(error[region] <= tolerated)
        if not passing.size:
            break
        needed = min(looks[passing[0]] / sizes[region], 1.0)
        share[: region + 1] = np.maximum(share[: region + 1], needed)
        if share @ rings > terms.n:
            break
        reached = region
    return reached
