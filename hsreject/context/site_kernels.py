r"""The exact prox of data term and simplex for every pixel: the site step of the solvers.

For a pixel with likelihoods p, a point :math:`\nu` and a step :math:`\tau` it is

.. math:: \arg\min_{x \ge 0,\ 1'x = 1} -\log(p'x) + \|x - \nu\|^2 / (2 \tau)
          = \max(\nu + c\,p - \theta, 0), \qquad c = \tau / p'x .

Where the active classes, those with x > 0, are known, c and :math:`\theta` follow from a quadratic
equation. A pass takes the active classes from the last c and :math:`\theta` and solves for new
ones; passes end when x sums to 1 and agrees with c. They can cycle: pixels that they do not solve
are bracketed, by the functions at the end of this file.

Fields are stored as (y, category, x): the innermost loop runs over pixels of one row and one class,
so that it is contiguous in memory and becomes vector instructions. The pixels of a row are solved
in *tiles* of CHUNK = 160 pixels. A tile is one flat array, two runs of CHUNK numbers per class, and
beside it lies a flat *work* array with a run for every sum and multiplier:

           |<- 160 pixels >|
    tile   | nu of class 0 | p of class 0 | nu of class 1 | p of class 1 | nu of class 2 | ...
    work   | SUM_1 | SUM_P | SUM_NU | SUM_P_NU | SUM_P_P | SUM_X | SUM_P_X | C | THETA | ERROR |
             each run again of 160 pixels, of which BLOCK = 32 are solved together

    nu of class k, pixel j  =  tile[2 k CHUNK + j]         C of pixel j  =  work[C + j]
    p  of class k, pixel j  =  tile[(2 k + 1) CHUNK + j]

A block is `tile[start:]` and `work[start:]`, so that its first pixel has j = 0. Distances between
runs are constants and GROUP classes are taken at a time: only so does the compiler see that runs do
not overlap, and makes vector instructions of the loops over pixels (a factor of 10 in time).

Measured on rows of 145 pixels and 16 classes, and not better: blocks of 16 pixels, gathering the
unsolved pixels of a chunk into a tile of their own, narrower chunks that stay in the first cache
(their loops are too short), fields stored in blocks of pixels with all of their classes together,
loads ahead of need.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hsreject.compilation import (
    FOUR,
    HALF,
    ONE,
    TWO,
    ZERO,
    FloatArray,
    Number,
    fma,
    inner,
    kernel,
    spliced,
)

CHUNK = 160  # pixels of a tile
BLOCK = 32  # pixels that are solved together
GROUP = 4  # classes taken at a time
RUN = 2 * GROUP * CHUNK

# where the runs of the work array start
SUM_1, SUM_P, SUM_NU, SUM_P_NU, SUM_P_P, SUM_X, SUM_P_X, C, THETA, ERROR, N_WORK = (
    run * CHUNK for run in range(11)
)

ALL_ACTIVE = np.float32(-1e30)  # the theta that makes every class active
NEVER_ACTIVE = -2e30  # the point of a class that is never active
MAX_PASSES = 10
MAX_HALVINGS = 200


class Steps(NamedTuple):
    """The numbers of one iteration: tau, sigma, relaxation, accuracy of the site prox."""

    primal: float
    dual: float
    relaxation: float
    site_tolerance: float


class SiteScratch(NamedTuple):
    """Room for the pixels of a tile. It is made here: arrays made in kernels compile slowly."""

    tile: FloatArray
    work: FloatArray


def new_site_scratch(n_classes: int, dtype: np.dtype[Any]) -> SiteScratch:
    """Return room for a chunk of pixels of `n_classes`."""
    work = np.zeros(N_WORK, dtype)
    work[C:THETA] = 1
    work[THETA:ERROR] = ALL_ACTIVE
    return SiteScratch(new_tile(n_classes, dtype, filler=NEVER_ACTIVE), work)


def new_tile(n_classes: int, dtype: np.dtype[Any], *, filler: float) -> FloatArray:
    """Return a tile of points 0 and likelihoods 1, with room for whole groups of classes.

    Lanes beyond the end of a row keep what was there before, so all must hold harmless numbers. The
    classes that fill up the last group have likelihood 0 and the point `filler`.
    """
    n_rounded = -(-n_classes // GROUP) * GROUP
    tile = np.zeros((n_rounded, 2, CHUNK), dtype)
    tile[:n_classes, 1] = 1
    tile[n_classes:, 0] = filler
    return tile.ravel()


def new_multipliers(shape: tuple[int, int, int], dtype: np.dtype[Any]) -> FloatArray:
    """Return c and theta of every pixel, (y, 2, x), to start from: all classes active."""
    multipliers = np.empty((shape[0], 2, shape[2]), dtype)
    multipliers[:, 0] = 1
    multipliers[:, 1] = ALL_ACTIVE
    return multipliers


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
    """Update rows of Z, (y, category, x), and replace `pull` = H'Y by Zbar.

    With x = prox(Z - tau pull): Zbar = 2x - Z, Z += relaxation (x - Z).
    """
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
    """Solve the pixels of a loaded tile; update Z, (category, x), and write Zbar.

    c and theta of each pixel are kept: the set of active classes hardly changes, so most pixels
    need one pass. What over-relaxation overshoots swings back one iteration later, so they are
    kept for the iteration after next; with those of the last one, twice as many pixels need a
    second pass.
    """
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
    store_chunk(field, extrapolated, first, last, field.dtype.type(steps.relaxation), tile, work)


@inner
def store_chunk(
    field: FloatArray,
    extrapolated: FloatArray,
    first: int,
    last: int,
    relaxation: Number,
    tile: FloatArray,
    work: FloatArray,
) -> None:
    """Make x of c and theta, and write Z and Zbar."""
    for k in range(field.shape[0]):
        part = tile[2 * k * CHUNK : 2 * (k + 1) * CHUNK]
        z = field[k, first:last]
        zbar = extrapolated[k, first:last]
        for j in range(len(z)):
            x = max(ZERO, fma(work[C + j], part[CHUNK + j], part[j]) - work[THETA + j])
            step = x - z[j]
            zbar[j] = x + step
            z[j] = fma(relaxation, step, z[j])


@spliced
def solve_block(
    tile: FloatArray, n_classes: int, tau: Number, tolerance: Number, work: FloatArray
) -> None:
    """Put c and theta of a block's pixels into `work`, starting from those that are there.

    A pixel that is solved stays as it is, so that none depends on the others of its block.
    """
    for j in range(BLOCK):
        work[ERROR + j] = math.inf
    for _ in range(MAX_PASSES):
        sum_over_active(tile, work)
        solve_for_active(tau, tolerance, work)
        if count_unsolved(tile, tau, tolerance, work) == 0:
            return
    for j in range(BLOCK):
        if not work[ERROR + j] <= tolerance:
            c, theta = bracketed_multipliers(tile, j, n_classes, tau)
            work[C + j] = c
            work[THETA + j] = theta


@inner
def sum_over_active(tile: FloatArray, work: FloatArray) -> None:
    """Sum 1, p, nu, p nu and p p over the classes with nu + c p > theta."""
    for run in range(SUM_1, SUM_X, CHUNK):
        for j in range(BLOCK):
            work[run + j] = ZERO
    for start in range(0, tile.size, RUN):
        group = tile[start : start + RUN]
        for j in range(BLOCK):
            c, theta = work[C + j], work[THETA + j]
            count, sum_p, sum_nu, sum_p_nu, sum_p_p = ZERO, ZERO, ZERO, ZERO, ZERO
            for member in range(GROUP):
                nu = group[2 * member * CHUNK + j]
                p = group[(2 * member + 1) * CHUNK + j]
                # The classes that fill up the last group have p = 0 and a nu below the lowest theta
                # there is, so they are never active and add nothing.
                is_active = fma(c, p, nu) > theta
                p_if_active = p if is_active else ZERO
                count += ONE if is_active else ZERO
                sum_p += p_if_active
                sum_nu += nu if is_active else ZERO
                sum_p_nu = fma(p_if_active, nu, sum_p_nu)
                sum_p_p = fma(p_if_active, p, sum_p_p)
            work[SUM_1 + j] += count
            work[SUM_P + j] += sum_p
            work[SUM_NU + j] += sum_nu
            work[SUM_P_NU + j] += sum_p_nu
            work[SUM_P_P + j] += sum_p_p


@inner
def solve_for_active(tau: Number, tolerance: Number, work: FloatArray) -> None:
    """Solve for c and theta of unsolved pixels as if the active classes were the right ones.

    With s = p'x = tau / c the two constraints give s^2 - a s - b = 0; of the two forms of its
    positive root the one without cancellation is taken. Where nothing can be solved, all classes
    become active.
    """
    for j in range(BLOCK):
        sum_p, sum_nu = work[SUM_P + j], work[SUM_NU + j]
        inverse = ONE / work[SUM_1 + j]
        a = work[SUM_P_NU + j] - sum_p * (sum_nu - ONE) * inverse
        b = max(ZERO, tau * (work[SUM_P_P + j] - sum_p * sum_p * inverse))
        # b is not negative, by Cauchy-Schwarz, so one root is not negative; only rounding needs the
        # maximum above. Without an active class the inverse is infinite, and with a = b = 0 the
        # root is 0 / 0: s is then NaN, which is not above 0, so both start again from all classes.
        # Every lane takes the same instructions.
        larger = np.abs(a) + np.sqrt(a * a + FOUR * b)
        if_positive = HALF * larger
        if_negative = TWO * b / larger
        s = if_positive if a > ZERO else if_negative
        c = tau / s
        theta = (sum_nu + c * sum_p - ONE) * inverse
        c = c if s > ZERO else ONE
        theta = max(ALL_ACTIVE, theta if s > ZERO else ALL_ACTIVE)
        is_solved = work[ERROR + j] <= tolerance
        work[C + j] = work[C + j] if is_solved else c
        work[THETA + j] = work[THETA + j] if is_solved else theta


@inner
def count_unsolved(tile: FloatArray, tau: Number, tolerance: Number, work: FloatArray) -> int:
    """Count the pixels whose x = max(nu + c p - theta, 0) is not a solution.

    The error that is compared with the tolerance is |1'x - 1| + |c p'x / tau - 1|.
    """
    for j in range(BLOCK):
        work[SUM_X + j] = ZERO
        work[SUM_P_X + j] = ZERO
    for start in range(0, tile.size, RUN):
        group = tile[start : start + RUN]
        for j in range(BLOCK):
            c, theta = work[C + j], work[THETA + j]
            sum_x, sum_p_x = ZERO, ZERO
            for member in range(GROUP):
                p = group[(2 * member + 1) * CHUNK + j]
                x = max(ZERO, fma(c, p, group[2 * member * CHUNK + j]) - theta)
                sum_x += x
                sum_p_x = fma(x, p, sum_p_x)
            work[SUM_X + j] += sum_x
            work[SUM_P_X + j] += sum_p_x
    inverse = ONE / tau
    for j in range(BLOCK):
        off = np.abs(work[SUM_X + j] - ONE)
        work[ERROR + j] = off + np.abs(work[C + j] * work[SUM_P_X + j] * inverse - ONE)
    count = 0
    for j in range(BLOCK):
        count += 0 if work[ERROR + j] <= tolerance else 1  # NaN counts as unsolved
    return count


@inner
def bracketed_multipliers(
    tile: FloatArray, j: int, n_classes: int, tau: Number
) -> tuple[Number, Number]:
    r"""Return c and theta of pixel `j` by halving: slow, in double precision, and always right.

    s = p'x is the root of the increasing function :math:`s - p'\,\mathrm{Proj}(\nu + \tau p / s)`,
    Proj the projection onto the simplex. With m the class of the largest p it lies between
    :math:`\tau p_m / (1 + \tau + \max\nu - \nu_m)` and :math:`p_m`: at the optimum :math:`\theta =
    x'\nu + \tau - x'x \le \max\nu + \tau` and :math:`x_m \le 1`.
    """
    largest = 0
    nu_max = float(tile[j])
    for k in range(1, n_classes):
        nu_max = max(nu_max, tile[2 * k * CHUNK + j])
        if tile[(2 * k + 1) * CHUNK + j] > tile[(2 * largest + 1) * CHUNK + j]:
            largest = k
    high = float(tile[(2 * largest + 1) * CHUNK + j])
    low = tau * high / (1.0 + tau + nu_max - tile[2 * largest * CHUNK + j])
    theta = 0.0
    for _ in range(MAX_HALVINGS):
        # The ends may lie powers of ten apart, so it is log s that is halved. A middle that is not
        # strictly between the ends means that the digits are used up.
        s = math.sqrt(low * high)
        if not low < s < high:
            break
        theta, expected = project_pixel(tile, j, n_classes, tau / s)
        if s < expected:
            low = s
        else:
            high = s
    c = tau / math.sqrt(low * high)
    theta, expected = project_pixel(tile, j, n_classes, c)
    return c, theta


@inner
def project_pixel(tile: FloatArray, j: int, n_classes: int, c: Number) -> tuple[float, float]:
    """Return theta and p'x of x = max(nu + c p - theta, 0) on the simplex.

    The active set shrinks from the full one until it stays (Michelot 1986). Rounding may let a
    class come and go; so the end is where the set does not shrink.
    """
    theta = -math.inf
    n_before = n_classes + 1
    while True:
        total = 0.0
        n_active = 0
        for k in range(n_classes):
            value = tile[2 * k * CHUNK + j] + c * tile[(2 * k + 1) * CHUNK + j]
            if value > theta:
                total += value
                n_active += 1
        if n_active == 0 or n_active >= n_before:
            break
        theta = (total - 1.0) / n_active
        n_before = n_active
    expected = 0.0
    for k in range(n_classes):
        p = float(tile[(2 * k + 1) * CHUNK + j])
        expected += p * max(tile[2 * k * CHUNK + j] + c * p - theta, 0.0)
    return theta, expected
