r"""Costs: up to which cost a rejection pays, and which operating point is cheapest.

With 1 the cost of an error that is kept and :math:`\rho` in [0, 1] that of a rejection, an
operating point costs :math:`L_\rho = (1-r)(1-A) + \rho r` per sample (paper, section IV-C).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.curve import counts_of
from hsreject.measures.optimality import gain_and_step, of_two_points
from hsreject.measures.point import Counts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


SAME_COST = 1e-15
"""Smaller differences of costs mean nothing: a decimal cost such as 0.3 is itself rounded."""


def break_even_cost(
    accuracy_1: ArrayLike | xr.DataArray,
    fraction_1: ArrayLike | xr.DataArray,
    accuracy_0: ArrayLike | xr.DataArray,
    fraction_0: ArrayLike | xr.DataArray,
) -> Any:
    r"""Compute the rejection cost at which two operating points cost the same.

    .. math:: \rho^* = 1 + \frac{A_1 (1-r_1) - A_0 (1-r_0)}{r_1 - r_0}

    which is :math:`(\beta+1)/2` for :math:`r_1 > r_0` and :math:`(1-\beta)/2` for
    :math:`r_1 < r_0`, the same value whichever point comes first. The point that rejects more is
    cheaper exactly when the rejection cost is below it (paper, theorem 1). A value above 1 or below
    0 means that one point outperforms the other whatever the cost. NaN at equal rejected fractions.

    Parameters
    ----------
    accuracy_1, fraction_1, accuracy_0, fraction_0 : float or array
        As in :func:`hsreject.relative_optimality`.

    Returns
    -------
    float, ndarray or DataArray
        Of the broadcast shape; a DataArray named `break_even_cost` when an argument is one.

    See Also
    --------
    hsreject.relative_optimality : the same on the scale of beta.
    hsreject.minimum_cost_without_rejection : against no rejection.

    Examples
    --------
    >>> from hsreject import break_even_cost
    >>> round(break_even_cost(0.625, 0.2, 0.55, 0.0), 3)
    0.75
    """
    return of_two_points(
        _break_even_cost,
        (accuracy_1, fraction_1, accuracy_0, fraction_0),
        name="break_even_cost",
        meaning="rejection cost at which both points cost the same",
    )


def _break_even_cost(*points: Any) -> Any:
    gain, step = gain_and_step(*points)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(step == 0, np.nan, 1 + gain / step)


def minimum_cost_without_rejection(curve: xr.Dataset) -> xr.DataArray:
    r"""Compute the smallest rejection cost for which not rejecting is as good as each point.

    The break-even cost with the reference at r = 0 (paper, figure 8 c and d). With E the share of
    errors where nothing is rejected, :math:`(\beta + 1)/2 = (E - MN/n) / r`. Where all points have
    the same labels, that is :math:`MR / (AR + MR)`, the share of errors among the rejected samples.
    NaN where nothing is rejected.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`. Where the labels
        differ from point to point, as those of joint rejection, E is that of the first point that
        rejects nothing.

    Returns
    -------
    DataArray over `operating_point`
        Above 1 where the labels of the point have become so much better that it pays at any cost,
        below 0 where they have become so much worse that it never does.

    See Also
    --------
    hsreject.break_even_cost : against any other point.
    hsreject.plot.BreakEvenCostDisplay : draws it.

    Examples
    --------
    >>> from hsreject import minimum_cost_without_rejection, rejection_curve
    >>> curve = rejection_curve([True, True, False], [0.9, 0.5, 0.1])
    >>> minimum_cost_without_rejection(curve).values
    array([ nan, 1. , 0.5 , 0.33333333])
    """
    inputs.check_single_curve(curve, needed_by="minimum_cost_without_rejection")
    counts = counts_of(curve)
    with np.errstate(divide="ignore", invalid="ignore"):
        break_even = _errors_saved(counts) / counts.rejected
    return xr.DataArray(
        np.where(counts.rejected > 0, break_even, np.nan),
        dims=schema.OPERATING_POINT,
        coords=curve.coords,
        name="minimum_cost_without_rejection",
        attrs={"long_name": "smallest rejection cost at which not rejecting is as cheap"},
    )


def _errors_saved(counts: Counts[NDArray[Any]]) -> Any:
    """Count how many fewer errors each point keeps than if nothing were rejected."""
    share = counts.misclassified / counts.n
    if np.ptp(share) < inputs.ROUNDING:  # all points have the same labels
        return counts.misclassified_rejected
    nothing = np.flatnonzero(counts.rejected == 0)
    if not nothing.size:
        raise InputError(
            "These points have different labels, so one of them must reject nothing, but all "
            f"reject a fraction of at least {counts.rejected_fraction.min():.2g}. Add a point that "
            "rejects nothing: for joint rejection that of failure probability 0."
        )
    return share[nothing[0]] * counts.n - counts.misclassified_kept


def cost_envelope(curve: xr.Dataset) -> xr.Dataset:
    r"""Find which operating point is cheapest for which range of rejection costs.

    The cost of a point is a line in :math:`\rho`; the cheapest points for :math:`\rho` in [0, 1]
    are the corners of the lower convex hull of the kept errors over r (the same corners as those of
    the upper concave envelope of the accurate kept samples). Neighbouring ranges share their end,
    where both points cost the same; points that win at a single cost only are left out.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`.

    Returns
    -------
    Dataset over `operating_point`
        The rows of `curve` that are cheapest at some cost, rejected fraction ascending, with their
        `index` in the curve, `lowest_cost` and `highest_cost`, the range of rejection costs they
        win.

    See Also
    --------
    hsreject.cheapest_operating_point : the answer for one cost.
    hsreject.plot.CostEnvelopeDisplay : draws it.

    Examples
    --------
    >>> from hsreject import cost_envelope, rejection_curve
    >>> curve = rejection_curve([True, True, False, True], [0.9, 0.5, 0.3, 0.1])
    >>> envelope = cost_envelope(curve)
    >>> envelope.index.values, envelope.lowest_cost.values, envelope.highest_cost.values
    (array([0, 2]), array([0.5, 0. ]), array([1. , 0.5]))
    """
    inputs.check_curve(curve)
    counts = counts_of(curve)
    rejected, errors, n = counts.rejected, counts.misclassified_kept, counts.n
    if (n != n[0]).any():  # points of different samples: compare shares
        rejected, errors = rejected / n, errors / n
    corners = lower_hull(rejected, errors)
    # Two neighbours cost the same where rho is minus the slope between them. Slopes rise along a
    # convex hull, so the breaks fall, and a corner wins from the break after it to the one before.
    # Corners have distinct r, so no step is 0.
    breaks = -np.diff(errors[corners]) / np.diff(rejected[corners])
    lowest = np.clip(np.append(breaks, 0.0), 0, 1)
    highest = np.clip(np.concatenate([[1.0], breaks]), 0, 1)
    wins = lowest < highest
    index = corners[wins]
    return curve.isel({schema.OPERATING_POINT: index}).assign(
        index=(schema.OPERATING_POINT, index),
        lowest_cost=(schema.OPERATING_POINT, lowest[wins]),
        highest_cost=(schema.OPERATING_POINT, highest[wins]),
    )


def lower_hull(x: NDArray[Any], y: NDArray[Any]) -> NDArray[np.intp]:
    """Find the corners of the lower convex hull of points, x ascending.

    A point is a corner of the hull only if the line through its two neighbours turns left there.
    Dropping all others at once, again and again, thins a long curve to a few points in array
    operations; the loop then decides about those one by one, going back as it drops some (Andrew's
    monotone chain). Exact for integers below about 2**31.
    """
    index = np.lexsort((y, x))
    index = index[np.append(True, np.diff(x[index]) > 0)]  # the lowest of each x
    while index.size > 2:
        turns = _turns_left(x, y, index[:-2], index[1:-1], index[2:])
        index = index[np.concatenate([[True], turns, [True]])]
        if 10 * np.count_nonzero(~turns) < index.size:
            break
    hull: list[int] = []
    for point in index.tolist():
        while len(hull) > 1 and not _turns_left(x, y, hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return np.array(hull, dtype=np.intp)


def _turns_left(x: NDArray[Any], y: NDArray[Any], a: Any, b: Any, c: Any) -> Any:
    """Tell whether the path from point a over b to c turns left; for numbers or arrays."""
    return (x[b] - x[a]) * (y[c] - y[b]) > (y[b] - y[a]) * (x[c] - x[b])
