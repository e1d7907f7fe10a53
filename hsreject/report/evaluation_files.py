"""Evaluation of raster files from any software: opened, put side by side, checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import FileError, InputError
from hsreject.io.arrays import choose_array, stored_arrays
from hsreject.io.grid import Grid
from hsreject.io.labels import open_labels, whole_labels
from hsreject.io.scene import open_scene
from hsreject.io.source import Kind, existing, file_kind
from hsreject.report.evaluation import Evaluation, evaluate
from hsreject.schema import BAND, MAP_DIMS, nodata_label

if TYPE_CHECKING:
    from os import PathLike


def evaluate_files(
    reference: str | PathLike[str],
    labels: str | PathLike[str],
    *,
    confidence: str | PathLike[str] | None = None,
    rejected: str | PathLike[str] | None = None,
    rejection_cost: float | Sequence[float] = (),
    label_nodata: int | None = None,
    attribute: str | None = None,
) -> Evaluation:
    """Evaluate classified rasters with rejection, from any software.

    All files must lie on one grid. What a file marks as nodata takes no part.

    Parameters
    ----------
    reference : path
        True classes: a raster, 0 where there is no reference, or polygons and points.
    labels : path
        Assigned classes before rejection: a raster of one band, or a .mat or .npy array (y, x), as
        for the next two.
    confidence : path, optional
        Larger is surer: a raster of one band.
    rejected : path, optional
        Not 0 where the map rejects: a raster of one band.
    rejection_cost : float or sequence of float
        As for :func:`hsreject.evaluate`.
    label_nodata : int, optional
        One more label that means "no data", besides what the file says.
    attribute : str, optional
        Which attribute of polygons or points holds the class.

    Returns
    -------
    Evaluation
    """
    label = _open_label_map(labels, label_nodata)
    maps: dict[str, xr.DataArray] = {}
    for name, path in (("confidence", confidence), ("rejected", rejected)):
        if path is not None:
            maps[name] = _open_band(path)
            _check_grid(maps[name], path, label, labels)
    if file_kind(existing(reference)) is Kind.VECTOR:
        truth = open_labels(reference, like=label, attribute=attribute)
    else:
        truth = open_labels(reference)
        _check_grid(truth, reference, label, labels)
    if rejected is not None:
        label, maps["rejected"] = _mask(label, maps["rejected"], rejected)
    return evaluate(
        truth,
        label,
        maps.get("confidence"),
        rejected=maps.get("rejected"),
        rejection_cost=rejection_cost,
    )


def _open_band(path: str | PathLike[str]) -> xr.DataArray:
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


def _open_label_map(path: str | PathLike[str], nodata: int | None) -> xr.DataArray:
    """Return labels in which the file's nodata is told apart from 0, which may mean rejected."""
    band = _open_band(path)
    empty = np.isnan(band.values) if band.dtype.kind == "f" else np.zeros(band.shape, dtype=bool)
    if nodata is not None:
        empty |= band.values == nodata
    values = whole_labels(np.where(empty, 0, band.values), nodata=None, path=Path(path))
    values[empty] = nodata_label(values.dtype)
    return band.copy(data=values)


def _mask(
    label: xr.DataArray, rejected: xr.DataArray, path: str | PathLike[str]
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
    other: xr.DataArray,
    other_path: str | PathLike[str],
    first: xr.DataArray,
    first_path: str | PathLike[str],
) -> None:
    grid, wanted = Grid.of(other), Grid.of(first)
    same_size = (grid.height, grid.width) == (wanted.height, wanted.width)
    placed = grid.georeferenced and wanted.georeferenced
    if not same_size or (placed and not grid.same_as(wanted)):
        raise InputError(
            f"{other_path} and {first_path} lie on different grids: {grid}, against {wanted}. "
            "Resample one of them onto the other first, for example with gdalwarp -r near."
        )
