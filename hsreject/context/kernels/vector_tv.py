"""Vector TV row by row.

Duals and differences are stored as (y, direction, category, x): direction 0 is the edge from a
pixel to its right neighbour, 1 the edge down. Edges that do not exist (borders, nodata) have
weight 0. Rows may be shared among threads: each writes its own only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject.context.kernels.compilation import ONE, FloatArray, Number, inner, kernel
from hsreject.context.kernels.site_row import Steps

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel
def add_pull_rows(
    dual: FloatArray,
    edge_weight: FloatArray,
    pull: FloatArray,
    field: FloatArray,
    first_row: int,
    last_row: int,
) -> None:
    """Add H'Y to rows of a field; `pull` is room for a row (category, x)."""
    for row in range(first_row, last_row):
        pull_row(dual, edge_weight, row, pull)
        for k in range(pull.shape[0]):
            out, added = field[row, k], pull[k]
            for i in range(len(out)):
                out[i] += added[i]


@kernel
def update_dual_rows(
    dual: FloatArray,
    field: FloatArray,
    edge_weight: FloatArray,
    radius: Number,
    steps: Steps,
    scale: FloatArray,
    first_row: int,
    last_row: int,
) -> None:
    """Update rows of Y from Zbar; `scale` is room for a row (x,)."""
    for row in range(first_row, last_row):
        below = field[row + 1 if row + 1 < field.shape[0] else row]
        dual_row(dual[row], field[row], below, edge_weight[row], radius, steps, scale)


@kernel
def variation_rows(
    field: FloatArray,
    edge_weight: FloatArray,
    squared: NDArray[np.float64],
    out: NDArray[np.float64],
    first_row: int,
    last_row: int,
) -> None:
    """Write the unweighted variation of each row; `squared` is room for a row (x,)."""
    for row in range(first_row, last_row):
        below = field[row + 1 if row + 1 < field.shape[0] else row]
        out[row] = row_variation(field[row], below, edge_weight[row], squared)


@inner
def pull_row(dual: FloatArray, edge_weight: FloatArray, row: int, pull: FloatArray) -> None:
    """Write row `row` of H'Y, (category, x)."""
    right_weight, down_weight = edge_weight[row, 0], edge_weight[row, 1]
    above = row - 1 if row > 0 else row
    above_weight = edge_weight[above, 1]
    for k in range(pull.shape[0]):
        out, right, down, up = pull[k], dual[row, 0, k], dual[row, 1, k], dual[above, 1, k]
        if row == 0:
            for i in range(len(out)):
                out[i] = -(right_weight[i] * right[i] + down_weight[i] * down[i])
        else:
            for i in range(len(out)):
                pulled = right_weight[i] * right[i] + down_weight[i] * down[i]
                out[i] = above_weight[i] * up[i] - pulled
        shifted = out[1:]
        for i in range(len(shifted)):
            shifted[i] += right_weight[i] * right[i]


@inner
def dual_row(
    dual: FloatArray,
    here: FloatArray,
    below: FloatArray,
    edge_weight: FloatArray,
    radius: Number,
    steps: Steps,
    scale: FloatArray,
) -> None:
    """Update a row of Y, (direction, category, x), from Zbar of this row and the one below."""
    sigma = dual.dtype.type(steps.dual)
    relaxation = dual.dtype.type(steps.relaxation)
    ball = dual.dtype.type(radius)
    keep = ONE - relaxation
    right_weight, down_weight = edge_weight[0], edge_weight[1]
    end = len(scale) - 1  # no edge leaves the last column to the right
    for i in range(len(scale)):
        scale[i] = 0
    for k in range(dual.shape[1]):
        right, down, zbar, zbar_below = dual[0, k], dual[1, k], here[k], below[k]
        zbar_right = zbar[1:]
        for i in range(len(zbar_right)):
            t = right[i] + sigma * right_weight[i] * (zbar_right[i] - zbar[i])
            u = down[i] + sigma * down_weight[i] * (zbar_below[i] - zbar[i])
            scale[i] += t * t + u * u
        u = down[end] + sigma * down_weight[end] * (zbar_below[end] - zbar[end])
        scale[end] += right[end] * right[end] + u * u
    for i in range(len(scale)):
        norm = np.sqrt(scale[i])
        shrink = ball / norm
        scale[i] = relaxation * (shrink if norm > ball else ONE)
    for k in range(dual.shape[1]):
        right, down, zbar, zbar_below = dual[0, k], dual[1, k], here[k], below[k]
        zbar_right = zbar[1:]
        for i in range(len(zbar_right)):
            t = right[i] + sigma * right_weight[i] * (zbar_right[i] - zbar[i])
            right[i] = keep * right[i] + scale[i] * t
        right[end] = (keep + scale[end]) * right[end]
        for i in range(len(down)):
            u = down[i] + sigma * down_weight[i] * (zbar_below[i] - zbar[i])
            down[i] = keep * down[i] + scale[i] * u


@inner
def row_variation(
    here: FloatArray, below: FloatArray, edge_weight: FloatArray, squared: NDArray[np.float64]
) -> float:
    """Return the sum of the norms of a row's weighted differences."""
    right_weight, down_weight = edge_weight[0], edge_weight[1]
    for i in range(len(squared)):
        squared[i] = 0.0
    for k in range(here.shape[0]):
        z, z_below, z_right = here[k], below[k], here[k, 1:]
        for i in range(len(z_right)):
            t = np.float64(right_weight[i]) * (np.float64(z_right[i]) - np.float64(z[i]))
            squared[i] += t * t
        for i in range(len(z)):
            u = np.float64(down_weight[i]) * (np.float64(z_below[i]) - np.float64(z[i]))
            squared[i] += u * u
    total = 0.0
    for i in range(len(squared)):
        total += np.sqrt(squared[i])
    return total
