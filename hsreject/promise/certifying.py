"""Certify a map: which part of it has at most a given share of wrong pixels, with confidence."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import HsrejectWarning, InputError
from hsreject.promise.certificate import Certificate
from hsreject.promise.climb import (
    Climb,
    Look,
    Terms,
    cautious_rate,
    climb_start,
    labels_needed,
    least_points,
    smallest_error,
    start_of,
)
from hsreject.promise.design import climb_plan, map_climbs
from hsreject.promise.frame import NODATA, Frame, Regions, check_share, labels_of, map_id
from hsreject.promise.sample import CANNOT_TELL, CLIMB, RANDOM, STRATIFIED, Design, Sample
from hsreject.promise.sample_file import WAY_OUT, given_sample
from hsreject.schema import REJECTED, class_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_HIDDEN = 1000  # wrong pixels that the promise would allow among those


def certify(
    label: xr.DataArray | NDArray[Any],
    confidence: xr.DataArray | NDArray[Any] | None,
    sample: Sample | xr.DataArray | NDArray[Any] | str | PathLike[str],
    *,
    max_error: float | None = None,
    confidence_level: float | None = None,
    exclude: xr.DataArray | NDArray[Any] | None = None,
    predicted: xr.DataArray | NDArray[Any] | None = None,
    assume_random: bool = False,
) -> Certificate:
    """Return the largest part of a map for which a small error can be promised.

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
    included: where a large part of the map is sampled, few errors there allow more among the
    others. A stratified sample is thinned to one density.

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
        the grid of the map, 0 where not sampled, and is trusted to be what the caller says: every
        pixel of the map had the same chance to be in it, independently of where it lies, of its
        label and of its confidence, and none was used to train, tune or choose the map.
    max_error : float in (0, 1), optional
        Share of wrong pixels among the kept ones that is allowed; 0.05, or what a climb was planned
        for, which cannot be changed.
    confidence_level : float in (0, 1), optional
        1 - delta; 0.9, or that of a climb.
    exclude : DataArray or array of int, dims (y, x), optional
        Not 0 at training pixels. The promise is about the others. A sample that holds some is
        refused. If a random sample was drawn without them, they need not be given again.
    predicted : DataArray or array, dims (y, x), optional
        Chance of each label to be wrong (:func:`hsreject.predicted_error`): the sequence of a
        sample that was drawn at once begins where this prediction lets it come far.
    assume_random : bool
        Take points of unknown origin, or of a sample drawn from another map, for a simple random
        sample of this map, as an array is.

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
    A map whose most confident 60 % are right:

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
    excluded = ~frame.inside & (frame.label.values != NODATA)
    n_training = int(np.count_nonzero(excluded[points.row, points.column]))
    if n_training:
        raise InputError(
            f"{n_training} of the {len(points)} sampled pixels are training pixels, of which the "
            "map knows the class. Draw the sample without them (exclude=train, --exclude)."
        )
    if points.design is not None and points.design.kind == CLIMB:
        plan = _planned(points, frame, max_error, confidence_level)
        certificate_of = partial(_climbed, climbs=map_climbs(plan, frame), plan=plan, frame=frame)
    else:
        points = _points(points, maps, assume_random=assume_random)
        alpha = check_share("max_error", 0.05 if max_error is None else max_error)
        level = 0.9 if confidence_level is None else confidence_level
        delta = 1 - check_share("confidence_level", level)
        n_looks = 1 if points.design is None else max(len(points.design.looks), 1)
        certificate_of = partial(
            _tested,
            regions=frame.regions() if confidence is not None else _Stack.of(maps, frame),
            frame=frame,
            terms=Terms(len(points), alpha, delta / n_looks),
            predicted=predicted,
            drawn=_drawn(points, assume_random=assume_random),
            identity="".join(map_id(one, frame.confidence) for one in maps),
        )
    certificate, unclear = certificate_of(points), points.reference == CANNOT_TELL
    if not unclear.any():
        return certificate
    right = replace(points, reference=np.where(unclear, points.label, points.reference))
    return replace(certificate, coverage_if_right=certificate_of(right).coverage)


# A sample that was drawn at once.


@dataclass(frozen=True, eq=False)
class _Stack:
    """Maps with rejection by their coverage, as regions; thresholds are their positions."""

    maps: list[xr.DataArray]
    thresholds: NDArray[np.float64]
    sizes: NDArray[np.int64]
    n_all: int

    @classmethod
    def of(cls, maps: list[xr.DataArray], frame: Frame) -> _Stack:
        """Return the maps that keep something."""
        sizes = [np.count_nonzero(frame.inside & (one.values != REJECTED)) for one in maps]
        order = [at for at in np.argsort(sizes, kind="stable") if sizes[at]]
        if not order:
            raise InputError("No map of the stack keeps a pixel.")
        return cls(maps, np.array(order, float), np.array(sizes)[order], frame.n_pixels)

    def answers(
        self, row: NDArray[np.int64], column: NDArray[np.int64], reference: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which points are kept, and the labels of which are wrong (map, point)."""
        labels = np.array([self.maps[int(place)].values[row, column] for place in self.thresholds])
        return labels != REJECTED, labels != reference

    def predicted_errors(self, predicted: object) -> None:
        """Return nothing: maps of a stack are not ranked by a confidence."""


def _tested(
    points: Sample,
    *,
    regions: Regions | _Stack,
    frame: Frame,
    terms: Terms,
    predicted: xr.DataArray | NDArray[Any] | None,
    drawn: str,
    identity: str,
) -> Certificate:
    """Return what a fixed sequence of tests certifies, from a start that no label decides."""
    errors = regions.predicted_errors(predicted)
    sizes, design, n_all = regions.sizes, points.design, frame.n_pixels
    keep, wrong = regions.answers(points.row, points.column, points.reference)
    n_hidden = 0 if design is None else max(n_all - design.n_pixels, 0)
    if terms.max_error * n_hidden > _MOST_HIDDEN:
        raise InputError(
            f"{n_hidden} pixels could not be drawn, too many to promise anything without knowing "
            "which. Exclude the same pixels as for the draw (exclude=, --exclude)."
        )
    n_thinned, density = np.zeros_like(sizes), np.full(sizes.size, len(points) / n_all)
    if design is not None and design.kind == STRATIFIED:
        left, n_thinned, density = _thinned(points, frame, regions.thresholds)
        keep = keep & left
    # No label may decide where to begin. Without a prediction it is where the sample will probably
    # hold half as many points again as could pass without a single error.
    expected = sizes * density
    enough = np.flatnonzero(expected >= 1.5 * least_points(terms.max_error, terms.delta))
    otherwise = int(enough[0]) if enough.size else sizes.size - 1
    start = start_of(sizes, errors, terms, looks=expected[:, None], otherwise=otherwise)
    tests: list[Look] = []
    # Fixed-sequence testing: every test may spend all of delta, because the first that fails is the
    # last. A broken promise needs the first bad region of a fixed order to pass.
    while start + len(tests) < sizes.size and all(test.passed for test in tests[-1:]):
        at = start + len(tests)
        look = replace(
            Look.at(regions, at),
            n_kept=int(keep[at].sum()),
            n_errors=int((keep[at] & wrong[at]).sum()),
            n_thinned=int(n_thinned[at]),
            density=float(density[at]) if n_thinned[at] else 0.0,
        )
        tests.append(look.judged(terms, climb=False, n_hidden=n_hidden))
    certificate = Certificate(
        max_error=terms.max_error,
        confidence_level=1 - terms.delta,
        n_points=len(points),
        n_pixels=n_all - n_hidden,
        drawn=drawn,
        tests=tuple(tests),
        map_id=identity,
        shape=frame.label.shape,
        design=RANDOM if design is None else design.kind,
        stacked=isinstance(regions, _Stack),
        n_hidden=n_hidden,
        n_cannot_tell=int(np.count_nonzero(points.reference == CANNOT_TELL)),
    )
    if isinstance(regions, _Stack):
        if certificate.threshold is None:
            return certificate
        places = regions.thresholds[-1], certificate.threshold
        largest, promised = (regions.maps[int(place)].values for place in places)
        lost = _lost_classes(frame, largest, promised != REJECTED)
        return replace(certificate, lost_classes=lost)
    if certificate.threshold is not None:
        kept_pixels = frame.levels[-1] >= certificate.threshold
        lost = _lost_classes(frame, frame.label.values, kept_pixels)
        return replace(certificate, lost_classes=lost)
    start = climb_start(regions, errors, terms)
    rate = _cautious_rate(regions, points, start)
    return replace(
        certificate,
        n_needed=labels_needed(int(sizes[start]), rate, terms, most=n_all),
        smallest_error=smallest_error(int(sizes[start]), rate, terms),
    )


def _cautious_rate(regions: Regions, points: Sample, start: int) -> float:
    """Return an error rate that the region which a climb begins with hardly exceeds."""
    keep, wrong = regions.answers(points.row, points.column, points.reference)
    # each labelled point counts in the smallest region around it, at the middle of its ring
    used = np.flatnonzero(keep[-1] & points.labelled)
    depth = keep.argmax(axis=0)[used]
    middle = (regions.sizes - np.diff(regions.sizes, prepend=0) / 2) / regions.n_all
    share = float(regions.sizes[start] / regions.n_all)
    return cautious_rate(wrong[depth, used], middle[depth], share)


def _thinned(
    points: Sample, frame: Frame, thresholds: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.float64]]:
    """Return which points (region, point) are left of one density, how many, and that density.

    The density is that of the sparsest stratum which a region touches; of the other strata the
    first points, in the order of the draw, are kept.
    """
    _, first, stratum, n_drawn = np.unique(
        points.stratum, return_index=True, return_inverse=True, return_counts=True
    )
    n_pixels, label = points.stratum_pixels[first], points.label[first]
    rank = np.empty(len(points), dtype=np.int64)  # within its stratum, in the order of the draw
    order = np.lexsort((points.id, stratum))
    rank[order] = np.arange(len(points)) - np.repeat(np.cumsum(n_drawn) - n_drawn, n_drawn)
    in_stratum = [frame.inside & (frame.label.values == value) for value in label]
    # a region touches a stratum if it keeps its most confident pixel
    surest = [np.max(frame.levels[-1], where=mask, initial=-np.inf) for mask in in_stratum]
    touched = (np.array(surest) >= thresholds[:, None]) & (label != REJECTED)
    # Strata were sampled at different densities. The sparsest one in a region sets the density for
    # all: then every pixel of the region had the same chance, as in a random sample.
    share = np.where(touched, n_drawn / n_pixels, np.inf).min(axis=1, keepdims=True)
    quota = np.where(touched, np.floor(share * n_pixels + 1e-9), 0).astype(np.int64)
    density = np.where(touched, quota / n_pixels, np.inf).min(axis=1)
    return rank < quota[:, stratum], quota.sum(axis=1), density


def _lost_classes(
    frame: Frame, label: NDArray[np.integer], keep: NDArray[np.bool_]
) -> tuple[str, ...]:
    """Return the names of classes that lost more than nine tenths of their pixels."""
    counts = np.bincount(label[frame.inside])
    left = np.bincount(label[frame.inside & keep], minlength=counts.size)
    gone = [int(value) for value in np.flatnonzero(left < 0.1 * counts) if value != REJECTED]
    return tuple(map(class_table(frame.label).completed(gone).name_of, gone))


# A climb.


def _planned(
    sample: Sample, frame: Frame, max_error: float | None, confidence_level: float | None
) -> Design:
    """Return the plan of a climb, which nobody may change after the draw."""
    plan = climb_plan(sample, frame)
    asked = {"max_error": max_error, "confidence_level": confidence_level}
    for name, share in asked.items():
        if share not in {None, getattr(plan, name)}:
            raise InputError(
                f"{name} is {getattr(plan, name):g} in the plan of this climb and cannot be "
                f"changed after the draw (got {share:g}). Leave it out, or draw a new sample."
            )
    return plan


def _climbed(sample: Sample, *, climbs: list[Climb], plan: Design, frame: Frame) -> Certificate:
    """Return how far a climb, or those of the classes, has come with the labels that there are."""
    used_up = len(sample) >= plan.n_points and bool(sample.labelled.all())
    whole = Certificate(
        max_error=plan.max_error,
        confidence_level=plan.confidence_level,
        n_points=int(np.count_nonzero(sample.labelled)),
        n_pixels=frame.n_pixels,
        drawn=f"a climb drawn by hsreject, seed {plan.seed}",
        tests=(),
        map_id=map_id(frame.label, frame.confidence),
        shape=frame.label.shape,
        design=CLIMB,
        n_planned=plan.n_points,
        n_cannot_tell=int(np.count_nonzero(sample.reference == CANNOT_TELL)),
        per_class=plan.per_class,
    )
    parts, kept_pixels = [], np.zeros(frame.label.shape, dtype=bool)
    for climb in climbs:
        walk, regions = climb.walk(climb.outcome(sample)), climb.regions
        mine = regions.members(sample.label)
        finished = used_up or not walk.asked.size
        part = replace(
            whole,
            confidence_level=1 - climb.terms.delta,
            n_points=int(np.count_nonzero(sample.labelled & mine)),
            n_pixels=regions.n_all,
            tests=tuple(look for look in walk.looks if look.n_kept),
            n_planned=climb.terms.n,
            finished=finished,
            n_more=None if finished else walk.n_more,
            n_cannot_tell=int(np.count_nonzero(mine & (sample.reference == CANNOT_TELL))),
            class_value=regions.node or 0,
            class_name="" if regions.node is None else frame.nodes.name_of(regions.node),
        )
        if part.threshold is not None:
            members = regions.members(frame.label.values)
            kept_pixels |= frame.inside & members & (frame.levels[regions.level] >= part.threshold)
        elif finished:
            rate = _cautious_rate(regions, sample, climb.start)
            hint = smallest_error(int(regions.sizes[climb.start]), rate, climb.terms)
            part = replace(part, smallest_error=hint)
        parts.append(part)
    if not plan.per_class:
        lost = _lost_classes(frame, frame.label.values, kept_pixels) if kept_pixels.any() else ()
        return replace(parts[0], lost_classes=lost)
    return replace(
        whole,
        by_class=tuple(parts),
        n_promised=int(np.count_nonzero(kept_pixels)),
        finished=all(one.finished for one in parts),
        n_more=min((one.n_more for one in parts if one.n_more), default=None),
        smallest_error=min(
            (one.smallest_error for one in parts if one.smallest_error), default=None
        ),
    )


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


def _points(points: Sample, maps: list[xr.DataArray], *, assume_random: bool) -> Sample:
    """Return the points that count, or say why they cannot certify anything."""
    design = points.design
    if design is not None and design.kind == STRATIFIED and (assume_random or len(maps) > 1):
        raise InputError(
            "A stratified sample certifies thresholds of the map that it was drawn from, and it is "
            "not a simple random one. Draw a sample with design='random' or 'climb'."
        )
    if design is not None and not assume_random:
        if design.map_id not in {map_id(one) for one in maps}:
            raise InputError(
                f"The sample was drawn from another map ({design.map_id}) than this one "
                f"({map_id(maps[0])}), which may have learned from it. {WAY_OUT}"
            )
        points = _until_last_label(points, design)
    n_open = int(np.count_nonzero(~points.labelled))
    if n_open:
        warnings.warn(
            f"{n_open} of {len(points)} points have no reference: they count as errors where they "
            "are kept.",
            HsrejectWarning,
            stacklevel=3,
        )
    return points


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
            stacklevel=4,
        )
    return sample.select(sample.id <= last)


def _drawn(points: Sample, *, assume_random: bool) -> str:
    """Say how the points were drawn."""
    if points.design is None or assume_random:
        return "a simple random sample, as the caller says"
    kind = "stratified" if points.design.kind == STRATIFIED else "simple random"
    return f"a {kind} sample drawn by hsreject, seed {points.design.seed}"
