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
    "paper": "'paper' is the protocol of the paper: MNF, sparse regression, vector TV, sequential.",
    "carried model": "'carried model' is what 'hsreject train' would take to other scenes.",
}


def curve_table(dataset: xr.Dataset) -> Table:
    """Return what is quoted of each system's curve; several seeds give mean and spread."""
    accuracy = dataset["accuracy_at"]
    columns = {
        "OA": _percents(dataset["overall_accuracy"]),
        **{f"A({f:g})": _percents(accuracy.sel({AT_FRACTION: f})) for f in accuracy[AT_FRACTION]},
        "max Q": _percents(dataset["largest_quality"]),
        "at r": _cells(dataset["fraction_of_largest_quality"], ".2f"),
        **_last_columns(dataset),
    }
    return _table(dataset, columns, _notes(dataset))


def map_table(dataset: xr.Dataset, alike: Mapping[str, list[str]]) -> Table:
    """Return what each system's map is worth; those `alike` share a row."""
    coinciding = [name for others in alike.values() for name in others]
    dataset = dataset.drop_sel({SYSTEM: coinciding})
    columns = {
        "right, nothing rejected": _with_intervals(dataset, "map_overall_accuracy"),
        "test pixels kept": _percents(1 - dataset["map_rejected_fraction"]),
        "right if kept": _with_intervals(dataset, "map_nonrejected_accuracy"),
        "errors caught": _percents(dataset["map_errors_caught"]),
        "A(0.1)": _percents(dataset["accuracy_at"].sel({AT_FRACTION: 0.1})),
        **_last_columns(dataset),
    }
    caption = (
        "In percent, in brackets 95 % intervals. Every system rejects "
        f"{100 * dataset.attrs['fraction']:g} % of the scene; what that keeps of the test pixels "
        f"is in the third column. {_notes(dataset, without=_OF_CURVES)}"
    )
    return _table(dataset, columns, caption, title="Systems side by side", alike=alike)


def _table(
    dataset: xr.Dataset,
    columns: Mapping[str, list[str]],
    caption: str,
    *,
    title: str = "",
    alike: Mapping[str, list[str]] | None = None,
) -> Table:
    systems = map(str, dataset[SYSTEM].values)
    names = [", ".join([name, *(alike or {}).get(name, [])]) for name in systems]
    rows = zip(names, *columns.values(), strict=True)
    return Table(("system", *columns), tuple(rows), caption, title=title)


def _notes(dataset: xr.Dataset, *, without: Collection[str] = ()) -> str:
    """Return what the headings mean, the rows that stand for comparison, and an idle context."""
    shown = set(map(str, dataset[SYSTEM].values))
    notes = [f"{name}: {text}." for name, text in _NOTES.items() if name not in without]
    notes += [text for name, text in _NOTES_OF_ROWS.items() if name in shown]
    idle = dataset["context_is_idle"].values
    if idle.any():
        seeds = "" if idle.all() else f" for {idle.sum()} of {idle.size} seeds"
        notes.append(
            f"The training pixels chose a context of weight 0{seeds}: rejection after it is then "
            "pixelwise rejection of the classifier."
        )
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
    """Return each system's mean over the seeds, with the standard deviation if there are more."""
    several = numbers.sizes[SEED] > 1
    cells = []
    for column in numbers.transpose(SYSTEM, SEED).values:
        spread = f" ±{column.std(ddof=1):{form}}" if several else ""
        cells.append("-" if np.isnan(column).any() else f"{column.mean():{form}}{spread}")
    return cells
