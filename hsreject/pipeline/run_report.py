"""The page of a run: the sections of an evaluation, and what only a run knows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tomli_w
import xarray as xr

from hsreject.confidence import label_map
from hsreject.errors import InputError
from hsreject.io.grid import Grid
from hsreject.pipeline.judgement import judged_pixels
from hsreject.plot.image_displays import FalseColorDisplay
from hsreject.plot.map_displays import ClassMapDisplay
from hsreject.rejection.rejector import UNKNOWN
from hsreject.report import figures, findings
from hsreject.report.explorer import write_explorer
from hsreject.report.figures import Pictures
from hsreject.report.levels_section import level_sections
from hsreject.report.page import Fact, Headline, Picture, Section, Swatch, Table, write_page
from hsreject.report.promise_section import promise_sections
from hsreject.sampling.polygons import is_digitised, polygon_numbers
from hsreject.schema import (
    AT_FRACTION,
    CATEGORY,
    LABEL_WITH_REJECTION,
    LEVEL_CONFIDENCE,
    NO_REFERENCE,
    OPERATING_POINT,
    POLYGON,
    REJECTOR,
    SEED,
    SYSTEM,
    class_table,
)

if TYPE_CHECKING:
    from hsreject.pipeline.judgement import Judgement

EXPLORER = "explorer.html"
MAP = "maps/map.tif"
_INVITATION = "Explore: reject more or less, and see what it is worth"
_FILES = (MAP, "summary.csv", "classes.csv", "areas.csv", "confusion.csv", "result.nc")
_CHOICES = (
    (
        "What the classifier tried",
        "Chains of features by profiles of neighbourhood, scored on the training pixels left out "
        "of five folds; the map is their mean with these weights.",
        "pool",
        ("chain", "profile", "brier_score", "temperature", "weight"),
    ),
    (
        "Weights of the context that were tried",
        "Cross-validation on the training pixels alone; the first row was taken.",
        "tuning",
        ("weight", "brier_score", "temperature", "accuracy"),
    ),
)
"""Tables of what was chosen from: title, text, group, columns."""

_NOTES = {
    "OA": "overall accuracy, nothing rejected",
    "A(r)": "accuracy of the kept test pixels when r of them are rejected",
    "Q": "share of right decisions",
    "AURC": "mean risk over all coverages, lower is better",
    "ECE": "how far the probabilities of the labels are from how often they are right",
}
_OF_CURVES = {"OA", "Q"}  # headings that a table about maps does not have
_NOTES_OF_ROWS = {
    "coordinates": "'coordinates' knows where a pixel lies and nothing else: a system that is not "
    "better may owe its accuracy to the place.",
    "svm": "'svm' is a tuned support vector machine on the bands.",
    "paper": "'paper' is the protocol of the paper: sparse regression, vector TV, sequential; its "
    "features (15 MNF components) and weight (2) are ours.",
    "carried model": "'carried model' is what 'hsreject train' would take to other scenes.",
}


def run_words(tree: xr.DataTree) -> list[str]:
    """Return what a run prints on a terminal: how good the map is, warnings, and notes."""
    words = tree.children["delivered"].attrs
    return [words["statement"], *words["warnings"], *words["notes"]]


def run_report(tree: xr.DataTree, first: Judgement, folder: Path, cube: xr.DataArray) -> None:
    """Write ``report.html`` and ``explorer.html`` into `folder`, and pictures into ``figures``.

    `first` is what the maps of the tree were made and judged by; `cube` is the scene.
    """
    main, evaluation, maps = first.walk.plan.delivered, first.evaluation, tree.to_dataset()
    others = [name for name in first.walk.plan.rejectors if name != main]
    link = (EXPLORER, _INVITATION) if _write_explorer(tree, first, folder, cube) else None
    delivered = tree.children["delivered"].attrs
    pictures = Pictures(folder / "figures", Grid.of(cube))
    if evaluation is None:
        headline = Headline(
            delivered["statement"],
            warnings=tuple(delivered["warnings"]),
            notes=tuple(delivered["notes"]),
            link=link,
            place=findings.about_scene(cube),
            files=(MAP, "areas.csv", "result.nc"),
        )
        sections = [
            _maps_without_test(maps, pictures, main),
            Section(
                findings.PER_CLASS,
                tables=(findings.shown_areas(first.areas, class_table(maps["label"]).colors),),
            ),
        ]
        details = []
    else:
        systems = first.walk.systems
        curves = {name: systems[name].points for name in (main, *others)}
        isolated = [name for name in curves if not systems[name].has_threshold]
        headline = findings.headline(
            evaluation,
            beside=_beside(tree),
            promise=str(tree.children["promise"].attrs["statement"]) if _promised(tree) else "",
            warnings=delivered["warnings"],
            goal=None if delivered["goal_reached"] else findings.goal_table(evaluation),
            notes=delivered["notes"],
            place=findings.about_scene(cube),
            files=_FILES,
            link=link,
        )
        thirds = []
        if "confidence_classes" in tree:
            thirds = [findings.shown_confidence_classes(_table_of(tree, "confidence_classes"))]
        other_maps = [
            _false_color(maps, pictures),
            *(_picture_of(maps, pictures, name, f"The map of {name}") for name in others),
        ]
        sections = [
            findings.where(evaluation, pictures, name=main, others=other_maps),
            *level_sections(maps[LABEL_WITH_REJECTION].sel({REJECTOR: main}), judged_pixels(maps)),
            findings.per_class(evaluation),
            findings.how_much(
                evaluation,
                curves,
                pictures,
                isolated=isolated,
                with_goals=bool(delivered["goal_reached"]),  # else the headline has them
                more=thirds,
            ),
        ]
        details = [
            Section("Systems side by side", tables=(map_table(tree),)),
            *promise_sections(tree, pictures),
            findings.measures_section(evaluation, curves, pictures, isolated=isolated),
            _probabilities(maps, pictures),
        ]
    write_page(
        folder / "report.html",
        title=str(tree.attrs["title"]),
        headline=headline,
        sections=sections,
        details=[*details, *_choosing_sections(tree), _how_it_was_made(tree)],
    )


def _write_explorer(
    tree: xr.DataTree, first: Judgement, folder: Path, cube: xr.DataArray
) -> Path | None:
    """Write the explorer of all rejectors, the delivered one first, with spectra of the scene.

    It opens with the delivered map, and measures on the pixels that the report measures on.
    Confidences that are all equal have none.
    """
    main, split = first.walk.plan.delivered, first.walk.split
    threshold = first.delivered.delivery.threshold
    shared = {}
    if (split["test"] != NO_REFERENCE).any():
        shared = {"reference": tree["reference"], "test": judged_pixels(split)}
        if is_digitised(split["test"]):
            shared["group"] = split["test"].copy(data=polygon_numbers(split["test"]))
    systems = {}
    for name in sorted(first.walk.plan.rejectors, key=lambda name: name != main):
        swept = first.walk.systems[name].swept
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
            certified=threshold if _promised(tree) and np.isfinite(threshold) else None,
        )
    except InputError:
        return None


def _promised(tree: xr.DataTree) -> bool:
    return "promise" in tree and "evaluation" in tree.children["promise"].attrs


def _table_of(tree: xr.DataTree, name: str) -> xr.Dataset:
    return tree.children[name].to_dataset(inherit=False)


def _beside(tree: xr.DataTree) -> list[Fact]:
    """Return what a map of coordinates alone reaches."""
    judged = _table_of(tree, "judged").isel({SEED: 0})
    if "coordinates" not in judged[SYSTEM].values:
        return []
    accuracy = float(judged["overall_accuracy"].sel({SYSTEM: "coordinates"}))
    words = "of all test pixels are right on a map of coordinates alone"
    return [Fact(findings.percent(accuracy), words, "nothing rejected")]


def _false_color(maps: xr.Dataset, drawn: Pictures) -> Picture:
    picture = FalseColorDisplay.from_cube(maps["false_color"], bands=(0, 1, 2)).picture
    caption = "Near infrared, red and green, where it knows its wavelengths."
    return drawn.map("false_color", picture.values, "The scene", caption)


def _picture_of(maps: xr.Dataset, drawn: Pictures, name: str, title: str) -> Picture:
    one = maps[["label", "rejected", "confidence"]].sel({REJECTOR: name})
    painted = ClassMapDisplay.from_labels(one["label"]).paint()
    share = findings.percent(float(one["rejected"].sum() / one["confidence"].notnull().sum()))
    caption = f"It rejects {share} of the scene."
    return drawn.map(f"rejected_{name}", painted.pixels, title, caption, rejected=one["rejected"])


def _maps_without_test(maps: xr.Dataset, drawn: Pictures, main: str) -> Section:
    """Return the delivered map where no test pixel can judge it."""
    painted = ClassMapDisplay.from_labels(maps["label"].sel({REJECTOR: main})).paint()
    legend = [Swatch(entry.color, entry.name) for entry in painted.categories]
    pictures = (_picture_of(maps, drawn, main, "The map"), _false_color(maps, drawn))
    return Section(findings.WHERE, legend=(*legend, Swatch("", "rejected")), pictures=pictures)


def _how_it_was_made(tree: xr.DataTree) -> Section:
    """Return the seconds of each stage, configuration and versions."""
    seconds = _table_of(tree, "stages")["seconds"]
    rows = zip(seconds["stage"].values, seconds.values, strict=True)
    cells = tuple((str(name), f"{value:.2f}") for name, value in rows)
    versions = {str(name): str(text) for name, text in tree.children["versions"].attrs.items()}
    return Section(
        "How it was made",
        "To make it again, with the config.toml beside this page: hsreject run config.toml --out "
        "again",
        tables=(Table(("stage", "seconds"), cells),),
        listings=(
            ("Configuration", str(tree.attrs["configuration"])),
            ("Versions", tomli_w.dumps(versions)),
        ),
    )


def _probabilities(maps: xr.Dataset, drawn: Pictures) -> Section:
    """Draw how often labels are right over how probable they are."""
    probability = maps["probability"]
    pairs = {"classifier": (label_map(probability), probability.max(CATEGORY))}
    if {"label_probability", "context_label"} <= set(maps):
        pairs["with context"] = maps["context_label"], maps["label_probability"]
    picture = drawn.curves(
        "reliability",
        figures.reliability(pairs, maps["test"]),
        "Reliability",
        "Test pixels, in bins of equal width; the area of a mark is the share of pixels in it.",
    )
    return Section(
        "What the probabilities mean",
        "A label with a stated probability of 0.8 should be right four times out of five. A "
        "confidence that is only a rank says which of two pixels is more certain, and no more.",
        pictures=(picture,),
    )


def _choosing_sections(tree: xr.DataTree) -> Iterator[Section]:
    """Yield what the classifier tried by itself and what the tuning tried, as tables."""
    for title, text, group, names in _CHOICES:
        if group in tree:
            candidates = _table_of(tree, group)
            columns = {
                name: candidates[name].values.tolist() for name in names if name in candidates
            }
            rows = [tuple(map(_cell, row)) for row in zip(*columns.values(), strict=True)]
            headings = [name.replace("_", " ").replace("brier", "Brier") for name in columns]
            yield Section(title, text, (Table(tuple(headings), tuple(rows)),))


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.3f}"


def curve_table(tree: xr.DataTree) -> Table:
    """Return what is quoted of each system's curve; several seeds give mean and spread."""
    summary = _table_of(tree, "summary")
    accuracy = summary["accuracy_at"]
    columns = {
        "OA": _percents(summary["overall_accuracy"]),
        **{f"A({f:g})": _percents(accuracy.sel({AT_FRACTION: f})) for f in accuracy[AT_FRACTION]},
        "max Q": _percents(summary["largest_quality"]),
        "at r": _cells(summary["fraction_of_largest_quality"], ".2f"),
    }
    return _system_table(summary, columns, f"On all test pixels. {_notes(summary)}")


def map_table(tree: xr.DataTree) -> Table:
    """Return how good each system's map is, at the operating point that the goal asks for."""
    summary, judged = _table_of(tree, "summary"), _table_of(tree, "judged")
    columns = {
        "right, nothing rejected": _with_intervals(judged, "overall_accuracy"),
        "test pixels kept": _percents(1 - judged["rejected_fraction"]),
        "scene kept": _percents(1 - judged["rejected_share_of_scene"]),
        "right if kept": _with_intervals(judged, "nonrejected_accuracy"),
        "errors caught": _percents(judged["errors_caught"]),
        "A(0.1)": _percents(summary["accuracy_at"].sel({AT_FRACTION: 0.1})),
    }
    main = tree.children["delivered"].attrs["rejector"]
    half = "calibration" in tree.data_vars
    caption = (
        f"In percent, in brackets 95 % intervals. The delivered map is that of '{main}'; every "
        "system is shown at the operating point that the goal asks of it"
        + (", chosen on one half of the test pixels and judged on the other" if half else "")
        + f". A(r), AURC and ECE are of all test pixels. {_notes(summary, without=_OF_CURVES)}"
    )
    return _system_table(summary, columns, caption)


def _system_table(summary: xr.Dataset, columns: Mapping[str, list[str]], caption: str) -> Table:
    """Return a row per system; the last columns are those that every such table has."""
    columns = {
        **columns,
        "AURC": _cells(summary["aurc"], ".3f"),
        "ECE": _cells(summary["calibration_error"], ".3f"),
    }
    rows = zip(map(str, summary[SYSTEM].values), *columns.values(), strict=True)
    return Table(("system", *columns), tuple(rows), caption)


def _notes(summary: xr.Dataset, *, without: Collection[str] = ()) -> str:
    """Return what the headings mean, and the rows to compare with."""
    names = list(map(str, summary[SYSTEM].values))
    notes = [f"{name}: {text}." for name, text in _NOTES.items() if name not in without]
    notes += [text for name, text in _NOTES_OF_ROWS.items() if name in names]
    n_seeds = summary["overall_accuracy"].notnull().sum(SEED).values
    for name, count in zip(names, n_seeds, strict=True):
        if count < summary.sizes[SEED]:
            notes.append(f"'{name}' is there for {count} of {summary.sizes[SEED]} seeds.")
    return " ".join(notes)


def _with_intervals(dataset: xr.Dataset, name: str) -> list[str]:
    """Return shares of one seed with their intervals; of several the mean and the spread."""
    if dataset.sizes[SEED] > 1:
        return _percents(dataset[name])
    ends = (dataset[f"{name}{end}"].values[0].tolist() for end in ("", "_lower", "_upper"))
    return [findings.with_interval(share, (low, up)) for share, low, up in zip(*ends, strict=True)]


def _percents(shares: xr.DataArray) -> list[str]:
    return _cells(100 * shares, ".1f")


def _cells(numbers: xr.DataArray, form: str) -> list[str]:
    """Return each system's mean over its seeds, with the standard deviation if there are more."""
    cells = []
    for column in numbers.transpose(SYSTEM, SEED).values:
        seeds = column[~np.isnan(column)]
        spread = f" ±{seeds.std(ddof=1):{form}}" if seeds.size > 1 else ""
        cells.append(f"{seeds.mean():{form}}{spread}" if seeds.size else "-")
    return cells
