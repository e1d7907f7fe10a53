"""The frame of a sample: the pixels of a map that may be drawn, and what thresholds keep."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.class_tree import GROUPS_ATTRIBUTE, ClassTree, rows_of
from hsreject.classes import ClassTable
from hsreject.errors import InputError
from hsreject.registry import check_number
from hsreject.rejection.hierarchical import ANSWER_PROBABILITY, tree_of
from hsreject.rejection.rejector import LABEL_PROBABILITY
from hsreject.schema import (
    CATEGORY,
    CLASS_NAME,
    LARGEST_LABEL,
    LEVEL,
    LEVEL_CONFIDENCE,
    LEVEL_DIMS,
    REJECTED,
    Y,
    as_label_map,
    as_map,
    check_dims,
    check_label_type,
    check_no_mask,
    check_same_grid,
    class_table,
    fill_value,
    nodata_label,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

NODATA = nodata_label(np.uint16)
COVERAGES = tuple(percent / 100 for percent in range(2, 101, 2))
"""The sequence that is tested unless another one is given. Every step can end it: with steps of 1 %
a little less is certified on average, with steps of 5 % hardly more."""
CLASS_COVERAGES = tuple(step / 20 for step in range(1, 21))
"""The regions of a class, as shares of its pixels."""

_ROWS = 512  # of a map, read at once


@dataclass(frozen=True, eq=False)
class Frame:
    """A label map, the pixels of it that may be drawn and, for a ranking, its confidences.

    A map that may answer coarser has a confidence per level of its class tree, the coarsest last.
    """

    label: xr.DataArray  # of :func:`labels_of`
    inside: NDArray[np.bool_]  # has data and is not excluded
    confidence: xr.DataArray | None = None  # (y, x) or (level, y, x)
    tree: ClassTree | None = None

    @classmethod
    def of(
        cls,
        label: xr.DataArray | NDArray[Any],
        confidence: xr.DataArray | NDArray[Any] | None = None,
        exclude: xr.DataArray | NDArray[Any] | None = None,
    ) -> Frame:
        """Return the frame of what a caller gave, checked."""
        on_map = labels_of(label)
        inside = on_map.values != NODATA
        if exclude is not None:
            inside &= ~excluded_pixels(exclude, on_map)
        if confidence is None:
            return cls(on_map, inside)
        confidences, tree = ranking_of(confidence, on_map)
        labelled = (on_map.values != NODATA) & (on_map.values != REJECTED)
        missing = int(np.count_nonzero(labelled & ~np.isfinite(confidences.values)))
        if missing:
            raise InputError(
                f"confidence is NaN or infinite in {missing} pixels that have a label. Give these "
                "pixels the label of no data, or a confidence."
            )
        return cls(on_map, inside, confidences, tree)

    @cached_property
    def n_pixels(self) -> int:
        """Pixels that may be drawn."""
        return int(np.count_nonzero(self.inside))

    @cached_property
    def ranking_id(self) -> str:
        """Identifies labels, confidences and exclusions, so that a changed map is noticed."""
        masked = np.where(self.inside, self.label.values, np.uint16(NODATA))
        return map_id(self.label.copy(data=masked), self.confidence)

    @cached_property
    def levels(self) -> NDArray[np.floating[Any]]:
        """The confidences (level, y, x), or an error where there are none."""
        if self.confidence is None:
            raise InputError("Give the confidence of the labels: it ranks the pixels of the map.")
        return np.asarray(self.confidence.values.reshape(-1, *self.label.shape))

    @cached_property
    def nodes(self) -> ClassTable:
        """The classes that the map gives to pixels, and the groups over them."""
        values = set(np.unique(self.label.values[self.inside]).tolist()) - {REJECTED}
        if self.tree is None:
            return class_table(self.label).completed(sorted(values)).subset(sorted(values))
        table = self.tree.table
        return table.subset(
            node for node in table.values if values & set(node_of(node, self.tree)[1])
        )

    def regions(self, coverages: Sequence[float] = COVERAGES, node: int | None = None) -> Regions:
        """Return what thresholds of some coverages keep of the map, or of a class or group.

        That of a coverage keeps the pixel at its rank and all of the same confidence. Where pixels
        are rejected already, the largest coverage keeps the others. Coverages of a class are shares
        of its own pixels.
        """
        shares = np.array(sorted(coverages), dtype=np.float64)
        if not shares.size or not (shares[0] > 0 and shares[-1] <= 1):
            raise InputError(
                "coverages must be shares above 0 and at most 1, such as 0.1, 0.2, 0.3."
            )
        level, below = (-1, None) if node is None else node_of(node, self.tree)
        members = self.inside & _is_among(self.label.values, below)
        ascending = np.sort(self.levels[level][members])
        if not ascending.size:
            raise InputError("label keeps no pixel: it is 0 (rejected) wherever there is data.")
        n_all = self.n_pixels if node is None else ascending.size
        # A threshold is the confidence at a rank. Equal confidences fall together, so regions may
        # be larger than asked for, and two coverages may share one.
        rank = np.clip(np.ceil(shares * n_all - 1e-9).astype(np.int64), 1, ascending.size)
        thresholds = np.unique(ascending[ascending.size - rank])[::-1]
        sizes = ascending.size - np.searchsorted(ascending, thresholds)
        return Regions(self, node, level, below, thresholds.astype(np.float64), sizes, n_all)


@dataclass(frozen=True, eq=False)
class Regions:
    """What falling thresholds keep of a map, or of one of its classes or groups.

    Of the whole map, a pixel is kept where its coarsest answer reaches the threshold, and answered
    with the finest that does. Of a class or group, a pixel is kept where that answer itself reaches
    the threshold.
    """

    frame: Frame
    node: int | None  # code of the class or group
    level: int  # of the confidences that rank its pixels
    below: list[int] | None  # the classes of a class or group
    thresholds: NDArray[np.float64]  # the smallest confidence of each region, descending
    sizes: NDArray[np.int64]  # pixels of each region
    n_all: int  # pixels that coverages are shares of

    def members(self, label: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return which labels belong to pixels that may be kept."""
        return _is_among(label, self.below)

    def depth(self, at: Any) -> NDArray[np.intp]:
        """Return the first region around pixels of the map; the number of regions where none is."""
        # thresholds descend: the first that is not above a confidence is that of its region
        confidence = self.frame.levels[self.level][at].astype(np.float64)
        depth = np.searchsorted(-self.thresholds, -confidence, side="left")
        return np.where(self.members(self.frame.label.values[at]), depth, self.thresholds.size)

    def answers(
        self, row: NDArray[np.int64], column: NDArray[np.int64], reference: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which points are kept, and the answers of which are wrong (region, point).

        That of a label is wrong at all regions or none. Coarser answers are right down to some
        threshold, below which they are too fine.
        """
        keep = self.depth((row, column)) <= np.arange(self.sizes.size)[:, None]
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
        """Return the share of wrong pixels predicted for each region, or None without a prediction.

        Without a prediction, a confidence that is a probability of the answer gives it.
        """
        frame = self.frame
        members = frame.inside & self.members(frame.label.values)
        confidence = frame.levels[self.level][members]
        stated = "" if frame.confidence is None else frame.confidence.attrs.get("long_name")
        if predicted is not None:
            error = as_map(predicted, name="predicted")
            check_same_grid(frame.label, error, names=("label", "predicted"))
            values = error.values[members].astype(np.float64)
            if not ((values >= 0) & (values <= 1)).all():
                raise InputError(
                    "predicted must hold the chance of each label to be wrong, from 0 to 1, "
                    "wherever the map has one."
                )
        elif stated == ANSWER_PROBABILITY and self.node is None:
            return np.array([self._predicted_at(members, limit) for limit in self.thresholds])
        elif stated in {LABEL_PROBABILITY, ANSWER_PROBABILITY}:
            values = 1 - confidence.astype(np.float64)
        else:
            return None
        # regions are the first pixels by confidence: running sums give the mean error of
        # each
        order = np.argsort(-confidence, kind="stable")
        return np.asarray(np.cumsum(values[order])[self.sizes - 1] / self.sizes)

    def _predicted_at(self, members: NDArray[np.bool_], threshold: float) -> float:
        """Return 1 - the mean probability of the finest answers that reach a threshold."""
        reaching = self.frame.levels[:, members & (self.frame.levels[-1] >= threshold)]
        answer = np.min(reaching, axis=0, where=reaching >= threshold, initial=1.0)
        return 1 - float(answer.mean(dtype=np.float64))


def _is_among(label: NDArray[np.integer], classes: list[int] | None) -> NDArray[np.bool_]:
    """Return which labels are among some classes, or not rejected."""
    return np.asarray(label != REJECTED) if classes is None else np.isin(label, classes)


def node_of(code: int, tree: ClassTree | None) -> tuple[int, list[int]]:
    """Return the level of a class or group and the classes below it; a class is below itself."""
    if tree is None:
        return 0, [code]
    row = tree.table.values.index(code)
    return int(tree.levels[row]), np.array(tree.classes.values)[tree.below[row]].tolist()


def ranking_of(
    confidence: xr.DataArray | NDArray[Any], on_map: xr.DataArray
) -> tuple[xr.DataArray, ClassTree | None]:
    """Return checked confidences of a map, and the class tree if they are of its levels.

    In a file levels are bands, and the labels keep the groups.
    """
    tree, dims = None, getattr(confidence, "dims", ())
    if isinstance(confidence, xr.DataArray) and (
        LEVEL in dims or (CATEGORY in dims and GROUPS_ATTRIBUTE in on_map.attrs)
    ):
        numbers = confidence
        if LEVEL not in dims:
            plain = confidence.drop_vars((CATEGORY, CLASS_NAME), errors="ignore").drop_attrs()
            numbers = plain.rename({CATEGORY: LEVEL}).assign_attrs(tree_of(on_map).to_attrs())
        numbers = check_dims(numbers, LEVEL_DIMS, name=LEVEL_CONFIDENCE)
        tree = tree_of(numbers)
        if tree.n_levels != numbers.sizes[LEVEL]:
            raise InputError(
                f"{LEVEL_CONFIDENCE} has {numbers.sizes[LEVEL]} levels, and the class tree that it "
                f"carries has {tree.n_levels}. Pass that of HierarchicalRejector.rank."
            )
    else:
        numbers = as_map(confidence, name="confidence")
    check_same_grid(on_map, numbers, names=("label", "confidence"))
    if numbers.dtype.kind not in "iuf":
        raise InputError(f"confidence must hold numbers (got {numbers.dtype}).")
    if numbers.dtype not in {np.dtype(np.float32), np.dtype(np.float64)}:
        numbers = numbers.astype(np.float64)
    return numbers, tree


def check_share(name: str, share: float) -> float:
    """Return a share above 0 and below 1, or say what is wrong with it."""
    if check_number(name, share, above=0) >= 1:
        raise InputError(
            f"{name} is a share, above 0 and below 1 (got {share:g}). Write 5 % as 0.05."
        )
    return float(share)


def percent(share: float, digits: int | None = None) -> str:
    """Return a share as text, such as 5 %."""
    return f"{100 * share:g} %" if digits is None else f"{100 * share:.{digits}f} %"


def labels_of(label: xr.DataArray | NDArray[Any], *, name: str = "label") -> xr.DataArray:
    """Return a label map (y, x) in memory as uint16: 0 is rejected, 65535 (`NODATA`) no data."""
    check_no_mask(label, name=name, remedy=f"Fill them with {nodata_label(np.uint8)} (no data).")
    on_grid = as_map(label, name=name)
    check_label_type(on_grid.dtype, name=name)
    canonical = on_grid.copy(data=canonical_labels(on_grid.values, fill_value(on_grid), name))
    values = set(np.unique(canonical.values).tolist()) - {NODATA}
    if not values:
        raise InputError(f"{name} has no pixel with data.")
    classes = ClassTable.from_attrs(on_grid.attrs) or ClassTable.plain(sorted(values - {REJECTED}))
    return canonical.assign_attrs({"_FillValue": NODATA, **classes.to_attrs()})


def canonical_labels(values: NDArray[Any], fill: Any, name: str) -> NDArray[np.uint16]:
    """Return labels as uint16, `NODATA` where they are `fill` or the last value of their type."""
    without_data = values == nodata_label(values.dtype)
    if fill is not None:
        without_data |= values == fill
    labels = np.where(without_data, values.dtype.type(0), values)
    if labels.size and not 0 <= labels.min() <= labels.max() <= LARGEST_LABEL:
        raise InputError(
            f"{name} must hold class values from 1, 0 where a pixel is rejected and "
            f"{nodata_label(np.uint8)} (uint8) without data (it holds {labels.min()} to "
            f"{labels.max()})."
        )
    return np.where(without_data, np.uint16(NODATA), labels.astype(np.uint16))


def map_id(label: xr.DataArray, confidence: xr.DataArray | None = None) -> str:
    """Return 16 hexadecimal digits that identify a label map, or a ranking.

    They do not depend on the type that labels and confidences are stored in, nor on chunks: a map
    in memory and the same one in a file agree. A lazy map is read some rows at a time.
    """
    digest = hashlib.sha256(f"{label.shape}".encode())
    if confidence is not None:
        digest.update(str(confidence.attrs.get(GROUPS_ATTRIBUTE, "")).encode())
    for start in range(0, label.sizes[Y], _ROWS):
        rows = {Y: slice(start, start + _ROWS)}
        values = np.asarray(label.isel(rows).values)
        labels = canonical_labels(values, fill_value(label), "label")
        digest.update(labels.astype("<u2").tobytes())
        if confidence is not None:
            numbers = np.asarray(confidence.isel(rows).values, dtype="<f8") + 0.0  # not -0.0
            unranked = (labels == NODATA) | (labels == REJECTED)
            digest.update(np.where(unranked, 0.0, numbers).tobytes())
    return digest.hexdigest()[:16]


def excluded_pixels(
    exclude: xr.DataArray | NDArray[Any], on_map: xr.DataArray
) -> NDArray[np.bool_]:
    """Return which pixels of a map (y, x) are excluded: those where `exclude` is not 0."""
    if np.asarray(exclude).dtype.kind == "b":
        exclude = exclude.astype(np.uint8)
    places = as_label_map(exclude, name="exclude")
    check_same_grid(on_map, places, names=("the map", "exclude"))
    return np.asarray(places.values != 0)
