"""Drawing a sample: at random, by strata, or step by step where a promise is decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.promise.climb import (
    LAST_LOOK,
    OPEN,
    RIGHT,
    Climb,
    Terms,
    climb_start,
    first_batch,
    first_places,
    next_batch,
)
from hsreject.promise.fixed_sequence import COVERAGES, least_points
from hsreject.promise.frame import NODATA, Frame, Regions, check_share, map_id, percent
from hsreject.promise.sample import CLIMB, EACH, RANDOM, STRATIFIED, TOGETHER, Design, Sample
from hsreject.registry import check_choice, check_count
from hsreject.sampling.draws import random_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

CLASS_COVERAGES = tuple(step / 20 for step in range(1, 21))
"""The regions of a class, as shares of its pixels."""

_ORDER = 1 << 16  # streams of random numbers: labels lie below it
_NAMES = 1 << 17
_CLIMB = 1 << 19


def draw_sample(  # noqa: PLR0913 (one argument per choice of a design)
    label: xr.DataArray | NDArray[Any],
    n: int,
    *,
    design: str = RANDOM,
    exclude: xr.DataArray | NDArray[Any] | None = None,
    seed: int = 0,
    looks: Sequence[int] = (),
    confidence: xr.DataArray | NDArray[Any] | None = None,
    max_error: float = 0.05,
    confidence_level: float = 0.9,
    per_class: str | None = None,
    predicted: xr.DataArray | NDArray[Any] | None = None,
) -> Sample:
    """Draw pixels of a map whose true class is then to be found out.

    Parameters
    ----------
    label : DataArray or array of int, dims (y, x)
        The map. Pixels without data (``schema.nodata_label``) are never drawn; rejected ones (0)
        are, unless in a climb: without them nobody knows what lies there.
    n : int
        Number of points, at least 1 and at most the number of pixels. Of a climb: the labels that
        one is ready to make; the first batch is drawn.
    design : {"random", "stratified", "climb"}
        "climb" is for a promise: batch by batch, points come from where it is decided, and one may
        stop at any time (:func:`hsreject.more_points`, :func:`hsreject.certify`). With few labels
        it certifies much more than a random sample; where errors do not depend on the confidence,
        it does not.
        "random" is a simple random sample without replacement, for promises and for areas.
        "stratified" draws from each class of the map and from the rejected pixels: half of the
        points in equal parts, half in proportion to area. It estimates the areas of rare classes
        better, and certifies as a random sample of about half the size does.
    exclude : DataArray or array of int, dims (y, x), optional
        Not 0 where a pixel must not be drawn: training pixels, and places that nobody can label,
        such as clouds or private land.
    seed : int
        0 or larger. The same seed draws the same pixels everywhere; a smaller random sample is the
        beginning of a larger one.
    looks : sequence of int
        For a random sample: after how many labels one wants to certify, ascending. Each look gets
        an equal part of 1 - confidence level. Without any, there is one look, at the end.
    confidence : DataArray or array, dims (y, x)
        For a climb: larger is more certain, or the `level_confidence` (level, y, x) of a map that
        may answer coarser. It is frozen with the map: a changed one is refused.
    max_error, confidence_level : float in (0, 1)
        For a climb: what is to be promised.
    per_class : {"together", "each"}, optional
        For a climb: one for each class of the map and, if it may answer coarser, for each group.
        "together": all promises hold with the confidence level; "each": every single one does.
    predicted : DataArray or array, dims (y, x), optional
        For a climb: how probable it is that a label is wrong, in [0, 1]; see
        :func:`hsreject.predicted_error`. A confidence that is a probability of the label says it
        itself. It decides where the climb begins, so only its power depends on it.

    Returns
    -------
    Sample
        Write it with :meth:`Sample.write`, fill in the column `reference`, and give the file to
        :func:`hsreject.certify` or :func:`hsreject.assess`.

    See Also
    --------
    hsreject.open_sample : reads the labels back.
    hsreject.certify : what they are for.
    hsreject.more_points : the next ones.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import draw_sample
    >>> label = np.repeat([[1, 2, 2, 2]], 25, axis=0)
    >>> sample = draw_sample(label, 10, design="stratified")
    >>> np.unique(sample.label, return_counts=True), np.unique(sample.stratum_pixels)
    ((array([1, 2]), array([4, 6])), array([25, 75]))
    >>> str(draw_sample(label, 10, exclude=label == 1).design)
    'random n=10 pixels=75 seed=0 map=...'
    """
    check_count("n", n, least=1)
    check_choice("design", design, (RANDOM, STRATIFIED, CLIMB))
    if design == CLIMB and confidence is None:
        raise InputError("A climb goes from the surest pixels on: give it the confidence, too.")
    frame = Frame.of(label, confidence if design == CLIMB else None, exclude)
    if n > frame.n_pixels:
        raise InputError(
            f"n must be at most {frame.n_pixels}, the number of pixels that can be drawn (got {n})"
            f": the map has {int((frame.label.values != NODATA).sum())} pixels with data, less "
            "those that exclude leaves out."
        )
    plan = Design(design, n, frame.n_pixels, int(seed), map_id(frame.label))
    if design == CLIMB:
        plan = replace(
            plan,
            ranking_id=frame.ranking_id,
            max_error=check_share("max_error", max_error),
            confidence_level=check_share("confidence_level", confidence_level),
            per_class=per_class or "",
        )
        return _first_batch(plan, frame, predicted)
    if looks:
        plan = replace(plan, looks=_checked_looks(looks, plan))
    return _drawn_at_once(plan, frame)


def _checked_looks(looks: Sequence[int], plan: Design) -> tuple[int, ...]:
    ascending = all(first < second for first, second in pairwise(looks))
    if plan.kind != RANDOM or not ascending or looks[0] < 1 or looks[-1] != plan.n_points:
        raise InputError(
            "looks are ascending numbers of labels of a random sample, the last one n, such as "
            f"({plan.n_points // 2}, {plan.n_points}) (got {tuple(looks)})."
        )
    return tuple(int(look) for look in looks)


def _drawn_at_once(plan: Design, frame: Frame) -> Sample:
    """Return a random or stratified sample."""
    on_map, n, seed = frame.label, plan.n_points, plan.seed
    strata = _strata(on_map.values, frame.inside, plan.kind, n)
    parts = [_drawn(mask, count, seed, stream) for mask, count, stream in strata]
    row, column = (np.concatenate(axis) for axis in zip(*parts, strict=True))
    names = np.argsort(random_keys(len(strata), seed, _NAMES), kind="stable") + 1
    sizes = [np.count_nonzero(mask) for mask, _, _ in strata]
    counts = [count for _, count, _ in strata]
    sample = replace(
        Sample.at(row, column, on_map, plan),
        stratum=np.repeat(names, counts),
        stratum_pixels=np.repeat(sizes, counts),
    )
    if plan.kind == RANDOM:
        return sample
    shuffled = sample.select(np.argsort(random_keys(n, seed, _ORDER), kind="stable"))
    return replace(shuffled, id=sample.id)


def _strata(
    values: NDArray[np.uint16], free: NDArray[np.bool_], design: str, n: int
) -> list[tuple[NDArray[np.bool_], int, int]]:
    """Return for each stratum its pixels, how many to draw, and its stream of random numbers."""
    if design == RANDOM:
        return [(free, n, NODATA)]
    labels, sizes = np.unique(values[free], return_counts=True)
    counts = _allocation(sizes, n).tolist()
    named = zip(labels.tolist(), counts, strict=True)
    return [(free & (values == value), count, value) for value, count in named]


def _allocation(sizes: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return how many points each stratum gets: half in equal parts, half in proportion to size.

    Each gets at least two, if it has them, because one point tells nothing about its spread.
    """
    least = np.minimum(sizes, 2)
    if n < least.sum():
        raise InputError(
            f"n must be at least {least.sum()}, two points for each of the {sizes.size} strata "
            f"(got {n}). Draw more points, or choose design='random'."
        )
    wanted = n / (2 * sizes.size) + n / 2 * sizes / sizes.sum()
    counts = np.clip(np.floor(wanted).astype(np.int64), least, sizes)
    while (missing := n - counts.sum()) != 0:  # one point at a time to whom it is due most
        step = 1 if missing > 0 else -1
        open_ = counts < sizes if step > 0 else counts > least
        due = np.where(open_, step * (wanted - counts), -np.inf)
        counts[int(np.argmax(due))] += step
    return np.asarray(counts)


def _drawn(
    mask: NDArray[np.bool_], count: int, seed: int, stream: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows and columns of `count` random pixels of a mask, in the order of the draw."""
    per_row = np.count_nonzero(mask, axis=1)
    ends = np.cumsum(per_row)
    rank = _distinct(count, int(ends[-1]), seed, stream)
    row = np.searchsorted(ends, rank, side="right")
    within = rank - (ends - per_row)[row]
    column = [np.flatnonzero(mask[r])[w] for r, w in zip(row, within, strict=True)]
    return row.astype(np.int64), np.array(column, dtype=np.int64)


def _distinct(count: int, n: int, seed: int, stream: int) -> NDArray[np.int64]:
    """Return `count` different random numbers below `n`: the first steps of a Fisher-Yates shuffle.

    Only the places that were swapped are kept, so a scene of any size costs nothing.
    """
    words = random_keys(count, seed, stream) >> np.uint64(11)
    swapped: dict[int, int] = {}
    numbers = np.empty(count, dtype=np.int64)
    for step, word in enumerate(words.tolist()):
        place = step + (word * (n - step) >> 53)
        numbers[step] = swapped.get(place, place)
        swapped[place] = swapped.get(step, step)
    return numbers


# The climb on a map.


@dataclass(frozen=True, eq=False)
class MapClimb:
    """A climb over a map, or over one of its classes or groups."""

    regions: Regions
    climb: Climb
    pixels: NDArray[np.int64]  # flat places of the first pixels of all climbs, in random order

    def outcome(self, sample: Sample, *, assumed: int = OPEN) -> NDArray[np.int8]:
        """Return what is known of the pixels; points that wait for a label are as `assumed`."""
        wrong = self.regions.wrong(sample.row, sample.column, sample.reference)
        first_wrong = np.where(wrong.any(axis=0), wrong.argmax(axis=0), RIGHT)
        known = np.where(sample.labelled, first_wrong, assumed).astype(np.int8)
        place = sample.row * sample.grid.width + sample.column
        order = np.argsort(place)
        at = order[np.minimum(np.searchsorted(place[order], self.pixels), place.size - 1)]
        return np.where(place[at] == self.pixels, known[at], np.int8(OPEN))


def map_climbs(
    plan: Design, frame: Frame, predicted: xr.DataArray | NDArray[Any] | None = None
) -> list[MapClimb]:
    """Return the climb of a plan, or those of the classes and groups of the map.

    A plan without starts gets them: from the predicted error (y, x), if there is one.
    """
    nodes = frame.nodes.values if plan.per_class else (None,)
    terms = _terms(plan, len(nodes))
    flat = np.flatnonzero(frame.inside)
    key = random_keys(flat.size, plan.seed, _CLIMB)
    label = frame.label.values.flat[flat]
    parts = []
    for node in nodes:
        regions = frame.regions(COVERAGES if node is None else CLASS_COVERAGES, node)
        depth = regions.depth(frame.levels[regions.level].flat[flat], label)
        parts.append((regions, depth))
    first = np.unique(
        np.concatenate(
            [first_places(depth, key, one.sizes.size, terms.looks[-1]) for one, depth in parts]
        )
    )
    first = first[np.argsort(key[first], kind="stable")]
    climbs = []
    for position, (regions, depth) in enumerate(parts):
        if plan.starts:
            start = plan.starts[position]
        else:
            error = regions.predicted_errors(predicted)
            start = climb_start(regions.sizes, error, terms, n_all=regions.n_all)
        climb = Climb(regions.sizes, depth[first], start, terms)
        climbs.append(MapClimb(regions, climb, flat[first]))
    return climbs


def _terms(plan: Design, n_climbs: int) -> Terms:
    """Return the labels that each climb plans with, and its part of 1 - confidence level."""
    if plan.per_class:
        check_choice("per_class", plan.per_class, (TOGETHER, EACH))
    delta = 1 - plan.confidence_level
    if plan.per_class == TOGETHER:
        delta /= n_climbs
    least = math.ceil(least_points(plan.max_error, 1 - delta) / LAST_LOOK)
    n = plan.n_points
    if plan.per_class:
        n = max(-(-2 * n // n_climbs), least)
    if n < least:
        raise InputError(
            f"n must be at least {least} for a promise of {percent(plan.max_error)} with "
            f"{percent(plan.confidence_level)} confidence (got {n}): fewer labels prove nothing, "
            "even if all are right."
        )
    return Terms(n, plan.max_error, delta)


def _first_batch(
    plan: Design, frame: Frame, predicted: xr.DataArray | NDArray[Any] | None
) -> Sample:
    """Return the pixels of the first look of a climb; of several, the largest classes first."""
    climbs = map_climbs(plan, frame, predicted)
    plan = replace(plan, starts=tuple(one.climb.start for one in climbs))
    places = first_batch([one.climb for one in climbs], n=plan.n_points)
    row, column = np.divmod(climbs[0].pixels[places], frame.label.shape[1])
    return Sample.at(row, column, frame.label, plan)


def more_points(
    label: xr.DataArray | NDArray[Any],
    confidence: xr.DataArray | NDArray[Any],
    sample: Sample,
    n: int = 50,
    *,
    exclude: xr.DataArray | NDArray[Any] | None = None,
) -> Sample:
    """Return a sample of a climb with the next points that it asks for.

    Those of the next look come first. The others are those that would be asked for if all of them
    turn out right, so that one need not come back for every few points. To keep some labels for
    later, at most a quarter of those that are left is handed out at once, but 10.

    Parameters
    ----------
    label, confidence : DataArray or array, dims (y, x)
        The map that the climb was planned for; a changed one is refused.
    sample : Sample
        Of :func:`hsreject.draw_sample` with ``design="climb"``, labelled as far as it goes.
    n : int
        The most points to add.
    exclude : DataArray or array of int, dims (y, x), optional
        As for the draw.

    Returns
    -------
    Sample
        The points of `sample` with their labels and up to `n` more; unchanged when the climb has
        ended or its labels are used up.

    See Also
    --------
    hsreject.draw_sample : the first ones.
    hsreject.certify : what they are for.

    Examples
    --------
    >>> import numpy as np
    >>> import hsreject as hr
    >>> confidence = np.linspace(0, 1, 10_000).reshape(100, 100)
    >>> label, truth = np.where(confidence < 0.4, 2, 1), np.ones((100, 100), dtype=int)
    >>> sample = hr.draw_sample(label, 200, design="climb", confidence=confidence)
    >>> size = 0
    >>> while len(sample) > size:
    ...     size = len(sample)
    ...     sample = hr.more_points(label, confidence, sample.with_reference(truth))
    >>> hr.certify(label, confidence, sample).coverage
    0.6
    """
    check_count("n", n, least=1)
    frame = Frame.of(label, confidence, exclude)
    plan = climb_plan(sample, frame)
    sample = sample.on_map(frame.label)
    climbs = map_climbs(plan, frame)
    places = next_batch(
        [one.climb for one in climbs],
        [one.outcome(sample, assumed=RIGHT) for one in climbs],
        n=n,
        n_left=plan.n_points - len(sample),
    )
    if not places.size:
        return sample
    row, column = np.divmod(climbs[0].pixels[places], frame.label.shape[1])
    first = int(sample.id.max()) + 1
    return sample.joined(Sample.at(row, column, frame.label, plan, first=first))


def climb_plan(sample: Sample, frame: Frame) -> Design:
    """Return the plan of a sample of a climb over this map, or say why it is none."""
    plan = sample.design
    if plan is None or plan.kind != CLIMB:
        raise InputError(
            "The sample is not of a climb: it has all points that were planned. Draw one with "
            "design='climb' ('hsreject sample --for-promise')."
        )
    if plan.n_pixels != frame.n_pixels:
        raise InputError(
            f"The sample was drawn from {plan.n_pixels} pixels, and {frame.n_pixels} of this map "
            "can be drawn. Exclude the same pixels as then (exclude=, --exclude)."
        )
    if plan.ranking_id != frame.ranking_id:
        raise InputError(
            f"The sample was drawn from another map ({plan.ranking_id}) than this one "
            f"({frame.ranking_id}): labels, confidences and excluded pixels must be those of the "
            "draw. Draw a new sample from this map."
        )
    return plan
