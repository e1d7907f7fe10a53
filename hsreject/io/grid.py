"""The place of pixels: a grid, the rioxarray way, or a lookup table from the sensor to a map.

A lookup table stays in the product file. A cube carries only the coordinate `lookup_table`, which
says where it is, and the rows and columns of the sensor that it shows; every map made from it
inherits them, whole or cropped.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
import rasterio
import rioxarray  # noqa: F401 - registers the .rio accessor
import xarray as xr
from affine import Affine
from rasterio.crs import CRS
from rasterio.errors import CRSError, NotGeoreferencedWarning
from rasterio.warp import transform as transform_coordinates
from scipy.interpolate import interp1d

from hsreject import schema
from hsreject.errors import FileError, InputError
from hsreject.io.arrays import open_hdf5
from hsreject.io.remote import as_path, existing_scene
from hsreject.schema import MAP_DIMS, X, Y

if TYPE_CHECKING:
    from pathlib import Path

    import h5py
    from numpy.typing import NDArray

    from hsreject.io.arrays import Layer
    from hsreject.io.rasters.raster import RasterInfo

# Coordinates that differ by less than this part of a pixel are the same.
_TOLERANCE = 0.01
# Coordinates carry rounding; a real shift is a good part of a pixel.
_SAME_PIXEL = 1e-3
# Areas of pixels are nominal where the map scale is as true as the first of these, and one for a
# row where they differ by less than the second.
_TRUE_TO_SCALE, _SAME_AREA = 0.01, 1e-7
# What rioxarray calls the coordinates of a rotated grid.
_ROTATED_X, _ROTATED_Y = "xc", "yc"
LOOKUP_TABLE = "lookup_table"
SENSOR_ROW, SENSOR_COLUMN = "sensor_row", "sensor_column"
_PLACE = (LOOKUP_TABLE, SENSOR_ROW, SENSOR_COLUMN)
_REACH = 1.5  # pixels of the map: how far the nearest one of a swath may lie
_LARGEST_MAP = 20  # times the pixels of the sensor


@dataclass(frozen=True)
class Grid:
    """Where the pixels of a map lie."""

    height: int
    width: int
    transform: Affine  # from (column, row) of a pixel's corner to map coordinates; may be rotated
    crs: CRS | None = None  # coordinate reference system, if known

    @classmethod
    def of(cls, array: xr.DataArray) -> Grid:
        """Return the grid of an array with the dims y and x; the identity if it says nothing.

        The transform of the file is used to the last bit as long as the coordinates agree with
        it; that of a cropped array is moved by whole pixels.
        """
        if not isinstance(array, xr.DataArray) or not set(MAP_DIMS) <= set(array.dims):
            raise InputError(
                "The grid must come from an xarray.DataArray with the dims y and x, such as a "
                f"scene (got {type(array).__name__}). Open the scene with open_scene first."
            )
        height, width = (array.sizes[dim] for dim in MAP_DIMS)
        transform = _stored_transform(array)
        if transform is None:
            transform = array.rio.transform(recalc=True)
        return cls(height, width, transform, array.rio.crs)

    def stated(self, transform: Affine | Sequence[float] | None, crs: Any) -> Grid:
        """Return this grid with the transform and the reference system that a caller gave."""
        grid = self
        if transform is not None:
            try:
                given = Affine(*(float(number) for number in transform[:6]))
            except (TypeError, ValueError):
                given = None
            if given is not None and given.a and given.d and given.c == given.e == 0:
                given = None  # these are in the order of GDAL
            if given is None or given.is_degenerate or not np.isfinite(given[:6]).all():
                raise InputError(
                    "transform must be six numbers that span an area, as rasterio orders them: "
                    f"(a, b, c, d, e, f) with x = a column + b row + c (got {transform!r}). "
                    "GDAL's order is turned with affine.Affine.from_gdal(*numbers)."
                )
            grid = replace(grid, transform=given)
        if crs is not None:
            try:
                grid = replace(grid, crs=CRS.from_user_input(crs))
            except (CRSError, ValueError) as error:
                raise InputError(
                    f"crs {crs!r} is not a reference system ({str(error).rstrip('.')}). Give an "
                    "EPSG code such as 'EPSG:32633', WKT, or a CRS of rasterio or pyproj."
                ) from error
        return grid

    @property
    def georeferenced(self) -> bool:
        """Whether the pixels have a place on a map."""
        return self.crs is not None or self.transform != Affine.identity()

    @property
    def pixel_hectares(self) -> float | None:
        """The area of a pixel, or None where the reference system has no metres."""
        if self.crs is None or not self.crs.is_projected:
            return None
        metres = float(self.crs.linear_units_factor[1])
        return float(abs(self.transform.determinant) * metres**2 / 10_000)

    def pixel_areas(self) -> NDArray[np.float64] | None:
        """Return the hectares of each pixel, of a shape that fits (y, x), or None without a place.

        From the corners on the ellipsoid, where the map scale is more than 1 % off anywhere: in
        degrees, in Mercator's projection (a quarter at 60 degrees north), far from where a
        projection is true. Elsewhere all pixels have their nominal area. Corners are computed for
        some pixels and areas interpolated between them.
        """
        if self.crs is None or not (self.crs.is_projected or self.crs.is_geographic):
            return None
        rows, columns = (_spread(size) for size in (self.height, self.width))
        areas = self._ellipsoidal_areas(rows, columns)
        nominal = self.pixel_hectares
        if nominal is not None and np.abs(areas / nominal - 1).max() < _TRUE_TO_SCALE:
            return np.full((1, 1), nominal)
        along_rows = interp1d(rows, areas, axis=0)(np.arange(self.height))
        if np.ptp(areas, axis=1).max() <= _SAME_AREA * areas.max():
            return np.asarray(along_rows[:, :1])
        return np.asarray(interp1d(columns, along_rows, axis=1)(np.arange(self.width)))

    def _ellipsoidal_areas(
        self, rows: NDArray[np.intp], columns: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Return the hectares of the pixels where some rows and columns meet."""
        system = pyproj.CRS.from_wkt(self.crs.to_wkt())  # type: ignore[union-attr]
        geodesic = pyproj.Transformer.from_crs(system, system.geodetic_crs, always_xy=True)
        row, column = (grid.ravel() for grid in np.meshgrid(rows, columns, indexing="ij"))
        a, b, c, d, e, f = self.transform[:6]
        down, across = row[:, None] + [0, 0, 1, 1], column[:, None] + [0, 1, 1, 0]
        corners = geodesic.transform(a * across + b * down + c, d * across + e * down + f)
        geod = system.get_geod() or pyproj.Geod(ellps="WGS84")
        areas = [geod.polygon_area_perimeter(x, y)[0] for x, y in zip(*corners, strict=True)]
        return np.abs(areas).reshape(rows.size, columns.size) / 10_000

    @property
    def rotated(self) -> bool:
        """Whether rows and columns run askew to the map axes."""
        a, b, _, d, e, _ = self.transform[:6]
        drift = max(abs(b) * self.height, abs(d) * self.width)
        return bool(drift > _TOLERANCE * max(abs(a), abs(e)))

    @property
    def orientation(self) -> str:
        """How rows and columns run, in words, unless east is right and north is up."""
        a, d, e = self.transform.a, self.transform.d, self.transform.e
        if self.rotated:
            return f"rotated by {np.degrees(np.arctan2(-d, a)):.4g} degrees"
        turned = {"row in the south": e > 0, "column in the east": a < 0}
        first = [word for word, is_so in turned.items() if is_so]
        return f"first {' and first '.join(first)}" if first else ""

    def attach(self, array: xr.DataArray) -> xr.DataArray:
        """Return `array` with this grid: x and y of pixel centres, transform and CRS.

        Without a place on a map there are no coordinates, so that the array fits any map of its
        size. On a rotated grid x and y differ from pixel to pixel: the array gets rioxarray's
        two-dimensional `xc` and `yc` instead, lazy if `array` is lazy.
        """
        if not self.georeferenced:
            return array
        # rioxarray copies the array it writes on: so it gets an empty one, and ours the coordinates
        place = xr.DataArray(0)
        if self.crs is not None:
            place = place.rio.write_crs(self.crs)
        place = place.rio.write_transform(self.transform)
        bare = array.drop_vars((X, Y, _ROTATED_X, _ROTATED_Y), errors="ignore")
        placed = bare.assign_coords(self._centres(array)).assign_coords(place.coords)
        placed.encoding = {**array.encoding, **place.encoding}
        return placed

    def _centres(self, array: xr.DataArray) -> dict[str, xr.DataArray]:
        a, b, c, d, e, f = self.transform[:6]
        down = xr.DataArray(np.arange(self.height) + 0.5, dims=Y)
        across = xr.DataArray(np.arange(self.width) + 0.5, dims=X)
        if not self.rotated:
            return {Y: f + e * down, X: c + a * across}
        if array.chunks is not None:
            sizes = dict(zip(array.dims, array.chunks, strict=True))
            down, across = down.chunk({Y: sizes[Y]}), across.chunk({X: sizes[X]})
        return {
            _ROTATED_X: (c + b * down + a * across).transpose(*MAP_DIMS),
            _ROTATED_Y: (f + e * down + d * across).transpose(*MAP_DIMS),
        }

    def same_as(self, other: Grid) -> bool:
        """Tell whether two grids have the same pixels."""
        if (self.height, self.width) != (other.height, other.width):
            return False
        if self.crs is not None and other.crs is not None and not same_crs(self.crs, other.crs):
            return False
        a, b, c, d, e, f = np.abs(np.subtract(self.transform[:6], other.transform[:6]))
        apart = max(c + a * self.width + b * self.height, f + d * self.width + e * self.height)
        return bool(apart <= _TOLERANCE * np.sqrt(abs(self.transform.determinant)))

    def __str__(self) -> str:
        size = f"{self.height} rows x {self.width} columns"
        if not self.georeferenced:
            return f"{size} without a place on a map"
        a, b, c, d, e, f = self.transform[:6]
        pixel = f"pixels of {np.hypot(a, d):.10g} x {np.hypot(b, e):.10g}"
        askew = f", {self.orientation}" if self.orientation else ""
        return f"{size}, {pixel} from ({c:.12g}, {f:.12g}){askew}, in {crs_name(self.crs)}"


def _spread(size: int) -> NDArray[np.intp]:
    """Return up to 33 places from the first to the last of `size`, at least two to go between."""
    return np.unique(np.linspace(0, max(size - 1, 1), min(size + 1, 33)).astype(np.intp))


def _stored_transform(array: xr.DataArray) -> Affine | None:
    """Return the transform that an array carries, moved to its first pixel; None if outdated.

    The array may have been cropped (moved by whole pixels) or thinned (then it is outdated): the
    centres of the first and the last pixel tell.
    """
    if "GeoTransform" not in array.coords.get(array.rio.grid_mapping, array).attrs:
        return None
    stored: Affine = array.rio.transform(recalc=False)
    names = (X, Y) if X in array.coords else (_ROTATED_X, _ROTATED_Y)
    if not all(name in array.coords for name in names):
        return stored
    places = array.coords.to_dataset()[list(names)]
    ends = [places.isel({X: end, Y: end}) for end in (0, -1)]
    first, last = ((float(end[names[0]]), float(end[names[1]])) for end in ends)
    column, row = transformed(~stored, first)
    corner = transformed(stored, (round(column - 0.5), round(row - 0.5)))
    moved = Affine(stored.a, stored.b, corner[0], stored.d, stored.e, corner[1])
    last_pixel = array.sizes[X] - 0.5, array.sizes[Y] - 0.5
    off = [
        np.subtract(transformed(~moved, centre), pixel)
        for centre, pixel in ((first, (0.5, 0.5)), (last, last_pixel))
    ]
    return moved if np.abs(off).max() < _SAME_PIXEL else None


def transformed(transform: Affine, point: tuple[float, float]) -> tuple[float, float]:
    """Return where a transform takes a point; affine 2 has `*` for it and affine 3 `@`."""
    x, y = point
    return (
        x * transform.a + y * transform.b + transform.c,
        x * transform.d + y * transform.e + transform.f,
    )


def same_crs(first: CRS, second: CRS) -> bool:
    """Tell whether two reference systems are one, whether or not both carry the EPSG code."""
    if first == second:
        return True
    code = first.to_epsg()
    return code is not None and code == second.to_epsg()


def crs_name(crs: CRS | None) -> str:
    """Return what people call a reference system: its EPSG code, else its name."""
    if crs is None:
        return "an unknown reference system"
    code = crs.to_epsg()
    if code is not None:
        return f"EPSG:{code}"
    return crs.to_wkt().partition('"')[2].partition('"')[0] or "an unnamed reference system"


@contextmanager
def quiet_without_place() -> Iterator[None]:
    """Silence rasterio's warning about files without a place: such scenes are common and fine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        yield


# The place that a raster file states.


def grid_of_file(dataset: Any, path: Path) -> Grid:
    """Return the grid of an open raster, without the negative zeros that GDAL makes for ENVI."""
    transform = Affine(*(number + 0.0 for number in dataset.transform[:6]))
    if not (transform.determinant and np.isfinite(transform[:6]).all()):
        raise FileError(
            f"{path} has pixels of size 0 or nowhere (its transform is {transform[:6]}). "
            "Correct its place on the map, or remove it."
        )
    crs = None if local_system(dataset.crs) else dataset.crs
    return Grid(dataset.height, dataset.width, transform, crs)


def local_system(crs: CRS | None) -> str:
    """Return the name of a system of coordinates that no other can be brought into, or nothing."""
    return crs_name(crs) if crs is not None and crs.to_wkt().startswith("LOCAL_CS") else ""


def place_notes(info: RasterInfo) -> Iterator[str]:
    """Yield a sentence about what a raster says of its place and cannot simply be followed."""
    header, crs, transform = info.source.fields, info.grid.crs, info.grid.transform
    unplaced = transform == Affine.identity()
    if unplaced and info.n_control_points:
        yield (
            f"The file lies on the map by {info.n_control_points} ground control points only, "
            "which are not used: warp it first, for example with gdalwarp."
        )
    elif unplaced and header.get("map info"):
        yield "The map info of the header is not understood: no place on a map."
    elif unplaced and crs is not None:
        yield "The file has a reference system but no coordinates: pixels count from 0."
    if info.local_system not in {"", "Arbitrary"}:  # as ENVI calls coordinates without a system
        yield f"The reference system {info.local_system} is only a name: not used."
    if crs is not None and crs.is_geographic and max(abs(transform.c) / 4, abs(transform.f)) > 180:
        yield "The coordinates are not degrees, as the reference system says: correct one of them."
    try:
        with rasterio.Env():  # else GDAL complains on the screen
            if stated := header.get("coordinate system string"):
                CRS.from_wkt(stated, morph_from_esri_dialect=True)
    except CRSError:
        yield "The coordinate system string of the header is not understood: not used."


# Images that keep the geometry of the sensor.


@dataclass(frozen=True, eq=False)
class LookupTable:
    """Which pixel of the sensor each pixel of a map shows.

    Parameters
    ----------
    path : Path
        The HDF5 file that holds the table.
    row_name, column_name : str
        Its arrays (y, x) on the grid of the map: row and column of the sensor, counted from 1. Of a
        swath, its arrays (y, x) of the sensor: latitude and longitude of its pixels.
    swath : bool
        Whether the file has latitude and longitude instead of a table.
    infilled : bool
        Whether a negative number points at a pixel, too: one that fills a gap from beside it.
        0 never does.
    grid : Grid
        The map.
    rows, columns : array of int
        Which rows and columns of the sensor an image shows, counted from 0.
    """

    path: Path
    row_name: str
    column_name: str
    infilled: bool
    grid: Grid
    rows: NDArray[np.integer]
    columns: NDArray[np.integer]
    swath: bool = False

    @classmethod
    def of(cls, array: xr.DataArray) -> LookupTable | None:
        """Return the table that an array in sensor geometry refers to; None for others."""
        if not set(_PLACE) <= set(getattr(array, "coords", ())):
            return None
        stated = json.loads(str(array.coords[LOOKUP_TABLE].values))
        crs = CRS.from_wkt(stated["crs"]) if stated["crs"] else None
        transform = Affine.from_gdal(*stated["transform"])
        height, width = stated["shape"]
        return cls(
            as_path(stated["path"]),
            stated["row_name"],
            stated["column_name"],
            stated["infilled"],
            Grid(height, width, transform, crs),
            array.coords[SENSOR_ROW].values,
            array.coords[SENSOR_COLUMN].values,
            stated.get("swath", False),
        )

    def attach(self, array: xr.DataArray) -> xr.DataArray:
        """Return an image of these rows and columns with what leads back to the table."""
        stated = {
            "path": str(self.path),
            "row_name": self.row_name,
            "column_name": self.column_name,
            "infilled": self.infilled,
            "swath": self.swath,
            "shape": (self.grid.height, self.grid.width),
            "transform": self.grid.transform.to_gdal(),
            "crs": "" if self.grid.crs is None else self.grid.crs.to_wkt(),
        }
        return array.assign_coords(
            {
                LOOKUP_TABLE: json.dumps(stated),  # a value: attributes get lost on the way
                SENSOR_ROW: (schema.Y, self.rows),
                SENSOR_COLUMN: (schema.X, self.columns),
            }
        )

    @cached_property
    def _sources(self) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
        """Which pixels of the map (y, x) show a pixel of the image; its row and column there."""
        with open_hdf5(existing_scene(self.path)) as file:
            stored = [np.asarray(file[name][()]) for name in (self.row_name, self.column_name)]
        if self.swath:
            stored = _nearest(stored[0], stored[1], self.grid)
        known = np.ones((self.grid.height, self.grid.width), dtype=bool)
        places = []
        for numbers, shown in zip(stored, (self.rows, self.columns), strict=True):
            whole = np.nan_to_num(numbers.astype(np.float64), nan=0.0).astype(np.int64)
            whole = (np.abs(whole) if self.infilled else whole) - 1
            # from the row of the sensor to that of the image, -1 where the image does not show it
            position = np.full(int(shown.max(initial=0)) + 1, -1)
            position[shown] = np.arange(shown.size)
            known &= (whole >= 0) & (whole < position.size)
            found = position[np.where(known, whole, 0)]
            known &= found >= 0
            places.append(found)
        return known, places[0][known], places[1][known]

    def to_map(self, array: xr.DataArray) -> xr.DataArray:
        """Return an image (..., y, x) on the grid of the map: the nearest pixel, gaps as no data.

        Floats are NaN in gaps, labels :func:`hsreject.schema.nodata_label`.
        """
        missing: Any = np.nan
        attrs = dict(array.attrs)
        if array.dtype.kind != "f":
            missing = attrs.setdefault("_FillValue", schema.nodata_label(array.dtype))
        known, rows, columns = self._sources
        values = np.full((*array.shape[:-2], *known.shape), missing, dtype=array.dtype)
        values[..., known] = np.asarray(array.values)[..., rows, columns]
        kept = {n: c for n, c in array.coords.items() if not set(schema.MAP_DIMS) & set(c.dims)}
        kept.pop(LOOKUP_TABLE)
        mapped = xr.DataArray(values, kept, array.dims, array.name, attrs)
        return self.grid.attach(mapped)

    def to_sensor(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return labels (y, x) of the map as those of the image.

        A pixel of the sensor that the map shows with several labels gets none.
        """
        known, rows, columns = self._sources
        labelled = labels[known] != schema.NO_REFERENCE
        where, found = (rows[labelled], columns[labelled]), labels[known][labelled]
        largest = np.zeros((self.rows.size, self.columns.size), dtype=labels.dtype)
        smallest = np.full_like(largest, np.iinfo(labels.dtype).max)
        np.maximum.at(largest, where, found)
        np.minimum.at(smallest, where, found)
        return np.where(largest == smallest, largest, schema.NO_REFERENCE).astype(labels.dtype)


def stored_table(
    rows: h5py.Dataset, columns: h5py.Dataset, grid: Grid | None, layer: Layer, *, infilled: bool
) -> LookupTable | None:
    """Return the table that an open product holds, if its map has a place."""
    if rows.shape != columns.shape:
        raise FileError(
            f"{layer.path}: the lookup table has {rows.shape} rows of the sensor and "
            f"{columns.shape} columns. The file is damaged: download it again."
        )
    if grid is None:
        return None
    down, across = map(np.arange, layer.shape[1:])
    return LookupTable(layer.path, rows.name, columns.name, infilled, grid, down, across)


# Swaths: latitude and longitude of every pixel of the sensor.


def place_of_swath(
    located: Mapping[str, h5py.Dataset], layer: Layer, notes: list[str]
) -> LookupTable | None:
    """Return the table that latitudes and longitudes of a group (y, x) make, and note the map.

    The map is made here: as fine as the sensor, in the UTM zone of the scene, or in degrees where
    the scene is wider than a zone. A pixel of the map shows the nearest pixel of the sensor.
    """
    names = {name.lower(): name for name in located}
    found = [located[names[name]] for name in ("latitude", "longitude") if name in names]
    if len(found) != 2 or any(entry.shape != layer.shape[1:] for entry in found):
        notes.append("The file has no place for its pixels: maps stay in sensor geometry.")
        return None
    latitude, longitude = (np.asarray(entry[()], dtype=np.float64) for entry in found)
    crs = _crs_of_swath(*_known_places(latitude, longitude)[1:])
    grid = None if crs is None else _grid_of_swath(latitude, longitude, crs)
    if grid is None:
        notes.append("Latitudes and longitudes of the file make no map: not used.")
        return None
    notes.append(
        f"The pixels lie where the sensor saw them; maps get {grid}, each pixel of them the "
        "nearest one of the sensor."
    )
    down, across = map(np.arange, layer.shape[1:])
    named = found[0].name, found[1].name
    return LookupTable(layer.path, *named, False, grid, down, across, swath=True)  # noqa: FBT003


def _known_places(
    latitude: NDArray[np.float64], longitude: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    """Return where there is a place on the earth, and these; 180 degrees may lie in between."""
    known = (np.abs(latitude) <= 90) & (np.abs(longitude) <= 180)
    across, down = longitude[known], latitude[known]
    if across.size and np.ptp(across) > 180:
        across = across % 360
    return known, across, down


def _crs_of_swath(longitude: NDArray[np.float64], latitude: NDArray[np.float64]) -> CRS | None:
    if longitude.size < 2:
        return None
    if np.ptp(longitude) > 6 or np.abs(latitude).max() > 80:
        return CRS.from_epsg(4326)
    middle = (float(np.median(longitude)) + 180) % 360
    return CRS.from_epsg((32600 if np.median(latitude) >= 0 else 32700) + int(middle // 6) + 1)


def _onto_plane(
    latitude: NDArray[np.float64], longitude: NDArray[np.float64], crs: CRS
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return which pixels have a place, and x and y of these in a reference system."""
    known, across, down = _known_places(latitude, longitude)
    if crs.is_projected:
        across, down = map(np.array, transform_coordinates(CRS.from_epsg(4326), crs, across, down))
    return known, np.column_stack([across, down])


def _grid_of_swath(
    latitude: NDArray[np.float64], longitude: NDArray[np.float64], crs: CRS
) -> Grid | None:
    """Return the map around the pixels of a swath, its pixels as large as those of the sensor."""
    known, places = _onto_plane(latitude, longitude, crs)
    plane = np.full((*known.shape, 2), np.nan)
    plane[known] = places
    steps = [np.hypot(*np.diff(plane, axis=axis).reshape(-1, 2).T) for axis in (0, 1)]
    sizes = [float(np.median(step[np.isfinite(step)])) for step in steps if np.isfinite(step).any()]
    size = float(f"{min(sizes):.2g}") if sizes and min(sizes) > 0 else 0.0
    if not size:
        return None
    west, south = np.floor(places.min(axis=0) / size - 0.5) * size
    east, north = np.ceil(places.max(axis=0) / size + 0.5) * size
    width, height = round((east - west) / size), round((north - south) / size)
    if width * height > _LARGEST_MAP * known.size:  # a few pixels lie far from all others
        return None
    return Grid(height, width, Affine(size, 0.0, float(west), 0.0, -size, float(north)), crs)


def _nearest(
    latitude: NDArray[Any], longitude: NDArray[Any], grid: Grid
) -> list[NDArray[np.float64]]:
    """Return row and column, from 1, of the pixel of a swath that is nearest to each of a map."""
    from scipy.spatial import cKDTree  # noqa: PLC0415  (slow)

    crs = grid.crs or CRS.from_epsg(4326)
    known, places = _onto_plane(latitude.astype(float), longitude.astype(float), crs)
    size = grid.transform.a
    # degrees of longitude are shorter than those of latitude
    shrink = 1.0 if crs.is_projected else np.cos(np.radians(places[:, 1].mean()))
    x = grid.transform.c + size * (np.arange(grid.width) + 0.5)
    y = grid.transform.f - size * (np.arange(grid.height) + 0.5)
    centres = np.stack(np.meshgrid(x * shrink, y), axis=-1).reshape(-1, 2)
    tree = cKDTree(places * (shrink, 1.0))
    _, found = tree.query(centres, distance_upper_bound=_REACH * size)
    sensor = np.argwhere(known) + 1
    table = np.vstack([sensor, [[0, 0]]])[found]  # what is out of reach is the last
    return [table[:, axis].reshape(grid.height, grid.width).astype(float) for axis in (0, 1)]


def on_the_map(array: xr.DataArray) -> xr.DataArray:
    """Return what is written of an array: one in sensor geometry is brought onto the map."""
    table = LookupTable.of(array)
    return array if table is None else table.to_map(array)
