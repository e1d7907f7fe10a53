"""Where an array lies on the ground: its CRS and the exact transform of its pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import rioxarray  # noqa: F401 - registers the .rio accessor
from affine import Affine

from hsreject import schema

if TYPE_CHECKING:
    import xarray as xr

_TWO_DIMENSIONAL = ("xc", "yc")  # rioxarray's names for the coordinates of rotated grids
_SAME_PIXEL = 1e-3  # coordinates carry rounding; a real shift is a good part of a pixel


@dataclass(frozen=True)
class Georeference:
    """The CRS of an array (None if it has none) and the transform from pixels to coordinates."""

    crs: Any
    transform: Affine


def georeference(array: xr.DataArray) -> Georeference:
    """Return where an array lies.

    The transform that the file gave is used as it is, down to the last bit, as long as the
    coordinates still agree with it; an array that was cropped is moved by whole pixels.

    Parameters
    ----------
    array : DataArray
        With the dims y and x.

    Returns
    -------
    Georeference
        The identity transform when the array says nothing.
    """
    crs = array.rio.crs
    if "GeoTransform" not in array.coords.get(array.rio.grid_mapping, array).attrs:
        return Georeference(crs, array.rio.transform(recalc=True))
    stored = array.rio.transform(recalc=False)
    centers = _corner_centers(array)
    if centers is None:
        return Georeference(crs, stored)
    column, row = placed(~stored, centers[0])
    corner = placed(stored, (round(column - 0.5), round(row - 0.5)))
    moved = Affine(stored.a, stored.b, corner[0], stored.d, stored.e, corner[1])
    last_pixel = array.sizes[schema.X] - 0.5, array.sizes[schema.Y] - 0.5
    off = [
        np.subtract(placed(~moved, center), pixel)
        for center, pixel in zip(centers, ((0.5, 0.5), last_pixel), strict=True)
    ]
    if np.abs(off).max() < _SAME_PIXEL:
        return Georeference(crs, moved)
    return Georeference(crs, array.rio.transform(recalc=True))


def placed(transform: Affine, point: tuple[float, float]) -> tuple[float, float]:
    """Return where a transform takes a point: affine 2 writes it with `*`, affine 3 with `@`."""
    x, y = point
    return (
        x * transform.a + y * transform.b + transform.c,
        x * transform.d + y * transform.e + transform.f,
    )


def _corner_centers(array: xr.DataArray) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Return the coordinates of the first and the last pixel, or None if the array has none."""
    names = (schema.X, schema.Y) if schema.X in array.coords else _TWO_DIMENSIONAL
    if not all(name in array.coords for name in names):
        return None

    def center(end: int) -> tuple[float, float]:
        x, y = (array.coords[name] for name in names)
        return (
            float(x.isel(dict.fromkeys(x.dims, end)).values),
            float(y.isel(dict.fromkeys(y.dims, end)).values),
        )

    return center(0), center(-1)
