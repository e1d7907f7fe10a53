"""Vector TV: one pass over the memory where it is the only prior, and row by row beside others.

Duals are stored as (y, direction, category, x): direction 0 is the edge from a pixel to its right
neighbor, 1 the edge down. Edges that do not exist (borders, nodata) have weight 0.

*One pass.* A step of the solver updates Z (the site step) and then Y (the dual step). The site step
of a row needs the old Y of this row and of the row above; the dual step needs Zbar of this row and
of the row below. So the dual step follows one row behind, while its rows are still in the cache,
and Zbar is kept of two rows only. Bands of rows run in parallel; where two bands meet, Y of the
last row waits until all bands are done (JOINING). The rows in flight, at row 5 of a band that
starts at row 3:

    row   Z          Zbar is in       Y
      2   new        borders[0, 1]    old: JOINING will update it from Zbar of rows 2 and 3
    ---------------------------------------------------------------- band 0 above, band 1 below
      3   new        borders[1, 0]    new
      4   new        zbar[4 % 2]      being updated from Zbar of rows 4 and 5
      5   just made  zbar[5 % 2]      old, read by the site step of rows 5 and 6
      6   old        -                old
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hsreject.compilation import ONE, FloatArray, Number, fma, inner, kernel, spliced
from hsreject.context.site_kernels import (
    CHUNK,
    SiteScratch,
    Steps,
    new_site_scratch,
    step_chunk,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

SWEEPING, JOINING = 0, 1

# Where the weights of a chunk start, times tau: of the edges to the right, down and up, and of the
# one that comes from the left into the first pixel.
RIGHT, DOWN, ABOVE, BEFORE = (run * CHUNK for run in range(4))
N_WEIGHTS = BEFORE + 1


class Sweep(NamedTuple):
    """The arrays of a sweep; bands are the rows `bands[b]` to `bands[b + 1]`."""

    field: FloatArray
    dual: FloatArray
    probability: FloatArray
    edge_weight: FloatArray
    multipliers: FloatArray
    borders: FloatArray  # (band, first or last row, category, x), Zbar
    bands: NDArray[Any]


class SweepScratch(NamedTuple):
    """Room for one thread."""

    site: SiteScratch
    zbar: FloatArray  # (row % 2, category, x)
    weights: FloatArray  # of the edges of a chunk
    room: FloatArray  # for three rows (x,)


def new_sweep_scratch(field: FloatArray) -> SweepScratch:
    """Return room for one thread that works on a field (y, category, x)."""
    _, n_classes, n_columns = field.shape
    return SweepScratch(
        site=new_site_scratch(n_classes, field.dtype),
        zbar=np.zeros((2, n_classes, n_columns), field.dtype),
        weights=np.empty(N_WEIGHTS, field.dtype),
        room=np.empty((3, n_columns), field.dtype),
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
    """Update Z and Y in some bands, but not the last row of Y; when JOINING, only those rows."""
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
            # Zbar of the outer rows of a band outlives the sweep: JOINING reads the last row of
            # this band together with the first row of the next. Bands have several rows unless the
            # scene has one.
            here = zbar[row % 2]
            if row == last:
                here = borders[band, 1]
            elif row == first:
                here = borders[band, 0]
            # The order matters: the site step of this row still reads the old Y of the row above,
            # which may move only then. At the first row that Y belongs to the band above, and
            # nobody moves it before JOINING, so bands do not race.
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
    # nothing lies above row 0: any dual will do, because its weight is 0 (see load_weights)
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
def dual_row(
    dual: FloatArray,
    here: FloatArray,
    below: FloatArray,
    edge_weight: FloatArray,
    radius: Number,
    steps: Steps,
    room: FloatArray,
) -> None:
    """Update a row of Y, (direction, category, x), from Zbar of this row and the one below.

    With T = Y + sigma H Zbar and f = min(1, radius / norm of T), per pixel over directions and
    classes: Y <- relaxation f T + (1 - relaxation) Y. First the norms, then the update; T is
    cheaper to make twice than to store.
    """
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
        # A norm of 0 makes an infinity or NaN of this, which is never taken: 0 is not above the
        # radius. A choice between two numbers vectorises, a branch would not.
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
    """Update rows of Y from Zbar, beside other priors; `room` is for three rows (x,)."""
    for row in range(first_row, last_row):
        below = field[row + 1 if row + 1 < field.shape[0] else row]
        dual_row(dual[row], field[row], below, edge_weight[row], radius, steps, room)


@kernel
def add_pull_rows(
    dual: FloatArray, edge_weight: FloatArray, field: FloatArray, first_row: int, last_row: int
) -> None:
    """Add H'Y to rows of a field, beside other priors."""
    for row in range(first_row, last_row):
        add_pull_row(dual[row], dual[row - 1, 1], edge_weight, row, field[row])


@inner
def add_pull_row(
    dual: FloatArray, dual_above: FloatArray, edge_weight: FloatArray, row: int, out: FloatArray
) -> None:
    """Add minus the weighted divergence of Y, (direction, category, x), to a row (category, x)."""
    right_weight, down_weight = edge_weight[row, 0], edge_weight[row, 1]
    # there are no edges below the last row: its weights serve for those above the first one
    above_weight = edge_weight[row - 1, 1]
    for k in range(out.shape[0]):
        pull, right, down, above = out[k], dual[0, k], dual[1, k], dual_above[k]
        for i in range(len(pull)):
            pull[i] += above_weight[i] * above[i] - right_weight[i] * right[i]
            pull[i] -= down_weight[i] * down[i]
        shifted = pull[1:]
        for i in range(len(shifted)):
            shifted[i] += right_weight[i] * right[i]
