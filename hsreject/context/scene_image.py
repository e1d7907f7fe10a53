"""What priors take from the image of a whole scene, gathered block by block and then fixed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import xarray as xr
from dask.base import compute

from hsreject.context.priors.edges import ImageEdges
from hsreject.errors import InputError
from hsreject.features.components import principal_axes
from hsreject.features.pixels import cube_moments, map_pixels, on_the_grid_of
from hsreject.schema import BAND, CUBE_DIMS, check_dims, good_bands

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ImageLayers:
    """Linear combinations of the bands of an image.

    Parameters
    ----------
    loadings : array (layer, band)
    """

    loadings: NDArray[np.float64]

    def __call__(self, part: xr.DataArray) -> xr.DataArray | None:
        """Return the layers (band, y, x) of a part of a scene, or None if there are none.

        They are lazy if `part` is, and NaN where there is no data.
        """
        if not len(self.loadings):
            return None
        coords = {BAND: np.arange(len(self.loadings))}
        return on_the_grid_of(part, _projected(part, self.loadings), dim=BAND, coords=coords)


class SceneImage:
    """The image of a scene as its priors see it: a few layers, and their scale over all pixels.

    Every prior asks for its layers (:meth:`edges_along`); then :attr:`layers` gives those of any
    part of the scene, to be passed as the image of that part.

    Parameters
    ----------
    cube : DataArray (band, y, x)
        The scene; a dask-backed one is read chunk by chunk, once for the component and once for
        the scale of a layer. Bands marked bad take no part.

    Examples
    --------
    >>> cube = xr.DataArray(np.arange(12.0).reshape(2, 2, 3), dims=("band", "y", "x"))
    >>> scene = SceneImage(cube)
    >>> scene.edges_along(scene.bands([1]))
    ImageEdges(bands=(0,), mean_squared=4.428571428571429)
    >>> scene.layers(cube.isel(y=[1])).values
    array([[[ 9., 10., 11.]]])
    """

    def __init__(self, cube: xr.DataArray) -> None:
        self._cube = check_dims(cube, CUBE_DIMS, name="image")
        self._good = np.flatnonzero(good_bands(cube))
        self._loadings: list[NDArray[np.float64]] = []

    @property
    def n_bands(self) -> int:
        """The number of bands, bad ones included."""
        return int(self._cube.sizes[BAND])

    @property
    def n_layers(self) -> int:
        """How many layers the priors have asked for."""
        return sum(len(loadings) for loadings in self._loadings)

    def first_component(self) -> NDArray[np.float64]:
        """Return the loadings of the first principal component, (1, band); 0 for bad bands."""
        loadings = np.zeros((1, self.n_bands))
        loadings[:, self._good] = self._leading
        return loadings

    def bands(self, indices: Any) -> NDArray[np.float64]:
        """Return the loadings that pick these bands, (layer, band)."""
        indices = np.asarray(indices)
        if indices.max() >= self.n_bands:
            raise InputError(
                f"edges names band {indices.max()} but the image has {self.n_bands} bands "
                "(0 is the first)."
            )
        loadings: NDArray[np.float64] = np.eye(self.n_bands)[indices]
        return loadings

    def edges_along(self, loadings: NDArray[np.float64]) -> ImageEdges:
        """Add layers and return the edge weights of them, on the scale of the whole scene."""
        first = self.n_layers
        self._loadings.append(loadings)
        return ImageEdges(
            tuple(range(first, first + len(loadings))),
            _mean_squared_difference(_projected(self._cube, loadings)),
        )

    @property
    def layers(self) -> ImageLayers:
        """The layers that the priors have asked for."""
        return ImageLayers(np.concatenate([np.empty((0, self.n_bands)), *self._loadings]))

    @cached_property
    def _leading(self) -> NDArray[np.float64]:
        moments = cube_moments(self._cube.isel({BAND: self._good}))
        if not moments.count:
            raise InputError("No pixel of the image has data in all its good bands.")
        return principal_axes(moments)[1][:1]


def _projected(cube: xr.DataArray, loadings: NDArray[np.float64]) -> Any:
    used = np.flatnonzero(loadings.any(axis=0))  # bad bands may be NaN and must not take part
    matrix = loadings[:, used].T
    return map_pixels(
        cube.isel({BAND: used}),
        lambda samples: samples @ matrix,
        n_outputs=len(loadings),
        dtype=np.float64,
    )


def _mean_squared_difference(layers: Any) -> float:
    """Return the mean of squared differences across all edges between two pixels with data."""
    layers = da.asarray(layers)  # type: ignore[no-untyped-call]  # dask has few types
    squared = [(da.diff(layers, axis=axis) ** 2).sum(axis=0) for axis in (1, 2)]
    sums = [da.nansum(part) for part in squared]
    counts = [da.isfinite(part).sum() for part in squared]
    found = [float(value) for value in compute(*sums, *counts)]  # type: ignore[no-untyped-call]
    total, count = sum(found[:2]), sum(found[2:])
    return total / count if count else 0.0
