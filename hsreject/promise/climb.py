"""The climb: which pixels to look at next, exactly how many may be wrong, and where to begin.

Regions are the most confident pixels of a map, each a part of the next one. All pixels have one
random order, fixed beforehand, so that the first k pixels of a region in this order
are a simple random sample of it, for every k and every region. A sample that was drawn at once is a
climb with one look at each region: at the points that happen to lie in it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import bdtr, gammaln
from scipy.stats import hypergeom

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.promise.frame import Regions
    from hsreject.promise.sample import Sample

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


@dataclass(frozen=True)
class Terms:
    """What is to be promised, and with how many labels."""

    n: int  # labels that can be made
    max_error: float
    delta: float  # 1 - confidence level

    @cached_property
    def looks(self) -> tuple[int, ...]:
        """After how many pixels of a region it is tested.

        16 geometric steps from what could pass at all, or n / 10, to 0.92 n; none if n is too
        small.
        """
        first = max(least_points(self.max_error, self.delta), self.n / 10)
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
        steps = self.boundaries(n_pixels)
        return max((float(_chance(most, look, rate)) for look, most in steps), default=0.0)


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
    n_wrong = too_many(n_pixels, max_error)
    steps = sorted({min(look, n_pixels) for look in looks if look})
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
        chance = _drawn_on(chance, n_pixels - drawn, n_wrong, look - drawn)
        drawn = look
        whole = look == n_pixels <= looks[-1]
        may_spend = delta if whole else delta * look / looks[-1]
        allowed = np.flatnonzero(spent + np.cumsum(chance) <= may_spend + ROUNDING * delta)
        if allowed.size:
            boundary = int(allowed[-1])
            spent += float(chance[: boundary + 1].sum())
            chance[: boundary + 1] = 0.0
            passable.append((look, boundary))
    return tuple(passable)


def too_many(n_pixels: int, max_error: float) -> int:
    """Return the smallest number of wrong pixels that breaks the promise: floor(alpha N) + 1."""
    return math.floor(max_error * n_pixels + ROUNDING) + 1


def _drawn_on(
    chance: NDArray[np.float64], n_pixels: int, n_wrong: int, n_drawn: int
) -> NDArray[np.float64]:
    """Return the chances of 0, 1, 2, ... wrong pixels after more draws from the `n_pixels` left.

    After k wrong pixels, `n_wrong` - k are left; more than are in `chance` are not followed.
    """

    def log_choose(n: Any, k: Any) -> Any:
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    before = np.flatnonzero(chance)
    wrong = n_wrong - before[:, None]
    more = np.arange(chance.size) - before[:, None]
    with np.errstate(invalid="ignore"):  # gammaln is infinite, or their difference NaN, where
        logarithm = (  # something cannot be
            log_choose(wrong, more)
            + log_choose(n_pixels - wrong, n_drawn - more)
            - log_choose(n_pixels, n_drawn)
        )
    return np.asarray(chance[before] @ np.exp(np.nan_to_num(logarithm, nan=-np.inf)))


@dataclass(frozen=True)
class Look:
    """A look at a region: how many of its pixels were looked at, and how many of those are wrong.

    Of a stratified sample, `n_thinned` points of one `density` (per pixel) are left for a region,
    and `n_kept` and `n_errors` count these.
    """

    region: int  # its number
    threshold: float  # the smallest confidence kept, or the position of the map in its stack
    n_pixels: int  # of the region
    coverage: float  # the share of all pixels that these are
    n_kept: int = 0  # sampled pixels in it; of a climb, those of the last look; 0 before the first
    n_errors: int = 0  # of these
    boundary: int = -1  # the most errors with which it passes; -1 for none
    n_thinned: int = 0
    density: float = 0.0

    @classmethod
    def at(cls, regions: Any, region: int) -> Look:
        """Return a region that nobody has looked at yet."""
        threshold, size = float(regions.thresholds[region]), int(regions.sizes[region])
        return cls(region, threshold, size, size / regions.n_all)

    @property
    def passed(self) -> bool:
        """Whether the region is certified."""
        return self.n_errors <= self.boundary

    def judged(self, terms: Terms, *, climb: bool, n_hidden: int = 0) -> Look:
        """Return the look with its boundary: that of a climb, or of a sample drawn at once.

        Of a simple random sample it is the largest b with P[H(N, M, n) <= b] <= delta, where H is
        hypergeometric. Of a stratified sample thinned to a density d, wrong pixels among the m
        points left are a sum of independent draws with a mean of at least d M, so that, by
        Hoeffding (1956), it is the largest b <= d M - 1 with P[Bin(m, d M / m) <= b] <= delta.
        Where up to `n_hidden` pixels could not be drawn, the smallest of all that may be counts.
        """
        alpha, fewest = terms.max_error, too_many(max(self.n_pixels - n_hidden, 0), terms.max_error)
        if climb:
            boundary = dict(terms.boundaries(self.n_pixels)).get(self.n_kept, -1)
        elif self.n_thinned:
            most = np.arange(math.floor(self.density * fewest - 1) + 1)
            chance = _chance(most, self.n_thinned, min(self.density * fewest / self.n_thinned, 1.0))
            boundary = int((chance <= terms.delta + ROUNDING).sum()) - 1
        else:
            # of regions that break the promise with as many wrong pixels, the largest is the worst
            numbers = range(fewest, too_many(self.n_pixels, alpha) + 1)
            sizes = {min(self.n_pixels, math.ceil(m / alpha - ROUNDING) - 1) for m in numbers}
            looks = (boundaries(size, (self.n_kept,), alpha, terms.delta) for size in sizes)
            boundary = min(one[0][1] if one else -1 for one in looks)
        return replace(self, boundary=boundary)

    def upper_bound(self, delta: float) -> float:
        """Return the upper confidence bound of the share of wrong pixels, for this region alone.

        The largest number of wrong pixels that leave a chance above delta for so few errors.
        """
        low, high = self.n_errors, self.n_pixels - (self.n_kept - self.n_errors)
        while low < high:
            middle = (low + high + 1) // 2
            mean = self.density * middle
            if not self.n_thinned:
                chance = hypergeom.cdf(self.n_errors, self.n_pixels, middle, self.n_kept)
            elif self.n_errors > mean - 1:
                chance = 1.0
            else:
                chance = _chance(self.n_errors, self.n_thinned, min(mean / self.n_thinned, 1.0))
            low, high = (middle, high) if chance > delta else (low, middle - 1)
        return low / self.n_pixels


@dataclass(frozen=True, eq=False)
class Climb:
    """Regions of growing size, looked at one after the other until one of them does not pass.

    The rule has no memory: it goes through the regions from `start` on and through the looks of
    each. A look with an unlabelled pixel asks for its label; one with few enough errors certifies
    the region and leads to the next; a region none of whose looks passes ends the climb.

    It holds whenever one stops: whether a region would ever pass depends on the order and the truth
    only, and a broken promise needs the first bad region from the start on to pass.
    """

    regions: Regions
    start: int  # the first region to look at
    terms: Terms
    depth: NDArray[np.intp]  # smallest region around each pixel, in the random order
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
        outcomes = np.full(sample.grid.height * sample.grid.width, OPEN, dtype=np.int8)
        outcomes[sample.place] = np.where(sample.labelled, first_wrong, waiting)
        return outcomes[self.pixels]

    def walk(self, outcome: NDArray[np.int8]) -> Walk:
        """Return how far the climb comes, given the `outcome` (OPEN, WRONG to RIGHT) of pixels."""
        looks: list[Look] = []
        for region in range(self.start, self.regions.sizes.size):
            places, look = self.places[region], Look.at(self.regions, region)
            n_open, n_wrong = _counted(outcome[places], region)
            for n_looked, boundary in self.terms.boundaries(look.n_pixels):
                if n_open[n_looked]:
                    first = places[:n_looked]
                    return Walk(self, outcome, (*looks, look), first[outcome[first] == OPEN])
                n_errors = int(n_wrong[n_looked])
                look = replace(look, n_kept=n_looked, n_errors=n_errors, boundary=boundary)
                if look.passed:
                    break
            looks.append(look)
            if not look.passed:
                break
        return Walk(self, outcome, tuple(looks), np.empty(0, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class Walk:
    """How far a climb has come with the labels that there are."""

    climb: Climb
    outcome: NDArray[np.int8]  # what is known of its pixels
    looks: tuple[Look, ...]  # the last one has failed or waits for labels, unless all have passed
    asked: NDArray[np.intp]  # places in the random order to label for the next look; none at an end

    @property
    def n_certified(self) -> int:
        """Pixels of the last region that passed; 0 where none did."""
        return max((look.n_pixels for look in self.looks if look.passed), default=0)

    @cached_property
    def n_more(self) -> int | None:
        """How many more labels are likely to certify one more region; None if none are.

        Those of the first look that passes with a chance of at least 1/2 at the error rate seen so
        far in its region; before any label, half of what is allowed.
        """
        if not self.asked.size:
            return None
        region, terms = self.looks[-1].region, self.climb.terms
        n_open, n_wrong = _counted(self.outcome[self.climb.places[region]], region)
        rate = (n_wrong[-1] + 0.5) / (n_open.size - 1 - n_open[-1] + 1 / terms.max_error)
        for look, boundary in terms.boundaries(self.looks[-1].n_pixels):
            if n_open[look] and _chance(boundary - n_wrong[look], n_open[look], rate) >= _LIKELY:
                return int(n_open[look])
        return None

    @property
    def gain_per_label(self) -> float:
        """How many pixels a label is likely to certify; -1 at the end."""
        if not self.asked.size:
            return -1.0
        return (self.looks[-1].n_pixels - self.n_certified) / self.n_more if self.n_more else 0.0


def _counted(outcome: NDArray[np.int8], region: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many of the first 0, 1, 2, ... pixels are open, and how many wrong in a region."""
    counts = np.zeros((2, outcome.size + 1), dtype=np.int64)
    np.cumsum(outcome == OPEN, out=counts[0, 1:])
    np.cumsum((outcome >= WRONG) & (outcome <= region), out=counts[1, 1:])
    return counts[0], counts[1]


def _chance(
    most: int | NDArray[np.int64], n: int, rate: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the chance of at most this many errors among n pixels."""
    return np.where(np.less(most, 0), 0.0, bdtr(np.maximum(most, 0.0), int(n), rate))


def first_batch(climbs: Sequence[Climb], *, n: int) -> NDArray[np.intp]:
    """Return the places of the first looks in the random order, at most n, the largest climb first.

    All climbs are over the same pixels; what is labelled for one counts for the others.
    """
    nothing = np.full(climbs[0].depth.size, OPEN, dtype=np.int8)
    largest_first = sorted(climbs, key=lambda climb: -int(climb.regions.sizes[-1]))
    places = np.concatenate([climb.walk(nothing).asked for climb in largest_first])
    return places[np.sort(np.unique(places, return_index=True)[1])][:n]


def next_batch(
    climbs: Sequence[Climb], outcomes: Sequence[NDArray[np.int8]], *, n: int, n_left: int
) -> NDArray[np.intp]:
    """Return the places in the random order to label next, given what is known by each climb.

    Each step goes to the climb with the most pixels per label. Those of its next look come first;
    the others are those that would be asked for if all of them turn out right, so that points come
    in larger batches. At most n are handed out, and at most a quarter of the `n_left` labels that
    may still be made (or 10, if that is more), to keep some for later.
    """
    walks = [climb.walk(one.copy()) for climb, one in zip(climbs, outcomes, strict=True)]
    count = min(n, n_left, max(-(-n_left // 4), _FEWEST))
    batch = [np.empty(0, dtype=np.intp)]
    while count > 0:
        best = max(walks, key=lambda walk: walk.gain_per_label)
        if not best.asked.size:
            break
        places = best.asked[:count]
        batch.append(places)
        count -= places.size
        for number, walk in enumerate(walks):
            walk.outcome[places] = RIGHT
            if np.isin(places, walk.asked).any():
                walks[number] = walk.climb.walk(walk.outcome)
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
    looks: NDArray[np.float64],
    otherwise: int,
) -> int:
    """Return the region to begin with, given the share of wrong pixels predicted for each.

    `looks` (region, look) say after how many pixels each can pass. The highest start within 3 % of
    the best is taken, on average over predictions that are wrong by factors of 0.35 to 2.8. Labels
    have no part in it, so only power depends on the prediction. Where there is none, or nothing is
    likely to pass, it is `otherwise`.
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
    sizes, looks = regions.sizes, np.array(terms.looks, dtype=np.float64)
    tenth = int(np.searchsorted(sizes, _START_WITHOUT_PREDICTION * regions.n_all))
    otherwise = min(tenth, sizes.size - 1) if error is None else int(np.argmin(error))
    looks = np.broadcast_to(looks, (sizes.size, looks.size))
    return start_of(sizes, error, terms, looks=looks, otherwise=otherwise)


def cautious_rate(wrong: NDArray[np.bool_], rank: NDArray[np.float64], share: float) -> float:
    """Return an error rate that the most confident `share` of a map hardly exceeds.

    The rank of a labelled pixel is 0 for the most confident of all and 1 for the last one. It is
    the larger of two: the rate among the 50 most confident labelled pixels, and the upper limit (95
    %, by likelihood ratio) of errors that grow as a power of the rank, from not at all to its cube.
    The first does not believe in a trend, the second not in a few pixels that happened to be right.
    """
    surest = wrong[np.argsort(rank)][:50]
    power, total = np.linspace(0, 3, 31)[:, None, None], np.geomspace(0.002, 0.9, 60)[:, None]
    chance = np.clip(total * (1 + power) * rank**power, 1e-6, 1 - 1e-6)
    likelihood = np.log(np.where(wrong, chance, 1 - chance)).sum(axis=-1)
    plausible = likelihood > likelihood.max() - 1.645**2 / 2
    rate = (total * share**power)[..., 0]
    return float(max(rate[plausible].max(), (surest.sum() + 0.5) / (surest.size + 1)))


def labels_needed(n_pixels: int, rate: float, terms: Terms, *, most: int) -> int | None:
    """Return how many labels, more than planned, almost surely certify a region, to two digits.

    With a chance of 0.9 at some error rate; None if `most` are not enough.
    """
    size = max(terms.n, least_points(terms.max_error, terms.delta))
    while (size := 1.1 * size) <= most:
        digits = int(10 ** max(math.floor(math.log10(size)) - 1, 0))
        n = min(digits * math.ceil(size / digits), most)
        if replace(terms, n=n).pass_chance(n_pixels, rate) >= _NEARLY_SURE:
            return n
    return None


def smallest_error(n_pixels: int, rate: float, terms: Terms) -> float | None:
    """Return the smallest larger percentage that as many labels almost surely certify."""
    for percentage in range(math.floor(100 * terms.max_error + ROUNDING) + 1, 100):
        larger = replace(terms, max_error=percentage / 100)
        if larger.pass_chance(n_pixels, rate) >= _NEARLY_SURE:
            return percentage / 100
    return None
