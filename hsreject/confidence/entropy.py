"""The negative entropy of the field."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import xlogy

from hsreject.confidence.base import Confidence

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Entropy(Confidence):
    """The negative entropy of the field, sum_k z_k log z_k with 0 log 0 = 0.

    Lies in [-log K, 0]: 0 where one category has everything, -log K where all are equal.

    Examples
    --------
    >>> Entropy()(np.array([[1.0, 0.5], [0.0, 0.5]])).round(4)  # (category, pixel)
    array([ 0.    , -0.6931])
    """

    def lowest(self, n_categories: int) -> float:
        """Return -log K, the confidence of equal categories."""
        return -math.log(n_categories)

    def kernel(
        self, field: NDArray[np.floating], probability: NDArray[np.floating] | None
    ) -> NDArray[np.floating]:
        """Return sum_k z_k log z_k, one category at a time."""
        total: NDArray[np.floating] = np.zeros_like(field[0])
        for plane in field:
            total += xlogy(plane, plane)
        return total
