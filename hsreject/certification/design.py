"""Designs: which pixels to label, at once or where a promise is decided, and what to expect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from sklearn.isotonic import IsotonicRegression

from hsreject.certification.climb import (
    LAST_LOOK,
    RIGHT,
    WRONG,
    Climb,
    Terms,
    climb_start,
    first_batch,
    labelled,
    least_points,
    next_batch,
)
from hsreject.certification.frame import NODATA, Frame, percent
from hsreject.certification.sample import CLIMB, EACH, RANDOM, STRATIFIED, TOGETHER, Design, Sample
from hsreject.errors import InputError
from hsreject.measures.curve import counts_of
from hsreject.registry import check_choice, check_count, check_number
from hsreject.schema import as_map
from hsreject.schema.label_maps import map_id
from hsreject.splits.draws import random_keys

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
        Number of points; of a climb, the most labels that you will make: the first batch is drawn.
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
        The same seed draws the same pixels; a smaller random sample begins a larger one.
    looks : sequence of int
        For a random sample: after how many labels you will certify, ascending, the last one `n`.
        Each look gets an equal part of 1 - confidence level.
    confidence : DataArray or array, dims (y, x)
        For a climb: larger is more certain, or the `level_confidence` (level, y, x) of a map that
        may answer coarser. It is frozen with the map: a changed one is refused.
    max_error, confidence_level : float in (0, 1)
        For a climb: what is to be promised.
    per_class : {"together", "each"}, optional
        For a climb: one for each class of the map and, if it may answer coarser, for each group.
        "together": all promises hold with the confidence level; "each": every single one does.
    predicted : DataArray or array, dims (y, x), optional
        For a climb: how probable it is that a label is wrong (:func:`hsreject.predicted_error`); it
        follows from a confidence that is a probability. Only the power depends on it.

    Returns
    -------
    Sample
        To be written (:meth:`Sample.write`), labelled and given to :func:`hsreject.certify` or
        :func:`hsreject.assess`.

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
            if frame.n_pixels
            else "Every pixel of the map is excluded: there is nothing to draw."
        )
    ascending = all(first < second for first, second in pairwise((0, *looks)))
    if looks and (design != RANDOM or not ascending or looks[-1] != n):
        raise InputError(
            "looks are ascending numbers of labels of a random sample, the last one n, such as "
            f"({n // 2}, {n}) (got {tuple(looks)})."
        )
    looks = tuple(map(int, looks))
    plan = Design(design, n, frame.n_pixels, int(seed), map_id(frame.label), looks)
    if design != CLIMB:
        return _drawn_at_once(plan, frame)
    plan = replace(
        plan,
        ranking_id=frame.ranking_id,
        max_error=check_number("max_error", max_error, above=0, below=1),
        confidence_level=check_number("confidence_level", confidence_level, above=0, below=1),
        per_class=per_class or "",
    )
    climbs = map_climbs(plan, frame, predicted)
    plan = replace(plan, starts=tuple(climb.start for climb in climbs))
    return Sample.at(climbs[0].pixels[first_batch(climbs, n=n)], frame.label, plan)


def _drawn_at_once(plan: Design, frame: Frame) -> Sample:
    """Return a random or stratified sample; a random one has one stratum."""
    n, seed, inside = plan.n_points, plan.seed, np.flatnonzero(frame.inside)
    strata = np.full(inside.size, NODATA)
    if plan.kind == STRATIFIED:
        strata = frame.label.values.flat[inside]
    labels, of_pixel, sizes = np.unique(strata, return_inverse=True, return_counts=True)
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
    """Return how many points each stratum gets: half in equal parts, half in proportion to size."""
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
    """Return `count` different numbers below `n`: the first steps of a Fisher-Yates shuffle."""
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
    """Return the climb of a plan, or those of all classes and groups; starts may be missing."""
    parts = [frame.regions(node) for node in (frame.nodes.values if plan.per_class else (None,))]
    n, delta = plan.n_points, 1 - plan.confidence_level
    if plan.per_class:
        check_choice("per_class", plan.per_class, (TOGETHER, EACH))
        delta /= len(parts) if plan.per_class == TOGETHER else 1
    least = math.ceil(least_points(plan.max_error, delta) / LAST_LOOK)
    if plan.per_class:
        n = max(-(-2 * n // len(parts)), least)
    if n < least:
        raise InputError(
            f"n must be at least {least} for a promise of {percent(plan.max_error)} with "
            f"{percent(plan.confidence_level)} confidence (got {n}): fewer labels prove nothing, "
            "even if all are right."
        )
    terms = Terms(n, plan.max_error, delta)
    flat = np.flatnonzero(frame.inside)
    key = random_keys(flat.size, plan.seed, _CLIMB)
    depths = [one.depth[frame.inside] for one in parts]
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


def more_points(
    label: xr.DataArray | NDArray[Any],
    confidence: xr.DataArray | NDArray[Any],
    sample: Sample,
    n: int = 50,
    *,
    exclude: xr.DataArray | NDArray[Any] | None = None,
) -> Sample:
    """Return a sample of a climb with the next points that it asks for.

    Those of the next look come first, then those that would be asked for if all of them turn out
    right. To keep some labels for later, at most a quarter of those that are left is handed out at
    once (or 10, if that is more).

    Parameters
    ----------
    label, confidence, exclude : DataArray or array, dims (y, x)
        As for the draw; a changed map is refused.
    sample : Sample
        Of :func:`hsreject.draw_sample` with ``design="climb"``, labelled as far as it goes.
    n : int
        The most points to add.

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
    plan, sample = climb_plan(sample, frame), sample.on_map(frame.label)
    climbs = planned_climbs(plan, frame, sample)
    outcomes = [climb.outcome(sample, waiting=RIGHT) for climb in climbs]
    places = next_batch(climbs, outcomes, n=n, n_left=plan.n_points - len(sample))
    added = Sample.at(climbs[0].pixels[places], frame.label, plan)
    return sample.joined(replace(added, id=added.id + sample.id.max()))


def climb_plan(sample: Sample, frame: Frame) -> Design:
    """Return the plan of a sample of a climb over this map, or say why it is not one."""
    plan = sample.design
    if plan is None or plan.kind != CLIMB:
        raise InputError(
            "The sample is not of a climb: it has all points that were planned. Draw one with "
            "design='climb' ('hsreject sample --for-promise')."
        )
    if plan.ranking_id != frame.ranking_id:
        raise InputError(
            f"The sample was drawn from another map ({plan.ranking_id}, {plan.n_pixels} pixels) "
            f"than this one ({frame.ranking_id}, {frame.n_pixels} pixels). Exclude the same pixels "
            "as then (exclude=, --exclude); of other labels or confidences, draw a new sample."
        )
    return plan


def planned_climbs(plan: Design, frame: Frame, sample: Sample) -> list[Climb]:
    """Return the climbs of a plan, or say that they would never ask for some of the points."""
    climbs = map_climbs(plan, frame)
    places = np.ravel_multi_index((sample.row, sample.column), frame.label.shape)
    n_strange = int(np.count_nonzero(~np.isin(places, climbs[0].pixels)))
    if n_strange:
        raise InputError(
            f"{n_strange} of the {len(sample)} points are not those that this climb drew: they "
            "were added, or moved. Take the places from the file that was drawn."
        )
    return climbs


# What to expect before any label.


def predicted_error(
    confidence: xr.DataArray | NDArray[Any],
    held_out_confidence: NDArray[Any],
    held_out_wrong: NDArray[Any],
    *,
    sample_weight: NDArray[Any] | None = None,
) -> xr.DataArray:
    """Predict how probable it is that a label is wrong, from pixels that did not train the map.

    Held-out pixels, such as the training pixels of a cross-validation, say how often labels of some
    confidence are wrong: an isotonic regression, which falls as confidence grows. It is a
    prediction and promises nothing: it only decides where a climb begins.

    Parameters
    ----------
    confidence : DataArray or array, dims (y, x)
        Of the map.
    held_out_confidence, held_out_wrong : array
        Of pixels whose class is known: the confidence of a map that has not learned from them, and
        whether its label is wrong, or how often in [0, 1].
    sample_weight : array, optional
        How many pixels each entry stands for.

    Returns
    -------
    DataArray (y, x)
        In [0, 1], NaN where the confidence is NaN: `predicted` of :func:`hsreject.draw_sample`.

    See Also
    --------
    hsreject.expected_coverage : plans with it.
    hsreject.draw_sample : draws by it.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import predicted_error
    >>> sure = np.array([0.2, 0.4, 0.6, 0.8])
    >>> predicted_error(np.array([[0.9, 0.3]]), sure, [True, False, False, False]).values
    array([[0. , 0.5]])
    """
    held_out, wrong = np.ravel(held_out_confidence), np.ravel(held_out_wrong).astype(float)
    if held_out.size != wrong.size or not held_out.size:
        raise InputError(
            "Give a confidence and whether it was wrong for each held-out pixel (got "
            f"{held_out.size} and {wrong.size})."
        )
    confidences = as_map(confidence, name="confidence")
    regression = IsotonicRegression(increasing=False, out_of_bounds="clip")
    regression.fit(held_out, wrong, sample_weight=sample_weight)
    values = confidences.values.astype(np.float64)
    has_data = np.isfinite(values)
    values[has_data] = regression.predict(values[has_data])
    values[~has_data] = np.nan
    return confidences.copy(data=values).rename("predicted_error").drop_attrs()


def error_of_curve(confidence: xr.DataArray | NDArray[Any], curve: xr.Dataset) -> xr.DataArray:
    """Predict errors from the rejection curve of held-out pixels, such as a model keeps."""
    order = np.argsort(-curve["threshold"].values, kind="stable")
    counts, threshold = counts_of(curve), curve["threshold"].values[order]
    # Thresholds fall, so what a point keeps beyond the one before lies between two thresholds.
    # A lower threshold may turn a right group into a wrong class: no count is negative.
    right, wrong = (
        np.maximum(np.diff(column[order].astype(float), prepend=0), 0)
        for column in (counts.accurate_kept, counts.misclassified_kept)
    )
    used, both = np.isfinite(threshold) & (right + wrong > 0), right + wrong
    share = wrong[used] / both[used]
    return predicted_error(confidence, threshold[used], share, sample_weight=both[used])


def expected_coverage(  # noqa: PLR0913 (a climb, and how often)
    label: xr.DataArray | NDArray[Any],
    confidence: xr.DataArray | NDArray[Any],
    predicted: xr.DataArray | NDArray[Any] | None = None,
    *,
    n: Sequence[int] = (100, 200, 400, 800),
    max_error: Sequence[float] = (0.02, 0.05, 0.1),
    confidence_level: float = 0.9,
    exclude: xr.DataArray | NDArray[Any] | None = None,
    n_draws: int = 20,
    seed: int = 0,
) -> xr.DataArray:
    """Return what coverage to expect of a climb, before any label: a plan for the field work.

    Errors are drawn as predicted, and the climb is climbed on them.

    Parameters
    ----------
    label, confidence, predicted, exclude
        As for :func:`hsreject.draw_sample`; without any prediction there is nothing to expect.
    n : sequence of int
        Numbers of labels to plan for.
    max_error : sequence of float in (0, 1)
        What is to be promised.
    confidence_level : float in (0, 1)
        Of the promise.
    n_draws, seed : int
        Draws that are averaged, and 0 or larger.

    Returns
    -------
    DataArray (max_error, n)
        Mean certified coverage, 0 where n is too small to prove anything.

    See Also
    --------
    hsreject.draw_sample : draws what was planned.
    hsreject.predicted_error : what it plans with.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import expected_coverage
    >>> confidence = np.linspace(0, 1, 10_000).reshape(100, 100)
    >>> label = np.ones((100, 100), dtype=int)
    >>> plan = expected_coverage(label, confidence, 0.3 * (1 - confidence), n=[100, 400])
    >>> bool((plan.sel(n=400) > plan.sel(n=100)).all())
    True
    """
    regions = Frame.of(label, confidence, exclude).regions()
    errors, sizes = regions.predicted_errors(predicted), regions.sizes
    if errors is None:
        raise InputError(
            "There is no prediction to plan with. Give --predicted: the folder of a run, a model, "
            "or a raster with the probability of each label to be right (in Python predicted=, its "
            "chance to be wrong)."
        )
    # errors of whole regions become those of the rings between them
    rings = np.diff(sizes, prepend=0)
    rates = np.clip(np.diff(errors * sizes, prepend=0) / rings, 0, 1)
    counts = np.minimum(rings, max(n))  # pixels of a ring that can be looked at
    ring = np.repeat(np.arange(sizes.size), counts)
    rng = np.random.default_rng(seed)
    delta = 1 - check_number("confidence_level", confidence_level, above=0, below=1)
    shares = [check_number("max_error", share, above=0, below=1) for share in max_error]
    coverage = xr.DataArray(
        np.zeros((len(shares), len(n))),
        dims=("max_error", "n"),
        coords={"max_error": shares, "n": list(n)},
        name="expected_coverage",
    )
    for _ in range(n_draws):
        # the first pixels of a ring in random order, as ordered exponentials
        times = [
            np.cumsum(rng.exponential(size=n_first) / (n_ring - np.arange(n_first)))
            for n_ring, n_first in zip(rings, counts, strict=True)
        ]
        depth = ring[np.argsort(np.concatenate(times))]
        truth = np.where(rng.uniform(size=depth.size) < rates[depth], WRONG, RIGHT).astype(np.int8)
        for row, column in np.ndindex(coverage.shape):
            terms = Terms(n[column], shares[row], delta)
            if terms.looks:
                climb = Climb(regions, climb_start(regions, errors, terms), terms, depth, ring)
                (outcome,) = labelled([climb], [truth], n=terms.n)
                n_certified = climb.walk(outcome).n_certified
                coverage[row, column] += n_certified / regions.n_all / n_draws
    return coverage
