"""What a user asks of a rejector: a fraction, an accuracy, a cost, or its own dial."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

FRACTION = "fraction"
THRESHOLD = "threshold"
ACCURACY = "accuracy"
REJECTION_COST = "rejection_cost"

_MEANING = {
    FRACTION: "the share of pixels to reject",
    ACCURACY: "the share of kept pixels that must be right",
    REJECTION_COST: "the cost of a rejected pixel in units of a misclassified one",
}

_PERCENT = "Write 10 % as 0.1."
_REMEDY = {
    FRACTION: _PERCENT,
    ACCURACY: _PERCENT,
    REJECTION_COST: "Divide the cost of a rejection by that of an error.",
}


@dataclass(frozen=True)
class Goal:
    """One wish: its name and value, both checked.

    Examples
    --------
    >>> Goal.one_of({"fraction": 0.1, "threshold": None})
    Goal(name='fraction', value=0.1)
    >>> Goal.one_of({"fraction": None, "threshold": None})
    Traceback (most recent call last):
    hsreject.errors.InputError: Ask for exactly one of fraction, threshold (got none of them).
    """

    name: str
    value: float

    @classmethod
    def one_of(cls, wishes: Mapping[str, float | None]) -> Goal:
        """Return the only wish that is not None; fractions, accuracies and costs lie in [0, 1]."""
        given = {name: value for name, value in wishes.items() if value is not None}
        if len(given) != 1:
            raise InputError(
                f"Ask for exactly one of {', '.join(wishes)} "
                f"(got {' and '.join(given) or 'none of them'})."
            )
        ((name, value),) = given.items()
        return cls(name, _number(name, value))

    @property
    def needs_calibration(self) -> bool:
        """Whether only pixels with a known class can tell how to reach it."""
        return self.name in {ACCURACY, REJECTION_COST}


def _number(name: str, value: Any) -> float:
    """Return the value of a wish, or say why it makes no sense."""
    if np.ndim(value) == 0 and hasattr(value, "item"):
        value = value.item()  # a NumPy scalar, or an array of one number
    if not isinstance(value, Real):
        shown = f"an array of shape {np.shape(value)}" if np.ndim(value) else repr(value)
        raise InputError(f"{name} must be a number (got {shown}).")
    number = float(value)
    if name in _MEANING and not 0 <= number <= 1:
        raise InputError(
            f"{name} is {_MEANING[name]} and lies in [0, 1] (got {number:g}). {_REMEDY[name]}"
        )
    if math.isnan(number):
        raise InputError(f"{name} must be a number (got nan).")
    return number
