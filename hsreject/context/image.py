"""The leading components of an image: what priors see of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def principal_components(
    image: NDArray[np.floating[Any]], valid: NDArray[np.bool_], count: int
) -> NDArray[np.float64]:
    """Return the leading principal components of the valid pixels of an image.

    Signs are fixed (the largest loading of each component is positive), so the answer does not
    depend on the linear algebra library.

    Parameters
    ----------
    image : array, (band, y, x)
    valid : array of bool, (y, x)
    count : int
        How many components; at most the number of bands are returned.

    Returns
    -------
    array of float64, (component, y, x)
        0 where not valid.

    Examples
    --------
    >>> image = np.array([[[0.0, 1.0, 2.0]], [[0.0, 2.0, 4.0]]])
    >>> principal_components(image, np.ones((1, 3), bool), 1).round(3)
    array([[[-2.236,  0.   ,  2.236]]])
    """
    spectra = image[:, valid].astype(np.float64)
    if not np.isfinite(spectra).all():
        raise InputError(
            "image has NaN or infinite values in pixels whose probabilities are given. "
            "Set the probabilities of these pixels to NaN, or drop the bands that have them."
        )
    spectra -= spectra.mean(axis=1, keepdims=True)
    loadings = principal_loadings(spectra @ spectra.T, count)
    components = np.zeros((len(loadings), *valid.shape))
    components[:, valid] = loadings @ spectra
    return components


def principal_loadings(scatter: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the leading eigenvectors of a scatter matrix, (component, band), signs fixed.

    Examples
    --------
    >>> principal_loadings(np.diag([1.0, 4.0]), 1)
    array([[0., 1.]])
    """
    _, vectors = np.linalg.eigh(scatter)
    loadings = vectors[:, ::-1][:, :count].T
    largest = np.abs(loadings).argmax(axis=1)
    signed: NDArray[np.float64] = (
        loadings * np.sign(loadings[np.arange(len(loadings)), largest])[:, np.newaxis]
    )
    return signed
