"""Certify a map: of the pixels that it keeps, at most so many are wrong, with confidence."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import HsrejectWarning, InputError
from hsreject.promise.certificate import Certificate, points_of
from hsreject.promise.climb import Step, Terms, climb_start, labels_needed, smallest_error
from hsreject.promise.design import MapClimb, climb_plan, map_climbs
from hsreject.promise.fixed_sequence import COVERAGES, Counts, first_region, n_passed
from hsreject.promise.frame import NODATA, Frame, Regions, check_share, labels_of, map_id
from hsreject.promise.sample import CANNOT_TELL, CLIMB, RANDOM, STRATIFIED, Design, Sample
from hsreject.promise.sample_file import WAY_OUT, check_complete, given_sample
from hsreject.schema import REJECTED, class_table

if TYPE_CHECKING:
    from numpy.typing import NDArray


def certify(  # noqa: PLR0913 (what is asked, and of what)
    label: xr.DataArray | NDArray[Any],
    confidence: xr.DataArray | NDArray[Any] | None,
    sample: Sample | xr.DataArray | NDArray[Any] | str | PathLike[str],
    *,
    max_error: float | None = None,
    confidence_level: float | None = None,
    exclude: xr.DataArray | NDArray[Any] | None = None,
    coverages: Sequence[float] = COVERAGES,
    predicted: xr.DataArray | NDArray[Any] | None = None,
    assume_random: bool = False,
) -> Certificate:
    """Return the largest part of a map of which it can be promised that few pixels are wrong.

    The map is finished. Coverages c_1 < ... < c_m are fixed beforehand, and the confidences of the
    whole map, without any label, give the threshold of each. Of a climb
    (``draw_sample(..., design="climb")``) they are climbed one by one, with exact boundaries for
    the errors at every look; the promise holds whenever one stops. Of a simple random sample they
    are tested in this order (Learn-then-Test with a fixed sequence). Of the N_j pixels kept at c_j,
    n_j were sampled and k_j of those are wrong::

        p_j = P[H(N_j, floor(alpha N_j) + 1, n_j) <= k_j]

    with alpha = `max_error`, delta = 1 - `confidence_level` and H hypergeometric: the chance to see
    so few errors if more than alpha N_j pixels were wrong. The first p_j above delta ends the
    sequence, and the last threshold that passed is certified. Then::

        P(more than alpha of the kept pixels are wrong) <= delta

    over all samples that could have been drawn, whatever the classifier, the confidence and the
    scene. Choosing the threshold whose errors on the sample are few enough breaks such a promise
    about every second time (``make bench ONLY=promise``). It is about all kept pixels, sampled ones
    included: where a good part of the map is sampled, few errors there leave more to the others. A
    stratified sample is thinned to one density.

    Parameters
    ----------
    label : DataArray or array of int, dims (y, x)
        The map, with ``schema.nodata_label`` where there is no data and 0 where a pixel is rejected
        already and stays so. Or a stack (operating_point, y, x) of maps with rejection, with
        `confidence` None: the operating points of a joint rejector at fractions that were fixed
        beforehand. They are tested by ascending coverage.
    confidence : DataArray or array, dims (y, x), or None
        Larger is more certain. Equal confidences are kept or rejected together. Of a map that may
        answer coarser, the `level_confidence` (level, y, x) of
        :class:`hsreject.HierarchicalRejector`: the confidence of its coarsest answer ranks a pixel,
        and an answer is wrong where the truth is not below it.
    sample : Sample, path, DataArray or array of int, dims (y, x)
        The points of :func:`hsreject.draw_sample`, labelled, or their file. Points that nobody
        could label or has labelled count as errors where they are kept, which keeps the promise;
        those after the last labelled one, in the order of the draw, are left out. Unlabelled points
        of a climb are still asked for. An array holds reference labels on
        the grid of the map, 0 where not sampled, and is taken at the caller's word: every pixel of
        the map had the same chance to be in it, independently of where it lies, of its label and of
        its confidence, and none was used to train, tune or choose the map.
    max_error : float in (0, 1), optional
        Share of wrong pixels among the kept ones that is allowed; 0.05, or what a climb was planned
        for, which cannot be changed.
    confidence_level : float in (0, 1), optional
        1 - delta; 0.9, or that of a climb.
    exclude : DataArray or array of int, dims (y, x), optional
        Not 0 at training pixels. The promise is about the others. A sample that holds some is
        refused. Where a random sample was drawn without them, this need not be said again.
    coverages : sequence of float in (0, 1]
        The sequence. Choose it before looking at the labels.
    predicted : DataArray or array, dims (y, x), optional
        Chance of each label to be wrong (:func:`hsreject.predicted_error`): the sequence of a
        sample that was drawn at once begins where it comes far by this prediction.
    assume_random : bool
        Take points of unknown origin, or of a sample drawn from another map, for a simple random
        sample of this map: at the caller's word, as an array.

    Returns
    -------
    Certificate
        Its `threshold` is None where nothing can be certified.

    See Also
    --------
    hsreject.draw_sample : the pixels to label.
    hsreject.assess : estimates accuracies and areas.
    hsreject.expected_coverage : what to expect.

    References
    ----------
    Angelopoulos, A. N., Bates, S., Candes, E. J., Jordan, M. I. and Lei, L. (2021). Learn then
    Test: calibrating predictive algorithms to achieve risk control.

    Examples
    --------
    A map whose surest 60 % are right:

    >>> import numpy as np
    >>> import hsreject as hr
    >>> confidence = np.linspace(0, 1, 10_000).reshape(100, 100)
    >>> truth = np.ones((100, 100), dtype=int)
    >>> label = np.where(confidence < 0.4, 2, 1)
    >>> sample = hr.draw_sample(label, 500).with_reference(truth)
    >>> certificate = hr.certify(label, confidence, sample)
    >>> certificate.coverage, round(certificate.threshold, 2), certificate.n_errors
    (0.6, 0.4, 0)
    >>> certificate.apply(label, confidence).rejected_fraction
    0.4
    """
    maps = _maps(label, confidence)
    frame = Frame.of(maps[0], confidence, exclude)
    points = given_sample(sample, frame.label, assume_random=assume_random)
    _check_none_excluded(points, frame)
    if points.design is not None and points.design.kind == CLIMB:
        return _certify_climb(points, frame, max_error, confidence_level)
    error = check_share("max_error", 0.05 if max_error is None else max_error)
    level = check_share("confidence_level", 0.9 if confidence_level is None else confidence_level)
    points = _points(points, maps, frame, assume_random=assume_random)
    if confidence is None:
        sequence, errors = _sequence_of_maps(maps, frame, points), None
    else:
        regions = frame.regions(coverages)
        sequence, errors = _sequence(regions, points), regions.predicted_errors(predicted)
    looks = 1 if points.design is None else max(len(points.design.looks), 1)
    terms = Terms(len(points), error, (1 - level) / looks)
    certificate = _certify_at_once(sequence, points, frame, terms, errors)
    identity = "".join(map_id(one, frame.confidence) for one in maps)
    drawn = _drawn(points, assume_random=assume_random)
    return replace(certificate, drawn=drawn, map_id=identity, stacked=confidence is None)


# A sample that was drawn at once.


@dataclass(frozen=True, eq=False)
class _Sequence:
    """Regions of a map in the order of their tests, and which points they keep."""

    thresholds: NDArray[np.float64]
    sizes: NDArray[np.int64]
    kept: NDArray[np.bool_]  # (region, point)
    wrong: NDArray[np.bool_]  # (region, point)
    kept_pixels: Callable[[float], tuple[NDArray[Any], NDArray[np.bool_]]]
    """Labels of the map that is promised at a threshold, and which pixels it keeps."""


def _sequence(regions: Regions, points: Sample) -> _Sequence:
    frame, row, column = regions.frame, points.row, points.column
    return _Sequence(
        regions.thresholds,
        regions.sizes,
        regions.kept(row, column),
        regions.wrong(row, column, points.reference),
        lambda threshold: (frame.label.values, frame.levels[-1] >= threshold),
    )


def _sequence_of_maps(maps: list[xr.DataArray], frame: Frame, points: Sample) -> _Sequence:
    """Return the maps that keep something by their coverage; thresholds are their positions."""
    sizes = np.array([np.count_nonzero(frame.inside & (one.values != REJECTED)) for one in maps])
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    if not order.size:
        raise InputError("No map of the stack keeps a pixel.")
    labels = np.array([maps[position].values[points.row, points.column] for position in order])
    return _Sequence(
        order.astype(np.float64),
        sizes[order],
        labels != REJECTED,
        labels != points.reference,
        lambda place: (maps[order[-1]].values, maps[int(place)].values != REJECTED),
    )


def _certify_at_once(
    sequence: _Sequence,
    points: Sample,
    frame: Frame,
    terms: Terms,
    errors: NDArray[np.float64] | None,
) -> Certificate:
    """Return what a fixed sequence of tests certifies, from a start that no label decides."""
    kept, wrong, sizes = sequence.kept, sequence.wrong, sequence.sizes
    design, n_all, level = points.design, frame.n_pixels, 1 - terms.delta
    n_hidden = 0 if design is None else max(n_all - design.n_pixels, 0)
    n_thinned, density = None, np.full(sizes.size, len(points) / n_all)
    if design is not None and design.kind == STRATIFIED:
        left, n_thinned, density = _thinned(points, frame, sequence.thresholds)
        kept = kept & left
    counts = Counts(sizes, kept.sum(axis=1), (kept & wrong).sum(axis=1), n_thinned, density)
    first = first_region(
        sizes * density, sizes, errors, max_error=terms.max_error, confidence_level=level
    )
    passed = n_passed(counts[first:].p_values(terms.max_error, n_hidden), level)
    tested, thresholds = slice(first, first + passed + 1), sequence.thresholds
    tests = points_of(counts[tested], thresholds[tested], terms, n_all=n_all, n_hidden=n_hidden)
    certificate = Certificate(
        max_error=terms.max_error,
        confidence_level=level,
        n_points=len(points),
        n_pixels=n_all - n_hidden,
        n_needed=None,
        drawn="",
        tests=tests,
        map_id="",
        shape=frame.shape,
        design=RANDOM if design is None else design.kind,
        n_hidden=n_hidden,
        n_cannot_tell=int(np.count_nonzero(points.reference <= 0)),
    )
    if certificate.n_cannot_tell:
        n_errors = (kept & wrong & (points.reference > 0)).sum(axis=1)
        p_values = replace(counts, n_errors=n_errors)[first:].p_values(terms.max_error, n_hidden)
        n_if_right = n_passed(p_values, level)
        coverage = float(sizes[first + n_if_right - 1] / n_all) if n_if_right else 0.0
        certificate = replace(certificate, coverage_if_right=coverage)
    if certificate.threshold is not None:
        lost = _lost_classes(frame, *sequence.kept_pixels(certificate.threshold))
        return replace(certificate, lost_classes=lost)
    if frame.confidence is None:  # there is no climb over a stack of maps
        return certificate
    start = climb_start(sizes, errors, terms, n_all=n_all)
    rate = float((counts.n_errors[start] + 0.5) / (counts.n_kept[start] + 1))
    return replace(
        certificate,
        n_needed=labels_needed(int(sizes[start]), rate, terms, most=n_all),
        smallest_error=smallest_error(int(sizes[start]), rate, terms),
    )


def _thinned(
    points: Sample, frame: Frame, thresholds: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.float64]]:
    """Return which points (region, point) are left of one density, how many, and that density.

    That of the sparsest stratum which a region touches: of the others the first points, in the
    order of the draw, are left.
    """
    _, first, stratum, n_drawn = np.unique(
        points.stratum, return_index=True, return_inverse=True, return_counts=True
    )
    n_pixels, label = points.stratum_pixels[first], points.label[first]
    rank = np.empty(len(points), dtype=np.int64)  # within its stratum, in the order of the draw
    order = np.lexsort((points.id, stratum))
    rank[order] = np.arange(len(points)) - np.repeat(np.cumsum(n_drawn) - n_drawn, n_drawn)
    in_stratum = [frame.inside & (frame.label.values == value) for value in label]
    surest = [np.max(frame.levels[-1], where=mask, initial=-np.inf) for mask in in_stratum]
    touched = (np.array(surest) >= thresholds[:, None]) & (label != REJECTED)
    share = np.where(touched, n_drawn / n_pixels, np.inf).min(axis=1, keepdims=True)
    quota = np.where(touched, np.floor(share * n_pixels + 1e-9), 0).astype(np.int64)
    density = np.where(touched, quota / n_pixels, np.inf).min(axis=1)
    return rank < quota[:, stratum], quota.sum(axis=1), density


def _lost_classes(
    frame: Frame, label: NDArray[np.integer], kept: NDArray[np.bool_]
) -> tuple[str, ...]:
    """Return the names of classes that lost more than nine tenths of their pixels."""
    values, counts = np.unique(label[frame.inside], return_counts=True)
    left = np.array([np.count_nonzero(kept & frame.inside & (label == value)) for value in values])
    gone = (left < 0.1 * counts) & (values != REJECTED)
    table = class_table(frame.label).completed(values[gone].tolist())
    return tuple(map(table.name_of, values[gone].tolist()))


# A climb.


def _certify_climb(
    sample: Sample, frame: Frame, max_error: float | None, confidence_level: float | None
) -> Certificate:
    """Return how far a climb has come with the labels that there are."""
    plan = climb_plan(sample, frame)
    for name, given, planned in (
        ("max_error", max_error, plan.max_error),
        ("confidence_level", confidence_level, plan.confidence_level),
    ):
        if given is not None and given != planned:
            raise InputError(
                f"{name} is {planned:g} in the plan of this climb and cannot be changed after the "
                f"draw (got {given:g}). Leave it out, or draw a new sample."
            )
    climbs = map_climbs(plan, frame)
    unclear = sample.reference == CANNOT_TELL
    if_right = replace(sample, reference=np.where(unclear, sample.label, sample.reference))
    whole = Certificate(
        max_error=plan.max_error,
        confidence_level=plan.confidence_level,
        n_points=int(np.count_nonzero(sample.labelled)),
        n_pixels=frame.n_pixels,
        n_needed=None,
        drawn=f"a climb drawn by hsreject, seed {plan.seed}",
        tests=(),
        map_id=map_id(frame.label, frame.confidence),
        shape=frame.shape,
        design=CLIMB,
        n_planned=plan.n_points,
        finished=len(sample) >= plan.n_points and bool(sample.labelled.all()),
        n_cannot_tell=int(np.count_nonzero(unclear)),
        per_class=plan.per_class,
    )
    steps_if_right = [one.climb.walk(one.outcome(if_right)).reached for one in climbs]
    parts = tuple(
        _climbed(one, sample, whole, step) for one, step in zip(climbs, steps_if_right, strict=True)
    )
    if not plan.per_class:
        (certificate,) = parts
        if certificate.threshold is None:
            return certificate
        lost = _lost_classes(frame, frame.label.values, frame.levels[-1] >= certificate.threshold)
        return replace(certificate, lost_classes=lost)
    n_if_right = 0
    if unclear.any():
        thresholds = [
            None if step is None else float(one.regions.thresholds[step.region])
            for one, step in zip(climbs, steps_if_right, strict=True)
        ]
        n_if_right = _n_kept(climbs, thresholds)
    return replace(
        whole,
        by_class=parts,
        n_promised=_n_kept(climbs, [one.threshold for one in parts]),
        coverage_if_right=n_if_right / frame.n_pixels,
        finished=all(one.finished for one in parts),
        n_more=min((one.n_more for one in parts if one.n_more is not None), default=None),
        smallest_error=min(
            (one.smallest_error for one in parts if one.smallest_error is not None), default=None
        ),
    )


def _climbed(
    one: MapClimb, sample: Sample, whole: Certificate, step_if_right: Step | None
) -> Certificate:
    """Return how far one climb has come: what is said of the whole sample, for its pixels."""
    climb, terms, regions = one.climb, one.climb.terms, one.regions
    outcome = one.outcome(sample)
    walk = climb.walk(outcome)
    steps = [step for step in walk.steps if step.n_looked]
    at = np.array([step.region for step in steps], dtype=np.int64)
    n_looked, n_errors, boundary = (
        np.array([getattr(step, name) for step in steps], dtype=np.int64)
        for name in ("n_looked", "n_errors", "boundary")
    )
    mine = regions.members(sample.label)
    unclear = mine & (sample.reference == CANNOT_TELL)
    finished = whole.finished or not walk.asked.size
    n_if_right = climb.sizes[step_if_right.region] if unclear.any() and step_if_right else 0
    certificate = replace(
        whole,
        confidence_level=1 - terms.delta,
        n_points=int(np.count_nonzero(sample.labelled & mine)),
        n_pixels=regions.n_all,
        tests=points_of(
            Counts(climb.sizes[at], n_looked, n_errors),
            regions.thresholds[at],
            terms,
            n_all=regions.n_all,
            boundary=boundary.tolist(),
        ),
        n_planned=terms.n,
        finished=finished,
        n_more=None if finished else climb.n_more(walk, outcome),
        n_cannot_tell=int(np.count_nonzero(unclear)),
        coverage_if_right=float(n_if_right / regions.n_all),
        class_value=regions.node or 0,
        class_name="" if regions.node is None else regions.frame.nodes.name_of(regions.node),
    )
    if certificate.threshold is None and finished:
        rate = climb.start_rate(outcome)
        hint = smallest_error(int(climb.sizes[climb.start]), rate, terms)
        return replace(certificate, smallest_error=hint)
    return certificate


def _n_kept(climbs: list[MapClimb], thresholds: list[float | None]) -> int:
    """Return how many pixels are kept by at least one of the climbs, each at its threshold."""
    kept = np.zeros(climbs[0].regions.frame.label.shape, dtype=bool)
    for one, threshold in zip(climbs, thresholds, strict=True):
        if threshold is not None:
            regions, frame = one.regions, one.regions.frame
            members = frame.inside & regions.members(frame.label.values)
            kept |= members & (frame.levels[regions.level] >= threshold)
    return int(np.count_nonzero(kept))


# What is given.


def _maps(label: xr.DataArray | NDArray[Any], confidence: object) -> list[xr.DataArray]:
    """Return the only map, or those of a stack, checked; all have data in the same pixels."""
    if confidence is not None:
        return [labels_of(label)]
    if np.ndim(label) != 3:
        raise InputError(
            "Give a confidence beside the label map, or a stack (operating_point, y, x) of maps "
            f"with rejection (got the shape {np.shape(label)})."
        )
    maps = [labels_of(one) for one in label]
    if any(((one.values == NODATA) != (maps[0].values == NODATA)).any() for one in maps):
        raise InputError("The maps of a stack must have data in the same pixels.")
    return maps


def _check_none_excluded(points: Sample, frame: Frame) -> None:
    excluded = ~frame.inside & (frame.label.values != NODATA)
    n_training = int(np.count_nonzero(excluded[points.row, points.column]))
    if n_training:
        raise InputError(
            f"{n_training} of the {len(points)} sampled pixels are training pixels, of which the "
            "map knows the class. Draw the sample without them (exclude=train, --exclude)."
        )


def _points(
    points: Sample, maps: list[xr.DataArray], frame: Frame, *, assume_random: bool
) -> Sample:
    """Return the points that count, or say why they cannot certify anything."""
    if points.design is not None:
        points = _one_draw(points, points.design, maps, assume_random=assume_random)
    points = points.select(frame.inside[points.row, points.column])
    n_open = int(np.count_nonzero(~points.labelled))
    if n_open == len(points):
        raise InputError(
            "No sampled pixel has a reference where the map has data. Fill in the column "
            "'reference' with class names or codes."
        )
    if n_open:
        warnings.warn(
            f"{n_open} of {len(points)} points have no reference: they count as errors where they "
            "are kept.",
            HsrejectWarning,
            stacklevel=3,
        )
    return points


def _one_draw(
    sample: Sample, design: Design, maps: list[xr.DataArray], *, assume_random: bool
) -> Sample:
    """Return the points that were meant, in a sample that is one draw from this map."""
    if design.kind == STRATIFIED and (assume_random or len(maps) > 1):
        raise InputError(
            "A stratified sample certifies thresholds of the map that it was drawn from, and it is "
            "not a simple random one. Draw a sample with design='random' or 'climb'."
        )
    if assume_random:
        return sample
    if design.map_id not in {map_id(one) for one in maps}:
        raise InputError(
            f"The sample was drawn from another map ({design.map_id}) than this one "
            f"({map_id(maps[0])}), which may have learnt from it. {WAY_OUT}"
        )
    check_complete(sample, design)
    return _until_last_label(sample, design)


def _until_last_label(sample: Sample, design: Design) -> Sample:
    """Return the points up to the last labelled one in the order of the draw."""
    last = int(sample.id[sample.labelled].max(initial=0))
    n_after = int(np.count_nonzero(sample.id > last))
    if design.looks and last not in design.looks:
        raise InputError(
            f"{last} of {len(sample)} points are labelled, but looks at this sample were planned "
            f"after {', '.join(map(str, design.looks))} labels. Looking at other times until it "
            "works breaks the promise: label on to the next look."
        )
    if not last or not n_after:
        return sample
    if not design.looks:
        warnings.warn(
            f"The last {n_after} of {len(sample)} points have no reference: the first {last} are "
            "taken for the sample. This is right if labelling did not end because of what had been "
            "found, and nobody looks a second time; plan looks, or a climb, to look more often.",
            HsrejectWarning,
            stacklevel=5,
        )
    return sample.select(sample.id <= last)


def _drawn(points: Sample, *, assume_random: bool) -> str:
    """Say how the points were drawn."""
    if points.design is None or assume_random:
        return "a simple random sample, as the caller says"
    kind = "stratified" if points.design.kind == STRATIFIED else "simple random"
    return f"a {kind} sample drawn by hsreject, seed {points.design.seed}"
