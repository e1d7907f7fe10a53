"""The folder that a run leaves: maps, pictures, tables, the report, and how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w
import xarray as xr

from hsreject.errors import FileError
from hsreject.io.map_writer import write_map
from hsreject.io.netcdf import write_dataset
from hsreject.io.replace import replacing
from hsreject.pipeline.one_seed import REJECTOR, SeedResult
from hsreject.pipeline.pictures import draw_maps, draw_measures, draw_overview
from hsreject.pipeline.plan import Plan
from hsreject.pipeline.result import config_text, operating_points, versions
from hsreject.pipeline.summary import SYSTEM
from hsreject.pipeline.summary_table import summary_rows
from hsreject.progress import ProgressCallback
from hsreject.report.page import Section, Table, write_page

CONFIG = "config.toml"


def begin_folder(folder: Path, document: Mapping[str, Any]) -> None:
    """Make the folder and put the configuration into it, which marks it as that of a run.

    A folder that holds something else is refused.
    """
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file. Give the name of a folder.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CONFIG).is_file():
        raise FileError(
            f"The folder {folder} holds files that no run of hsreject has made. "
            "Choose another folder, or empty it."
        )
    try:
        (folder / "maps").mkdir(parents=True, exist_ok=True)
        (folder / "figures").mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot write into the folder {folder}: {error.strerror}.") from error
    _write_text(folder / CONFIG, config_text(document))


def write_outputs(
    folder: Path,
    document: Mapping[str, Any],
    plan: Plan,
    cube: xr.DataArray,
    results: Mapping[int, SeedResult],
    dataset: xr.Dataset,
    *,
    progress: ProgressCallback,
) -> None:
    """Write everything; each file is complete under its name or not there."""
    first = results[plan.seed]
    steps = 5
    progress("writing", 0, steps)
    _write_text(folder / "versions.toml", tomli_w.dumps(versions()))
    _write_maps(first.maps, folder / "maps")
    progress("writing", 1, steps)
    write_dataset(dataset, folder / "result.nc", overwrite=True)
    progress("writing", 2, steps)
    _write_text(folder / "operating_points.csv", _csv(operating_points(first)))
    _write_text(folder / "summary.csv", dataset_summary(dataset).to_dataframe().to_csv())
    if first.tried is not None:
        _write_text(folder / "tuning.csv", first.tried.to_dataframe().to_csv())
    curves = {name: first.curves[name] for name in plan.rejectors}
    overview = draw_overview(cube, first, curves, folder / "figures")
    pictures = list(draw_maps(cube, first, folder / "figures"))
    progress("writing", 3, steps)
    measures = list(draw_measures(curves, folder / "figures"))
    progress("writing", 4, steps)
    headings, rows = summary_rows(dataset)
    sections = [
        Section(
            "What the rejection is worth",
            "Measured on the test pixels, which no stage has seen.",
            tables=(Table(headings, rows, _SUMMARY_CAPTION),),
            pictures=(overview, *measures[:1]),
            wide=True,
        ),
        Section("Maps", _MAPS_TEXT.format(plan.fraction), pictures=tuple(pictures)),
        *_tuning_section(first.tried),
        Section("Choosing an operating point", pictures=tuple(measures[1:]), wide=True),
        Section(
            "How it was made",
            listings=(
                ("Configuration", config_text(document)),
                ("Versions", tomli_w.dumps(versions())),
            ),
        ),
    ]
    write_page(
        folder / "report.html", title=plan.title, lead=_LEAD, sections=sections, overwrite=True
    )
    progress("writing", steps, steps)


_LEAD = "A land-cover map that says where it does not know, and the evidence for it."
_MAPS_TEXT = "The reject maps reject about {:.0%} of the pixels that have data."
_SUMMARY_CAPTION = (
    "OA: overall accuracy, nothing rejected. A(r): accuracy of the kept pixels when r is rejected. "
    "Q: share of right decisions. AURC: mean risk over all coverages, lower is better. "
    "Seconds: everything the system needs, from the scene on."
)


def _tuning_section(tried: xr.Dataset | None) -> list[Section]:
    if tried is None:
        return []
    rows = tuple(
        (str(settings), f"{100 * accuracy:.1f}", f"{score:.3f}")
        for settings, accuracy, score in zip(
            tried["settings"].values,
            tried["accuracy"].values,
            tried["log_score"].values,
            strict=True,
        )
    )
    headings = ("settings, best first", "accuracy", "log score")
    text = "Cross-validation on the training pixels alone; the first row was taken."
    return [Section("Parameters that were tried", text, tables=(Table(headings, rows),))]


def dataset_summary(dataset: xr.Dataset) -> xr.Dataset:
    """Return the variables of the summary table."""
    return dataset[[name for name in dataset.data_vars if SYSTEM in dataset[name].dims]]


def _write_maps(maps: xr.Dataset, folder: Path) -> None:
    write_map(maps["reference"], folder / "reference.tif", overwrite=True)
    for name in maps[REJECTOR].values:
        chosen = maps.sel({REJECTOR: name}, drop=True)
        for variable in ("label", "label_with_rejection"):
            for suffix in (".tif", ".img"):
                path = folder / f"{variable}_{name}{suffix}"
                write_map(chosen[variable], path, overwrite=True)
        write_map(chosen["confidence"], folder / f"confidence_{name}.tif", overwrite=True)


def _csv(points: xr.Dataset) -> str:
    return str(points.to_dataframe().to_csv(index_label="operating_point"))


def _write_text(path: Path, text: str) -> None:
    with replacing(path, overwrite=True) as temporary:
        temporary.write_text(text, encoding="utf-8")
