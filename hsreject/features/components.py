"""Components of spectra: principal axes, PCA and minimum noise fraction (MNF)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from spectral.algorithms.algorithms import GaussianStats

from hsreject.errors import InputError
from hsreject.features.pixels import Moments, cube_moments
from hsreject.features.transformer import SampleTransformer
from hsreject.registry import check_count

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

_LOWER_RIGHT = (1, 1)  # rows and columns from a pixel to the neighbour whose difference is noise

# Directions whose noise variance is this fraction of the largest (of bands scaled to unit noise)
# hold rounding error: constant bands, copies of bands, more bands than pairs of pixels.
_NO_NOISE = 1e-10


def principal_axes(moments: Moments) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the variances, descending, and the principal axes of samples, one per row.

    The largest entry of each axis is positive, whatever sign the linear algebra library returns.
    """
    scatters, vectors = np.linalg.eigh(moments.scatter)
    variances = np.maximum(scatters[::-1], 0.0) / max(moments.count - 1, 1)
    return variances, _fixed_signs(vectors.T[::-1])


def principal_components(
    image: NDArray[np.floating[Any]], valid: NDArray[np.bool_], count: int
) -> NDArray[np.float64]:
    """Return the first `count` principal components (component, y, x) of an image (band, y, x).

    Only `valid` pixels (y, x) count; the others are 0.
    """
    spectra = image[:, valid].astype(np.float64)
    if not np.isfinite(spectra).all():
        raise InputError(
            "image has NaN or infinite values in pixels whose probabilities are given. "
            "Set the probabilities of these pixels to NaN, or drop the bands that have them."
        )
    moments = Moments.of(spectra.T)
    axes = principal_axes(moments)[1][:count]
    components = np.zeros((len(axes), *valid.shape))
    components[:, valid] = axes @ (spectra - moments.mean[:, None])
    return components


def _fixed_signs(axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return axes (rows), turned so that the largest entry of each is positive."""
    largest = axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)]
    return axes * np.where(largest < 0, -1.0, 1.0)[:, None]


class _Components(SampleTransformer):
    """Features w'(x - m) of a spectrum x, numbered from 1."""

    components_: NDArray[np.float64]
    mean_: NDArray[np.float64]

    def _transform_samples(self, samples: NDArray[Any]) -> NDArray[Any]:
        return (samples - self.mean_) @ self.components_.T

    def _names(self) -> NDArray[np.intp]:
        return np.arange(1, len(self.components_) + 1)


class PCA(_Components):
    r"""Principal components of spectra, from a covariance gathered chunk by chunk.

    The components are the eigenvectors v of the covariance of the pixels with the largest
    eigenvalues; the features of x are :math:`v'(x - m)`, m the mean. The same as
    `sklearn.decomposition.PCA`, except that the scene never has to be in memory at once and that
    the sign makes the largest weight of a component positive.

    Parameters
    ----------
    n_components : int, float or None, default 15
        How many components to keep; a fraction in (0, 1) keeps the fewest that hold this share of
        the variance; None keeps all. More than there are features means all of them.

    Attributes
    ----------
    components_ : ndarray (n_components, n_features)
        The eigenvectors, one per row.
    explained_variance_ : ndarray (n_components,)
        Their eigenvalues.
    explained_variance_ratio_ : ndarray (n_components,)
        The same as shares of the whole variance.
    mean_ : ndarray (n_features,)
        The mean m.

    See Also
    --------
    hsreject.MNF : orders components by signal to noise.
    hsreject.SceneClassifier : takes features in front of a classifier.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import PCA
    >>> samples = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    >>> PCA(n_components=0.99).fit_transform(samples).round(3)
    array([[-2.236],
           [ 0.   ],
           [ 2.236]])
    """

    def __init__(self, n_components: int | float | None = 15) -> None:
        self.n_components = n_components

    def _learn_scene(self, cube: xr.DataArray) -> None:
        (statistics,) = cube_moments(cube, needed_by="PCA")
        variances, axes = principal_axes(statistics)
        total = variances.sum()
        ratio = variances / total if total > 0 else np.zeros_like(variances)
        n_components = ratio.size if self.n_components is None else self.n_components
        if 0 < n_components < 1:
            n_components = int(np.searchsorted(np.cumsum(ratio), n_components)) + 1
        check_count("n_components", n_components, least=1)
        self.mean_ = statistics.mean
        self.components_ = axes[:n_components]
        self.explained_variance_ = variances[:n_components]
        self.explained_variance_ratio_ = ratio[:n_components]


class MNF(_Components):
    r"""Minimum noise fraction (noise-adjusted principal components) of a scene.

    With the covariance S of the pixels and the covariance N of the noise, the components are the
    solutions of :math:`S w = \lambda N w`, scaled to unit noise (:math:`w' N w = 1`) and ordered by
    :math:`\lambda`, which is one plus the signal-to-noise ratio. The features of a spectrum x are
    :math:`w'(x - m)`, m the mean of the scene. The noise is estimated from diagonal
    neighbours, whose difference is mostly noise: N is half the covariance of the differences.

    Pixels without data, and pairs with such a pixel, are left out. The
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

    Attributes
    ----------
    components_ : ndarray (n_components, n_bands_in_use)
        The weights w, one component per row.
    mean_ : ndarray (n_bands_in_use,)
        The mean m.
    snr_ : ndarray
        The signal-to-noise ratio of every component there is, not only of those kept.

    See Also
    --------
    hsreject.PCA : the same without a model of the noise.
    hsreject.SceneClassifier : takes features in front of a classifier.

    References
    ----------
    A. A. Green, M. Berman, P. Switzer and M. D. Craig, "A transformation for ordering multispectral
    data in terms of image quality with implications for noise removal", IEEE Transactions on
    Geoscience and Remote Sensing 26 (1988).
    J. B. Lee, A. S. Woodyatt and M. Berman, "Enhancement of high spectral resolution remote-sensing
    data by a noise-adjusted principal components transform", the same 28 (1990).

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import MNF
    >>> import xarray as xr
    >>> rng = np.random.default_rng(0)
    >>> ramp = np.linspace(0, 9, 20) * np.ones((30, 1))
    >>> values = np.stack([ramp, -ramp, 0 * ramp]) + 0.1 * rng.normal(size=(3, 30, 20))
    >>> scene = xr.DataArray(values, dims=("band", "y", "x"))
    >>> mnf = MNF(n_components=None).fit(scene)
    >>> mnf.transform(scene).shape, bool(mnf.snr_[0] > 500)
    ((1, 30, 20), True)
    """

    def __init__(self, n_components: int | None = 15, *, min_snr: float = 1.0) -> None:
        self.n_components = n_components
        self.min_snr = min_snr

    def _learn_scene(self, cube: xr.DataArray) -> None:
        signal, noise = cube_moments(cube, _LOWER_RIGHT, needed_by="MNF")
        if noise.count < 2:
            raise InputError(
                f"MNF needs at least two pairs of neighbouring pixels with data to measure noise "
                f"(found {noise.count}). Use PCA."
            )
        eigenvalues, components = _noise_adjusted_components(signal, noise)
        n_kept = self._n_kept(eigenvalues)
        self.snr_ = eigenvalues - 1.0
        self.components_ = _fixed_signs(components[:n_kept])
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


def _noise_adjusted_components(
    signal: Moments, differences: Moments
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return eigenvalues (descending) and components (rows) of S w = lambda N w.

    Pixel minus neighbour has twice the covariance of the noise.
    """
    # Bands are scaled to unit noise first, so that what counts as no noise does not depend on the
    # units of a band. A band without noise is scaled by 0 and drops out below.
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
    covariance = whiten @ signal.covariance @ whiten.T
    principal = _statistics((covariance + covariance.T) / 2.0).principal_components
    return principal.eigenvalues, principal.eigenvectors.T @ whiten


def _statistics(covariance: NDArray[np.float64]) -> GaussianStats:
    return GaussianStats(mean=np.zeros(len(covariance)), cov=covariance)
