"""The climb: which pixels to look at next, exactly how many may be wrong, and where to begin.

Regions are the most confident pixels of a map, each a part of the next one. All pixels have one
random order, fixed beforehand: the first k pixels of a region in this order are a simple random
sample of it, for every k and every region. A sample that was drawn at once is a climb with one look
at each region: at the points that happen to lie in it.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import bdtr, gammaln

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.certification.frame import Regions
    from hsreject.certification.sample import Sample

OPEN, WRONG, RIGHT = -1, 0, 127
"""What is known of a pixel: nobody has looked at it, or the first region in which its answer is
wrong. That of a wrong label is the first of all, and a right label is wrong in none; an answer that
gets finer from region to region may be right in some and wrong from one on."""

ROUNDING = 1e-9  # 0.29 * 100 is 28.999999999999996
_N_LOOKS = 16
LAST_LOOK = 0.92  # of all labels: the others went to pixels of smaller regions
_START_WITHOUT_PREDICTION = 0.1
_WRONG_BY = (0.35, 0.6, 1.0, 1.7, 2.8)  # factors by which a prediction may be wrong
_NEARLY_BEST = 0.97
_LIKELY, _NEARLY_SURE = 0.5, 0.9
_FEWEST = 10  # points of a batch


def least_points(max_error: float, delta: float) -> float:
    """Return how many sampled pixels, all right, certify a large region."""
    return math.log(delta) / math.log1p(-max_error)


def too_many(n_pixels: int, max_error: float) -> int:
    """Return the smallest number of wrong pixels that breaks the promise: floor(alpha N) + 1."""
    return math.floor(max_error * n_pixels + ROUNDING) + 1


def hypergeometric(k: Any, n_pixels: int, n_wrong: Any, n_drawn: int) -> NDArray[np.float64]:
    """Return the chance of k wrong pixels among those drawn; SciPy's is five times slower."""

    def log_choose(n: Any, k: Any) -> Any:
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    with np.errstate(invalid="ignore"):  # infinite, or the difference of two, where it cannot be
        logarithm = log_choose(n_wrong, k) + log_choose(n_pixels - n_wrong, n_drawn - k)
        logarithm -= log_choose(n_pixels, n_drawn)
    return np.asarray(np.exp(np.nan_to_num(logarithm, nan=-np.inf)))


@dataclass(frozen=True)
class Terms:
    """What is to be promised, and with how many labels."""

    n: int  # labels that can be made
    max_error: float
    delta: float  # 1 - confidence level

    @cached_property
    def looks(self) -> tuple[int, ...]:
        """After how many pixels a region is tested: 16 geometric steps; none if n is too small."""
        first = max(least_points(self.max_error, self.delta), self.n / 10)
        last = LAST_LOOK * self.n
        if last < first:
            return ()
        steps = np.ceil(np.geomspace(first, last, _N_LOOKS) - ROUNDING)
        return tuple(np.unique(steps).astype(int).tolist())

    def boundaries(self, n_pixels: int) -> tuple[tuple[int, int], ...]:
        """Return the looks of a region and the most errors with which each passes."""
        return boundaries(n_pixels, self.looks, self.max_error, self.delta)


@lru_cache(maxsize=4096)
def boundaries(
    n_pixels: int, looks: tuple[int, ...], max_error: float, delta: float
) -> tuple[tuple[int, int], ...]:
    """Return the looks at which a region of `n_pixels` can pass, and with how many wrong pixels.

    With M = floor(alpha N) + 1 wrong pixels, the fewest that break the promise, f[k] is the chance
    that k are among those looked at and no look has passed yet. Between looks f is convolved with
    the hypergeometric of the pixels that are added. The boundary of look l is the largest b with ::

        P(passed before) + sum_{k <= b} f[k] <= delta n_l / n_L

    where n_L is the last look, or delta if the whole region is looked at. So a region with M or
    more wrong pixels ever passes with a chance of at most delta. Looks where none can pass are left
    out.
    """
    n_wrong = too_many(n_pixels, max_error)
    steps = sorted({min(look, n_pixels) for look in looks})
    if not steps:
        return ()
    # more errors than this never pass, so their chances need not be followed: of hypergeometrics
    # the median is within 1 of the mean
    mean = math.ceil(steps[-1] * n_wrong / n_pixels)
    most = min(n_wrong, mean + 1 if delta < 0.5 else steps[-1])
    chance = np.zeros(most + 1)
    chance[0] = 1.0
    spent, drawn, passable = 0.0, 0, []
    for look in steps:
        before = np.flatnonzero(chance)[:, None]
        more = np.arange(most + 1) - before
        added = hypergeometric(more, n_pixels - drawn, n_wrong - before, look - drawn)
        chance, drawn = chance[before[:, 0]] @ added, look
        whole = look == n_pixels <= looks[-1]
        may_spend = delta if whole else delta * look / looks[-1]
        allowed = np.flatnonzero(spent + np.cumsum(chance) <= may_spend + ROUNDING * delta)
        if allowed.size:
            boundary = int(allowed[-1])
            spent += float(chance[: boundary + 1].sum())
            chance[: boundary + 1] = 0.0
            passable.append((look, boundary))
    return tuple(passable)


@dataclass(frozen=True)
class Look:
    """A look at a region: how many of its pixels were looked at, and how many of those are wrong.

    Of a stratified sample, `n_thinned` points of one `density` (per pixel) are left for a region,
    and `n_kept` and `n_errors` count these.
    """

    threshold: float  # the smallest confidence kept, or the position of the map in its stack
    n_pixels: int  # of the region
    coverage: float  # the share of all pixels that these are
    n_kept: int = 0  # sampled pixels in it; of a climb, those of the last look; 0 before the first
    n_errors: int = 0  # of these
    boundary: int = -1  # the most errors with which it passes; -1 for none
    n_thinned: int = 0
    density: float = 0.0

    @classmethod
    def at(cls, regions: Regions, region: int) -> Look:
        """Return a region that nobody has looked at yet."""
        threshold, size = float(regions.thresholds[region]), int(regions.sizes[region])
        return cls(threshold, size, size / regions.n_all)

    @property
    def passed(self) -> bool:
        """Whether the region is certified."""
        return self.n_errors <= self.boundary

    def judged(self, terms: Terms, *, climb: bool, n_hidden: int = 0) -> Look:
        """Return the look with its boundary: that of a climb, or of a sample drawn at once.

        The latter is the largest b for which a chance of at most delta is left to see b errors or
        fewer, if the promise were broken; of all that may be, where up to `n_hidden` pixels could
        not be drawn.
        """
        if climb:
            boundary = dict(terms.boundaries(self.n_pixels)).get(self.n_kept, -1)
            return replace(self, boundary=boundary)
        alpha, smallest = terms.max_error, max(self.n_pixels - n_hidden, 0)
        numbers = range(too_many(smallest, alpha), too_many(self.n_pixels, alpha) + 1)
        # of regions that break the promise with as many wrong pixels, the largest is the worst
        sizes = [min(self.n_pixels, math.ceil(n / alpha - ROUNDING) - 1) for n in numbers]
        cases = zip(numbers, sizes, strict=True)
        chances = (self._chances(self.n_kept, *case) for case in cases)
        n_passing = ((one <= terms.delta * (1 + ROUNDING)).sum() for one in chances)
        return replace(self, boundary=int(min(n_passing)) - 1)

    def _chances(self, most: int, n_wrong: int, n_pixels: int) -> NDArray[np.float64]:
        """Return the chances of at most 0, 1, ..., `most` errors, were so many pixels wrong.

        Of a simple random sample they are hypergeometric. Of one thinned to a density d, errors
        among the m points left are a sum of independent draws with a mean of d M: Bin(m, d M / m)
        bounds the chance of at most d M - 1 (Hoeffding 1956).
        """
        errors = np.arange(most + 1)
        if not self.n_thinned:
            n_drawn = min(self.n_kept, n_pixels)
            return np.cumsum(hypergeometric(errors, n_pixels, n_wrong, n_drawn))
        mean = self.density * n_wrong
        chance = bdtr(errors, self.n_thinned, min(mean / self.n_thinned, 1.0))
        return np.where(errors > mean - 1, 1.0, chance)

    def upper_bound(self, delta: float) -> float:
        """Return the upper confidence bound of the share of wrong pixels, for this region alone.

        The largest number of wrong pixels that leave a chance above delta for so few errors.
        """
        n_right = self.n_kept - self.n_errors
        possible = range(self.n_errors + 1, self.n_pixels - n_right + 1)

        def is_excluded(n_wrong: int) -> bool:
            return bool(self._chances(self.n_errors, n_wrong, self.n_pixels)[-1] <= delta)

        n_possible = bisect_left(possible, x=True, key=is_excluded)
        return (self.n_errors + n_possible) / self.n_pixels


@dataclass(frozen=True, eq=False)
class Walk:
    """How far a climb has come with the labels that there are."""

    looks: tuple[Look, ...]  # the last one has failed or waits for labels, unless all have passed
    asked: NDArray[np.intp]  # places in the random order to label for the next look; none at an end
    n_more: int | None = None  # labels that are likely to certify one more region; None if none are

    @property
    def n_certified(self) -> int:
        """Pixels of the last region that passed; 0 where none did."""
        return max((look.n_pixels for look in self.looks if look.passed), default=0)

    @property
    def gain_per_label(self) -> float:
        """How many pixels a label is likely to certify; -1 at the end."""
        if not self.asked.size:
            return -1.0
        return (self.looks[-1].n_pixels - self.n_certified) / self.n_more if self.n_more else 0.0


@dataclass(frozen=True, eq=False)
class Climb:
    """Regions of growing size, looked at one after the other until one of them does not pass.

    The rule has no memory. It goes through the regions from `start` on and through the looks of
    each: a look with an unlabelled pixel asks for its label; one with few enough errors certifies
    the region and leads to the next; a region none of whose looks passes ends the climb. It holds
    whenever one stops: whether a region would ever pass depends on the order and the truth only,
    and a broken promise needs the first bad region from the start on to pass.
    """

    regions: Regions
    start: int  # the first region to look at
    terms: Terms
    depth: NDArray[np.integer]  # smallest region around each pixel, in the random order
    pixels: NDArray[np.int64]  # their flat places on the map

    @cached_property
    def places(self) -> list[NDArray[np.intp]]:
        """The first pixels of each region in the random order, as many as are looked at."""
        n_regions, last = self.regions.sizes.size, self.terms.looks[-1]
        return [np.flatnonzero(self.depth <= region)[:last] for region in range(n_regions)]

    def outcome(self, sample: Sample, *, waiting: int = OPEN) -> NDArray[np.int8]:
        """Return what is known of the pixels; points that wait for a label are as `waiting`."""
        wrong = self.regions.answers(sample.row, sample.column, sample.reference)[1]
        first_wrong = np.where(wrong.any(axis=0), wrong.argmax(axis=0), RIGHT)
        outcomes = np.full(self.regions.depth.shape, OPEN, dtype=np.int8)
        outcomes[sample.row, sample.column] = np.where(sample.labelled, first_wrong, waiting)
        return outcomes.ravel()[self.pixels]

    def walk(self, outcome: NDArray[np.int8]) -> Walk:
        """Return how far the climb comes, given the `outcome` (OPEN, WRONG to RIGHT) of pixels."""
        looks: list[Look] = []
        for region in range(self.start, self.regions.sizes.size):
            places, look = self.places[region], Look.at(self.regions, region)
            known = outcome[places]
            # how many of the first 0, 1, 2, ... pixels are open, and how many wrong in this region
            n_open = np.append(0, np.cumsum(known == OPEN))
            n_wrong = np.append(0, np.cumsum((known >= WRONG) & (known <= region)))
            steps = self.terms.boundaries(look.n_pixels)
            for n_looked, boundary in steps:
                if n_open[n_looked]:
                    # at the error rate seen so far; before any label, half of what is allowed
                    n_seen = places.size - n_open[-1] + 1 / self.terms.max_error
                    rate = (n_wrong[-1] + 0.5) / n_seen
                    enough = (
                        int(n_open[n])
                        for n, b in steps
                        if n_open[n] and _chance(b - n_wrong[n], n_open[n], rate) >= _LIKELY
                    )
                    asked = places[:n_looked][known[:n_looked] == OPEN]
                    return Walk((*looks, look), asked, next(enough, None))
                n_errors = int(n_wrong[n_looked])
                look = replace(look, n_kept=n_looked, n_errors=n_errors, boundary=boundary)
                if look.passed:
                    break
            looks.append(look)
            if not look.passed:
                break
        return Walk(tuple(looks), np.empty(0, dtype=np.intp))


def _chance(most: int, n: int, rate: float) -> float:
    """Return the chance of at most this many errors among n pixels."""
    return float(bdtr(most, n, rate)) if most >= 0 else 0.0


def first_batch(climbs: Sequence[Climb], *, n: int) -> NDArray[np.intp]:
    """Return the places of the first looks, at most n, those of the largest climb first."""
    nothing = np.full(climbs[0].depth.size, OPEN, dtype=np.int8)
    largest_first = sorted(climbs, key=lambda climb: -int(climb.regions.sizes[-1]))
    places = np.concatenate([climb.walk(nothing).asked for climb in largest_first])
    return places[np.sort(np.unique(places, return_index=True)[1])][:n]


def next_batch(
    climbs: Sequence[Climb], outcomes: Sequence[NDArray[np.int8]], *, n: int, n_left: int
) -> NDArray[np.intp]:
    """Return the places in the random order to label next, given what is known by each climb.

    Each step goes to the climb with the most pixels per label, and takes it for granted that all of
    its points turn out right, so that points come in larger batches. At most n are handed out, and
    at most a quarter of the `n_left` labels (or 10, if that is more), to keep some for later.
    """
    known = [outcome.copy() for outcome in outcomes]
    walks = [climb.walk(outcome) for climb, outcome in zip(climbs, known, strict=True)]
    count = min(n, n_left, max(-(-n_left // 4), _FEWEST))
    batch = [np.empty(0, dtype=np.intp)]
    while count > 0:
        best = max(walks, key=lambda walk: walk.gain_per_label)
        if not best.asked.size:
            break
        places = best.asked[:count]
        batch.append(places)
        count -= places.size
        for number, climb in enumerate(climbs):
            known[number][places] = RIGHT
            if np.isin(places, walks[number].asked).any():
                walks[number] = climb.walk(known[number])
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


# Where to begin, and what to expect.


def start_of(
    sizes: NDArray[np.int64],
    error: NDArray[np.float64] | None,
    terms: Terms,
    *,
    looks: NDArray[Any],
    otherwise: int,
) -> int:
    """Return the region to begin with, given the share of wrong pixels predicted for each.

    `looks` (region, look) say after how many pixels each can pass. The highest start within 3 % of
    the best is taken, on average over predictions that are wrong by factors of 0.35 to 2.8. No
    label has a part in it, so only power depends on it. Without a prediction, or a chance, it is
    `otherwise`.
    """
    if error is None:
        return otherwise
    # a rule of thumb: a look probably passes at an error of alpha - 1.5 sqrt(alpha (1 - alpha) / n)
    spread = math.sqrt(terms.max_error * (1 - terms.max_error))
    tolerated = terms.max_error - 1.5 * spread / np.sqrt(np.maximum(looks, 1))
    rings, gain = np.diff(sizes, prepend=0), np.zeros(sizes.size)
    for factor, start in itertools.product(_WRONG_BY, range(sizes.size)):
        passes = factor * error[:, None] <= tolerated
        share, reached = np.zeros(sizes.size), 0  # of each ring that is labelled
        for region in range(start, sizes.size):
            needed = np.min(looks[region], where=passes[region], initial=np.inf)
            share[: region + 1] = np.maximum(share[: region + 1], min(needed / sizes[region], 1.0))
            if needed == np.inf or share @ rings > terms.n * (1 + ROUNDING):
                break
            reached = int(sizes[region])
        gain[start] += reached
    return int(np.flatnonzero(gain >= _NEARLY_BEST * gain.max())[-1]) if gain.any() else otherwise


def climb_start(regions: Regions, error: NDArray[np.float64] | None, terms: Terms) -> int:
    """Return the region that a climb begins with: 10 % without a prediction."""
    sizes = regions.sizes
    tenth = int(np.searchsorted(sizes, _START_WITHOUT_PREDICTION * regions.n_all))
    otherwise = min(tenth, sizes.size - 1) if error is None else int(np.argmin(error))
    looks = np.tile(np.array(terms.looks, dtype=np.float64), (sizes.size, 1))
    return start_of(sizes, error, terms, looks=looks, otherwise=otherwise)


def cautious_rate(regions: Regions, sample: Sample, start: int) -> float:
    """Return an error rate that the region which a climb begins with hardly exceeds.

    The larger of two: the rate among the 50 most confident labelled pixels, which does not believe
    in a trend, and the upper limit (95 %, by likelihood ratio) of errors that grow as a power of
    the rank up to its cube, which does not believe in a few pixels that happened to be right.
    """
    keep, all_wrong = regions.answers(sample.row, sample.column, sample.reference)
    # each labelled point counts in the smallest region around it, at the middle of its ring
    used = np.flatnonzero(keep[-1] & sample.labelled)
    depth = keep.argmax(axis=0)[used]
    middle = (regions.sizes - np.diff(regions.sizes, prepend=0) / 2) / regions.n_all
    wrong, rank = all_wrong[depth, used], middle[depth]  # 0 for the most confident of all
    surest = wrong[np.argsort(rank)][:50]
    power, total = np.linspace(0, 3, 31)[:, None, None], np.geomspace(0.002, 0.9, 60)[:, None]
    chance = np.clip(total * (1 + power) * rank**power, 1e-6, 1 - 1e-6)
    likelihood = np.log(np.where(wrong, chance, 1 - chance)).sum(axis=-1)
    plausible = likelihood > likelihood.max() - 1.645**2 / 2
    rate = (total * float(regions.sizes[start] / regions.n_all) ** power)[..., 0]
    return float(max(rate[plausible].max(), (surest.sum() + 0.5) / (surest.size + 1)))


def ways_out(
    n_pixels: int, rate: float, terms: Terms, *, most: int
) -> tuple[int | None, float | None]:
    """Return how many labels, and which larger error, almost surely certify a region at some rate.

    Labels are above the planned number, to two digits and up to `most`; None for neither.
    """

    def passes(**changes: Any) -> bool:  # at the best look, a little less likely than at any
        steps = replace(terms, **changes).boundaries(n_pixels)
        return any(_chance(most, look, rate) >= _NEARLY_SURE for look, most in steps)

    percentages = range(math.floor(100 * terms.max_error + ROUNDING) + 1, 100)
    error = next((one / 100 for one in percentages if passes(max_error=one / 100)), None)
    size = max(terms.n, least_points(terms.max_error, terms.delta))
    while (size := 1.1 * size) <= most:
        digits = int(10 ** max(math.floor(math.log10(size)) - 1, 0))
        n = min(digits * math.ceil(size / digits), most)
        if passes(n=n):
            return n, error
    return None, error
