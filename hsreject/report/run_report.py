"""The report of a run: a result Dataset as a table and as a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import tomli_w
import xarray as xr
from matplotlib.figure import Figure

from hsreject.confidence import label_map
from hsreject.plot.style import save_figure
from hsreject.report import figures
from hsreject.report.page import Picture, Section, Table, write_page
from hsreject.report.promise_section import promise_sections
from hsreject.schema import (
    AT_FRACTION,
    CANDIDATE,
    CATEGORY,
    OPERATING_POINT,
    REJECTOR,
    SEED,
    SYSTEM,
)

SYSTEM_OF_POINT = "system_of_point"
VERSION = "version_"
"""How the names of attributes begin that hold versions."""

_CHOICES = (
    (
        "What the classifier tried",
        "Chains of features by profiles of neighbourhood, scored on the training pixels left out "
        "of five folds; the map is their mean with these weights.",
        "pool_",
        "pool_candidate",
        {
            "chain": "{}",
            "profile": "{}",
            "brier_score": "{:.3f}",
            "temperature": "{:.2g}",
            "weight": "{:.3f}",
        },
    ),
    (
        "Parameters that were tried",
        "Cross-validation on the training pixels alone; the first row, that of the smallest Brier "
        "score, was taken.",
        "tuning_",
        CANDIDATE,
        {
            "settings": "{}",
            "brier_score": "{:.3f}",
            "temperature": "{:.2g}",
            "accuracy": "{:.3f}",
        },
    ),
)
"""Tables of what was chosen from: title, text, how variables begin, dimension, columns."""

Drawn = tuple[str, Figure, str, str]  # name of the file, figure, title, caption

_LEAD = "A land-cover map that says where it does not know, and the evidence for it."
_NOTES = (
    "OA: overall accuracy, nothing rejected. A(r): accuracy of the kept pixels when r is rejected. "
    "Q: share of right decisions. AURC: mean risk over all coverages, lower is better. "
    "ECE: how far the probabilities of the labels are from how often they are right. "
    "Seconds: everything the system needs, from the scene on."
)
_NOTES_OF_ROWS = {
    "coordinates": "'coordinates' knows where a pixel lies and nothing else: a system that is no "
    "better may owe its accuracy to the place.",
    "svm": "'svm' is a tuned support vector machine on the bands.",
    "paper": "'paper' is the protocol of the paper: MNF, sparse regression, vector TV, sequential.",
    "carried model": "'carried model' is what 'hsreject train' would take to other scenes.",
}


def run_report(dataset: xr.Dataset, folder: Path) -> None:
    """Draw the pictures of a result into ``figures`` and write ``report.html`` into `folder`.

    The result of :func:`hsreject.run` is all it needs, so a ``result.nc`` can be reported again.
    """
    (folder / "figures").mkdir()
    overview, measures, *choices = _saved(_measures(dataset), folder / "figures")
    headings, rows = summary_rows(dataset)
    sections = [
        Section(
            "What the rejection is worth",
            "Measured on the test pixels, which no stage has seen.",
            tables=(Table(headings, rows, summary_notes(dataset)),),
            pictures=(overview, measures),
            wide=True,
        ),
        *promise_sections(dataset, folder / "figures"),
        Section(
            "Maps",
            f"The reject maps reject about {100 * dataset.attrs['fraction']:.0f} % of the pixels "
            "that have data.",
            pictures=_saved(_maps(dataset), folder / "figures"),
        ),
        Section(
            "What the probabilities mean",
            "A label that is said to be right with probability 0.8 should be right four times out "
            "of five. A confidence that is only a rank says which of two pixels is surer, and no "
            "more.",
            pictures=_saved(_reliability(dataset), folder / "figures"),
        ),
        *_choosing_sections(dataset),
        Section("Choosing an operating point", pictures=tuple(choices), wide=True),
        Section("How it was made", listings=_listings(dataset)),
    ]
    write_page(
        folder / "report.html", title=str(dataset.attrs["title"]), lead=_LEAD, sections=sections
    )


def along(dataset: xr.Dataset, dim: str) -> xr.Dataset:
    """Return the variables that have a dimension, without scalar coordinates."""
    chosen = dataset[[name for name, array in dataset.data_vars.items() if dim in array.dims]]
    return chosen.drop_vars([name for name, coord in chosen.coords.items() if not coord.ndim])


def _rejector_curves(dataset: xr.Dataset) -> dict[str, xr.Dataset]:
    """Return the operating points of each rejector, by its name."""
    points = along(dataset, OPERATING_POINT)
    system = points[SYSTEM_OF_POINT].values
    points = points.drop_vars(SYSTEM_OF_POINT)
    return {
        str(name): points.isel({OPERATING_POINT: system == name})
        for name in dataset[REJECTOR].values
    }


def summary_rows(dataset: xr.Dataset) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the headings and the rows of the summary; several seeds give mean and spread."""
    fractions = [float(f) for f in dataset[AT_FRACTION].values]
    shares = (f"A({f:g})" for f in fractions)
    headings = ("system", "OA", *shares, "max Q", "at r", "AURC", "ECE", "seconds")
    rows = []
    for name in dataset[SYSTEM].values:
        one = dataset.sel({SYSTEM: name})
        rows.append(
            (
                str(name),
                _percent(one["overall_accuracy"]),
                *(_percent(one["accuracy_at"].sel({AT_FRACTION: f})) for f in fractions),
                _percent(one["largest_quality"]),
                _number(one["fraction_of_largest_quality"], ".2f"),
                _number(one["aurc"], ".3f"),
                _number(one["calibration_error"], ".3f"),
                _number(one["seconds"], ".2f", spread=False),
            )
        )
    return headings, tuple(rows)


def summary_notes(dataset: xr.Dataset) -> str:
    """Return what the headings mean, the rows that stand for comparison, and an idle context."""
    shown = set(map(str, dataset[SYSTEM].values))
    notes = [_NOTES, *(text for name, text in _NOTES_OF_ROWS.items() if name in shown)]
    idle = dataset["context_is_idle"].values
    if idle.any():
        seeds = "" if idle.all() else f" for {idle.sum()} of {idle.size} seeds"
        notes.append(
            f"The training pixels chose a context of weight 0{seeds}: rejection after it is then "
            "pixelwise rejection of the classifier."
        )
    return " ".join(notes)


def _percent(values: xr.DataArray) -> str:
    return _number(100 * values, ".1f")


def _number(values: xr.DataArray, form: str, *, spread: bool = True) -> str:
    """Return the mean over the seeds, with the standard deviation when there are several."""
    numbers = np.atleast_1d(values.values)
    if np.isnan(numbers).any():
        return "-"
    text = format(float(numbers.mean()), form)
    if not spread or values.sizes.get(SEED, 1) == 1:
        return text
    return f"{text} ±{format(float(numbers.std(ddof=1)), form)}"


def _saved(pictures: Iterable[Drawn], folder: Path) -> tuple[Picture, ...]:
    """Save pictures, each drawn when its turn comes."""
    return tuple(
        Picture(save_figure(figure, folder / name, dpi=200)[0], title, caption)
        for name, figure, title, caption in pictures
    )


def _maps(dataset: xr.Dataset) -> Iterator[Drawn]:
    """Draw the scene, the reference, the labels and the rejections."""
    yield (
        "false_color",
        figures.false_color(dataset["false_color"]),
        "False colour",
        "Near infrared, red and green, where the scene knows its wavelengths.",
    )
    reference = figures.class_map(dataset["reference"])
    yield "reference", reference, "Reference", "What is known on the ground."
    if "context_label" in dataset:
        label = figures.class_map(dataset["context_label"])
        yield "label", label, "Labels with context", "SegSALSA: every pixel gets a label."
    for name in dataset[REJECTOR].values:
        maps = dataset.sel({REJECTOR: name})
        yield (
            f"rejected_{name}",
            figures.reject_map(maps["label"], maps["rejected"]),
            f"Reject map, {name}",
            "The map to use: rejected pixels are those whose label is not sure enough.",
        )
        yield (
            f"confidence_{name}",
            figures.confidence_map(
                maps["confidence"].assign_attrs(long_name=str(maps["confidence_meaning"].values))
            ),
            f"Confidence, {name}",
            "Larger is surer; the rejector keeps the pixels with the largest.",
        )
        yield (
            f"outcome_{name}",
            figures.outcome_map(maps["label"], maps["test"], maps["rejected"]),
            f"Outcome, {name}",
            "Test pixels only: what was kept and rejected, rightly and wrongly.",
        )


def _measures(dataset: xr.Dataset) -> Iterator[Drawn]:
    """Draw the run in one row, then measures, relative optimality and costs of the rejectors."""
    curves = _rejector_curves(dataset)
    names, with_threshold = dataset[REJECTOR].values, dataset["has_threshold"].values
    isolated = [str(name) for name in names[~with_threshold]]
    idle = bool(dataset["context_is_idle"][0])  # then all are alike, and the first is the plainest
    shown = str((names[with_threshold] if with_threshold.any() else names)[0 if idle else -1])
    yield (
        "overview",
        figures.overview(dataset, curves, shown, isolated),
        "In one look",
        "The scene, what is known on the ground, the map that leaves out what is not sure enough, "
        "and the accuracy of what is kept; the filled mark is the largest classification quality.",
    )
    yield (
        "measures",
        figures.measures(curves, isolated=isolated),
        "The three measures",
        "Over the rejected fraction of the test pixels. The mark is the largest classification "
        "quality: the most right decisions.",
    )
    yield (
        "relative_optimality",
        figures.relative_optimality(curves),
        "Relative optimality",
        "Of each operating point with respect to each reference: above 0 it makes more right "
        "decisions.",
    )
    yield (
        "costs",
        figures.costs(curves, isolated=isolated),
        "What rejection may cost",
        "The cost of a rejection from which on it is better to reject nothing; and for each cost "
        "(an error costs 1) the least mean cost per pixel and the fraction to reject.",
    )


def _reliability(dataset: xr.Dataset) -> Iterator[Drawn]:
    """Draw how often labels are right over how probable they are, and how probable they are."""
    probability = dataset["probability"]
    said = {"classifier": (label_map(probability), probability.max(CATEGORY))}
    if "label_probability" in dataset:
        said["with context"] = dataset["context_label"], dataset["label_probability"]
    yield (
        "reliability",
        figures.reliability(said, dataset["test"]),
        "Reliability",
        "Test pixels, in bins of equal width; the area of a mark is the share of pixels in it.",
    )
    *_, (_, last) = said.values()
    yield (
        "label_probability",
        figures.confidence_map(last.assign_attrs(long_name="probability of the label")),
        "Probability of the label",
        "With context, at the temperature that suits the training pixels left out."
        if "label_probability" in dataset
        else "Of the classifier alone: nothing was left out to tell how honest the context is.",
    )


def _choosing_sections(dataset: xr.Dataset) -> list[Section]:
    """Return what the classifier tried by itself and what the tuning tried, as tables."""
    sections = []
    for title, text, prefix, dim, columns in _CHOICES:
        if dim in dataset.dims:
            cells = [
                [form.format(value) for value in dataset[f"{prefix}{name}"].values]
                for name, form in columns.items()
            ]
            headings = tuple(name.replace("_", " ") for name in columns)
            table = Table(headings, tuple(zip(*cells, strict=True)))
            sections.append(Section(title, text, tables=(table,)))
    return sections


def _listings(dataset: xr.Dataset) -> tuple[tuple[str, str], ...]:
    versions = {
        name.removeprefix(VERSION): str(text)
        for name, text in dataset.attrs.items()
        if name.startswith(VERSION)
    }
    configuration = str(dataset.attrs["configuration"])
    return ("Configuration", configuration), ("Versions", tomli_w.dumps(versions))
