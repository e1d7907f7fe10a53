"""Regions: the parts of a footprint that pixels without data keep apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.ndimage import label

if TYPE_CHECKING:
    from numpy.typing import NDArray


def connected_regions(valid: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the number of each pixel's region, (y, x): 1, 2, ..., and 0 where there is no data.

    Neighbours are the pixels to the left and right, above and below. Whatever couples pixels of one
    region only leaves regions on the two sides of a gap independent of each other.

    Examples
    --------
    >>> connected_regions(np.array([[True, True, False, True]]))
    array([[1, 1, 0, 2]], dtype=int32)
    """
    regions, _ = label(valid, output=np.int32)
    numbers: NDArray[np.int32] = regions
    return numbers
