"""The definitions of the paper as slow, obviously right loops over exact fractions."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple


class Counts(NamedTuple):
    """AN, MN, AR, MR of one operating point."""

    accurate_kept: int
    misclassified_kept: int
    accurate_rejected: int
    misclassified_rejected: int


def count(correct: Sequence[bool], rejected: Sequence[bool]) -> Counts:
    numbers = {(a, r): 0 for a in (True, False) for r in (True, False)}
    for is_correct, is_rejected in zip(correct, rejected, strict=True):
        numbers[bool(is_correct), bool(is_rejected)] += 1
    return Counts(
        numbers[True, False], numbers[False, False], numbers[True, True], numbers[False, True]
    )


def fraction(point: Counts) -> Fraction:
    return Fraction(point.accurate_rejected + point.misclassified_rejected, sum(point))


def accuracy(point: Counts) -> Fraction | None:
    kept = point.accurate_kept + point.misclassified_kept
    return Fraction(point.accurate_kept, kept) if kept else None


def quality(point: Counts) -> Fraction:
    return Fraction(point.accurate_kept + point.misclassified_rejected, sum(point))


def rejection_quality(point: Counts) -> Fraction | float | None:
    """Return phi; None where it is undefined."""
    if point.accurate_rejected + point.misclassified_rejected == 0:
        return Fraction(1)
    accurate = point.accurate_kept + point.accurate_rejected
    misclassified = point.misclassified_kept + point.misclassified_rejected
    if accurate == 0 or misclassified == 0:
        return None
    if point.accurate_rejected == 0:
        return float("inf")
    odds = Fraction(point.misclassified_rejected, point.accurate_rejected)
    return odds / Fraction(misclassified, accurate)


# the slow formula of every measure, by the name that the package gives it
MEASURES = {
    "nonrejected_accuracy": accuracy,
    "classification_quality": quality,
    "rejection_quality": rejection_quality,
}


def cost(point: Counts, rejection_cost: Fraction) -> Fraction:
    rejected = point.accurate_rejected + point.misclassified_rejected
    return (point.misclassified_kept + rejection_cost * rejected) / Fraction(sum(point))


def curve(correct: Sequence[bool], confidence: Sequence[float]) -> list[Counts]:
    thresholds = [*sorted(set(confidence)), float("inf")]
    return [count(correct, [c < t for c in confidence]) for t in thresholds]


def as_float(value: Fraction | float | None) -> float:
    return float("nan") if value is None else float(value)
