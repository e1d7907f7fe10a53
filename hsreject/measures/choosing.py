"""Choosing one operating point of a curve, and how clear the choice is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.cost import SAME_COST
from hsreject.measures.curve import counts_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def choose_point(
    curve: xr.Dataset,
    *,
    fraction: float | None = None,
    accuracy: float | None = None,
    rejection_cost: float | None = None,
) -> xr.Dataset:
    """Return the operating point of a curve that meets a wish.

    Give at most one wish. Without any, the point of largest classification quality is chosen, the
    one with most right decisions: its relative optimality is not negative against any other point
    of the curve. Among equally good points the one that rejects least is chosen.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`. The table of
        :func:`hsreject.compare_rejectors` may stand for it: the choice is then one of the
        rejectors, too, and says which.
    fraction : float, optional
        Wanted rejected fraction, in [0, 1]: the nearest point. Tied confidences may make the
        fraction itself unreachable.
    accuracy : float, optional
        Wanted nonrejected accuracy, in [0, 1]: of the points that have at least that, the one that
        rejects least.
    rejection_cost : float, optional
        The paper's rho, in [0, 1]: the point of least cost, as of :func:`cheapest_operating_point`.

    Returns
    -------
    Dataset
        The row of the curve, without dimensions, and four more variables: `index` (its place in
        the curve), `criterion` (the value that decided: classification quality, distance to the
        wanted fraction, rejected fraction, or cost per sample), `margin` (how much better that is
        than the next best point's; 0 for equally good points) and `runner_up` (the place of that
        point). A curve of a single point has margin NaN and runner-up -1.
        :meth:`hsreject.OperatingPoint.from_curve` makes an `OperatingPoint` of it.

    Examples
    --------
    >>> from hsreject import rejection_curve
    >>> curve = rejection_curve([True, True, False, True], [0.9, 0.5, 0.3, 0.1])
    >>> chosen = choose_point(curve)
    >>> float(chosen.rejected_fraction), float(chosen.margin)
    (0.0, 0.0)
    >>> choose_point(curve, fraction=0.3).rejected_fraction.item()
    0.25
    >>> choose_point(curve, accuracy=0.9).rejected_fraction.item()
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
        return cheapest_operating_point(curve, rejection_cost)
    if accuracy is not None:
        return _for_accuracy(curve, inputs.one_fraction(accuracy, name="accuracy"))
    if fraction is not None:
        wanted = inputs.one_fraction(fraction, name="fraction")
        return _chosen(curve, np.abs(curve["rejected_fraction"].values - wanted), sign=1)
    return _chosen(curve, curve["classification_quality"].values, sign=-1)


def cheapest_operating_point(curve: xr.Dataset, rejection_cost: ArrayLike) -> xr.Dataset:
    """Return the operating point of least cost for a given rejection cost.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`.
    rejection_cost : float or sequence of float
        The paper's rho, in [0, 1].

    Returns
    -------
    Dataset
        As of :func:`hsreject.choose_point`; the criterion is the cost per sample. Over
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
    inputs.check_not_empty(curve)
    rho = inputs.cost_values(rejection_cost)
    counts = counts_of(curve)
    rows = [
        _chosen(curve, counts.cost(one), sign=1).assign_coords(rejection_cost=one)
        for one in rho.ravel()
    ]
    return rows[0] if rho.ndim == 0 else xr.concat(rows, dim=schema.REJECTION_COST)


def _for_accuracy(curve: xr.Dataset, wanted: float) -> xr.Dataset:
    accuracy = curve["nonrejected_accuracy"].values
    reached = accuracy >= wanted  # NaN, where everything is rejected, reaches nothing
    if not reached.any():
        raise InputError(
            f"No operating point keeps an accuracy of {wanted:g}: {_highest(accuracy)}. "
            "Ask for less, or improve the classifier or confidence."
        )
    return _chosen(curve, np.where(reached, curve["rejected_fraction"].values, np.inf), sign=1)


def _highest(accuracy: NDArray[np.float64]) -> str:
    """Return the highest accuracy in words, rounded down so that asking for it succeeds."""
    known = accuracy[~np.isnan(accuracy)]
    if not known.size:
        return "none keeps anything"
    digits = 4 if known.max() < 1 - 1e-4 else 8
    return f"the highest on this curve is {math.floor(10**digits * known.max()) / 10**digits:.8g}"


def _chosen(curve: xr.Dataset, criterion: NDArray[np.float64], *, sign: int) -> xr.Dataset:
    """Return the row with the smallest `sign * criterion`, with its margin.

    Criteria that differ by rounding are equal: of those the row that rejects least is taken.
    """
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
