"""Certification: the tests of a labelled sample, and the certificate of what they promise."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject import schema
from hsreject.certification.certificate import (
    FIXED_SEQUENCE_RULE,
    SEQUENTIAL_RULE,
    Certificate,
    Guarantee,
)
from hsreject.certification.exact_tests import Look, Progress, Requirement, Test, progress
from hsreject.certification.frame import Frame, NestedRegions, StackedMaps, labels_of
from hsreject.certification.planning import (
    Outlook,
    fixed_sequence_start,
    labels_to_next,
    outlook,
    sequential_start,
)
from hsreject.certification.sample import (
    CANNOT_TELL,
    RANDOM,
    REMEDY,
    SEQUENTIAL,
    STRATIFIED,
    Sample,
    given_sample,
)
from hsreject.certification.sequential_design import SequentialDesign, designs_of
from hsreject.errors import HsrejectWarning, InputError
from hsreject.registry import check_number
from hsreject.schema import REJECTED
from hsreject.schema.label_maps import map_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import xarray as xr
    from numpy.typing import NDArray


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
    """Certify the largest part of a map for which a small error can be promised.

    The map is finished. Coverages c_1 < ... < c_m are fixed beforehand, and the confidences of the
    whole map, without any label, give the threshold of each. They are tested in this order, from a
    start that no label decides. Of a sequential design (``draw_sample(..., design="sequential")``)
    each has several looks, with exact boundaries for the errors at every look; the promise holds
    whenever one stops. Of a simple random sample each has one (Learn-then-Test with a fixed
    sequence). Of the N_j pixels kept at c_j, n_j were sampled and k_j of those are wrong::

        p_j = P[H(N_j, floor(alpha N_j) + 1, n_j) <= k_j]

    with alpha = `max_error`, delta = 1 - `confidence_level` and H hypergeometric: the chance to see
    so few errors if more than alpha N_j pixels were wrong. The first p_j above delta ends the
    sequence, and the last threshold that passed is certified. Then, over all samples that could
    have been drawn, and whatever the classifier, the confidence and the scene::

        P(more than alpha of the kept pixels, sampled ones included, are wrong) <= delta

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
        those after the last labelled one, in the order of the draw, are left out. A sequential
        design waits for its unlabelled points. A stratified sample certifies nothing: give it to
        :func:`hsreject.assess`. An array holds reference labels on the grid of the map, 0
        where not sampled, and is trusted: every pixel of the map had the same chance to be in it,
        wherever it lies, and none was used to train, tune or choose the map.
    max_error, confidence_level : float in (0, 1), optional
        Share of wrong pixels among the kept ones that is allowed, and 1 - delta: 0.05 and 0.9, or
        what a sequential design was drawn for, which cannot be changed.
    exclude : DataArray or array of int, dims (y, x), optional
        Not 0 at training pixels: the same as for the draw. The promise is about the others. A
        sample that holds some is refused, and so is one that was drawn without them if they are not
        given again.
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
    >>> label = np.where(confidence < 0.4, 2, 1)
    >>> sample = hr.draw_sample(label, 500).with_reference(np.ones((100, 100), dtype=int))
    >>> certificate = hr.certify(label, confidence, sample)
    >>> certificate.coverage, round(certificate.threshold, 2), certificate.n_errors
    (0.6, 0.4, 0)
    >>> certificate.apply(label, confidence).rejected_fraction
    0.4
    """
    if confidence is None and np.ndim(label) != 3:
        raise InputError(
            "Give a confidence beside the label map, or a stack (operating_point, y, x) of maps "
            f"with rejection (got the shape {np.shape(label)})."
        )
    first, *others = label if confidence is None else [label]
    frame = Frame.of(first, confidence, exclude)
    others = [labels_of(one) for one in others]
    maps = [frame.label, *others]
    points = given_sample(sample, frame.label, assume_random=assume_random)
    if points.kind == STRATIFIED:
        raise InputError(
            "A stratified sample estimates accuracies and areas ('hsreject assess'); it does not "
            "certify a map, because it is not a simple random sample of it. Draw one with "
            "design='sequential' ('hsreject sample --for-promise') or design='random'."
        )
    n_excluded = int(np.count_nonzero(~frame.inside[points.row, points.column]))
    if n_excluded:
        raise InputError(
            f"{n_excluded} of the {len(points)} sampled pixels are excluded: training pixels, or "
            "places that nobody can label. Draw the sample without them (exclude=, --exclude)."
        )
    facts = {
        "map_id": frame.map_id + "".join(map(map_id, others)),
        "stacked": confidence is None,
    }
    if points.kind == SEQUENTIAL:
        requested = {"max_error": max_error, "confidence_level": confidence_level}
        return _certified_by_design(points, frame, requested, facts)
    points = _random_points(points, maps, frame.n_pixels, assume_random=assume_random)
    alpha = 0.05 if max_error is None else max_error
    level = 0.9 if confidence_level is None else confidence_level
    check_number("max_error", alpha, above=0, below=1)
    check_number("confidence_level", level, above=0, below=1)
    if points.design is not None and points.design.looks:  # each has its part of delta
        level = 1 - (1 - level) / len(points.design.looks)
    regions = StackedMaps.of(maps, frame) if confidence is None else frame.regions()
    return _certified_at_once(points, regions, alpha, level, predicted, facts)


def _certified_by_design(
    points: Sample, frame: Frame, requested: dict[str, float | None], facts: dict[str, Any]
) -> Certificate:
    """Certify what the labels of a sequential design have shown so far."""
    design, sequences = designs_of(points, frame)
    for name, share in requested.items():
        planned = getattr(design, name)
        if share not in {None, planned}:
            raise InputError(
                f"{name} is {planned:g} in the design of this sample and cannot be changed after "
                f"the draw (got {share:g}). Leave it out, or draw a new sample."
            )
    used_up = len(points) >= design.n_points and bool(points.labelled.all())
    reached = [one.progress(points) for one in sequences]
    needed = np.unique(np.concatenate([one.waiting for one in reached]))
    flat = np.ravel_multi_index((points.row, points.column), frame.label.shape)
    is_waiting = ~points.labelled & np.isin(flat, sequences[0].pixels[needed])
    facts |= {
        "waiting": tuple(sorted(points.id[is_waiting].tolist())),
        "confidence_level": design.confidence_level,
        "per_class": design.per_class,
        "n_planned": design.n_points,
        "n_points": int(np.count_nonzero(points.labelled)),
        "guarantees": tuple(
            _guarantee(one, points, far, used_up=used_up)
            for one, far in zip(sequences, reached, strict=True)
        ),
    }
    return _certificate(points, sequences, reached, facts)


def _guarantee(
    sequence: SequentialDesign, points: Sample, reached: Progress, *, used_up: bool
) -> Guarantee:
    """State what the tests of one sequence have shown, with an outlook on more labels."""
    regions, node = sequence.regions, sequence.regions.node
    inside = regions.first_region[points.row, points.column] < regions.sizes.size
    points = points.select(inside)
    finished = used_up or not reached.waiting.size
    if finished:
        further = outlook(regions, points, sequence.start, sequence.requirement, reached)
    else:
        outcome = sequence.outcome(points)
        further = Outlook(n_more=labels_to_next(sequence, outcome, reached))
    return Guarantee(
        rule=SEQUENTIAL_RULE,
        requirement=sequence.requirement,
        tests=tuple(test for test in reached.tests if test.n_looked),
        n_pixels=regions.n_all,
        n_points=int(np.count_nonzero(points.labelled)),
        finished=finished,
        outlook=further,
        class_value=node or 0,
        class_name="" if node is None else regions.frame.nodes.name_of(node),
    )


def _certified_at_once(
    points: Sample,
    regions: NestedRegions,
    max_error: float,
    confidence_level: float,
    predicted: xr.DataArray | NDArray[Any] | None,
    facts: dict[str, Any],
) -> Certificate:
    """Certify what a random sample shows, by a fixed sequence of tests."""
    requirement = Requirement(len(points), max_error, 1 - confidence_level)
    errors, n_pixels = regions.predicted_errors(predicted), regions.frame.n_pixels
    start = fixed_sequence_start(regions, errors, requirement)
    sequence, further = FixedSequence(regions, start, requirement), Outlook()
    reached = sequence.progress(points)
    if not facts["stacked"]:  # a sequential design needs a confidence
        begin = sequential_start(regions, errors, requirement)
        further = outlook(regions, points, begin, requirement, reached, most=n_pixels)
    guarantee = Guarantee(
        rule=FIXED_SEQUENCE_RULE,
        requirement=requirement,
        tests=reached.tests,
        n_pixels=n_pixels,
        n_points=len(points),
        outlook=further,
    )
    facts |= {
        "confidence_level": confidence_level,
        "n_planned": len(points),
        "n_points": len(points),
        "guarantees": (guarantee,),
    }
    return _certificate(points, [sequence], [reached], facts)


@dataclass(frozen=True, eq=False)
class FixedSequence:
    """Regions of growing size, each tested once, by the points of a random sample that it holds."""

    regions: NestedRegions
    start: int  # the first region to test
    requirement: Requirement

    def progress(self, points: Sample) -> Progress:
        """Test all regions up to the first that fails.

        Every test may spend all of delta, because the first that fails is the last: a broken
        promise needs the first bad region of a fixed order to pass.
        """
        keep, wrong = self.regions.answers(points.row, points.column, points.reference)

        def look_at(region: int) -> Iterator[Look]:
            test = Test.at(self.regions, region)
            test = replace(test, n_looked=int(np.count_nonzero(keep[region])))
            n_wrong = int(np.count_nonzero(keep[region] & wrong[region]))
            number = test.critical_number_in(self.requirement, sequential=False)
            yield Look(test.n_looked, n_wrong, number)

        return progress(self.regions, self.start, look_at)


def _random_points(
    points: Sample, maps: list[xr.DataArray], n_pixels: int, *, assume_random: bool
) -> Sample:
    """Choose the points of a random sample that count, or say why they cannot certify anything."""
    design = None if assume_random else points.design
    points = replace(points, design=design)
    if design is not None:
        if design.map_id not in {map_id(one) for one in maps}:
            raise InputError(
                f"The sample was drawn from another map ({design.map_id}) than this one "
                f"({map_id(maps[0])}), which may have learned from it. {REMEDY}"
            )
        if design.n_pixels < n_pixels:
            raise InputError(
                f"{n_pixels - design.n_pixels} pixels could not be drawn, and are not excluded "
                "now. Exclude the same pixels as for the draw (exclude=, --exclude)."
            )
        looks, last = design.looks, int(points.id[points.labelled].max(initial=0))
        if looks and last not in looks:
            raise InputError(
                f"{last} of {len(points)} points are labelled, but looks at this sample were "
                f"planned after {', '.join(map(str, looks))} labels. Looking at other times until "
                "it works breaks the promise: label on to the next look."
            )
        n_after = int(np.count_nonzero(points.id > last))
        if n_after and not looks:
            _warn(
                f"The last {n_after} of {len(points)} points have no reference: the first {last} "
                "are taken for the sample. This is right if labelling did not end because of what "
                "had been found, and nobody looks a second time; a sequential design may be looked "
                "at at any time."
            )
        points = points.select(points.id <= last)
    n_open = int(np.count_nonzero(~points.labelled))
    if n_open:
        _warn(
            f"{n_open} of {len(points)} points have no reference: they count as errors where they "
            "are kept."
        )
    return points


def _warn(text: str) -> None:
    warnings.warn(text, HsrejectWarning, stacklevel=4)


def _certificate(
    points: Sample,
    sequences: Sequence[SequentialDesign | FixedSequence],
    reached: Sequence[Progress],
    facts: dict[str, Any],
) -> Certificate:
    """Complete the facts of a certificate: what is kept, and what unclear points cost."""
    regions, design = sequences[0].regions, points.design
    frame, unclear = regions.frame, points.reference == CANNOT_TELL
    if unclear.any():
        right = replace(points, reference=np.where(unclear, points.label, points.reference))
        n_if_right = _n_kept_pixels(sequences, [one.progress(right) for one in sequences])
        facts |= {"coverage_if_right": n_if_right / frame.n_pixels}
    if reached[0].last_passed is not None and regions.node is None:
        threshold = reached[0].last_passed.threshold
        facts |= {"lost_classes": _lost_classes(regions, threshold)}
    return Certificate(
        shape=frame.label.shape,
        n_pixels=frame.n_pixels,
        design=points.kind or RANDOM,
        origin="user" if design is None else "draw",
        seed=None if design is None else design.seed,
        n_kept_pixels=_n_kept_pixels(sequences, reached),
        n_cannot_tell=int(np.count_nonzero(unclear)),
        **facts,
    )


def _n_kept_pixels(
    sequences: Sequence[SequentialDesign | FixedSequence], reached: Sequence[Progress]
) -> int:
    """Count the pixels that at least one sequence keeps."""
    if len(sequences) == 1:
        return reached[0].n_certified
    kept_pixels = np.zeros(sequences[0].regions.frame.label.shape, dtype=bool)
    for one, far in zip(sequences, reached, strict=True):
        if far.last_passed is not None:
            kept_pixels |= one.regions.kept_labels(far.last_passed.threshold) != REJECTED
    return int(np.count_nonzero(kept_pixels))


def _lost_classes(regions: NestedRegions, threshold: float) -> tuple[str, ...]:
    """Name the classes that lost more than nine tenths of their pixels."""
    counts = np.bincount(regions.kept_labels(regions.thresholds[-1]).ravel())
    left = np.bincount(regions.kept_labels(threshold).ravel(), minlength=counts.size)
    lost = [int(value) for value in np.flatnonzero(left < 0.1 * counts) if value != REJECTED]
    return tuple(map(schema.class_table(regions.frame.label).completed(lost).name_of, lost))
