"""Lookup tables: where each pixel of a map comes from in an image that keeps sensor geometry.

The table stays in the product file. A cube carries only the coordinate `lookup_table`, which says
where it is, and the rows and columns of the sensor that it shows; every map made from it inherits
them, whole or cropped.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from affine import Affine
from rasterio.crs import CRS

from hsreject import schema
from hsreject.io.grid import Grid
from hsreject.io.products.remote import as_path, existing_scene

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

LOOKUP_TABLE = "lookup_table"
SENSOR_ROW, SENSOR_COLUMN = "sensor_row", "sensor_column"
_PLACE = (LOOKUP_TABLE, SENSOR_ROW, SENSOR_COLUMN)


@dataclass(frozen=True, eq=False)
class LookupTable:
    """Which pixel of the sensor each pixel of a map shows.

    Parameters
    ----------
    path : Path
        The HDF5 file that holds the table.
    row_name, column_name : str
        Its arrays (y, x) on the grid of the map: row and column of the sensor, counted from 1.
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
        )

    def attach(self, array: xr.DataArray) -> xr.DataArray:
        """Return an image of these rows and columns with what leads back to the table."""
        stated = {
            "path": str(self.path),
            "row_name": self.row_name,
            "column_name": self.column_name,
            "infilled": self.infilled,
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
        from hsreject.io.products.layout import open_hdf5  # noqa: PLC0415  (slow)

        with open_hdf5(existing_scene(self.path)) as file:
            stored = [np.asarray(file[name][()]) for name in (self.row_name, self.column_name)]
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


def on_the_map(array: xr.DataArray) -> xr.DataArray:
    """Return what is written of an array: one in sensor geometry is brought onto the map."""
    table = LookupTable.of(array)
    return array if table is None else table.to_map(array)
