"""What the data term contributes to objective and duality gap, row by row, in double precision."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hsreject.context.kernels.compilation import FloatArray, kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SMALL = 1e-200  # below it the product of many s is turned into a logarithm


@kernel
def site_bounds(
    field: FloatArray,
    probability: FloatArray,
    pull: FloatArray,
    out: NDArray[np.float64],
    first_row: int,
    last_row: int,
) -> None:
    """Write sum_i -log(p_i'z_i) and sum_i 1 + min_k (q_ik - p_ik / p_i'z_i) of each row."""
    for row in range(first_row, last_row):
        data, bound = row_bounds(field[row], probability[row], pull[row])
        out[row, 0] = data
        out[row, 1] = bound


@kernel
def row_bounds(field: FloatArray, probability: FloatArray, pull: FloatArray) -> tuple[float, float]:
    """Return the two sums of one row (category, x)."""
    n_classes, n_columns = field.shape
    data = 0.0
    bound = 0.0
    product = 1.0
    for i in range(n_columns):
        s = 0.0
        for k in range(n_classes):
            s += float(probability[k, i]) * float(field[k, i])
        least = math.inf
        for k in range(n_classes):
            least = min(least, pull[k, i] - probability[k, i] / s)
        bound += 1.0 + least
        # one logarithm for many pixels
        product *= s
        if product < SMALL:
            data -= math.log(product)
            product = 1.0
    return data - math.log(product), bound
