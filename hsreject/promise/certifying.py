"""Certify a map: of the pixels that it keeps, at most so many are wrong, with confidence."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import HsrejectWarning, InputError
from hsreject.promise.certificate import Certificate, lost_classes, points_of
from hsreject.promise.climb import best_start, labels_needed, smallest_error
from hsreject.promise.design import MapClimb, climb_plan, map_climbs
from hsreject.promise.fixed_sequence import (
    COVERAGES,
    Regions,
    first_region,
    n_passed,
)
from hsreject.promise.frame import NODATA, Frame, check_share, labels_of, map_id
from hsreject.promise.planning import region_errors
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
    the errors at every look (the climb); the promise holds whenever
    one stops. Of a simple random sample they are tested in this order (Learn-then-Test with a fixed
    sequence). Of the N_j pixels kept at c_j, n_j were sampled and k_j of those are wrong::

        p_j = P[H(N_j, floor(alpha N_j) + 1, n_j) <= k_j]

    with alpha = `max_error`, delta = 1 - `confidence_level` and H hypergeometric: the chance to see
    so few errors if more than alpha N_j pixels were wrong. The first p_j above delta ends the
    sequence, and the last threshold that passed is certified. Then::

        P(more than alpha of the kept pixels are wrong) <= delta

    over all samples that could have been drawn, whatever the classifier, the confidence and the
    scene. Choosing the threshold whose errors on the sample are few enough breaks such a promise
    about every second time (``make bench ONLY=promise``). It is about all kept pixels, sampled ones
    included: where a good part of the map is sampled, few errors there leave more to the others. A
    stratified sample is thinned to one density (`Regions`).

    Parameters
    ----------
    label : DataArray or array of int, dims (y, x)
        The map, with ``schema.nodata_label`` where there is no data and 0 where a pixel is rejected
        already and stays so. Or a stack (operating_point, y, x) of maps with rejection, with
        `confidence` None: the operating points of a joint rejector at fractions that were fixed
        beforehand. They are tested by ascending coverage.
    confidence : DataArray or array, dims (y, x), or None
        Larger is surer. Equal confidences are kept or rejected together. Of a map that may answer
        coarser, the `level_confidence` (level, y, x) of :class:`hsreject.HierarchicalRejector`:
        the confidence of its coarsest answer ranks a pixel, and an answer is wrong where the truth
        is not below it.
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
    asked = (
        (0.05 if max_error is None else max_error),
        (0.9 if confidence_level is None else confidence_level),
    )
    check_share("max_error", asked[0])
    check_share("confidence_level", asked[1])
    points = _points(points, maps, frame, assume_random=assume_random)
    if confidence is None:
        order, sizes = _by_coverage(maps, frame.inside)
        layers, thresholds = [maps[position] for position in order], order.astype(np.float64)
        identity = "".join(map_id(one) for one in maps)
    else:
        thresholds, sizes = frame.thresholds(coverages)
        layers, identity = [frame.label], map_id(frame.label, frame.ranking)
    test = _SequenceOfRegions(frame, points, layers, thresholds, sizes, asked)
    facts: dict[str, Any] = {
        "drawn": _drawn(points, assume_random=assume_random),
        "map_id": identity,
        "shape": frame.label.shape,
        "stacked": confidence is None,
    }
    errors = None if confidence is None else region_errors(predicted, frame, thresholds)
    return test.certificate(facts, errors)


# A sample that was drawn at once.


@dataclass(frozen=True, eq=False)
class _SequenceOfRegions:
    """Regions of a map, and the points that tell how many of their pixels are wrong."""

    frame: Frame
    points: Sample
    layers: list[xr.DataArray]  # the map of each region, or the only one
    thresholds: NDArray[np.float64]
    sizes: NDArray[np.int64]
    asked: tuple[float, float]  # max_error and confidence_level

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Which points (region, point) are kept."""
        labels = np.array([one.values[self.points.row, self.points.column] for one in self.layers])
        if len(self.layers) > 1 or self.frame.confidence is None:
            return np.asarray(labels != REJECTED)
        confidences = self.frame.confidences.values[self.points.row, self.points.column]
        return np.asarray((confidences >= self.thresholds[:, None]) & (labels != REJECTED))

    def regions(self, *, unclear_right: bool = False) -> Regions:
        """Return the counts of all regions."""
        points = self.points
        if self.frame.confidence is None:
            labels = np.array([one.values[points.row, points.column] for one in self.layers])
            wrong = labels != points.reference
        else:
            up_to = self.frame.wrong_up_to(points.row, points.column, points.reference)
            wrong = self.thresholds[:, None] <= up_to
        if unclear_right:
            wrong &= points.reference > 0
        kept, design = self.kept, points.design
        hidden = 0 if design is None else max(self.frame.n_pixels - design.n_pixels, 0)
        if design is None or design.kind != STRATIFIED:
            return Regions(self.sizes, kept.sum(axis=1), (kept & wrong).sum(axis=1), hidden)
        left, n_thinned, density = self._thinned()
        counts = (kept & left).sum(axis=1), (kept & wrong & left).sum(axis=1)
        return Regions(self.sizes, *counts, hidden, n_thinned, density)

    def _thinned(self) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.float64]]:
        """Return which points (region, point) are left of one density, how many, and that density.

        That of the sparsest stratum which a region touches: of the others the first points, in the
        order of the draw, are left.
        """
        points = self.points
        strata, stratum = np.unique(points.stratum, return_inverse=True)
        first = [np.flatnonzero(stratum == h)[0] for h in range(strata.size)]
        n_pixels, label = points.stratum_pixels[first], points.label[first]
        n_drawn = np.bincount(stratum)
        rank = np.empty(len(points), dtype=np.int64)  # within its stratum, in the order of the draw
        order = np.lexsort((points.id, stratum))
        rank[order] = np.arange(len(points)) - np.repeat(np.cumsum(n_drawn) - n_drawn, n_drawn)
        inside, confidences = self.frame.inside, self.frame.confidences.values
        in_stratum = [inside & (self.frame.label.values == value) for value in label]
        surest = [np.max(confidences, where=mask, initial=-np.inf) for mask in in_stratum]
        touched = (np.array(surest) >= self.thresholds[:, None]) & (label != REJECTED)
        share = np.where(touched, n_drawn / n_pixels, np.inf).min(axis=1, keepdims=True)
        quota = np.where(touched, np.floor(share * n_pixels + 1e-9), 0).astype(np.int64)
        density = np.where(touched, quota / n_pixels, np.inf).min(axis=1)
        return rank < quota[:, stratum], quota.sum(axis=1), density

    def expected(self, regions: Regions) -> NDArray[np.float64]:
        """Return how many points each region is expected to hold."""
        density = len(self.points) / self.frame.n_pixels
        return np.asarray(
            regions.n_pixels * (density if regions.density is None else regions.density)
        )

    def certificate(
        self, facts: dict[str, Any], predicted: NDArray[np.float64] | None
    ) -> Certificate:
        """Return what the sequence certifies."""
        max_error, level = self.asked
        points, design = self.points, self.points.design
        regions, n_all = self.regions(), self.frame.n_pixels
        looks = 1 if design is None else max(len(design.looks), 1)
        level_here = 1 - (1 - level) / looks
        asked: dict[str, Any] = {"max_error": float(max_error), "confidence_level": level_here}
        expected = self.expected(regions)
        first = first_region(expected, error=predicted, sizes=self.sizes, **asked)
        passed = n_passed(regions.select(slice(first, None)).p_values(max_error), level_here)
        tested = slice(first, first + passed + 1)
        tests = points_of(regions.select(tested), self.thresholds[tested], n_all=n_all, **asked)
        certificate = Certificate(
            tests=tests,
            **asked,
            n_points=len(points),
            n_pixels=n_all - regions.n_hidden,
            n_needed=None,
            n_hidden=regions.n_hidden,
            design=RANDOM if design is None else design.kind,
            n_cannot_tell=int(np.count_nonzero(points.reference <= 0)),
            **facts,
        )
        if certificate.n_cannot_tell:
            if_right = (
                self.regions(unclear_right=True).select(slice(first, None)).p_values(max_error)
            )
            n_if_right = n_passed(if_right, level_here)
            if n_if_right:
                certificate = replace(
                    certificate, coverage_if_right=float(self.sizes[first + n_if_right - 1] / n_all)
                )
        if certificate.threshold is None:
            return self._with_hints(certificate, regions, predicted)
        return replace(certificate, lost_classes=self._lost(certificate.threshold))

    def _with_hints(
        self, certificate: Certificate, regions: Regions, predicted: NDArray[np.float64] | None
    ) -> Certificate:
        """Return the certificate of nothing with what a climb could do; a stack has no climb."""
        if certificate.stacked:
            return certificate
        n, n_all = certificate.n_points, self.frame.n_pixels
        asked: dict[str, Any] = {
            "max_error": certificate.max_error,
            "delta": 1 - certificate.confidence_level,
        }
        start = best_start(self.sizes, predicted, n_all=n_all, n=n, **asked)
        rate = (regions.n_errors[start] + 0.5) / (regions.n_kept[start] + 1)
        place = int(self.sizes[start]), float(rate)
        return replace(
            certificate,
            n_needed=labels_needed(*place, n=n, most=n_all, **asked),
            smallest_error=smallest_error(*place, n=n, **asked),
        )

    def _lost(self, threshold: float) -> tuple[str, ...]:
        label = self.layers[-1].values  # the fullest map of a stack
        if self.frame.confidence is None:
            at = self.thresholds.tolist().index(threshold)
            kept = self.layers[at].values != REJECTED
        else:
            kept = self.frame.confidences.values >= threshold
        return _named(label, self.frame, kept)


def _named(label: NDArray[np.integer], frame: Frame, kept: NDArray[np.bool_]) -> tuple[str, ...]:
    table = class_table(frame.label)
    names = dict(zip(table.values, table.names, strict=True))
    return lost_classes(label, frame.inside, kept, names)


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
    facts: dict[str, Any] = {
        "max_error": plan.max_error,
        "n_pixels": frame.n_pixels,
        "n_needed": None,
        "drawn": f"a climb drawn by hsreject, seed {plan.seed}",
        "map_id": map_id(frame.label, frame.ranking),
        "shape": frame.label.shape,
        "design": CLIMB,
        "per_class": plan.per_class,
    }
    parts = tuple(_climbed(one, sample, plan, frame, facts) for one in climbs)
    if not plan.per_class:
        (certificate,) = parts
        if certificate.threshold is None:
            return certificate
        kept = frame.confidences.values >= certificate.threshold
        return replace(certificate, lost_classes=_named(frame.label.values, frame, kept))
    return Certificate(
        tests=(),
        by_class=parts,
        **facts,
        confidence_level=plan.confidence_level,
        n_points=int(np.count_nonzero(sample.labelled)),
        n_planned=plan.n_points,
        n_cannot_tell=int(np.count_nonzero(sample.reference == CANNOT_TELL)),
        coverage_if_right=sum(one.coverage_if_right * one.n_pixels for one in parts)
        / frame.n_pixels,
        finished=all(one.finished for one in parts) or len(sample) >= plan.n_points,
        n_more=min((one.n_more for one in parts if one.n_more is not None), default=None),
    )


def _climbed(
    one: MapClimb, sample: Sample, plan: Design, frame: Frame, facts: dict[str, Any]
) -> Certificate:
    """Return how far one climb has come."""
    climb = one.climb
    outcome = one.outcome(sample)
    walk = climb.walk(outcome)
    steps = [step for step in walk.steps if step.n_looked]
    at = [step.region for step in steps]
    regions = Regions(
        climb.sizes[at],
        np.array([step.n_looked for step in steps], dtype=np.int64),
        np.array([step.n_errors for step in steps], dtype=np.int64),
    )
    mine = np.ones(len(sample), dtype=bool) if one.value is None else sample.label == one.value
    n_pixels = frame.n_pixels if one.value is None else int(climb.sizes[-1])
    asked: dict[str, Any] = {"max_error": plan.max_error, "confidence_level": 1 - climb.delta}
    tests = points_of(
        regions,
        one.thresholds[at],
        n_all=n_pixels,
        **asked,
        boundary=[step.boundary for step in steps],
    )
    unclear = mine & (sample.reference == CANNOT_TELL)
    if_right = replace(sample, reference=np.where(unclear, sample.label, sample.reference))
    reached = climb.walk(one.outcome(if_right)).reached if unclear.any() else None
    spent = len(sample) >= plan.n_points and bool(sample.labelled.all())
    ended = not walk.asked.size
    certificate = Certificate(
        tests=tests,
        **(facts | asked | {"n_pixels": n_pixels}),
        n_points=int(np.count_nonzero(sample.labelled & mine)),
        n_planned=climb.n,
        finished=ended or spent,
        n_more=None if ended or spent else climb.n_more(walk, outcome),
        n_cannot_tell=int(np.count_nonzero(unclear)),
        coverage_if_right=0.0 if reached is None else float(climb.sizes[reached.region] / n_pixels),
        class_value=one.value or 0,
        class_name="" if one.value is None else class_table(frame.label).name_of(one.value),
    )
    if certificate.threshold is None and certificate.finished:
        place = int(climb.sizes[climb.start]), climb.start_rate(outcome)
        hint = smallest_error(*place, n=climb.n, max_error=climb.max_error, delta=climb.delta)
        return replace(certificate, smallest_error=hint)
    return certificate


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


def _by_coverage(
    maps: list[xr.DataArray], inside: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of the maps that keep something, by coverage, and how much they keep."""
    sizes = np.array([np.count_nonzero(inside & (one.values != REJECTED)) for one in maps])
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    if not order.size:
        raise InputError("No map of the stack keeps a pixel.")
    return order, sizes[order]


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
