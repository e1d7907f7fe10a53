"""The site step of the preconditioned solver: one chunk of a row, and all rows of a band.

With `pull` = H'Y, x = site_prox(Z - tau pull): Zbar = 2x - Z, Z += relaxation (x - Z).
The multipliers c and theta of each pixel are kept: the set of active classes hardly changes, so
most pixels need one pass. What over-relaxation overshoots swings back one iteration later, so
they are kept for the iteration after next; with those of the last one, twice as many pixels need
a second pass.
"""

from __future__ import annotations

from typing import NamedTuple

from hsreject.context.kernels.compilation import (
    ZERO,
    FloatArray,
    Number,
    fma,
    inner,
    kernel,
    spliced,
)
from hsreject.context.kernels.site import THETA, C, SiteScratch, solve_block
from hsreject.context.kernels.tile import BLOCK, CHUNK


class Steps(NamedTuple):
    """The numbers of one iteration: tau, sigma, relaxation, accuracy of the site prox."""

    primal: float
    dual: float
    relaxation: float
    site_tolerance: float


@kernel
def site_rows(
    field: FloatArray,
    probability: FloatArray,
    pull: FloatArray,
    multipliers: FloatArray,
    steps: Steps,
    scratch: SiteScratch,
    first_row: int,
    last_row: int,
) -> None:
    """Update rows of Z, (y, category, x), and replace `pull` by Zbar."""
    tau = field.dtype.type(steps.primal)
    n_columns = field.shape[2]
    for row in range(first_row, last_row):
        for first in range(0, n_columns, CHUNK):
            last = min(first + CHUNK, n_columns)
            load_chunk(field[row], probability[row], pull[row], first, last, tau, scratch.tile)
            step_chunk(field[row], pull[row], multipliers[row], first, last, steps, scratch)


@inner
def load_chunk(
    field: FloatArray,
    probability: FloatArray,
    pull: FloatArray,
    first: int,
    last: int,
    tau: Number,
    tile: FloatArray,
) -> None:
    """Write the points Z - tau pull and the likelihoods of a chunk into a tile."""
    for k in range(field.shape[0]):
        part = tile[2 * k * CHUNK : 2 * (k + 1) * CHUNK]
        z = field[k, first:last]
        p = probability[k, first:last]
        q = pull[k, first:last]
        for j in range(len(z)):
            part[j] = z[j] - tau * q[j]
            part[CHUNK + j] = p[j]


@spliced
def step_chunk(
    field: FloatArray,
    extrapolated: FloatArray,
    multipliers: FloatArray,
    first: int,
    last: int,
    steps: Steps,
    scratch: SiteScratch,
) -> None:
    """Solve the pixels of a loaded tile; update Z, (category, x), and write Zbar."""
    tile, work = scratch
    tau = field.dtype.type(steps.primal)
    tolerance = field.dtype.type(steps.site_tolerance)
    kept_c = multipliers[0, first:last]
    kept_theta = multipliers[1, first:last]
    for j in range(len(kept_c)):
        work[C + j] = kept_c[j]
        work[THETA + j] = kept_theta[j]
    for start in range(0, last - first, BLOCK):
        solve_block(tile[start:], field.shape[0], tau, tolerance, work[start:])
    for j in range(len(kept_c)):
        kept_c[j] = work[C + j]
        kept_theta[j] = work[THETA + j]
    _store(field, extrapolated, first, last, field.dtype.type(steps.relaxation), tile, work)


@inner
def _store(
    field: FloatArray,
    extrapolated: FloatArray,
    first: int,
    last: int,
    relaxation: Number,
    tile: FloatArray,
    work: FloatArray,
) -> None:
    for k in range(field.shape[0]):
        part = tile[2 * k * CHUNK : 2 * (k + 1) * CHUNK]
        z = field[k, first:last]
        zbar = extrapolated[k, first:last]
        for j in range(len(z)):
            x = max(ZERO, fma(work[C + j], part[CHUNK + j], part[j]) - work[THETA + j])
            step = x - z[j]
            zbar[j] = x + step
            z[j] = fma(relaxation, step, z[j])
