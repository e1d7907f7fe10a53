"""Norms of the structure tensor's duals: whether they are feasible, and making them so.

Duals are (y, patch, direction, category, x). All sums are in double precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject.context.kernels.compilation import FloatArray, Number, inner, kernel
from hsreject.context.kernels.structure_tensor import Ball

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def norm_rows(
    dual: FloatArray,
    ball: Ball,
    tensor: NDArray[np.float64],
    out: NDArray[np.float64],
    first_row: int,
    last_row: int,
) -> None:
    """Write, for each row of Y, the largest norm of a pixel: the one that `ball` bounds."""
    for row in range(first_row, last_row):
        _tensor_row(dual[row], tensor)
        out[row] = 0
        for i in range(tensor.shape[1]):
            out[row] = max(out[row], _norm(tensor, i, ball))


@kernel
def tighten_rows(
    dual: FloatArray,
    ball: Ball,
    tensor: NDArray[np.float64],
    first_row: int,
    last_row: int,
) -> None:
    """Scale the pixels of some rows of Y that rounding has left outside the ball."""
    for row in range(first_row, last_row):
        _tensor_row(dual[row], tensor)
        for i in range(tensor.shape[1]):
            norm = _norm(tensor, i, ball)
            if norm > ball.radius:
                _scale_pixel(dual[row], i, ball.radius / norm)


@inner
def _scale_pixel(dual: FloatArray, i: int, scale: Number) -> None:
    for s in range(dual.shape[0]):
        for direction in range(dual.shape[1]):
            for k in range(dual.shape[2]):
                dual[s, direction, k, i] *= scale


@inner
def _tensor_row(dual: FloatArray, tensor: NDArray[np.float64]) -> None:
    n_patch, _, n_classes, n_columns = dual.shape
    for entry in range(tensor.shape[0]):
        for i in range(n_columns):
            tensor[entry, i] = 0
    for s in range(n_patch):
        for k in range(n_classes):
            right, down = dual[s, 0, k], dual[s, 1, k]
            for i in range(n_columns):
                t, u = np.float64(right[i]), np.float64(down[i])
                tensor[0, i] += t * t
                tensor[1, i] += t * u
                tensor[2, i] += u * u


@inner
def _norm(tensor: NDArray[np.float64], i: int, ball: Ball) -> Number:
    across, mixed, down = tensor[0, i], tensor[1, i], tensor[2, i]
    squared: Number = across + down
    if ball.nuclear:
        squared = 0.5 * (squared + np.sqrt((across - down) ** 2 + 4.0 * mixed**2))
    norm: Number = np.sqrt(squared)
    return norm
