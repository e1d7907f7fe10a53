r"""What the data term contributes to objective and duality gap, row by row, in double precision.

The data term is that of :math:`z / 1'z`, so that sums which are 1 up to rounding do not count.
For every u > 0 the tangent of -log bounds the dual of a pixel's data term from below:

.. math:: \min_{z \ge 0,\ 1'z = 1} -\log(p'z) + q'z
          \ \ge\ \phi(u) = \log u + 1 + \min_k (q_k - p_k u),

with equality at the largest :math:`\phi`. :math:`\phi` is concave, log plus the lowest of K
lines, and at the optimum of the whole problem it is largest at u = 1 / p'z. Starting there, a few
cuts come within percents of the largest value: keep the line left and the line right of the
maximum, and go to the maximum of log plus the lower of the two. That makes the certified gap
three to four times smaller than u = 1 / p'z alone does. The tile is that of
:mod:`~hsreject.context.site_kernels`, with q in the place of nu.
"""

from __future__ import annotations

import math

import numpy as np

from hsreject.compilation import FloatArray, inner, kernel, spliced
from hsreject.context.site_kernels import BLOCK, CHUNK, GROUP, RUN, SiteScratch, new_tile

N_CUTS = 3
TINY, HUGE = 1e-100, 1e100  # products of numbers outside are turned into a logarithm

# Where the runs of the work array start, one number per pixel of a chunk (constant distances, so
# that the compiler makes vector instructions): u, and the lowest, the left and the right line.
# Before there are lines, the run of the lowest holds the sums of z.
U, LOWEST, P_LOWEST, Q_LOWEST, P_LEFT, Q_LEFT, P_RIGHT, Q_RIGHT, U_FIRST, FIRST, N_WORK = (
    run * CHUNK for run in range(11)
)


def new_bound_scratch(n_classes: int) -> SiteScratch:
    """Return room for a chunk whose classes beyond `n_classes` never have the lowest line."""
    return SiteScratch(new_tile(n_classes, np.dtype(np.float64), filler=HUGE), np.ones(N_WORK))


@kernel
def site_bounds(
    field: FloatArray,
    probability: FloatArray,
    pull: FloatArray,
    scratch: SiteScratch,
    out: FloatArray,
) -> None:
    """Write sum_i -log(p_i'z_i) and sum_i phi_i of each row of (y, category, x)."""
    tile, work = scratch
    n_rows, _, n_columns = field.shape
    for row in range(n_rows):
        data = 0.0
        bound = 0.0
        for first in range(0, n_columns, CHUNK):
            last = min(first + CHUNK, n_columns)
            start_at_tangent(field[row], probability[row], pull[row], first, last, tile, work)
            data += sum_of_logs(work, last - first)
            for start in range(0, last - first, BLOCK):
                count = min(BLOCK, last - first - start)
                bound += block_bound(tile[start:], work[start:], count)
        out[row, 0] = data
        out[row, 1] = bound


@spliced
def block_bound(tile: FloatArray, work: FloatArray, count: int) -> float:
    """Return the sum of phi over the first pixels of a block."""
    find_lowest_line(tile, work)
    for j in range(BLOCK):
        work[U_FIRST + j] = work[U + j]
        work[FIRST + j] = work[LOWEST + j]
    for _ in range(N_CUTS):
        cut(work)
        find_lowest_line(tile, work)
    for j in range(BLOCK):
        # back to u = 1 / p'z where the cuts have not surely gained: log r >= 1 - 1 / r
        before, after = work[U_FIRST + j], work[U + j]
        gained = work[LOWEST + j] - work[FIRST + j] > before / after - 1.0
        work[U + j] = after if gained else before
        work[LOWEST + j] = work[LOWEST + j] if gained else work[FIRST + j]
    bound = sum_of_logs(work, count)
    for j in range(count):
        bound += 1.0 + work[LOWEST + j]
    return bound


@inner
def start_at_tangent(
    field: FloatArray,
    probability: FloatArray,
    pull: FloatArray,
    first: int,
    last: int,
    tile: FloatArray,
    work: FloatArray,
) -> None:
    """Load a chunk and set u = 1'z / p'z. No line is known yet: they are very high."""
    for j in range(CHUNK):
        work[U + j] = 0.0
        work[LOWEST + j] = 0.0
        work[P_LEFT + j] = 0.0
        work[Q_LEFT + j] = HUGE
        work[P_RIGHT + j] = HUGE
        work[Q_RIGHT + j] = HUGE
    for k in range(field.shape[0]):
        part = tile[2 * k * CHUNK : 2 * (k + 1) * CHUNK]
        z = field[k, first:last]
        p = probability[k, first:last]
        q = pull[k, first:last]
        for j in range(len(z)):
            part[j] = q[j]
            part[CHUNK + j] = p[j]
            work[U + j] += np.float64(p[j]) * np.float64(z[j])
            work[LOWEST + j] += np.float64(z[j])
    for j in range(CHUNK):
        work[U + j] = work[LOWEST + j] / work[U + j]


@inner
def find_lowest_line(tile: FloatArray, work: FloatArray) -> None:
    """Find the class with the least q - p u of each pixel."""
    for j in range(BLOCK):
        work[LOWEST + j] = math.inf
    for start in range(0, tile.size, RUN):
        part = tile[start : start + RUN]
        for j in range(BLOCK):
            u = work[U + j]
            lowest = work[LOWEST + j]
            p_lowest = work[P_LOWEST + j]
            q_lowest = work[Q_LOWEST + j]
            for member in range(GROUP):
                q = part[2 * member * CHUNK + j]
                p = part[(2 * member + 1) * CHUNK + j]
                is_lower = q - p * u < lowest
                lowest = q - p * u if is_lower else lowest
                p_lowest = p if is_lower else p_lowest
                q_lowest = q if is_lower else q_lowest
            work[LOWEST + j] = lowest
            work[P_LOWEST + j] = p_lowest
            work[Q_LOWEST + j] = q_lowest


@inner
def cut(work: FloatArray) -> None:
    """Take the lowest line as the left or right one, and move u to the maximum of both."""
    for j in range(BLOCK):
        u = work[U + j]
        p = work[P_LOWEST + j]
        q = work[Q_LOWEST + j]
        # The slope of log u + q - p u is 1 / u - p. Where p u < 1 it still rises, so the maximum
        # lies to the right of u, and this line is the one to the left of the maximum.
        is_left = p * u < 1.0
        p_left = p if is_left else work[P_LEFT + j]
        q_left = q if is_left else work[Q_LEFT + j]
        p_right = work[P_RIGHT + j] if is_left else p
        q_right = work[Q_RIGHT + j] if is_left else q
        work[P_LEFT + j] = p_left
        work[Q_LEFT + j] = q_left
        work[P_RIGHT + j] = p_right
        work[Q_RIGHT + j] = q_right
        # log u + line is largest at 1 / p; both lines together there or where they cross
        top_left, top_right = 1.0 / p_left, 1.0 / p_right
        # The flat left line is the lower one before the crossing, the steep right one after it. So
        # the maximum is the crossing, unless one of the two has its own maximum on its side of it.
        crossing = (q_right - q_left) / (p_right - p_left)
        moved = min(max(crossing, top_right), top_left)
        moved = top_right if q_left == HUGE else moved
        moved = top_left if q_right == HUGE else moved
        # flat or parallel lines give no answer; any u is allowed, so stay
        work[U + j] = moved if (moved > 0.0) & (moved < HUGE) else u


@inner
def sum_of_logs(work: FloatArray, count: int) -> float:
    """Return the sum of log u of the first pixels, with few logarithms."""
    total = 0.0
    product = 1.0
    for j in range(count):
        product *= work[U + j]
        if not TINY < product < HUGE:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)
