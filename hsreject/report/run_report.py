"""The report of a run: the tree of its result as a page, and what only a run knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import tomli_w
import xarray as xr

from hsreject.class_tree import ClassTree
from hsreject.confidence import label_map
from hsreject.plot.image_displays import FalseColorDisplay
from hsreject.plot.map_displays import ClassMapDisplay
from hsreject.rejection.hierarchical import coarsest_answers, credited_label
from hsreject.rejection.rejector import UNKNOWN
from hsreject.report import figures, findings
from hsreject.report.evaluation import Evaluation, evaluate
from hsreject.report.explorer import write_explorer
from hsreject.report.figures import Pictures
from hsreject.report.levels_section import level_planes, level_sections
from hsreject.report.page import Fact, Headline, Picture, Section, Swatch, Table, write_page
from hsreject.report.promise_section import promise_sections
from hsreject.report.system_tables import map_table
from hsreject.sampling.polygons import is_digitised, polygon_numbers
from hsreject.schema import (
    CATEGORY,
    LABEL_WITH_REJECTION,
    LEVEL_CONFIDENCE,
    NO_REFERENCE,
    OPERATING_POINT,
    POLYGON,
    REJECTOR,
    SEED,
    SYSTEM,
)

SYSTEM_OF_POINT = "system_of_point"
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
        "Parameters that were tried",
        "Cross-validation on the training pixels alone; the first row was taken.",
        "tuning",
        ("settings", "brier_score", "temperature", "accuracy"),
    ),
)
"""Tables of what was chosen from: title, text, group, columns."""


def evaluate_map(maps: xr.Dataset, split: xr.Dataset, *, ranked: bool) -> Evaluation:
    """Return the evaluation of a map on the test pixels that have chosen nothing.

    `maps` holds `label`, `confidence` and `rejected` (y, x), of which the confidence counts where
    the map is `ranked` by it; `split` holds `test` and `calibration`, if half of them chose.
    """
    test = split["test"]
    evaluation = evaluate(
        judged_pixels(split),
        credited_label(maps, test),
        maps["confidence"] if ranked else None,
        rejected=maps["rejected"],
        groups=polygon_numbers(test) if is_digitised(test) else None,
        measured_on="test pixels",
    )
    more = {UNKNOWN: maps[UNKNOWN].variable} if UNKNOWN in maps else {}
    answer = maps[LABEL_WITH_REJECTION]
    groups = ClassTree.from_attrs(answer.attrs)
    if groups is not None:  # measures have the label that was credited, maps and areas the answer
        coarsest = coarsest_answers(maps["label"], groups)
        more["answer"] = answer.where(~maps["rejected"], coarsest).variable
    return replace(evaluation, maps=evaluation.maps.assign(more)) if more else evaluation


def judged_pixels(split: xr.Dataset) -> xr.DataArray:
    """Return the labels of the test pixels that have chosen nothing, 0 elsewhere."""
    test = split["test"].drop_vars(POLYGON, errors="ignore")
    if "calibration" not in split:
        return test
    chose = split["calibration"].values != NO_REFERENCE
    return test.copy(data=np.where(chose, test.dtype.type(NO_REFERENCE), test.values))


def run_report(
    tree: xr.DataTree,
    folder: Path,
    *,
    evaluation: Evaluation | None = None,
    with_explorer: bool = True,
) -> None:
    """Draw the pictures of a result into ``figures`` and write ``report.html`` into `folder`.

    The result of :func:`hsreject.run` is all it needs, so a ``result.nc`` can be reported again;
    the `evaluation` of the delivered map is made where it is not given.
    """
    main = str(tree.children["delivered"].attrs["rejector"])
    maps = tree.to_dataset()
    others = [name for name in map(str, maps[REJECTOR].values) if name != main]
    if "judged" in tree and evaluation is None:
        one = maps.sel({REJECTOR: main}, drop=True)
        one["confidence"].attrs["long_name"] = str(one["confidence_meaning"].values)
        evaluation = evaluate_map(one, one, ranked=bool(one["has_threshold"]))
    link = (EXPLORER, _INVITATION) if with_explorer else None
    if evaluation is None:
        drawn = Pictures(folder / "figures")
        headline = Headline(
            _statement(tree),
            warnings=_lines(tree, "warnings"),
            notes=_notes(tree),
            link=link,
            files=(MAP, "result.nc"),
        )
        sections = [_maps_without_test(maps, drawn, main)]
        details = [*_choosing_sections(tree), _how_it_was_made(tree)]
    else:
        drawn = Pictures(folder / "figures", evaluation.grid)
        curves = {name: curve_of(tree, name) for name in (main, *others)}
        isolated = [name for name in curves if not maps["has_threshold"].sel({REJECTOR: name})]
        reached = bool(tree.children["delivered"].attrs["goal_reached"])
        headline = findings.headline(
            evaluation,
            beside=_beside(tree),
            promise=str(tree.children["promise"].attrs["statement"]) if _promised(tree) else "",
            warnings=_lines(tree, "warnings"),
            goal=None if reached else findings.goal_table(evaluation),
            notes=_notes(tree),
            files=_FILES,
            link=link,
        )
        sections = [
            findings.where(
                evaluation, drawn, name=main, others=[*_other_maps(maps, drawn, others)]
            ),
            *level_sections(maps[LABEL_WITH_REJECTION].sel({REJECTOR: main}), judged_pixels(maps)),
            findings.per_class(evaluation),
            findings.how_much(evaluation, curves, drawn, isolated=isolated),
        ]
        details = [
            Section("Systems side by side", tables=(map_table(tree),)),
            *promise_sections(tree, drawn),
            findings.measures_section(evaluation, curves, drawn, isolated=isolated),
            _probabilities(maps, drawn),
            *_choosing_sections(tree),
            _how_it_was_made(tree),
        ]
    write_page(
        folder / "report.html",
        title=str(tree.attrs["title"]),
        headline=headline,
        sections=sections,
        details=details,
    )


def write_run_explorer(
    tree: xr.DataTree, folder: Path, scene: xr.DataArray, swept: Mapping[str, xr.Dataset]
) -> None:
    """Write ``explorer.html``: all rejectors, the delivered one first, with spectra of the scene.

    `swept` holds the maps of each, at every operating point where labels vary. It opens with the
    delivered map, and measures on the pixels that the report measures on.
    """
    main = str(tree.children["delivered"].attrs["rejector"])
    maps = tree.to_dataset()
    shared = {"reference": maps["reference"], "test": judged_pixels(maps)}
    if is_digitised(maps["test"]):
        shared["group"] = maps["test"].copy(data=polygon_numbers(maps["test"]))
    systems = {}
    for name in sorted(swept, key=lambda name: name != main):
        one = swept[name]
        if LEVEL_CONFIDENCE in one:
            one = level_planes(one, tree.children["delivered"]["threshold"].item())
        varies = OPERATING_POINT in one["label"].dims
        one = one[["label", "rejected" if varies else "confidence"]]
        systems[name] = one.assign(shared).drop_vars(POLYGON, errors="ignore")
    threshold = tree.children["delivered"]["threshold"].item()
    certified = _promised(tree) and np.isfinite(threshold)
    write_explorer(
        systems,
        folder / EXPLORER,
        scene=scene,
        title=str(tree.attrs["title"]),
        fraction=float(tree.attrs["fraction"]),
        certified={main: threshold} if certified else None,
    )


def _promised(tree: xr.DataTree) -> bool:
    return "promise" in tree and "evaluation" in tree.children["promise"].attrs


def _lines(tree: xr.DataTree, name: str) -> tuple[str, ...]:
    """Return the sentences of an attribute of the delivered map; one comes from a file as text."""
    said = tree.children["delivered"].attrs[name]
    return tuple(filter(None, [said] if isinstance(said, str) else map(str, said)))


def _statement(tree: xr.DataTree) -> str:
    return str(tree.children["delivered"].attrs["statement"])


def run_words(tree: xr.DataTree) -> list[str]:
    """Return what a run says on a terminal: what the map is worth, what one must not miss, why."""
    return [_statement(tree), *_lines(tree, "warnings"), *_notes(tree)]


def _notes(tree: xr.DataTree) -> tuple[str, ...]:
    notes = [*_lines(tree, "notes"), chosen_in_words(tree)]
    if "summary" in tree and tree.children["summary"].sizes[SEED] > 1:
        notes.append(f"The map is that of seed {tree.attrs['seed']}; tables show all seeds.")
    return tuple(filter(None, notes))


def _beside(tree: xr.DataTree) -> list[Fact]:
    """Return what a map of coordinates alone reaches."""
    judged = tree.children["judged"].to_dataset(inherit=False).isel({SEED: 0})
    if "coordinates" not in judged[SYSTEM].values:
        return []
    accuracy = float(judged["overall_accuracy"].sel({SYSTEM: "coordinates"}))
    said = "of all test pixels are right on a map of coordinates alone"
    return [Fact(findings.percent(accuracy), said, "nothing rejected")]


def chosen_in_words(tree: xr.DataTree) -> str:
    """Return what the tuning has chosen, in a sentence; empty where nothing was tuned."""
    if "tuning" not in tree:
        return ""
    settings = tree.children["tuning"].to_dataset(inherit=False)["settings_of_seed"]
    texts = list(map(str, settings.values))
    words = f"Chosen by cross-validation: {texts[0]}"
    if len(set(texts)) > 1:
        pairs = zip(settings[SEED].values, texts, strict=True)
        words = "Chosen by cross-validation, by seed: " + ", ".join(f"{s}: {t}" for s, t in pairs)
    dropped = any("context.weight=0.0" in text for text in texts)
    return words + (". A weight of 0 is no context: rejection is pixelwise then." * dropped or ".")


def configuration(tree: xr.DataTree) -> str:
    """Return the configuration, with what was chosen where it leaves something open."""
    chosen = chosen_in_words(tree)
    comment = f"# {chosen}\n" if chosen else ""
    return f"{comment}{tree.attrs['configuration']}"


def _other_maps(maps: xr.Dataset, drawn: Pictures, names: Iterable[str]) -> Iterator[Picture]:
    """Draw the scene, and the maps of the rejectors that are not delivered."""
    picture = FalseColorDisplay.from_cube(maps["false_color"], bands=(0, 1, 2)).picture
    yield drawn.map(
        "false_color",
        picture.values,
        "The scene",
        "Near infrared, red and green, where it knows its wavelengths.",
    )
    for name in names:
        yield _picture_of(maps, drawn, name, f"The map of {name}")


def _picture_of(maps: xr.Dataset, drawn: Pictures, name: str, title: str) -> Picture:
    one = maps[["label", "rejected", "confidence"]].sel({REJECTOR: name})
    painted = ClassMapDisplay.from_labels(one["label"]).paint()
    share = findings.percent(float(one["rejected"].sum() / one["confidence"].notnull().sum()))
    return drawn.map(
        f"rejected_{name}",
        painted.pixels,
        title,
        f"It rejects {share} of the scene.",
        rejected=one["rejected"],
    )


def _maps_without_test(maps: xr.Dataset, drawn: Pictures, main: str) -> Section:
    """Return the delivered map where no test pixel can judge it."""
    label = maps["label"].sel({REJECTOR: main})
    legend = [
        Swatch(c.color, c.name) for c in ClassMapDisplay.from_labels(label).paint().categories
    ]
    pictures = (_picture_of(maps, drawn, main, "The map"), *_other_maps(maps, drawn, ()))
    legend.append(Swatch("", "rejected"))
    return Section(findings.WHERE, legend=tuple(legend), pictures=pictures)


def curve_of(tree: xr.DataTree, name: str) -> xr.Dataset:
    """Return the operating points of a system."""
    points = tree.children["points"].to_dataset(inherit=False)
    chosen = points[SYSTEM_OF_POINT].values == name
    return points.isel({OPERATING_POINT: chosen}).drop_vars(SYSTEM_OF_POINT)


def _how_it_was_made(tree: xr.DataTree) -> Section:
    """Return the seconds of each stage, its own alone, configuration and versions."""
    seconds = tree.children["stages"].to_dataset(inherit=False)["seconds"]
    rows = zip(seconds["stage"].values, seconds.values, strict=True)
    cells = tuple((str(name), f"{value:.2f}") for name, value in rows)
    versions = {str(name): str(text) for name, text in tree.children["versions"].attrs.items()}
    return Section(
        "How it was made",
        "To make it again, with the config.toml beside this page: hsreject run config.toml --out "
        "again",
        tables=(Table(("stage", "seconds of its own"), cells),),
        listings=(("Configuration", configuration(tree)), ("Versions", tomli_w.dumps(versions))),
    )


def _probabilities(maps: xr.Dataset, drawn: Pictures) -> Section:
    """Draw how often labels are right over how probable they are."""
    probability = maps["probability"]
    said = {"classifier": (label_map(probability), probability.max(CATEGORY))}
    if {"label_probability", "context_label"} <= set(maps):
        said["with context"] = maps["context_label"], maps["label_probability"]
    picture = drawn.curves(
        "reliability",
        figures.reliability(said, maps["test"]),
        "Reliability",
        "Test pixels, in bins of equal width; the area of a mark is the share of pixels in it.",
    )
    return Section(
        "What the probabilities mean",
        "A label that is said to be right with probability 0.8 should be right four times out of "
        "five. A confidence that is only a rank says which of two pixels is surer, and no more.",
        pictures=(picture,),
    )


def _choosing_sections(tree: xr.DataTree) -> list[Section]:
    """Return what the classifier tried by itself and what the tuning tried, as tables."""
    sections = []
    for title, text, group, names in _CHOICES:
        if group in tree:
            tried = tree.children[group].to_dataset(inherit=False)
            known = [name for name in names if name in tried]
            columns = [tried[name].values.tolist() for name in known]
            rows = [tuple(map(_cell, row)) for row in zip(*columns, strict=True)]
            headings = [name.replace("_", " ").replace("brier", "Brier") for name in known]
            sections.append(Section(title, text, (Table(tuple(headings), tuple(rows)),)))
    return sections


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.3f}"
