"""Per-band scaling: every band to mean 0 and deviation 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.classify.features.contract import SampleTransformer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.classify.moments import Moments


class Scale(SampleTransformer):
    """Bands shifted to mean 0 and scaled to standard deviation 1.

    x becomes (x - m) / s, with mean m and standard deviation s (divisor n - 1) of each band over
    all pixels that have data. A band that is constant becomes 0.

    Parameters
    ----------
    with_mean : bool, default True
        Whether to subtract the mean.
    with_deviation : bool, default True
        Whether to divide by the standard deviation.

    Attributes
    ----------
    mean_, scale_ : ndarray (n_features,)
        What is subtracted, and what is divided by (1 for constant bands).

    Examples
    --------
    >>> Scale().fit_transform(np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 0.,  0.],
           [ 1.,  0.]])
    """

    def __init__(self, *, with_mean: bool = True, with_deviation: bool = True) -> None:
        self.with_mean = with_mean
        self.with_deviation = with_deviation

    def _learn(self, moments: Callable[[], Moments]) -> None:
        statistics = moments()
        deviation = np.sqrt(statistics.variance)
        # the deviation of a constant band is the rounding error of its mean, or 0
        constant = deviation <= 1e-12 * np.abs(statistics.mean)
        self.mean_ = statistics.mean if self.with_mean else np.zeros_like(deviation)
        self.scale_ = np.where(constant, 1.0, deviation)
        if not self.with_deviation:
            self.scale_ = np.ones_like(deviation)

    def _transform_samples(self, samples: NDArray[Any]) -> NDArray[Any]:
        scaled: NDArray[Any] = (samples - self.mean_) / self.scale_
        return scaled
