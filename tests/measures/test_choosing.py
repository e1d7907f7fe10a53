"""Choosing an operating point: each rule against a search over all points."""

from fractions import Fraction

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import hsreject as hr
from hsreject.errors import InputError
from hsreject.measures.point import COUNTS
from tests.measures import slow
from tests.measures.strategies import Samples, samples


def check(chosen: hr.OperatingPoint, values: list[Fraction], *, largest: bool) -> None:
    """The first of the best is chosen."""
    assert chosen.index == values.index(max(values) if largest else min(values))


@given(samples(), st.integers(0, 16))
def test_largest_quality_without_a_wish_and_least_cost(drawn: Samples, sixteenths: int) -> None:
    curve, points = hr.rejection_curve(*drawn), slow.curve(*drawn)
    check(hr.choose_point(curve), [slow.quality(point) for point in points], largest=True)
    rho = Fraction(sixteenths, 16)  # exact in binary, so that ties stay ties
    chosen = hr.choose_point(curve, rejection_cost=float(rho))
    check(chosen, [slow.cost(point, rho) for point in points], largest=False)


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
        with pytest.raises(InputError, match="accuracy"):
            hr.choose_point(curve, accuracy=float(wanted))
        return
    chosen = hr.choose_point(curve, accuracy=float(wanted))
    assert chosen.index == enough[0][1]


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 4).filter(any), min_size=1, max_size=6))
def test_without_a_wish_no_point_is_better_whatever_its_labels(drawn: list[slow.Counts]) -> None:
    """Points of several classifiers, and of several numbers of samples."""
    points = [hr.OperatingPoint(*counts) for counts in drawn]
    curve = hr.curve_of_points(points)
    chosen = hr.choose_point(curve)
    for point in points:
        assert hr.compare(point, chosen).verdict != "outperforms"
        assert hr.compare(point, chosen, rejection_cost=0.5).verdict != "outperforms"
    assert hr.relative_optimality_pairs(curve)[chosen.index].min() >= -1e-12


def test_wanted_fraction() -> None:
    curve = hr.rejection_curve([True] * 10, [0.0, 0.1, 0.1, 0.1, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    assert hr.choose_point(curve, fraction=0.3).rejected_fraction == 0.4
    assert hr.choose_point(curve, fraction=0.2).rejected_fraction == 0.1


def test_what_is_chosen_is_an_operating_point_that_knows_its_row() -> None:
    correct, confidence = np.array([True, True, False, True]), np.array([0.9, 0.5, 0.3, 0.1])
    curve = hr.rejection_curve(correct, confidence)
    chosen = hr.choose_point(curve, fraction=0.5)
    assert chosen == hr.operating_point(correct, confidence < chosen.threshold)
    row = curve.isel(operating_point=chosen.index)
    for name in curve:
        assert chosen[name] == row[name].item()
    assert chosen == hr.OperatingPoint.from_curve(row)
    again = hr.curve_of_points([chosen, hr.operating_point(correct, confidence < 0)])
    np.testing.assert_array_equal(again.threshold, [np.nan, 0.5])


def test_among_equal_points_of_several_curves_the_one_that_rejects_least() -> None:
    more = hr.curve_of_points([hr.OperatingPoint(5, 1, 2, 2)])
    less = hr.curve_of_points([hr.OperatingPoint(6, 2, 1, 1)])
    assert more.classification_quality.item() == less.classification_quality.item()
    for order in ([more, less], [less, more]):
        chosen = hr.choose_point(xr.concat(order, "operating_point"))
        assert chosen.rejected_fraction == 0.2


def test_costs_that_differ_by_rounding_are_equal() -> None:
    points = [hr.OperatingPoint(20, 7, 1, 2), hr.OperatingPoint(6, 1, 15, 8)]  # both 7.9 / 30
    chosen = hr.cheapest_operating_point(hr.curve_of_points(points), 0.3)
    assert chosen.rejected_fraction == 0.1
    assert hr.compare(*points, rejection_cost=0.3).saving == 0


def test_the_highest_accuracy_that_is_told_can_be_asked_for() -> None:
    for n_right in (3, 997, 29_999, 123_456_789):
        curve = hr.curve_of_points([hr.OperatingPoint(n_right, 1, 0, 0)])
        with pytest.raises(InputError, match="highest") as caught:
            hr.choose_point(curve, accuracy=1.0)
        told = float(str(caught.value).split("curve is ")[1].split(". Ask")[0])
        assert told < 1
        assert hr.choose_point(curve, accuracy=told).rejected_fraction == 0


CURVE = hr.rejection_curve([True, False], [0.9, 0.1])
NOT_CURVES = (
    np.ones(3),
    0.9,
    xr.Dataset({"a": ("x", [1, 2])}),
    xr.Dataset({"rejected_fraction": ("operating_point", [0.1, 0.2])}),
    CURVE.isel(operating_point=0),
)


@pytest.mark.parametrize(
    "use",
    [
        hr.choose_point,
        hr.cost_envelope,
        hr.minimum_cost_without_rejection,
        hr.relative_optimality_pairs,
        hr.aurc,
        lambda curve: hr.accuracy_at(curve, 0.1),
        lambda curve: hr.cheapest_operating_point(curve, 0.1),
    ],
)
def test_what_is_no_curve_is_named(use) -> None:
    for other in NOT_CURVES:
        with pytest.raises(InputError, match="A curve is a Dataset"):
            use(other)


def test_what_is_no_operating_point_is_named() -> None:
    point = hr.OperatingPoint(1, 0, 0, 1)
    for other, word in ((0.9, "0.9"), (np.ones(3), "ndarray"), (NOT_CURVES[2], "of a")):
        for pair in ((other, point), (point, other)):
            with pytest.raises(InputError, match=f"operating point .*got .*{word}"):
                hr.compare(*pair)
        with pytest.raises(InputError, match=f"got .*{word}"):
            hr.curve_of_points([point, other])
    for count in ("5", None, [1, 2], True):
        with pytest.raises(InputError, match="misclassified_kept must be a number"):
            hr.OperatingPoint(5, count, 2, 3)
    assert hr.OperatingPoint(*(CURVE[name][1] for name in COUNTS)) == hr.choose_point(CURVE)


def test_what_cannot_be_chosen_from_is_refused() -> None:
    curve = hr.rejection_curve([True, False], [0.9, 0.1])
    none = curve.isel(operating_point=slice(0, 0))
    for choose in (hr.choose_point, hr.cost_envelope, hr.relative_optimality_pairs):
        with pytest.raises(InputError, match="no operating point"):
            choose(none)
    all_gone = hr.curve_of_points([hr.OperatingPoint(0, 0, 3, 2)])
    with pytest.raises(InputError, match="none keeps anything"):
        hr.choose_point(all_gone, accuracy=0.5)
    for wish in ("fraction", "accuracy", "rejection_cost"):
        with pytest.raises(InputError, match="no operating point"):
            hr.choose_point(none, **{wish: 0.3})
        for value in (20, "a"):
            with pytest.raises(InputError, match=wish):
                hr.choose_point(curve, **{wish: value})
    for wish in ("fraction", "rejection_cost"):
        with pytest.raises(InputError, match="array of shape"):
            hr.choose_point(curve, **{wish: [0.1, 0.2]})
    with pytest.raises(InputError, match="fraction and rejection_cost"):
        hr.choose_point(curve, fraction=0.1, rejection_cost=0.2)
