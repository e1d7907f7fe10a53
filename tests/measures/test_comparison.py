"""Comparison of operating points: dominance, the three cases, costs, operating sets."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import hsreject as hr
from tests.measures import slow
from tests.measures.strategies import Rejections, rejections

COSTS = [Fraction(step, 40) for step in range(41)]


def verdict_of(savings: list[Fraction]) -> str:
    """What a point that saves this much at each cost is called."""
    if all(saving == 0 for saving in savings):
        return "is equal"
    if all(saving >= 0 for saving in savings):
        return "outperforms"
    if all(saving <= 0 for saving in savings):
        return "is outperformed"
    return "depends on the cost"


@given(rejections(), st.sampled_from(COSTS))
def test_verdict_whatever_the_cost_and_at_one(drawn: Rejections, rho: Fraction) -> None:
    """By trying many costs: both lines are straight, so the ends decide."""
    one, zero = (slow.count(drawn[0], rejected) for rejected in drawn[1:])
    savings = {cost: slow.cost(zero, cost) - slow.cost(one, cost) for cost in COSTS}
    points = hr.OperatingPoint(*one), hr.OperatingPoint(*zero)
    whatever, at_cost = hr.compare(*points), hr.compare(*points, rejection_cost=float(rho))
    assert whatever.verdict == verdict_of(list(savings.values()))
    assert whatever.saving is None
    assert at_cost.verdict == verdict_of([savings[rho]])
    assert at_cost.saving == pytest.approx(float(savings[rho]), abs=1e-15)
    assert at_cost.cheaper_between == whatever.cheaper_between
    if whatever.cheaper_between is None:
        assert savings[rho] <= 0
    elif 0 < rho < 1:
        low, high = whatever.cheaper_between
        assume(min(abs(float(rho) - low), abs(float(rho) - high)) > 1e-12)  # not on the border
        assert (savings[rho] > 0) == (low < rho < high)


@given(rejections())
def test_break_even_cost_makes_both_cost_the_same(drawn: Rejections) -> None:
    one, zero = (hr.operating_point(drawn[0], rejected) for rejected in drawn[1:])
    even = hr.break_even_cost(
        one.nonrejected_accuracy,
        one.rejected_fraction,
        zero.nonrejected_accuracy,
        zero.rejected_fraction,
    )
    if one.rejected == zero.rejected:
        assert np.isnan(even)
        return
    beta = hr.compare(one, zero).relative_optimality
    expected = (beta + 1) / 2 if one.rejected > zero.rejected else (1 - beta) / 2
    assert even == pytest.approx(expected)  # both branches of the cost relation
    lines = [point.misclassified_kept / point.n for point in (one, zero)]
    slopes = [point.rejected_fraction for point in (one, zero)]
    assert lines[0] + even * slopes[0] == pytest.approx(lines[1] + even * slopes[1])


def test_the_three_cases_and_the_general_rule() -> None:
    zero = hr.OperatingPoint(50, 30, 5, 15)
    for better, reason in {
        (52, 28, 3, 17): "same number rejected, more accurate kept",
        (50, 25, 5, 20): "same accurate kept, more rejected",
        (53, 30, 2, 15): "same misclassified kept, fewer rejected",
        (53, 28, 2, 17): "more accurate and fewer misclassified kept",
    }.items():
        one = hr.OperatingPoint(*better)
        found, turned = hr.compare(one, zero), hr.compare(zero, one)
        assert (found.verdict, found.reason) == ("outperforms", reason)
        assert turned.verdict == "is outperformed"
        assert (found.cheaper_between, turned.cheaper_between) == ((0.0, 1.0), None)
        assert hr.compare(one, one).verdict == "is equal"


def test_numbers_of_samples_and_weights_compare_by_share() -> None:
    one = hr.OperatingPoint(50, 30, 5, 15)
    assert hr.compare(one, hr.OperatingPoint(100, 60, 10, 30)).verdict == "is equal"
    assert hr.compare(one, hr.OperatingPoint(99, 61, 11, 29)).verdict == "outperforms"
    correct, rejected = np.array([True] * 10 + [False] * 3), np.array([True, False] * 6 + [True])
    weighted = hr.operating_point(
        correct, rejected, sample_weight=np.full(13, 0.1)
    )  # up to rounding
    assert hr.compare(weighted, hr.operating_point(correct, rejected)).verdict == "is equal"


@given(rejections())
def test_operating_set_separates_the_three_regions(drawn: Rejections) -> None:
    """A point lies beyond a border of the set exactly when it dominates or is dominated."""
    point, reference = (hr.operating_point(drawn[0], rejected) for rejected in drawn[1:])
    borders = hr.operating_set(reference, rejected_fraction=point.rejected_fraction)
    comparison = hr.compare(point, reference)
    for name in slow.MEASURES:
        value = getattr(point, name)
        low, worst, _, best, high = borders[name].values[:, 0]
        if np.isnan(value):
            assert np.isnan([low, worst, best, high]).all()
            continue
        slack = 1e-9 * max(1.0, 0.0 if np.isinf(value) else value)
        assert low - slack <= worst <= best + slack
        assert low - slack <= value <= high + slack
        if comparison.verdict == "depends on the cost":
            assert worst - slack <= value <= best + slack
        elif comparison.verdict == "outperforms":
            assert value >= best - slack
        elif comparison.verdict == "is outperformed":
            assert value <= worst + slack


def test_middle_of_the_operating_set_has_the_quality_of_the_reference() -> None:
    borders = hr.operating_set(hr.OperatingPoint(50, 30, 5, 15))
    quality = borders.classification_quality.sel(border="middle").dropna("rejected_fraction")
    assert quality.size > 50
    np.testing.assert_allclose(quality, 0.65, rtol=1e-12)
    for border in ("worst", "middle", "best"):
        row = borders.sel(rejected_fraction=0.2, border=border)
        assert float(row.nonrejected_accuracy) == pytest.approx(0.625)
        assert float(row.rejection_quality) == pytest.approx(11 / 3)
    with pytest.raises(hr.errors.InputError, match=r"0\.1"):  # the remedy
        hr.operating_set(hr.OperatingPoint(1, 1, 1, 1), rejected_fraction=[10])


def test_curves_and_their_rows_stand_for_points() -> None:
    good = hr.rejection_curve([True, True, False, False], [0.9, 0.8, 0.2, 0.1])
    poor = hr.rejection_curve([True, False, True, False], [0.9, 0.8, 0.2, 0.1])
    best, worse = hr.choose_point(good), hr.choose_point(poor)
    assert hr.compare(good, poor) == hr.compare(best, worse)
    assert hr.compare(good, poor).verdict == "outperforms"
    assert hr.compare(good.isel(operating_point=best.index), worse) == hr.compare(best, worse)
    # at a cost of 0.3 the poor curve is cheapest with three rejected, the good one with two
    at_cost = hr.compare(good, poor, rejection_cost=0.3)
    assert at_cost.saving == pytest.approx((3 * 0.3 - 2 * 0.3) / 4)
