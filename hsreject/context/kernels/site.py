r"""The exact prox of one pixel's data term and simplex, for a chunk of pixels at a time.

For a pixel with likelihoods p, a point :math:`\nu` and a step :math:`\tau` it is

.. math:: \arg\min_{x \ge 0,\ 1'x = 1} -\log(p'x) + \|x - \nu\|^2 / (2 \tau)
          = \max(\nu + c\,p - \theta, 0), \qquad c = \tau / p'x .

If the set of the n classes with x > 0 is known, c and :math:`\theta` follow from a quadratic
equation. A pass takes the set from the last c and :math:`\theta` and solves; it ends when x sums to
1 and agrees with c. The passes can cycle; what they have not solved goes to
:mod:`~hsreject.context.kernels.bracket`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hsreject.context.kernels.bracket import bracketed_multipliers
from hsreject.context.kernels.compilation import (
    FOUR,
    HALF,
    ONE,
    TWO,
    ZERO,
    FloatArray,
    Number,
    fma,
    inner,
    spliced,
)
from hsreject.context.kernels.tile import BLOCK, CHUNK, GROUP, RUN, new_tile

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Where the runs of the work array start: sums over the active classes, then c, theta and how far
# off they are.
COUNT, P, NU, P_NU, P_P, C, THETA, ERROR, N_WORK = (run * CHUNK for run in range(9))

ALL_ACTIVE = np.float32(-1e30)  # the theta that makes every class active
NEVER_ACTIVE = -2e30  # the point of a class that is never active
MAX_PASSES = 10


class SiteScratch(NamedTuple):
    """Room for the pixels that are solved together."""

    tile: FloatArray
    work: FloatArray


def new_site_scratch(n_classes: int, dtype: np.dtype[Any]) -> SiteScratch:
    """Return room for a chunk of pixels of `n_classes`."""
    work = np.zeros(N_WORK, dtype)
    work[C:THETA] = 1
    work[THETA:ERROR] = ALL_ACTIVE
    return SiteScratch(new_tile(n_classes, dtype, filler=NEVER_ACTIVE), work)


def new_multipliers(shape: tuple[int, int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return c and theta of every pixel, (y, 2, x), to start from: all classes active."""
    multipliers = np.empty((shape[0], 2, shape[2]), dtype)
    multipliers[:, 0] = 1
    multipliers[:, 1] = ALL_ACTIVE
    return multipliers


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
        if n_unsolved(tile, tau, tolerance, work) == 0:
            return
    for j in range(BLOCK):
        if not work[ERROR + j] <= tolerance:
            c, theta = bracketed_multipliers(tile, j, n_classes, tau)
            work[C + j] = c
            work[THETA + j] = theta


@inner
def sum_over_active(tile: FloatArray, work: FloatArray) -> None:
    """Sum 1, p, nu, p nu and p p over the classes with nu + c p > theta."""
    for run in range(COUNT, C, CHUNK):
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
                is_active = fma(c, p, nu) > theta
                p_if_active = p if is_active else ZERO
                count += ONE if is_active else ZERO
                sum_p += p_if_active
                sum_nu += nu if is_active else ZERO
                sum_p_nu = fma(p_if_active, nu, sum_p_nu)
                sum_p_p = fma(p_if_active, p, sum_p_p)
            work[COUNT + j] += count
            work[P + j] += sum_p
            work[NU + j] += sum_nu
            work[P_NU + j] += sum_p_nu
            work[P_P + j] += sum_p_p


@inner
def solve_for_active(tau: Number, tolerance: Number, work: FloatArray) -> None:
    """Solve for c and theta of unsolved pixels as if the active classes were the right ones.

    With s = p'x = tau / c the two constraints give s^2 - a s - b = 0; of the two forms of its
    positive root the one without cancellation is taken. Where nothing can be solved, all classes
    become active.
    """
    for j in range(BLOCK):
        inverse = ONE / work[COUNT + j]
        a = work[P_NU + j] - work[P + j] * (work[NU + j] - ONE) * inverse
        b = max(ZERO, tau * (work[P_P + j] - work[P + j] * work[P + j] * inverse))
        larger = np.abs(a) + np.sqrt(a * a + FOUR * b)
        if_positive = HALF * larger
        if_negative = TWO * b / larger
        s = if_positive if a > ZERO else if_negative
        c = tau / s
        theta = (work[NU + j] + c * work[P + j] - ONE) * inverse
        c = c if s > ZERO else ONE
        theta = max(ALL_ACTIVE, theta if s > ZERO else ALL_ACTIVE)
        is_solved = work[ERROR + j] <= tolerance
        work[C + j] = work[C + j] if is_solved else c
        work[THETA + j] = work[THETA + j] if is_solved else theta


@inner
def n_unsolved(tile: FloatArray, tau: Number, tolerance: Number, work: FloatArray) -> int:
    """Count the pixels whose x = max(nu + c p - theta, 0) is no solution.

    What is compared with the tolerance, |1'x - 1| + |c p'x / tau - 1|, is left in `work[ERROR:]`.
    """
    for j in range(BLOCK):
        work[COUNT + j] = ZERO
        work[P + j] = ZERO
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
            work[COUNT + j] += sum_x
            work[P + j] += sum_p_x
    inverse = ONE / tau
    count = 0
    for j in range(BLOCK):
        off = np.abs(work[COUNT + j] - ONE)
        work[ERROR + j] = off + np.abs(work[C + j] * work[P + j] * inverse - ONE)
    for j in range(BLOCK):
        count += 0 if work[ERROR + j] <= tolerance else 1  # NaN counts as unsolved
    return count
