"""Systems side by side, as tables: by their curves on a terminal, by their maps on a page."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import xarray as xr

from hsreject.report.findings import with_interval
from hsreject.report.page import Table
from hsreject.schema import AT_FRACTION, SEED, SYSTEM

_NOTES = {
    "OA": "overall accuracy, nothing rejected",
    "A(r)": "accuracy of the kept test pixels when r of them are rejected",
    "Q": "share of right decisions",
    "AURC": "mean risk over all coverages, lower is better",
    "ECE": "how far the probabilities of the labels are from how often they are right",
    "Seconds": "of all stages that the system needs, from the scene on",
}
_OF_CURVES = {"OA", "Q"}  # headings that a table about maps does not have
_NOTES_OF_ROWS = {
    "coordinates": "'coordinates' knows where a pixel lies and nothing else: a system that is no "
    "better may owe its accuracy to the place.",
    "svm": "'svm' is a tuned support vector machine on the bands.",
    "paper": "'paper' is the protocol of the paper: sparse regression, vector TV, sequential; its "
    "features (15 MNF components) and weight (2) are ours.",
    "carried model": "'carried model' is what 'hsreject train' would take to other scenes.",
}


def curve_table(tree: xr.DataTree) -> Table:
    """Return what is quoted of each system's curve; several seeds give mean and spread."""
    summary = tree.children["summary"].to_dataset(inherit=False)
    accuracy = summary["accuracy_at"]
    columns = {
        "OA": _percents(summary["overall_accuracy"]),
        **{f"A({f:g})": _percents(accuracy.sel({AT_FRACTION: f})) for f in accuracy[AT_FRACTION]},
        "max Q": _percents(summary["largest_quality"]),
        "at r": _cells(summary["fraction_of_largest_quality"], ".2f"),
        **_last_columns(summary),
    }
    return _table(summary, columns, f"On all test pixels. {_notes(summary)}")


def map_table(tree: xr.DataTree) -> Table:
    """Return what each system's map is worth, at the operating point that the goal asks for."""
    summary, judged = (
        tree.children[name].to_dataset(inherit=False) for name in ("summary", "judged")
    )
    columns = {
        "right, nothing rejected": _with_intervals(judged, "overall_accuracy"),
        "test pixels kept": _percents(1 - judged["rejected_fraction"]),
        "scene kept": _percents(1 - judged["rejected_share_of_scene"]),
        "right if kept": _with_intervals(judged, "nonrejected_accuracy"),
        "errors caught": _percents(judged["errors_caught"]),
        "A(0.1)": _percents(summary["accuracy_at"].sel({AT_FRACTION: 0.1})),
        **_last_columns(summary),
    }
    main = tree.children["delivered"].attrs["rejector"]
    half = "calibration" in tree.data_vars
    caption = (
        f"In percent, in brackets 95 % intervals. The delivered map is that of '{main}'; every "
        "system is shown at the operating point that the goal asks of it"
        + (", chosen on one half of the test pixels and judged on the other" if half else "")
        + f". A(r), AURC and ECE are of all test pixels. {_notes(summary, without=_OF_CURVES)}"
    )
    return _table(summary, columns, caption)


def _table(summary: xr.Dataset, columns: Mapping[str, list[str]], caption: str) -> Table:
    rows = zip(map(str, summary[SYSTEM].values), *columns.values(), strict=True)
    return Table(("system", *columns), tuple(rows), caption)


def _notes(summary: xr.Dataset, *, without: Collection[str] = ()) -> str:
    """Return what the headings mean, and the rows that stand for comparison."""
    names = list(map(str, summary[SYSTEM].values))
    notes = [f"{name}: {text}." for name, text in _NOTES.items() if name not in without]
    notes += [text for name, text in _NOTES_OF_ROWS.items() if name in names]
    n_seeds = summary["overall_accuracy"].notnull().sum(SEED).values
    for name, count in zip(names, n_seeds, strict=True):
        if count < summary.sizes[SEED]:
            notes.append(f"'{name}' is there for {count} of {summary.sizes[SEED]} seeds.")
    return " ".join(notes)


def _last_columns(dataset: xr.Dataset) -> dict[str, list[str]]:
    return {
        "AURC": _cells(dataset["aurc"], ".3f"),
        "ECE": _cells(dataset["calibration_error"], ".3f"),
        "seconds": _cells(dataset["seconds"].mean(SEED, keepdims=True), ".2f"),
    }


def _with_intervals(dataset: xr.Dataset, name: str) -> list[str]:
    """Return shares of one seed with their intervals; of several the mean and the spread."""
    if dataset.sizes[SEED] > 1:
        return _percents(dataset[name])
    ends = (dataset[f"{name}{end}"].values[0].tolist() for end in ("", "_lower", "_upper"))
    return [with_interval(share, (low, high)) for share, low, high in zip(*ends, strict=True)]


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
