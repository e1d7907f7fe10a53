"""Features that look at the place of a pixel or at its neighbours."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.ndimage import gaussian_filter

from hsreject import schema
from hsreject.features.pixels import feature_dtype, on_the_grid_of
from hsreject.features.transformer import SceneTransformer
from hsreject.features.windows import with_halo
from hsreject.registry import check_number

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

_TRUNCATE = 4.0  # the Gaussian ends at this many standard deviations


class Coordinates(SceneTransformer):
    """Row and column of every pixel that has data: two features without any spectrum.

    With training pixels drawn at random from the same scene, location alone classifies well,
    because neighbours mostly belong to one class. A method that uses spectra must be compared with
    what ``SceneClassifier("nearest_neighbor", features=["coordinates"])`` reaches without any. The
    feature means nothing on another scene.

    See Also
    --------
    hsreject.Smooth : brings the neighborhood into the spectra.
    hsreject.SceneClassifier : takes features in front of a classifier.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from hsreject import Coordinates
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


class Smooth(SceneTransformer):
    r"""Gaussian smoothing of every band over the pixels that have data.

    Normalised convolution: with the Gaussian g and the mask m of pixels that have data,

    .. math:: \tilde f = \frac{g * (m f)}{g * m} \quad \text{where } m = 1

    so that the weights of the pixels that count always sum to one: a constant stays constant at the
    border of the scene and around holes, pixels without data stay NaN, and their values never reach
    a neighbour.

    Parameters
    ----------
    sigma : float, default 1.0
        Standard deviation in pixels; 0 changes nothing. The kernel ends at 4 sigma.

    See Also
    --------
    hsreject.Diffuse : stops at edges.
    hsreject.SegSALSA : smooths the classes instead of the spectra.

    References
    ----------
    H. Knutsson and C.-F. Westin, "Normalized and differential convolution", Conference on Computer
    Vision and Pattern Recognition, 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import Smooth
    >>> import xarray as xr
    >>> values = np.array([[[5.0, 5.0, np.nan, 5.0]]])
    >>> Smooth(sigma=2.0).fit_transform(xr.DataArray(values, dims=("band", "y", "x"))).values
    array([[[ 5.,  5., nan,  5.]]])
    """

    def __init__(self, sigma: float = 1.0) -> None:
        self.sigma = sigma

    @property
    def halo(self) -> int:
        """The radius of the kernel."""
        return int(_TRUNCATE * self.sigma + 0.5)

    def _learn_scene(self, cube: xr.DataArray) -> None:
        check_number("sigma", self.sigma, least=0)

    def _transform_scene(self, cube: xr.DataArray) -> xr.DataArray:
        dtype = feature_dtype(cube.dtype)
        kernel = partial(smoothed, sigma=self.sigma, dtype=dtype)
        if cube.chunks is None:
            return on_the_grid_of(cube, kernel(cube.values))
        # dask makes chunks as large as the overlap, but not larger than the scene
        depths = {0: 0, **{axis: min(self.halo, cube.shape[axis]) for axis in (1, 2)}}
        whole_spectra = cube.data.rechunk({0: -1})
        data = with_halo(whole_spectra, kernel, depths, n_outputs=len(cube), dtype=dtype)
        return on_the_grid_of(cube, data)


def smoothed(values: NDArray[Any], *, sigma: float, dtype: DTypeLike) -> NDArray[Any]:
    """Return values (band, y, x) smoothed over the pixels with data, as :class:`Smooth` says."""
    valid = np.isfinite(values).all(axis=0)
    gaussian = partial(gaussian_filter, sigma=sigma, mode="constant", truncate=_TRUNCATE)
    total = gaussian(valid.astype(np.float64))
    smooth = np.full(values.shape, np.nan, dtype=dtype)
    for band, plane in enumerate(values):
        weighted = gaussian(np.where(valid, plane, 0).astype(np.float64))
        # a valid pixel counts itself, so its total is above 0
        smooth[band, valid] = weighted[valid] / total[valid]
    return smooth
