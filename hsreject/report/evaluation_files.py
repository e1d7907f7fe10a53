"""An evaluation and its files: maps from any software in, a folder of tables and pictures out."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject import __version__
from hsreject.errors import FileError, HsrejectError, InputError, TrainingPixelsWarning
from hsreject.files import complete_folder, existing
from hsreject.io.arrays import choose_array, stored_arrays
from hsreject.io.grid import Grid
from hsreject.io.labels import open_labels, whole_labels
from hsreject.io.netcdf import write_dataset
from hsreject.io.scene import Kind, file_kind, open_scene
from hsreject.measures.curve import nearest_points
from hsreject.progress import ProgressCallback
from hsreject.report import findings
from hsreject.report.figures import Pictures
from hsreject.report.page import Section, write_page
from hsreject.schema import BAND, MAP_DIMS, OPERATING_POINT, as_map, nodata_label

if TYPE_CHECKING:
    from hsreject.report.evaluation import Evaluation

MapOrPath = xr.DataArray | NDArray[Any] | str | PathLike[str]

TRAIN_FILE = "train.tif"
"""Beside its maps a run records the pixels that it has learned from."""

_LONGEST_TABLE = 10_001


def open_maps(
    given: Mapping[str, MapOrPath], *, nodata: int | None, attribute: str | None
) -> dict[str, xr.DataArray]:
    """Return maps given as arrays or files, all on the grid of `label`.

    Labels from a file are unsigned, and nodata in them is :func:`hsreject.schema.nodata_label`.
    """
    judged: dict[str, Any] = {name: found for name, found in given.items() if name != "reference"}
    files = [name for name, found in judged.items() if isinstance(found, str | PathLike)]
    if files and len(files) < len(judged):
        raise InputError(
            f"{' and '.join(judged)} must all be files, or all be arrays (only {files[0]} is a "
            f"file). Open it with hsreject.open_map."
        )
    if files:
        maps = _open_judged(judged, nodata)
    else:
        maps = {name: as_map(found, name=name) for name, found in judged.items()}
    if "reference" not in given:
        return maps
    reference = _open_reference(given["reference"], given["label"], maps["label"], attribute)
    return {"reference": reference, **maps}


def training_warnings(
    given: MapOrPath, label: xr.DataArray, place: tuple[NDArray[np.intp], ...]
) -> tuple[str, ...]:
    """Warn if a map has learned from the pixels at `place` that it is measured on.

    That is so if a run has recorded them as training pixels beside the map. Returns what was said.
    """
    if not isinstance(given, str | PathLike):
        return ()
    path = Path(given).with_name(TRAIN_FILE)
    if not path.is_file() or path == Path(given):
        return ()
    try:
        train = open_labels(path).values
    except HsrejectError:  # somebody else's file of that name
        return ()
    n_known = np.count_nonzero(train[place]) if train.shape == label.shape else 0
    if not n_known:
        return ()
    said = (
        f"{n_known} of the {place[0].size} reference pixels are training pixels, recorded in "
        f"{path}: the map has learned them, and every accuracy is too high. Give test pixels, such "
        "as test.tif beside it, as reference."
    )
    warnings.warn(said, TrainingPixelsWarning, stacklevel=3)
    return (said,)


def as_dataset(maps: Mapping[str, xr.DataArray]) -> xr.Dataset:
    """Return maps that were checked to lie on one grid, all with the coordinates of the first."""
    grid = next(iter(maps.values()))
    return xr.Dataset(
        {name: (grid.dims, array.values, array.attrs) for name, array in maps.items()},
        coords=grid.coords,
    )


def _open_judged(paths: Mapping[str, Any], nodata: int | None) -> dict[str, xr.DataArray]:
    """Open the files of `label` and, as far as given, `confidence` and `rejected`."""
    maps = {"label": _open_label_map(paths["label"], nodata)}
    for name in ("confidence", "rejected"):
        if name in paths:
            maps[name] = open_band(paths[name])
            _check_grid(maps[name], paths[name], maps["label"], paths["label"])
    if "rejected" in maps:
        maps["label"], maps["rejected"] = _mask(maps["label"], maps["rejected"], paths["rejected"])
    return maps


def _open_reference(
    reference: MapOrPath, given: MapOrPath, label: xr.DataArray, attribute: str | None
) -> xr.DataArray:
    """Return the reference; polygons and points are burnt onto the grid of the labels."""
    if not isinstance(reference, str | PathLike):
        return as_map(reference, name="reference")
    if file_kind(existing(reference)) is Kind.VECTOR:
        return open_labels(reference, like=label, attribute=attribute)
    truth = open_labels(reference)
    _check_grid(truth, reference, label, given)
    return truth


def open_band(path: Any) -> xr.DataArray:
    """Open a map of numbers (y, x), such as a confidence."""
    found = existing(path)
    kind = file_kind(found)
    if kind in {Kind.NUMPY, Kind.MATLAB, Kind.MATLAB_HDF5}:
        stored = stored_arrays(found, kind)
        array = choose_array(stored, path=found, n_axes=2, what="map", variable=None)
        return xr.DataArray(array.read(), dims=MAP_DIMS)
    cube = open_scene(path)
    if cube.sizes[BAND] != 1:
        raise FileError(
            f"{path} has {cube.sizes[BAND]} bands, but a map has one. "
            "Extract the band that holds it."
        )
    return cube.isel({BAND: 0}, drop=True)


def _open_label_map(path: Any, nodata: int | None) -> xr.DataArray:
    """Return labels whose nodata differs from 0, which may mean rejected."""
    band = open_band(path)
    empty = np.isnan(band.values) if band.dtype.kind == "f" else np.zeros(band.shape, dtype=bool)
    if nodata is not None:
        empty |= band.values == nodata
    values = whole_labels(np.where(empty, 0, band.values), nodata=None, path=Path(path))
    values[empty] = nodata_label(values.dtype)
    return band.copy(data=values)


def _mask(
    label: xr.DataArray, rejected: xr.DataArray, path: Any
) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the labels without the pixels where the mask has no data, and the mask as truth."""
    values: Any = rejected.values
    if rejected.attrs.get("nodata_in_file") == 0:
        raise FileError(
            f"{path} calls 0 its nodata value, but 0 means kept in a map of what is rejected: no "
            "pixel would be kept. Take the nodata value away, for example with gdal_edit -unsetnd."
        )
    if values.dtype.kind == "f":
        odd = values[~np.isnan(values) & (values != np.round(values))]
        if odd.size:
            raise FileError(
                f"{path} must hold 0 for kept and another whole number for rejected pixels (found "
                f"{odd[0]:g}). Is it a confidence? Give it with --confidence."
            )
        empty = np.isnan(values)
        label = label.copy(data=np.where(empty, nodata_label(label.dtype), label.values))
        values = np.where(empty, 0, values)
    return label, rejected.copy(data=values != 0)


def _check_grid(
    other: xr.DataArray, other_given: MapOrPath, first: xr.DataArray, first_given: MapOrPath
) -> None:
    """Raise unless two maps lie on one grid, or at least have one size where one has no place."""
    grid, wanted = Grid.of(other), Grid.of(first)
    same_size = (grid.height, grid.width) == (wanted.height, wanted.width)
    placed = grid.georeferenced and wanted.georeferenced
    if not same_size or (placed and not grid.same_as(wanted)):
        named = first_given if isinstance(first_given, str | PathLike) else "label"
        raise InputError(
            f"{other_given} and {named} lie on different grids: {grid}, against {wanted}. "
            "Resample one of them onto the other first, for example with gdalwarp -r near."
        )


def write_evaluation(
    evaluation: Evaluation, folder: Path, *, overwrite: bool, progress: ProgressCallback
) -> list[Path]:
    """Write report, tables and curve into a folder, all or nothing, and return the files."""
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
        progress("report", 0, 1)
        _write_report(evaluation, work)
        progress("report", 1, 1)
        names = sorted(p.relative_to(work) for p in work.rglob("*") if p.is_file())
    return [folder / name for name in names]


def _spaced(curve: xr.Dataset) -> xr.Dataset:
    """Return at most as many points as a table program can take."""
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


def _write_report(evaluation: Evaluation, folder: Path) -> None:
    """Write the same page that a run has, as far as maps and a reference tell it."""
    drawn = Pictures(folder / "figures")
    curves = {} if evaluation.curve is None else {"": evaluation.curve}
    sections = [
        Section(
            findings.HOW_GOOD,
            tables=(findings.point_table(evaluation), *findings.class_tables(evaluation)),
        ),
        findings.where(evaluation, drawn),
        findings.how_much(evaluation, curves, drawn),
    ]
    write_page(
        folder / "report.html",
        title="Evaluation of a map with rejection",
        headline=findings.headline(evaluation),
        sections=sections,
    )
