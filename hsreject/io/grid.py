"""Grids: where the pixels of a map lie, the rioxarray way."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyproj
import rioxarray  # noqa: F401 - registers the .rio accessor
import xarray as xr
from affine import Affine, TransformNotInvertibleError
from rasterio.crs import CRS
from rasterio.errors import CRSError, NotGeoreferencedWarning
from rasterio.warp import transform_bounds

from hsreject.errors import FileError, InputError
from hsreject.schema import MAP_DIMS, X, Y

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

# Coordinates that differ by less than this part of a pixel are the same.
_TOLERANCE = 0.01
# Coordinates carry rounding; a real shift is a good part of a pixel.
_SAME_PIXEL = 1e-3
# Areas of pixels are nominal where the map scale is as true as the first of these, and one for a
# row where they differ by less than the second.
_TRUE_TO_SCALE, _SAME_AREA = 0.01, 1e-7
# Attributes of which rioxarray takes a reference system, and how addresses and paths begin.
_SYSTEM_TEXTS = ("crs_wkt", "spatial_ref", "crs")
_ADDRESS = re.compile(r"\s*(?:[a-z][\w+.-]*:/|[a-z]:\\|[/\\.~])", re.IGNORECASE)
# What rioxarray calls the coordinates of a rotated grid.
_ROTATED_X, _ROTATED_Y = "xc", "yc"


@dataclass(frozen=True)
class PixelGrid:
    """Where the pixels of a map lie.

    Attributes
    ----------
    height, width : int
        Numbers of rows and columns.
    transform : affine.Affine
        From column and row of the corner of a pixel to map coordinates; it may be rotated.
    crs : rasterio.crs.CRS or None
        The coordinate reference system, if it is known.

    See Also
    --------
    hsreject.Sample : points on such a grid.
    hsreject.Grid : what a prior is bound to, which has no place.
    """

    height: int
    width: int
    transform: Affine
    crs: CRS | None = None

    @classmethod
    def of(cls, array: xr.DataArray) -> PixelGrid:
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
            if not transform.determinant:  # as rioxarray leaves a quarter turn
                raise InputError(
                    f"x and y of the array span no area ({tuple(transform)[:6]}). Open its file "
                    "with open_scene or open_labels, or correct the coordinates."
                )
        return cls(height, width, transform, array.rio.crs)

    def stated(self, transform: Affine | Sequence[float] | None, crs: Any) -> PixelGrid:
        """Return this grid with the transform and the reference system that a caller gave."""
        try:
            corner = self.transform if transform is None else Affine(*map(float, transform[:6]))
            system = self.crs if crs is None else CRS.from_user_input(crs)
            by_gdal = corner.a and corner.d and corner.c == corner.e == 0
            if by_gdal or not (corner.determinant and np.isfinite(corner[:6]).all()):
                raise ValueError("these numbers span no area, or are in GDAL's order")
        except (TypeError, ValueError, CRSError) as error:
            raise InputError(
                f"transform {transform!r} must be six numbers (a, b, c, d, e, f) with x = a column "
                f"+ b row + c, as affine.Affine.from_gdal makes them of GDAL's, and crs {crs!r} a "
                f"reference system, such as 'EPSG:32633' or WKT ({str(error).rstrip('.')})."
            ) from error
        return replace(self, transform=corner, crs=system)

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
        # up to 33 places from the first to the last, at least two to go between
        rows, columns = (
            np.unique(np.linspace(0, max(size - 1, 1), min(size + 1, 33)).astype(np.intp))
            for size in (self.height, self.width)
        )
        row, column = (grid.reshape(-1, 1) for grid in np.meshgrid(rows, columns, indexing="ij"))
        across, down = np.array([[0, 1, 1, 0], [0, 0, 1, 1]])
        places = transformed(self.transform, (column + across, row + down))
        system = pyproj.CRS.from_wkt(self.crs.to_wkt())
        geodesic = pyproj.Transformer.from_crs(system, system.geodetic_crs, always_xy=True)
        geod = system.get_geod() or pyproj.Geod(ellps="WGS84")
        corners = zip(*geodesic.transform(*places), strict=True)
        hectares = [geod.polygon_area_perimeter(x, y)[0] / 10_000 for x, y in corners]
        areas = np.abs(hectares).reshape(rows.size, columns.size)
        nominal = self.pixel_hectares
        if nominal is not None and np.abs(areas / nominal - 1).max() < _TRUE_TO_SCALE:
            return np.full((1, 1), nominal)
        from scipy.interpolate import interp1d  # noqa: PLC0415  (slow)

        along_rows = interp1d(rows, areas, axis=0)(np.arange(self.height))
        if np.ptp(areas, axis=1).max() <= _SAME_AREA * areas.max():
            return np.asarray(along_rows[:, :1])
        return np.asarray(interp1d(columns, along_rows, axis=1)(np.arange(self.width)))

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

    def same_as(self, other: PixelGrid) -> bool:
        """Tell whether two grids have the same pixels."""
        if (self.height, self.width) != (other.height, other.width):
            return False
        if self.crs is not None and other.crs is not None and not same_crs(self.crs, other.crs):
            return False
        a, b, c, d, e, f = np.abs(np.subtract(self.transform[:6], other.transform[:6]))
        apart = max(c + a * self.width + b * self.height, f + d * self.width + e * self.height)
        return bool(apart <= _TOLERANCE * np.sqrt(abs(self.transform.determinant)))

    def fits(self, other: PixelGrid) -> bool:
        """Tell whether pixels correspond: the same ones, or as many where a grid has no place."""
        if self.georeferenced and other.georeferenced:
            return self.same_as(other)
        return (self.height, self.width) == (other.height, other.width)

    def window(self, rows: slice, columns: slice) -> PixelGrid:
        """Return the grid of some rows and columns."""
        corner = transformed(self.transform, (columns.start, rows.start))
        a, b, _, d, e, _ = self.transform[:6]
        transform = Affine(a, b, corner[0], d, e, corner[1])
        return PixelGrid(rows.stop - rows.start, columns.stop - columns.start, transform, self.crs)

    def window_around(self, other: PixelGrid) -> tuple[slice, slice]:
        """Return the rows and columns that another grid may lie on, some more on each side.

        Both have a place; one without a reference system has that of the other. All rows and
        columns where the other has no place in this reference system.
        """
        bounds, inverse = other.bounds, ~self.transform
        if self.crs is not None and other.crs is not None and not same_crs(self.crs, other.crs):
            bounds = transform_bounds(other.crs, self.crs, *bounds)
        west, south, east, north = bounds
        corners = np.array([west, east, west, east]), np.array([south, south, north, north])
        places, sizes = np.array(transformed(inverse, corners)), (self.width, self.height)
        if not np.isfinite(places).all() or west > east:  # across the line of 180 degrees
            return slice(0, self.height), slice(0, self.width)
        low, high = places.min(axis=1), places.max(axis=1)
        margin = 2 + 0.1 * (high - low)
        first = np.clip(np.floor(low - margin), 0, sizes).astype(int).tolist()
        last = np.clip(np.ceil(high + margin), 0, sizes).astype(int).tolist()
        columns, rows = map(slice, first, last)
        return rows, columns

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """West, south, east and north end of the grid, in its reference system."""
        columns, rows = np.array([[0, self.width], [0, self.height]])
        x, y = transformed(self.transform, (columns, rows[:, None]))
        return x.min(), y.min(), x.max(), y.max()

    def __str__(self) -> str:
        size = f"{self.height} rows x {self.width} columns"
        if not self.georeferenced:
            return f"{size} without a place on a map"
        a, b, c, d, e, f = self.transform[:6]
        pixel = f"pixels of {np.hypot(a, d):.10g} x {np.hypot(b, e):.10g}"
        askew = f", {self.orientation}" if self.orientation else ""
        return f"{size}, {pixel} from ({c:.12g}, {f:.12g}){askew}, in {crs_name(self.crs)}"


def _stored_transform(array: xr.DataArray) -> Affine | None:
    """Return the transform that an array carries, moved to its first pixel; None if outdated.

    The array may have been cropped (moved by whole pixels) or thinned (then it is outdated): the
    centres of the first and the last pixel tell.
    """
    text = array.coords.get(array.rio.grid_mapping, array).attrs.get("GeoTransform")
    if text is None:
        return None
    try:  # rioxarray makes zeros of a quarter turn
        stored = Affine.from_gdal(*map(float, text.split()))
        inverse = ~stored
        if not np.isfinite(inverse[:6]).all():
            raise ValueError("pixels too small for floating point")
    except (AttributeError, TypeError, ValueError, TransformNotInvertibleError) as error:
        raise InputError(
            f"The transform of the array, {text!r}, cannot be inverted ({error}). Write one that "
            "can with array.rio.write_transform(...)."
        ) from error
    names = (X, Y) if X in array.coords else (_ROTATED_X, _ROTATED_Y)
    if not all(name in array.coords for name in names):
        return stored
    ends = xr.DataArray([0, -1], dims="end")
    x, y = (array.coords[name].isel({X: ends, Y: ends}, missing_dims="ignore") for name in names)
    # column and row of the first and of the last pixel, by the stored transform
    first, last = np.transpose(transformed(inverse, (x.values, y.values))) - 0.5
    start = np.round(first)
    off = [first - start, last - start - (array.sizes[X] - 1, array.sizes[Y] - 1)]
    if not np.abs(off).max() < _SAME_PIXEL:
        return None
    west, north = transformed(stored, tuple(start.tolist()))
    return Affine(stored.a, stored.b, west, stored.d, stored.e, north)


def transformed(transform: Affine, point: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return where a transform takes points; affine 2 has `*` for it and affine 3 `@`."""
    x, y = point
    return (
        x * transform.a + y * transform.b + transform.c,
        x * transform.d + y * transform.e + transform.f,
    )


def same_crs(first: CRS, second: CRS) -> bool:
    """Tell whether two reference systems are one, whether or not both carry the EPSG code."""
    code = first.to_epsg()
    return bool(first == second) or (code is not None and code == second.to_epsg())


def names_system_elsewhere(attrs: Mapping[Any, Any]) -> bool:
    """Tell whether attributes give an address or a path as reference system: GDAL follows them."""
    return any(_ADDRESS.match(str(attrs.get(name, ""))) for name in _SYSTEM_TEXTS)


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


def grid_of_file(dataset: Any, path: Path) -> PixelGrid:
    """Return the grid of an open raster, without the negative zeros that GDAL makes for ENVI."""
    transform = Affine(*(number + 0.0 for number in dataset.transform[:6]))
    if not (transform.determinant and np.isfinite(transform[:6]).all()):
        raise FileError(
            f"{path} has pixels of size 0 or nowhere (its transform is {transform[:6]}). "
            "Correct its place on the map, or remove it."
        )
    # a local system has a name, but no other can be brought into it
    local = dataset.crs is not None and dataset.crs.to_wkt().startswith("LOCAL_CS")
    crs = None if local else dataset.crs
    return PixelGrid(dataset.height, dataset.width, transform, crs)
