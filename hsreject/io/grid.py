"""The grid of a map: size, transform and coordinate reference system, the rioxarray way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from affine import Affine

from hsreject.errors import InputError
from hsreject.io.georeference import georeference
from hsreject.schema import MAP_DIMS, X, Y

if TYPE_CHECKING:
    from rasterio.crs import CRS

# Coordinates that differ by less than this part of a pixel are the same.
_TOLERANCE = 0.01
# What rioxarray calls the coordinates of a rotated grid.
_ROTATED_X, _ROTATED_Y = "xc", "yc"


@dataclass(frozen=True)
class Grid:
    """Where the pixels of a map lie.

    Parameters
    ----------
    height, width : int
        Rows and columns.
    transform : Affine
        From (column, row) of a pixel's corner to map coordinates; may be rotated.
    crs : rasterio CRS or None
        Coordinate reference system, if known.
    """

    height: int
    width: int
    transform: Affine
    crs: CRS | None = None

    @classmethod
    def of(cls, array: xr.DataArray) -> Grid:
        """Return the grid of an array with the dims y and x."""
        if not isinstance(array, xr.DataArray) or not set(MAP_DIMS) <= set(array.dims):
            raise InputError(
                "A grid is that of an xarray.DataArray with the dims y and x, such as a scene "
                f"(got {type(array).__name__}). Open the scene with open_scene first."
            )
        height, width = (array.sizes[dim] for dim in MAP_DIMS)
        place = georeference(array)
        return cls(height, width, place.transform, place.crs)

    @property
    def georeferenced(self) -> bool:
        """Whether the pixels have a place on a map."""
        return self.crs is not None or self.transform != Affine.identity()

    @property
    def rotated(self) -> bool:
        """Whether rows and columns run askew to the map axes, so that x and y have no one line."""
        a, b, _, d, e, _ = self.transform[:6]
        drift = max(abs(b) * self.height, abs(d) * self.width)
        return bool(drift > _TOLERANCE * max(abs(a), abs(e)))

    @property
    def orientation(self) -> str:
        """How rows and columns run, in words, unless east is right and north is up."""
        a, d, e = self.transform.a, self.transform.d, self.transform.e
        if self.rotated:
            return f"rotated by {np.degrees(np.arctan2(-d, a)):.4g} degrees"
        first = [
            word
            for word, turned in (("row in the south", e > 0), ("column in the east", a < 0))
            if turned
        ]
        return f"first {' and first '.join(first)}" if first else ""

    def attach(self, array: xr.DataArray) -> xr.DataArray:
        """Return `array` with this grid: x and y of pixel centres, transform and CRS.

        A grid without a place on a map gets no coordinates, so that it fits any map of its size. On
        a rotated one x and y differ from pixel to pixel: it gets the two-dimensional `xc` and
        `yc` of rioxarray instead, lazy ones if `array` is lazy.
        """
        if not self.georeferenced:
            return array
        a, b, c, d, e, f = self.transform[:6]
        columns, rows = np.arange(self.width) + 0.5, np.arange(self.height) + 0.5
        if self.rotated:
            down, across = xr.DataArray(rows, dims=Y), xr.DataArray(columns, dims=X)
            if array.chunks is not None:
                sizes = dict(zip(array.dims, array.chunks, strict=True))
                down, across = down.chunk({Y: sizes[Y]}), across.chunk({X: sizes[X]})
            array = array.assign_coords(
                {
                    _ROTATED_X: (c + b * down + a * across).transpose(*MAP_DIMS),
                    _ROTATED_Y: (f + e * down + d * across).transpose(*MAP_DIMS),
                }
            )
        else:
            array = array.assign_coords({Y: f + e * rows, X: c + a * columns})
        if self.crs is not None:
            array = array.rio.write_crs(self.crs)
        placed: xr.DataArray = array.rio.write_transform(self.transform)
        return placed

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
