"""An evaluation in numbers: accuracies and areas by class, what an accuracy costs, CSV files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from hsreject.evaluation.confidence_classes import CONFIDENCE_CLASSES
from hsreject.io.grid import PixelGrid
from hsreject.io.vectors.spreadsheet import write_csv
from hsreject.measures.choosing import choose_point
from hsreject.measures.point import OperatingPoint, share
from hsreject.rejection.ranking import UNKNOWN
from hsreject.schema import (
    CATEGORY,
    CLASS_NAME,
    CONFIDENCE_CLASS,
    OPERATING_POINT,
    REJECTED,
    nodata_label,
)
from hsreject.schema.class_tree import ClassTree, Group, rows_of
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.evaluation.evaluation import Evaluation

GOALS = (0.8, 0.85, 0.9, 0.95, 0.99)  # accuracies that people ask for


def hectares(evaluation: Evaluation, pixels: xr.DataArray) -> float | None:
    """Return the area of some pixels (y, x), or None where the map has no place."""
    areas = evaluation.grid.pixel_areas()
    return None if areas is None else float((areas * pixels.values).sum())


def class_accuracies(evaluation: Evaluation) -> xr.Dataset:
    """Return the accuracies of each class at the shown point.

    Returns
    -------
    Dataset over `category` (the classes, by value, with `class_name`)
        `reference_pixels`, those that are measured on and belong to the class, and
        `reference_pixels_kept` of them; `label_pixels_kept`, kept ones that have its label;
        `user_accuracy` (of these the share that are right) and `producer_accuracy` (of the kept
        ones that belong to the class, the share with its label), both with `_lower` and `_upper` of
        their 95 % interval and with `_unrejected`, the share when nothing is rejected. Shares of
        nothing are NaN.
    """
    samples = evaluation.samples
    kept_samples = ~samples.at(evaluation.rejected)
    rows = []
    for value in evaluation.classes.values:
        member, mapped = samples.reference == value, samples.label == value
        row: dict[str, float] = {
            "reference_pixels": int(member.sum()),
            "reference_pixels_kept": int((member & kept_samples).sum()),
            "label_pixels_kept": int((mapped & kept_samples).sum()),
        }
        for name, whole in (("user_accuracy", mapped), ("producer_accuracy", member)):
            row |= _accuracy(evaluation, whole & kept_samples, name)
            row[f"{name}_unrejected"] = _share(samples.correct, whole, samples.sample_weight)
        rows.append(row)
    return _by_class(evaluation.classes, rows)


def _share(
    part: NDArray[np.bool_], whole: NDArray[np.bool_], weight: NDArray[Any] | None = None
) -> float:
    if weight is None:
        return float(share(np.count_nonzero(part & whole), np.count_nonzero(whole)))
    return float(share(weight[part & whole].sum(), weight[whole].sum()))


def _accuracy(evaluation: Evaluation, whole: NDArray[np.bool_], name: str) -> dict[str, float]:
    """Return the share of some samples that is right, with its 95 % interval."""
    correct, weight = evaluation.samples.correct, evaluation.samples.sample_weight
    low, high = evaluation.clusters.interval(correct, whole)
    return {name: _share(correct, whole, weight), f"{name}_lower": low, f"{name}_upper": high}


def area_table(evaluation: Evaluation) -> xr.Dataset:
    """Return :func:`label_areas` of the classes and groups of an evaluation, at its shown point."""
    label = evaluation.answers.where(evaluation.has_data, REJECTED)
    return label_areas(label, evaluation.rejected, evaluation.answer_classes)


def label_areas(label: xr.DataArray, rejected: xr.DataArray, classes: ClassTable) -> xr.Dataset:
    """Return how much of a map (y, x) each label covers, kept and rejected.

    Returns
    -------
    Dataset over `category` (the classes and groups, by value, with `class_name`)
        `kept_pixels` and `rejected_pixels`; where the map has a place, `kept_hectares` and
        `rejected_hectares`. Of the scene, not of the test pixels.
    """
    areas, kept = PixelGrid.of(label).pixel_areas(), ~rejected.values
    rows = []
    for value in classes.values:
        row: dict[str, float] = {}
        for name, mask in (("kept", kept), ("rejected", ~kept)):
            pixels = (label.values == value) & mask
            row[f"{name}_pixels"] = int(pixels.sum())
            if areas is not None:
                row[f"{name}_hectares"] = float((areas * pixels).sum())
        rows.append(row)
    return _by_class(classes, rows)


def _by_class(classes: ClassTable, rows: list[dict[str, float]]) -> xr.Dataset:
    names = (CATEGORY, list(classes.names))
    return _table(CATEGORY, rows, {CATEGORY: list(classes.values), CLASS_NAME: names})


def _table(dim: str, rows: list[dict[str, float]], coords: Mapping[str, Any]) -> xr.Dataset:
    return xr.Dataset({name: (dim, [row[name] for row in rows]) for name in rows[0]}, coords)


def confidence_table(level: xr.DataArray, evaluation: Evaluation | None) -> xr.Dataset:
    """Return how large each confidence class of a map (y, x) is, and how accurate.

    Returns
    -------
    Dataset over `confidence_class` (names, from low to high)
        `pixels` and `share_of_scene`; with an evaluation also `reference_pixels`, those that are
        measured on, and `accuracy`, the share of them that is right with nothing rejected, with
        `_lower` and `_upper` of its 95 % interval.
    """
    n_pixels = np.isin(level.values, CONFIDENCE_CLASSES.values).sum()
    rows = []
    for value in CONFIDENCE_CLASSES.values:
        n_members = int((level.values == value).sum())
        row: dict[str, float] = {"pixels": n_members, "share_of_scene": n_members / n_pixels}
        if evaluation is not None:
            member = evaluation.samples.at(level) == value
            row["reference_pixels"] = int(member.sum())
            row |= _accuracy(evaluation, member, "accuracy")
        rows.append(row)
    return _table(CONFIDENCE_CLASS, rows, {CONFIDENCE_CLASS: list(CONFIDENCE_CLASSES.names)})


class LevelShares(NamedTuple):
    """How much is known at which level of a class tree, by true class."""

    groups: tuple[Group, ...]
    names: tuple[str, ...]  # of the levels, from classes to "rejected"
    rows: list[tuple[str, list[float], float]]  # class, share at each level, right of the kept

    @property
    def of_all(self) -> list[tuple[str, float]]:
        """The levels that are kept, each with its share of all pixels."""
        return list(zip(self.names, self.rows[-1][1], strict=True))[:-1]

    @property
    def headings(self) -> list[str]:
        """Those of a table of the rows."""
        return ["true class", *(f"as {name}" for name in self.names), "right of the kept"]


def level_shares(answer: xr.DataArray, reference: xr.DataArray) -> LevelShares | None:
    """Return how the reference pixels of each class are answered; None without groups.

    The last row is of all classes.
    """
    tree = ClassTree.from_attrs(answer.attrs)
    if tree is None:
        return None
    used = (reference.values > 0) & (answer.values != nodata_label(answer.dtype))
    code, truth = answer.values[used], reference.values[used]
    level = np.append(tree.levels, tree.n_levels)[rows_of(tree.table, code)]
    keep, right = level < tree.n_levels, tree.holds(code, truth)
    members = {tree.table.name_of(value): truth == value for value in tree.classes.values}
    rows = []
    for name, member in (members | {"all classes": truth > 0}).items():
        if member.any():
            shares = np.bincount(level[member], minlength=tree.n_levels + 1) / member.sum()
            rows.append((name, shares.tolist(), _share(right, member & keep)))
    return LevelShares(tree.groups, tree.level_names, rows)


class AccuracyCost(NamedTuple):
    """What an accuracy costs; where it is out of reach, the most accurate point instead."""

    accuracy: float  # that is asked for
    reached: bool
    point: OperatingPoint  # of the test pixels: the least rejection that reaches it
    scene_share: float  # of the scene, that is given up; NaN without a confidence
    hectares_kept: float | None
    lost_classes: tuple[int, ...]


def goal_costs(evaluation: Evaluation, accuracies: Sequence[float] = GOALS) -> list[AccuracyCost]:
    """Return what accuracies cost: shares of test pixels and scene, area, classes.

    From the curve on the test pixels and the confidences of the scene; empty without a curve.
    Unknown pixels have the lowest confidence, and are rejected in any case.
    """
    curve = evaluation.curve
    if curve is None:
        return []
    unknown = evaluation.maps.get(UNKNOWN, xr.zeros_like(evaluation.rejected))
    n_unknown = np.count_nonzero(evaluation.samples.at(unknown))
    n_rejected = (curve["accurate_rejected"] + curve["misclassified_rejected"]).values
    curve = curve.isel({OPERATING_POINT: n_rejected >= n_unknown})
    highest = float(curve["nonrejected_accuracy"].max())
    if np.isnan(highest):  # everything is unknown
        return []
    confidence, has_data = evaluation.maps["confidence"], evaluation.has_data
    goals = []
    for accuracy in accuracies:
        point = choose_point(curve, accuracy=min(accuracy, highest))
        # the least certain test pixel is not a reason to give up what is even less certain
        rejected = (confidence < point.threshold) & (point.rejected > n_unknown) | unknown
        goals.append(
            AccuracyCost(
                accuracy,
                accuracy <= highest,
                point,
                float((rejected & has_data).sum() / has_data.sum()),
                hectares(evaluation, has_data & ~rejected),
                evaluation.lost_classes(rejected),
            )
        )
    return goals


def write_tables(evaluation: Evaluation, folder: Path) -> None:
    """Write ``classes.csv``, ``areas.csv`` and ``confusion.csv`` of the shown point."""
    names = evaluation.classes.names
    write_by_class(class_accuracies(evaluation), folder / "classes.csv")
    write_by_class(area_table(evaluation), folder / "areas.csv")
    rows = zip(names, *evaluation.confusion.values.T.tolist(), strict=True)
    write_csv(folder / "confusion.csv", ("reference", *names, "rejected"), rows)


def write_by_class(table: xr.Dataset, path: Path) -> None:
    """Write a table over `category`, one line per class."""
    columns = (table[name].values.tolist() for name in (CLASS_NAME, CATEGORY, *table))
    write_csv(path, ("class", "value", *map(str, table)), zip(*columns, strict=True))
