"""Vector TV alone, in one pass over the memory: site step and dual step, row by row.

The dual step of a row needs Zbar of the row below, so it follows one row behind the site step.
Bands of rows run in parallel; the dual of a band's last row waits for the next band's first row
and is done after all bands, by the same kernel: another one would compile the dual step again.
`borders` holds Zbar of the first and last row of each band.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hsreject.context.kernels.certificate import BoundScratch, new_bound_scratch, row_bounds
from hsreject.context.kernels.compilation import FloatArray, Number, kernel, spliced
from hsreject.context.kernels.site import SiteScratch, new_site_scratch
from hsreject.context.kernels.site_row import Steps, step_chunk
from hsreject.context.kernels.tile import CHUNK
from hsreject.context.kernels.vector_tv import (
    N_WEIGHTS,
    dual_row,
    load_pulled,
    load_weights,
    pull_row,
    row_variation,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

SWEEPING, JOINING = 0, 1


class Sweep(NamedTuple):
    """The arrays of a sweep; bands are the rows `bands[b]` to `bands[b + 1]`."""

    field: FloatArray
    dual: FloatArray
    probability: FloatArray
    edge_weight: FloatArray
    multipliers: FloatArray
    borders: FloatArray
    bands: NDArray[Any]


class SweepScratch(NamedTuple):
    """Room for one thread."""

    site: SiteScratch
    bound: BoundScratch
    pull: FloatArray  # (category, x)
    zbar: FloatArray  # (row % 2, category, x)
    weights: FloatArray  # of the edges of a chunk
    room: FloatArray  # for three rows (x,)
    squared: NDArray[np.float64]  # (x,)


def new_sweep_scratch(field: FloatArray) -> SweepScratch:
    """Return room for one thread that works on a field (y, category, x)."""
    _, n_classes, n_columns = field.shape
    return SweepScratch(
        site=new_site_scratch(n_classes, field.dtype),
        bound=new_bound_scratch(n_classes),
        pull=np.empty((n_classes, n_columns), field.dtype),
        zbar=np.zeros((2, n_classes, n_columns), field.dtype),
        weights=np.empty(N_WEIGHTS, field.dtype),
        room=np.empty((3, n_columns), field.dtype),
        squared=np.empty(n_columns),
    )


@kernel
def sweep_bands(
    arrays: Sweep,
    radius: Number,
    steps: Steps,
    scratch: SweepScratch,
    first_band: int,
    last_band: int,
    phase: int,
) -> None:
    """Update Z and all but the last row of Y in some bands; when JOINING, only those last rows."""
    _, dual, _, edge_weight, _, borders, bands = arrays
    zbar, room = scratch.zbar, scratch.room
    n_bands = borders.shape[0]
    for band in range(first_band, last_band):
        first, last = bands[band], bands[band + 1] - 1
        if phase == JOINING:
            below = borders[min(band + 1, n_bands - 1), 0]  # the last row of all has weight 0
            dual_row(dual[last], borders[band, 1], below, edge_weight[last], radius, steps, room)
            continue
        above = borders[band, 0]
        for row in range(first, last + 1):
            here = zbar[row % 2]
            if row == last:
                here = borders[band, 1]
            elif row == first:
                here = borders[band, 0]
            step_row(arrays, steps, scratch, row, here)
            if row > first:
                dual_row(dual[row - 1], above, here, edge_weight[row - 1], radius, steps, room)
            above = here


@spliced
def step_row(
    arrays: Sweep, steps: Steps, scratch: SweepScratch, row: int, zbar: FloatArray
) -> None:
    """Update a row of Z and write its Zbar, (category, x)."""
    field, dual, site = arrays.field[row], arrays.dual, scratch.site
    tau = field.dtype.type(steps.primal)
    n_columns = field.shape[1]
    above = dual[row - 1 if row > 0 else row, 1]
    for start in range(0, n_columns, CHUNK):
        stop = min(start + CHUNK, n_columns)
        load_weights(arrays.edge_weight, row, start, stop, tau, scratch.weights)
        load_pulled(
            field,
            arrays.probability[row],
            dual[row],
            above,
            scratch.weights,
            start,
            stop - start,
            site.tile,
        )
        step_chunk(field, zbar, arrays.multipliers[row], start, stop, steps, site)


@kernel
def certify_rows(
    arrays: Sweep,
    scratch: SweepScratch,
    out: NDArray[np.float64],
    first_row: int,
    last_row: int,
) -> None:
    """Write data term, dual bound and unweighted variation of each row."""
    field, dual, probability, edge_weight, _, _, _ = arrays
    for row in range(first_row, last_row):
        pull_row(dual, edge_weight, row, scratch.pull)
        data, bound = row_bounds(field[row], probability[row], scratch.pull, scratch.bound)
        out[row, 0] = data
        out[row, 1] = bound
        below = field[row + 1 if row + 1 < field.shape[0] else row]
        out[row, 2] = row_variation(field[row], below, edge_weight[row], scratch.squared)
