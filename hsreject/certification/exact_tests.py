"""Exact tests: how many wrong pixels a region may show at each look, and how far tests have come.

Regions are the most confident pixels of a map, each a part of the next one. They are tested in this
order until one does not pass. Labels decide how far the tests come; which regions there are, where
the tests begin and how many labels there will be is fixed before the first one.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import gammaln

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from hsreject.certification.frame import NestedRegions

ROUNDING = 1e-9  # 0.29 * 100 is 28.999999999999996
_N_LOOKS = 16
LAST_LOOK = 0.92  # of all labels: the others went to pixels of smaller regions


def least_points(max_error: float, delta: float) -> float:
    """Count the sampled pixels, all right, that certify a large region."""
    return math.log(delta) / math.log1p(-max_error)


def fewest_points(n_units: int, max_error: float, delta: float) -> int:
    """Count the sampled pixels, all right, that certify so many pixels with one look: exactly."""
    n_wrong = too_many(n_units, max_error)

    def are_enough(n_drawn: int) -> bool:
        return bool(hypergeometric(0, n_units, n_wrong, n_drawn) <= delta * (1 + ROUNDING))

    return 1 + bisect_left(range(1, n_units), x=True, key=are_enough)


def too_many(n_units: int, max_error: float) -> int:
    """Count the fewest wrong pixels that break the promise: floor(alpha N) + 1."""
    return math.floor(max_error * n_units + ROUNDING) + 1


def hypergeometric(k: Any, n_units: int, n_wrong: Any, n_drawn: int) -> NDArray[np.float64]:
    """Compute the chance of k wrong pixels among those drawn; SciPy's is five times slower."""

    def log_choose(n: Any, k: Any) -> Any:
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    with np.errstate(invalid="ignore"):  # infinite, or the difference of two, where it cannot be
        logarithm = log_choose(n_wrong, k) + log_choose(n_units - n_wrong, n_drawn - k)
        logarithm -= log_choose(n_units, n_drawn)
    return np.asarray(np.exp(np.nan_to_num(logarithm, nan=-np.inf)))


@dataclass(frozen=True)
class Requirement:
    """What is to be promised, and with how many labels."""

    n_labels: int  # that can be made
    max_error: float
    delta: float  # 1 - confidence level

    @cached_property
    def looks(self) -> tuple[int, ...]:
        """After how many pixels a region is tested: 16 geometric steps; none if n is too small."""
        first = max(least_points(self.max_error, self.delta), self.n_labels / 10)
        last = LAST_LOOK * self.n_labels
        if last < first:
            return ()
        steps = np.ceil(np.geomspace(first, last, _N_LOOKS) - ROUNDING)
        return tuple(np.unique(steps).astype(int).tolist())

    def boundaries(self, n_units: int) -> tuple[tuple[int, int], ...]:
        """Pair the looks at a region with the most errors with which each passes."""
        return boundaries(n_units, self.looks, self.max_error, self.delta)


@lru_cache(maxsize=4096)
def boundaries(
    n_units: int, looks: tuple[int, ...], max_error: float, delta: float
) -> tuple[tuple[int, int], ...]:
    """Pair the looks at which a region of `n_units` can pass with their critical numbers.

    With M = floor(alpha N) + 1 wrong pixels, the fewest that break the promise, f[k] is the chance
    that k are among those looked at and no look has passed yet. Between looks f is convolved with
    the hypergeometric of the pixels that are added. The boundary of look l is the largest b with ::

        P(passed before) + sum_{k <= b} f[k] <= delta n_l / n_L

    where n_L is the last look, or delta if the whole region is looked at. So a region with M or
    more wrong pixels ever passes with a chance of at most delta. Looks where none can pass are left
    out.
    """
    n_wrong = too_many(n_units, max_error)
    steps = sorted({min(look, n_units) for look in looks})
    if not steps:
        return ()
    # more errors than this never pass, so their chances need not be followed: of hypergeometrics
    # the median is within 1 of the mean
    mean = math.ceil(steps[-1] * n_wrong / n_units)
    most = min(n_wrong, mean + 1 if delta < 0.5 else steps[-1])
    chance = np.zeros(most + 1)
    chance[0] = 1.0
    spent, drawn, passable = 0.0, 0, []
    for look in steps:
        before = np.flatnonzero(chance)[:, None]
        more = np.arange(most + 1) - before
        added = hypergeometric(more, n_units - drawn, n_wrong - before, look - drawn)
        chance, drawn = chance[before[:, 0]] @ added, look
        whole = look == n_units <= looks[-1]
        may_spend = delta if whole else delta * look / looks[-1]
        allowed = np.flatnonzero(spent + np.cumsum(chance) <= may_spend + ROUNDING * delta)
        if allowed.size:
            boundary = int(allowed[-1])
            spent += float(chance[: boundary + 1].sum())
            chance[: boundary + 1] = 0.0
            passable.append((look, boundary))
    return tuple(passable)


def chance_to_pass(n_units: int, n_wrong: int, steps: Sequence[tuple[int, int]]) -> float:
    """Compute the chance that a region with so many wrong pixels passes at one of these looks.

    The recursion of :func:`boundaries`, with boundaries that are given: `steps` are looks, each
    with the most errors with which it passes.
    """
    most = max(boundary for _, boundary in steps)
    chance = np.zeros(most + 1)
    chance[0] = 1.0
    passed, drawn = 0.0, 0
    for look, boundary in steps:
        before = np.flatnonzero(chance)[:, None]
        more = np.arange(most + 1) - before
        added = hypergeometric(more, n_units - drawn, n_wrong - before, look - drawn)
        chance, drawn = chance[before[:, 0]] @ added, look
        passed += float(chance[: boundary + 1].sum())
        chance[: boundary + 1] = 0.0
    return passed


@dataclass(frozen=True)
class Test:
    """The test of a region: how many of its pixels were looked at, and how many are wrong."""

    threshold: float  # the smallest confidence kept, or the position of the map in its stack
    n_units: int  # pixels of the region
    coverage: float  # the share of all pixels that these are
    n_looked: int = 0  # sampled pixels in it; of a sequential design, those of the last look
    n_wrong: int = 0  # of these
    critical_number: int = -1  # the most wrong ones with which it passes; -1 for none

    @classmethod
    def at(cls, regions: NestedRegions, region: int) -> Test:
        """Begin the test of a region: nobody has looked yet."""
        threshold, size = float(regions.thresholds[region]), int(regions.sizes[region])
        return cls(threshold, size, size / regions.n_all)

    @property
    def passed(self) -> bool:
        """Whether the region is certified."""
        return self.n_wrong <= self.critical_number

    def share_of(self, n_pixels: int) -> float:
        """Compute the coverage of so many pixels."""
        return self.n_units / n_pixels

    def critical_number_in(self, requirement: Requirement, *, sequential: bool) -> int:
        """Compute the critical number from the counts, by the rule of the design.

        That of a sequential design is the boundary of the look. Of a sample that was drawn at once,
        it is the largest b for which a chance of at most delta is left to see b errors or fewer, if
        the promise were broken.
        """
        if sequential:
            return dict(requirement.boundaries(self.n_units)).get(self.n_looked, -1)
        chances = self._chances(self.n_looked, too_many(self.n_units, requirement.max_error))
        return int((chances <= requirement.delta * (1 + ROUNDING)).sum()) - 1

    def _chances(self, most: int, n_wrong: int) -> NDArray[np.float64]:
        """Compute the chances of at most 0, 1, ..., `most` errors, were so many pixels wrong."""
        errors = np.arange(most + 1)
        return np.cumsum(hypergeometric(errors, self.n_units, n_wrong, self.n_looked))

    def upper_bound(self, delta: float, earlier: Sequence[tuple[int, int]] = ()) -> float:
        """Bound the share of wrong pixels from above with confidence, for this region alone.

        The largest number of wrong pixels that leave a chance above delta for so few errors. Where
        there were `earlier` looks, with their boundaries, also for passing at one of these.
        """
        n_right = self.n_looked - self.n_wrong
        possible = range(self.n_wrong + 1, self.n_units - n_right + 1)
        steps = (*earlier, (self.n_looked, self.n_wrong))

        def is_excluded(n_wrong: int) -> bool:
            if earlier:
                return chance_to_pass(self.n_units, n_wrong, steps) <= delta
            return bool(self._chances(self.n_wrong, n_wrong)[-1] <= delta)

        n_possible = bisect_left(possible, x=True, key=is_excluded)
        return (self.n_wrong + n_possible) / self.n_units

    # What the counts were called before format 2 of certificates.

    @property
    def n_pixels(self) -> int:
        """The same as `n_units`."""
        return self.n_units

    @property
    def n_kept(self) -> int:
        """The same as `n_looked`."""
        return self.n_looked

    @property
    def n_errors(self) -> int:
        """The same as `n_wrong`."""
        return self.n_wrong

    @property
    def boundary(self) -> int:
        """The same as `critical_number`."""
        return self.critical_number


def _nothing() -> NDArray[np.intp]:
    return np.empty(0, dtype=np.intp)


class Look(NamedTuple):
    """A look at a region, or the labels that it waits for."""

    n_looked: int
    n_wrong: int
    critical_number: int
    waiting: NDArray[np.intp] = _nothing()


@dataclass(frozen=True, eq=False)
class Progress:
    """How far tests have come with the labels that there are."""

    tests: tuple[Test, ...]  # the last one has failed or waits for labels, unless all have passed
    waiting: NDArray[np.intp] = field(default_factory=_nothing)
    """Places in the random order whose labels the next look needs; none at an end."""

    @property
    def last_passed(self) -> Test | None:
        """The test of the largest certified region."""
        return next((test for test in reversed(self.tests) if test.passed), None)

    @property
    def n_certified(self) -> int:
        """Pixels of the last region that passed; 0 where none did."""
        return 0 if self.last_passed is None else self.last_passed.n_units


def progress(
    regions: NestedRegions, start: int, looks_at: Callable[[int], Iterable[Look]]
) -> Progress:
    """Go through the regions from `start` on, and through the looks at each, as far as labels go.

    A look with few enough wrong pixels certifies the region and leads to the next one; a region
    none of whose looks passes is the end; a look that waits for labels stops here for now. The
    state follows from the labels alone, whoever made them when, so one may stop at any time:
    whether a region would ever pass depends on the random order and the truth only, and a broken
    promise needs the *first* bad region from the start on to pass, which happens with a chance of
    at most delta. A sample that was drawn at once has one look at each region.
    """
    tests: list[Test] = []
    for region in range(start, regions.sizes.size):
        test = Test.at(regions, region)
        for look in looks_at(region):
            if look.waiting.size:
                return Progress((*tests, test), look.waiting)
            n_looked, n_wrong, critical_number, _ = look
            test = replace(
                test, n_looked=n_looked, n_wrong=n_wrong, critical_number=critical_number
            )
            if test.passed:
                break
        tests.append(test)
        if not test.passed:
            break
    return Progress(tuple(tests))
