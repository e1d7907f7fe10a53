"""A sample of the pixels of a map, and the files in which people label it."""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
import warnings
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
import xarray as xr
from rasterio.crs import CRS
from rasterio.warp import transform as transform_coordinates

from hsreject.certification.frame import NODATA, labels_of
from hsreject.errors import FileError, GuessWarning, HsrejectWarning, InputError
from hsreject.files import existing, replacing
from hsreject.io.grid import Grid, transformed
from hsreject.io.vectors.spreadsheet import Table, number_in, write_csv
from hsreject.io.vectors.vector import (
    COORDINATES,
    DEGREES,
    Features,
    append_points,
    is_known,
    onto_grid,
    read_columns,
    write_layer,
)
from hsreject.registry import nearest
from hsreject.schema import NO_REFERENCE, as_label_map, check_same_grid, class_table
from hsreject.schema.classes import ClassTable
from hsreject.schema.label_maps import map_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Columns = dict[str, NDArray[Any]]
    Places = tuple[NDArray[np.int64], NDArray[np.int64]]

RANDOM, STRATIFIED, SEQUENTIAL = "random", "stratified", "sequential"
CHOSEN = "chosen"  # to train on, of :func:`hsreject.next_labels`: not a random sample
TOGETHER, EACH = "together", "each"
_EARLIER = {"climb": SEQUENTIAL}  # what designs were called, in files and in calls

CANNOT_TELL = -1
"""The reference of a point that was looked at and could not be labelled."""
CANNOT_TELL_TEXT = "cannot tell"
NONE_OF_THESE_TEXT = "none of these"
REMEDY = (
    "Draw a sample with 'hsreject sample', or, if these points are a simple random sample of this "
    "map and none of them was used to make it, say so (assume_random=True, --assume-random)."
)

_WGS84 = "EPSG:4326"
_DRIVERS = {".gpkg": "GPKG", ".geojson": "GeoJSON", ".csv": "CSV"}
_POINTS = {shapely.GeometryType.POINT, shapely.GeometryType.MULTIPOINT}
_WHOLE = re.compile(r"\d{1,5}(\.0*)?")


@dataclass(frozen=True)
class Design:
    """How the points of a sample were drawn.

    Its text, such as "random n=500 pixels=20865 seed=0 map=0123456789abcdef", is in every row of a
    sample file, because a column survives every program that files go through. That of a sequential
    design holds all of it and ends in a digest of itself: a changed one is noticed.
    """

    kind: str  # "random", "stratified" or "sequential"
    n_points: int  # drawn; of a sequential design, the labels that one is ready to make
    n_pixels: int  # of the map that could be drawn: those with data that were not excluded
    seed: int
    map_id: str  # of the label map, see :func:`hsreject.schema.label_maps.map_id`
    looks: tuple[int, ...] = ()  # of a random sample of 0.3: after how many labels one may certify
    ranking_id: str = ""  # of a sequential design: of labels, confidences and exclusions
    max_error: float = 0.0
    confidence_level: float = 0.0
    starts: tuple[int, ...] = ()  # first region: one, or one for each class of the map
    per_class: str = ""  # "", "together" or "each"

    def __str__(self) -> str:
        text = self.kind
        for key, (name, _) in _ENTRIES.items():
            value = getattr(self, name)
            if value or isinstance(value, int):
                text += f" {key}={','.join(map(str, value)) if type(value) is tuple else value}"
        return f"{text} check={_check(text)}" if self.kind == SEQUENTIAL else text

    @classmethod
    def parse(cls, text: str) -> Design | None:
        """Read the design that a text states, or None; raise if it was changed."""
        stated = _DESIGN.search(text)
        if stated is None:
            return None
        entries = (entry.split("=", 1) for entry in stated[2].split() if entry[:6] != "check=")
        try:
            facts = {_ENTRIES[key][0]: _ENTRIES[key][1](value) for key, value in entries}
            design = cls(kind=kind_of(stated[1]), **facts)
        except (KeyError, TypeError, ValueError):
            return None
        unchecked = str(design).partition(" check=")[0].replace(design.kind, stated[1], 1)
        if design.kind == SEQUENTIAL and stated[0] != f"{unchecked} check={_check(unchecked)}":
            raise InputError(
                "The design of the sample (column 'design') was changed after the draw, which "
                "breaks its promise. Take the column from the file that was drawn, or draw a new "
                "sample."
            )
        return design


def kind_of(word: str) -> str:
    """Name a kind of design as it is called today."""
    return _EARLIER.get(word, word)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _check(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


_DESIGN = re.compile(r"\b(random|stratified|sequential|climb|chosen)((?: \w+=[\w.,+-]+)+)")
_ENTRIES: dict[str, tuple[str, Any]] = {  # in the text of a design, and how they are read
    "n": ("n_points", int), "pixels": ("n_pixels", int), "seed": ("seed", int),
    "map": ("map_id", str), "looks": ("looks", _numbers), "ranking": ("ranking_id", str),
    "error": ("max_error", float), "level": ("confidence_level", float),
    "start": ("starts", _numbers), "classes": ("per_class", str),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Sample:
    """Points at pixel centres of a map, to be labelled or labelled already.

    All arrays have one entry per point; points come in random order, so that the first ones are a
    sample, too.

    Attributes
    ----------
    id : array of int
        Number of the point, from 1 in the order of the draw.
    row, column : array of int
        The pixel, counted from 0.
    label, reference : array of int
        What the map says, 0 where it rejects, and what is really there, 0 where nobody has looked
        yet, -1 where it could not be told.
    stratum, stratum_pixels : array of int
        The stratum that the point was drawn from, by a number that does not tell the map's label,
        and how many pixels it has.
    design : Design or None
        How the points were drawn, if that is known.
    classes : ClassTable
        The classes of the map and those that only the reference has.
    grid : Grid
        Of the map.

    See Also
    --------
    hsreject.draw_sample : makes one.
    hsreject.open_sample : opens one.
    hsreject.certify : promises by it.

    Examples
    --------
    >>> import numpy as np
    >>> import hsreject as hr
    >>> label = np.repeat([[1, 2, 2, 2]], 25, axis=0)
    >>> sample = hr.draw_sample(label, 10)
    >>> answered = sample.with_reference(np.ones_like(label))
    >>> len(sample), np.unique(sample.reference).tolist(), np.unique(answered.reference).tolist()
    (10, [0], [1])
    """

    id: NDArray[np.int64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    label: NDArray[np.int64]
    reference: NDArray[np.int64]
    stratum: NDArray[np.int64]
    stratum_pixels: NDArray[np.int64]
    design: Design | None
    classes: ClassTable
    grid: Grid

    @classmethod
    def at(
        cls, place: NDArray[np.int64], on_map: xr.DataArray, design: Design | None = None
    ) -> Sample:
        """Return unlabelled points at flat places of a map of `labels_of`, in one stratum."""
        ones = np.ones(place.size, dtype=np.int64)
        n_pixels = int(np.count_nonzero(on_map.values != NODATA))
        return cls(
            np.cumsum(ones),
            *np.divmod(place, on_map.shape[1]),
            label=on_map.values.flat[place].astype(np.int64),
            reference=NO_REFERENCE * ones,
            stratum=ones,
            stratum_pixels=ones * (n_pixels if design is None else design.n_pixels),
            design=design,
            classes=class_table(on_map),
            grid=Grid.of(on_map),
        )

    def __len__(self) -> int:
        return self.id.size

    @property
    def kind(self) -> str:
        """How the points were drawn, in a word; "" where that is not known."""
        return "" if self.design is None else self.design.kind

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which points have been looked at, with or without success."""
        return np.asarray(self.reference != NO_REFERENCE)

    @property
    def inclusion_probability(self) -> NDArray[np.float64]:
        """The drawn share of the pixels of each point's stratum; NaN in a sequential design."""
        _, stratum, counts = np.unique(self.stratum, return_inverse=True, return_counts=True)
        share = counts[stratum] / self.stratum_pixels
        return np.full(len(self), np.nan) if self.kind == SEQUENTIAL else np.asarray(share)

    def select(self, which: NDArray[Any] | slice) -> Sample:
        """Return the points that a mask or an index chooses."""
        return replace(self, **{name: getattr(self, name)[which] for name in _ARRAYS})

    def joined(self, other: Sample) -> Sample:
        """Return the points of this sample and then those of another one of the same draw."""
        both: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _ARRAYS
        }
        return replace(self, **both)

    def with_reference(self, reference: xr.DataArray | NDArray[Any]) -> Sample:
        """Return the same points with the labels that a reference map (y, x) has there."""
        on_grid = as_label_map(reference, name="reference")
        if on_grid.shape != (self.grid.height, self.grid.width):
            raise InputError(
                f"reference must be on the grid that the sample was drawn from, {self.grid} (got "
                f"{on_grid.shape[0]} rows x {on_grid.shape[1]} columns)."
            )
        values = on_grid.values[self.row, self.column].astype(np.int64)
        names = ClassTable.from_attrs(on_grid.attrs) or self.classes
        return replace(self, reference=values, classes=_completed(self.classes, values, names))

    def on_map(self, on_map: xr.DataArray) -> Sample:
        """Return the same points with the labels of a map on their grid."""
        grid = Grid.of(on_map)
        if not grid.fits(self.grid):
            raise InputError(
                f"The sample belongs to a map on another grid: {self.grid}, against {grid}. Write "
                "it into a file and open that for this map: open_sample(path, label)."
            )
        label = on_map.values[self.row, self.column].astype(np.int64)
        classes = _completed(class_table(on_map), self.reference, self.classes)
        return replace(self, label=label, classes=classes)

    def write(
        self,
        path: str | PathLike[str],
        *,
        show_label: bool = False,
        notes: Mapping[str, NDArray[Any]] | None = None,
        overwrite: bool = False,
    ) -> Path:
        """Write the points for QGIS or a spreadsheet, .gpkg, .geojson or .csv; return the path.

        Parameters
        ----------
        path : path
            The file to make. The column `reference` is the one to fill in, with names or codes of
            classes, or "cannot tell"; leave the others as they are. A GeoPackage offers the classes
            in QGIS as a drop-down.
        show_label : bool
            Add what the map says in a column `map_label`. People who see it tend to agree with it.
        notes : mapping, optional
            Further columns by their names, one entry per point.
        overwrite : bool
            Replace a file that is already there.
        """
        path = Path(path)
        driver = _driver_of(path)
        columns, x, y = file_columns(self, show_label=show_label)
        columns |= notes or {}
        with replacing(path, overwrite=overwrite) as work:
            if driver == "CSV":
                cells = (values.tolist() for values in columns.values())
                write_csv(work, columns, zip(*cells, strict=True))
            else:
                points = shapely.to_wkb(shapely.points(x, y))
                crs, layer = self.grid.crs, path.stem
                write_layer(work, points, columns, "Point", crs, driver, layer=layer)
            if driver == "GPKG":
                _offer_classes(work, [*self.classes.names, NONE_OF_THESE_TEXT, CANNOT_TELL_TEXT])
        return path

    def append_to(self, path: str | PathLike[str], first: int) -> None:
        """Add the points from number `first` (from 0) on to the file of the others.

        Whatever people have added to it stays: answers, columns, and tables of a GeoPackage.
        """
        path = Path(path)
        driver = _driver_of(path)
        columns, x, y = file_columns(self.select(slice(first, None)), show_label=True)
        with replacing(path, overwrite=True) as work:
            if driver == "CSV":
                Table.read(path).append(work, columns)
            else:
                shutil.copyfile(path, work)
                append_points(work, x, y, self.grid.crs, columns)


_ARRAYS = [field.name for field in fields(Sample)][:-3]


def _completed(classes: ClassTable, values: NDArray[np.int64], names: ClassTable) -> ClassTable:
    """Return a class table with the values that it lacks, as another table names them."""
    table = classes.completed(values[values > NO_REFERENCE].tolist())
    added = [names.name_of(value) for value in table.values[len(classes) :]]
    if len({*classes.names, *added}) < len(table):  # the tables mean different classes by a name
        return table
    return ClassTable(table.values, (*classes.names, *added), table.colors)


# Files for people who label.


def _driver_of(path: Path) -> str:
    """Return what GDAL calls the format of a sample, or say which there are."""
    if path.suffix.lower() not in _DRIVERS:
        raise InputError(
            f"Cannot tell the format of '{path.name}'. A sample may end in: {', '.join(_DRIVERS)}."
        )
    return _DRIVERS[path.suffix.lower()]


def file_columns(sample: Sample, *, show_label: bool) -> tuple[Columns, NDArray[Any], NDArray[Any]]:
    """Return the columns of a file, and x and y of its points; an image has columns and rows."""
    grid = sample.grid
    x, y = sample.column + 0.5, -(sample.row + 0.5)
    place: Columns = {}
    if grid.georeferenced:
        x, y = transformed(grid.transform, (x, -y))
        place = {"x": x, "y": y}
    if grid.crs is not None:
        degrees = transform_coordinates(grid.crs, _WGS84, x, y)[:2]
        place |= dict(zip(("longitude", "latitude"), map(np.array, degrees), strict=True))

    def texts(values: NDArray[np.int64], others: dict[int, str | None]) -> NDArray[Any]:
        names = [others[v] if v in others else sample.classes.name_of(v) for v in values.tolist()]
        return np.array(names, dtype=object)

    unlabelled = {NO_REFERENCE: None, CANNOT_TELL: CANNOT_TELL_TEXT}
    columns: Columns = {"id": sample.id, "reference": texts(sample.reference, unlabelled), **place}
    columns |= {"row": sample.row, "column": sample.column}
    if sample.kind not in {SEQUENTIAL, CHOSEN}:
        columns |= {
            "stratum": sample.stratum,
            "inclusion_probability": sample.inclusion_probability,
            "pixels": sample.stratum_pixels,
        }
    columns["design"] = np.array([str(sample.design or "unknown")] * len(sample), dtype=object)
    if show_label:
        columns["map_label"] = texts(sample.label, {0: "rejected"})
    return columns, x, y


def _offer_classes(path: Path, names: list[str]) -> None:
    """Say in a GeoPackage which values the column `reference` may have."""
    try:
        with closing(sqlite3.connect(path)) as file, file:
            tables = files("hsreject.certification").joinpath("drop_down.sql")
            file.executescript(tables.read_text(encoding="utf-8"))
            file.execute(
                "INSERT INTO gpkg_data_columns (table_name, column_name, constraint_name) VALUES "
                "(?, 'reference', 'classes')",
                (path.stem,),
            )
            file.executemany(
                "INSERT INTO gpkg_data_column_constraints (constraint_name, constraint_type, value,"
                " description) VALUES ('classes', 'enum', ?1, ?1)",
                [(name,) for name in names],
            )
    except sqlite3.Error as error:
        raise FileError(f"Could not write {path}: {error}.") from error


def open_sample(
    path: str | PathLike[str], label: xr.DataArray | NDArray[Any], *, attribute: str = "reference"
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
    >>> import tempfile
    >>> import numpy as np
    >>> from hsreject import draw_sample, open_sample
    >>> label = np.repeat([[1, 2]], 50, axis=0)
    >>> sample = draw_sample(label, 6)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = sample.with_reference(label).write(f"{folder}/sample.csv")
    ...     back = open_sample(path, label)
    >>> bool((back.reference == sample.label).all()), back.design == sample.design
    (True, True)
    """
    file, on_map = existing(path), labels_of(label)
    table = _Table(file, Grid.of(on_map))
    designs = {Design.parse(str(text)) for text in table.columns.get("design", ["unknown"])}
    if len(designs) > 1:
        raise InputError(
            f"{file} holds points of {len(designs)} different samples (column 'design'). Give one "
            "sample at a time."
        )
    design = designs.pop()
    row, column = table.pixels(drawn_here=design is not None and design.map_id == map_id(on_map))
    reference, classes = _classes_of(table.column(attribute), class_table(on_map))
    sample = Sample.at(row * on_map.shape[1] + column, on_map, design)
    sample = replace(sample, reference=reference, classes=classes)
    if "id" in table.columns:
        sample = replace(sample, id=table.numbers("id", whole=True))
    if design is None or design.kind != STRATIFIED:
        return sample
    strata = np.array([table.numbers(name, whole=True) for name in ("stratum", "pixels")])
    stratum, n_pixels = np.unique(strata, axis=1)
    if np.unique(stratum).size < stratum.size or n_pixels.sum() != design.n_pixels:
        raise FileError(
            f"{file}: the columns 'stratum' and 'pixels' do not fit together any more. Take them "
            "from the file that was drawn."
        )
    return replace(sample, stratum=strata[0], stratum_pixels=strata[1])


class _Table:
    """The columns of a sample file, by lower-case names, and where its points lie on a grid."""

    def __init__(self, path: Path, grid: Grid) -> None:
        self.path, self.grid, self.crs = path, grid, grid.crs
        self.points: NDArray[Any] | None = None
        if path.suffix.lower() == ".csv":
            self.columns = {name.lower(): cells for name, cells in Table.read(path).columns.items()}
            there = [pair for pair in DEGREES if grid.crs is not None and self.has(*pair)]
            if there:
                self.crs = CRS.from_user_input(_WGS84)
            elif grid.georeferenced and self.has(*COORDINATES):
                there = [COORDINATES]
            elif not self.has("row", "column"):
                raise FileError(
                    f"{path} must have the columns longitude and latitude, x and y, or row and "
                    f"column, to say where its points lie. It has: {', '.join(self.columns)}."
                )
            if there:
                self.points = shapely.points(*map(self.numbers, there[0]))
        else:
            geometries, columns, crs = read_columns(path)
            if not set(shapely.get_type_id(geometries).tolist()) <= _POINTS:
                raise InputError(
                    f"{path} must hold points, but has polygons, lines or rows without a place. "
                    "The pixels of one polygon are not separate draws: take one random pixel of "
                    "each polygon, or draw points with 'hsreject sample'."
                )
            parts, of = shapely.get_parts(geometries, return_index=True)
            self.columns = {name.lower(): values[of] for name, values in columns.items()}
            if grid.georeferenced:
                self.points, self.crs = parts, crs
        if not len(next(iter(self.columns.values()), ())):
            raise FileError(f"{path} has no points, or no column with them.")

    def has(self, *names: str) -> bool:
        """Tell whether the file has all of these columns."""
        return set(names) <= self.columns.keys()

    def column(self, name: str) -> NDArray[Any]:
        """Return a column, or say which ones there are."""
        if name.lower() not in self.columns:
            raise InputError(
                f"{self.path} has no column '{name}'. It has: {', '.join(self.columns) or 'none'}."
                f"{nearest(name, list(self.columns))}"
            )
        return self.columns[name.lower()]

    def numbers(self, name: str, *, whole: bool = False) -> NDArray[Any]:
        """Return a column of numbers; some programs write a comma for the decimal point."""
        try:
            numbers = np.array([number_in(cell) for cell in self.column(name)])
            broken = numbers[(np.floor(numbers) != numbers) | np.isinf(numbers)]
            if whole and broken.size:
                raise ValueError(f"not {broken[0]:g}")
            return numbers.astype(np.int64) if whole else numbers
        except ValueError as error:
            raise FileError(
                f"{self.path}: the column '{name}' must hold {'whole ' * whole}numbers ({error})."
            ) from None

    def pixels(self, *, drawn_here: bool) -> Places:
        """Return row and column of the points: by their coordinates, or as the file numbers them.

        Spreadsheets round degrees, which may lead to the next pixel of a fine map: where a sample
        was drawn from exactly this map and the numbers are near, they count.
        """
        places = self._by_number() if self.points is None else self._by_place(self.points)
        if drawn_here and self.has("row", "column"):
            drawn = self._by_number()
            places = np.where((np.abs(drawn - places) <= 2).all(axis=0), drawn, places)
        row, column = places
        off = (row < 0) | (row >= self.grid.height) | (column < 0) | (column >= self.grid.width)
        n_off, n_twice = int(off.sum()), row.size - np.unique(places, axis=1).shape[1]
        if n_off:
            raise InputError(
                f"{n_off} of the {row.size} points of {self.path} lie off the map, which has "
                f"{self.grid}. Give the map that they belong to, or correct their reference system."
            )
        if n_twice:
            raise InputError(
                f"{n_twice} of the {row.size} points of {self.path} lie in the pixel of another "
                "point. Keep one row per pixel."
            )
        return row, column

    def _by_number(self) -> NDArray[np.int64]:
        return np.array([self.numbers(name, whole=True) for name in ("row", "column")])

    def _by_place(self, points: NDArray[Any]) -> NDArray[np.int64]:
        grid, crs = self.grid, self.crs
        numbers = np.arange(len(points))
        stated = Features(points, numbers, numbers, grid.crs if crs is None else crs)
        n_nowhere = int(np.count_nonzero(~np.isfinite(shapely.get_coordinates(points)).all(axis=1)))
        if n_nowhere:
            raise FileError(
                f"{n_nowhere} of the {len(points)} points of {self.path} have no place."
            )
        near, moved, notes = onto_grid(stated, grid, path=self.path)
        if crs is None and grid.crs is not None:
            notes += (f"{self.path.name} has no reference system: taken for that of the map.",)
        for note in notes:
            warnings.warn(note, GuessWarning, stacklevel=4)
        pixel = np.floor(transformed(~grid.transform, (shapely.get_x(moved), shapely.get_y(moved))))
        off = ~(np.abs(pixel) <= np.iinfo(np.int32).max)  # or not finite
        places = np.full((2, len(points)), -1, dtype=np.int64)  # off the map
        places[:, near] = np.where(off, -1, pixel)
        return places[::-1]


def _classes_of(values: NDArray[Any], classes: ClassTable) -> tuple[NDArray[np.int64], ClassTable]:
    """Return the codes that labellers meant, and the class table with what it lacked."""
    texts = [str(value).strip() if is_known(value) else "" for value in values]
    code_of = {"": NO_REFERENCE, CANNOT_TELL_TEXT: CANNOT_TELL}
    code_of |= {name.casefold(): v for name, v in zip(classes.names, classes.values, strict=True)}
    whole = {text for text in texts if _WHOLE.fullmatch(text)} - set(code_of)
    code_of |= {text: int(float(text)) for text in whole}
    spelled = {text.casefold(): text for text in texts if text.casefold() not in code_of}
    strange = dict(enumerate(sorted(spelled), start=max(code_of.values()) + 1))
    code_of |= {key: code for code, key in strange.items()}
    codes = np.array([code_of[text.casefold()] for text in texts], dtype=np.int64)
    names = ClassTable.from_names({code: spelled[key] for code, key in strange.items()})
    table = _completed(classes, codes, names)
    for value, name in list(zip(table.values, table.names, strict=True))[len(classes) :]:
        warnings.warn(
            f"'{name}' ({int((codes == value).sum())} points) is not a class of the map: it counts "
            "as an error wherever the map gives a label."
            f"{nearest(name, list(classes.names))}",
            HsrejectWarning,
            stacklevel=3,
        )
    return codes, table


def given_sample(
    sample: Sample | xr.DataArray | NDArray[Any] | str | PathLike[str],
    on_map: xr.DataArray,
    *,
    assume_random: bool,
) -> Sample:
    """Return points in any form with the labels of a map; an array is trusted to be random."""
    if isinstance(sample, str | PathLike):
        sample = open_sample(sample, on_map)
    if not isinstance(sample, Sample):
        on_grid = as_label_map(sample, name="sample")
        check_same_grid(on_map, on_grid, names=("the map", "sample"))
        sample = Sample.at(np.flatnonzero(on_grid.values), on_map).with_reference(on_grid)
        assume_random = True
    if sample.kind == CHOSEN:
        raise InputError(
            "These points were chosen to train on ('hsreject next'): they are not a random sample "
            "of any map. Draw one with 'hsreject sample'."
        )
    if not (sample.kind or assume_random):
        raise InputError(f"The sample does not say how its points were drawn. {REMEDY}")
    n_drawn = 0 if sample.design is None else sample.design.n_points
    if len(sample) < n_drawn and not (assume_random or sample.kind == SEQUENTIAL):
        raise InputError(
            f"{n_drawn - len(sample)} of the {n_drawn} points that were drawn are missing from the "
            "sample. Put these rows back, with an empty reference."
        )
    points = sample.on_map(on_map)
    points = points.select(points.label != NODATA)
    if not points.labelled.any() and points.kind != SEQUENTIAL:
        raise InputError(
            "No sampled pixel has a reference where the map has data. Fill in the column "
            "'reference' with class names or codes."
        )
    return points
