"""Choosing an operating point: each rule against a search over all points."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import hsreject as hr
from hsreject.errors import InputError
from tests.measures import slow
from tests.measures.strategies import samples

Samples = tuple[np.ndarray, np.ndarray]


def check(chosen: object, values: list[Fraction], *, largest: bool) -> None:
    """The first of the best is chosen, and its margin is the distance to the next best."""
    sign = -1 if largest else 1
    ranked = sorted(range(len(values)), key=lambda i: (sign * values[i], i))
    assert int(chosen.index) == ranked[0]  # type: ignore[attr-defined]
    assert float(chosen.criterion) == pytest.approx(float(values[ranked[0]]))  # type: ignore[attr-defined]
    margin = abs(values[ranked[1]] - values[ranked[0]])
    assert float(chosen.margin) == pytest.approx(float(margin), abs=1e-15)  # type: ignore[attr-defined]
    assert values[int(chosen.runner_up)] == values[ranked[1]]  # type: ignore[attr-defined]
    assert int(chosen.runner_up) != ranked[0]  # type: ignore[attr-defined]


@given(samples())
def test_highest_quality(drawn: Samples) -> None:
    chosen = hr.highest_quality_point(hr.rejection_curve(*drawn))
    check(chosen, [slow.quality(point) for point in slow.curve(*drawn)], largest=True)


@given(samples(), st.integers(0, 16))
def test_cheapest(drawn: Samples, sixteenths: int) -> None:
    rho = Fraction(sixteenths, 16)  # exact in binary, so that ties stay ties
    chosen = hr.cheapest_operating_point(hr.rejection_curve(*drawn), float(rho))
    costs = [slow.cost(point, rho) for point in slow.curve(*drawn)]
    check(chosen, costs, largest=False)


@given(samples(), st.fractions(0, 1, max_denominator=10))
def test_wanted_accuracy(drawn: Samples, wanted: Fraction) -> None:
    curve = hr.rejection_curve(*drawn)
    points = slow.curve(*drawn)
    enough = [
        (slow.fraction(point), place)
        for place, point in enumerate(points)
        if (accuracy := slow.accuracy(point)) is not None and float(accuracy) >= float(wanted)
    ]
    if not enough:
        with pytest.raises(InputError, match="No operating point keeps an accuracy of"):
            hr.point_for_accuracy(curve, float(wanted))
        return
    chosen = hr.point_for_accuracy(curve, float(wanted))
    assert int(chosen.index) == enough[0][1]
    if len(enough) > 1:
        assert float(chosen.margin) == pytest.approx(float(enough[1][0] - enough[0][0]))
        assert int(chosen.runner_up) == enough[1][1]
    else:
        assert np.isnan(chosen.margin)
        assert int(chosen.runner_up) == -1


def test_wanted_fraction() -> None:
    curve = hr.rejection_curve([True] * 10, [0.0, 0.1, 0.1, 0.1, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    assert hr.point_for_fraction(curve, 0.3).rejected_fraction == 0.4
    assert hr.point_for_fraction(curve, 0.2).rejected_fraction == 0.1
    assert hr.point_for_fraction(curve, 0.3, rule="at_most").rejected_fraction == 0.1
    assert hr.point_for_fraction(curve, 0.2, rule="at_least").rejected_fraction == 0.4
    assert float(hr.point_for_fraction(curve, 0.2).margin) == pytest.approx(0.1)
    with pytest.raises(InputError, match="Unknown rule 'closest'"):
        hr.point_for_fraction(curve, 0.2, rule="closest")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="rejected_fraction must lie"):
        hr.point_for_fraction(curve, 20)
    few = hr.curve_of_points([hr.OperatingPoint(50, 30, 5, 15)])
    with pytest.raises(InputError, match=r"rejects at most 0.1 .* from 0.2 to 0.2"):
        hr.point_for_fraction(few, 0.1, rule="at_most")


def test_several_costs_give_one_row_each() -> None:
    curve = hr.rejection_curve([True, True, False, True], [0.9, 0.5, 0.3, 0.1])
    rows = hr.cheapest_operating_point(curve, [0.1, 0.9])
    assert rows.rejected_fraction.dims == ("rejection_cost",)
    assert rows.rejection_cost.values.tolist() == [0.1, 0.9]
    for one in (0.1, 0.9):
        alone = hr.cheapest_operating_point(curve, one)
        assert int(rows.sel(rejection_cost=one).index) == int(alone.index)


def test_a_single_point_has_no_runner_up() -> None:
    curve = hr.curve_of_points([hr.OperatingPoint(50, 30, 5, 15)])
    chosen = hr.highest_quality_point(curve)
    assert np.isnan(chosen.margin)
    assert int(chosen.runner_up) == -1
    assert np.isnan(chosen.threshold)


def test_separate_points_keep_their_own_totals() -> None:
    points = [hr.OperatingPoint(50, 30, 5, 15), hr.OperatingPoint(52, 40, 5, 3)]
    curve = hr.curve_of_points(points)
    for index, point in enumerate([points[1], points[0]]):
        assert hr.OperatingPoint.from_curve(curve, index) == point
        assert float(curve.rejection_quality[index]) == point.rejection_quality
        assert float(curve.classification_quality[index]) == point.classification_quality
    with pytest.raises(InputError, match="no operating points"):
        hr.curve_of_points([])


def test_among_equal_points_of_several_curves_the_one_that_rejects_least() -> None:
    more = hr.curve_of_points([hr.OperatingPoint(5, 1, 2, 2)])
    less = hr.curve_of_points([hr.OperatingPoint(6, 2, 1, 1)])
    assert more.classification_quality.item() == less.classification_quality.item()
    for order in ([more, less], [less, more]):
        chosen = hr.highest_quality_point(xr.concat(order, "operating_point"))
        assert chosen.rejected_fraction.item() == 0.2
        assert chosen.margin.item() == 0


def test_costs_that_differ_by_rounding_are_equal() -> None:
    points = [hr.OperatingPoint(20, 7, 1, 2), hr.OperatingPoint(6, 1, 15, 8)]  # both 7.9 / 30
    chosen = hr.cheapest_operating_point(hr.curve_of_points(points), 0.3)
    assert chosen.rejected_fraction.item() == 0.1
    assert chosen.margin.item() == 0
    assert hr.compare(*points, rejection_cost=0.3).saving == 0


@pytest.mark.parametrize("n_right", [3, 997, 29_999, 123_456_789])
def test_the_highest_accuracy_that_is_told_can_be_asked_for(n_right) -> None:
    curve = hr.curve_of_points([hr.OperatingPoint(n_right, 1, 0, 0)])
    with pytest.raises(InputError, match="the highest on this curve is") as caught:
        hr.point_for_accuracy(curve, 1.0)
    told = float(str(caught.value).split("curve is ")[1].split(". Ask")[0])
    assert told < 1
    assert hr.point_for_accuracy(curve, told).rejected_fraction.item() == 0


def test_what_cannot_be_chosen_from_is_refused() -> None:
    curve = hr.rejection_curve([True, False], [0.9, 0.1])
    none = curve.isel(operating_point=slice(0, 0))
    for choose in (
        hr.highest_quality_point,
        hr.cost_envelope,
        hr.relative_optimality_pairs,
        lambda points: hr.cheapest_operating_point(points, 0.3),
        lambda points: hr.point_for_accuracy(points, 0.3),
        lambda points: hr.point_for_fraction(points, 0.3),
    ):
        with pytest.raises(InputError, match="this one has no operating point"):
            choose(none)
    all_gone = hr.curve_of_points([hr.OperatingPoint(0, 0, 3, 2)])
    with pytest.raises(InputError, match="none keeps anything"):
        hr.point_for_accuracy(all_gone, 0.5)
    for choose in (hr.point_for_accuracy, hr.point_for_fraction):
        with pytest.raises(InputError, match="must be one number"):
            choose(curve, [0.1, 0.2])
        with pytest.raises(InputError, match="must be a number or several"):
            choose(curve, "a")
