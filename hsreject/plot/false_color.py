"""False-colour pictures of a scene: three bands, stretched so that the ground can be seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.plot.grid import draw_raster, map_size, thinned
from hsreject.plot.style import print_style, shown_axes
from hsreject.schema import BAND, CUBE_DIMS, MAP_DIMS, WAVELENGTH, check_dims, good_bands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

NATURAL = (640.0, 550.0, 470.0)
INFRARED = (860.0, 650.0, 550.0)
_NEAR_ENOUGH = 60.0  # nm: farther away a band no longer shows the colour that was asked for


@dataclass(frozen=True, eq=False)
class FalseColorDisplay:
    """A picture of a cube in three of its bands.

    Parameters
    ----------
    picture : DataArray of uint8, dims (y, x, channel)
        Red, green, blue and opacity; pixels without data are transparent.
    bands : tuple of three ints
        Positions of the bands shown as red, green and blue.
    wavelengths : tuple of three floats or None
        Their centres in nanometres, if the cube knows them.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> cube = xr.DataArray(
    ...     np.arange(16.0).reshape(4, 2, 2), dims=("band", "y", "x"),
    ...     coords={"wavelength": ("band", [450.0, 550.0, 650.0, 860.0])},
    ... )
    >>> FalseColorDisplay.from_cube(cube).bands
    (2, 1, 0)
    >>> FalseColorDisplay.from_cube(cube, wavelengths=INFRARED).bands
    (3, 2, 1)
    """

    picture: xr.DataArray
    bands: tuple[int, int, int]
    wavelengths: tuple[float, float, float] | None = None

    @classmethod
    def from_cube(
        cls,
        cube: xr.DataArray,
        *,
        wavelengths: tuple[float, float, float] = NATURAL,
        bands: tuple[int, int, int] | None = None,
        percentiles: tuple[float, float] = (2.0, 98.0),
    ) -> FalseColorDisplay:
        """Return the picture of a cube.

        Parameters
        ----------
        cube : DataArray, dims (band, y, x)
            Lazy cubes are read in three bands only.
        wavelengths : tuple of three floats
            Wanted red, green and blue in nanometres (`NATURAL` colours; `INFRARED` shows
            vegetation red). The nearest good bands are taken. A cube that lacks one of them, or
            knows no wavelengths, is shown in three good bands spread over its range.
        bands : tuple of three ints, optional
            Positions of the bands instead.
        percentiles : tuple of two floats
            Each band is stretched between these percentiles of its pixels with data.
        """
        cube = thinned(check_dims(cube, CUBE_DIMS, name="cube"))
        chosen = _choose(cube, wavelengths) if bands is None else bands
        if not all(-cube.sizes[BAND] <= band < cube.sizes[BAND] for band in chosen):
            raise InputError(
                f"bands must lie within the {cube.sizes[BAND]} bands of the cube, counted from 0 "
                f"(got {chosen})."
            )
        shown = cube.isel({BAND: list(chosen)}).transpose(*MAP_DIMS, BAND)
        place = {dim: cube.coords[dim] for dim in MAP_DIMS if dim in cube.coords}
        picture = xr.DataArray(
            _stretch(shown.values, percentiles), dims=(*MAP_DIMS, "channel"), coords=place
        )
        centres = None
        if WAVELENGTH in cube.coords:
            red, green, blue = (float(cube.coords[WAVELENGTH][band]) for band in chosen)
            centres = red, green, blue
        return cls(picture, chosen, centres)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        with print_style():
            if ax is None:
                ax = shown_axes(*map_size(self.picture))
            draw_raster(ax, self.picture.values, self.picture)
        return ax


def _choose(cube: xr.DataArray, wanted: Sequence[float]) -> tuple[int, int, int]:
    good = np.flatnonzero(good_bands(cube))
    if good.size == 0:
        raise InputError("The cube has no good band: all are marked bad in 'good_band'.")
    if WAVELENGTH in cube.coords:
        centres = np.asarray(cube.coords[WAVELENGTH].values, dtype=float)[good]
        distance = np.abs(centres[:, np.newaxis] - np.asarray(wanted))
        if np.isfinite(distance).any() and (np.nanmin(distance, axis=0) <= _NEAR_ENOUGH).all():
            ranked = [good[np.argsort(column, kind="stable")] for column in distance.T]
            red, green, blue = (_first_with_data(cube, candidates) for candidates in ranked)
            return red, green, blue
        good = good[np.argsort(centres, kind="stable")]
    # long waves as red, as the eye has it
    red, green, blue = (
        _first_with_data(cube, np.roll(good, -round(share * (good.size - 1))))
        for share in (0.75, 0.45, 0.15)
    )
    return red, green, blue


def _first_with_data(cube: xr.DataArray, candidates: NDArray[np.intp]) -> int:
    """Return the first band that holds any data: sensors deliver bands that are all nodata."""
    for band in candidates:
        if bool(cube.isel({BAND: int(band)}).notnull().any()):
            return int(band)
    raise InputError("The cube holds no data in any good band: there is nothing to draw.")


def _stretch(shown: NDArray[np.generic], percentiles: tuple[float, float]) -> NDArray[np.uint8]:
    """Return 8-bit RGBA; a band of one value becomes mid grey, not a division by zero."""
    values = np.asarray(shown, dtype=np.float32)
    valid = np.asarray(np.isfinite(values).all(axis=-1))
    if not valid.any():
        raise InputError("No pixel has data in all three bands: choose others with `bands`.")
    low, high = np.percentile(values[valid], percentiles, axis=0)
    span = np.where(high > low, high - low, 1.0)
    scaled = np.where(high > low, (values[valid] - low) / span, 0.5)
    picture = np.zeros((*valid.shape, 4), dtype=np.uint8)
    picture[valid, :3] = (255 * np.clip(scaled, 0.0, 1.0)).round()
    picture[valid, 3] = 255
    return picture
