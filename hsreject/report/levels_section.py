"""The part of a report that says how much is known at which level of a class tree."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hsreject.class_tree import ClassTree, rows_of
from hsreject.rejection.hierarchical import (
    answer_map,
    coarsest_answers,
    finest_threshold,
    tree_of,
)
from hsreject.rejection.rejector import UNKNOWN
from hsreject.rejection.thresholds import threshold_for_fraction
from hsreject.report.findings import percent
from hsreject.report.page import Section, Table
from hsreject.schema import (
    LEVEL_CONFIDENCE,
    OPERATING_POINT,
    nodata_label,
)

_N_PLANES = 21  # of a page


def level_shares(answer: xr.DataArray, reference: xr.DataArray) -> xr.Dataset | None:
    """Return how the reference pixels of each class are answered; None without groups.

    `share` (category, level) of the pixels of a class, `right` the share of right answers among
    those kept; the last row, of value 0, is of all classes. The last level is "rejected".
    """
    tree = ClassTree.from_attrs(answer.attrs)
    if tree is None:
        return None
    used = (reference.values > 0) & (answer.values != nodata_label(answer.dtype))
    code, truth = answer.values[used], reference.values[used]
    level = np.append(tree.levels, tree.n_levels)[rows_of(tree.table, code)]
    kept_pixels, right = level < tree.n_levels, tree.holds(code, truth)
    values = [value for value in tree.classes.values if (truth == value).any()]
    share, accuracy = [], []
    for value in (*values, 0):
        mine = truth == value if value else np.ones(truth.shape, dtype=bool)
        share.append(np.bincount(level[mine], minlength=tree.n_levels + 1) / max(mine.sum(), 1))
        accuracy.append(right[mine & kept_pixels].mean() if (mine & kept_pixels).any() else np.nan)
    return xr.Dataset(
        {"share": (("category", "level"), share), "right": ("category", accuracy)},
        coords={"category": [*values, 0], "level_name": ("level", list(tree.level_names))},
    )


def level_planes(ranking: xr.Dataset) -> xr.Dataset:
    """Return the answers of a ranking at some thresholds, `label` and `rejected`, for a page.

    Thresholds are those of every twentieth of the scene, and that of the delivered map, which is
    the attribute `threshold`, if there is one. Rejected pixels have their coarsest answer.
    """
    ranking = ranking.load()
    label, levels, confidence = ranking["label"], ranking[LEVEL_CONFIDENCE], ranking["confidence"]
    shares = np.linspace(0, 1, _N_PLANES)
    places = {
        finest_threshold(ranking, threshold_for_fraction(confidence, share).value)
        for share in shares
    }
    coarsest = coarsest_answers(label, tree_of(levels))
    planes, rejected = [], []
    for threshold in sorted({*places, ranking.attrs.get("threshold", np.inf)}):
        answer = answer_map(label, levels, threshold)
        gone = confidence.values < threshold
        if UNKNOWN in ranking:
            gone = gone | ranking[UNKNOWN].values
        planes.append(answer.copy(data=np.where(gone, coarsest, answer.values)))
        rejected.append(answer.copy(data=gone).drop_attrs())
    return xr.Dataset(
        {
            "label": xr.concat(planes, dim=OPERATING_POINT, combine_attrs="override"),
            "rejected": xr.concat(rejected, dim=OPERATING_POINT),
        }
    )


def level_sections(answer: xr.DataArray, reference: xr.DataArray) -> list[Section]:
    """Return the section of levels; none where the map has no groups."""
    shares, tree = level_shares(answer, reference), ClassTree.from_attrs(answer.attrs)
    if shares is None or tree is None:
        return []
    rows = [
        (
            tree.table.name_of(value) if value else "all classes",
            *(percent(part) for part in shares["share"].sel(category=value).values.tolist()),
            percent(float(shares["right"].sel(category=value))),
        )
        for value in shares["category"].values.tolist()
    ]
    headings = ("true class", *(f"as {name}" for name in tree.level_names), "right of the kept")
    groups = "; ".join(f"{group.name}: {', '.join(group.members)}" for group in tree.groups)
    text = (
        "Where the class is unclear the map answers with a group of classes, and rejects what is "
        "unclear even then. An answer is right where the true class lies below it. The groups are "
        f"{groups}."
    )
    return [
        Section("How much is known at which level", text, tables=(Table(headings, tuple(rows)),))
    ]
