"""The report of a run: what the rejection is worth, the maps, and how it was made."""

from __future__ import annotations

from pathlib import Path

import tomli_w
import xarray as xr

from hsreject.pipeline.plan import Plan
from hsreject.pipeline.result import versions
from hsreject.pipeline.summary_table import summary_notes, summary_rows
from hsreject.report.page import Picture, Section, Table, write_page

_LEAD = "A land-cover map that says where it does not know, and the evidence for it."
_MAPS_TEXT = "The reject maps reject about {:.0f} % of the pixels that have data."


def write_report(
    path: Path,
    plan: Plan,
    dataset: xr.Dataset,
    *,
    tried: xr.Dataset | None,
    overview: Picture,
    maps: tuple[Picture, ...],
    measures: tuple[Picture, ...],
) -> None:
    """Write the page.

    Parameters
    ----------
    path : Path
        The HTML file.
    plan : Plan
        What was run.
    dataset : Dataset
        What it found, of :func:`hsreject.pipeline.result.result_dataset`.
    tried : Dataset or None
        The candidates of the tuning, best first.
    overview, maps, measures
        The pictures; the first of `measures` stands beside the summary.
    """
    headings, rows = summary_rows(dataset)
    listings = (
        ("Configuration", str(dataset.attrs["configuration"])),
        ("Versions", tomli_w.dumps(versions())),
    )
    sections = [
        Section(
            "What the rejection is worth",
            "Measured on the test pixels, which no stage has seen.",
            tables=(Table(headings, rows, summary_notes(dataset)),),
            pictures=(overview, *measures[:1]),
            wide=True,
        ),
        Section("Maps", _MAPS_TEXT.format(100 * plan.fraction), pictures=maps),
        *_tuning_section(tried),
        Section("Choosing an operating point", pictures=measures[1:], wide=True),
        Section("How it was made", listings=listings),
    ]
    write_page(path, title=plan.title, lead=_LEAD, sections=sections)


def _tuning_section(tried: xr.Dataset | None) -> list[Section]:
    if tried is None:
        return []
    columns = (tried[name].values for name in ("settings", "accuracy", "log_score"))
    rows = tuple(
        (str(settings), f"{100 * accuracy:.1f}", f"{score:.3f}")
        for settings, accuracy, score in zip(*columns, strict=True)
    )
    headings = ("settings, best first", "accuracy", "log score")
    text = "Cross-validation on the training pixels alone; the first row was taken."
    return [Section("Parameters that were tried", text, tables=(Table(headings, rows),))]
