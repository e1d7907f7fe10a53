"""Vector features: polygons and points with a class, burnt onto the grid of a scene."""

from __future__ import annotations

import json
import re
import sqlite3
import warnings
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyogrio
import shapely
from rasterio.crs import CRS
from rasterio.features import rasterize
from rasterio.warp import transform as transform_coordinates
from rasterio.warp import transform_bounds

from hsreject.errors import FileError, InputError, LostFeatureWarning
from hsreject.files import free_space, reading, starts_with
from hsreject.io.grid import PixelGrid, crs_name, same_crs
from hsreject.io.remote import OFFLINE, RemotePath, gdal_name
from hsreject.io.vectors.spreadsheet import Table, number_in
from hsreject.registry import nearest
from hsreject.schema import NO_REFERENCE
from hsreject.splits.polygons import polygon_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_WHOLE = re.compile(r"\d{1,9}")
COORDINATES = ("x", "y")
"""The columns of a table of points in the reference system of the scene."""
DEGREES = (("longitude", "latitude"), ("lon", "lat"), ("long", "lat"), ("lng", "lat"))
"""What the columns of points in WGS 84 are called."""
_DRIVERS = {"GPKG", "ESRI Shapefile", "GeoJSON", "FlatGeobuf", "GML", "KML", "LIBKML"}
_NAMES_OTHERS = (b"<OGR", b"gdal_streamed_alg")  # marks of formats that lead to other files
_MOST_STEPS = 2 * 10**7  # of SQLite: some tenths of a second, millions of rows


class Features(NamedTuple):
    """The features of a layer and their classes."""

    geometries: NDArray[Any]  # of shapely, none missing or empty
    classes: NDArray[Any]  # one per feature, as its attribute says: whole numbers or text
    rows: NDArray[np.intp]  # their numbers in the file, from 1
    crs: CRS | None  # of the coordinates
    notes: tuple[str, ...] = ()  # what was left out


class LayerInfo(NamedTuple):
    """What a layer holds, before its features are read."""

    layer: str
    geometry_type: str
    n_features: int
    attributes: list[str]
    crs: CRS | None


def layer_info(path: Path, *, layer: str | None) -> LayerInfo:
    """Look at the layer of a vector file: the only one, or the one that was named."""
    if path.suffix.lower() == ".csv":
        points, columns, crs = _table_of_points(path)
        return LayerInfo(path.stem, "Point", len(points), list(columns), crs)
    _check_own(path)
    try:
        with _by_gdal(path) as source:
            layers = [str(name) for name, kind in pyogrio.list_layers(source) if kind is not None]
    except pyogrio.errors.DataSourceError:
        raise FileError(
            f"{path} is damaged, or not a {path.suffix} file as its name says. Export it again."
        ) from None
    name = layers[0] if layer is None and len(layers) == 1 else layer or ""
    if name not in layers:
        raise FileError(
            f"{path} has {len(layers)} layers with geometries: {', '.join(layers) or 'none'}. "
            f"Choose one of them with variable=NAME{f' (got {layer!r})' if layer else ''}, or "
            "export it into a file of its own."
        )
    _check_ends(path, name)
    with _by_gdal(path) as source:
        info = pyogrio.read_info(source, layer=name, force_feature_count=True)
    if info["driver"] not in _DRIVERS:
        raise FileError(f"{path} is of another format than its name says ({info['driver']}).")
    crs = CRS.from_user_input(info["crs"]) if info["crs"] else None
    fields = [str(field) for field in info["fields"]]
    return LayerInfo(name, str(info["geometry_type"]), int(info["features"]), fields, crs)


def _check_own(path: Path) -> None:
    """Raise if a file would make GDAL open others: an untrusted one could name any.

    GDAL goes by what a file holds, not by its name.
    """
    with path.open("rb") as stream:
        start = stream.read(2**16)
    if any(mark in start for mark in _NAMES_OTHERS):
        raise FileError(
            f"{path} names other files to read instead of holding features. Give the file that "
            "holds them."
        )


@contextmanager
def _by_gdal(path: Path) -> Iterator[str]:
    """Give the name under which GDAL opens a file; one on this machine makes it ask no server.

    Links to a reference system, schemas and what they include are not followed.
    """
    limits = {"GML_DOWNLOAD_SCHEMA": "NO", **({} if isinstance(path, RemotePath) else OFFLINE)}
    before = {name: pyogrio.get_gdal_config_option(name) for name in limits}
    pyogrio.set_gdal_config_options(limits)
    try:
        yield gdal_name(path)
    finally:
        pyogrio.set_gdal_config_options(before)


def _check_ends(path: Path, layer: str) -> None:
    """Raise if a layer of a database is a view that has no end: SQL can compute rows for ever."""
    if isinstance(path, RemotePath) or not starts_with(path, b"SQLite format 3"):
        return
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
            kinds = file.execute("SELECT type FROM sqlite_master WHERE name = ?", (layer,))
            if ("view",) in kinds.fetchall():
                file.set_progress_handler(lambda: 1, _MOST_STEPS)
                quoted = layer.replace('"', '""')
                file.execute(f'SELECT count(*) FROM "{quoted}"').fetchall()  # noqa: S608
    except sqlite3.Error as error:
        raise FileError(
            f"The layer '{layer}' of {path} is a view, which is computed whenever it is read, and "
            f"it has no end that can be seen ({error}). Export it as a layer of its own."
        ) from None


def points_in_csv(
    path: Path, pairs: Iterable[tuple[str, str]] = (*DEGREES, COORDINATES)
) -> tuple[NDArray[Any] | None, dict[str, NDArray[Any]], CRS | None]:
    """Read the points of a CSV file, its other columns and the CRS; that of x and y is None.

    Points lie where the first of the `pairs` of columns that the file has says; without any of them
    there are no points.
    """
    columns = Table.read(path).columns
    written = {name.lower(): name for name in columns}
    for x, y in pairs:
        if {x, y} <= written.keys():
            points = shapely.points(*(_coordinates(columns.pop(written[name])) for name in (x, y)))
            return points, columns, None if (x, y) == COORDINATES else CRS.from_epsg(4326)
    return None, columns, None


def _table_of_points(path: Path) -> tuple[NDArray[Any], dict[str, NDArray[Any]], CRS | None]:
    """Read a CSV file of points, with numbers where a column has nothing else."""
    _check_own(path)
    points, columns, crs = points_in_csv(path)
    if points is None:
        raise FileError(
            f"{path} has no columns longitude and latitude (lon, lat), or x and y, that say where "
            f"its points lie. It has: {', '.join(columns)}."
        )
    return points, {name: _numbers_if_all(one) for name, one in columns.items()}, crs


def _coordinates(cells: NDArray[Any]) -> NDArray[np.float64]:
    """Read numbers, NaN where a cell holds none."""
    numbers = np.full(cells.size, np.nan)
    for row, cell in enumerate(cells):
        with suppress(ValueError):
            numbers[row] = number_in(cell)
    return numbers


def _numbers_if_all(cells: NDArray[Any]) -> NDArray[Any]:
    """Convert a column to numbers, NaN where it is empty, unless one of its cells is text."""
    for dtype in (np.int64, np.float64):
        with suppress(ValueError, OverflowError):
            return np.where(cells == "", "nan", cells).astype(dtype)
    return cells


def read_features(path: Path, *, attribute: str | None, layer: str | None) -> Features:
    """Read the features of a vector file with the class that `attribute` gives them."""
    geometries, columns, crs = read_columns(path, layer=layer)
    listed = ", ".join(columns) or "none"
    if attribute is None:
        raise InputError(
            f"{path} holds features. Pass the attribute with their class: attribute=NAME, one of "
            f"{listed}."
        )
    if attribute not in columns:
        hint = nearest(attribute, list(columns))
        raise InputError(f"{path} has no attribute '{attribute}'. It has: {listed}.{hint}")
    classes = columns[attribute]
    if any(isinstance(value, list | dict | np.ndarray) for value in classes):
        raise FileError(
            f"{path}: '{attribute}' holds lists, not one class per feature. Choose an attribute of "
            "whole numbers or text."
        )
    there = ~(shapely.is_missing(geometries) | shapely.is_empty(geometries))
    classified = np.array([is_known(value) for value in classes], dtype=bool)
    notes = tuple(
        f"{int((~complete).sum())} features without a {lack} were left out."
        for complete, lack in ((there, "geometry"), (classified, f"value of '{attribute}'"))
        if not complete.all()
    )
    usable = np.flatnonzero(there & classified)
    if not usable.size:
        raise FileError(
            f"None of the {len(classes)} features of {path} has a geometry and a value of "
            f"'{attribute}'."
        )
    return Features(geometries[usable], classes[usable], usable + 1, crs, notes)


def read_columns(
    path: Path, *, layer: str | None = None
) -> tuple[NDArray[Any], dict[str, NDArray[Any]], CRS | None]:
    """Read the geometries of a layer, all its attributes, and its CRS.

    Geometries are missing where the file has none, or where a coordinate is not a number.
    """
    with reading(path):
        if path.suffix.lower() == ".csv":
            geometries, columns, crs = _table_of_points(path)
        else:
            info = layer_info(path, layer=layer)
            with _by_gdal(path) as source:
                meta, _, stored, values = pyogrio.raw.read(source, layer=info.layer)
            columns = dict(zip(map(str, meta["fields"]), values, strict=True))
            geometries, crs = shapely.from_wkb(stored), info.crs
        with np.errstate(invalid="ignore"):  # older shapely warns of NaN
            nowhere = ~np.isfinite(shapely.bounds(geometries)).all(axis=1)
        geometries[nowhere] = None
    return geometries, columns, crs


def is_known(value: Any) -> bool:
    """Tell whether an attribute has a value: not null, NaN or blank text."""
    if isinstance(value, str):
        return bool(value.strip())
    return value is not None and bool(value == value)  # noqa: PLR0124  NaN is not itself


def number_classes(
    classes: NDArray[Any], names: Mapping[int, str], *, path: Path
) -> tuple[NDArray[np.int64], dict[int, str], tuple[str, ...]]:
    """Convert the classes of features to numbers; with the names of these, and notes.

    Whole numbers stay what they are, even if written as text. Other text is numbered as in `names`,
    or else alphabetically from 1.
    """
    if classes.dtype.kind in "iufb":
        numbers = classes.astype(np.int64)
        if not np.array_equal(numbers, classes):
            raise FileError(
                f"{path}: classes must be whole numbers or text (found {classes.dtype})."
            )
        none = (numbers == NO_REFERENCE).any()
        return numbers, dict(names), ("Features of class 0 give no reference.",) if none else ()
    texts = [str(text).strip() for text in classes]
    if not set(texts) <= set(names.values()) and all(_WHOLE.fullmatch(text) for text in texts):
        numbers, named, notes = number_classes(np.array(texts, np.int64), names, path=path)
        note = "The classes are whole numbers written as text: they keep these numbers."
        return numbers, named, (note, *notes)
    alphabetical = "The classes were numbered from 1 in alphabetical order of their names."
    notes = () if names else (alphabetical,)
    names = names or dict(enumerate(sorted(set(texts)), start=1))
    number_of = {name: number for number, name in names.items()}
    strange = sorted(set(texts) - set(number_of))
    if strange:
        raise FileError(
            f"{path} has the classes {', '.join(strange)}, which names does not list "
            f"(it lists {', '.join(number_of)})."
        )
    return np.array([number_of[text] for text in texts], dtype=np.int64), dict(names), notes


def burn(
    features: Features, numbers: NDArray[np.int64], grid: PixelGrid, *, path: Path
) -> tuple[NDArray[np.int64], NDArray[np.int32], tuple[str, ...]]:
    """Burn features into maps on a grid: class and polygon of each pixel by number, and notes.

    A polygon fills the pixels whose centre it holds, a point the pixel it lies in. Where features
    overlap, the last one in the file counts. Polygons are numbered from 1; 0 is none. Parts of one
    feature that lie apart, as where polygons were dissolved by class, are polygons of their own.
    """
    near, geometries, notes = onto_grid(features, grid, path=path)
    # Burnt in the order of their classes, the last feature to hold a pixel is of its largest class,
    # and in the opposite order of its smallest: where they differ, it is unclear which is right.
    orders = (np.argsort(sign * numbers[near], kind="stable") for sign in (1, -1))
    top, bottom = (_last_feature(geometries, order, grid) for order in orders)
    burnt, least = np.append(numbers[near], NO_REFERENCE)[[top, bottom]]
    if (shared := burnt != least).any():
        pair = bottom[shared][0], top[shared][0]
        one, other = (
            f"number {features.rows[which]} of class {features.classes[which]}"
            for which in near[[*pair]]
        )
        n_shared = np.count_nonzero((bottom == pair[0]) & (top == pair[1]))
        raise InputError(
            f"Features of different classes overlap in {path}: {one} and {other} share {n_shared} "
            "pixels. Correct one of them."
        )
    if not burnt.any():
        west, south, east, north = shapely.total_bounds(features.geometries)
        raise InputError(
            f"The features of {path} do not overlap the scene: they reach from ({west:.10g}, "
            f"{south:.10g}) to ({east:.10g}, {north:.10g}); the scene has {grid}."
        )
    hidden = np.setdiff1d(np.arange(len(near)), top)
    while hidden.size:  # those that have pixels, but only under others, come up in turn
        risen = np.unique(_last_feature(geometries, hidden, grid))
        if risen[-1] < 0:
            break
        hidden = np.setdiff1d(hidden, risen)
    lost = np.setdiff1d(np.arange(len(numbers)), np.delete(near, hidden))
    if lost.size:
        listed = [f"{features.rows[one]} of class {features.classes[one]}" for one in lost[:5]]
        without_pixels = sorted(set(features.classes) - set(np.delete(features.classes, lost)))
        loss = (
            f"{lost.size} of {len(numbers)} features of {path.name} give no pixel, because they "
            "lie off the scene or between pixel centres: number "
            f"{', '.join(listed)}{', ...' if lost.size > 5 else ''}."
            + (
                f" Nothing is left of class {', '.join(map(str, without_pixels))}."
                if without_pixels
                else ""
            )
        )
        warnings.warn(loss, LostFeatureWarning, stacklevel=4)
        notes += (loss,)
    polygons = (top + 1).astype(np.int32)
    several = np.isin(polygons, np.flatnonzero(shapely.get_num_geometries(geometries) > 1) + 1)
    parts = polygon_numbers(np.where(several, polygons, NO_REFERENCE))
    return burnt, np.where(several, parts + polygons.max(initial=0), polygons), notes


def covered_pixels(path: Path, grid: PixelGrid) -> NDArray[np.bool_]:
    """Find the pixels of a grid (y, x) that the features of a file cover, whatever they are."""
    geometries, _, crs = read_columns(path)
    rows = np.flatnonzero(~(shapely.is_missing(geometries) | shapely.is_empty(geometries)))
    features = Features(geometries[rows], rows, rows + 1, crs)
    near, moved, _ = onto_grid(features, grid, path=path)
    return np.asarray(_last_feature(moved, np.arange(len(near)), grid) >= 0)


def _last_feature(
    geometries: NDArray[Any], numbers: NDArray[np.intp], grid: PixelGrid
) -> NDArray[Any]:
    """Find the last of the chosen features to hold each pixel; -1 where none does."""
    if not numbers.size:
        return np.full((grid.height, grid.width), -1)
    last: NDArray[np.int32] = rasterize(
        list(zip(geometries[numbers], numbers.tolist(), strict=True)),
        out_shape=(grid.height, grid.width),
        transform=grid.transform,
        fill=-1,
        dtype=np.int32,
    )
    return last


def onto_grid(
    features: Features, grid: PixelGrid, *, path: Path
) -> tuple[NDArray[np.intp], NDArray[Any], tuple[str, ...]]:
    """Find the features that lie near the scene, with their geometries in its CRS, and notes."""
    if not grid.georeferenced:
        raise InputError(
            f"{path} cannot be put onto a scene without a place on a map. Give the scene a "
            "reference system and a transform (.rio.write_crs, .rio.write_transform)."
        )
    source, target, geometries = features.crs, grid.crs, features.geometries
    if source is None or target is None:
        if source is not None:
            raise InputError(
                f"{path} is in {crs_name(source)}, but the scene does not say what it is in. "
                "Set it with scene.rio.write_crs(...)."
            )
        note = f"{path.name} has no reference system: taken for that of the scene."
        return np.arange(len(geometries)), geometries, (note,)
    if not len(geometries) or same_crs(source, target):
        return np.arange(len(geometries)), geometries, ()
    west, south, east, north = shapely.total_bounds(geometries)
    if source.is_geographic and max(abs(west), abs(east), 4 * abs(south), 4 * abs(north)) > 360:
        raise InputError(
            f"The coordinates of {path}, from ({west:.10g}, {south:.10g}) to ({east:.10g}, "
            f"{north:.10g}), are not in {crs_name(source)}, as it says. Correct its reference "
            "system."
        )

    def move(points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack(
            transform_coordinates(source, target, points[:, 0], points[:, 1])[:2]
        )

    # what lies far from a scene may have no place in its reference system, as the poles in UTM
    box = _box_around(grid, source)
    cut = shapely.clip_by_rect(geometries, *box)
    near = np.flatnonzero(~shapely.is_empty(cut))
    return near, shapely.transform(cut[near], move), ()


def _box_around(grid: PixelGrid, crs: CRS) -> tuple[float, float, float, float]:
    """Draw the box around a scene in another reference system, wider by half its size."""
    west, south, east, north = transform_bounds(grid.crs, crs, *grid.bounds)
    if west > east:  # across the line where 180 degrees meet -180
        west, east = -180.0, 180.0
    wide, high = (east - west) / 2, (north - south) / 2
    return west - wide, south - high, east + wide, north + high


def write_layer(
    path: Path,
    wkb: NDArray[Any],
    columns: Mapping[str, NDArray[Any]],
    geometry_type: str,
    crs: CRS | None,
    driver: str,
    *,
    layer: str,
    append: bool = False,
) -> None:
    """Write one layer of features, or add to it, or say that it could not be written.

    GeoJSON is in degrees, as its standard requires, wherever there is a reference system.
    """
    in_degrees = driver == "GeoJSON" and crs is not None
    options = {"RFC7946": "YES", "COORDINATE_PRECISION": "9"} if in_degrees else {}
    try:
        with warnings.catch_warnings():  # images without a place have no reference system
            warnings.filterwarnings("ignore", message="'crs' was not provided")
            pyogrio.raw.write(
                path,
                geometry=wkb,
                field_data=list(columns.values()),
                fields=list(columns),
                layer=layer,
                geometry_type=geometry_type,
                crs=None if crs is None else crs.to_wkt(),
                driver=driver,
                layer_options={} if append else options,
                append=append,
            )
        if driver == "GeoJSON":  # GDAL closes a file that was cut by a full disk without a word
            json.loads(path.read_bytes())
    except (
        pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, RuntimeError, ValueError
    ) as error:  # fmt: skip
        raise FileError(f"Could not write {path} ({free_space(path.parent)}).") from error


def append_points(
    path: Path, x: NDArray[Any], y: NDArray[Any], crs: CRS | None, columns: Mapping[str, Any]
) -> None:
    """Add points to the layer of a file, in its reference system; what else it holds stays.

    Of `columns`, those that the layer has are written; others that it has stay empty.
    """
    info = layer_info(path, layer=None)
    if crs is not None and info.crs is not None and not same_crs(crs, info.crs):
        x, y = map(np.array, transform_coordinates(crs, info.crs, x, y)[:2])
    cells = {name: columns[name.lower()] for name in info.attributes if name.lower() in columns}
    if path.suffix.lower() == ".geojson":  # to which GDAL adds features in another order
        collection = json.loads(path.read_bytes())
        rows = zip(*(values.tolist() for values in cells.values()), strict=True)
        collection["features"] += [
            {
                "type": "Feature",
                "properties": dict(zip(cells, row, strict=True)),
                "geometry": {"type": "Point", "coordinates": place},
            }
            for row, *place in zip(rows, x.tolist(), y.tolist(), strict=True)
        ]
        path.write_text(json.dumps(collection), encoding="utf-8")
        return
    points, driver = shapely.to_wkb(shapely.points(x, y)), pyogrio.detect_write_driver(path)
    write_layer(path, points, cells, "Point", info.crs, driver, layer=info.layer, append=True)
