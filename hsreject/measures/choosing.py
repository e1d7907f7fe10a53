"""Choosing one operating point of a curve, and how clear the choice is.

Every choice is the row of the curve as a Dataset without dimensions, with four more variables:
`index` (its place in the curve), `criterion` (the value that decided), `margin` (how much better
that is than the next best point's) and `runner_up` (the place of that point). Among equal points
the one that rejects least is chosen, with margin 0. A curve of a single point has margin NaN and
runner-up -1. The table of :func:`hsreject.compare_rejectors` may stand for the curve: the choice is
then one of the rejectors, too, and says which.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.cost import SAME_COST, cost_curve
from hsreject.measures.single_curve import check_not_empty

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def highest_quality_point(curve: xr.Dataset) -> xr.Dataset:
    """Return the point of maximum classification quality: most right decisions.

    Its relative optimality is not negative against any other point of the curve.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`.

    Returns
    -------
    Dataset
        See :mod:`hsreject.measures.choosing`; the criterion is Q.

    Examples
    --------
    >>> from hsreject import rejection_curve
    >>> curve = rejection_curve([True, True, False, True], [0.9, 0.5, 0.3, 0.1])
    >>> chosen = highest_quality_point(curve)
    >>> float(chosen.rejected_fraction), float(chosen.margin)
    (0.0, 0.0)
    """
    return _chosen(curve, curve["classification_quality"].values, sign=-1)


def cheapest_operating_point(curve: xr.Dataset, rejection_cost: ArrayLike) -> xr.Dataset:
    """Return the point of least cost for a given rejection cost.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`.
    rejection_cost : float or sequence of float
        The paper's rho, in [0, 1].

    Returns
    -------
    Dataset
        See :mod:`hsreject.measures.choosing`; the criterion is the cost per sample. Over
        `rejection_cost` when several were given. :func:`hsreject.cost_envelope` answers every cost.

    Examples
    --------
    >>> from hsreject import rejection_curve
    >>> curve = rejection_curve([True, True, False, True], [0.9, 0.5, 0.3, 0.1])
    >>> cheapest_operating_point(curve, 0.2).rejected_fraction.item()
    0.5
    >>> cheapest_operating_point(curve, [0.2, 0.8]).index.values
    array([2, 0])
    """
    rho = inputs.cost_values(rejection_cost)
    rows = [
        _chosen(curve, cost_curve(curve, one).values, sign=1).assign_coords(rejection_cost=one)
        for one in rho.ravel()
    ]
    return rows[0] if rho.ndim == 0 else xr.concat(rows, dim=schema.REJECTION_COST)


def point_for_accuracy(curve: xr.Dataset, nonrejected_accuracy: float) -> xr.Dataset:
    """Return the point that rejects least among those with at least the wanted accuracy.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`.
    nonrejected_accuracy : float
        Wanted accuracy of the kept samples, in [0, 1].

    Returns
    -------
    Dataset
        See :mod:`hsreject.measures.choosing`; the criterion is the rejected fraction, so that the
        margin is how much more the next sufficient point rejects.

    Examples
    --------
    >>> from hsreject import rejection_curve
    >>> curve = rejection_curve([True, True, False, True], [0.9, 0.5, 0.3, 0.1])
    >>> point_for_accuracy(curve, 0.9).rejected_fraction.item()
    0.5
    """
    wanted = inputs.one_fraction(nonrejected_accuracy, name="nonrejected_accuracy")
    accuracy = curve["nonrejected_accuracy"].values
    reached = accuracy >= wanted  # NaN, everything rejected, reaches nothing
    if accuracy.size and not reached.any():
        raise InputError(
            f"No operating point keeps an accuracy of {wanted:g}: {_highest(accuracy)}. "
            "Ask for less, or improve the classifier or confidence."
        )
    return _chosen(curve, np.where(reached, curve["rejected_fraction"].values, np.inf), sign=1)


def point_for_fraction(
    curve: xr.Dataset,
    rejected_fraction: float,
    *,
    rule: Literal["nearest", "at_most", "at_least"] = "nearest",
) -> xr.Dataset:
    """Return the point nearest to a wanted rejected fraction.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`.
    rejected_fraction : float
        Wanted, in [0, 1]. Tied confidences may make it unreachable.
    rule : {"nearest", "at_most", "at_least"}
        Whether the point may reject more, less or either.

    Returns
    -------
    Dataset
        See :mod:`hsreject.measures.choosing`; the criterion is the distance to the wanted fraction.

    Examples
    --------
    >>> from hsreject import rejection_curve
    >>> curve = rejection_curve([True, True, False, True], [0.9, 0.5, 0.3, 0.1])
    >>> point_for_fraction(curve, 0.3).rejected_fraction.item()
    0.25
    """
    wanted = inputs.one_fraction(rejected_fraction, name="rejected_fraction")
    fraction = curve["rejected_fraction"].values
    allowed = {
        "nearest": np.ones(fraction.size, dtype=bool),
        "at_most": fraction <= wanted,
        "at_least": fraction >= wanted,
    }
    if rule not in allowed:
        raise InputError(f"Unknown rule '{rule}'. There are: {', '.join(allowed)}.")
    if fraction.size and not allowed[rule].any():
        raise InputError(
            f"No operating point rejects {rule.replace('_', ' ')} {wanted:g} of the samples: the "
            f"points reject from {fraction.min():.4g} to {fraction.max():.4g}."
        )
    return _chosen(curve, np.where(allowed[rule], np.abs(fraction - wanted), np.inf), sign=1)


def _highest(accuracy: NDArray[np.float64]) -> str:
    """Return the highest accuracy in words, rounded down so that asking for it succeeds."""
    known = accuracy[~np.isnan(accuracy)]
    if not known.size:
        return "none keeps anything"
    digits = 4 if known.max() < 1 - 1e-4 else 8
    return f"the highest on this curve is {math.floor(10**digits * known.max()) / 10**digits:.8g}"


def _chosen(curve: xr.Dataset, criterion: NDArray[np.float64], *, sign: int) -> xr.Dataset:
    """Return the row with the smallest `sign * criterion`, with its margin."""
    check_not_empty(curve, needed_by="choosing a point")
    loss = sign * criterion
    best = np.flatnonzero(loss <= loss.min() + SAME_COST)
    index = int(best[np.argmin(curve["rejected_fraction"].values[best])])
    others = np.delete(loss, index)
    runner_up, margin = -1, np.nan
    if others.size and np.isfinite(others.min()):
        place = int(np.argmin(others))
        gap = float(others[place] - loss[index])
        runner_up, margin = place + (place >= index), gap if gap > SAME_COST else 0.0
    return curve.isel({schema.OPERATING_POINT: index}).assign(
        index=index, criterion=criterion[index], margin=margin, runner_up=runner_up
    )
