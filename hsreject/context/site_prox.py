"""The exact site prox on whole fields."""

from __future__ import annotations

import numpy as np

from hsreject.context.kernels.site import new_multipliers, new_site_scratch
from hsreject.context.kernels.site_row import Steps, site_rows
from hsreject.context.problem import Array
from hsreject.context.workers import Workers


def site_prox(
    point: Array, probability: Array, step: float, *, workers: Workers | None = None
) -> Array:
    r"""Return, for every pixel, the prox of data term and simplex at a point.

    .. math:: \arg\min_{x \ge 0,\ 1'x = 1} -\log(p'x) + \|x - \nu\|^2 / (2\,step)

    Parameters
    ----------
    point, probability : array, (y, category, x)
        The points nu and the likelihoods p, of one floating type. A pixel needs a p above 0.
    step : float, above 0
    workers : Workers, optional
        Threads to share the rows.

    Returns
    -------
    array, (y, category, x)
        On the simplex.

    Examples
    --------
    >>> point = np.array([[[0.0], [1.0]]])
    >>> site_prox(point, np.array([[[1.0], [0.0]]]), 0.5).round(6)
    array([[[0.5],
            [0.5]]])
    """
    solved = point.copy()
    buffer = np.zeros_like(point)
    multipliers = new_multipliers(point.shape, point.dtype)
    rounding = float(np.finfo(point.dtype).eps)
    steps = Steps(step, 0.0, 1.0, rounding * (32 + 2 * point.shape[1]) * (1 + step))

    def rows(first: int, last: int) -> None:
        scratch = new_site_scratch(point.shape[1], point.dtype)
        site_rows(solved, probability, buffer, multipliers, steps, scratch, first, last)

    (workers or Workers()).share(point.shape[0], rows)
    return solved
