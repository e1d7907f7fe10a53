"""Sample files: points that people label in QGIS or a spreadsheet, and what comes back."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
import xarray as xr
from rasterio.crs import CRS

from hsreject.classes import ClassTable
from hsreject.errors import FileError, GuessWarning, HsrejectWarning, InputError
from hsreject.files import existing
from hsreject.io.grid import Grid
from hsreject.io.vector import Features, is_known, onto_grid, read_columns
from hsreject.promise.frame import labels_of, map_id
from hsreject.promise.sample import (
    CANNOT_TELL,
    CANNOT_TELL_TEXT,
    CHOSEN,
    STRATIFIED,
    WGS84,
    Columns,
    Design,
    Sample,
    without_apostrophe,
)
from hsreject.registry import nearest
from hsreject.schema import NO_REFERENCE, as_label_map, check_same_grid, class_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

WAY_OUT = (
    "Draw a sample with 'hsreject sample', or, if these points are a simple random sample of this "
    "map and none of them served to make it, say so (assume_random=True, --assume-random)."
)

_WHOLE = re.compile(r"\d{1,5}(\.0*)?")


def open_sample(
    path: str | PathLike[str],
    label: xr.DataArray | NDArray[Any],
    *,
    attribute: str = "reference",
) -> Sample:
    """Open a sample file that was labelled, for a map.

    Parameters
    ----------
    path : path
        Points: GeoPackage, GeoJSON, Shapefile or CSV, in any reference system. A CSV file has the
        columns `longitude` and `latitude`, or `x` and `y` in the reference system of the map, or
        `row` and `column`, tried in this order.
    label : DataArray or array of int, dims (y, x)
        The map that the points lie on; it need not be the one that they were drawn from.
    attribute : str
        The column with the true class: a code or a name of the map's classes. Empty cells and 0
        are points that nobody has looked at, "cannot tell" those that nobody could label. Any other
        name is a class that the map does not know, and an error wherever the map gives a label.

    Returns
    -------
    Sample
        Its design is None where the file does not say how the points were drawn.

    See Also
    --------
    hsreject.draw_sample : drew it.
    hsreject.certify : promises by it.
    hsreject.assess : estimates by it.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import open_sample
    >>> import tempfile
    >>> from hsreject import draw_sample
    >>> label = np.repeat([[1, 2]], 50, axis=0)
    >>> sample = draw_sample(label, 6)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = sample.with_reference(label).write(f"{folder}/sample.csv")
    ...     back = open_sample(path, label)
    >>> bool((back.reference == sample.label).all()), back.design == sample.design
    (True, True)
    """
    file = existing(path)
    on_map = labels_of(label)
    grid = Grid.of(on_map)
    read = _read_csv if file.suffix.lower() == ".csv" else _read_vector
    columns, row, column = read(file, grid)
    if not row.size:
        raise FileError(f"{file} has no points.")
    design = _design(columns.get("design"), file)
    if design is not None and design.map_id == map_id(on_map):
        row, column = _unrounded(columns, row, column, file)
    _check_places(file, row, column, grid)
    values = _column(columns, attribute, file)
    reference, classes = _classes_of(values, class_table(on_map))
    sample = replace(Sample.at(row, column, on_map, design), reference=reference, classes=classes)
    if "id" in columns:
        sample = replace(sample, id=_numbers(columns["id"], file, "id"))
    if design is None or design.kind != STRATIFIED:
        return sample
    stratum, pixels = _strata(columns, design, file)
    return replace(sample, stratum=stratum, stratum_pixels=pixels)


def given_sample(
    sample: Sample | xr.DataArray | NDArray[Any] | str | PathLike[str],
    on_map: xr.DataArray,
    *,
    assume_random: bool,
) -> Sample:
    """Return the points of a sample in any form, with the labels of a map of :func:`labels_of`.

    An array is taken at the caller's word; points of unknown origin only if that is given.
    """
    if isinstance(sample, str | PathLike):
        sample = open_sample(sample, on_map)
    if not isinstance(sample, Sample):
        on_grid = as_label_map(sample, name="sample")
        check_same_grid(on_map, on_grid, names=("the map", "sample"))
        row, column = np.nonzero(on_grid.values)
        return Sample.at(row, column, on_map).with_reference(on_grid)
    if sample.design is not None and sample.design.kind == CHOSEN:
        raise InputError(
            "These points were chosen to train on ('hsreject next'): they are not a random sample "
            "of any map. Draw one with 'hsreject sample'."
        )
    if sample.design is None and not assume_random:
        raise InputError(f"The sample does not say how its points were drawn. {WAY_OUT}")
    return sample.on_map(on_map)


def check_complete(sample: Sample, design: Design) -> None:
    """Raise where points of a sample that was drawn at once are missing."""
    if len(sample) < design.n_points:
        raise InputError(
            f"{design.n_points - len(sample)} of the {design.n_points} points that were drawn are "
            "missing from the sample. Put these rows back, with an empty reference."
        )


# What comes back.


def _read_vector(path: Path, grid: Grid) -> tuple[Columns, NDArray[np.int64], NDArray[np.int64]]:
    """Return the columns of a vector file, and row and column of its points."""
    geometries, columns, crs = read_columns(path)
    if shapely.is_missing(geometries).any() or shapely.is_empty(geometries).any():
        raise FileError(f"{path} has points without a place. Remove these rows.")
    kinds = np.unique(shapely.get_type_id(geometries))
    if not set(kinds.tolist()) <= {shapely.GeometryType.POINT, shapely.GeometryType.MULTIPOINT}:
        raise InputError(
            f"{path} holds polygons or lines, but a sample holds points: the pixels of one polygon "
            "are not separate draws. Take one random pixel of each polygon, or draw points with "
            "'hsreject sample'."
        )
    parts, of = shapely.get_parts(geometries, return_index=True)
    columns = {name.lower(): values[of] for name, values in columns.items()}
    if not grid.georeferenced:
        return columns, *_by_number(columns, path)
    return columns, *_pixels(parts, crs, path, grid)


def _read_csv(path: Path, grid: Grid) -> tuple[Columns, NDArray[np.int64], NDArray[np.int64]]:
    """Return the columns of a CSV file, and row and column of its points."""
    columns = _csv_columns(path)
    if grid.crs is not None and {"longitude", "latitude"} <= set(columns):
        place, crs = ("longitude", "latitude"), CRS.from_user_input(WGS84)
    elif grid.georeferenced and {"x", "y"} <= set(columns):
        place, crs = ("x", "y"), grid.crs
    else:
        return columns, *_by_number(columns, path)
    points = shapely.points(*(_floats(columns[name], path, name) for name in place))
    return columns, *_pixels(points, crs, path, grid)


def _csv_columns(path: Path) -> Columns:
    """Return the columns of a CSV file as text; spreadsheets may separate them by semicolons."""
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", errors="replace")
    head = text.partition("\n")[0]
    separator = max(",;\t", key=head.count)
    rows = [row for row in csv.reader(text.splitlines(), delimiter=separator) if any(row)]
    names = [name.strip().lower() for name in rows[0]] if rows else []
    uneven = [number for number, row in enumerate(rows, start=1) if len(row) > len(names)]
    if uneven:
        raise FileError(
            f"{path}: row {uneven[0]} has more cells than the {len(names)} columns named in the "
            "first row."
        )
    cells = [row + [""] * (len(names) - len(row)) for row in rows[1:]]
    return {
        name: np.array([without_apostrophe(row[place].strip()) for row in cells], dtype=object)
        for place, name in enumerate(names)
    }


def _pixels(
    points: NDArray[Any], crs: CRS | None, path: Path, grid: Grid
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row and column of the pixels that points lie in, brought into the system of a map."""
    numbers = np.arange(len(points))
    stated = Features(points, numbers, numbers, grid.crs if crs is None else crs)
    near, moved, notes = onto_grid(stated, grid, path=path)
    if crs is None and grid.crs is not None:
        notes += (f"{path.name} has no reference system: taken for that of the map.",)
    for note in notes:
        warnings.warn(note, GuessWarning, stacklevel=4)
    a, b, c, d, e, f = (~grid.transform)[:6]
    x, y = shapely.get_x(moved), shapely.get_y(moved)
    column, row = np.floor(a * x + b * y + c), np.floor(d * x + e * y + f)
    huge = np.abs(np.array([row, column])) > np.iinfo(np.int32).max  # or not finite
    places = np.full((2, len(points)), -1, dtype=np.int64)  # off the map
    places[:, near] = np.where(huge | np.isnan([row, column]), -1, [row, column])
    return places[0], places[1]


def _by_number(columns: Columns, path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row and column as a file numbers them: what a map without a place needs."""
    row, column = (_numbers(_column(columns, name, path), path, name) for name in ("row", "column"))
    return row, column


def _unrounded(
    columns: Columns, row: NDArray[np.int64], column: NDArray[np.int64], path: Path
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row and column as numbered at the draw, unless coordinates say something else.

    Spreadsheets round degrees, which may lead to the next pixel of a fine map.
    """
    if not {"row", "column"} <= set(columns):
        return row, column
    drawn = _by_number(columns, path)
    near = (np.abs(drawn[0] - row) <= 2) & (np.abs(drawn[1] - column) <= 2)
    return np.where(near, drawn[0], row), np.where(near, drawn[1], column)


def _check_places(
    path: Path, row: NDArray[np.int64], column: NDArray[np.int64], grid: Grid
) -> None:
    """Raise where points lie off the map, or several in one pixel."""
    off = (row < 0) | (row >= grid.height) | (column < 0) | (column >= grid.width)
    if off.any():
        raise InputError(
            f"{int(off.sum())} of the {row.size} points of {path} lie off the map, which has "
            f"{grid}. Give the map that they belong to, or correct their reference system."
        )
    n_twice = row.size - np.unique(row * grid.width + column).size
    if n_twice:
        raise InputError(
            f"{n_twice} of the {row.size} points of {path} lie in the pixel of another point. Keep "
            "one row per pixel."
        )


def _column(columns: Columns, name: str, path: Path) -> NDArray[Any]:
    if name.lower() not in columns:
        raise InputError(
            f"{path} has no column '{name}'. It has: {', '.join(columns) or 'none'}."
            f"{nearest(name, list(columns))}"
        )
    return columns[name.lower()]


def _floats(values: NDArray[Any], path: Path, name: str) -> NDArray[np.float64]:
    try:
        return np.array([float(str(value).replace(",", ".")) for value in values])
    except ValueError as error:
        raise FileError(f"{path}: the column '{name}' must hold numbers ({error}).") from None


def _numbers(values: NDArray[Any], path: Path, name: str) -> NDArray[np.int64]:
    numbers = _floats(values, path, name)
    if not np.array_equal(numbers, np.floor(numbers)):
        raise FileError(f"{path}: the column '{name}' must hold whole numbers.")
    return numbers.astype(np.int64)


def _classes_of(values: Iterable[Any], classes: ClassTable) -> tuple[NDArray[np.int64], ClassTable]:
    """Return the codes that labellers meant, and the class table with what it lacked."""
    texts = [str(value).strip() if is_known(value) else "" for value in values]
    names = zip(classes.names, classes.values, strict=True)
    code_of = {"": NO_REFERENCE, CANNOT_TELL_TEXT: CANNOT_TELL}
    code_of |= {name.casefold(): value for name, value in names}
    numbers = {text for text in texts if _WHOLE.fullmatch(text)} - set(code_of)
    code_of |= {text: int(float(text)) for text in numbers}
    strange = {text.casefold(): text for text in texts if text.casefold() not in code_of}
    start = max(code_of.values()) + 1
    code_of |= {key: code for code, key in enumerate(sorted(strange), start=start)}
    codes = np.array([code_of[text.casefold()] for text in texts], dtype=np.int64)
    table = classes.completed(codes[codes > NO_REFERENCE].tolist())
    spelled = {code_of[key]: text for key, text in strange.items()}
    named = [
        spelled.get(value, name) for value, name in zip(table.values, table.names, strict=True)
    ]
    for value, name in list(zip(table.values, named, strict=True))[len(classes) :]:
        warnings.warn(
            f"'{name}' ({int((codes == value).sum())} points) is not a class of the map: it counts "
            f"as an error wherever the map gives a label.{nearest(name, list(classes.names))}",
            HsrejectWarning,
            stacklevel=3,
        )
    return codes, ClassTable(table.values, tuple(named), table.colors)


def _design(values: NDArray[Any] | None, path: Path) -> Design | None:
    """Return the design that all rows of a file state, or None."""
    stated = {Design.parse(str(value)) for value in ([] if values is None else values)}
    if len(stated) > 1:
        raise InputError(
            f"{path} holds points of {len(stated)} different samples (column 'design'). Give one "
            "sample at a time."
        )
    return stated.pop() if stated else None


def _strata(
    columns: Columns, design: Design, path: Path
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the stratum of each point and how many pixels that has."""
    stratum, pixels_of = (
        _numbers(_column(columns, name, path), path, name) for name in ("stratum", "pixels")
    )
    pairs = np.unique(np.column_stack([stratum, pixels_of]), axis=0)
    if np.unique(pairs[:, 0]).size < len(pairs) or pairs[:, 1].sum() != design.n_pixels:
        raise FileError(
            f"{path}: the columns 'stratum' and 'pixels' do not fit together any more. Take them "
            "from the file that was drawn."
        )
    return stratum, pixels_of
