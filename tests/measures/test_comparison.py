"""Comparison of operating points: dominance, the three cases, costs, operating sets."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import hsreject as hr
from hsreject.errors import InputError
from tests.measures import slow
from tests.measures.strategies import rejections

Drawn = tuple[np.ndarray, np.ndarray, np.ndarray]
COSTS = [Fraction(step, 40) for step in range(41)]


def points(drawn: Drawn) -> tuple[slow.Counts, slow.Counts]:
    correct, rejected_1, rejected_0 = drawn
    return slow.count(correct, rejected_1), slow.count(correct, rejected_0)


def verdict_by_costs(one: slow.Counts, zero: slow.Counts) -> str:
    """Whatever the cost, by trying many (both lines are straight: the ends decide)."""
    savings = [slow.cost(zero, rho) - slow.cost(one, rho) for rho in COSTS]
    if all(saving == 0 for saving in savings):
        return "is equal"
    if all(saving >= 0 for saving in savings):
        return "outperforms"
    if all(saving <= 0 for saving in savings):
        return "is outperformed"
    return "depends on the cost"


@given(rejections())
def test_verdict_whatever_the_cost(drawn: Drawn) -> None:
    one, zero = points(drawn)
    comparison = hr.compare(hr.OperatingPoint(*one), hr.OperatingPoint(*zero))
    assert comparison.verdict == verdict_by_costs(one, zero)
    assert comparison.saving is None


@given(rejections(), st.sampled_from(COSTS))
def test_verdict_and_saving_at_a_cost(drawn: Drawn, rho: Fraction) -> None:
    one, zero = points(drawn)
    found = hr.compare(hr.OperatingPoint(*one), hr.OperatingPoint(*zero), rejection_cost=float(rho))
    saving = slow.cost(zero, rho) - slow.cost(one, rho)
    assert found.saving == pytest.approx(float(saving), abs=1e-15)
    expected = {
        1: "outperforms", 0: "is equal", -1: "is outperformed"
    }[(saving > 0) - (saving < 0)]  # fmt: skip
    assert found.verdict == expected


@given(rejections(), st.sampled_from(COSTS))
def test_range_of_costs_in_which_the_point_is_cheaper(drawn: Drawn, rho: Fraction) -> None:
    one, zero = points(drawn)
    found = hr.compare(hr.OperatingPoint(*one), hr.OperatingPoint(*zero))
    assume(0 < rho < 1)
    cheaper = slow.cost(one, rho) < slow.cost(zero, rho)
    if found.cheaper_between is None:
        assert not cheaper
    else:
        low, high = found.cheaper_between
        assume(min(abs(float(rho) - low), abs(float(rho) - high)) > 1e-12)  # not on the border
        assert cheaper == (low < rho < high)


@given(rejections())
def test_break_even_cost_makes_both_cost_the_same(drawn: Drawn) -> None:
    one, zero = (hr.OperatingPoint(*counts) for counts in points(drawn))
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


def test_points_of_different_numbers_of_samples_compare_by_share() -> None:
    one = hr.OperatingPoint(50, 30, 5, 15)
    assert hr.compare(one, hr.OperatingPoint(100, 60, 10, 30)).verdict == "is equal"
    assert hr.compare(one, hr.OperatingPoint(99, 61, 11, 29)).verdict == "outperforms"


def test_weights_compare_up_to_rounding() -> None:
    correct, rejected = np.array([True] * 10 + [False] * 3), np.array([True, False] * 6 + [True])
    point = hr.operating_point(correct, rejected, weights=np.full(13, 0.1))
    same = hr.operating_point(correct, rejected)
    assert hr.compare(point, same).verdict == "is equal"


@given(rejections())
def test_operating_set_separates_the_three_regions(drawn: Drawn) -> None:
    """A point lies beyond a border of the set exactly when it dominates or is dominated."""
    one, zero = points(drawn)
    point, reference = hr.OperatingPoint(*one), hr.OperatingPoint(*zero)
    borders = hr.operating_set(reference, rejected_fraction=[point.rejected_fraction])
    comparison = hr.compare(point, reference)
    for name in ("nonrejected_accuracy", "classification_quality", "rejection_quality"):
        value = getattr(point, name)
        column = borders[name].isel(rejected_fraction=0)
        low, worst, _, best, high = column.values
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
    reference = hr.OperatingPoint(50, 30, 5, 15)
    middle = hr.operating_set(reference).sel(border="middle")
    quality = middle.classification_quality.dropna("rejected_fraction")
    assert quality.size > 50
    np.testing.assert_allclose(quality, 0.65, rtol=1e-12)
    at_reference = hr.operating_set(reference).sel(rejected_fraction=0.2)
    for border in ("worst", "middle", "best"):
        row = at_reference.sel(border=border)
        assert float(row.nonrejected_accuracy) == pytest.approx(0.625)
        assert float(row.rejection_quality) == pytest.approx(11 / 3)


def test_operating_set_refuses_fractions_outside_the_unit_interval() -> None:
    with pytest.raises(InputError, match=r"Write 10 % as 0\.1"):
        hr.operating_set(hr.OperatingPoint(1, 1, 1, 1), rejected_fraction=[10])
