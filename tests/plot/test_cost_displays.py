"""Displays of costs against costs computed point by point."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes

import hsreject as hr
from hsreject.errors import InputError
from hsreject.plot import BreakEvenCostDisplay, CostEnvelopeDisplay, new_row


def example(n: int = 200, seed: int = 0) -> xr.Dataset:
    generator = np.random.default_rng(seed)
    confidence = generator.uniform(0, 1, n)
    return hr.rejection_curve(generator.uniform(0, 1, n) < 0.4 + 0.5 * confidence, confidence)


def line(ax: Axes, label: str) -> np.ndarray:
    (found,) = [artist for artist in ax.get_lines() if artist.get_label() == label]
    return np.asarray(found.get_xydata())


@pytest.mark.parametrize("reference", [None, hr.OperatingPoint(100, 40, 20, 40)])
def test_on_the_break_even_line_both_points_cost_the_same(
    reference: hr.OperatingPoint | None,
) -> None:
    curve = example()
    _, (ax,) = new_row(1)
    BreakEvenCostDisplay.from_curves({"a": curve}, reference=reference).plot(ax)
    drawn = line(ax, "a")
    compared = hr.OperatingPoint.from_curve(curve, 0) if reference is None else reference
    checked = 0
    for index, (fraction, rho) in enumerate(drawn):
        point = hr.OperatingPoint.from_curve(curve, index)
        assert fraction == point.rejected_fraction
        if 0 <= rho <= 1:
            assert point.cost(rho) == pytest.approx(compared.cost(rho))
            checked += 1
    assert checked > 20


def test_break_even_draws_isolated_points_as_symbols() -> None:
    _, (ax,) = new_row(1)
    curves = {"sequential": example(), "joint": example(10, seed=1)}
    BreakEvenCostDisplay.from_curves(curves, isolated=["joint"]).plot(ax)
    markers = [artist.get_marker() for artist in ax.get_lines()]
    assert markers[0] == "None"
    assert markers[1] != "None"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["sequential", "joint"]


def test_envelope_is_the_least_cost_of_all_points() -> None:
    curve = example()
    _, axes = new_row(2)
    CostEnvelopeDisplay.from_curves({"a": curve}).plot(axes)
    rho, cost = line(axes[0], "a").T
    chosen = line(axes[1], "a")[:, 1]
    points = [hr.OperatingPoint.from_curve(curve, i) for i in range(curve.sizes["operating_point"])]
    grid = np.linspace(0, 1, 101)
    least = np.min([point.cost(grid) for point in points], axis=0)
    np.testing.assert_allclose(np.interp(grid, rho, cost), least, atol=1e-12)
    by_fraction = {point.rejected_fraction: point for point in points}
    for at, lowest, fraction in zip(rho, cost, chosen, strict=True):
        assert by_fraction[fraction].cost(at) == pytest.approx(lowest)


def test_envelope_shows_its_two_limits() -> None:
    curve = example()
    _, axes = new_row(2)
    display = CostEnvelopeDisplay.from_curves(curve)
    display.plot(axes)
    errors = 1 - float(curve.nonrejected_accuracy[0])
    assert display.overall_accuracy[""] == pytest.approx(1 - errors)
    ends = [artist.get_ydata().tolist() for artist in axes[0].get_lines()]
    assert pytest.approx([errors, errors]) in ends
    assert [0.0, 1.0] in ends
    with pytest.raises(InputError, match="2 axes"):
        display.plot(new_row(3)[1])
