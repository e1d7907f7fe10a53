"""Reference labels: rasters, arrays and vector features become one integer map."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr
from affine import Affine

from hsreject import schema
from hsreject.errors import FileError, InputError
from hsreject.io.alignment import align_labels
from hsreject.io.arrays import choose_array, stored_arrays
from hsreject.io.burning import burn
from hsreject.io.class_names import StatedClasses, stated_classes
from hsreject.io.grid import Grid
from hsreject.io.label_classes import Names, class_table_of, names_by_value
from hsreject.io.raster_file import raster_info, read_pixels
from hsreject.io.raster_notes import raster_notes
from hsreject.io.source import Kind, existing, file_kind, raster_source
from hsreject.io.vector import number_classes, read_features

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from numpy.typing import NDArray


def open_labels(
    path: str | os.PathLike[str],
    *,
    like: xr.DataArray | None = None,
    align: Literal["exact", "nearest"] = "exact",
    attribute: str | None = None,
    names: Names | None = None,
    variable: str | None = None,
    nodata: int | None = None,
) -> xr.DataArray:
    """Open reference labels as a map of integers, 0 where there is no reference.

    Parameters
    ----------
    path : str or path
        A GeoTIFF, an ENVI classification (the data or its header), a .mat or .npy array, or
        polygons and points (GeoPackage, Shapefile, GeoJSON).
    like : DataArray, optional
        The scene (or any map on its grid) that the labels belong to. Vector features need it.
    align : {"exact", "nearest"}
        Labels on another grid than `like` are refused ("exact") or brought onto it by nearest
        neighbour ("nearest").
    attribute : str, optional
        Which attribute of vector features holds the class: whole numbers, or names.
    names : mapping or sequence of str, optional
        Names of the values, or of the values 1, 2, 3, ...; they replace those of the file.
    variable : str, optional
        Which array of a .mat file or layer of a vector file, if it has several.
    nodata : int, optional
        One more value that means "no reference", besides 0 and what the file says.

    Returns
    -------
    DataArray of uint8 or uint16, dims (y, x)
        With the class table in its attributes (:func:`hsreject.schema.class_table`). What had to
        be guessed stands in ``attrs["guesses"]``, a list of sentences.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels.npy")
    ...     np.save(path, np.array([[0, 1], [2, 2]]))
    ...     labels = open_labels(path, names=["soil", "water"])
    >>> schema.class_table(labels).names
    ('soil', 'water')
    """
    if align not in {"exact", "nearest"}:
        raise InputError(f"align must be 'exact' or 'nearest' (got '{align}').")
    found = existing(path)
    kind = file_kind(found)
    given = names_by_value(names)
    guesses: list[str] = []
    if kind is Kind.VECTOR:
        grid = _grid_of(like, needed_by=found)
        written = _from_features(found, grid, attribute, variable, given, guesses)
    else:
        read = _from_raster if kind is Kind.RASTER else partial(_from_array, kind, variable)
        written = read(found, guesses)
    values, grid = whole_labels(written.values, nodata=nodata, path=found), written.grid
    if like is not None:
        values, grid = align_labels(
            values, grid, Grid.of(like), how=align, path=found, guesses=guesses
        )
    table = class_table_of(values, written.stated, given, path=found, guesses=guesses)
    labels = xr.DataArray(values, dims=schema.MAP_DIMS, name="labels")
    labels = schema.attach_classes(labels, table).assign_attrs(
        source=found.name, format=written.format, type_in_file=str(written.dtype)
    )
    if written.nodata is not None:
        labels.attrs["nodata_in_file"] = written.nodata
    if guesses:
        labels.attrs["guesses"] = guesses
    return grid.attach(labels)


@dataclass(frozen=True, eq=False)
class _Written:
    """Labels as they stand in the file, before they are checked."""

    values: NDArray[Any]
    dtype: np.dtype[Any]
    grid: Grid
    stated: StatedClasses
    format: str
    nodata: float | None = None


def _from_array(kind: Kind, variable: str | None, path: Path, guesses: list[str]) -> _Written:
    arrays = stored_arrays(path, kind)
    array = choose_array(arrays, path=path, n_axes=2, what="labels", variable=variable)
    if variable is None and len(arrays) > 1:
        guesses.append(f"The labels are '{array.name}', the only array that could be.")
    height, width = array.shape
    grid = Grid(height, width, Affine.identity())
    return _Written(array.read(), array.dtype, grid, StatedClasses(), kind.value)


def _from_raster(path: Path, guesses: list[str]) -> _Written:
    source = raster_source(path)
    info = raster_info(source.path, driver=source.driver)
    if info.n_bands != 1:
        raise FileError(
            f"{path} has {info.n_bands} bands, but labels have one. "
            "Open a scene with open_scene, or extract the band that holds the labels."
        )
    guesses.extend([*source.guesses, *raster_notes(info, source.fields)])
    stated = stated_classes(source.path, nodata=info.nodata)
    return _Written(read_pixels(info)[0], info.dtype, info.grid, stated, info.driver, info.nodata)


def _from_features(
    path: Path,
    grid: Grid,
    attribute: str | None,
    layer: str | None,
    names: dict[int, str],
    guesses: list[str],
) -> _Written:
    features = read_features(path, attribute=attribute, layer=layer, guesses=guesses)
    numbers, named = number_classes(features.classes, names, path=path, guesses=guesses)
    burnt = burn(features, numbers, grid, path=path, guesses=guesses)
    return _Written(burnt, burnt.dtype, grid, StatedClasses(named), Kind.VECTOR.value)


def _grid_of(like: xr.DataArray | None, *, needed_by: Path) -> Grid:
    if like is None:
        raise InputError(
            f"{needed_by} holds features, which need a grid to be burnt onto. "
            "Pass like=scene, the scene that they belong to."
        )
    return Grid.of(like)


def whole_labels(
    values: NDArray[Any], *, nodata: int | None, path: Path
) -> NDArray[np.unsignedinteger[Any]]:
    """Return labels as the smallest unsigned type that holds them; NaN and `nodata` become 0."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), 0, values)
    if nodata is not None:
        values = np.where(values == nodata, 0, values)
    lowest, highest = (values.min(), values.max()) if values.size else (0, 0)
    if lowest < 0 or highest >= schema.nodata_label(np.uint16):
        raise FileError(
            f"{path}: labels must lie between 0 (no reference) and "
            f"{schema.nodata_label(np.uint16) - 1} (found {lowest} to {highest}). "
            "Pass nodata=VALUE if one of them means no reference."
        )
    whole = values.astype(schema.label_dtype(int(highest)))
    if values.dtype.kind == "f" and not np.array_equal(whole, values):
        odd = values[whole != values].flat[0]
        raise FileError(f"{path}: labels must be whole numbers (found {odd}). Is it a label map?")
    return whole
