"""Vector TV in one pass over memory: site step and dual step, row by row.

Duals are stored as (y, direction, category, x): direction 0 is the edge from a pixel to its right
neighbour, 1 the edge down. Edges that do not exist (borders, nodata) have weight 0.

The dual step of a row needs Zbar of the row below, so it follows one row behind the site step.
Bands of rows run in parallel; the dual of a band's last row waits for the next band's first row
and is done by :func:`join_bands` after all bands. `borders` holds Zbar of the first and last row
of each band.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hsreject.context.kernels.certificate import row_bounds
from hsreject.context.kernels.compilation import FloatArray, Number, kernel
from hsreject.context.kernels.site_row import Steps, site_row
from hsreject.context.kernels.tile import new_tile, new_work

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Sweep(NamedTuple):
    """The arrays of a sweep; bands are the rows `bands[b]` to `bands[b + 1]`."""

    field: FloatArray
    dual: FloatArray
    probability: FloatArray
    edge_weight: FloatArray
    multipliers: FloatArray
    borders: FloatArray
    bands: NDArray[Any]


@kernel
def sweep_bands(
    arrays: Sweep, radius: Number, steps: Steps, first_band: int, last_band: int
) -> None:
    """Update Z and all but the last row of Y in some bands."""
    field, dual, probability, edge_weight, multipliers, borders, bands = arrays
    _, n_classes, n_columns = field.shape
    tile = new_tile(n_classes, field)
    work = new_work(field)
    pull = np.empty((n_classes, n_columns), field.dtype)
    zbar = np.zeros((2, n_classes, n_columns + 1), field.dtype)
    scale = np.empty(n_columns, field.dtype)
    for band in range(first_band, last_band):
        for row in range(bands[band], bands[band + 1]):
            here = zbar[row % 2]
            pull_row(dual, edge_weight, row, pull)
            site_row(field[row], probability[row], pull, here, multipliers[row], steps, tile, work)
            if row == bands[band]:
                copy_row(here, borders[band, 0])
            else:
                above = zbar[(row - 1) % 2]
                dual_row(dual[row - 1], above, here, edge_weight[row - 1], radius, steps, scale)
        copy_row(zbar[(bands[band + 1] - 1) % 2], borders[band, 1])


@kernel
def join_bands(arrays: Sweep, radius: Number, steps: Steps) -> None:
    """Update the last row of Y of each band; below the last one there is nothing (weight 0)."""
    scale = np.empty(arrays.field.shape[2], arrays.field.dtype)
    n_bands = arrays.borders.shape[0]
    for band in range(n_bands):
        row = arrays.bands[band + 1] - 1
        below = arrays.borders[min(band + 1, n_bands - 1), 0]
        dual_row(
            arrays.dual[row],
            arrays.borders[band, 1],
            below,
            arrays.edge_weight[row],
            radius,
            steps,
            scale,
        )


@kernel
def copy_row(row: FloatArray, out: FloatArray) -> None:
    """Copy a row (category, x); array assignment would take seconds to compile."""
    for k in range(row.shape[0]):
        for i in range(row.shape[1]):
            out[k, i] = row[k, i]


@kernel
def pull_row(dual: FloatArray, edge_weight: FloatArray, row: int, pull: FloatArray) -> None:
    """Write row `row` of H'Y, (category, x)."""
    right_weight = edge_weight[row, 0]
    down_weight = edge_weight[row, 1]
    above = row - 1 if row > 0 else row
    above_weight = edge_weight[above, 1] if row > 0 else np.zeros_like(down_weight)
    for k in range(pull.shape[0]):
        right = dual[row, 0, k]
        down = dual[row, 1, k]
        up = dual[above, 1, k]
        out = pull[k]
        for i in range(len(out)):
            out[i] = above_weight[i] * up[i] - down_weight[i] * down[i] - right_weight[i] * right[i]
        shifted = out[1:]
        for i in range(len(shifted)):
            shifted[i] += right_weight[i] * right[i]


@kernel
def dual_row(
    dual: FloatArray,
    here: FloatArray,
    below: FloatArray,
    edge_weight: FloatArray,
    radius: Number,
    steps: Steps,
    scale: FloatArray,
) -> None:
    """Update a row of Y from Zbar of this row and the one below, each with a column to spare."""
    _, n_classes, n_columns = dual.shape
    one = dual.dtype.type(1)
    sigma = dual.dtype.type(steps.dual)
    relaxation = dual.dtype.type(steps.relaxation)
    ball = dual.dtype.type(radius)
    keep = one - relaxation
    right_weight, down_weight = edge_weight[0], edge_weight[1]
    for i in range(n_columns):
        scale[i] = 0
    for k in range(n_classes):
        right, down, zbar, zbar_below = dual[0, k], dual[1, k], here[k], below[k]
        for i in range(len(right)):
            t = right[i] + sigma * right_weight[i] * (zbar[i + 1] - zbar[i])
            u = down[i] + sigma * down_weight[i] * (zbar_below[i] - zbar[i])
            scale[i] += t * t + u * u
    for i in range(n_columns):
        norm = np.sqrt(scale[i])
        shrink = ball / norm
        scale[i] = relaxation * (shrink if norm > ball else one)
    for k in range(n_classes):
        right, down, zbar, zbar_below = dual[0, k], dual[1, k], here[k], below[k]
        for i in range(len(right)):
            t = right[i] + sigma * right_weight[i] * (zbar[i + 1] - zbar[i])
            right[i] = keep * right[i] + scale[i] * t
        for i in range(len(down)):
            u = down[i] + sigma * down_weight[i] * (zbar_below[i] - zbar[i])
            down[i] = keep * down[i] + scale[i] * u


@kernel
def certify_rows(arrays: Sweep, out: NDArray[np.float64], first_row: int, last_row: int) -> None:
    """Write data term, dual bound and unweighted variation of each row."""
    n_rows, n_classes, n_columns = arrays.field.shape
    pull = np.empty((n_classes, n_columns), arrays.field.dtype)
    for row in range(first_row, last_row):
        pull_row(arrays.dual, arrays.edge_weight, row, pull)
        data, bound = row_bounds(arrays.field[row], arrays.probability[row], pull)
        out[row, 0] = data
        out[row, 1] = bound
        below = arrays.field[min(row + 1, n_rows - 1)]
        out[row, 2] = row_variation(arrays.field[row], below, arrays.edge_weight[row])


@kernel
def row_variation(here: FloatArray, below: FloatArray, edge_weight: FloatArray) -> float:
    """Return the sum of the norms of a row's weighted differences."""
    n_classes, n_columns = here.shape
    total = 0.0
    for i in range(n_columns):
        right = min(i + 1, n_columns - 1)
        squared = 0.0
        for k in range(n_classes):
            t = float(edge_weight[0, i]) * (float(here[k, right]) - float(here[k, i]))
            u = float(edge_weight[1, i]) * (float(below[k, i]) - float(here[k, i]))
            squared += t * t + u * u
        total += np.sqrt(squared)
    return total
