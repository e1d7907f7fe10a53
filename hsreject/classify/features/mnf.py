"""Minimum noise fraction: components in the order of their signal-to-noise ratio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from spectral.algorithms.algorithms import GaussianStats

from hsreject import schema
from hsreject.classify.features.contract import (
    SceneTransformer,
    check_enough_pixels,
    component_coords,
    fix_signs,
)
from hsreject.classify.moments import Moments, pixel_and_difference_moments
from hsreject.classify.pixels import feature_dtype, map_pixels, on_the_grid_of
from hsreject.errors import InputError

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

# pixel -> neighbour (rows, columns); the names are spectral's
NEIGHBOURS = {"lowerright": (1, 1), "lowerleft": (1, -1), "right": (0, 1), "lower": (1, 0)}

# Directions whose noise variance is this fraction of the largest (of bands scaled to unit noise)
# hold rounding error: constant bands, copies of bands, more bands than pairs of pixels.
_NO_NOISE = 1e-10


class MNF(SceneTransformer):
    r"""Minimum noise fraction (noise-adjusted principal components) of a scene.

    With the covariance S of the pixels and the covariance N of the noise, the components are the
    solutions of :math:`S w = \lambda N w`, scaled to unit noise (:math:`w' N w = 1`) and ordered by
    :math:`\lambda`, which is one plus the signal-to-noise ratio. The features of a spectrum x are
    :math:`w'(x - m)`, m the mean of the scene. The noise is estimated from neighbouring pixels,
    whose difference is mostly noise: N is half the covariance of the differences.

    Pixels without data take part in nothing, and neither does any pair that has one. The
    eigenvectors come from `spectral`; directions in which no noise could be measured (constant
    bands, copies of bands) are left out, and the sign of a component is that which makes its
    largest weight positive.

    Parameters
    ----------
    n_components : int or None, default 15
        How many components to keep, at least 1. None keeps those whose signal-to-noise ratio
        :math:`\lambda - 1` is at least `min_snr`, and at least one.
    min_snr : float, default 1.0
        The rule for ``n_components=None``: a component is worth keeping when it holds at least this
        many times as much signal as noise, in variance.
    neighbour : {"lowerright", "lowerleft", "right", "lower"}, default "lowerright"
        Which neighbour a pixel is compared with.

    Attributes
    ----------
    components_ : ndarray (n_components, n_bands_in_use)
        The weights w, one component a row.
    mean_ : ndarray (n_bands_in_use,)
        The mean m.
    snr_ : ndarray
        The signal-to-noise ratio of every component there is, not only of those kept.

    References
    ----------
    A. A. Green, M. Berman, P. Switzer and M. D. Craig, "A transformation for ordering multispectral
    data in terms of image quality with implications for noise removal", IEEE Transactions on
    Geoscience and Remote Sensing 26 (1988).
    J. B. Lee, A. S. Woodyatt and M. Berman, "Enhancement of high spectral resolution remote-sensing
    data by a noise-adjusted principal components transform", the same 28 (1990).

    Examples
    --------
    >>> import xarray as xr
    >>> rng = np.random.default_rng(0)
    >>> ramp = np.linspace(0, 9, 20) * np.ones((30, 1))
    >>> values = np.stack([ramp, -ramp, 0 * ramp]) + 0.1 * rng.normal(size=(3, 30, 20))
    >>> scene = xr.DataArray(values, dims=("band", "y", "x"))
    >>> mnf = MNF(n_components=None).fit(scene)
    >>> mnf.transform(scene).shape, bool(mnf.snr_[0] > 500)
    ((1, 30, 20), True)
    """

    def __init__(
        self,
        n_components: int | None = 15,
        *,
        min_snr: float = 1.0,
        neighbour: str = "lowerright",
    ) -> None:
        self.n_components = n_components
        self.min_snr = min_snr
        self.neighbour = neighbour

    @property
    def reach(self) -> int:
        """None of its neighbours matter to a pixel."""
        return 0

    def _learn_scene(self, cube: xr.DataArray) -> None:
        if self.neighbour not in NEIGHBOURS:
            raise InputError(
                f"neighbour must be one of {', '.join(NEIGHBOURS)} (got {self.neighbour!r})."
            )
        signal, noise = pixel_and_difference_moments(cube, NEIGHBOURS[self.neighbour])
        check_enough_pixels(signal, needed_by="MNF")
        if noise.count < 2:
            raise InputError(
                f"MNF needs at least two pairs of neighbouring pixels with data to measure noise "
                f"(found {noise.count}). Use PCA, or another neighbour= than {self.neighbour!r}."
            )
        eigenvalues, components = noise_adjusted_components(signal, noise)
        kept = self._n_kept(eigenvalues)
        self.snr_ = eigenvalues - 1.0
        self.components_ = fix_signs(components[:kept])
        self.mean_ = signal.mean

    def _n_kept(self, eigenvalues: NDArray[np.float64]) -> int:
        if self.n_components is None:
            return max(int((eigenvalues - 1.0 >= self.min_snr).sum()), 1)
        if not 1 <= self.n_components <= eigenvalues.size:
            raise InputError(
                f"n_components must lie between 1 and {eigenvalues.size}, the number of "
                f"independent bands with noise in this scene (got {self.n_components})."
            )
        return int(self.n_components)

    def _transform_scene(self, cube: xr.DataArray) -> xr.DataArray:
        n_components = len(self.components_)
        data = map_pixels(
            cube, self._project, n_outputs=n_components, dtype=feature_dtype(cube.dtype)
        )
        coords = component_coords(n_components)
        return on_the_grid_of(cube, data, dim=schema.BAND, coords=coords)

    def _project(self, samples: NDArray[np.float64]) -> NDArray[Any]:
        return (samples - self.mean_) @ self.components_.T


def noise_adjusted_components(
    signal: Moments, differences: Moments
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return eigenvalues (descending) and components (rows) of pixels over noise.

    Parameters
    ----------
    signal : Moments
        Of the pixels.
    differences : Moments
        Of pixel minus neighbour: twice the covariance of the noise.
    """
    noise = differences.covariance / 2.0
    deviation = np.sqrt(np.diagonal(noise))
    scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
    variances, axes = np.linalg.eigh(noise * np.outer(scale, scale))
    noisy = variances > _NO_NOISE * variances[-1]
    if not noisy.any():
        raise InputError(
            "MNF needs noise to measure: in every band all neighbouring pixels are equal. "
            "Use PCA for scenes without noise."
        )
    # Bands scaled to unit noise, then rotated to uncorrelated noise: spectral's square root of the
    # inverse covariance is safe there. Its mnf() is not called because it solves the symmetric
    # problem with a general solver, which loses orthogonality where eigenvalues nearly agree.
    basis = axes[:, noisy] * scale[:, None]
    whiten = _statistics(np.diag(variances[noisy])).sqrt_inv_cov @ basis.T
    whitened = _statistics(_symmetric(whiten @ signal.covariance @ whiten.T))
    principal = whitened.principal_components
    return principal.eigenvalues, principal.eigenvectors.T @ whiten


def _statistics(covariance: NDArray[np.float64]) -> GaussianStats:
    return GaussianStats(mean=np.zeros(len(covariance)), cov=covariance)


def _symmetric(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    return (matrix + matrix.T) / 2.0
