"""A sample of the pixels of a map: how it was drawn, where its points lie, what they really are."""

from __future__ import annotations

import csv
import hashlib
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import shapely
import xarray as xr
from rasterio.warp import transform as transform_coordinates

from hsreject.classes import ClassTable
from hsreject.errors import FileError, InputError
from hsreject.files import replacing
from hsreject.io.grid import Grid, transformed
from hsreject.io.vector import write_layer
from hsreject.promise.frame import NODATA
from hsreject.schema import NO_REFERENCE, as_label_map, class_table

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

RANDOM, STRATIFIED, CLIMB = "random", "stratified", "climb"
CHOSEN = "chosen"  # to train on, of :func:`hsreject.next_labels`: not a random sample
TOGETHER, EACH = "together", "each"

CANNOT_TELL = -1
"""The reference of a point that was looked at and could not be labelled."""
CANNOT_TELL_TEXT = "cannot tell"
NONE_OF_THESE_TEXT = "none of these"

WGS84 = "EPSG:4326"
_DRIVERS = {".gpkg": "GPKG", ".geojson": "GeoJSON", ".csv": "CSV"}
_LAYER = "sample"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what makes a spreadsheet compute a cell
_SCHEMA_TABLES = """
CREATE TABLE gpkg_data_columns (table_name TEXT NOT NULL, column_name TEXT NOT NULL, name TEXT,
    title TEXT, description TEXT, mime_type TEXT, constraint_name TEXT,
    PRIMARY KEY (table_name, column_name), UNIQUE (table_name, name));
CREATE TABLE gpkg_data_column_constraints (constraint_name TEXT NOT NULL,
    constraint_type TEXT NOT NULL, value TEXT, min NUMERIC, min_is_inclusive BOOLEAN,
    max NUMERIC, max_is_inclusive BOOLEAN, description TEXT,
    UNIQUE (constraint_name, constraint_type, value));
CREATE TABLE IF NOT EXISTS gpkg_extensions (table_name TEXT, column_name TEXT,
    extension_name TEXT NOT NULL, definition TEXT NOT NULL, scope TEXT NOT NULL,
    UNIQUE (table_name, column_name, extension_name));
INSERT INTO gpkg_extensions SELECT column1, NULL, 'gpkg_schema',
    'http://www.geopackage.org/spec/#extension_schema', 'read-write'
    FROM (VALUES ('gpkg_data_columns'), ('gpkg_data_column_constraints'));
INSERT INTO gpkg_data_columns (table_name, column_name, constraint_name)
    VALUES ('sample', 'reference', 'classes');
"""
Columns = dict[str, "NDArray[Any]"]


def _whole_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


@dataclass(frozen=True)
class Design:
    """How the points of a sample were drawn.

    Its text, such as "random n=500 pixels=20865 seed=0 map=0123456789abcdef", is in every row of a
    sample file, because a column survives every program that files go through. That of a climb
    holds the whole plan and ends in a digest of itself: a changed plan is noticed.
    """

    kind: str  # "random", "stratified" or "climb"
    n_points: int  # drawn; of a climb, the labels that one is ready to make
    n_pixels: int  # of the map that could be drawn: those with data that were not excluded
    seed: int
    map_id: str  # of the label map, see :func:`hsreject.promise.frame.map_id`
    looks: tuple[int, ...] = ()  # of a random sample: after how many labels one may certify
    ranking_id: str = ""  # of a climb: tells labels, confidences and exclusions from any other
    max_error: float = 0.0
    confidence_level: float = 0.0
    starts: tuple[int, ...] = ()  # first region: one, or one for each class of the map
    per_class: str = ""  # "", "together" or "each"

    _TEXT = re.compile(r"\b(random|stratified|climb|chosen)((?: \w+=[\w.,+-]+)+)")
    _ENTRIES: ClassVar[dict[str, tuple[str, Callable[[str], Any]]]] = {
        "n": ("n_points", int),
        "pixels": ("n_pixels", int),
        "seed": ("seed", int),
        "map": ("map_id", str),
        "looks": ("looks", _whole_numbers),
        "ranking": ("ranking_id", str),
        "error": ("max_error", float),
        "level": ("confidence_level", float),
        "start": ("starts", _whole_numbers),
        "classes": ("per_class", str),
    }

    def __str__(self) -> str:
        text = self.kind
        for key, (name, _) in self._ENTRIES.items():
            value = getattr(self, name)
            if value or isinstance(value, int):
                text += f" {key}={','.join(map(str, value)) if type(value) is tuple else value}"
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        return f"{text} check={digest}" if self.kind == CLIMB else text

    @classmethod
    def parse(cls, text: str) -> Design | None:
        """Return the design that a text states, or None; raise if its plan was changed."""
        stated = cls._TEXT.search(text)
        if stated is None:
            return None
        entries = dict(entry.split("=", 1) for entry in stated[2].split())
        try:
            facts: dict[str, Any] = {
                name: read(entries[key])
                for key, (name, read) in cls._ENTRIES.items()
                if key in entries
            }
            design = cls(kind=stated[1], **facts)
        except (TypeError, ValueError):
            return None
        if design.kind == CLIMB and str(design) != stated[0]:
            raise InputError(
                "The plan of the sample (column 'design') was changed after the draw, which breaks "
                "its promise. Take the column from the file that was drawn, or draw a new sample."
            )
        return design


@dataclass(frozen=True, eq=False)
class Sample:
    """Points at pixel centres of a map, to be labelled or labelled already.

    Made by :func:`hsreject.draw_sample` and :func:`hsreject.open_sample`. All arrays have one entry
    per point; points come in random order, so that the first ones are a sample, too.

    Attributes
    ----------
    id : array of int
        Number of the point, from 1 in the order of the draw.
    row, column : array of int
        The pixel, counted from 0.
    label : array of int
        What the map says, 0 where it rejects.
    reference : array of int
        What is really there, 0 where nobody has looked yet, -1 where it could not be told.
    stratum : array of int
        The stratum that the point was drawn from; its number does not tell the map's label.
    stratum_pixels : array of int
        Number of pixels in that stratum.
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
        cls,
        place: NDArray[np.int64],
        on_map: xr.DataArray,
        design: Design | None = None,
        *,
        first: int = 1,
    ) -> Sample:
        """Return unlabelled points at flat places of a map of `labels_of`, in one stratum."""
        row, column = np.divmod(place, on_map.shape[1])
        ones = np.ones(place.size, dtype=np.int64)
        n_pixels = int(np.count_nonzero(on_map.values != NODATA))
        return cls(
            id=np.arange(first, first + place.size),
            row=row,
            column=column,
            label=on_map.values.flat[place].astype(np.int64),
            reference=0 * ones,
            stratum=ones,
            stratum_pixels=ones * (n_pixels if design is None else design.n_pixels),
            design=design,
            classes=class_table(on_map),
            grid=Grid.of(on_map),
        )

    def __len__(self) -> int:
        return self.id.size

    @property
    def place(self) -> NDArray[np.int64]:
        """The flat place of each point on the map."""
        return self.row * self.grid.width + self.column

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which points have been looked at, with or without success."""
        return np.asarray(self.reference != NO_REFERENCE)

    @property
    def inclusion_probability(self) -> NDArray[np.float64]:
        """The share of the pixels of its stratum that was drawn, for each point; NaN in a climb."""
        if self.design is not None and self.design.kind == CLIMB:
            return np.full(len(self), np.nan)
        _, stratum, counts = np.unique(self.stratum, return_inverse=True, return_counts=True)
        return np.asarray(counts[stratum] / self.stratum_pixels)

    def select(self, which: NDArray[Any]) -> Sample:
        """Return the points that a mask or an index chooses."""
        return replace(self, **{name: getattr(self, name)[which] for name in _COLUMNS})

    def joined(self, other: Sample) -> Sample:
        """Return the points of this sample and then those of another one of the same draw."""
        both: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _COLUMNS
        }
        return replace(self, **both)

    def with_reference(self, reference: xr.DataArray | NDArray[Any]) -> Sample:
        """Return the same points with the labels that a reference map (y, x) has there."""
        on_grid = as_label_map(reference, name="reference")
        shape = (self.grid.height, self.grid.width)
        if on_grid.shape != shape:
            raise InputError(
                f"reference must have the {shape[0]} rows x {shape[1]} columns of the map that the "
                f"sample was drawn from (got {on_grid.shape[0]} x {on_grid.shape[1]})."
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
        return replace(
            self,
            label=on_map.values[self.row, self.column].astype(np.int64),
            classes=_completed(class_table(on_map), self.reference, self.classes),
        )

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
        driver = _DRIVERS.get(path.suffix.lower())
        if driver is None:
            raise InputError(
                f"Cannot tell the format of '{path.name}'. A sample may end in: "
                f"{', '.join(_DRIVERS)}."
            )
        columns, x, y = file_columns(self, show_label=show_label)
        columns |= notes or {}
        with replacing(path, overwrite=overwrite) as work:
            if driver == "CSV":
                cells = (values.tolist() for values in columns.values())
                write_csv(work, columns, zip(*cells, strict=True))
            else:
                points = shapely.to_wkb(shapely.points(x, y))
                write_layer(work, points, columns, "Point", self.grid.crs, driver, layer=_LAYER)
            if driver == "GPKG":
                _offer_classes(work, [*self.classes.names, NONE_OF_THESE_TEXT, CANNOT_TELL_TEXT])
        return path


_COLUMNS = tuple(
    field.name for field in fields(Sample) if field.name not in {"design", "classes", "grid"}
)


def _completed(classes: ClassTable, values: NDArray[np.int64], names: ClassTable) -> ClassTable:
    """Return a class table with the values that it lacks, as another table names them."""
    table = classes.completed(values[values > NO_REFERENCE].tolist())
    added = [names.name_of(value) for value in table.values[len(classes) :]]
    if len({*classes.names, *added}) < len(table):  # the tables mean different classes by a name
        return table
    return ClassTable(table.values, (*classes.names, *added), table.colors)


# Files for people who label.


def file_columns(sample: Sample, *, show_label: bool) -> tuple[Columns, NDArray[Any], NDArray[Any]]:
    """Return the columns of a file, and x and y of its points.

    Without a place these are columns, and rows downwards, where QGIS draws such an image.
    """
    grid = sample.grid
    x, y = sample.column + 0.5, -(sample.row + 0.5)
    place: Columns = {}
    if grid.georeferenced:
        x, y = transformed(grid.transform, (x, -y))
        place = {"x": x, "y": y}
    if grid.crs is not None:
        longitude, latitude = transform_coordinates(grid.crs, WGS84, x, y)[:2]
        place |= {"longitude": np.array(longitude), "latitude": np.array(latitude)}

    def texts(values: NDArray[np.int64], others: dict[int, str | None]) -> NDArray[Any]:
        names = [others[v] if v in others else sample.classes.name_of(v) for v in values.tolist()]
        return np.array(names, dtype=object)

    unlabelled = {NO_REFERENCE: None, CANNOT_TELL: CANNOT_TELL_TEXT}
    columns: Columns = {"id": sample.id, "reference": texts(sample.reference, unlabelled), **place}
    columns |= {"row": sample.row, "column": sample.column}
    if sample.design is None or sample.design.kind in {RANDOM, STRATIFIED}:
        columns |= {
            "stratum": sample.stratum,
            "inclusion_probability": sample.inclusion_probability,
            "pixels": sample.stratum_pixels,
        }
    columns["design"] = np.array([str(sample.design or "unknown")] * len(sample), dtype=object)
    if show_label:
        columns["map_label"] = texts(sample.label, {0: "rejected"})
    return columns, x, y


def write_csv(path: Path, names: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table for spreadsheets; text that one would compute begins with an apostrophe."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)  # which writes None as nothing
        writer.writerow([_as_text(name) for name in names])
        writer.writerows([_as_text(cell) for cell in row] for row in rows)


def _as_text(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def without_apostrophe(cell: str) -> str:
    """Return a cell as it was before :func:`write_csv` marked it as text."""
    return cell[1:] if cell[:1] == "'" and cell[1:].startswith(_FORMULA) else cell


def _offer_classes(path: Path, names: list[str]) -> None:
    """Say in a GeoPackage which values the column `reference` may have.

    The tables of the GeoPackage extension "Schema" (OGC 12-128r18, annex F.9), from which QGIS
    makes a drop-down.
    """
    try:
        with closing(sqlite3.connect(path)) as file, file:
            file.executescript(_SCHEMA_TABLES)
            file.executemany(
                "INSERT INTO gpkg_data_column_constraints (constraint_name, constraint_type, value,"
                " description) VALUES ('classes', 'enum', ?1, ?1)",
                [(name,) for name in names],
            )
    except sqlite3.Error as error:
        raise FileError(f"Could not write {path}: {error}.") from error
