"""What a map is asked for, and the operating point of a curve that meets it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.cost import SAME_COST
from hsreject.measures.curve import counts_of
from hsreject.measures.point import OperatingPoint
from hsreject.registry import as_float, check_keys, in_section
from hsreject.schema import REJECTION_COST

if TYPE_CHECKING:
    from numpy.typing import NDArray

ACCURACY = "accuracy"
MAX_ERROR = "max_error"
FRACTION = "fraction"
THRESHOLD = "threshold"

EVEN_COST = 0.5
"""The rejection cost at which relative optimality is 0 where two points cost the same."""

_SHARES = {  # what lies in [0, 1]: its meaning, and what to write instead of other numbers
    ACCURACY: ("the share of kept pixels that must be right", "Write 95 % as 0.95."),
    MAX_ERROR: ("the share of kept pixels that may be wrong", "Write 5 % as 0.05."),
    REJECTION_COST: (
        "the cost of a rejected pixel in units of a misclassified one",
        "Divide the cost of a rejection by that of an error.",
    ),
    FRACTION: ("the share of pixels to reject", "Write 10 % as 0.1."),
}


@dataclass(kw_only=True, frozen=True)
class Goal:
    """What decides how much of a map is rejected: exactly one of these numbers.

    Parameters
    ----------
    accuracy : float in [0, 1], optional
        Share of the kept pixels that should be right, rejecting no more than that takes.
    max_error : float above 0 and below 1, optional
        Share of the kept pixels that may be wrong: what :func:`hsreject.certify` promises.
    rejection_cost : float in [0, 1], optional
        Cost of a rejected pixel, a wrong one being 1: asks for the cheapest map.
    fraction : float in [0, 1], optional
        Share of the pixels to reject.
    threshold : float, optional
        The smallest confidence to keep.

    See Also
    --------
    hsreject.Rejector : meets it.
    hsreject.run : takes one as ``[goal]``.

    Examples
    --------
    >>> from hsreject import Goal
    >>> goal = Goal(accuracy=0.95)
    >>> goal.kind, goal.value, goal.needs_reference
    ('accuracy', 0.95, True)
    >>> Goal.from_table({"accuracy": 95})
    Traceback (most recent call last):
    hsreject.errors.ConfigError: [goal] accuracy ... lies in [0, 1] (got 95). Write 95 % as 0.95.
    """

    accuracy: float | None = None
    max_error: float | None = None
    rejection_cost: float | None = None
    fraction: float | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        requested = {field.name: getattr(self, field.name) for field in fields(self)}
        kind = only_one(requested)
        object.__setattr__(self, kind, _number(kind, requested[kind]))

    @classmethod
    def one_of(cls, requested: Mapping[str, Any]) -> Goal:
        """Pick the only goal that is not None; an error names only these."""
        kind = only_one(requested)
        return cls(**{kind: requested[kind]})

    @classmethod
    def from_table(cls, table: object) -> Goal:
        """Read the goal that the section [goal] of a configuration states."""
        kinds = tuple(_SHARES)
        with in_section("goal"):
            if not isinstance(table, Mapping):
                raise InputError(f"It must be a table, such as accuracy = 0.95 (got {table!r}).")
            check_keys(table, kinds, section="goal")
            return cls.one_of({kind: table.get(kind) for kind in kinds})

    @property
    def kind(self) -> str:
        """Which of them it is, such as "accuracy"."""
        return next(field.name for field in fields(self) if getattr(self, field.name) is not None)

    @property
    def value(self) -> float:
        """The number."""
        return float(getattr(self, self.kind))

    @property
    def needs_reference(self) -> bool:
        """Whether only pixels with a known class can tell how to reach it."""
        return self.kind in {ACCURACY, MAX_ERROR, REJECTION_COST}


def only_one(requested: Mapping[str, Any]) -> str:
    """Find the name of the only one that is not None; an error where there is no single one."""
    kinds = [kind for kind, value in requested.items() if value is not None]
    if len(kinds) != 1:
        raise InputError(
            f"Ask for exactly one of {', '.join(requested)} "
            f"(got {' and '.join(kinds) or 'none of them'})."
        )
    return kinds[0]


def _number(kind: str, value: Any) -> float:
    """Check the value of a goal, and return it."""
    if np.ndim(value) == 0 and hasattr(value, "item"):
        value = value.item()  # a NumPy scalar, or an array of one number
    number = as_float(value)
    if math.isnan(number):
        shown = f"an array of shape {np.shape(value)}" if np.ndim(value) else repr(value)
        raise InputError(f"{kind} must be a number (got {shown}).")
    if kind == THRESHOLD:
        return number
    meaning, remedy = _SHARES[kind]
    inside = 0 < number < 1 if kind == MAX_ERROR else 0 <= number <= 1
    if not inside:
        limits = "above 0 and below 1" if kind == MAX_ERROR else "in [0, 1]"
        raise InputError(f"{kind} is {meaning} and lies {limits} (got {number:g}). {remedy}")
    return number


def choose_point(
    curve: xr.Dataset,
    *,
    fraction: float | None = None,
    accuracy: float | None = None,
    rejection_cost: float | None = None,
    coarse_cost: float = 0.0,
) -> OperatingPoint:
    """Choose the operating point of a curve that meets a goal.

    Give at most one goal. Without one, a rejection costs half an error: relative optimality is then
    not negative against any other point of the curve. Where all points have the same labels, that
    is the point of largest classification quality; points whose labels differ, as those of joint
    rejection or of several classifiers, have classification qualities that cannot be compared.
    Among equally good points the one that rejects least is chosen.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`. The table of
        :func:`hsreject.compare_rejectors` works, too: the choice is then also one of rejectors, and
        `index` leads to its name.
    fraction : float, optional
        Wanted rejected fraction, in [0, 1]: the nearest point. Tied confidences may make the
        fraction itself unreachable.
    accuracy : float, optional
        Wanted nonrejected accuracy, in [0, 1]: of the points that have at least that, the one that
        rejects least.
    rejection_cost : float, optional
        The paper's rho, in [0, 1]: the point of least cost.
    coarse_cost : float
        On a curve of :func:`hsreject.level_curve`, what a right answer costs if it is a group
        instead of a class, as a share of the rejection cost, in [0, 1].

    Returns
    -------
    OperatingPoint
        With its `threshold` and its `index` in the curve.

    See Also
    --------
    hsreject.cheapest_operating_point : by cost instead.
    hsreject.rejection_curve : the points to choose from.

    Examples
    --------
    >>> from hsreject import choose_point, rejection_curve
    >>> curve = rejection_curve([True, True, False, True], [0.9, 0.5, 0.3, 0.1])
    >>> choose_point(curve).rejected_fraction
    0.0
    >>> choose_point(curve, fraction=0.3).rejected_fraction
    0.25
    >>> choose_point(curve, accuracy=0.9).threshold
    0.5
    """
    inputs.check_curve(curve)
    requested = {FRACTION: fraction, ACCURACY: accuracy, REJECTION_COST: rejection_cost}
    if all(one is None for one in requested.values()):
        requested[REJECTION_COST] = EVEN_COST
    goal = Goal.one_of(requested)
    if goal.kind == ACCURACY:
        return _for_accuracy(curve, goal.value)
    if goal.kind == FRACTION:
        return _point_of_least(np.abs(curve["rejected_fraction"].values - goal.value), curve)
    counts = counts_of(curve)
    cost = counts.cost(goal.value)
    if coarse_cost:
        cost = cost + goal.value * coarse_cost * curve["accurate_coarse"].values / counts.n
    return _point_of_least(cost, curve)


def cheapest_operating_point(curve: xr.Dataset, rejection_cost: float) -> OperatingPoint:
    """Choose the operating point of least cost for a given rejection cost.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`.
    rejection_cost : float
        The paper's rho, in [0, 1]. :func:`hsreject.cost_envelope` answers every cost at once.

    Returns
    -------
    OperatingPoint
        As of :func:`hsreject.choose_point`.

    See Also
    --------
    hsreject.cost_envelope : the answer for every cost.
    hsreject.choose_point : by accuracy or fraction instead.

    Examples
    --------
    >>> from hsreject import cheapest_operating_point, rejection_curve
    >>> curve = rejection_curve([True, True, False, True], [0.9, 0.5, 0.3, 0.1])
    >>> cheapest = cheapest_operating_point(curve, 0.2)
    >>> cheapest.rejected_fraction, cheapest.cost(0.2)
    (0.5, 0.1)
    """
    return choose_point(curve, rejection_cost=rejection_cost)


def _for_accuracy(curve: xr.Dataset, target: float) -> OperatingPoint:
    accuracy = curve["nonrejected_accuracy"].values
    reached = accuracy >= target  # NaN, where everything is rejected, reaches nothing
    if not reached.any():
        highest, what = np.fmax.reduce(accuracy), "none keeps anything"
        if highest >= 0:  # rounded down, so that asking for it succeeds
            what = f"the highest on this curve is {math.floor(1e8 * highest) / 1e8:.8g}"
        raise InputError(
            f"No operating point keeps an accuracy of {target:g}: {what}. Ask for less, or improve "
            "the classifier or confidence."
        )
    return _point_of_least(np.where(reached, curve["rejected_fraction"].values, np.inf), curve)


def _point_of_least(loss: NDArray[np.float64], curve: xr.Dataset) -> OperatingPoint:
    """Find the point of least loss; where others differ by rounding, the one rejecting least."""
    best = np.flatnonzero(loss <= loss.min() + SAME_COST)
    index = int(best[np.argmin(curve["rejected_fraction"].values[best])])
    return OperatingPoint.from_curve(curve, index)
