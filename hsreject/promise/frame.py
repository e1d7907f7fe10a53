"""The frame of a sample: the pixels of a map that may be drawn, and what a threshold keeps."""

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
from hsreject.schema import (
    CATEGORY,
    CLASS_NAME,
    LARGEST_LABEL,
    LEVEL,
    LEVEL_CONFIDENCE,
    LEVEL_DIMS,
    NO_REFERENCE,
    REJECTED,
    Y,
    as_label_map,
    as_map,
    check_dims,
    check_label_type,
    check_no_mask,
    check_same_grid,
    fill_value,
    nodata_label,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

NODATA = nodata_label(np.uint16)

_ROWS = 512  # of a map, read at once


@dataclass(frozen=True, eq=False)
class Levels:
    """Confidences of a map that may answer coarser, and the class tree of its answers."""

    confidence: xr.DataArray  # (level, y, x), the coarsest last
    tree: ClassTree

    @classmethod
    def of(cls, confidence: xr.DataArray | NDArray[Any], on_map: xr.DataArray) -> Levels | None:
        """Return the levels that a caller gave; None for a map that answers with classes only.

        In a file levels are bands, and the labels keep the groups.
        """
        if not isinstance(confidence, xr.DataArray):
            return None
        if CATEGORY in confidence.dims and GROUPS_ATTRIBUTE in on_map.attrs:
            plain = confidence.drop_vars((CATEGORY, CLASS_NAME), errors="ignore").drop_attrs()
            confidence = plain.rename({CATEGORY: LEVEL}).assign_attrs(tree_of(on_map).to_attrs())
        if LEVEL not in confidence.dims:
            return None
        levels = check_dims(confidence, LEVEL_DIMS, name=LEVEL_CONFIDENCE)
        check_same_grid(on_map, levels, names=("label", LEVEL_CONFIDENCE))
        tree = tree_of(levels)
        if tree.n_levels != levels.sizes[LEVEL]:
            raise InputError(
                f"{LEVEL_CONFIDENCE} has {levels.sizes[LEVEL]} levels, and the class tree that it "
                f"carries has {tree.n_levels}. Pass that of HierarchicalRejector.rank."
            )
        return cls(levels, tree)

    def wrong_up_to(
        self,
        label: NDArray[np.integer],
        row: NDArray[np.int64],
        column: NDArray[np.int64],
        reference: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Return the confidence of the coarsest answer that is wrong, see `Frame.wrong_up_to`."""
        tree, rows = self.tree, rows_of(self.tree.classes, label)
        over = np.append(tree.over, np.full((tree.n_levels, 1), -1), axis=1)
        code = np.append(tree.table.values, REJECTED)[over[:, rows]]
        n_wrong = (~tree.holds(code, reference)).sum(axis=0)  # the finest answers, if any
        confidences = self.confidence.values[:, row, column].astype(np.float64)
        limits = np.concatenate(
            [np.full((1, rows.size), -np.inf), confidences[:-1], [np.full(rows.size, np.inf)]]
        )
        return np.asarray(limits[n_wrong, np.arange(rows.size)])

    def region_errors(
        self, frame: Frame, thresholds: NDArray[np.float64], of_class: int | None
    ) -> NDArray[np.float64] | None:
        """Return the share of wrong answers per region, where confidences are probabilities."""
        if self.confidence.attrs.get("long_name") != ANSWER_PROBABILITY:
            return None
        label = frame.label.values
        inside = frame.inside & (label != REJECTED if of_class is None else label == of_class)
        confidences = self.confidence.values[:, inside]
        errors = []
        for threshold in thresholds:
            reaching = confidences[:, confidences[-1] >= threshold]
            answer = np.min(reaching, axis=0, where=reaching >= threshold, initial=1.0)
            errors.append(1 - answer.mean(dtype=np.float64))
        return np.array(errors)


@dataclass(frozen=True, eq=False)
class Frame:
    """A label map, the pixels of it that may be drawn and, for a ranking, its confidences."""

    label: xr.DataArray  # of :func:`labels_of`
    inside: NDArray[np.bool_]  # has data and is not excluded
    confidence: xr.DataArray | None = None
    levels: Levels | None = None  # of a map that may answer coarser

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
        levels = Levels.of(confidence, on_map)
        confidences = _confidences(confidence if levels is None else levels.confidence[-1], on_map)
        return cls(on_map, inside, confidences, levels)

    @cached_property
    def n_pixels(self) -> int:
        """Pixels that may be drawn."""
        return int(np.count_nonzero(self.inside))

    @property
    def confidences(self) -> xr.DataArray:
        """The confidences, or an error where there are none."""
        if self.confidence is None:
            raise InputError("Give the confidence of the labels: it ranks the pixels of the map.")
        return self.confidence

    @property
    def ranking(self) -> xr.DataArray | None:
        """The confidences that tell this map from another: of all levels, where there are some."""
        return self.confidence if self.levels is None else self.levels.confidence

    @cached_property
    def ranking_id(self) -> str:
        """Tells labels, confidences and what is excluded from any other: a changed map is found."""
        masked = np.where(self.inside, self.label.values, np.uint16(NODATA))
        return map_id(self.label.copy(data=masked), self.ranking)

    def wrong_up_to(
        self, row: NDArray[np.int64], column: NDArray[np.int64], reference: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the largest threshold at which the answer of each pixel is wrong.

        A label is right or wrong at all of them: minus or plus infinity. Coarser answers get right
        from some threshold on.
        """
        label = self.label.values[row, column]
        if self.levels is None:
            return np.where(label == reference, -np.inf, np.inf)
        return self.levels.wrong_up_to(label, row, column, reference)

    def thresholds(
        self, coverages: Sequence[float], of_class: int | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return distinct thresholds, descending, and how many pixels each keeps.

        That of a coverage keeps the pixel at its rank and all of the same confidence. Where pixels
        are rejected already, the largest coverage keeps the others. Coverages of a class are shares
        of its own pixels.
        """
        wanted = np.array(sorted(coverages), dtype=np.float64)
        if not wanted.size or not (wanted[0] > 0 and wanted[-1] <= 1):
            raise InputError(
                "coverages must be shares above 0 and at most 1, such as 0.1, 0.2, 0.3."
            )
        label = self.label.values
        kept = label != REJECTED if of_class is None else label == of_class
        ascending = np.sort(self.confidences.values[self.inside & kept])
        if not ascending.size:
            raise InputError("label keeps no pixel: it is 0 (rejected) wherever there is data.")
        n_all = self.n_pixels if of_class is None else ascending.size
        rank = np.clip(np.ceil(wanted * n_all - 1e-9).astype(np.int64), 1, ascending.size)
        thresholds = np.unique(ascending[ascending.size - rank])[::-1]
        sizes = ascending.size - np.searchsorted(ascending, thresholds)
        return thresholds.astype(np.float64), sizes


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
    classes = ClassTable.from_attrs(on_grid.attrs)
    canonical = on_grid.copy(data=canonical_labels(on_grid.values, fill_value(on_grid), name))
    if not (canonical.values != NODATA).any():
        raise InputError(f"{name} has no pixel with data.")
    canonical.attrs["_FillValue"] = NODATA
    if classes is None:
        there = [int(value) for value in np.unique(canonical.values)]
        classes = ClassTable.plain([value for value in there if value not in {REJECTED, NODATA}])
    return canonical.assign_attrs(classes.to_attrs())


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
    """Return 16 hexadecimal digits that tell a label map, or a ranking, from any other.

    They do not depend on the type that labels and confidences are stored in, nor on chunks: a map
    in memory and the same one in a file agree. A lazy map is read some rows at a time.
    """
    digest = hashlib.sha256(f"{label.shape}".encode())
    if confidence is not None:
        digest.update(str(confidence.attrs.get(GROUPS_ATTRIBUTE, "")).encode())
    fill = fill_value(label)
    for start in range(0, label.sizes[Y], _ROWS):
        rows = {Y: slice(start, start + _ROWS)}
        labels = canonical_labels(np.asarray(label.isel(rows).values), fill, "label")
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
    given = as_label_map(exclude, name="exclude")
    check_same_grid(on_map, given, names=("the map", "exclude"))
    return np.asarray(given.values != NO_REFERENCE)


def _confidences(confidence: xr.DataArray | NDArray[Any], on_map: xr.DataArray) -> xr.DataArray:
    """Return the confidences as floats, or say where one is missing."""
    confidences = as_map(confidence, name="confidence")
    check_same_grid(on_map, confidences, names=("label", "confidence"))
    if confidences.dtype.kind not in "iuf":
        raise InputError(f"confidence must hold numbers (got {confidences.dtype}).")
    kept_types = {np.dtype(np.float32), np.dtype(np.float64)}
    numbers = confidences if confidences.dtype in kept_types else confidences.astype(np.float64)
    labelled = (on_map.values != NODATA) & (on_map.values != REJECTED)
    missing = int(np.count_nonzero(labelled & ~np.isfinite(numbers.values)))
    if missing:
        raise InputError(
            f"confidence is NaN or infinite in {missing} pixels that have a label. Give these "
            "pixels the label of no data, or a confidence."
        )
    return numbers
