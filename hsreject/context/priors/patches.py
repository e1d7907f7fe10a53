"""Patches: which pixels a pixel sees around itself, and with which weight.

The pixels of a patch are numbered in reading order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.context.regions import connected_regions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


def gaussian_window(side: int, width: float) -> NDArray[np.float64]:
    """Return the weights of the pixels of a patch, (patch,); their squares sum to 1.

    The squares are a Gaussian of standard deviation `width`: they are the kernel with which the
    structure tensor is smoothed.

    Examples
    --------
    >>> (gaussian_window(3, 0.5) ** 2).reshape(3, 3).round(3)
    array([[0.011, 0.084, 0.011],
           [0.084, 0.619, 0.084],
           [0.011, 0.084, 0.011]])
    """
    offset = np.arange(side) - side // 2
    profile = np.exp(-(offset**2) / (2 * width**2))
    kernel = np.outer(profile, profile).ravel()
    window: NDArray[np.float64] = np.sqrt(kernel / kernel.sum())
    return window


def patch_coupling(valid: NDArray[np.bool_], window: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return with which weight each pixel sees those of its patch, (y, patch, x).

    A pixel sees its own connected region only: the weight is 0 beyond the border of the scene,
    where there is no data, and beyond a gap.
    """
    side = round(window.size**0.5)
    regions = connected_regions(valid)
    coupling = np.zeros((valid.shape[0], window.size, valid.shape[1]))
    for s, seen in views(padded(regions, side), side):
        coupling[:, s] = window[s] * (valid & (seen == regions))
    return coupling


def padded(array: NDArray[Any], side: int) -> NDArray[Any]:
    """Return an array (y, ..., x) with a margin of zeros that a patch may reach into."""
    margin = [(0, 0)] * array.ndim
    margin[0] = margin[-1] = (side // 2, side // 2)
    return np.pad(array, margin)


def without_margin(array: NDArray[Any], side: int) -> NDArray[Any]:
    """Return the part of a padded array that has no margin."""
    reach = side // 2
    return array[reach : array.shape[0] - reach, ..., reach : array.shape[-1] - reach]


def views(array: NDArray[Any], side: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield, for each pixel of a patch, what all centres see there of a padded array (y, ..., x).

    These are views: adding to them adds to the array.

    Examples
    --------
    >>> row = padded(np.array([[1, 2, 3]]), 3)
    >>> [seen.tolist() for s, seen in views(row, 3) if s in (3, 4, 5)]
    [[[0, 1, 2]], [[1, 2, 3]], [[2, 3, 0]]]
    """
    n_rows, n_columns = array.shape[0] - side + 1, array.shape[-1] - side + 1
    for s in range(side * side):
        row, column = divmod(s, side)
        yield s, array[row : row + n_rows, ..., column : column + n_columns]
