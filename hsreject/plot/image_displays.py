"""Images of a scene: how any raster is drawn, confidence maps and false-color pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.plot.style import COLUMN_WIDTH, color_bar, print_style, shown_axes
from hsreject.schema import (
    BAND,
    CUBE_DIMS,
    MAP_DIMS,
    WAVELENGTH,
    X,
    Y,
    as_map,
    check_dims,
    good_bands,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from numpy.typing import NDArray

_LARGEST_SIDE = 2000  # pixels
COLORBAR_WIDTH = 0.75  # inches
_HIGHEST, _LOWEST = 4.5, 1.2  # inches

NATURAL = (640.0, 550.0, 470.0)
INFRARED = (860.0, 650.0, 550.0)
_NEAR_ENOUGH = 60.0  # nm: farther away a band no longer shows the color that was asked for


@dataclass(frozen=True, eq=False)
class ConfidenceMapDisplay:
    """A map of confidences with its color bar: dark is low, bright is high.

    Parameters
    ----------
    confidence : DataArray of float, dims (y, x)
        Larger is more certain; NaN is no data and stays hatched.
    limits : tuple of two floats
        Confidences at the ends of the color bar; values outside take the color of the nearer end.
    name : str
        The label of the color bar.

    See Also
    --------
    hsreject.Confidence : what it shows.

    Examples
    --------
    >>> import numpy as np
    >>> import hsreject as hr
    >>> hr.plot.ConfidenceMapDisplay.from_confidence(np.array([[0.4, 0.9, np.nan]])).limits
    (0.4, 0.9)
    """

    confidence: xr.DataArray
    limits: tuple[float, float]
    name: str = "confidence"

    @classmethod
    def from_confidence(
        cls,
        confidence: xr.DataArray | NDArray[np.floating[Any]],
        *,
        limits: tuple[float, float] | None = None,
        name: str | None = None,
    ) -> ConfidenceMapDisplay:
        """Return the display of a confidence map.

        The limits are its smallest and largest value, the name is its `long_name`, unless given.
        """
        confidence = thinned(as_map(confidence, name="confidence")).load()
        if limits is None:
            finite = confidence.values[np.isfinite(confidence.values)]
            if finite.size == 0:
                raise InputError("confidence has no finite value: there is nothing to draw.")
            limits = float(finite.min()), float(finite.max())
        return cls(confidence, limits, name or str(confidence.attrs.get("long_name", "confidence")))

    def plot(self, ax: Axes | None = None, *, colorbar: bool = True) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        values = np.ma.masked_invalid(self.confidence.values)
        low, high = self.limits
        below, above = bool((values < low).any()), bool((values > high).any())
        extend = "both" if below and above else "min" if below else "max" if above else "neither"
        with print_style():
            if ax is None:
                ax = shown_axes(*map_size(self.confidence, beside=COLORBAR_WIDTH))
            image = draw_raster(ax, values, self.confidence, cmap="cividis", limits=self.limits)
            if colorbar:
                color_bar(ax, image, self.name, extend=extend, gap=0.03)
        return ax


@dataclass(frozen=True, eq=False)
class FalseColorDisplay:
    """A picture of a cube in three of its bands.

    Parameters
    ----------
    picture : DataArray of uint8, dims (y, x, channel)
        Red, green, blue and opacity; pixels without data are transparent.
    bands : tuple of three ints
        Positions of the bands shown as red, green and blue.

    See Also
    --------
    hsreject.open_scene : opens a cube.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> import hsreject as hr
    >>> cube = xr.DataArray(
    ...     np.arange(16.0).reshape(4, 2, 2), dims=("band", "y", "x"),
    ...     coords={"wavelength": ("band", [450.0, 550.0, 650.0, 860.0])},
    ... )
    >>> hr.plot.FalseColorDisplay.from_cube(cube).bands
    (2, 1, 0)
    >>> hr.plot.FalseColorDisplay.from_cube(cube, wavelengths=hr.plot.INFRARED).bands
    (3, 2, 1)
    """

    picture: xr.DataArray
    bands: tuple[int, int, int]

    @classmethod
    def from_cube(
        cls,
        cube: xr.DataArray,
        *,
        wavelengths: tuple[float, float, float] = NATURAL,
        bands: tuple[int, int, int] | None = None,
    ) -> FalseColorDisplay:
        """Return the picture of a cube, each band stretched between 2 and 98 % of its values.

        Parameters
        ----------
        cube : DataArray, dims (band, y, x)
            Lazy cubes are read in three bands only.
        wavelengths : tuple of three floats
            Red, green and blue in nanometres (`NATURAL` colors; `INFRARED` shows vegetation red).
            The nearest good bands are taken. A cube that lacks one of them, or has no
            wavelengths, is shown in three good bands spread over its range.
        bands : tuple of three ints, optional
            Positions of the bands instead.
        """
        cube = thinned(check_dims(cube, CUBE_DIMS, name="cube"))
        positions = _choose(cube, wavelengths) if bands is None else bands
        if not all(-cube.sizes[BAND] <= band < cube.sizes[BAND] for band in positions):
            raise InputError(
                f"bands must lie within the {cube.sizes[BAND]} bands of the cube, counted from 0 "
                f"(got {positions})."
            )
        channels = cube.isel({BAND: list(positions)}).transpose(*MAP_DIMS, BAND)
        place = {dim: cube.coords[dim] for dim in MAP_DIMS if dim in cube.coords}
        picture = xr.DataArray(_stretch(channels.values), dims=(*MAP_DIMS, "channel"), coords=place)
        return cls(picture, positions)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        with print_style():
            if ax is None:
                ax = shown_axes(*map_size(self.picture))
            draw_raster(ax, self.picture.values, self.picture)
        return ax


def _choose(cube: xr.DataArray, targets: Sequence[float]) -> tuple[int, int, int]:
    """Return the good bands nearest to the wanted wavelengths, or three spread over all of them."""
    good = np.flatnonzero(good_bands(cube))
    if good.size == 0:
        raise InputError("The cube has no good band: all are marked bad in 'good_band'.")
    centers = np.full(good.size, np.nan)
    if WAVELENGTH in cube.coords:
        centers = np.asarray(cube.coords[WAVELENGTH].values, dtype=float)[good]
    distance = np.abs(centers - np.reshape(targets, (3, 1)))
    if (np.nan_to_num(distance, nan=np.inf).min(axis=1) <= _NEAR_ENOUGH).all():
        ranked = [good[np.argsort(row, kind="stable")] for row in distance]
    else:
        # No such wavelengths: bands from the long, middle and short part of the range, long ones as
        # red, as the eye has it. A rolled list goes on to the neighbors of an empty band.
        good = good[np.argsort(centers, kind="stable")]
        ranked = [np.roll(good, -round(share * (good.size - 1))) for share in (0.75, 0.45, 0.15)]
    red, green, blue = (_first_with_data(cube, candidates) for candidates in ranked)
    return red, green, blue


def _first_with_data(cube: xr.DataArray, candidates: NDArray[np.intp]) -> int:
    """Return the first band that holds any data: sensors deliver bands that are all nodata."""
    for band in candidates:
        if bool(cube.isel({BAND: int(band)}).notnull().any()):
            return int(band)
    raise InputError("The cube holds no data in any good band: there is nothing to draw.")


def _stretch(shown: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Return 8-bit RGBA; a band of one value becomes mid gray, not a division by zero."""
    values = np.asarray(shown, dtype=np.float32)
    valid = np.asarray(np.isfinite(values).all(axis=-1))
    if not valid.any():
        raise InputError("No pixel has data in all three bands: choose others with `bands`.")
    # percentiles, not extremes: a few glints would leave everything else black
    low, high = np.percentile(values[valid], (2, 98), axis=0)
    span = np.where(high > low, high - low, 1.0)
    scaled = np.where(high > low, (values[valid] - low) / span, 0.5)
    picture = np.zeros((*valid.shape, 4), dtype=np.uint8)
    picture[valid, :3] = (255 * np.clip(scaled, 0.0, 1.0)).round()
    picture[valid, 3] = 255
    return picture


def thinned(array: xr.DataArray) -> xr.DataArray:
    """Return every n-th row and column, so that no side is longer than a picture shows."""
    every_nth = slice(None, None, -(-max(array.sizes[Y], array.sizes[X]) // _LARGEST_SIDE) or 1)
    return array.isel({Y: every_nth, X: every_nth})


def draw_raster(
    ax: Axes,
    pixels: NDArray[Any],
    place: xr.DataArray,
    *,
    cmap: str | None = None,
    limits: tuple[float | None, float | None] = (None, None),
) -> AxesImage:
    """Draw `pixels` where the coordinates of `place` lie; what is transparent shows hatching.

    Pixels are colors (y, x, channel), or values (y, x) colored by `cmap` between `limits`.
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
        centers = np.asarray(place.coords[dim].values, dtype=float)
        half = (centers[-1] - centers[0]) / (count - 1) / 2
        return float(centers[0] - half), float(centers[-1] + half)
    return -0.5, count - 0.5
