"""Sample files: points that people label in QGIS or a spreadsheet, and what comes back."""

from __future__ import annotations

import csv
import re
import warnings
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
from hsreject.io.grid import Grid, transformed
from hsreject.io.vector import Features, is_known, onto_grid, read_columns
from hsreject.promise.frame import NODATA, labels_of, map_id
from hsreject.promise.sample import (
    CANNOT_TELL,
    CANNOT_TELL_TEXT,
    CHOSEN,
    CLIMB,
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

    Places = tuple[NDArray[np.int64], NDArray[np.int64]]

WAY_OUT = (
    "Draw a sample with 'hsreject sample', or, if these points are a simple random sample of this "
    "map and none of them was used to make it, say so (assume_random=True, --assume-random)."
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
    table = _Table(file, Grid.of(on_map))
    design = table.design()
    row, column = table.pixels(drawn_here=design is not None and design.map_id == map_id(on_map))
    reference, classes = _classes_of(table.column(attribute), class_table(on_map))
    sample = Sample.at(row * on_map.shape[1] + column, on_map, design)
    sample = replace(sample, reference=reference, classes=classes)
    if "id" in table.columns:
        sample = replace(sample, id=table.numbers("id"))
    if design is None or design.kind != STRATIFIED:
        return sample
    stratum, pixels = table.numbers("stratum"), table.numbers("pixels")
    pairs = np.unique(np.column_stack([stratum, pixels]), axis=0)
    if np.unique(pairs[:, 0]).size < len(pairs) or pairs[:, 1].sum() != design.n_pixels:
        raise FileError(
            f"{file}: the columns 'stratum' and 'pixels' do not fit together any more. Take them "
            "from the file that was drawn."
        )
    return replace(sample, stratum=stratum, stratum_pixels=pixels)


def given_sample(
    sample: Sample | xr.DataArray | NDArray[Any] | str | PathLike[str],
    on_map: xr.DataArray,
    *,
    assume_random: bool,
) -> Sample:
    """Return the points of a sample in any form, with the labels of a map of :func:`labels_of`.

    An array is trusted to be what the caller says; points of unknown origin only if the caller says
    so.
    """
    if isinstance(sample, str | PathLike):
        sample = open_sample(sample, on_map)
    if not isinstance(sample, Sample):
        on_grid = as_label_map(sample, name="sample")
        check_same_grid(on_map, on_grid, names=("the map", "sample"))
        sample = Sample.at(np.flatnonzero(on_grid.values), on_map).with_reference(on_grid)
        assume_random = True
    design = sample.design
    if design is not None and design.kind == CHOSEN:
        raise InputError(
            "These points were chosen to train on ('hsreject next'): they are not a random sample "
            "of any map. Draw one with 'hsreject sample'."
        )
    if design is None and not assume_random:
        raise InputError(f"The sample does not say how its points were drawn. {WAY_OUT}")
    if not (assume_random or design is None or design.kind == CLIMB):
        n_missing = design.n_points - len(sample)
        if n_missing > 0:
            raise InputError(
                f"{n_missing} of the {design.n_points} points that were drawn are missing from the "
                "sample. Put these rows back, with an empty reference."
            )
    points = sample.on_map(on_map)
    points = points.select(points.label != NODATA)
    if not points.labelled.any() and (design is None or design.kind != CLIMB):
        raise InputError(
            "No sampled pixel has a reference where the map has data. Fill in the column "
            "'reference' with class names or codes."
        )
    return points


class _Table:
    """The columns of a sample file, by lower-case names, and where its points lie on a grid."""

    def __init__(self, path: Path, grid: Grid) -> None:
        self.path, self.grid = path, grid
        self._points: Any = None
        self._crs: CRS | None = None
        if path.suffix.lower() == ".csv":
            self.columns = _csv_columns(path)
            self._find_coordinates()
        else:
            self._read_layer()
        if not len(next(iter(self.columns.values()), ())):
            raise FileError(f"{path} has no points, or no column with them.")

    def _read_layer(self) -> None:
        geometries, columns, crs = read_columns(self.path)
        if shapely.is_missing(geometries).any() or shapely.is_empty(geometries).any():
            raise FileError(f"{self.path} has points without a place. Remove these rows.")
        points = {shapely.GeometryType.POINT, shapely.GeometryType.MULTIPOINT}
        if not set(shapely.get_type_id(geometries).tolist()) <= points:
            raise InputError(
                f"{self.path} holds polygons or lines, but a sample holds points: the pixels of "
                "one polygon are not separate draws. Take one random pixel of each polygon, or "
                "draw points with 'hsreject sample'."
            )
        parts, of = shapely.get_parts(geometries, return_index=True)
        self.columns = {name.lower(): values[of] for name, values in columns.items()}
        if self.grid.georeferenced:
            self._points, self._crs = parts, crs

    def _find_coordinates(self) -> None:
        if self.grid.crs is not None and {"longitude", "latitude"} <= set(self.columns):
            place, self._crs = ("longitude", "latitude"), CRS.from_user_input(WGS84)
        elif self.grid.georeferenced and {"x", "y"} <= set(self.columns):
            place, self._crs = ("x", "y"), self.grid.crs
        else:
            return
        self._points = shapely.points(*map(self._floats, place))

    def column(self, name: str) -> NDArray[Any]:
        """Return a column, or say which ones there are."""
        if name.lower() not in self.columns:
            raise InputError(
                f"{self.path} has no column '{name}'. It has: {', '.join(self.columns) or 'none'}."
                f"{nearest(name, list(self.columns))}"
            )
        return self.columns[name.lower()]

    def _floats(self, name: str) -> NDArray[np.float64]:
        try:
            return np.array([float(str(v).replace(",", ".")) for v in self.column(name)])
        except ValueError as error:
            raise FileError(
                f"{self.path}: the column '{name}' must hold numbers ({error})."
            ) from None

    def numbers(self, name: str) -> NDArray[np.int64]:
        """Return a column of whole numbers."""
        numbers = self._floats(name)
        if not np.array_equal(numbers, np.floor(numbers)):
            raise FileError(f"{self.path}: the column '{name}' must hold whole numbers.")
        return numbers.astype(np.int64)

    def design(self) -> Design | None:
        """Return the design that all rows state, or None."""
        stated = {Design.parse(str(value)) for value in self.columns.get("design", ["unknown"])}
        if len(stated) > 1:
            raise InputError(
                f"{self.path} holds points of {len(stated)} different samples (column 'design'). "
                "Give one sample at a time."
            )
        return stated.pop()

    def pixels(self, *, drawn_here: bool) -> Places:
        """Return row and column of the points: by their coordinates, or as the file numbers them.

        Spreadsheets round degrees, which may lead to the next pixel of a fine map: where a sample
        was drawn from exactly this map and the numbers are near, they count.
        """
        row, column = self._by_number() if self._points is None else self._by_place()
        if drawn_here and {"row", "column"} <= set(self.columns):
            drawn = self._by_number()
            near = (np.abs(drawn[0] - row) <= 2) & (np.abs(drawn[1] - column) <= 2)
            row, column = np.where(near, drawn[0], row), np.where(near, drawn[1], column)
        off = (row < 0) | (row >= self.grid.height) | (column < 0) | (column >= self.grid.width)
        if off.any():
            raise InputError(
                f"{int(off.sum())} of the {row.size} points of {self.path} lie off the map, which "
                f"has {self.grid}. Give the map that they belong to, or correct their reference "
                "system."
            )
        n_twice = row.size - np.unique(row * self.grid.width + column).size
        if n_twice:
            raise InputError(
                f"{n_twice} of the {row.size} points of {self.path} lie in the pixel of another "
                "point. Keep one row per pixel."
            )
        return row, column

    def _by_number(self) -> Places:
        return self.numbers("row"), self.numbers("column")

    def _by_place(self) -> Places:
        points, grid, crs = self._points, self.grid, self._crs
        numbers = np.arange(len(points))
        stated = Features(points, numbers, numbers, grid.crs if crs is None else crs)
        near, moved, notes = onto_grid(stated, grid, path=self.path)
        if crs is None and grid.crs is not None:
            notes += (f"{self.path.name} has no reference system: taken for that of the map.",)
        for note in notes:
            warnings.warn(note, GuessWarning, stacklevel=4)
        x, y = shapely.get_x(moved), shapely.get_y(moved)
        pixel = np.floor(transformed(~grid.transform, (x, y)))
        off = ~(np.abs(pixel) <= np.iinfo(np.int32).max)  # or not finite
        places = np.full((2, len(points)), -1, dtype=np.int64)  # off the map
        places[:, near] = np.where(off, -1, pixel)
        return places[1], places[0]


def _csv_columns(path: Path) -> Columns:
    """Return the columns of a CSV file as text; spreadsheets may separate them by semicolons."""
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", errors="replace")
    separator = max(",;\t", key=text.partition("\n")[0].count)
    rows = [row for row in csv.reader(text.splitlines(), delimiter=separator) if any(row)]
    if not rows:
        return {}
    names = [name.strip().lower() for name in rows[0]]
    if any(len(row) > len(names) for row in rows):
        raise FileError(
            f"{path} has a row with more cells than the {len(names)} columns named in the first."
        )
    cells = [[*map(without_apostrophe, map(str.strip, row))] for row in rows[1:]]
    table = np.array([row + [""] * (len(names) - len(row)) for row in cells], dtype=object)
    return dict(zip(names, table.reshape(-1, len(names)).T, strict=True))


def _classes_of(values: NDArray[Any], classes: ClassTable) -> tuple[NDArray[np.int64], ClassTable]:
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
    spelled = dict(zip(table.values, table.names, strict=True))
    spelled |= {code_of[key]: text for key, text in strange.items()}
    for value in table.values[len(classes) :]:
        warnings.warn(
            f"'{spelled[value]}' ({int((codes == value).sum())} points) is not a class of the map: "
            "it counts as an error wherever the map gives a label."
            f"{nearest(spelled[value], list(classes.names))}",
            HsrejectWarning,
            stacklevel=3,
        )
    return codes, ClassTable(table.values, tuple(spelled.values()), table.colors)
