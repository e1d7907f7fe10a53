"""The largest minus the second largest value of the field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hsreject.confidence.base import Confidence

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Margin(Confidence):
    """The largest minus the second largest value: the paper's breaking ties (section V-A).

    Lies in [0, 1]; a field of one category has no rival, so its margin is its value.

    Examples
    --------
    >>> Margin()(np.array([[0.75, 0.25], [0.25, 0.5], [0.0, 0.25]]))  # (category, pixel)
    array([0.5 , 0.25])
    """

    def kernel(
        self, field: NDArray[np.floating], probability: NDArray[np.floating] | None
    ) -> NDArray[np.floating]:
        """Return the difference of the two largest z, in one pass over the categories."""
        largest = np.array(field[0])
        second = np.full_like(largest, -np.inf if len(field) > 1 else 0)
        for plane in field[1:]:
            np.maximum(second, np.minimum(largest, plane), out=second)
            np.maximum(largest, plane, out=largest)
        margin: NDArray[np.floating] = np.subtract(largest, second, out=largest)
        return margin
