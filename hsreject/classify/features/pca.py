"""Principal components: the directions of largest variance."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.classify.features.contract import SampleTransformer, component_coords, fix_signs
from hsreject.errors import InputError

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.classify.moments import Moments


class PCA(SampleTransformer):
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
    whiten : bool, default False
        Whether to scale each component to unit variance. Components without any stay at zero.

    Attributes
    ----------
    components_ : ndarray (n_components, n_features)
        The eigenvectors, one a row.
    explained_variance_ : ndarray (n_components,)
        Their eigenvalues.
    explained_variance_ratio_ : ndarray (n_components,)
        The same as shares of the whole variance.
    mean_ : ndarray (n_features,)
        The mean m.

    Examples
    --------
    >>> samples = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    >>> PCA(n_components=0.99).fit_transform(samples).round(3)
    array([[-2.236],
           [ 0.   ],
           [ 2.236]])
    """

    def __init__(self, n_components: int | float | None = 15, *, whiten: bool = False) -> None:
        self.n_components = n_components
        self.whiten = whiten

    def _learn(self, moments: Callable[[], Moments]) -> None:
        statistics = moments()
        variances, axes = np.linalg.eigh(statistics.covariance)
        variances, axes = np.maximum(variances[::-1], 0.0), axes[:, ::-1]
        total = variances.sum()
        ratio = variances / total if total > 0 else np.zeros_like(variances)
        kept = self._n_kept(ratio)
        self.mean_ = statistics.mean
        self.components_ = fix_signs(axes.T[:kept])
        self.explained_variance_ = variances[:kept]
        self.explained_variance_ratio_ = ratio[:kept]

    def _n_kept(self, ratio: NDArray[np.float64]) -> int:
        wanted = self.n_components
        if wanted is None:
            return ratio.size
        if isinstance(wanted, float) and 0.0 < wanted < 1.0:
            return min(int(np.searchsorted(np.cumsum(ratio), wanted)) + 1, ratio.size)
        if wanted < 1 or wanted != int(wanted):
            raise InputError(
                f"n_components must be a whole number from 1, or a share of the variance between 0 "
                f"and 1 (got {wanted})."
            )
        return min(int(wanted), ratio.size)

    def _transform_samples(self, samples: NDArray[Any]) -> NDArray[Any]:
        scores: NDArray[Any] = (samples - self.mean_) @ self.components_.T
        if not self.whiten:
            return scores
        deviation = np.sqrt(self.explained_variance_)
        # below rounding error of the largest, a deviation is noise of the arithmetic
        usable = deviation > 1e-12 * deviation[0] if deviation[0] > 0 else deviation > 0
        scores *= np.divide(1.0, deviation, out=np.zeros_like(deviation), where=usable)
        return scores

    @property
    def _n_outputs(self) -> int:
        return len(self.components_)

    def _band_coords(self, cube: xr.DataArray) -> dict[str, Any]:
        return component_coords(self._n_outputs)
