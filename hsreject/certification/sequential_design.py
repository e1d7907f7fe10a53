"""Sequential designs: the order in which pixels of a map are looked at until its tests end.

All pixels have one random order, fixed beforehand: the first k pixels of a region in this order are
a simple random sample of it, for every k and every region.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from hsreject.certification.exact_tests import (
    LAST_LOOK,
    Look,
    Progress,
    Requirement,
    least_points,
    progress,
)
from hsreject.certification.sample import EACH, SEQUENTIAL, TOGETHER
from hsreject.errors import InputError
from hsreject.registry import check_choice
from hsreject.splits.draws import random_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from hsreject.certification.frame import Frame, NestedRegions
    from hsreject.certification.sample import Design, Sample

OPEN, WRONG, RIGHT = -1, 0, 127
"""The outcome of a pixel: nobody has looked at it, or the first region in which its answer is
wrong. That of a wrong label is the first of all, and a right label is wrong in none; an answer that
gets finer from region to region may be right in some and wrong from one on."""

_ORDER = 1 << 19  # a stream of random numbers above the labels


@dataclass(frozen=True, eq=False)
class SequentialDesign:
    """Regions of growing size, looked at one after the other until one of them does not pass.

    The state follows from the labels alone: a look with an unlabelled pixel waits for its label,
    whoever made the others, when and in which batches.
    """

    regions: NestedRegions
    start: int  # the first region to look at
    requirement: Requirement
    first_region: NDArray[np.integer]  # the smallest around each pixel, in the random order
    pixels: NDArray[np.int64]  # their flat places on the map

    @cached_property
    def places(self) -> list[NDArray[np.intp]]:
        """The first pixels of each region in the random order, as many as are looked at."""
        n_regions, last = self.regions.sizes.size, self.requirement.looks[-1]
        return [np.flatnonzero(self.first_region <= region)[:last] for region in range(n_regions)]

    def outcome(self, sample: Sample) -> NDArray[np.int8]:
        """Look the outcomes of all pixels up; those without a label are open."""
        wrong = self.regions.answers(sample.row, sample.column, sample.reference)[1]
        first_wrong = np.where(wrong.any(axis=0), wrong.argmax(axis=0), RIGHT)
        outcomes = np.full(self.regions.first_region.shape, OPEN, dtype=np.int8)
        outcomes[sample.row, sample.column] = np.where(sample.labelled, first_wrong, OPEN)
        return outcomes.ravel()[self.pixels]

    def progress(self, sample: Sample) -> Progress:
        """Test as far as the labels of a sample go."""
        return self.progress_at(self.outcome(sample))

    def progress_at(self, outcome: NDArray[np.int8]) -> Progress:
        """Test as far as known outcomes go (OPEN, WRONG to RIGHT)."""
        return progress(self.regions, self.start, partial(self._looks, outcome))

    def counts(
        self, region: int, outcome: NDArray[np.int8]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Count how many of the first 0, 1, 2, ... pixels of a region are open, how many wrong."""
        known = outcome[self.places[region]]
        is_wrong = (known >= WRONG) & (known <= region)
        return np.append(0, np.cumsum(known == OPEN)), np.append(0, np.cumsum(is_wrong))

    def _looks(self, outcome: NDArray[np.int8], region: int) -> Iterator[Look]:
        places = self.places[region]
        n_open, n_wrong = self.counts(region, outcome)
        for n_looked, boundary in self.requirement.boundaries(int(self.regions.sizes[region])):
            first = places[:n_looked] if n_open[n_looked] else places[:0]
            waiting = first[outcome[first] == OPEN]
            yield Look(n_looked, int(n_wrong[n_looked]), boundary, waiting)


def requirement_of(design: Design, n_parts: int) -> Requirement:
    """Divide labels and delta among the parts of a map, or say that there are too few labels."""
    n, delta = design.n_points, 1 - design.confidence_level
    if design.per_class:
        check_choice("per_class", design.per_class, (TOGETHER, EACH))
        delta /= n_parts if design.per_class == TOGETHER else 1
    least = math.ceil(least_points(design.max_error, delta) / LAST_LOOK)
    if design.per_class:
        n = max(-(-2 * n // n_parts), least)
    if n < least:
        raise InputError(
            f"n must be at least {least} to promise max_error={design.max_error:g} with "
            f"confidence_level={design.confidence_level:g} (got {n}): fewer labels prove nothing, "
            "even if all are right."
        )
    return Requirement(n, design.max_error, delta)


def sequential_designs(
    design: Design, frame: Frame, parts: list[NestedRegions]
) -> list[SequentialDesign]:
    """Lay a design out on a map: one sequence, or one for each of its classes and groups."""
    requirement = requirement_of(design, len(parts))
    flat = np.flatnonzero(frame.inside)
    key = random_keys(flat.size, design.seed, _ORDER)
    first_regions = [one.first_region[frame.inside] for one in parts]
    # of each increment between two regions, only a few pixels can be among the first of a region
    first = [
        pixels[np.argsort(key[pixels])[: requirement.looks[-1]]]
        for regions, first_region in zip(parts, first_regions, strict=True)
        for pixels in (np.flatnonzero(first_region == one) for one in range(regions.sizes.size))
    ]
    order = np.unique(np.concatenate(first))
    order = order[np.argsort(key[order], kind="stable")]
    return [
        SequentialDesign(regions, start, requirement, first_region[order], flat[order])
        for regions, start, first_region in zip(parts, design.starts, first_regions, strict=True)
    ]


def designs_of(sample: Sample, frame: Frame) -> tuple[Design, list[SequentialDesign]]:
    """Lay the design of a sample out on its map, or say why the sample is not of such a design."""
    design = sample.design
    if design is None or design.kind != SEQUENTIAL:
        raise InputError(
            "The sample is not of a sequential design: it has all points that were planned. Draw "
            "one with design='sequential' ('hsreject sample --for-promise')."
        )
    if design.ranking_id != frame.ranking_id:
        raise InputError(
            f"The sample was drawn from another map ({design.ranking_id}, {design.n_pixels} "
            f"pixels) than this one ({frame.ranking_id}, {frame.n_pixels} pixels). Exclude the "
            "same pixels as then (exclude=, --exclude); of other labels or confidences, draw a new "
            "sample."
        )
    designs = sequential_designs(design, frame, frame.parts(design.per_class))
    places = np.ravel_multi_index((sample.row, sample.column), frame.label.shape)
    n_strange = int(np.count_nonzero(~np.isin(places, designs[0].pixels)))
    if n_strange:
        raise InputError(
            f"{n_strange} of the {len(sample)} points are not those that this design drew: they "
            "were added, or moved. Take the places from the file that was drawn."
        )
    return design, designs
