"""The page of a run: that of an evaluation, and what only a run knows."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import __version__
from hsreject.errors import InputError
from hsreject.evaluation.confidence_classes import CONFIDENCE_CLASSES
from hsreject.io.grid import PixelGrid
from hsreject.pipeline.judgement import judged_pixels, sentence
from hsreject.plot.image_displays import INFRARED, FalseColorDisplay
from hsreject.plot.map_displays import ClassMapDisplay
from hsreject.plot.promise_displays import CertificateDisplay
from hsreject.plot.style import COLUMN_WIDTH, new_row
from hsreject.report import findings
from hsreject.report.explorer import write_explorer
from hsreject.report.figures import Pictures
from hsreject.report.page import Picture, number, records
from hsreject.schema import (
    AT_FRACTION,
    NO_REFERENCE,
    POLYGON,
    SEED,
    SYSTEM,
    class_table,
)
from hsreject.splits.polygons import is_digitised, polygon_numbers

if TYPE_CHECKING:
    from hsreject.pipeline.judgement import Judgement
    from hsreject.pipeline.stages import System

EXPLORER = "explorer.html"
_REPORTED = ("numpy", "scipy", "scikit-learn", "xarray", "numba", "rasterio", "spectral")
_FILES = ("maps/map.tif", "summary.csv", "classes.csv", "areas.csv", "confusion.csv", "result.nc")


def run_words(tree: xr.DataTree) -> list[str]:
    """Return what a run prints on a terminal: how good the map is, warnings, and notes."""
    words = tree.children["delivered"].attrs
    return [words["statement"], *words["warnings"], *words["notes"]]


def run_report(judgement: Judgement, folder: Path) -> None:
    """Write ``report.html`` and ``explorer.html`` into `folder`, and pictures into ``figures``."""
    outcome = judgement.outcome
    drawn = Pictures(folder / "figures", PixelGrid.of(outcome.cube))
    tried = {"pool": outcome.pool, "tuning": outcome.tuning}
    values: dict[str, Any] = {
        "title": outcome.plan.title,
        "place": findings.about_scene(outcome.cube),
        "statement": judgement.statement,
        "warnings": judgement.warnings,
        "notes": judgement.notes,
        "goal_reached": judgement.delivered.delivery.reached,
        "promise": judgement.promise if _is_promised(judgement) else None,
        "files": _FILES,
        "tried": {name: records(table) for name, table in tried.items() if table},
        "configuration": judgement.configuration,
        "versions": versions(),
    }
    if _write_explorer(judgement, folder):
        values["explorer"] = EXPLORER
    of_map = _without_test if judgement.evaluation is None else _with_test
    findings.write_report(folder, **(values | of_map(judgement, drawn)))


def versions() -> dict[str, str]:
    """Return the versions of hsreject and of what its numbers depend on."""
    return {"hsreject": __version__, **{name: version(name) for name in _REPORTED}}


def _with_test(judgement: Judgement, drawn: Pictures) -> dict[str, Any]:
    """Return what test pixels say of the map, and of what it is compared with."""
    evaluation, systems = judgement.evaluation, judgement.outcome.systems
    assert evaluation is not None  # noqa: S101 (the caller has looked)
    main, rejectors = judgement.outcome.plan.delivered, judgement.outcome.plan.rejectors
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
    values = findings.evaluation_values(evaluation, curves, drawn, name=main, isolated=isolated)
    values |= {
        "delivered": main,
        "levels": judgement.levels,
        "third_colors": CONFIDENCE_CLASSES.colors,
        "halved": "calibration" in judgement.outcome.split,
        "systems": list(rows),
        "scene_picture": _false_color(judgement, drawn),
        "other_maps": [
            (name, systems[name].delivery.rejected_share, _picture_of(systems[name], drawn, name))
            for name in names[1:]
        ],
        "system_notes": sentence("table_notes", systems=judged[SYSTEM].values, of_curves=False),
    }
    if judgement.confidence_table is not None:
        values["thirds"] = records(judgement.confidence_table)
    certificate = judgement.delivered.delivery.certificate
    if certificate is not None:
        figure, (ax,) = new_row(1, COLUMN_WIDTH, 2.7)
        CertificateDisplay(certificate).plot(ax)
        values["certificate"] = {
            "text": judgement.promise["text"],
            "figures": {str(n): v.item() for n, v in judgement.tables["promise"].items()},
            "picture": drawn.figure("promise", figure),
        }
    return values


def _without_test(judgement: Judgement, drawn: Pictures) -> dict[str, Any]:
    """Return the delivered map where no test pixel can judge it."""
    delivery, main = judgement.delivered.delivery, judgement.outcome.plan.delivered
    label = delivery.maps["label"]
    areas, colors = records(judgement.areas), class_table(label).colors
    return {
        "evaluation": None,
        "files": ("maps/map.tif", "areas.csv", "result.nc"),
        "map_legend": findings.class_legend(ClassMapDisplay.from_labels(label).paint()),
        "scene_picture": _false_color(judgement, drawn),
        "maps": {"map": _picture_of(judgement.delivered, drawn, main)},
        "rejected_share": delivery.rejected_share,
        "areas": [{**one, "color": color} for one, color in zip(areas, colors, strict=True)],
    }


def _write_explorer(judgement: Judgement, folder: Path) -> Path | None:
    """Write the explorer of all rejectors, the delivered one first.

    It opens with the delivered map, and measures on the pixels that the report measures on.
    Confidences that are all equal have none.
    """
    outcome, delivery = judgement.outcome, judgement.delivered.delivery
    main, split = outcome.plan.delivered, outcome.split
    shared = {}
    if (split["test"] != NO_REFERENCE).any():
        shared = {"reference": outcome.labels, "test": judged_pixels(split)}
        if is_digitised(split["test"]):
            shared["group"] = split["test"].copy(data=polygon_numbers(split["test"]))
    systems = {}
    for name in sorted(outcome.plan.rejectors, key=lambda name: name != main):
        maps = outcome.systems[name].ranking.to_dataset().assign(shared)
        maps = maps.drop_vars(POLYGON, errors="ignore")
        systems[name] = maps.assign_attrs(threshold=delivery.threshold)
    is_certified = _is_promised(judgement) and np.isfinite(delivery.threshold)
    try:
        return write_explorer(
            systems,
            folder / EXPLORER,
            scene=outcome.cube,
            title=outcome.plan.title,
            fraction=delivery.rejected_share,
            certified=delivery.threshold if is_certified else None,
        )
    except InputError:
        return None


def _is_promised(judgement: Judgement) -> bool:
    return "evaluation" in judgement.promise


def _false_color(judgement: Judgement, drawn: Pictures) -> Picture:
    shown = FalseColorDisplay.from_cube(judgement.outcome.cube, wavelengths=INFRARED)
    return drawn.map("false_color", shown.picture.values)


def _picture_of(system: System, drawn: Pictures, name: str) -> Picture:
    maps = system.delivery.maps
    painted = ClassMapDisplay.from_labels(maps["label"]).paint()
    return drawn.map(f"rejected_{name}", painted.pixels, rejected=maps["rejected"])


def curve_table(tree: xr.DataTree) -> tuple[list[str], list[list[str]], str]:
    """Return what is quoted of each system's curve: headings, rows, and what they mean."""
    summary = tree.children["summary"].to_dataset(inherit=False).isel({SEED: 0})
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
    notes = sentence("table_notes", systems=summary[SYSTEM].values, of_curves=True)
    return ["system", *columns], rows, notes
