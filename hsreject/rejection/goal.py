"""What a map is asked for: an accuracy, a largest error, a cost of rejections, a fraction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any

import numpy as np

from hsreject.errors import InputError
from hsreject.registry import check_keys, in_section
from hsreject.schema import REJECTION_COST

ACCURACY = "accuracy"
MAX_ERROR = "max_error"
FRACTION = "fraction"
THRESHOLD = "threshold"

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
        Cost of a rejected pixel, a wrong one being 1: the cheapest map is wanted.
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
        wishes = {field.name: getattr(self, field.name) for field in fields(self)}
        kind = _only(wishes)
        object.__setattr__(self, kind, _number(kind, wishes[kind]))

    @classmethod
    def one_of(cls, wishes: Mapping[str, Any]) -> Goal:
        """Return the only wish that is not None; an error names just these."""
        kind = _only(wishes)
        return cls(**{kind: wishes[kind]})

    @classmethod
    def from_table(cls, table: object) -> Goal:
        """Return the goal that the section [goal] of a configuration states."""
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


def _only(wishes: Mapping[str, Any]) -> str:
    given = [name for name, value in wishes.items() if value is not None]
    if len(given) != 1:
        raise InputError(
            f"Ask for exactly one of {', '.join(wishes)} "
            f"(got {' and '.join(given) or 'none of them'})."
        )
    return given[0]


def _number(kind: str, value: Any) -> float:
    """Return the value of a wish, or say why it makes no sense."""
    if np.ndim(value) == 0 and hasattr(value, "item"):
        value = value.item()  # a NumPy scalar, or an array of one number
    if isinstance(value, bool) or not isinstance(value, Real) or math.isnan(value):
        shown = f"an array of shape {np.shape(value)}" if np.ndim(value) else repr(value)
        raise InputError(f"{kind} must be a number (got {shown}).")
    number = float(value)
    if kind == THRESHOLD:
        return number
    meaning, remedy = _SHARES[kind]
    inside = 0 < number < 1 if kind == MAX_ERROR else 0 <= number <= 1
    if not inside:
        limits = "above 0 and below 1" if kind == MAX_ERROR else "in [0, 1]"
        raise InputError(f"{kind} is {meaning} and lies {limits} (got {number:g}). {remedy}")
    return number
