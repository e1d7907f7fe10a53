"""Polygons of a label map, with class, area, confidence and how much of each is rejected."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
import xarray as xr

from hsreject.certification.frame import NODATA
from hsreject.compilation import compiled, inner
from hsreject.errors import InputError
from hsreject.files import replacing
from hsreject.handover.regions import Regions, sums
from hsreject.handover.sieve import Area, joined
from hsreject.io.grid import PixelGrid
from hsreject.io.vectors.vector import write_layer
from hsreject.progress import ProgressCallback, no_progress
from hsreject.schema import REJECTED, ZERO_MEANING, as_map

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rasterio.crs import CRS

MOST = 1_000_000
"""Polygons that a file may hold: with more, a GIS program becomes too slow."""

_DRIVERS = {".gpkg": "GPKG", ".fgb": "FlatGeobuf", ".geojson": "GeoJSON"}
_AT_ONCE = 50_000  # polygons made at a time


@dataclass(frozen=True, eq=False)
class Polygons:
    """The polygons of a map, in the reading order of their first pixels; one entry per polygon.

    Attributes
    ----------
    geometry : array of shapely.Polygon
        Along the edges of pixels, in the reference system of the map; without one, columns and rows
        downwards (y is minus the row).
    value : array of int
        The class, 0 for what is rejected.
    name : array of str
        Its name.
    area : array of float
        Hectares, on the ellipsoid where a map is not true to scale; pixels without a place.
    mean_confidence, least_confidence : array of float
        Over the pixels of the polygon; NaN without confidences.
    rejected_share : array of float
        The share of the area that the map rejects: 1 for a rejected polygon and 0 for others, apart
        from what a minimum area made them cover.
    in_hectares : bool
        Whether `area` is in hectares.
    crs : CRS or None
        The reference system of the map.

    See Also
    --------
    hsreject.polygonize : makes them.

    Examples
    --------
    >>> import numpy as np
    >>> import hsreject as hr
    >>> polygons = hr.polygonize(np.array([[1, 1, 2], [1, 1, 2]]))
    >>> polygons.value.tolist(), polygons.geometry[1].bounds
    ([1, 2], (2.0, -2.0, 3.0, 0.0))
    """

    geometry: NDArray[Any]
    value: NDArray[np.int64]
    name: NDArray[Any]
    area: NDArray[np.float64]
    mean_confidence: NDArray[np.float64]
    least_confidence: NDArray[np.float64]
    rejected_share: NDArray[np.float64]
    in_hectares: bool
    crs: CRS | None

    def __len__(self) -> int:
        return self.value.size

    def write(self, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the polygons and return the path: .gpkg (GeoPackage), .fgb (FlatGeobuf), .geojson.

        Without confidences their columns are left out. The file appears when it is complete.
        """
        target = Path(path)
        driver = vector_driver(target)
        area = "area_ha" if self.in_hectares else "area_pixels"
        columns = {
            "class": self.value,
            "name": self.name,
            area: self.area,
            "mean_confidence": self.mean_confidence,
            "least_confidence": self.least_confidence,
            "rejected_share": self.rejected_share,
        }
        if np.isnan(self.mean_confidence).all():
            del columns["mean_confidence"], columns["least_confidence"]
        wkb = shapely.to_wkb(self.geometry)
        with replacing(target, overwrite=overwrite) as work:
            write_layer(work, wkb, columns, "Polygon", self.crs, driver, layer="polygons")
        return target


def vector_driver(path: Path) -> str:
    """Return GDAL's name of the format that the name of a file of polygons asks for."""
    if path.suffix.lower() not in _DRIVERS:
        raise InputError(
            f"Cannot tell the format of '{path.name}'. Polygons may end in: {', '.join(_DRIVERS)}."
        )
    return _DRIVERS[path.suffix.lower()]


def polygonize(
    label: xr.DataArray | NDArray[Any],
    confidence: xr.DataArray | NDArray[Any] | None = None,
    *,
    minimum_area: str | float | None = None,
    progress: ProgressCallback = no_progress,
) -> Polygons:
    """Trace the polygons of a label map: one for each region of 4-connected pixels of a class.

    Rejected regions are polygons, too, called what the map calls 0; pixels without data belong to
    none. With a minimum area small regions of a class join their largest neighbour, as in
    :func:`hsreject.sieve`. What is still small then is *covered* by the largest polygon beside it,
    rejected holes by a class and specks of a class by what is rejected around them;
    `rejected_share` says how much of a polygon the map rejects. Only islands in pixels without data
    may stay below the minimum.

    Parameters
    ----------
    label : DataArray or array of int, dims (y, x)
        Classes from 1, 0 where a pixel is rejected. A lazy map is read some rows at a time.
    confidence : DataArray or array of float, dims (y, x), optional
        Of the labels, on the same grid; NaN is ignored.
    minimum_area : str or float, optional
        As for :func:`hsreject.sieve`: "12px", or "0.25ha" where the map says where it lies.
    progress : ProgressCallback
        Called as rows are read and polygons are traced.

    Returns
    -------
    Polygons

    See Also
    --------
    hsreject.sieve : takes small patches away first.
    hsreject.write_map : pixels instead of polygons.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import polygonize
    >>> polygons = polygonize(np.array([[1, 1, 1], [1, 0, 1], [1, 1, 2]]), minimum_area=2)
    >>> polygons.value.tolist(), polygons.area.tolist(), polygons.rejected_share.round(2).tolist()
    ([1], [9.0], [0.11])
    """
    on_map = as_map(label, name="label")
    minimum = None if minimum_area is None else Area.of(minimum_area)
    regions = Regions.of(on_map, confidence, progress=progress)
    everything = np.arange(len(regions))
    roots = everything if minimum is None else joined(regions, minimum, across=True)
    outer = np.unique(roots[regions.value[roots] != NODATA])  # one region per polygon
    if outer.size > MOST:
        raise InputError(
            f"The map has {outer.size:,} regions, more polygons than a GIS program can use "
            f"({MOST:,}). Let small ones join their neighbours: --minimum-area 0.25ha or 12px "
            "(minimum_area=...)."
        )
    number = np.full(len(regions), -1, dtype=np.int32)
    number[outer] = np.arange(outer.size)
    polygon = number[roots]  # of each region; -1 without data
    inside = polygon >= 0

    def total(of_regions: NDArray[Any]) -> NDArray[np.float64]:
        return sums(polygon[inside], of_regions[inside], outer.size)

    area = total(regions.area)
    with np.errstate(invalid="ignore"):  # 0 / 0 without confidences
        mean = total(regions.confidence_sum) / total(regions.n_confidences)
    least = np.full(outer.size, np.nan)
    np.fmin.at(least, polygon[inside], regions.least_confidence[inside])
    values = regions.value[outer].astype(np.int64)
    classes, grid = regions.classes(on_map.attrs), PixelGrid.of(on_map)
    name_of = {REJECTED: str(on_map.attrs.get(ZERO_MEANING, "rejected"))}
    name_of |= dict(zip(classes.values, classes.names, strict=True))
    return Polygons(
        geometry=_geometries(regions, polygon, outer.size, grid, progress),
        value=values,
        name=np.array([name_of[value] for value in values.tolist()], dtype=object),
        area=area,
        mean_confidence=mean,
        least_confidence=least,
        rejected_share=total(regions.area * (regions.value == REJECTED)) / area,
        in_hectares=regions.in_hectares,
        crs=grid.crs,
    )


def _geometries(
    regions: Regions,
    polygon: NDArray[np.int32],
    n_polygons: int,
    grid: PixelGrid,
    progress: ProgressCallback,
) -> NDArray[Any]:
    """Return the polygons of numbered regions as shapely has them."""
    of_run = polygon[regions.region]
    arguments = (regions.row_start, regions.column, of_run, regions.width)
    progress("polygons", 0, 3)
    seen = np.zeros(of_run.size, dtype=np.bool_)
    nothing = np.empty((0, 2), dtype=np.int32)
    n_corners, n_rings = _trace(*arguments, seen, nothing, nothing)
    corners = np.empty((n_corners, 2), dtype=np.int32)
    rings = np.empty((n_rings, 2), dtype=np.int32)  # polygon, number of corners
    seen[:] = False
    _trace(*arguments, seen, corners, rings)
    progress("polygons", 1, 3)
    # The first ring of a polygon in reading order is its outside: holes begin further on.
    order = np.argsort(rings[:, 0], kind="stable")
    starts = np.concatenate([[0], np.cumsum(rings[:, 1], dtype=np.int64)])
    geometry = np.empty(n_polygons, dtype=object)
    bounds = np.searchsorted(rings[order, 0], np.arange(n_polygons + 1))
    for first in range(0, n_polygons, _AT_ONCE):
        last = min(first + _AT_ONCE, n_polygons)
        some = order[bounds[first] : bounds[last]]
        lengths = rings[some, 1].astype(np.int64)
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1]) + np.repeat(starts[some] - (ends - lengths), lengths)
        row, column = corners[places].T.astype(np.float64)
        a, b, c, d, e, f = grid.transform[:6] if grid.georeferenced else (1, 0, 0, 0, -1, 0)
        x, y = a * column + b * row + c, d * column + e * row + f
        outlines = shapely.linearrings(
            np.stack([x, y], axis=1), indices=np.repeat(np.arange(some.size), lengths)
        )
        geometry[first:last] = shapely.polygons(outlines, indices=rings[some, 0] - first)
        progress("polygons", 1 + 2 * last / n_polygons, 3)
    return geometry


# Up, right, down, left: the step, and the pixels ahead to the left and to the right of a corner.
_STEP = ((-1, 0), (0, 1), (1, 0), (0, -1))
_AHEAD_LEFT = ((-1, -1), (-1, 0), (0, 0), (0, -1))
_AHEAD_RIGHT = ((-1, 0), (0, 0), (0, -1), (-1, -1))


@inner
def _run_at(row_start: NDArray[Any], column: NDArray[Any], row: int, col: int) -> int:
    """Return the run that holds a pixel, by bisection."""
    low, high = row_start[row], row_start[row + 1]
    while high - low > 1:
        middle = (low + high) // 2
        if column[middle] <= col:
            low = middle
        else:
            high = middle
    return int(low)


@compiled
def _trace(
    row_start: NDArray[Any],
    column: NDArray[Any],
    polygon: NDArray[Any],
    width: int,
    seen: NDArray[Any],
    corners: NDArray[Any],
    rings: NDArray[Any],
) -> tuple[int, int]:
    """Count the corners and rings of all polygons; write them, if there is room for them.

    Every ring, around a polygon or a hole in it, has the left edge of some run in it. So walk from
    the left edge of each run that is not seen yet, upwards, with the polygon on the right hand:
    where the pixel ahead to the left belongs to the polygon, turn left; where that ahead to the
    right does not, turn right. Where a polygon touches itself at a corner it is passed through, so
    that a hole is a ring of its own and no ring meets itself.
    """
    n_corners, n_rings, n_rows = 0, 0, row_start.size - 1
    for start_row in range(n_rows):
        for run in range(row_start[start_row], row_start[start_row + 1]):
            number = polygon[run]
            # two runs side by side may belong to one polygon, after a sieve: no ring passes there
            goes_on = run > row_start[start_row] and polygon[run - 1] == number
            if number < 0 or goes_on or seen[run]:
                continue
            row, col, ahead, first = start_row + 1, column[run], 0, n_corners
            while n_corners == first or ahead != 0 or row != start_row + 1 or col != column[run]:
                row += _STEP[ahead][0]
                col += _STEP[ahead][1]
                if ahead == 0:
                    # on the way up, the pixel at the right hand begins a run: its left edge is of
                    # this ring
                    seen[_run_at(row_start, column, row, col)] = True
                r, c = row + _AHEAD_LEFT[ahead][0], col + _AHEAD_LEFT[ahead][1]
                left = 0 <= r < n_rows and 0 <= c < width
                left = left and polygon[_run_at(row_start, column, r, c)] == number
                r, c = row + _AHEAD_RIGHT[ahead][0], col + _AHEAD_RIGHT[ahead][1]
                right = 0 <= r < n_rows and 0 <= c < width
                right = right and polygon[_run_at(row_start, column, r, c)] == number
                if left or not right:
                    if corners.shape[0]:
                        corners[n_corners, 0], corners[n_corners, 1] = row, col
                    n_corners += 1
                    ahead = (ahead + (3 if left else 1)) % 4
            if rings.shape[0]:
                rings[n_rings, 0], rings[n_rings, 1] = number, n_corners - first
            n_rings += 1
    return n_corners, n_rings
