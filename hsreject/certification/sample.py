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
from rasterio.warp import transform as transform_coordinates

from hsreject.certification.frame import NODATA, labels_of
from hsreject.errors import FileError, HsrejectWarning, InputError
from hsreject.files import existing, replacing
from hsreject.io.grid import PixelGrid, transformed
from hsreject.io.vectors.points import PointTable
from hsreject.io.vectors.spreadsheet import Table, write_csv
from hsreject.io.vectors.vector import (
    append_points,
    is_known,
    write_layer,
)
from hsreject.registry import nearest
from hsreject.schema import NO_REFERENCE, REJECTED, as_label_map, check_same_grid, class_table
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
    grid : PixelGrid
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
    grid: PixelGrid

    @classmethod
    def on_grid(
        cls, place: Places, like: xr.DataArray, classes: ClassTable, design: Design | None = None
    ) -> Sample:
        """Place unlabelled points by row and column, in one stratum; no value of `like` is read.

        What a map says at them is not known yet: 0.
        """
        ones = np.ones(place[0].size, dtype=np.int64)
        return cls(
            np.cumsum(ones),
            *place,
            label=REJECTED * ones,
            reference=NO_REFERENCE * ones,
            stratum=ones,
            stratum_pixels=ones * (like.size if design is None else design.n_pixels),
            design=design,
            classes=classes,
            grid=PixelGrid.of(like),
        )

    @classmethod
    def at(
        cls, place: NDArray[np.int64], on_map: xr.DataArray, design: Design | None = None
    ) -> Sample:
        """Place unlabelled points at flat places of a map of `labels_of`, in one stratum."""
        rows_and_columns = np.divmod(place, on_map.shape[1])
        points = cls.on_grid(rows_and_columns, on_map, class_table(on_map), design)
        label = on_map.values.flat[place].astype(np.int64)
        if design is None:
            n_pixels = np.count_nonzero(on_map.values != NODATA)
            points = replace(points, stratum_pixels=np.full(len(points), n_pixels))
        return replace(points, label=label)

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
        """Choose points by a mask or an index."""
        return replace(self, **{name: getattr(self, name)[which] for name in _ARRAYS})

    def joined(self, other: Sample) -> Sample:
        """Append the points of another sample of the same draw."""
        both: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in _ARRAYS
        }
        return replace(self, **both)

    def with_reference(self, reference: xr.DataArray | NDArray[Any]) -> Sample:
        """Fill in the labels that a reference map (y, x) has at the points."""
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
        """Look the labels of a map up at the points, on their grid."""
        self.check_grid(PixelGrid.of(on_map))
        label = on_map.values[self.row, self.column].astype(np.int64)
        classes = _completed(class_table(on_map), self.reference, self.classes)
        return replace(self, label=label, classes=classes)

    def check_grid(self, grid: PixelGrid) -> None:
        """Raise unless the points lie on this grid."""
        if not grid.fits(self.grid):
            raise InputError(
                f"The sample belongs to a map on another grid: {self.grid}, against {grid}. Write "
                "it into a file and open that for this map: open_sample(path, label)."
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
        if first == len(self):
            return
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
    """Complete a class table by values that it lacks, as another table names them."""
    table = classes.completed(values[values > NO_REFERENCE].tolist())
    added = [names.name_of(value) for value in table.values[len(classes) :]]
    if len({*classes.names, *added}) < len(table):  # the tables mean different classes by a name
        return table
    return ClassTable(table.values, (*classes.names, *added), table.colors)


# Files for people who label.


def _driver_of(path: Path) -> str:
    """Find the name that GDAL has for the format of a sample, or say which there are."""
    if path.suffix.lower() not in _DRIVERS:
        raise InputError(
            f"Cannot tell the format of '{path.name}'. A sample may end in: {', '.join(_DRIVERS)}."
        )
    return _DRIVERS[path.suffix.lower()]


def file_columns(sample: Sample, *, show_label: bool) -> tuple[Columns, NDArray[Any], NDArray[Any]]:
    """Lay out the columns of a file, and x and y of its points; an image has columns and rows."""
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
    return _opened_for(path, labels_of(label), attribute=attribute)


def _opened_for(
    path: str | PathLike[str], on_map: xr.DataArray, *, attribute: str = "reference"
) -> Sample:
    """Read a sample file for a map of `labels_of`, with the labels of that map."""
    sample = _opened(path, on_map, class_table(on_map), attribute=attribute, identity=on_map)
    n_pixels = np.count_nonzero(on_map.values != NODATA)
    if sample.design is None:
        sample = replace(sample, stratum_pixels=np.full(len(sample), n_pixels))
    return sample.on_map(on_map)


def _opened(
    path: str | PathLike[str],
    like: xr.DataArray,
    classes: ClassTable,
    *,
    attribute: str = "reference",
    identity: xr.DataArray | None = None,
) -> Sample:
    """Read a sample file on a grid; its numbers of rows count if it was drawn from this map."""
    file = existing(path)
    table = PointTable(file, PixelGrid.of(like))
    designs = {Design.parse(str(text)) for text in table.columns.get("design", ["unknown"])}
    if len(designs) > 1:
        raise InputError(
            f"{file} holds points of {len(designs)} different samples (column 'design'). Give one "
            "sample at a time."
        )
    design = designs.pop()
    is_drawn_here = (
        identity is not None and design is not None and design.map_id == map_id(identity)
    )
    place = table.pixels(drawn_here=is_drawn_here)
    reference, known_classes = _classes_of(table.column(attribute), classes)
    sample = Sample.on_grid(place, like, known_classes, design)
    sample = replace(sample, reference=reference)
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


def _classes_of(values: NDArray[Any], classes: ClassTable) -> tuple[NDArray[np.int64], ClassTable]:
    """Translate answers into codes; with the class table, completed by classes it lacked."""
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
            stacklevel=4,
        )
    return codes, table


def given_sample(
    sample: Sample | xr.DataArray | NDArray[Any] | str | PathLike[str],
    on_map: xr.DataArray,
    *,
    assume_random: bool,
) -> Sample:
    """Take points in any form with the labels of a map; an array is trusted to be random."""
    if isinstance(sample, str | PathLike):
        sample = _opened_for(sample, on_map)
    if not isinstance(sample, Sample):
        sample, assume_random = _sampled_in(sample, on_map, class_table(on_map)), True
    points = _checked(sample, assume_random=assume_random).on_map(on_map)
    points = points.select(points.label != NODATA)
    if not points.labelled.any() and points.kind != SEQUENTIAL:
        raise InputError(
            "No sampled pixel has a reference where the map has data. Fill in the column "
            "'reference' with class names or codes."
        )
    return points


def sample_of_scene(
    sample: Sample | xr.DataArray | NDArray[Any] | str | PathLike[str],
    like: xr.DataArray,
    classes: ClassTable,
) -> Sample:
    """Take points in any form on the grid of a scene (y, x) that is mapped later: none is read.

    An array is trusted to be random. What the map says at the points is not known yet.
    """
    is_trusted = False
    if isinstance(sample, str | PathLike):
        sample = _opened(sample, like, classes)
    if not isinstance(sample, Sample):
        sample, is_trusted = _sampled_in(sample, like, classes), True
    sample.check_grid(PixelGrid.of(like))
    return _checked(sample, assume_random=is_trusted)


def _sampled_in(
    reference: xr.DataArray | NDArray[Any], like: xr.DataArray, classes: ClassTable
) -> Sample:
    """Take the pixels of a map (y, x) that have a reference label."""
    on_grid = as_label_map(reference, name="sample")
    check_same_grid(like, on_grid, names=("the map", "sample"))
    row, column = np.nonzero(on_grid.values)
    return Sample.on_grid((row, column), like, classes).with_reference(on_grid)


def _checked(sample: Sample, *, assume_random: bool) -> Sample:
    """Raise unless the points are a whole sample that was drawn at random."""
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
    return sample
