"""The report of a run: a result Dataset as a table and as a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import tomli_w
import xarray as xr

from hsreject.confidence import label_map
from hsreject.plot.image_displays import FalseColorDisplay
from hsreject.plot.map_displays import ClassMapDisplay
from hsreject.report import figures, findings
from hsreject.report.evaluation import Evaluation, evaluate
from hsreject.report.explorer import write_explorer
from hsreject.report.figures import Pictures
from hsreject.report.page import Fact, Headline, Picture, Section, Table, write_page
from hsreject.report.promise_section import promise_sections
from hsreject.report.system_tables import map_table
from hsreject.schema import (
    CANDIDATE,
    CATEGORY,
    LABEL_WITH_REJECTION,
    OPERATING_POINT,
    REJECTOR,
    SEED,
    SYSTEM,
)

SYSTEM_OF_POINT = "system_of_point"
STAGE = "stage"
EXPLORER = "explorer.html"
PLACE_ALONE = "coordinates"
_INVITATION = "Explore: reject more or less, and see what it is worth"
VERSION = "version_"
"""How the names of attributes begin that hold versions."""

_CHOICES = (
    (
        "What the classifier tried",
        "Chains of features by profiles of neighbourhood, scored on the training pixels left out "
        "of five folds; the map is their mean with these weights.",
        "pool_",
        "pool_candidate",
        ("chain", "profile", "brier_score", "temperature", "weight"),
    ),
    (
        "Parameters that were tried",
        "Cross-validation on the training pixels alone; the first row, that of the smallest Brier "
        "score, was taken.",
        "tuning_",
        CANDIDATE,
        ("settings", "brier_score", "temperature", "accuracy"),
    ),
)
"""Tables of what was chosen from: title, text, how variables begin, dimension, columns."""


def run_report(dataset: xr.Dataset, folder: Path, *, with_explorer: bool = True) -> None:
    """Draw the pictures of a result into ``figures`` and write ``report.html`` into `folder`.

    The result of :func:`hsreject.run` is all it needs, so a ``result.nc`` can be reported again.
    """
    alike = shown_rejectors(dataset)
    main, *others = alike
    evaluation = _evaluation(dataset, main)
    drawn = Pictures(folder / "figures", evaluation.grid)
    curves = {name: _curve(dataset, name) for name in alike}
    isolated = [name for name in alike if not _has_threshold(dataset, name)]
    sections = [
        findings.where(
            evaluation,
            drawn,
            name=main,
            text=_coinciding(alike, idle=bool(dataset["context_is_idle"][0])),
            others=[_scene(dataset, drawn)],
        ),
        findings.per_class(evaluation),
        findings.how_much(evaluation, curves, drawn, isolated=isolated),
    ]
    details = [
        Section(
            findings.HOW_GOOD,
            "Measured on the test pixels, which nothing has learned from.",
            tables=(map_table(dataset, alike),),
        ),
        *promise_sections(dataset, drawn),
        Section("Other rejectors", pictures=tuple(_other_maps(dataset, drawn, others))),
        findings.measures_section(evaluation, curves, drawn, isolated=isolated),
        _probabilities(dataset, drawn),
        *_choosing_sections(dataset),
        Section(
            "How it was made",
            f"Seeds: {', '.join(map(str, dataset[SEED].values))}. To make it again, with the "
            "config.toml beside this page: hsreject run config.toml --out again",
            tables=(_stage_table(dataset),),
            listings=_listings(dataset),
        ),
    ]
    write_page(
        folder / "report.html",
        title=str(dataset.attrs["title"]),
        headline=_headline(dataset, evaluation, main, with_explorer=with_explorer),
        sections=sections,
        details=details,
    )


def write_run_explorer(
    dataset: xr.Dataset,
    folder: Path,
    scene: xr.DataArray,
    at_points: Mapping[str, xr.Dataset],
) -> None:
    """Write ``explorer.html``: all rejectors whose maps differ, with the spectra of the scene.

    Where labels vary, `at_points` has the maps of every operating point.
    """
    alike = shown_rejectors(dataset)
    shared = dataset[["reference", "test"]]
    systems = {}
    for name in alike:
        maps = at_points.get(name, dataset.sel({REJECTOR: name}, drop=True))
        varies = OPERATING_POINT in maps["label"].dims
        systems[name] = maps[["label", "rejected" if varies else "confidence"]].assign(shared)
    write_explorer(
        systems,
        folder / EXPLORER,
        scene=scene,
        title=str(dataset.attrs["title"]),
        fraction=float(dataset.attrs["fraction"]),
        certified=_certified(dataset, alike),
    )


def _certified(dataset: xr.Dataset, alike: Mapping[str, list[str]]) -> dict[str, float]:
    """Return the threshold that the run has certified, by the rejector that is shown for it."""
    name = dataset.attrs.get("promise_rejector")
    if name is None or not _has_threshold(dataset, name):
        return {}
    shown = next(one for one, others in alike.items() if name in {one, *others})
    threshold = float(dataset["promise_threshold"].sel({REJECTOR: name}).isel({SEED: 0}))
    return {} if np.isnan(threshold) else {shown: threshold}


def shown_rejectors(dataset: xr.Dataset) -> dict[str, list[str]]:
    """Return the rejectors whose maps differ, each with those that give the same maps as it does.

    With a context of weight 0 they all come to rejection without it. The map of the first opens the
    page: it is the last one with a threshold, else the last.
    """
    found: dict[str, list[str]] = {}
    for name in map(str, dataset[REJECTOR].values):
        same = [other for other in found if _same_maps(dataset, name, other)]
        if same:
            found[same[0]].append(name)
        else:
            found[name] = []
    main = ([name for name in found if _has_threshold(dataset, name)] or list(found))[-1]
    return {main: found.pop(main), **found}


def _has_threshold(dataset: xr.Dataset, name: str) -> bool:
    return bool(dataset["has_threshold"].sel({REJECTOR: name}))


def _same_maps(dataset: xr.Dataset, one: str, other: str) -> bool:
    maps = dataset[[LABEL_WITH_REJECTION, "label", "confidence"]]
    first, second = (maps.sel({REJECTOR: name}, drop=True) for name in (one, other))
    return bool(first.equals(second))


def _evaluation(dataset: xr.Dataset, name: str) -> Evaluation:
    """Return the evaluation, on the test pixels, of the maps that a rejector delivers."""
    maps = dataset.sel({REJECTOR: name})
    meaning = {"long_name": str(maps["confidence_meaning"].values)}
    ranked = bool(maps["has_threshold"])
    found = evaluate(
        dataset["test"],
        maps["label"],
        maps["confidence"].assign_attrs(meaning) if ranked else None,
        rejected=maps["rejected"],
    )
    return replace(found, measured_on="test pixels")


def run_statement(dataset: xr.Dataset) -> str:
    """Return what the map of a run is worth, and what was chosen, in a few sentences."""
    main = next(iter(shown_rejectors(dataset)))
    said = findings.statement(_evaluation(dataset, main))
    return " ".join(filter(None, (said, chosen_in_words(dataset))))


def _headline(
    dataset: xr.Dataset, evaluation: Evaluation, main: str, *, with_explorer: bool
) -> Headline:
    beside = []
    if PLACE_ALONE in dataset[SYSTEM].values:
        place = dataset.sel({SYSTEM: PLACE_ALONE}).isel({SEED: 0})
        accuracy = float(place["map_nonrejected_accuracy"])
        beside.append(
            Fact(
                findings.percent(accuracy),
                "with location alone",
                f"of what that keeps; {findings.percent(float(place['map_overall_accuracy']))} "
                "with nothing rejected",
            )
        )
    notes = [f"The map is maps/{LABEL_WITH_REJECTION}_{main}.tif.", chosen_in_words(dataset)]
    if dataset.sizes[SEED] > 1:
        notes.append(f"It is that of seed {dataset.attrs['seed']}; tables show all seeds.")
    return findings.headline(
        evaluation,
        beside=beside,
        promise=str(dataset.attrs.get("promise_statement", "")),
        notes=[" ".join(filter(None, notes))],
        link=(EXPLORER, _INVITATION) if with_explorer else None,
    )


def chosen_in_words(dataset: xr.Dataset) -> str:
    """Return what the tuning has chosen, in a sentence; empty where nothing was tuned."""
    if "chosen_settings" not in dataset:
        return ""
    chosen = dataset["chosen_settings"]
    if chosen.size == 1 or len(set(chosen.values)) == 1:
        return f"Chosen by cross-validation: {chosen.values[0]}."
    by_seed = (
        f"{seed}: {text}" for seed, text in zip(chosen[SEED].values, chosen.values, strict=True)
    )
    return f"Chosen by cross-validation, by seed: {', '.join(by_seed)}."


def configuration(dataset: xr.Dataset) -> str:
    """Return the configuration, with what was chosen where it leaves something open."""
    chosen = chosen_in_words(dataset)
    comment = f"# {chosen}\n" if chosen else ""
    return f"{comment}{dataset.attrs['configuration']}"


def _coinciding(alike: Mapping[str, list[str]], *, idle: bool) -> str:
    """Say which rejectors give the same maps, so that one stands for them."""
    same = [f"{' and '.join(others)} as from {name}" for name, others in alike.items() if others]
    if not same:
        return ""
    why = ", since a context of weight 0 was chosen" if idle else ""
    return f"The same maps come from {', '.join(same)}{why}: they are shown once."


def _scene(dataset: xr.Dataset, drawn: Pictures) -> Picture:
    picture = FalseColorDisplay.from_cube(dataset["false_color"], bands=(0, 1, 2)).picture
    caption = "Near infrared, red and green, where it knows its wavelengths."
    return drawn.map("false_color", picture.values, "The scene", caption)


def _other_maps(dataset: xr.Dataset, drawn: Pictures, names: Iterable[str]) -> Iterator[Picture]:
    """Draw the maps of the rejectors that the page does not open with."""
    for name in names:
        maps = dataset.sel({REJECTOR: name})
        painted = ClassMapDisplay.from_labels(maps["label"]).paint()
        share = findings.percent(float(maps["rejected"].sum() / maps["confidence"].notnull().sum()))
        yield drawn.map(
            f"rejected_{name}",
            painted.pixels,
            f"The map of {name}",
            f"It rejects {share} of the scene.",
            rejected=maps["rejected"],
        )


def along(dataset: xr.Dataset, dim: str) -> xr.Dataset:
    """Return the variables that have a dimension, without scalar coordinates."""
    chosen = dataset[[name for name, array in dataset.data_vars.items() if dim in array.dims]]
    return chosen.drop_vars([name for name, coord in chosen.coords.items() if not coord.ndim])


def _curve(dataset: xr.Dataset, name: str) -> xr.Dataset:
    """Return the operating points of a system."""
    points = along(dataset, OPERATING_POINT)
    chosen = points[SYSTEM_OF_POINT].values == name
    return points.isel({OPERATING_POINT: chosen}).drop_vars(SYSTEM_OF_POINT)


def _stage_table(dataset: xr.Dataset) -> Table:
    """Return the seconds of each stage, its own alone."""
    rows = zip(dataset[STAGE].values, dataset["stage_seconds"].values, strict=True)
    cells = tuple((str(name), f"{seconds:.2f}") for name, seconds in rows)
    return Table(("stage", "seconds of its own"), cells)


def _probabilities(dataset: xr.Dataset, drawn: Pictures) -> Section:
    """Draw how often labels are right over how probable they are."""
    probability = dataset["probability"]
    said = {"classifier": (label_map(probability), probability.max(CATEGORY))}
    if "label_probability" in dataset and not dataset["context_is_idle"][0]:
        said["with context"] = dataset["context_label"], dataset["label_probability"]
    picture = drawn.curves(
        "reliability",
        figures.reliability(said, dataset["test"]),
        "Reliability",
        "Test pixels, in bins of equal width; the area of a mark is the share of pixels in it.",
    )
    return Section(
        "What the probabilities mean",
        "A label that is said to be right with probability 0.8 should be right four times out of "
        "five. A confidence that is only a rank says which of two pixels is surer, and no more.",
        pictures=(picture,),
    )


def _choosing_sections(dataset: xr.Dataset) -> list[Section]:
    """Return what the classifier tried by itself and what the tuning tried, as tables."""
    sections = []
    for title, text, prefix, dim, names in _CHOICES:
        if dim in dataset.dims:
            columns = [dataset[f"{prefix}{name}"].values.tolist() for name in names]
            rows = [tuple(map(_cell, row)) for row in zip(*columns, strict=True)]
            headings = [name.replace("_", " ").replace("brier", "Brier") for name in names]
            sections.append(Section(title, text, (Table(tuple(headings), tuple(rows)),)))
    return sections


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.3f}"


def _listings(dataset: xr.Dataset) -> tuple[tuple[str, str], ...]:
    versions = {
        name.removeprefix(VERSION): str(text)
        for name, text in dataset.attrs.items()
        if name.startswith(VERSION)
    }
    return ("Configuration", configuration(dataset)), ("Versions", tomli_w.dumps(versions))
