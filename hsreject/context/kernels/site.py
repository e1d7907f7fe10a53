r"""The exact prox of one pixel's data term and simplex, for a chunk of pixels at a time.

For a pixel with likelihoods p, a point :math:`\nu` and a step :math:`\tau` it is

.. math:: \arg\min_{x \ge 0,\ 1'x = 1} -\log(p'x) + \|x - \nu\|^2 / (2 \tau)
          = \max(\nu + c\,p - \theta, 0), \qquad c = \tau / p'x .

If the set of the n classes with x > 0 is known, c and :math:`\theta` follow from a quadratic
equation. A pass takes the set from the last c and :math:`\theta` and solves; it ends when x sums
to 1 and agrees with c. The passes can cycle; what they have not solved goes to
:mod:`~hsreject.context.kernels.bracket`.

The pixels come as a tile (:mod:`~hsreject.context.kernels.tile`).
"""

from __future__ import annotations

import numpy as np

from hsreject.context.kernels.bracket import bracketed_multipliers
from hsreject.context.kernels.compilation import FloatArray, Number, kernel
from hsreject.context.kernels.tile import (
    ALL_ACTIVE,
    CHUNK,
    COUNT,
    NU,
    P_NU,
    P_P,
    RUN,
    SUM_PX,
    SUM_X,
    THETA,
    C,
    P,
)

MAX_PASSES = 10


@kernel
def solve_tile(
    tile: FloatArray, n_classes: int, tau: Number, tolerance: Number, work: FloatArray
) -> int:
    """Put c and theta of every pixel of `tile` into `work`, starting from those that are there."""
    for _ in range(MAX_PASSES):
        sum_over_active(tile, work)
        solve_for_active(tau, work)
        sum_solution(tile, work)
        if n_wrong(tau, tolerance, work) == 0:
            return 0
    n_bracketed = 0
    for j in range(CHUNK):
        if not work[SUM_X + j] <= tolerance:  # written so that NaN is taken as wrong
            c, theta = bracketed_multipliers(tile, j, n_classes, tau)
            work[C + j] = c
            work[THETA + j] = theta
            n_bracketed += 1
    return n_bracketed


@kernel
def sum_over_active(tile: FloatArray, work: FloatArray) -> None:
    """Sum 1, p, nu, p nu and p p over the classes with nu + c p > theta."""
    one = tile.dtype.type(1)
    zero = tile.dtype.type(0)
    for j in range(C):
        work[j] = zero
    for start in range(0, tile.size, RUN):
        part = tile[start : start + RUN]
        for j in range(CHUNK):
            c = work[C + j]
            theta = work[THETA + j]
            nu0 = part[j]
            p0 = part[CHUNK + j]
            nu1 = part[2 * CHUNK + j]
            p1 = part[3 * CHUNK + j]
            nu2 = part[4 * CHUNK + j]
            p2 = part[5 * CHUNK + j]
            nu3 = part[6 * CHUNK + j]
            p3 = part[7 * CHUNK + j]
            active0 = one if nu0 + c * p0 > theta else zero
            active1 = one if nu1 + c * p1 > theta else zero
            active2 = one if nu2 + c * p2 > theta else zero
            active3 = one if nu3 + c * p3 > theta else zero
            q0 = active0 * p0
            q1 = active1 * p1
            q2 = active2 * p2
            q3 = active3 * p3
            work[COUNT + j] += (active0 + active1) + (active2 + active3)
            work[P + j] += (q0 + q1) + (q2 + q3)
            work[NU + j] += (active0 * nu0 + active1 * nu1) + (active2 * nu2 + active3 * nu3)
            work[P_NU + j] += (q0 * nu0 + q1 * nu1) + (q2 * nu2 + q3 * nu3)
            work[P_P + j] += (q0 * p0 + q1 * p1) + (q2 * p2 + q3 * p3)


@kernel
def solve_for_active(tau: Number, work: FloatArray) -> None:
    """Solve for c and theta as if the active classes were the right ones.

    With s = p'x = tau / c the two constraints give s^2 - a s - b = 0; of the two forms of its
    positive root the one without cancellation is taken. Where nothing can be solved, all classes
    become active.
    """
    one = work.dtype.type(1)
    zero = work.dtype.type(0)
    half = work.dtype.type(0.5)
    two = work.dtype.type(2)
    four = work.dtype.type(4)
    everything = work.dtype.type(ALL_ACTIVE)
    for j in range(CHUNK):
        inverse = one / work[COUNT + j]
        a = work[P_NU + j] - work[P + j] * (work[NU + j] - one) * inverse
        b = tau * (work[P_P + j] - work[P + j] * work[P + j] * inverse)
        b = max(zero, b)
        larger = np.abs(a) + np.sqrt(a * a + four * b)
        if_positive = half * larger
        if_negative = two * b / larger
        s = if_positive if a > zero else if_negative
        c = tau / s
        theta = (work[NU + j] + c * work[P + j] - one) * inverse
        c = c if s > zero else one
        theta = theta if s > zero else everything
        work[C + j] = c
        work[THETA + j] = max(everything, theta)


@kernel
def sum_solution(tile: FloatArray, work: FloatArray) -> None:
    """Sum x and p x of x = max(nu + c p - theta, 0)."""
    zero = tile.dtype.type(0)
    for j in range(SUM_PX + CHUNK):
        work[j] = zero
    for start in range(0, tile.size, RUN):
        part = tile[start : start + RUN]
        for j in range(CHUNK):
            c = work[C + j]
            theta = work[THETA + j]
            p0 = part[CHUNK + j]
            p1 = part[3 * CHUNK + j]
            p2 = part[5 * CHUNK + j]
            p3 = part[7 * CHUNK + j]
            v0 = part[j] + c * p0 - theta
            v1 = part[2 * CHUNK + j] + c * p1 - theta
            v2 = part[4 * CHUNK + j] + c * p2 - theta
            v3 = part[6 * CHUNK + j] + c * p3 - theta
            x0 = max(zero, v0)
            x1 = max(zero, v1)
            x2 = max(zero, v2)
            x3 = max(zero, v3)
            work[SUM_X + j] += (x0 + x1) + (x2 + x3)
            work[SUM_PX + j] += (x0 * p0 + x1 * p1) + (x2 * p2 + x3 * p3)


@kernel
def n_wrong(tau: Number, tolerance: Number, work: FloatArray) -> int:
    """Turn the sums of x into |1'x - 1| + |c p'x / tau - 1| and count those above tolerance."""
    one = work.dtype.type(1)
    inverse = one / tau
    for j in range(CHUNK):
        work[SUM_X + j] = np.abs(work[SUM_X + j] - one) + np.abs(
            work[C + j] * work[SUM_PX + j] * inverse - one
        )
    count = 0
    for j in range(CHUNK):
        count += 0 if work[SUM_X + j] <= tolerance else 1  # NaN counts as wrong
    return count
