"""Vector TV row by row.

Duals and differences are stored as (y, direction, category, x): direction 0 is the edge from a
pixel to its right neighbour, 1 the edge down. Edges that do not exist (borders, nodata) have
weight 0. Rows may be shared among threads: each writes its own only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject.context.kernels.compilation import ONE, FloatArray, Number, fma, inner, kernel
from hsreject.context.kernels.site_row import Steps
from hsreject.context.kernels.tile import CHUNK

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Where the weights of a chunk start, times tau: of the edges to the right, down and up, and of the
# one that comes from the left into the first pixel.
RIGHT, DOWN, ABOVE, BEFORE = (run * CHUNK for run in range(4))
N_WEIGHTS = BEFORE + 1


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
    room: FloatArray,
    first_row: int,
    last_row: int,
) -> None:
    """Update rows of Y from Zbar; `room` is for three rows (x,)."""
    for row in range(first_row, last_row):
        below = field[row + 1 if row + 1 < field.shape[0] else row]
        dual_row(dual[row], field[row], below, edge_weight[row], radius, steps, room)


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
def load_pulled(
    field: FloatArray,
    probability: FloatArray,
    dual: FloatArray,
    dual_above: FloatArray,
    weights: FloatArray,
    first: int,
    n_pixels: int,
    tile: FloatArray,
) -> None:
    """Write the points Z - tau H'Y and the likelihoods of a chunk of a row into a tile.

    The weights of :func:`load_weights` beside the tile, and no slices: so it vectorises.
    """
    if first < 0:  # never: it tells the compiler that no index counts from the end
        return
    for k in range(field.shape[0]):
        part = tile[2 * k * CHUNK : 2 * (k + 1) * CHUNK]
        for j in range(n_pixels):
            i = first + j
            point = fma(weights[RIGHT + j], dual[0, k, i], field[k, i])
            point = fma(weights[DOWN + j], dual[1, k, i], point)
            part[j] = fma(weights[ABOVE + j], dual_above[k, i], point)
            part[CHUNK + j] = probability[k, i]
        for j in range(1, n_pixels):
            part[j] = fma(-weights[RIGHT + j - 1], dual[0, k, first + j - 1], part[j])
        if first > 0:
            part[0] = fma(-weights[BEFORE], dual[0, k, first - 1], part[0])


@inner
def load_weights(
    edge_weight: FloatArray, row: int, first: int, last: int, tau: Number, weights: FloatArray
) -> None:
    """Write tau times the weights of the edges of a chunk of a row."""
    right, down = edge_weight[row, 0, first:last], edge_weight[row, 1, first:last]
    # there are no edges below the last row: its weights serve for those above the first one
    above = edge_weight[row - 1, 1, first:last]
    for j in range(len(right)):
        weights[RIGHT + j] = tau * right[j]
        weights[DOWN + j] = tau * down[j]
        weights[ABOVE + j] = -tau * above[j]
    weights[BEFORE] = tau * edge_weight[row, 0, first - 1]


@inner
def dual_row(
    dual: FloatArray,
    here: FloatArray,
    below: FloatArray,
    edge_weight: FloatArray,
    radius: Number,
    steps: Steps,
    room: FloatArray,
) -> None:
    """Update a row of Y, (direction, category, x), from Zbar of this row and the one below."""
    sigma = dual.dtype.type(steps.dual)
    relaxation = dual.dtype.type(steps.relaxation)
    ball = dual.dtype.type(radius)
    keep = ONE - relaxation
    scale, right, down = room[0], room[1], room[2]
    end = len(scale) - 1  # no edge leaves the last column to the right
    for i in range(len(scale)):
        scale[i] = 0
        right[i] = sigma * edge_weight[0, i]
        down[i] = sigma * edge_weight[1, i]
    for k in range(dual.shape[1]):
        for i in range(end):
            z = here[k, i]
            t = fma(right[i], here[k, i + 1] - z, dual[0, k, i])
            u = fma(down[i], below[k, i] - z, dual[1, k, i])
            scale[i] = fma(u, u, fma(t, t, scale[i]))
        t = dual[0, k, end]
        u = fma(down[end], below[k, end] - here[k, end], dual[1, k, end])
        scale[end] = fma(u, u, fma(t, t, scale[end]))
    for i in range(len(scale)):
        norm = np.sqrt(scale[i])
        shrink = ball / norm
        scale[i] = relaxation * (shrink if norm > ball else ONE)
    for k in range(dual.shape[1]):
        for i in range(end):
            t = fma(right[i], here[k, i + 1] - here[k, i], dual[0, k, i])
            dual[0, k, i] = fma(scale[i], t, keep * dual[0, k, i])
        dual[0, k, end] = fma(scale[end], dual[0, k, end], keep * dual[0, k, end])
        for i in range(len(scale)):
            u = fma(down[i], below[k, i] - here[k, i], dual[1, k, i])
            dual[1, k, i] = fma(scale[i], u, keep * dual[1, k, i])


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
