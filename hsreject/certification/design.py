"""Designs: which pixels to label, at once or where a promise is decided."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.certification.frame import NODATA, Frame
from hsreject.certification.planning import first_places, next_places, sequential_start
from hsreject.certification.sample import RANDOM, SEQUENTIAL, STRATIFIED, Design, Sample, kind_of
from hsreject.certification.sequential_design import (
    designs_of,
    requirement_of,
    sequential_designs,
)
from hsreject.errors import InputError
from hsreject.registry import check_choice, check_count, check_number
from hsreject.schema.label_maps import map_id
from hsreject.splits.draws import random_keys

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

_ORDER, _NAMES = 1 << 16, 1 << 17  # streams of random numbers above the labels


def draw_sample(  # noqa: PLR0913 (one argument per choice of a design)
    label: xr.DataArray | NDArray[Any],
    n: int,
    *,
    design: str = RANDOM,
    exclude: xr.DataArray | NDArray[Any] | None = None,
    seed: int = 0,
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
        are, unless in a sequential design: without them nobody would know what lies there.
    n : int
        Number of points; of a sequential design, the most labels that you will make: the first
        batch is drawn.
    design : {"random", "stratified", "sequential"}
        "sequential" is for a promise: batch by batch, points come from where it is decided, and one
        may stop at any time (:func:`hsreject.more_points`, :func:`hsreject.certify`). With few
        labels it certifies much more than a random sample, unless errors do not depend on the
        confidence. "climb", as it was called, means the same.
        "random" is a simple random sample without replacement, for promises and for areas.
        "stratified" draws from each class of the map and from the rejected pixels: half of the
        points in equal parts, half in proportion to area. It estimates the areas of rare classes
        better (:func:`hsreject.assess`), and certifies nothing.
    exclude : DataArray or array of int, dims (y, x), optional
        Not 0 where a pixel must not be drawn: training pixels, and places that nobody can label.
    seed : int
        The same seed draws the same pixels; a smaller random sample begins a larger one.
    confidence : DataArray or array, dims (y, x)
        For a sequential design: larger is more certain, or the `level_confidence` (level, y, x) of
        a map that may answer coarser. It is frozen with the map: a changed one is refused.
    max_error, confidence_level : float in (0, 1)
        For a sequential design: what is to be promised.
    per_class : {"together", "each"}, optional
        For a sequential design: one sequence for each class of the map and, if it may answer
        coarser, for each group.
        "together": all promises hold with the confidence level; "each": every single one does.
    predicted : DataArray or array, dims (y, x), optional
        For a sequential design: how probable it is that a label is wrong
        (:func:`hsreject.predicted_error`); it follows from a confidence that is a probability. Only
        the power depends on it.

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
    design = kind_of(design)
    check_choice("design", design, (RANDOM, STRATIFIED, SEQUENTIAL))
    if design == SEQUENTIAL and confidence is None:
        raise InputError(
            "A sequential design starts from the most confident pixels: give it the confidence, "
            "too."
        )
    frame = Frame.of(label, confidence if design == SEQUENTIAL else None, exclude)
    if n > frame.n_pixels:
        raise InputError(
            f"n must be at most {frame.n_pixels}, the number of pixels with data that are not "
            f"excluded (got {n})."
            if frame.n_pixels
            else "Every pixel of the map is excluded: there is nothing to draw."
        )
    drawn = Design(design, n, frame.n_pixels, int(seed), map_id(frame.label))
    if design != SEQUENTIAL:
        return _drawn_at_once(drawn, frame)
    drawn = replace(
        drawn,
        ranking_id=frame.ranking_id,
        max_error=check_number("max_error", max_error, above=0, below=1),
        confidence_level=check_number("confidence_level", confidence_level, above=0, below=1),
        per_class=per_class or "",
    )
    parts = frame.parts(drawn.per_class)
    requirement = requirement_of(drawn, len(parts))
    starts = (sequential_start(one, one.predicted_errors(predicted), requirement) for one in parts)
    drawn = replace(drawn, starts=tuple(starts))
    sequences = sequential_designs(drawn, frame, parts)
    return Sample.at(sequences[0].pixels[first_places(sequences, n=n)], frame.label, drawn)


def _drawn_at_once(design: Design, frame: Frame) -> Sample:
    """Draw a random or stratified sample; a random one has one stratum."""
    n, seed, inside = design.n_points, design.seed, np.flatnonzero(frame.inside)
    strata = np.full(inside.size, NODATA)
    if design.kind == STRATIFIED:
        strata = frame.label.values.flat[inside]
    labels, of_pixel, sizes = np.unique(strata, return_inverse=True, return_counts=True)
    counts = np.array([n]) if design.kind == RANDOM else _allocation(sizes, n)
    draws = [
        inside[of_pixel == stratum][_distinct(int(counts[stratum]), int(size), seed, int(label))]
        for stratum, (label, size) in enumerate(zip(labels, sizes, strict=True))
    ]
    names = np.argsort(random_keys(labels.size, seed, _NAMES), kind="stable") + 1
    sample = replace(
        Sample.at(np.concatenate(draws), frame.label, design),
        stratum=np.repeat(names, counts),
        stratum_pixels=np.repeat(sizes, counts),
    )
    if design.kind == RANDOM:
        return sample
    shuffled = sample.select(np.argsort(random_keys(n, seed, _ORDER), kind="stable"))
    return replace(shuffled, id=sample.id)


def _allocation(sizes: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Divide the points among the strata: half in equal parts, half in proportion to size."""
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
    """Draw `count` different numbers below `n`: the first steps of a Fisher-Yates shuffle."""
    # 53 random bits, as many as a float holds; the product below spreads them over what is left
    words = random_keys(count, seed, stream) >> np.uint64(11)
    swapped: dict[int, int] = {}
    numbers = np.empty(count, dtype=np.int64)
    for step, word in enumerate(words.tolist()):
        place = step + (word * (n - step) >> 53)
        numbers[step] = swapped.get(place, place)
        swapped[place] = swapped.get(step, step)
    return numbers


def more_points(
    label: xr.DataArray | NDArray[Any],
    confidence: xr.DataArray | NDArray[Any],
    sample: Sample,
    n: int = 50,
    *,
    exclude: xr.DataArray | NDArray[Any] | None = None,
) -> Sample:
    """Add the points to a sample of a sequential design that it needs next.

    Those of the next look come first, then those that would be needed if all of them turn out
    right. While points that were handed out have no answer, the look that needs them waits, and
    nothing of later looks is added. To keep some labels for later, at most a quarter of those that
    are left is handed out at once (or 10, if that is more).

    Parameters
    ----------
    label, confidence, exclude : DataArray or array, dims (y, x)
        As for the draw; a changed map is refused.
    sample : Sample
        Of :func:`hsreject.draw_sample` with ``design="sequential"``, labelled as far as it goes.
    n : int
        The most points to add.

    Returns
    -------
    Sample
        The points of `sample` with their labels and up to `n` more; unchanged when the design has
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
    >>> sample = hr.draw_sample(label, 200, design="sequential", confidence=confidence)
    >>> size = 0
    >>> while len(sample) > size:
    ...     size = len(sample)
    ...     sample = hr.more_points(label, confidence, sample.with_reference(truth))
    >>> hr.certify(label, confidence, sample).coverage
    0.6
    """
    check_count("n", n, least=1)
    frame = Frame.of(label, confidence, exclude)
    design, sequences = designs_of(sample, frame)
    points = sample.on_map(frame.label)
    outcomes = [one.outcome(points) for one in sequences]
    flat = np.ravel_multi_index((points.row, points.column), frame.label.shape)
    handed_out = np.isin(sequences[0].pixels, flat)
    n_left = design.n_points - len(points)
    places = next_places(sequences, outcomes, n=n, n_left=n_left, handed_out=handed_out)
    added = Sample.at(sequences[0].pixels[places], frame.label, design)
    return points.joined(replace(added, id=added.id + points.id.max()))
