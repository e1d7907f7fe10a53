"""Choosing one operating point of a curve, and how clear the choice is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.cost import SAME_COST
from hsreject.measures.curve import counts_of
from hsreject.measures.point import OperatingPoint

if TYPE_CHECKING:
    from numpy.typing import NDArray


def choose_point(
    curve: xr.Dataset,
    *,
    fraction: float | None = None,
    accuracy: float | None = None,
    rejection_cost: float | None = None,
    coarse_cost: float = 0.0,
) -> OperatingPoint:
    """Return the operating point of a curve that meets a wish.

    Give at most one wish. Without any, the point of largest classification quality is chosen, the
    one with most right decisions: its relative optimality is not negative against any other point
    of the curve. Among equally good points the one that rejects least is chosen.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`. The table of
        :func:`hsreject.compare_rejectors` may stand for it: the choice is then one of the
        rejectors, too, and its `index` leads to the name.
    fraction : float, optional
        Wanted rejected fraction, in [0, 1]: the nearest point. Tied confidences may make the
        fraction itself unreachable.
    accuracy : float, optional
        Wanted nonrejected accuracy, in [0, 1]: of the points that have at least that, the one that
        rejects least.
    rejection_cost : float, optional
        The paper's rho, in [0, 1]: the point of least cost.
    coarse_cost : float
        On a curve of :func:`hsreject.level_curve`, what a right answer costs that is a group
        instead of a class, as a share of the rejection cost, in [0, 1].

    Returns
    -------
    OperatingPoint
        With its `threshold`, its `index` in the curve, and its `margin`: how much better it meets
        the wish than the next best point (in classification quality, distance to the wanted
        fraction, rejected fraction, or cost per sample).

    See Also
    --------
    hsreject.cheapest_operating_point : by cost instead.
    hsreject.rejection_curve : the points to choose from.

    Examples
    --------
    >>> from hsreject import choose_point
    >>> from hsreject import rejection_curve
    >>> curve = rejection_curve([True, True, False, True], [0.9, 0.5, 0.3, 0.1])
    >>> chosen = choose_point(curve)
    >>> chosen.rejected_fraction, chosen.margin
    (0.0, 0.0)
    >>> choose_point(curve, fraction=0.3).rejected_fraction
    0.25
    >>> choose_point(curve, accuracy=0.9).threshold
    0.5
    """
    wishes = {"fraction": fraction, "accuracy": accuracy, "rejection_cost": rejection_cost}
    given = [name for name, value in wishes.items() if value is not None]
    if len(given) > 1:
        raise InputError(
            f"One operating point meets one wish, but several are given: {', '.join(given)}. "
            "Give one of them, or none for the largest classification quality."
        )
    inputs.check_not_empty(curve)
    if rejection_cost is not None:
        counts, rho = counts_of(curve), inputs.one_cost(rejection_cost)
        cost = counts.cost(rho)
        if coarse_cost:
            cost = cost + rho * coarse_cost * curve["accurate_coarse"].values / counts.n
        return _chosen(curve, cost)
    if accuracy is not None:
        return _for_accuracy(curve, inputs.one_fraction(accuracy, name="accuracy"))
    if fraction is not None:
        wanted = inputs.one_fraction(fraction, name="fraction")
        return _chosen(curve, np.abs(curve["rejected_fraction"].values - wanted))
    return _chosen(curve, -curve["classification_quality"].values)


def cheapest_operating_point(curve: xr.Dataset, rejection_cost: float) -> OperatingPoint:
    """Return the operating point of least cost for a given rejection cost.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`.
    rejection_cost : float
        The paper's rho, in [0, 1]. :func:`hsreject.cost_envelope` answers every cost at once.

    Returns
    -------
    OperatingPoint
        As of :func:`hsreject.choose_point`; the margin is one of cost per sample.

    See Also
    --------
    hsreject.cost_envelope : the answer for every cost.
    hsreject.choose_point : by accuracy or fraction instead.

    Examples
    --------
    >>> from hsreject import cheapest_operating_point
    >>> from hsreject import rejection_curve
    >>> curve = rejection_curve([True, True, False, True], [0.9, 0.5, 0.3, 0.1])
    >>> cheapest = cheapest_operating_point(curve, 0.2)
    >>> cheapest.rejected_fraction, cheapest.cost(0.2)
    (0.5, 0.1)
    """
    return choose_point(curve, rejection_cost=rejection_cost)


def _for_accuracy(curve: xr.Dataset, wanted: float) -> OperatingPoint:
    accuracy = curve["nonrejected_accuracy"].values
    reached = accuracy >= wanted  # NaN, where everything is rejected, reaches nothing
    if not reached.any():
        raise InputError(
            f"No operating point keeps an accuracy of {wanted:g}: {_highest(accuracy)}. "
            "Ask for less, or improve the classifier or confidence."
        )
    return _chosen(curve, np.where(reached, curve["rejected_fraction"].values, np.inf))


def _highest(accuracy: NDArray[np.float64]) -> str:
    """Return the highest accuracy in words, rounded down so that asking for it succeeds."""
    defined = accuracy[~np.isnan(accuracy)]
    if not defined.size:
        return "none keeps anything"
    digits = 4 if defined.max() < 1 - 1e-4 else 8
    return f"the highest on this curve is {math.floor(10**digits * defined.max()) / 10**digits:.8g}"


def _chosen(curve: xr.Dataset, loss: NDArray[np.float64]) -> OperatingPoint:
    """Return the point of the smallest loss, with its margin.

    Losses that differ by rounding are equal: of those the point that rejects least is taken.
    """
    best = np.flatnonzero(loss <= loss.min() + SAME_COST)
    index = int(best[np.argmin(curve["rejected_fraction"].values[best])])
    others = np.delete(loss, index)
    others = others[np.isfinite(others)]
    gap = float(others.min() - loss[index]) if others.size else np.nan
    margin = 0.0 if gap <= SAME_COST else gap
    return replace(OperatingPoint.from_curve(curve, index), margin=margin)
