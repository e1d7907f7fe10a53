"""The frame of a sample: the pixels of a map that may be drawn, and what thresholds keep."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.rejection.ranking import ANSWER_PROBABILITY, LABEL_PROBABILITY, Ranking
from hsreject.schema import CATEGORY, LEVEL, REJECTED, nodata_label
from hsreject.schema.class_tree import GROUPS_ATTRIBUTE, ClassTree, rows_of
from hsreject.schema.classes import ClassTable
from hsreject.schema.label_maps import map_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

NODATA = nodata_label(np.uint16)
COVERAGES = np.arange(2, 101, 2) / 100
"""The sequence that is tested. Every step can end it: with steps of 1 % a little less is certified
on average, with steps of 5 % hardly more."""
CLASS_COVERAGES = np.arange(1, 21) / 20
"""The regions of a class, as shares of its pixels."""


@dataclass(frozen=True, eq=False)
class Frame:
    """A label map, the pixels of it that may be drawn and, if they are ranked, its ranking."""

    label: xr.DataArray  # of :func:`labels_of`
    inside: NDArray[np.bool_]  # has data and is not excluded
    ranking: Ranking | None = None

    @classmethod
    def of(
        cls,
        label: xr.DataArray | NDArray[Any],
        confidence: xr.DataArray | NDArray[Any] | None = None,
        exclude: xr.DataArray | NDArray[Any] | None = None,
    ) -> Frame:
        """Check what was given and make the frame of it."""
        on_map = labels_of(label)
        inside = on_map.values != NODATA
        if exclude is not None:
            inside &= ~excluded_pixels(exclude, on_map)
        if confidence is None:
            return cls(on_map, inside)
        ranking = ranking_of(confidence, on_map)
        return cls(on_map, inside, ranking if ranking.confidence.chunks is None else ranking.load())

    @cached_property
    def n_pixels(self) -> int:
        """Pixels that may be drawn."""
        return int(np.count_nonzero(self.inside))

    @cached_property
    def map_id(self) -> str:
        """Identifies labels and confidences."""
        return map_id(self.label) if self.ranking is None else self.ranking.id

    @cached_property
    def ranking_id(self) -> str:
        """Identifies labels, confidences and exclusions, so that a changed map is noticed."""
        if np.array_equal(self.inside, self.label.values != NODATA):
            return self.map_id
        masked = np.where(self.inside, self.label.values, np.uint16(NODATA))
        confidence = None if self.ranking is None else self.ranking.confidence
        return map_id(self.label.copy(data=masked), confidence)

    @property
    def tree(self) -> ClassTree | None:
        """The groups of classes, where the map may answer with them."""
        return None if self.ranking is None else self.ranking.tree

    @cached_property
    def levels(self) -> NDArray[np.floating[Any]]:
        """The confidences (level, y, x)."""
        assert self.ranking is not None  # noqa: S101 (where pixels are ranked)
        return np.asarray(self.ranking.confidence.values.reshape(-1, *self.label.shape))

    @cached_property
    def nodes(self) -> ClassTable:
        """The classes that the map gives to pixels, and the groups over them."""
        values = sorted(set(np.unique(self.label.values[self.inside]).tolist()) - {REJECTED})
        if self.tree is None:
            return schema.class_table(self.label).completed(values).subset(values)
        table, below = self.tree.table, partial(node_of, tree=self.tree)
        return table.subset(node for node in table.values if set(values) & set(below(node)[1]))

    def parts(self, per_class: str) -> list[NestedRegions]:
        """Rank the pixels of the map as one or, if `per_class` says so, of each class and group."""
        return [self.regions(node) for node in (self.nodes.values if per_class else (None,))]

    def regions(self, node: int | None = None) -> NestedRegions:
        """Rank the pixels of the map, or of a class or group, by falling thresholds.

        Where pixels are rejected already, the largest coverage keeps the others.
        """
        label, level, below = self.label.values, -1, None
        members = self.inside & (label != REJECTED)
        if node is not None:
            level, below = node_of(node, self.tree)
            members = self.inside & np.isin(label, below)
        confidence = self.levels[level][members]
        if not confidence.size:
            raise InputError("label keeps no pixel: it is 0 (rejected) wherever there is data.")
        n_all = self.n_pixels if node is None else confidence.size
        shares = COVERAGES if node is None else CLASS_COVERAGES
        # A threshold is the confidence at a rank. Equal confidences fall together, so regions may
        # be larger than asked for, and two coverages may share one.
        rank = np.clip(np.ceil(shares * n_all - 1e-9).astype(np.int64), 1, confidence.size)
        descending = np.unique(np.sort(confidence)[confidence.size - rank])[::-1]
        thresholds = descending.astype(np.float64)
        # the first threshold that is not above a confidence is that of its region
        first_region = np.full(label.shape, thresholds.size, dtype=np.int8)  # there are at most 50
        first_region[members] = np.searchsorted(-thresholds, -confidence.astype(np.float64))
        sizes = np.cumsum(np.bincount(first_region[members]))
        return NestedRegions(self, thresholds, sizes, n_all, first_region, node, level, below)


@dataclass(frozen=True, eq=False)
class NestedRegions:
    """What falling thresholds keep of a map, or of one of its classes or groups.

    A pixel of the map is kept where its coarsest answer reaches the threshold, and answered with
    the finest that does; one of a class or group where that answer itself reaches the threshold.
    """

    frame: Frame
    thresholds: NDArray[np.float64]  # the smallest confidence of each region, descending
    sizes: NDArray[np.int64]  # pixels of each region
    n_all: int  # pixels that coverages are shares of
    first_region: NDArray[np.int8]  # the first region around each pixel; their number where none is
    node: int | None = None  # code of the class or group
    level: int = -1  # of the confidences that rank its pixels
    below: list[int] | None = None  # the classes of a class or group

    def kept_labels(self, threshold: float) -> NDArray[np.integer]:
        """Keep the labels (y, x) that reach a threshold, 0 elsewhere."""
        keep = self.first_region <= np.searchsorted(-self.thresholds, -threshold)
        return np.where(keep, self.frame.label.values, REJECTED)

    def answers(
        self, row: NDArray[np.int64], column: NDArray[np.int64], reference: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tell which points are kept, and the answers of which are wrong (region, point)."""
        keep = self.first_region[row, column] <= np.arange(self.sizes.size)[:, None]
        label, tree = self.frame.label.values[row, column], self.frame.tree
        if self.below is not None:
            return keep, np.broadcast_to(~np.isin(reference, self.below), keep.shape)
        if tree is None:
            return keep, np.broadcast_to(label != reference, keep.shape)
        # Answers get finer as the threshold falls, and a finer answer of the same path is right
        # only if all coarser ones are. So it is enough to know how many of the finest are wrong:
        # the answer is wrong from the threshold on at which the first of them is given.
        over = np.append(tree.over, np.full((tree.n_levels, 1), -1), axis=1)
        code = np.append(tree.table.values, REJECTED)[over[:, rows_of(tree.classes, label)]]
        n_wrong = (~tree.holds(code, reference)).sum(axis=0)  # the finest answers, if any
        limits = np.full((tree.n_levels + 1, label.size), np.inf)
        limits[0] = -np.inf
        limits[1:-1] = self.frame.levels[:-1, row, column]
        return keep, self.thresholds[:, None] <= limits[n_wrong, np.arange(label.size)]

    def predicted_errors(
        self, predicted: xr.DataArray | NDArray[Any] | None
    ) -> NDArray[np.float64] | None:
        """Predict the share of wrong pixels of each region, if only by a probability."""
        levels, members = self.frame.levels, self.first_region < self.sizes.size
        stated = self.frame.ranking.meaning if self.frame.ranking else ""
        if predicted is not None:
            error = schema.as_map(predicted, name="predicted")
            schema.check_same_grid(self.frame.label, error, names=("label", "predicted"))
            values = error.values[members].astype(np.float64)
            if not ((values >= 0) & (values <= 1)).all():
                raise InputError(
                    "predicted must hold the chance of each label to be wrong, from 0 to 1, "
                    "wherever the map has one."
                )
        elif stated == ANSWER_PROBABILITY and self.node is None:
            # the finest answers that reach a threshold
            kept = ((t, levels[:, members & (levels[-1] >= t)]) for t in self.thresholds)
            answers = (np.min(p, axis=0, where=p >= t, initial=1.0) for t, p in kept)
            return np.array([1 - one.mean(dtype=np.float64) for one in answers])
        elif stated in {LABEL_PROBABILITY, ANSWER_PROBABILITY}:
            values = 1 - levels[self.level][members].astype(np.float64)
        else:
            return None
        return np.asarray(np.cumsum(np.bincount(self.first_region[members], values)) / self.sizes)


@dataclass(frozen=True, eq=False)
class StackedMaps(NestedRegions):
    """Maps with rejection by their coverage, as regions; thresholds are their positions."""

    maps: tuple[NDArray[np.integer], ...] = ()

    @classmethod
    def of(cls, maps: list[xr.DataArray], frame: Frame) -> StackedMaps:
        """Order the maps that keep something."""
        values = tuple(one.values for one in maps)
        if any(((one == NODATA) != (values[0] == NODATA)).any() for one in values):
            raise InputError("The maps of a stack must have data in the same pixels.")
        sizes = np.array([np.count_nonzero(frame.inside & (one != REJECTED)) for one in values])
        order = np.argsort(sizes, kind="stable")[np.count_nonzero(sizes == 0) :]
        if not order.size:
            raise InputError("No map of the stack keeps a pixel.")
        nowhere = np.full(frame.label.shape, -1, dtype=np.int8)
        return cls(frame, order.astype(float), sizes[order], frame.n_pixels, nowhere, maps=values)

    def kept_labels(self, threshold: float) -> NDArray[np.integer]:
        """Keep the labels (y, x) of one map of the stack, 0 elsewhere."""
        return np.where(self.frame.inside, self.maps[int(threshold)], REJECTED)

    def answers(
        self, row: NDArray[np.int64], column: NDArray[np.int64], reference: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Tell which points are kept, and the labels of which are wrong (map, point)."""
        labels = np.array([self.maps[int(place)][row, column] for place in self.thresholds])
        return labels != REJECTED, labels != reference

    def predicted_errors(self, predicted: object) -> None:
        """Predict nothing: maps of a stack are not ranked by a confidence."""


def node_of(code: int, tree: ClassTree | None) -> tuple[int, list[int]]:
    """Find the level of a class or group and the classes below it; a class is below itself."""
    if tree is None:
        return 0, [code]
    row = tree.table.values.index(code)
    return int(tree.levels[row]), np.array(tree.classes.values)[tree.below[row]].tolist()


def ranking_of(confidence: Any, on_map: xr.DataArray) -> Ranking:
    """Rank a map by its confidences; those of levels in a file are bands."""
    if CATEGORY in getattr(confidence, "dims", ()) and GROUPS_ATTRIBUTE in on_map.attrs:
        plain = confidence.drop_vars((CATEGORY, schema.CLASS_NAME), errors="ignore").drop_attrs()
        confidence = plain.rename({CATEGORY: LEVEL}).assign_attrs(ClassTree.of(on_map).to_attrs())
    return Ranking(on_map, confidence)


def labels_of(label: xr.DataArray | NDArray[Any], *, name: str = "label") -> xr.DataArray:
    """Return a label map (y, x) in memory as uint16: 0 is rejected, 65535 (`NODATA`) no data."""
    remedy = f"Fill them with {nodata_label(np.uint8)} (no data)."
    schema.check_no_mask(label, name=name, remedy=remedy)
    on_grid = schema.as_map(label, name=name)
    schema.check_label_type(on_grid.dtype, name=name)
    missing = schema.nodata_values(on_grid)
    labels = schema.canonical_labels(on_grid.values, nodata=missing, dtype=np.uint16, name=name)
    values = set(np.unique(labels).tolist()) - {NODATA}
    if not values:
        raise InputError(f"{name} has no pixel with data.")
    classes = ClassTable.from_attrs(on_grid.attrs) or ClassTable.plain(sorted(values - {REJECTED}))
    return on_grid.copy(data=labels).assign_attrs({"_FillValue": NODATA, **classes.to_attrs()})


def excluded_pixels(
    exclude: xr.DataArray | NDArray[Any], on_map: xr.DataArray
) -> NDArray[np.bool_]:
    """Return which pixels of a map (y, x) are excluded: those where `exclude` is not 0."""
    if np.asarray(exclude).dtype.kind == "b":
        exclude = exclude.astype(np.uint8)
    places = schema.as_label_map(exclude, name="exclude")
    schema.check_same_grid(on_map, places, names=("the map", "exclude"))
    return np.asarray(places.values != 0)
