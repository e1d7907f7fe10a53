"""Drawing a sample: at random, by strata, or step by step where a promise is decided."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.promise.climb import (
    LAST_LOOK,
    RIGHT,
    Climb,
    Terms,
    climb_start,
    first_batch,
    least_points,
    next_batch,
)
from hsreject.promise.frame import (
    CLASS_COVERAGES,
    COVERAGES,
    NODATA,
    Frame,
    check_share,
    map_id,
    percent,
)
from hsreject.promise.sample import CLIMB, EACH, RANDOM, STRATIFIED, TOGETHER, Design, Sample
from hsreject.registry import check_choice, check_count
from hsreject.sampling.draws import random_keys

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ORDER, _NAMES, _CLIMB = 1 << 16, 1 << 17, 1 << 19  # streams of random numbers above the labels


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
    """Draw the pixels of a map whose true class is to be determined.

    Parameters
    ----------
    label : DataArray or array of int, dims (y, x)
        The map. Pixels without data (``schema.nodata_label``) are never drawn; rejected ones (0)
        are, unless in a climb: without them nobody would know what lies there.
    n : int
        Number of points. Of a climb: the most labels that you will make; only the first batch is
        drawn.
    design : {"random", "stratified", "climb"}
        "climb" is for a promise: batch by batch, points come from where it is decided, and one may
        stop at any time (:func:`hsreject.more_points`, :func:`hsreject.certify`). With few labels
        it certifies much more than a random sample, unless errors do not depend on the confidence.
        "random" is a simple random sample without replacement, for promises and for areas.
        "stratified" draws from each class of the map and from the rejected pixels: half of the
        points in equal parts, half in proportion to area. It estimates the areas of rare classes
        better, and certifies as a random sample of about half the size does.
    exclude : DataArray or array of int, dims (y, x), optional
        Not 0 where a pixel must not be drawn: training pixels, and places that nobody can label.
    seed : int
        The same seed draws the same pixels; a smaller random sample is the beginning of a larger
        one.
    looks : sequence of int
        For a random sample: after how many labels you will certify, ascending. Each look gets
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
        For a climb: how probable it is that a label is wrong (:func:`hsreject.predicted_error`). It
        follows from a confidence that is a probability of the label. It decides where the climb
        begins, so only the power depends on it, not the guarantee.

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
        raise InputError(
            "A climb starts from the most confident pixels: give it the confidence, too."
        )
    frame = Frame.of(label, confidence if design == CLIMB else None, exclude)
    if n > frame.n_pixels:
        raise InputError(
            f"n must be at most {frame.n_pixels}, the number of pixels with data that are not "
            f"excluded (got {n})."
        )
    plan = Design(design, n, frame.n_pixels, int(seed), map_id(frame.label))
    if design != CLIMB:
        _check_looks(looks, plan)
        return _drawn_at_once(replace(plan, looks=tuple(map(int, looks))), frame)
    plan = replace(
        plan,
        ranking_id=frame.ranking_id,
        max_error=check_share("max_error", max_error),
        confidence_level=check_share("confidence_level", confidence_level),
        per_class=per_class or "",
    )
    climbs = map_climbs(plan, frame, predicted)
    plan = replace(plan, starts=tuple(climb.start for climb in climbs))
    places = first_batch(climbs, n=n)
    return Sample.at(climbs[0].pixels[places], frame.label, plan)


def _check_looks(looks: Sequence[int], plan: Design) -> None:
    ascending = all(first < second for first, second in pairwise((0, *looks)))
    if looks and (plan.kind != RANDOM or not ascending or looks[-1] != plan.n_points):
        raise InputError(
            "looks are ascending numbers of labels of a random sample, the last one n, such as "
            f"({plan.n_points // 2}, {plan.n_points}) (got {tuple(looks)})."
        )


def _drawn_at_once(plan: Design, frame: Frame) -> Sample:
    """Return a random or stratified sample; a random one has one stratum."""
    n, seed, inside = plan.n_points, plan.seed, np.flatnonzero(frame.inside)
    if plan.kind == RANDOM:
        labels, of_pixel = np.array([NODATA]), np.zeros(inside.size, dtype=np.intp)
    else:
        labels, of_pixel = np.unique(frame.label.values.flat[inside], return_inverse=True)
    sizes = np.bincount(of_pixel)
    counts = np.array([n]) if plan.kind == RANDOM else _allocation(sizes, n)
    draws = [
        inside[of_pixel == stratum][_distinct(int(counts[stratum]), int(size), seed, int(label))]
        for stratum, (label, size) in enumerate(zip(labels, sizes, strict=True))
    ]
    names = np.argsort(random_keys(labels.size, seed, _NAMES), kind="stable") + 1
    sample = replace(
        Sample.at(np.concatenate(draws), frame.label, plan),
        stratum=np.repeat(names, counts),
        stratum_pixels=np.repeat(sizes, counts),
    )
    if plan.kind == RANDOM:
        return sample
    shuffled = sample.select(np.argsort(random_keys(n, seed, _ORDER), kind="stable"))
    return replace(shuffled, id=sample.id)


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
    ideal = n / (2 * sizes.size) + n / 2 * sizes / sizes.sum()
    counts = np.clip(np.floor(ideal).astype(np.int64), least, sizes)
    while (missing := n - counts.sum()) != 0:  # one point at a time to the stratum that lacks most
        step = 1 if missing > 0 else -1
        open_ = counts < sizes if step > 0 else counts > least
        counts[np.argmax(np.where(open_, step * (ideal - counts), -np.inf))] += step
    return np.asarray(counts)


def _distinct(count: int, n: int, seed: int, stream: int) -> NDArray[np.int64]:
    """Return `count` different random numbers below `n`: the first steps of a Fisher-Yates shuffle.

    Only the places that were swapped are kept, so a scene of any size costs nothing.
    """
    # 53 random bits, as many as a float holds; the product below spreads them over what is left
    words = random_keys(count, seed, stream) >> np.uint64(11)
    swapped: dict[int, int] = {}
    numbers = np.empty(count, dtype=np.int64)
    for step, word in enumerate(words.tolist()):
        place = step + (word * (n - step) >> 53)
        numbers[step] = swapped.get(place, place)
        swapped[place] = swapped.get(step, step)
    return numbers


# The climb on a map.


def map_climbs(
    plan: Design, frame: Frame, predicted: xr.DataArray | NDArray[Any] | None = None
) -> list[Climb]:
    """Return the climb of a plan, or those of the classes and groups of the map.

    A plan without starts gets them: from the predicted error (y, x), if there is one.
    """
    nodes = frame.nodes.values if plan.per_class else (None,)
    coverages = CLASS_COVERAGES if plan.per_class else COVERAGES
    terms = _terms(plan, len(nodes))
    flat = np.flatnonzero(frame.inside)
    key = random_keys(flat.size, plan.seed, _CLIMB)
    parts = [frame.regions(coverages, node) for node in nodes]
    depths = [regions.depth(frame.inside) for regions in parts]
    # of each ring between two regions, only a few pixels can be among the first of a region
    first = [
        ring[np.argsort(key[ring])[: terms.looks[-1]]]
        for regions, depth in zip(parts, depths, strict=True)
        for ring in (np.flatnonzero(depth == region) for region in range(regions.sizes.size))
    ]
    order = np.unique(np.concatenate(first))
    order = order[np.argsort(key[order], kind="stable")]
    starts = plan.starts or [
        climb_start(regions, regions.predicted_errors(predicted), terms) for regions in parts
    ]
    return [
        Climb(regions, start, terms, depth[order], flat[order])
        for regions, start, depth in zip(parts, starts, depths, strict=True)
    ]


def _terms(plan: Design, n_climbs: int) -> Terms:
    """Return the labels that each climb plans with, and its part of 1 - confidence level."""
    n, delta = plan.n_points, 1 - plan.confidence_level
    if plan.per_class:
        check_choice("per_class", plan.per_class, (TOGETHER, EACH))
        delta /= n_climbs if plan.per_class == TOGETHER else 1
    least = math.ceil(least_points(plan.max_error, delta) / LAST_LOOK)
    if plan.per_class:
        n = max(-(-2 * n // n_climbs), least)
    if n < least:
        raise InputError(
            f"n must be at least {least} for a promise of {percent(plan.max_error)} with "
            f"{percent(plan.confidence_level)} confidence (got {n}): fewer labels prove nothing, "
            "even if all are right."
        )
    return Terms(n, plan.max_error, delta)


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
    turn out right, so that points come in larger batches. To keep some labels for later, at most a
    quarter of those that are left is handed out at once (or 10, if that is more).

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
    climbs, sample = map_climbs(plan, frame), sample.on_map(frame.label)
    outcomes = [climb.outcome(sample, waiting=RIGHT) for climb in climbs]
    places = next_batch(climbs, outcomes, n=n, n_left=plan.n_points - len(sample))
    if not places.size:
        return sample
    first = int(sample.id.max()) + 1
    return sample.joined(Sample.at(climbs[0].pixels[places], frame.label, plan, first=first))


def climb_plan(sample: Sample, frame: Frame) -> Design:
    """Return the plan of a sample of a climb over this map, or say why it is not one."""
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
