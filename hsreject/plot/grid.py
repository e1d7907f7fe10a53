"""Maps as pictures see them: labelled, of a drawable size, with their place on the ground."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.plot.style import COLUMN_WIDTH
from hsreject.schema import MAP_DIMS, X, Y, check_dims

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from numpy.typing import NDArray

LARGEST_SIDE = 2000
_HIGHEST, _LOWEST = 4.5, 1.2  # inches


def as_map(values: xr.DataArray | NDArray[Any], *, name: str) -> xr.DataArray:
    """Return `values` as a map (y, x); plain arrays are rows by columns."""
    if isinstance(values, xr.DataArray):
        return check_dims(values, MAP_DIMS, name=name)
    if np.ndim(values) != len(MAP_DIMS):
        raise InputError(
            f"{name} must have two dimensions, rows by columns (got shape {np.shape(values)})."
        )
    return xr.DataArray(values, dims=MAP_DIMS, name=name)


def thinned(array: xr.DataArray, *, largest_side: int = LARGEST_SIDE) -> xr.DataArray:
    """Return every n-th row and column, so that no side is longer than a picture shows.

    Examples
    --------
    >>> thinned(xr.DataArray(np.zeros((5000, 300)), dims=MAP_DIMS)).shape
    (1667, 100)
    """
    step = -(-max(array.sizes[Y], array.sizes[X]) // largest_side)
    return (
        array if step <= 1 else array.isel({Y: slice(None, None, step), X: slice(None, None, step)})
    )


def draw_raster(
    ax: Axes,
    pixels: NDArray[Any],
    place: xr.DataArray,
    *,
    cmap: str | None = None,
    limits: tuple[float | None, float | None] = (None, None),
) -> AxesImage:
    """Draw `pixels` where the coordinates of `place` lie; what is transparent shows hatching.

    Pixels are colours (y, x, channel), or values (y, x) coloured by `cmap` between `limits`.
    """
    ax.patch.set(facecolor="white", edgecolor="0.75", hatch="//////", linewidth=0)
    drawn = ax.imshow(
        pixels,
        interpolation="nearest",
        extent=_extent(place),
        cmap=cmap,
        vmin=limits[0],
        vmax=limits[1],
    )
    ax.set(xticks=[], yticks=[])
    ax.set_anchor("W")  # what stands beside the map keeps its place when the map is narrow
    for spine in ax.spines.values():
        spine.set(visible=True, color="0.5", linewidth=0.5)
    return drawn


def map_size(place: xr.DataArray, *, beside: float = 0.0) -> tuple[float, float]:
    """Return width and height in inches of a figure for a map, with room `beside` it.

    The map is one column wide, unless that makes it higher than a page allows.

    Examples
    --------
    >>> map_size(xr.DataArray(np.zeros((100, 200)), dims=MAP_DIMS), beside=1.0)
    (4.5, 1.75)
    """
    left, right, bottom, top = _extent(place)
    shape = abs(top - bottom) / abs(right - left)
    width = min(COLUMN_WIDTH, _HIGHEST / shape)
    return width + beside, max(width * shape, _LOWEST)


def _extent(place: xr.DataArray) -> tuple[float, float, float, float]:
    left, right = _edges(place, X)
    top, bottom = _edges(place, Y)
    return left, right, bottom, top


def _edges(place: xr.DataArray, dim: str) -> tuple[float, float]:
    """Return the outer edges of the first and last pixel along `dim`."""
    count = place.sizes[dim]
    if dim in place.coords and count > 1:
        centres = np.asarray(place.coords[dim].values, dtype=float)
        half = (centres[-1] - centres[0]) / (count - 1) / 2
        return float(centres[0] - half), float(centres[-1] + half)
    return -0.5, count - 0.5
