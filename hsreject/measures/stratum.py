"""Weights of samples that were drawn stratum by stratum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def stratified_weights(
    stratum: ArrayLike | xr.DataArray, stratum_size: Mapping[int, float]
) -> NDArray[np.float64]:
    """Return what each sample of a stratified reference sample stands for.

    Where the same number of reference pixels was drawn from each class, small classes count too
    much. A sample of stratum h stands for N_h / n_h pixels: the size of the stratum over the number
    of samples drawn from it. Measures with these weights estimate those of the whole map.

    Parameters
    ----------
    stratum : array of int, any shape
        The stratum each sample was drawn from, usually its class on the map.
    stratum_size : mapping of int to float
        Size of each stratum, in pixels or as area.

    Returns
    -------
    ndarray of float, the shape of `stratum`

    Examples
    --------
    >>> stratified_weights([1, 1, 2, 2], {1: 900, 2: 100})
    array([450., 450.,  50.,  50.])
    """
    values, place, drawn = np.unique(np.asarray(stratum), return_inverse=True, return_counts=True)
    missing = [value.item() for value in values if value.item() not in stratum_size]
    if missing:
        raise InputError(
            f"stratum_size lacks the strata {missing}. Give the size of every stratum that occurs."
        )
    size = np.array([stratum_size[value.item()] for value in values], dtype=np.float64)
    return np.asarray((size / drawn)[place].reshape(np.shape(stratum)))
