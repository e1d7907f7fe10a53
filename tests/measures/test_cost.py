"""Costs of a curve: cheapest points, the envelope, the cost at which rejecting stops paying."""

from fractions import Fraction

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import hsreject as hr
from hsreject.errors import InputError
from tests.measures import slow
from tests.measures.strategies import Rejections, Samples, rejections, samples

RHO = st.fractions(0, 1, max_denominator=64)


@given(samples(), RHO)
def test_envelope_answers_every_cost(drawn: Samples, rho: Fraction) -> None:
    """By ranges that tile the unit interval."""
    exact = [slow.cost(point, rho) for point in slow.curve(*drawn)]
    envelope = hr.cost_envelope(hr.rejection_curve(*drawn))
    covers = (envelope.lowest_cost <= float(rho)) & (float(rho) <= envelope.highest_cost)
    winners = envelope.index.values[covers.values]
    assert 1 <= winners.size <= 2
    for winner in winners:  # two at a shared end, which is rounded: both as cheap as can be
        assert float(exact[winner]) == pytest.approx(float(min(exact)), abs=1e-15)
    assert envelope.highest_cost[0] == 1
    assert envelope.lowest_cost[-1] == 0
    np.testing.assert_array_equal(envelope.highest_cost[1:], envelope.lowest_cost[:-1])
    assert (envelope.lowest_cost < envelope.highest_cost).all()
    assert (np.diff(envelope.rejected_fraction) > 0).all()


def test_envelope_of_a_long_curve_answers_every_cost() -> None:
    rng = np.random.default_rng(5)
    confidence = rng.random(5000)
    curve = hr.rejection_curve(rng.random(5000) < confidence, confidence)
    envelope = hr.cost_envelope(curve)
    rejected = (curve.accurate_rejected + curve.misclassified_rejected).values
    errors = curve.misclassified_kept.values
    won = set()
    for rho in range(1025):  # costs in 1024ths, so that sums are whole numbers
        cost = 1024 * errors + rho * rejected
        covers = (envelope.lowest_cost <= rho / 1024) & (rho / 1024 <= envelope.highest_cost)
        winners = envelope.index.values[covers.values]
        assert (cost[winners] == cost.min()).all()
        won |= set(winners.tolist())
    assert len(won) > 20


@given(samples())
def test_minimum_cost_without_rejection(drawn: Samples) -> None:
    """At that cost the point and no rejection cost the same; beta of the paper says it too."""
    curve = hr.rejection_curve(*drawn)
    found = hr.minimum_cost_without_rejection(curve)
    assert found.dims == ("operating_point",)
    assert np.isnan(found[0])
    points = slow.curve(*drawn)
    for value, point in zip(found.values[1:], points[1:], strict=True):
        share = Fraction(point.misclassified_rejected, sum(point[2:]))
        assert value == float(share)
        assert slow.cost(point, share) == slow.cost(points[0], share)
    beta = hr.relative_optimality(
        curve.nonrejected_accuracy,
        curve.rejected_fraction,
        curve.nonrejected_accuracy[0],
        curve.rejected_fraction[0],
    )
    np.testing.assert_allclose(found[1:], (beta[1:] + 1) / 2, atol=1e-13)


def test_rejecting_nothing_has_the_labels_of_its_own_point() -> None:
    """Labels that become better by themselves pay at any cost, worse ones at none."""
    points = [(50, 50, 0, 0), (51, 49, 0, 0), (80, 15, 5, 0), (20, 70, 5, 5), (45, 45, 5, 5)]
    curve = hr.curve_of_points([hr.OperatingPoint(*counts) for counts in points])
    found = hr.minimum_cost_without_rejection(curve)
    by_errors = dict(zip(curve.misclassified_kept.values, found.values, strict=True))
    assert by_errors[15] == pytest.approx((50 - 15) / 5)
    assert by_errors[70] == pytest.approx((50 - 70) / 10)
    assert by_errors[45] == pytest.approx((50 - 45) / 10)
    assert np.isnan(by_errors[49])
    with pytest.raises(InputError, match=r"0\.05"):
        hr.minimum_cost_without_rejection(curve.isel(operating_point=slice(2, None)))
    with pytest.raises(InputError, match="one curve"):
        hr.minimum_cost_without_rejection(xr.concat([curve, curve], "operating_point"))


@given(st.lists(rejections(), min_size=1, max_size=6), RHO)
def test_envelope_of_separate_points(drawn: list[Rejections], rho: Fraction) -> None:
    """Points of different classifiers and numbers of samples, as joint rejection gives them."""
    points = [slow.count(correct, rejected) for correct, rejected, _ in drawn]
    curve = hr.curve_of_points([hr.OperatingPoint(*point) for point in points])
    envelope = hr.cost_envelope(curve)
    covers = (envelope.lowest_cost <= float(rho)) & (float(rho) <= envelope.highest_cost)
    winner = int(envelope.index.values[covers.values][0])
    cheapest = float(min(slow.cost(point, rho) for point in points))
    found = hr.OperatingPoint.from_curve(curve, winner).cost(float(rho))
    assert found == pytest.approx(cheapest, abs=1e-12)
