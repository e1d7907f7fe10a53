"""Spectral normalisation: the shape of a spectrum without its brightness."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.classify.features.contract import SampleTransformer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.classify.moments import Moments


class Normalize(SampleTransformer):
    """Spectra scaled to unit length: x / ||x||_2.

    Takes away illumination (shade, slope) and leaves the spectral angle. A spectrum of zeros stays
    zero.

    Examples
    --------
    >>> Normalize().fit_transform(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """

    def _learn(self, moments: Callable[[], Moments]) -> None:
        """Nothing to learn."""

    def _transform_samples(self, samples: NDArray[Any]) -> NDArray[Any]:
        # lengths of tiny or huge values would under- or overflow when squared
        largest = np.abs(samples).max(axis=1, keepdims=True)
        unit: NDArray[Any] = np.divide(
            samples, largest, out=np.zeros_like(samples), where=largest > 0
        )
        length = np.sqrt((unit**2).sum(axis=1, keepdims=True))
        unit /= np.where(length > 0, length, 1.0)
        return unit
