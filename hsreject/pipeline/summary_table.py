"""The summary as text cells, for the screen and for the report."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hsreject.pipeline.summary import AT_FRACTION, SEED, SYSTEM

NOTHING = "-"
_NOTES = (
    "OA: overall accuracy, nothing rejected. A(r): accuracy of the kept pixels when r is rejected. "
    "Q: share of right decisions. AURC: mean risk over all coverages, lower is better. "
    "Seconds: everything the system needs, from the scene on."
)
_NOTE_OF_COORDINATES = (
    " The system 'coordinates' knows where a pixel lies and nothing else: one that is no better "
    "may owe its accuracy to the place."
)


def summary_rows(dataset: xr.Dataset) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Return the headings and the rows of the summary; several seeds give mean and spread.

    Parameters
    ----------
    dataset : Dataset
        Of :func:`hsreject.run`, with the summary by (seed, system).
    """
    fractions = [float(f) for f in dataset[AT_FRACTION].values]
    headings = (
        "system",
        "OA",
        *(f"A({f:g})" for f in fractions),
        "max Q",
        "at r",
        "AURC",
        "seconds",
    )
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
                _number(one["seconds"], ".2f", spread=False),
            )
        )
    return headings, tuple(rows)


def summary_notes(dataset: xr.Dataset) -> str:
    """Return what the headings of the summary mean, and the row that stands for comparison."""
    compared = "coordinates" in dataset[SYSTEM].values
    return _NOTES + _NOTE_OF_COORDINATES * compared


def _percent(values: xr.DataArray) -> str:
    return _number(100 * values, ".1f")


def _number(values: xr.DataArray, form: str, *, spread: bool = True) -> str:
    """Return the mean over the seeds, with the standard deviation when there are several."""
    numbers = np.atleast_1d(values.values)
    if np.isnan(numbers).any():
        return NOTHING
    text = format(float(numbers.mean()), form)
    if not spread or values.sizes.get(SEED, 1) == 1:
        return text
    return f"{text} ±{format(float(numbers.std(ddof=1)), form)}"
