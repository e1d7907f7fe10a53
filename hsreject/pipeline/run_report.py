"""The page of a run: that of an evaluation, and what only a run knows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.evaluation.confidence_classes import CONFIDENCE_CLASSES
from hsreject.io.grid import Grid
from hsreject.pipeline.judgement import judged_pixels, say
from hsreject.plot.image_displays import FalseColorDisplay
from hsreject.plot.map_displays import ClassMapDisplay
from hsreject.plot.promise_displays import CertificateDisplay
from hsreject.plot.style import COLUMN_WIDTH, new_row
from hsreject.rejection.rejector import UNKNOWN
from hsreject.report import findings
from hsreject.report.explorer import write_explorer
from hsreject.report.figures import Pictures
from hsreject.report.page import Picture, number, records
from hsreject.schema import (
    AT_FRACTION,
    LEVEL_CONFIDENCE,
    NO_REFERENCE,
    OPERATING_POINT,
    POLYGON,
    REJECTOR,
    SEED,
    SYSTEM,
    class_table,
)
from hsreject.splits.polygons import is_digitised, polygon_numbers

if TYPE_CHECKING:
    from hsreject.pipeline.judgement import Judgement

EXPLORER = "explorer.html"
_FILES = ("maps/map.tif", "summary.csv", "classes.csv", "areas.csv", "confusion.csv", "result.nc")


def run_words(tree: xr.DataTree) -> list[str]:
    """Return what a run prints on a terminal: how good the map is, warnings, and notes."""
    words = tree.children["delivered"].attrs
    return [words["statement"], *words["warnings"], *words["notes"]]


def run_report(tree: xr.DataTree, judgement: Judgement, folder: Path, cube: xr.DataArray) -> None:
    """Write ``report.html`` and ``explorer.html`` into `folder`, and pictures into ``figures``.

    `judgement` is about the maps of the tree; `cube` is the scene.
    """
    drawn = Pictures(folder / "figures", Grid.of(cube))
    words = tree.children["delivered"].attrs
    values: dict[str, Any] = {
        "title": tree.attrs["title"],
        "place": findings.about_scene(cube),
        **{name: words[name] for name in ("statement", "warnings", "notes", "goal_reached")},
        "promise": tree.children["promise"].attrs if _is_promised(tree) else None,
        "files": _FILES,
        "tried": {
            name: records(table_of(tree, name)) for name in ("pool", "tuning") if name in tree
        },
        "configuration": tree.attrs["configuration"],
        "versions": tree.children["versions"].attrs,
    }
    if _write_explorer(tree, judgement, folder, cube):
        values["explorer"] = EXPLORER
    of_map = _without_test if judgement.evaluation is None else _with_test
    findings.write_report(folder, **(values | of_map(tree, judgement, drawn)))


def _with_test(tree: xr.DataTree, judgement: Judgement, drawn: Pictures) -> dict[str, Any]:
    """Return what test pixels say of the map, and of what it is compared with."""
    evaluation, systems, maps = judgement.evaluation, judgement.walk.systems, tree.to_dataset()
    assert evaluation is not None  # noqa: S101 (the caller has looked)
    main, rejectors = judgement.walk.plan.delivered, judgement.walk.plan.rejectors
    names = sorted(rejectors, key=lambda name: name != main)
    curves = {name: systems[name].points for name in names}
    isolated = [name for name in names if not systems[name].has_threshold]
    judged, summary = (judgement.tables[name] for name in ("judged", "summary"))
    rows = zip(
        map(str, judged[SYSTEM].values),
        records(judged),
        records(summary.sel({AT_FRACTION: 0.1})),
        strict=True,
    )
    values = findings.shown(evaluation, curves, drawn, name=main, isolated=isolated)
    values |= {
        "delivered": main,
        "levels": judgement.levels,
        "third_colors": CONFIDENCE_CLASSES.colors,
        "halved": "calibration" in maps,
        "systems": list(rows),
        "scene_picture": _false_color(maps, drawn),
        "other_maps": [
            (name, systems[name].delivery.rejected_share, _picture_of(maps, drawn, name))
            for name in names[1:]
        ],
        "system_notes": say("table_notes", systems=judged[SYSTEM].values, of_curves=False),
    }
    if "confidence_classes" in tree:
        values["thirds"] = records(table_of(tree, "confidence_classes"))
    certificate = judgement.delivered.delivery.certificate
    if certificate is not None:
        figure, (ax,) = new_row(1, COLUMN_WIDTH, 2.7)
        CertificateDisplay(certificate).plot(ax)
        values["certificate"] = {
            "text": tree.children["promise"].attrs["text"],
            "figures": {str(n): v.item() for n, v in judgement.tables["promise"].items()},
            "picture": drawn.figure("promise", figure),
        }
    return values


def _without_test(tree: xr.DataTree, judgement: Judgement, drawn: Pictures) -> dict[str, Any]:
    """Return the delivered map where no test pixel can judge it."""
    maps, main = tree.to_dataset(), judgement.walk.plan.delivered
    label = maps["label"].sel({REJECTOR: main})
    areas, colors = records(judgement.areas), class_table(label).colors
    return {
        "evaluation": None,
        "files": ("maps/map.tif", "areas.csv", "result.nc"),
        "map_legend": findings.class_legend(ClassMapDisplay.from_labels(label).paint()),
        "scene_picture": _false_color(maps, drawn),
        "maps": {"map": _picture_of(maps, drawn, main)},
        "rejected_share": judgement.delivered.delivery.rejected_share,
        "areas": [{**one, "color": color} for one, color in zip(areas, colors, strict=True)],
    }


def _write_explorer(
    tree: xr.DataTree, judgement: Judgement, folder: Path, cube: xr.DataArray
) -> Path | None:
    """Write the explorer of all rejectors, the delivered one first.

    It opens with the delivered map, and measures on the pixels that the report measures on.
    Confidences that are all equal have none.
    """
    main, split = judgement.walk.plan.delivered, judgement.walk.split
    threshold = judgement.delivered.delivery.threshold
    shared = {}
    if (split["test"] != NO_REFERENCE).any():
        shared = {"reference": tree["reference"], "test": judged_pixels(split)}
        if is_digitised(split["test"]):
            shared["group"] = split["test"].copy(data=polygon_numbers(split["test"]))
    systems = {}
    for name in sorted(judgement.walk.plan.rejectors, key=lambda name: name != main):
        swept = judgement.walk.systems[name].swept
        varies = OPERATING_POINT in swept["label"].dims
        shown = ["label", "rejected" if varies else "confidence"]
        shown += [more for more in (LEVEL_CONFIDENCE, UNKNOWN) if more in swept and not varies]
        swept = swept[shown].assign(shared).drop_vars(POLYGON, errors="ignore")
        systems[name] = swept.assign_attrs(threshold=threshold)
    try:
        return write_explorer(
            systems,
            folder / EXPLORER,
            scene=cube,
            title=str(tree.attrs["title"]),
            fraction=float(tree.attrs["fraction"]),
            certified=threshold if _is_promised(tree) and np.isfinite(threshold) else None,
        )
    except InputError:
        return None


def _is_promised(tree: xr.DataTree) -> bool:
    return "promise" in tree and "evaluation" in tree.children["promise"].attrs


def table_of(tree: xr.DataTree, name: str) -> xr.Dataset:
    """Return a group of a result as a table by itself."""
    return tree.children[name].to_dataset(inherit=False)


def _false_color(maps: xr.Dataset, drawn: Pictures) -> Picture:
    picture = FalseColorDisplay.from_cube(maps["false_color"], bands=(0, 1, 2)).picture
    return drawn.map("false_color", picture.values)


def _picture_of(maps: xr.Dataset, drawn: Pictures, name: str) -> Picture:
    one = maps[["label", "rejected"]].sel({REJECTOR: name})
    painted = ClassMapDisplay.from_labels(one["label"]).paint()
    return drawn.map(f"rejected_{name}", painted.pixels, rejected=one["rejected"])


def curve_table(tree: xr.DataTree) -> tuple[list[str], list[list[str]], str]:
    """Return what is quoted of each system's curve: headings, rows, and what they mean."""
    summary = table_of(tree, "summary").isel({SEED: 0})
    at = summary["accuracy_at"]
    columns = {
        "OA": (summary["overall_accuracy"], 100, 1),
        **{f"A({f:g})": (at.sel({AT_FRACTION: f}), 100, 1) for f in at[AT_FRACTION].values},
        "max Q": (summary["largest_quality"], 100, 1),
        "at r": (summary["fraction_of_largest_quality"], 1, 2),
        "AURC": (summary["aurc"], 1, 3),
        "ECE": (summary["calibration_error"], 1, 3),
    }
    rows = [
        [
            str(system),
            *(number(float(c.sel({SYSTEM: system})), *form) for c, *form in columns.values()),
        ]
        for system in summary[SYSTEM].values
    ]
    notes = say("table_notes", systems=summary[SYSTEM].values, of_curves=True)
    return ["system", *columns], rows, notes
