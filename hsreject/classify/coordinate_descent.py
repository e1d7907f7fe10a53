"""The inner problem of the proximal Newton method: a quadratic with an absolute-value penalty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from hsreject.compilation import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.classify.multinomial import FloatArray

_PASSES = 20  # of coordinate descent between two solutions on the support
_ROUNDS = 50


def penalised_quadratic(
    curvature: FloatArray, gradient: FloatArray, coef: FloatArray, *, penalty: float, tol: float
) -> FloatArray:
    """Minimise g'd + d'Qd/2 + penalty * ||w + d||_1 over d; return w + d.

    Passes of coordinate descent find which coordinates are zero; the linear system of the others
    then moves them all at once, because correlated features would make single moves creep. Q is
    known, so nothing here depends on the number of samples.

    Parameters
    ----------
    curvature : array (coordinate, coordinate)
        Q, positive semidefinite. Coordinates without curvature stay.
    gradient : array (coordinate,)
        g.
    coef : array (coordinate,)
        w.
    penalty : float
        Weight of the absolute values.
    tol : float
        Stop when no coordinate's derivative moves by more than this in a pass.

    Examples
    --------
    >>> import numpy as np
    >>> penalised_quadratic(np.eye(2), np.array([-3.0, 0.5]), np.zeros(2), penalty=1.0, tol=1e-9)
    array([2., 0.])
    """
    updated, slope = coef.copy(), gradient.copy()
    for _ in range(_ROUNDS):
        if _descend(curvature, slope, updated, penalty, tol, _PASSES):
            break
        _solve_on_support(curvature, slope, updated, penalty)
    return updated


@compiled()
def _descend(
    curvature: FloatArray,
    slope: FloatArray,
    coef: FloatArray,
    penalty: float,
    tol: float,
    n_passes: int,
) -> bool:
    """Do passes of coordinate descent in place, over all and over the nonzero coordinates.

    `slope` is the derivative of the quadratic at `coef`. Returns whether a pass over all
    coordinates moved no derivative by more than `tol`.
    """
    everywhere = True
    for _ in range(n_passes):
        largest = 0.0
        for j in range(len(coef)):
            diagonal = curvature[j, j]
            if diagonal <= 0.0 or not (everywhere or coef[j] != 0.0):
                continue
            best = coef[j] - slope[j] / diagonal
            threshold = penalty / diagonal
            if best > threshold:
                best -= threshold
            elif best < -threshold:
                best += threshold
            else:
                best = 0.0
            move = best - coef[j]
            if move != 0.0:
                largest = max(largest, abs(move) * diagonal)
                coef[j] = best
                for other in range(len(coef)):
                    slope[other] += curvature[j, other] * move
        if everywhere and largest <= tol:
            return True
        everywhere = largest <= tol
    return False


def _solve_on_support(
    curvature: FloatArray, slope: FloatArray, coef: FloatArray, penalty: float
) -> None:
    """Move the nonzero coordinates to their joint minimum in place; some become zero on the way.

    While the minimum has other signs than the coordinates, those that would change sign stop at
    zero if that lowers the objective; if not, all stop where the first of them is zero, which
    always does. With fewer coordinates left, the system is solved again.
    """
    while coef.any():
        support = np.flatnonzero(coef)
        inner, now = curvature[np.ix_(support, support)], coef[support]
        wanted = slope[support] + penalty * np.sign(now)
        try:
            move = -cho_solve(cho_factor(inner, check_finite=False), wanted, check_finite=False)
        except LinAlgError:
            return  # no curvature in some direction: coordinate descent goes on alone
        crossing = np.flatnonzero((now + move) * now < 0)
        if len(crossing):
            move = _stop_at_zero(inner, wanted, now, move, crossing)
        coef[support] += move
        slope += curvature[:, support] @ move
        if not len(crossing):
            return


def _stop_at_zero(
    inner: FloatArray,
    wanted: FloatArray,
    now: FloatArray,
    move: FloatArray,
    crossing: NDArray[np.intp],
) -> FloatArray:
    clipped = move.copy()
    clipped[crossing] = -now[crossing]
    if wanted @ clipped + clipped @ inner @ clipped / 2 < 0:
        return clipped
    reach = -now[crossing] / move[crossing]
    shortened: FloatArray = reach.min() * move
    first = crossing[reach.argmin()]
    shortened[first] = -now[first]
    return shortened
