"""Maps as pictures see them: labelled, of a drawable size, with their place on the ground."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.schema import MAP_DIMS, X, Y, check_dims

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from numpy.typing import NDArray

LARGEST_SIDE = 2000


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
    for spine in ax.spines.values():
        spine.set(visible=True, color="0.5", linewidth=0.5)
    return drawn


def shape_of(place: xr.DataArray) -> float:
    """Return height over width of a map, as it will be drawn."""
    left, right, bottom, top = _extent(place)
    return abs(top - bottom) / abs(right - left)


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
