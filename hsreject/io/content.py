"""What the pixels of a scene hold: range, share without data, bands without any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hsreject import schema
from hsreject.errors import FileError
from hsreject.progress import ProgressCallback, no_progress

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

_STRIP_BYTES = 64 * 2**20


@dataclass(frozen=True, eq=False)
class SceneContent:
    """What reading a scene through shows.

    Parameters
    ----------
    good_bands : array of bool
        Bands that the file calls good and that have data.
    share_without_data : float
        Share of the pixels that lack data in a good band, 0 to 1.
    smallest, largest : float
        Range of the values in the good bands.
    """

    good_bands: NDArray[np.bool_]
    share_without_data: float
    smallest: float
    largest: float


def scene_content(cube: xr.DataArray, *, progress: ProgressCallback = no_progress) -> SceneContent:
    """Read a scene through, strip by strip, and return what it holds.

    Parameters
    ----------
    cube : DataArray, dims (band, y, x)
        The scene; a lazily opened one may be larger than memory.
    progress : callable
        Told how many rows are read.
    """
    n_bands, height, width = (cube.sizes[dim] for dim in schema.CUBE_DIMS)
    rows = max(1, _STRIP_BYTES // (n_bands * width * 4))
    stated = schema.good_bands(cube)
    filled = np.zeros(n_bands, dtype=np.int64)
    low, high = np.full(n_bands, np.inf), np.full(n_bands, -np.inf)
    pixels_with = np.zeros(n_bands + 1, dtype=np.int64)  # by number of good bands that have data
    for start in range(0, height, rows):
        strip = cube.isel({schema.Y: slice(start, start + rows)}).values
        if strip.dtype.kind != "f":
            strip = strip.astype(np.float64)
        there = ~np.isnan(strip)
        filled += there.sum(axis=(1, 2))
        low = np.minimum(low, strip.min(axis=(1, 2), initial=np.inf, where=there))
        high = np.maximum(high, strip.max(axis=(1, 2), initial=-np.inf, where=there))
        counts = there[stated].sum(axis=0).ravel()
        pixels_with += np.bincount(counts, minlength=n_bands + 1)
        progress("reading pixels", min(start + rows, height), height)
    good = stated & (filled > 0)
    if not good.any():
        raise FileError(
            f"{cube.attrs.get('source', 'The scene')} has no data: every pixel of every good band "
            "is nodata or NaN."
        )
    return SceneContent(
        good_bands=good,
        share_without_data=1 - int(pixels_with[good.sum()]) / (height * width),
        smallest=float(low[good].min()),
        largest=float(high[good].max()),
    )
