"""Reference labels: rasters, arrays and vector features become one integer map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr
from affine import Affine

from hsreject import schema
from hsreject.classes import ClassTable
from hsreject.errors import FileError, InputError
from hsreject.io.alignment import align_labels
from hsreject.io.arrays import choose_array, stored_arrays
from hsreject.io.class_names import StatedClasses, stated_classes
from hsreject.io.grid import Grid
from hsreject.io.raster_file import raster_info, read_pixels
from hsreject.io.source import Kind, existing, file_kind, raster_source

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from numpy.typing import NDArray

Names = Mapping[int, str] | Sequence[str]


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
        Which array of a .mat file, if it has several that could be the labels.
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
    guesses: list[str] = []
    stated = StatedClasses()
    if kind is Kind.RASTER:
        values, grid, stated = _from_raster(found, guesses)
    elif kind is Kind.VECTOR:
        raise FileError(f"{found} cannot be read as labels.")
    else:
        arrays = stored_arrays(found, kind)
        array = choose_array(arrays, path=found, n_axes=2, what="labels", variable=variable)
        values = array.read()
        height, width = array.shape
        grid = Grid(height, width, Affine.identity())
    values = whole_labels(values, nodata=nodata, path=found)
    if like is not None:
        values, grid = align_labels(values, grid, Grid.of(like), how=align, path=found)
    table = _class_table(values, stated, names, path=found, guesses=guesses)
    labels = xr.DataArray(values, dims=schema.MAP_DIMS, name="labels")
    labels = schema.attach_classes(labels, table).assign_attrs(source=found.name)
    if guesses:
        labels.attrs["guesses"] = guesses
    return grid.attach(labels)


def _from_raster(path: Path, guesses: list[str]) -> tuple[NDArray[Any], Grid, StatedClasses]:
    source = raster_source(path)
    info = raster_info(source.path, driver=source.driver)
    if info.n_bands != 1:
        raise FileError(
            f"{path} has {info.n_bands} bands, but labels have one. "
            "Open a scene with open_scene, or extract the band that holds the labels."
        )
    guesses.extend(source.guesses)
    return read_pixels(info)[0], info.grid, stated_classes(source.path)


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


def _class_table(
    values: NDArray[Any],
    stated: StatedClasses,
    names: Names | None,
    *,
    path: Path,
    guesses: list[str],
) -> ClassTable:
    """Return the table of the classes that are named, or of those that occur if none is."""
    there = [int(value) for value in np.unique(values) if value != schema.NO_REFERENCE]
    named = dict(stated.names)
    if names is not None:
        named = dict(names) if isinstance(names, Mapping) else dict(enumerate(names, start=1))
    unnamed = [value for value in there if value not in named]
    if named and unnamed:
        raise FileError(
            f"{path}: the values {', '.join(map(str, unnamed))} have no name "
            f"(named are {_listed(sorted(named))}). Pass names= with a name for every value."
        )
    zero = named.pop(schema.NO_REFERENCE, "")
    if zero and not _means_nothing(zero):
        guesses.append(f"Value 0 is named '{zero}' but was read as no reference.")
    if not named:
        if there:
            guesses.append("The classes have no names: they are called by their value.")
        named = {value: f"class {value}" for value in there}
    wanted = sorted(named)
    plain = ClassTable.plain(wanted)
    colors = [stated.colors.get(v, c) for v, c in zip(wanted, plain.colors, strict=True)]
    return ClassTable.from_names(_distinct(named, guesses), values=wanted, colors=colors)


def _means_nothing(name: str) -> bool:
    words = "".join(letter for letter in name.lower() if letter.isalpha())
    return words in {
        "unclassified", "unlabeled", "unlabelled", "background", "nodata", "none", "noreference",
        "undefined", "masked", "void", "na", "unknown", "rejected",
    }  # fmt: skip


def _distinct(named: Mapping[int, str], guesses: list[str]) -> list[str]:
    texts = [named[value] for value in sorted(named)]
    if len(set(texts)) == len(texts):
        return texts
    guesses.append("Some classes have the same name: their value was added to it.")
    return [f"{named[v]} ({v})" if texts.count(named[v]) > 1 else named[v] for v in sorted(named)]


def _listed(values: list[int]) -> str:
    shown = ", ".join(map(str, values[:20]))
    return shown if len(values) <= 20 else f"{shown}, ... {values[-1]}"
