"""The folder that a run leaves: maps, pictures, tables, the report, and how it was made."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomli_w
import xarray as xr

from hsreject.errors import FileError, HsrejectError
from hsreject.files import PARTIAL, check_folder, complete_folder, reason
from hsreject.io.maps import write_map
from hsreject.io.netcdf import write_dataset
from hsreject.pipeline.one_seed import REJECTOR, SeedResult
from hsreject.pipeline.pictures import draw_maps, draw_measures, draw_overview
from hsreject.pipeline.plan import Plan
from hsreject.pipeline.report import write_report
from hsreject.pipeline.result import config_text, operating_points, versions
from hsreject.pipeline.summary import SYSTEM
from hsreject.progress import ProgressCallback

CONFIG = "config.toml"
STAGES = "stages"
TUNING = "tuning.csv"


@contextmanager
def run_folder(folder: Path, document: Mapping[str, Any]) -> Iterator[None]:
    """Hold the folder of a run, marked as such by its configuration.

    A folder that holds something else is refused. One that was made here is taken away again when
    the run ends in an error before any stage was finished.
    """
    made = not folder.exists()
    _begin(folder, document)
    try:
        yield
    except HsrejectError:
        if made and not any((folder / STAGES).glob("*.nc")):
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _begin(folder: Path, document: Mapping[str, Any]) -> None:
    check_folder(folder, overwrite=True)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CONFIG).is_file():
        raise FileError(
            f"The folder {folder} holds files that no run of hsreject has made. "
            "Choose another folder, or empty it."
        )
    try:
        (folder / STAGES).mkdir(parents=True, exist_ok=True)
        # what a killed run was writing
        for left in (*folder.glob(f"{PARTIAL}*"), *(folder / STAGES).glob(".*.partial")):
            shutil.rmtree(left)
        if not (folder / CONFIG).exists():  # else it belongs to the maps that are there
            (folder / CONFIG).write_text(config_text(document), encoding="utf-8")
    except OSError as error:
        raise FileError(f"Cannot write into the folder {folder}: {reason(error)}.") from error


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
    """Write everything; what an earlier run has left is replaced only when all is complete."""
    first = results[plan.seed]
    steps = 5
    progress("writing", 0, steps)
    with complete_folder(folder, overwrite=True) as work:
        maps, figures = work / "maps", work / "figures"
        maps.mkdir()
        figures.mkdir()
        _write_maps(first.maps, maps)
        progress("writing", 1, steps)
        _write_tables(work, document, first, dataset)
        progress("writing", 2, steps)
        curves = {name: first.curves[name] for name in plan.rejectors}
        overview = draw_overview(cube, first, curves, figures)
        pictures = tuple(draw_maps(cube, first, figures))
        progress("writing", 3, steps)
        measures = tuple(draw_measures(curves, figures))
        progress("writing", 4, steps)
        write_report(
            work / "report.html",
            plan,
            dataset,
            tried=first.tried,
            overview=overview,
            maps=pictures,
            measures=measures,
        )
    if first.tried is None:
        (folder / TUNING).unlink(missing_ok=True)
    progress("writing", steps, steps)


def _write_maps(maps: xr.Dataset, folder: Path) -> None:
    write_map(maps["reference"], folder / "reference.tif")
    for name in maps[REJECTOR].values:
        chosen = maps.sel({REJECTOR: name}, drop=True)
        for variable in ("label", "label_with_rejection"):
            for suffix in (".tif", ".img"):
                write_map(chosen[variable], folder / f"{variable}_{name}{suffix}")
        write_map(chosen["confidence"], folder / f"confidence_{name}.tif")


def _write_tables(
    folder: Path, document: Mapping[str, Any], first: SeedResult, dataset: xr.Dataset
) -> None:
    write_dataset(dataset, folder / "result.nc")
    points = operating_points(first).to_dataframe().to_csv(index_label="operating_point")
    summary = dataset[[name for name in dataset.data_vars if SYSTEM in dataset[name].dims]]
    texts = {
        CONFIG: config_text(document),
        "versions.toml": tomli_w.dumps(versions()),
        "operating_points.csv": points,
        "summary.csv": summary.to_dataframe().to_csv(),
    }
    if first.tried is not None:
        texts[TUNING] = first.tried.to_dataframe().to_csv()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
