"""SegSALSA with vector TV as one would first write it in NumPy: what the solvers are compared with.

ADMM with three splits, V1 = Z (data), V2 = Z (simplex) and V3 = H Z (total variation), each with
its closed-form prox on whole arrays, and a DCT for the quadratic step. Fields are (category, y,
x).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import dctn, idctn

if TYPE_CHECKING:
    from collections.abc import Callable


Array = "NDArray[np.float32]"


def differences(field: Array) -> Array:
    """Return forward differences (direction, category, y, x), 0 at the borders."""
    out = np.zeros((2, *field.shape), field.dtype)
    out[0, :, :, :-1] = np.diff(field, axis=2)
    out[1, :, :-1] = np.diff(field, axis=1)
    return out


def transposed_differences(coefficients: Array) -> Array:
    """Return the adjoint of :func:`differences`."""
    across, down = coefficients
    out = -across - down
    out[:, :, 1:] += across[:, :, :-1]
    out[:, 1:] += down[:, :-1]
    return out


def objective(probability: Array, field: Array, weight: float) -> float:
    """Return the objective of a field on the simplex, in double precision."""
    field = field.astype(np.float64)
    variation = np.sqrt((differences(field) ** 2).sum(axis=(0, 1))).sum()
    return float(-np.log((probability * field).sum(axis=0)).sum() + weight * variation)


def prox_data(point: Array, probability: Array, step: float, squared: Array) -> Array:
    """Return the prox of -log(p'z): along p, by a quadratic equation."""
    along = (probability * point).sum(axis=0)
    expected = (along + np.sqrt(along**2 + 4 * step * squared)) / 2
    return point + step / expected * probability


def project_simplex(point: Array) -> Array:
    """Return the projection onto the simplex, by sorting."""
    descending = -np.sort(-point, axis=0)
    rank = np.arange(1, len(point) + 1, dtype=point.dtype)[:, None, None]
    threshold = (np.cumsum(descending, axis=0) - 1) / rank
    last = (descending > threshold).sum(axis=0)[None] - 1
    return np.maximum(point - np.take_along_axis(threshold, last, axis=0), 0)


def shrink(coefficients: Array, amount: float) -> Array:
    """Return the prox of amount times the sum of the pixels' norms."""
    norm = np.sqrt((coefficients**2).sum(axis=(0, 1)))
    return coefficients * (np.maximum(norm - amount, 0) / np.maximum(norm, 1e-12))


def numpy_admm(
    probability: Array,
    weight: float,
    penalty: float,
    n_iterations: int,
    watch: Callable[[Array], bool] | None = None,
) -> tuple[Array, int]:
    """Return the field on the simplex, and after how many iterations `watch` said it will do."""
    _, n_rows, n_columns = probability.shape
    row, column = (2 - 2 * np.cos(np.pi * np.arange(n) / n) for n in (n_rows, n_columns))
    divisor = (2 + row[:, None] + column).astype(probability.dtype)
    squared = (probability**2).sum(axis=0)
    data = simplex = np.full_like(probability, 1 / len(probability))
    variation = differences(simplex)
    d_data, d_simplex, d_variation = (np.zeros_like(a) for a in (data, simplex, variation))
    for done in range(1, n_iterations + 1):
        right = data - d_data + simplex - d_simplex
        right += transposed_differences(variation - d_variation)
        field = idctn(dctn(right, axes=(1, 2), norm="ortho") / divisor, axes=(1, 2), norm="ortho")
        data = prox_data(field + d_data, probability, 1 / penalty, squared)
        simplex = project_simplex(field + d_simplex)
        gradient = differences(field)
        variation = shrink(gradient + d_variation, weight / penalty)
        d_data += field - data
        d_simplex += field - simplex
        d_variation += gradient - variation
        if watch is not None and watch(simplex):
            return simplex, done
    return simplex, n_iterations
