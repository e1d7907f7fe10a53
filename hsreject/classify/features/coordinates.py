"""Where a pixel lies, and nothing else: the feature of the location-only baseline."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.classify.features.contract import SceneTransformer
from hsreject.classify.pixels import on_the_grid_of


class Coordinates(SceneTransformer):
    """Row and column of every pixel that has data: two features without any spectrum.

    With training pixels drawn at random from the same scene, location alone classifies well,
    because neighbours mostly belong to one class. A method that uses spectra must be compared with
    what ``SceneClassifier("nearest_neighbour", features=["coordinates"])`` reaches without any. The
    feature means nothing on another scene.

    Examples
    --------
    >>> cube = xr.DataArray(np.ones((5, 2, 3)), dims=("band", "y", "x"))
    >>> Coordinates().fit_transform(cube).values[:, 1, 2]
    array([1., 2.], dtype=float32)
    """

    def _learn_scene(self, cube: xr.DataArray) -> None:
        """Nothing to learn."""

    def _transform_scene(self, cube: xr.DataArray) -> xr.DataArray:
        valid = xr.apply_ufunc(np.isfinite, cube, dask="allowed").all(schema.BAND)
        positions = [
            xr.DataArray(np.arange(cube.sizes[dim], dtype=np.float32), dims=dim)
            .where(valid)
            .transpose(*schema.MAP_DIMS)
            for dim in schema.MAP_DIMS
        ]
        data = xr.concat(positions, dim=schema.BAND).data
        return on_the_grid_of(cube, data, dim=schema.BAND, coords={schema.BAND: ["row", "column"]})
