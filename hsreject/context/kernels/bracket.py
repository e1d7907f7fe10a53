r"""The site prox of one pixel by bracketing: slow, in double precision, and always right.

s = p'x is the root of the increasing function :math:`s - p'\,\mathrm{Proj}(\nu + \tau p / s)`,
Proj the projection onto the simplex. With m the class of the largest p it lies between
:math:`\tau p_m / (1 + \tau + \max\nu - \nu_m)` and :math:`p_m`: at the optimum :math:`\theta =
x'\nu + \tau - x'x \le \max\nu + \tau` and :math:`x_m \le 1`.
"""

from __future__ import annotations

import math

from hsreject.context.kernels.compilation import FloatArray, Number, inner
from hsreject.context.kernels.tile import CHUNK

MAX_HALVINGS = 200


@inner
def bracketed_multipliers(
    tile: FloatArray, j: int, n_classes: int, tau: Number
) -> tuple[Number, Number]:
    """Return c and theta of pixel `j` of a tile."""
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
        s = math.sqrt(low * high)
        if not low < s < high:
            break
        theta, expected = project(tile, j, n_classes, tau / s)
        if s < expected:
            low = s
        else:
            high = s
    c = tau / math.sqrt(low * high)
    theta, expected = project(tile, j, n_classes, c)
    return c, theta


@inner
def project(tile: FloatArray, j: int, n_classes: int, c: Number) -> tuple[float, float]:
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
