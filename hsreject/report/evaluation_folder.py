"""An evaluation as files: tables, the curve and pictures."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from hsreject import __version__
from hsreject.files import complete_folder
from hsreject.io.netcdf import write_dataset
from hsreject.measures.curve import nearest_points
from hsreject.plot.style import save_figure
from hsreject.progress import ProgressCallback, no_progress
from hsreject.report.evaluation_pictures import evaluation_pictures
from hsreject.schema import OPERATING_POINT

if TYPE_CHECKING:
    import xarray as xr

    from hsreject.report.evaluation import Evaluation

_LONGEST_TABLE = 10_001


def write_evaluation(
    evaluation: Evaluation,
    folder: str | Path,
    *,
    overwrite: bool = False,
    progress: ProgressCallback = no_progress,
) -> list[Path]:
    """Write tables, curve and pictures into a folder, all or nothing, and return the files.

    Parameters
    ----------
    evaluation : Evaluation
        Of :func:`hsreject.evaluate`.
    folder : path
        A new or empty folder.
    overwrite : bool
        Write into a folder that is not empty, replacing files of the same names.
    progress : ProgressCallback
        Called after each picture.

    Returns
    -------
    list of Path
        ``points.csv`` (the chosen operating points), ``confusion-matrix.csv``; with a confidence
        ``curve.nc`` (every operating point) and ``curve.csv`` (the same, or of a longer curve
        10,001 points evenly spaced in rejected fraction); with bands ``bands.csv`` and
        ``bands.nc``; pictures as PNG.
    """
    folder = Path(folder)
    with complete_folder(folder, overwrite=overwrite) as work:
        evaluation.table().to_dataframe().to_csv(work / "points.csv")
        _write_confusion(evaluation, work / "confusion-matrix.csv")
        if evaluation.curve is not None:
            curve = evaluation.curve.assign_attrs(
                title="operating points of a classifier with rejection",
                source=f"hsreject {__version__}",
            )
            _spaced(curve).to_dataframe().to_csv(work / "curve.csv", index=False)
            write_dataset(curve, work / "curve.nc")
        if evaluation.bands is not None:
            evaluation.bands.to_dataframe().to_csv(work / "bands.csv")
            write_dataset(evaluation.bands, work / "bands.nc")
        for count, (name, figure) in enumerate(evaluation_pictures(evaluation), start=1):
            save_figure(figure, work / name)
            progress("pictures", count, None)
        names = sorted(file.name for file in work.iterdir())
    progress("pictures", len(names), len(names))
    return [folder / name for name in names]


def _spaced(curve: xr.Dataset) -> xr.Dataset:
    """Return as many points as a table program takes."""
    if curve.sizes[OPERATING_POINT] <= _LONGEST_TABLE:
        return curve
    chosen = nearest_points(curve["rejected_fraction"].values, _LONGEST_TABLE)
    return curve.isel({OPERATING_POINT: chosen})


def _write_confusion(evaluation: Evaluation, path: Path) -> None:
    names = evaluation.classes.names
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["reference", *names, "rejected"])
        for name, row in zip(names, evaluation.confusion.values.tolist(), strict=True):
            writer.writerow([name, *row])
