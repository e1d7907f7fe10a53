"""Regions of a map, connected pixels of one value, found in runs: a map of any size fits.

A *run* is a stretch of equal values in a row. The runs of a row cover it, so that a run is its
first column alone and ends where the next one begins. Rows are read some hundred at a time; what
is kept grows with the runs, not with the pixels, and no seam between blocks can be seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.certification.frame import NODATA
from hsreject.compilation import compiled
from hsreject.errors import InputError
from hsreject.io.grid import PixelGrid
from hsreject.progress import ProgressCallback, no_progress
from hsreject.schema import REJECTED, X, Y, as_map, check_label_type, check_same_grid
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROWS = 512  # of a map, read at once
STRIPS = (1, ROWS, -1)  # chunks in which a map of any size is opened


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of a label map: 4-connected pixels of one value, numbered in reading order."""

    width: int
    row_start: NDArray[np.int64]  # first run of each row, and the number of runs
    column: NDArray[np.int32]  # of the first pixel of each run
    region: NDArray[np.int32]  # of each run
    value: NDArray[np.uint16]  # of each region: a class, 0 where rejected, `NODATA`
    area: NDArray[np.float64]  # of each region, in hectares, or in pixels without a place
    in_hectares: bool
    confidence_sum: NDArray[np.float64]  # of each region, over the pixels that have one
    n_confidences: NDArray[np.float64]  # how many these are
    least_confidence: NDArray[np.float64]  # NaN where no pixel has one

    @classmethod
    def of(
        cls,
        label: xr.DataArray | NDArray[Any],
        confidence: xr.DataArray | NDArray[Any] | None = None,
        *,
        progress: ProgressCallback = no_progress,
    ) -> Regions:
        """Return the regions of a map, which may be lazy, with the confidences in them."""
        on_map = as_map(label, name="label")
        check_label_type(on_map.dtype, name="label")
        confidences = None if confidence is None else as_map(confidence, name="confidence")
        if confidences is not None:
            check_same_grid(on_map, confidences, names=("label", "confidence"))
        hectares = PixelGrid.of(on_map).pixel_areas()
        pixel_area = np.ones((1, 1)) if hectares is None else hectares
        missing, n_rows, strips = schema.nodata_values(on_map), on_map.sizes[Y], []
        for start in range(0, n_rows, ROWS):
            rows = {Y: slice(start, start + ROWS)}
            values = np.asarray(on_map.isel(rows).values)
            labels = schema.canonical_labels(values, nodata=missing, dtype=np.uint16)
            confidence_rows = None if confidences is None else confidences.isel(rows).values
            areas = pixel_area if len(pixel_area) == 1 else pixel_area[rows[Y]]
            strips.append(_runs(labels, confidence_rows, areas))
            progress("regions", min(start + ROWS, n_rows), n_rows)
        runs = {name: np.concatenate([strip.pop(name) for strip in strips]) for name in _OF_RUNS}
        row_start = np.concatenate([[0], np.cumsum(runs["n_runs"])])
        if row_start[-1] > np.iinfo(np.int32).max:
            raise InputError(
                f"The map has {row_start[-1]:,} runs of equal labels, more than can be numbered. "
                "Cut it into parts."
            )
        region = np.arange(row_start[-1], dtype=np.int32)
        _connect(row_start, runs["column"], runs["value"], on_map.sizes[X], region)
        n_regions = _number(region)
        value = np.zeros(n_regions, dtype=np.uint16)
        value[region] = runs["value"]
        least = np.full(n_regions, np.inf)
        np.minimum.at(least, region, runs["least"])
        return cls(
            width=on_map.sizes[X],
            row_start=row_start,
            column=runs["column"],
            region=region,
            value=value,
            area=sums(region, runs["area"], n_regions),
            in_hectares=hectares is not None,
            confidence_sum=sums(region, runs["total"], n_regions),
            n_confidences=sums(region, runs["count"], n_regions),
            least_confidence=np.where(np.isinf(least), np.nan, least),
        )

    def __len__(self) -> int:
        return self.value.size

    @property
    def n_rows(self) -> int:
        """Rows of the map."""
        return self.row_start.size - 1

    @cached_property
    def n_pixels(self) -> NDArray[np.int64]:
        """How many pixels each region has."""
        return sums(self.region, self.run_lengths(slice(None)), len(self)).astype(np.int64)

    def classes(self, attrs: Mapping[Any, Any]) -> ClassTable:
        """Return the class table in the attributes of the map, with a name for every class here."""
        table = ClassTable.from_attrs(attrs) or ClassTable.plain([])
        there = np.setdiff1d(self.value, [REJECTED, NODATA])
        return table.completed(there.tolist())

    def run_lengths(self, runs: slice) -> NDArray[np.int64]:
        """Return how many pixels some runs have, from the beginning of a row to the end of one."""
        column = self.column[runs].astype(np.int64)
        # every row begins with a run at column 0, so a following 0 says that the row has ended
        following = np.append(column[1:], 0)
        return np.where(following > 0, following, self.width) - column

    def painted(self, values: NDArray[Any], rows: slice) -> NDArray[Any]:
        """Return some rows of the map in which every region has the value given for it."""
        first, last = self.row_start[rows.start], self.row_start[rows.stop]
        runs = slice(first, last)
        flat = np.repeat(values[self.region[runs]], self.run_lengths(runs))
        return flat.reshape(rows.stop - rows.start, self.width)

    def footprint(self, number: int) -> tuple[tuple[slice, slice], NDArray[np.bool_]]:
        """Return the box around a region, and which pixels of the box belong to it."""
        runs = np.flatnonzero(self.region == number)
        row = np.searchsorted(self.row_start, runs, side="right") - 1
        first, last = self.column[runs], np.append(self.column, 0)[runs + 1]
        last = np.where(runs + 1 < self.row_start[row + 1], last, self.width)
        box = slice(int(row[0]), int(row[-1]) + 1), slice(int(first.min()), int(last.max()))
        # +1 where a run begins and -1 after its end: sums along a row are 1 inside. The column
        # beyond the box takes the ends of runs that reach its edge.
        steps = np.zeros((box[0].stop - box[0].start, box[1].stop - box[1].start + 1), np.int8)
        steps[row - row[0], first - box[1].start] += 1
        steps[row - row[0], last - box[1].start] -= 1
        return box, steps[:, :-1].cumsum(axis=1, dtype=np.int8).astype(bool)

    def borders(self, small: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return pairs of regions (n, 2), lower number first, that share a border.

        Only pairs of which at least one region is `small`; regions without data have no borders.
        """
        arguments = (self.row_start, self.column, self.region, self.width)
        ignored = self.value == NODATA
        # the first call counts, the second writes: exact room costs a pass, a guess costs memory
        nothing = np.empty((0, 2), dtype=np.int32)
        pairs = np.empty((_borders(*arguments, small, ignored, nothing), 2), dtype=np.int32)
        _borders(*arguments, small, ignored, pairs)
        # a pair as one number: sorting numbers is many times faster than sorting rows
        keys = np.unique(pairs[:, 0].astype(np.int64) * len(self) + pairs[:, 1])
        return np.stack(np.divmod(keys, max(len(self), 1)), axis=1).astype(np.int32)


def sums(group: NDArray[Any], values: NDArray[Any], n_groups: int) -> NDArray[np.float64]:
    """Return the sum of the values of each group."""
    return np.asarray(np.bincount(group, values, n_groups), dtype=np.float64)


_OF_RUNS = ("n_runs", "column", "value", "area", "total", "count", "least")


def _runs(
    labels: NDArray[np.uint16], confidences: NDArray[Any] | None, pixel_area: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """Return the runs of some rows: how many each row has, and what is known of each.

    Of the finite confidences of a run there are sum, number and least one, inf without any.
    """
    begins = np.ones(labels.shape, dtype=bool)
    begins[:, 1:] = labels[:, 1:] != labels[:, :-1]
    first = np.flatnonzero(begins)
    length = np.diff(first, append=labels.size)
    row, column = np.divmod(first, labels.shape[1])
    if pixel_area.shape[1] == 1:
        area = length * np.broadcast_to(pixel_area[:, 0], labels.shape[:1])[row]
    else:
        area = np.add.reduceat(pixel_area.ravel(), first)
    total = np.zeros(first.size, dtype=np.float32)
    count, least = np.zeros(first.size, dtype=np.int32), np.full(first.size, np.inf, np.float32)
    if confidences is not None:
        there = np.isfinite(confidences).ravel()
        numbers = np.where(there, confidences.ravel(), 0)
        total = np.add.reduceat(numbers, first, dtype=np.float64).astype(np.float32)
        count = np.add.reduceat(there, first, dtype=np.int32)
        least = np.minimum.reduceat(np.where(there, numbers, np.inf), first).astype(np.float32)
    columns = (begins.sum(axis=1), column.astype(np.int32), labels.ravel()[first], area)
    return dict(zip(_OF_RUNS, (*columns, total, count, least), strict=True))


@compiled
def _connect(
    row_start: NDArray[Any],
    column: NDArray[Any],
    value: NDArray[Any],
    width: int,
    parent: NDArray[Any],
) -> None:
    """Join runs of equal value that overlap in adjacent rows; `parent` becomes a forest.

    The root of a tree is its first run in reading order. Both rows are walked once, side by side.
    """
    for row in range(1, row_start.size - 1):
        above, here = row_start[row - 1], row_start[row]
        while above < row_start[row] and here < row_start[row + 1]:
            if value[above] == value[here]:
                first, second = above, here
                while parent[first] != first:  # halve the path on the way up
                    parent[first] = parent[parent[first]]
                    first = parent[first]
                while parent[second] != second:
                    parent[second] = parent[parent[second]]
                    second = parent[second]
                # The lower root wins. So a parent always comes before its children, on which
                # `_number` relies, and regions are numbered in reading order.
                if first < second:
                    parent[second] = first
                else:
                    parent[first] = second
            end_above = column[above + 1] if above + 1 < row_start[row] else width
            end_here = column[here + 1] if here + 1 < row_start[row + 1] else width
            # the run that ends first touches nothing further on; at a common end both are done
            above += end_above <= end_here
            here += end_here <= end_above


@compiled
def _number(parent: NDArray[Any]) -> int:
    """Replace the forest by numbers of its trees, in the order of their roots; count them."""
    n_trees = 0
    for run in range(parent.size):  # a parent comes before its children and has its number already
        if parent[run] == run:
            parent[run] = n_trees
            n_trees += 1
        else:
            parent[run] = parent[parent[run]]
    return n_trees


@compiled
def _borders(
    row_start: NDArray[Any],
    column: NDArray[Any],
    region: NDArray[Any],
    width: int,
    small: NDArray[Any],
    ignored: NDArray[Any],
    pairs: NDArray[Any],
) -> int:
    """Count pairs of regions side by side or one above the other; write them if there is room."""
    n_pairs = 0
    for row in range(row_start.size - 1):
        above = row_start[row - 1] if row else row_start[0]
        # neighbours within the row first, then both rows side by side, as in `_connect`
        here, end = row_start[row], row_start[row + 1]
        for run in range(here, end - 1):
            a, b = region[run], region[run + 1]
            if (small[a] or small[b]) and not (ignored[a] or ignored[b]):
                if pairs.shape[0]:
                    pairs[n_pairs, 0], pairs[n_pairs, 1] = min(a, b), max(a, b)
                n_pairs += 1
        while above < row_start[row] and here < end:
            a, b = region[above], region[here]
            if a != b and (small[a] or small[b]) and not (ignored[a] or ignored[b]):
                if pairs.shape[0]:
                    pairs[n_pairs, 0], pairs[n_pairs, 1] = min(a, b), max(a, b)
                n_pairs += 1
            end_above = column[above + 1] if above + 1 < row_start[row] else width
            end_here = column[here + 1] if here + 1 < end else width
            above += end_above <= end_here
            here += end_here <= end_above
    return n_pairs
