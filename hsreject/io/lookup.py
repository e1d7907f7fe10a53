"""Lookup tables: which pixel of the sensor each pixel of a map shows.

A table stays in the product file. A cube carries only the coordinate `lookup_table`, which says
where it is, and the rows and columns of the sensor that it shows; every map made from it inherits
them, whole or cropped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from affine import Affine
from rasterio.crs import CRS
from rasterio.warp import transform as transform_coordinates

from hsreject import schema
from hsreject.errors import FileError, shown
from hsreject.io.arrays.hdf5 import open_hdf5
from hsreject.io.grid import PixelGrid
from hsreject.io.remote import RemotePath, as_path, existing_scene

if TYPE_CHECKING:
    from collections.abc import Mapping

    import h5py
    from numpy.typing import NDArray

    from hsreject.io.arrays.stored_pixels import Layer

LOOKUP_TABLE = "lookup_table"
SENSOR_ROW, SENSOR_COLUMN = "sensor_row", "sensor_column"
_PLACE = (LOOKUP_TABLE, SENSOR_ROW, SENSOR_COLUMN)
_ADDRESSES: dict[str, Path] = {}  # of tables on the network, by what a map says of them
_REACH = 1.5  # pixels of the map: how far the nearest one of a swath may lie
_LARGEST_MAP = 20  # times the pixels of the sensor


class Located(NamedTuple):
    """A place, None where the file does not state it, and notes about it."""

    place: PixelGrid | LookupTable | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class LookupTable:
    """Which pixel of the sensor each pixel of a map shows."""

    path: Path  # the HDF5 file that holds the table
    names: tuple[str, str]  # its two arrays
    # what they are: "table", row and column of the sensor, counted from 1, on the grid of the map
    # (y, x); "filled table", where a negative number points at a pixel, too, and fills a gap; or
    # "swath", latitude and longitude of the pixels of the sensor (y, x)
    kind: str
    grid: PixelGrid  # the map
    rows: NDArray[np.integer]  # which rows and columns of the sensor an image shows, from 0
    columns: NDArray[np.integer]

    @classmethod
    def of(cls, array: xr.DataArray) -> LookupTable | None:
        """Return the table that an array in sensor geometry refers to; None for others."""
        if not set(_PLACE) <= set(getattr(array, "coords", ())):
            return None
        rows, columns = (array.coords[name].values for name in (SENSOR_ROW, SENSOR_COLUMN))
        try:
            stated = json.loads(str(array.coords[LOOKUP_TABLE].values))
            path, names, kind = stated["path"], stated["names"], stated["kind"]
            path = _ADDRESSES.get(path) or as_path(path)
            crs = CRS.from_wkt(stated["crs"]) if stated["crs"] else None
            height, width = stated["shape"]
            grid = PixelGrid(height, width, Affine.from_gdal(*stated["transform"]), crs)
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(
                "The image is in sensor geometry, and another version of hsreject noted where its "
                "lookup table is. Open the scene again, and make the image from it."
            ) from error
        return cls(path, names, kind, grid, rows, columns)

    def attach(self, array: xr.DataArray) -> xr.DataArray:
        """Return an image of these rows and columns with what leads back to the table."""
        # of a file on disk, another process can find it by its path
        name = shown(self.path) if isinstance(self.path, RemotePath) else str(self.path)
        _ADDRESSES[name] = self.path
        stated = {
            "path": name,
            "names": self.names,
            "kind": self.kind,
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
            stored = [np.asarray(file[name][()]) for name in self.names]
        if self.kind == "swath":
            stored = _nearest(stored[0], stored[1], self.grid)
        places = []
        for numbers, numbers_shown in zip(stored, (self.rows, self.columns), strict=True):
            whole = np.nan_to_num(numbers.astype(np.float64), nan=0.0).astype(np.int64)
            # from a number, which counts from 1, to the row of the image: -1 if it shows none
            position = np.full(int(numbers_shown.max(initial=0)) + 3, -1)
            position[numbers_shown + 1] = np.arange(numbers_shown.size)
            whole = np.abs(whole) if self.kind == "filled table" else whole
            places.append(position.take(whole, mode="clip"))
        shown = (places[0] >= 0) & (places[1] >= 0)
        return shown, places[0][shown], places[1][shown]

    def to_map(self, array: xr.DataArray) -> xr.DataArray:
        """Return an image (..., y, x) on the grid of the map: the nearest pixel, gaps as no data.

        Floats are NaN in gaps, labels :func:`hsreject.schema.nodata_label`.
        """
        missing: Any = np.nan
        attrs = dict(array.attrs)
        if array.dtype.kind != "f":
            missing = attrs.setdefault("_FillValue", schema.nodata_label(array.dtype))
        shown, rows, columns = self._sources
        values = np.full((*array.shape[:-2], *shown.shape), missing, dtype=array.dtype)
        values[..., shown] = np.asarray(array.values)[..., rows, columns]
        coords = {n: c for n, c in array.coords.items() if not set(schema.MAP_DIMS) & set(c.dims)}
        coords.pop(LOOKUP_TABLE)
        mapped = xr.DataArray(values, coords, array.dims, array.name, attrs)
        return self.grid.attach(mapped)

    def to_sensor(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return labels (y, x) of the map as those of the image.

        A pixel of the sensor that the map shows with several labels gets none.
        """
        shown, rows, columns = self._sources
        labelled = labels[shown] != schema.NO_REFERENCE
        where, label_values = (rows[labelled], columns[labelled]), labels[shown][labelled]
        largest = np.zeros((self.rows.size, self.columns.size), dtype=labels.dtype)
        smallest = np.full_like(largest, np.iinfo(labels.dtype).max)
        # largest and smallest label of each pixel of the sensor: they agree where there is only one
        np.maximum.at(largest, where, label_values)
        np.minimum.at(smallest, where, label_values)
        return np.where(largest == smallest, largest, schema.NO_REFERENCE).astype(labels.dtype)


def located_table(
    rows: h5py.Dataset, columns: h5py.Dataset, grid: Located, layer: Layer, kind: str = "table"
) -> Located:
    """Return the table that an open product holds, if its map has a place."""
    if rows.shape != columns.shape or rows.ndim != 2:
        raise FileError(
            f"{layer.path}: the lookup table must have two axes (rows of the sensor: {rows.shape}, "
            f"columns: {columns.shape}). The file is damaged: download it again."
        )
    if not isinstance(grid.place, PixelGrid):
        return grid
    down, across = map(np.arange, layer.shape[1:])
    names = rows.name, columns.name
    return Located(LookupTable(layer.path, names, kind, grid.place, down, across), grid.notes)


# Swaths: latitude and longitude of every pixel of the sensor.


def located_swath(group: Mapping[str, h5py.Dataset], layer: Layer) -> Located:
    """Return the table that latitudes and longitudes of a group (y, x) make, and note the map.

    The map is made here: as fine as the sensor, in the UTM zone of the scene, or in degrees where
    the scene is wider than a zone. A pixel of the map shows the nearest pixel of the sensor.
    """
    names = {name.lower(): name for name in group}
    arrays = [group[names[name]] for name in ("latitude", "longitude") if name in names]
    if len(arrays) != 2 or any(array.shape != layer.shape[1:] for array in arrays):
        return Located(None, ("Pixels without a place: maps stay in sensor geometry.",))
    latitude, longitude = arrays
    grid = _grid_of_swath(latitude[()], longitude[()])
    if grid is None:
        return Located(None, ("Latitudes and longitudes of the file make no map: not used.",))
    note = (
        f"The pixels lie where the sensor saw them; maps get {grid}, each pixel of them the "
        "nearest one of the sensor."
    )
    return located_table(latitude, longitude, Located(grid, (note,)), layer, "swath")


def _onto_plane(
    latitude: NDArray[Any], longitude: NDArray[Any], crs: CRS | None
) -> tuple[NDArray[np.bool_], NDArray[np.float64], CRS]:
    """Return which pixels have a place, x and y of these in a reference system, and that.

    By default it is the UTM zone of the swath, or degrees where the swath is wider than a zone.
    """
    latitude, longitude = latitude.astype(np.float64), longitude.astype(np.float64)
    placed = (np.abs(latitude) <= 90) & (np.abs(longitude) <= 180)
    across, down = longitude[placed], latitude[placed]
    # a scene across the date line: counted from 0 to 360 its longitudes are one piece
    if across.size and np.ptp(across) > 180:
        across = across % 360
    if crs is None and across.size and np.ptp(across) <= 6 and np.abs(down).max() <= 80:
        zone = int((float(np.median(across)) + 180) % 360 // 6) + 1
        crs = CRS.from_epsg((32600 if np.median(down) >= 0 else 32700) + zone)
    if crs is not None and crs.is_projected:
        across, down = map(np.array, transform_coordinates(CRS.from_epsg(4326), crs, across, down))
    return placed, np.column_stack([across, down]), crs or CRS.from_epsg(4326)


def _grid_of_swath(latitude: NDArray[Any], longitude: NDArray[Any]) -> PixelGrid | None:
    """Return the map around the pixels of a swath, its pixels as large as those of the sensor."""
    placed, places, crs = _onto_plane(latitude, longitude, None)
    plane = np.full((*placed.shape, 2), np.nan)
    plane[placed] = places
    steps = [np.hypot(*np.diff(plane, axis=axis).reshape(-1, 2).T) for axis in (0, 1)]
    sizes = [float(np.median(step[np.isfinite(step)])) for step in steps if np.isfinite(step).any()]
    size = float(f"{min(sizes):.2g}") if sizes and min(sizes) > 0 else 0.0
    if not size:
        return None
    # whole multiples of the pixel size, half a pixel around the outermost centres
    west, south = np.floor(places.min(axis=0) / size - 0.5) * size
    east, north = np.ceil(places.max(axis=0) / size + 0.5) * size
    width, height = round((east - west) / size), round((north - south) / size)
    if width * height > _LARGEST_MAP * placed.size:  # a few pixels lie far from all others
        return None
    return PixelGrid(height, width, Affine(size, 0.0, float(west), 0.0, -size, float(north)), crs)


def _nearest(
    latitude: NDArray[Any], longitude: NDArray[Any], grid: PixelGrid
) -> list[NDArray[np.float64]]:
    """Return row and column, from 1, of the pixel of a swath that is nearest to each of a map.

    They are NaN where none is within reach.
    """
    from scipy.interpolate import NearestNDInterpolator  # noqa: PLC0415  (slow)

    placed, places, crs = _onto_plane(latitude, longitude, grid.crs)
    size = grid.transform.a
    # degrees of longitude are shorter than those of latitude
    shrink = 1.0 if crs.is_projected else np.cos(np.radians(places[:, 1].mean()))
    nearest = NearestNDInterpolator(places * (shrink, 1.0), np.argwhere(placed) + 1)
    x = grid.transform.c + size * (np.arange(grid.width) + 0.5)
    y = grid.transform.f - size * (np.arange(grid.height) + 0.5)
    table = nearest(*np.meshgrid(x * shrink, y), distance_upper_bound=_REACH * size)
    return [table[..., 0], table[..., 1]]


def on_the_map(array: xr.DataArray) -> xr.DataArray:
    """Return what is written of an array: one in sensor geometry is brought onto the map."""
    table = LookupTable.of(array)
    return array if table is None else table.to_map(array)
