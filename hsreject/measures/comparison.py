"""Comparison of two operating points, with a rejection cost or whatever the cost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

import xarray as xr

from hsreject.measures.choosing import Goal, choose_point
from hsreject.measures.cost import SAME_COST, break_even_cost
from hsreject.measures.optimality import relative_optimality
from hsreject.measures.point import OperatingPoint
from hsreject.notebook import Shown
from hsreject.schema import OPERATING_POINT


class Verdict(StrEnum):
    """How one operating point compares with another."""

    OUTPERFORMS = "outperforms"
    OUTPERFORMED = "is outperformed"
    EQUAL = "is equal"
    DEPENDS = "depends on the cost"


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """What can be said about point 1 against the reference point 0.

    Attributes
    ----------
    verdict : Verdict
        Whatever the rejection cost in [0, 1], or at the cost that was given.
    reason : str
        The rule behind the verdict, in words.
    relative_optimality : float
        Beta of point 1 with respect to point 0.
    break_even_cost : float
        The rejection cost at which both cost the same; NaN at equal rejected fractions.
    cheaper_between : tuple of two floats, or None
        The range of rejection costs within [0, 1], ends excluded, in which point 1 is cheaper.
    saving : float or None
        Cost per sample of point 0 minus that of point 1; None when no cost was given.
    """

    verdict: Verdict
    reason: str
    relative_optimality: float
    break_even_cost: float
    cheaper_between: tuple[float, float] | None
    saving: float | None = None

    def _facts(self) -> dict[str, str]:
        facts = {
            "verdict": f"{self.verdict}",
            "reason": self.reason,
            "relative optimality": f"{self.relative_optimality:.4g}",
            "break-even cost": f"{self.break_even_cost:.4g}",
        }
        if self.cheaper_between is not None:
            low, high = self.cheaper_between
            facts["cheaper"] = f"at rejection costs between {low:.4g} and {high:.4g}"
        if self.saving is not None:
            facts["saving"] = f"{self.saving:.4g} per sample"
        return facts


def compare(
    point_1: OperatingPoint | xr.Dataset,
    point_0: OperatingPoint | xr.Dataset,
    *,
    rejection_cost: float | None = None,
) -> Comparison:
    r"""Compare an operating point, or the best one of a curve, with a reference.

    The cost :math:`MN (1-\rho) - AN \rho + n \rho` is linear in :math:`\rho`, so that point 1 is
    never costlier for any :math:`\rho` in [0, 1] exactly when it keeps **at least as many accurate
    and at most as many misclassified samples** (shares, if the numbers of samples differ). That is
    the general rule behind the three cases of the paper's section II-B: same number rejected and
    more accurate kept; same accurate kept and more rejected; same misclassified kept and fewer
    rejected, where point 1 outperforms point 0 (the paper's text says R1 outperforms R1).

    Parameters
    ----------
    point_1, point_0 : OperatingPoint or Dataset
        Point 0 is the reference. A Dataset is a curve, which stands for its cheapest point at the
        rejection cost, 1/2 where none is given; or one row of a curve.
    rejection_cost : float, optional
        In [0, 1]; decides where the comparison otherwise depends on it.

    Returns
    -------
    Comparison
        Verdict, reason, beta and the costs at which it holds.

    See Also
    --------
    hsreject.relative_optimality : the number behind the verdict.
    hsreject.operating_set : the regions as a picture.
    hsreject.bootstrap_difference : with bands.

    Examples
    --------
    >>> from hsreject import OperatingPoint, compare
    >>> some, nothing = OperatingPoint(50, 30, 5, 15), OperatingPoint(55, 45, 0, 0)
    >>> compare(some, nothing).verdict.value
    'depends on the cost'
    >>> at_cost = compare(some, nothing, rejection_cost=0.5)
    >>> at_cost.verdict.value, round(at_cost.saving, 3)
    ('outperforms', 0.05)
    """
    point_1, point_0 = (_as_point(point, rejection_cost) for point in (point_1, point_0))
    accurate = _sign_of_difference(point_1, point_0, "accurate_kept")
    misclassified = _sign_of_difference(point_1, point_0, "misclassified_kept")
    rejected = _sign_of_difference(point_1, point_0, "rejected")
    verdict, reason = _verdict(accurate, misclassified, rejected)
    measures = (
        point_1.nonrejected_accuracy,
        point_1.rejected_fraction,
        point_0.nonrejected_accuracy,
        point_0.rejected_fraction,
    )
    even = break_even_cost(*measures)
    cheaper_between, saving = None, None
    if verdict is Verdict.OUTPERFORMS:
        cheaper_between = (0.0, 1.0)
    elif verdict is Verdict.DEPENDS:
        cheaper_between = (0.0, even) if rejected > 0 else (even, 1.0)
    if rejection_cost is not None:
        rho = Goal(rejection_cost=rejection_cost).value
        saving = point_0.cost(rho) - point_1.cost(rho)
        saving = 0.0 if abs(saving) < SAME_COST else saving
        verdict, reason = _by_sign(saving), f"rejection cost {rho:g}"
    return Comparison(
        verdict, reason, relative_optimality(*measures), even, cheaper_between, saving
    )


def _as_point(point: OperatingPoint | xr.Dataset, rejection_cost: float | None) -> OperatingPoint:
    if isinstance(point, OperatingPoint):
        return point
    if isinstance(point, xr.Dataset) and OPERATING_POINT in point.dims:
        return choose_point(point, rejection_cost=rejection_cost)
    return OperatingPoint.from_curve(point)


def _sign_of_difference(point_1: OperatingPoint, point_0: OperatingPoint, name: str) -> int:
    """Find the sign of the difference of two shares: exact for counts, rounded for weights."""
    one, zero = getattr(point_1, name), getattr(point_0, name)
    difference = Fraction(one) / Fraction(point_1.n) - Fraction(zero) / Fraction(point_0.n)
    weighted = isinstance(one, float) or isinstance(zero, float)
    # sums of float64 weights agree to about 1e-16 times the square root of their number
    if weighted and abs(difference) < 1e-12:
        return 0
    return (difference > 0) - (difference < 0)


def _verdict(accurate: int, misclassified: int, rejected: int) -> tuple[Verdict, str]:
    """Find the verdict and its reason, given the signs of what changes from point 0 to 1."""
    if accurate == misclassified == 0:
        return Verdict.EQUAL, "same accurate and misclassified samples kept"
    if accurate * misclassified > 0:
        both = _more(accurate)
        return Verdict.DEPENDS, f"{both} accurate but also {both} misclassified kept"
    verdict = _by_sign(accurate - misclassified)
    if rejected == 0:
        return verdict, f"same number rejected, {_more(accurate)} accurate kept"
    if accurate == 0:
        return verdict, f"same accurate kept, {_more(rejected)} rejected"
    if misclassified == 0:
        return verdict, f"same misclassified kept, {_more(rejected)} rejected"
    return verdict, f"{_more(accurate)} accurate and {_more(misclassified)} misclassified kept"


def _more(sign: int) -> str:
    return "more" if sign > 0 else "fewer"


def _by_sign(gain: float) -> Verdict:
    if gain == 0:
        return Verdict.EQUAL
    return Verdict.OUTPERFORMS if gain > 0 else Verdict.OUTPERFORMED
