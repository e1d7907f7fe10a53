"""Distances to segment means: sums by class, the rest row by row.

Segments are numbered from 0; the number after the last stands for pixels without data, and nothing
is computed there. Threads share the classes of the means, so that every sum has one order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject.context.kernels.compilation import FloatArray, Number, kernel
from hsreject.context.kernels.site_row import Steps

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def segment_means(
    field: FloatArray,
    segment: NDArray[np.int32],
    inverse_size: NDArray[np.float64],
    means: NDArray[np.float64],
    first_class: int,
    last_class: int,
) -> None:
    """Write the means of some classes, (category, segment)."""
    for k in range(first_class, last_class):
        for s in range(means.shape[1]):
            means[k, s] = 0
    for row in range(field.shape[0]):
        here = segment[row]
        for k in range(first_class, last_class):
            total, z = means[k], field[row, k]
            for i in range(len(z)):
                total[here[i]] += z[i]
    for k in range(first_class, last_class):
        for s in range(means.shape[1]):
            means[k, s] *= inverse_size[s]


@kernel
def add_distance_rows(
    coefficients: FloatArray,
    segment: NDArray[np.int32],
    means: NDArray[np.float64],
    field: FloatArray,
    first_row: int,
    last_row: int,
) -> None:
    """Add the coefficients less their segment means to rows of a field."""
    nodata = means.shape[1] - 1
    for row in range(first_row, last_row):
        here = segment[row]
        for k in range(field.shape[1]):
            out, v, mean = field[row, k], coefficients[row, k], means[k]
            for i in range(len(out)):
                if here[i] != nodata:
                    out[i] += v[i] - mean[here[i]]


@kernel
def update_dual_rows(
    dual: FloatArray,
    field: FloatArray,
    segment: NDArray[np.int32],
    means: NDArray[np.float64],
    shrink: Number,
    steps: Steps,
    first_row: int,
    last_row: int,
) -> None:
    """Move rows of Y towards shrink (Y + sigma H Z)."""
    sigma = dual.dtype.type(steps.dual)
    keep = dual.dtype.type(1 - steps.relaxation)
    scale = dual.dtype.type(steps.relaxation * shrink)
    nodata = means.shape[1] - 1
    for row in range(first_row, last_row):
        here = segment[row]
        for k in range(field.shape[1]):
            y, z, mean = dual[row, k], field[row, k], means[k]
            for i in range(len(y)):
                target = y[i]
                if here[i] != nodata:
                    target += sigma * dual.dtype.type(z[i] - mean[here[i]])
                y[i] = keep * y[i] + scale * target


@kernel
def squared_distance_rows(
    field: FloatArray,
    segment: NDArray[np.int32],
    means: NDArray[np.float64],
    out: NDArray[np.float64],
    first_row: int,
    last_row: int,
) -> None:
    """Write the squared norm of each row of H Z."""
    nodata = means.shape[1] - 1
    for row in range(first_row, last_row):
        here = segment[row]
        total = 0.0
        for k in range(field.shape[1]):
            z, mean = field[row, k], means[k]
            for i in range(len(z)):
                if here[i] != nodata:
                    distance = z[i] - mean[here[i]]
                    total += distance * distance
        out[row] = total
