"""Displays of costs against costs computed point by point."""

import numpy as np
import pytest

import hsreject as hr
from hsreject.plot import BreakEvenCostDisplay, CostEnvelopeDisplay
from tests.plot.drawing import example, legend, line, markers, row


def test_on_the_break_even_line_rejecting_costs_as_much_as_not_rejecting() -> None:
    curve = example()
    ax = BreakEvenCostDisplay.from_curves({"a": curve}).plot(row(1)[0])
    compared = hr.OperatingPoint.from_curve(curve, 0)
    checked = 0
    for index, (fraction, rho) in enumerate(line(ax, "a")):
        point = hr.OperatingPoint.from_curve(curve, index)
        assert fraction == point.rejected_fraction
        if 0 <= rho <= 1:
            assert point.cost(rho) == pytest.approx(compared.cost(rho))
            checked += 1
    assert checked > 20


def test_break_even_draws_isolated_points_as_symbols() -> None:
    curves = {"sequential": example(), "joint": example(10, seed=1)}
    ax = BreakEvenCostDisplay.from_curves(curves, isolated=["joint"]).plot(row(1)[0])
    assert [symbol != "None" for symbol in markers(ax).values()] == [False, True]
    assert legend(ax) == ["sequential", "joint"]


def test_envelope_is_the_least_cost_of_all_points_between_its_limits() -> None:
    curve = example()
    display = CostEnvelopeDisplay.from_curves({"a": curve})
    axes = display.plot(row(2))
    rho, cost = line(axes[0], "a").T
    chosen = line(axes[1], "a")[:, 1]
    points = [hr.OperatingPoint.from_curve(curve, i) for i in range(curve.sizes["operating_point"])]
    grid = np.linspace(0, 1, 101)
    least = np.min([point.cost(grid) for point in points], axis=0)
    np.testing.assert_allclose(np.interp(grid, rho, cost), least, atol=1e-12)
    by_fraction = {point.rejected_fraction: point for point in points}
    for at, lowest, fraction in zip(rho, cost, chosen, strict=True):
        assert by_fraction[fraction].cost(at) == pytest.approx(lowest)
    errors = 1 - points[0].overall_accuracy
    ends = [artist.get_ydata().tolist() for artist in axes[0].get_lines()]
    assert pytest.approx([errors, errors]) in ends
    assert [0.0, 1.0] in ends
    with pytest.raises(hr.errors.InputError, match="2 axes"):
        display.plot(row(3))
