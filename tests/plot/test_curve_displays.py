"""Displays of measures: the data that artists carry, against the definitions."""

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

import hsreject as hr
from hsreject.errors import InputError
from hsreject.plot import OperatingSetDisplay, RejectionCurveDisplay, RelativeOptimalityDisplay
from hsreject.plot.style import BETTER, WORSE
from tests.measures.slow import MEASURES
from tests.plot.drawing import example, legend, line, markers, row

REFERENCE = hr.OperatingPoint(50, 30, 5, 15)


def test_large_odds_have_a_logarithmic_axis() -> None:
    correct = np.random.default_rng(0).random(4000) < 0.97
    confidence = correct + np.random.default_rng(1).normal(0, 0.4, 4000)
    *_, odds = RejectionCurveDisplay.from_curves(hr.rejection_curve(correct, confidence)).plot(
        row(3)
    )
    assert odds.get_yscale() == "log"
    low, high = odds.get_ylim()
    assert low < 1
    assert high > 10
    useless = hr.rejection_curve(correct, np.random.default_rng(2).random(4000))
    *_, odds = RejectionCurveDisplay.from_curves(useless).plot(row(3))
    assert odds.get_yscale() == "linear"


def test_curves_are_drawn_as_they_are() -> None:
    curve, three = example(), row(3)
    assert RejectionCurveDisplay.from_curves({"maximum": curve}).plot(three) == three
    for ax, measure in zip(three, MEASURES, strict=True):
        fraction, values = line(ax, "maximum").T
        expected = curve[measure].values.copy()
        expected[~np.isfinite(expected)] = np.nan
        if measure == "rejection_quality":
            expected[0] = np.nan  # nothing rejected: 1 by convention only
        np.testing.assert_array_equal(fraction, curve.rejected_fraction.values)
        np.testing.assert_array_equal(values, expected)
        assert measure.replace("_", " ") in ax.get_ylabel()


def test_the_largest_quality_or_given_points_are_marked() -> None:
    curve = example()
    axes = RejectionCurveDisplay.from_curves(curve).plot(row(3))
    ((fraction, quality),) = line(axes[1], "_marked")
    assert quality == curve.classification_quality.values.max()
    assert fraction in curve.rejected_fraction.values
    axes = RejectionCurveDisplay.from_curves({"a": curve}, marked={"a": [REFERENCE]}).plot(row(3))
    assert line(axes[0], "_marked").tolist() == [[0.2, 0.625]]
    points = {"ours": REFERENCE, "theirs": hr.OperatingPoint(40, 20, 15, 25)}
    axes = RejectionCurveDisplay.from_curves({"a": curve}, marked={"a": points}).plot(row(3))
    assert legend(axes[0]) == ["a", "ours", "theirs"]
    assert len({markers(axes[0])[name] for name in points}) == 2


def test_isolated_points_have_symbols_and_curves_have_none() -> None:
    curves = {"sequential": example(), "joint": example(8, seed=1)}
    display = RejectionCurveDisplay.from_curves(curves, marked={}, isolated=["joint"])
    ax = display.plot(row(3))[0]
    assert [symbol != "None" for symbol in markers(ax).values()] == [False, True]
    first, second = ax.get_lines()[:2]
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    assert legend(ax) == ["sequential", "joint"]


def test_bands_are_filled_between_their_limits() -> None:
    curve = hr.rejection_curve([True, False], [0.9, 0.4])  # r = 0, 0.5 and 1
    point = "operating_point"
    curve = curve.assign(
        nonrejected_accuracy_lower=(point, [0.4, 0.5, 0.6]),
        nonrejected_accuracy_upper=(point, [0.6, 0.8, 0.9]),
    )
    axes = RejectionCurveDisplay.from_curves({"a": curve}).plot(row(3))
    filled = [[c for c in ax.collections if isinstance(c, PolyCollection)] for ax in axes]
    assert [len(bands) for bands in filled] == [1, 0, 0]
    corners = {tuple(corner) for corner in filled[0][0].get_paths()[0].vertices.tolist()}
    assert corners >= {(0, 0.4), (0, 0.6), (0.5, 0.5), (0.5, 0.8), (1, 0.6), (1, 0.9)}


def test_long_curves_are_thinned_to_points_of_the_curve() -> None:
    curve = example(20_000)
    drawn = line(RejectionCurveDisplay.from_curves({"a": curve}, marked={}).plot(row(3))[1], "a")
    assert len(drawn) <= 1000
    assert drawn[[0, -1], 0].tolist() == [0, 1]
    columns = curve.rejected_fraction.values, curve.classification_quality.values
    assert set(map(tuple, drawn)) <= set(zip(*columns, strict=True))


def test_mistakes_in_curves_are_named() -> None:
    for curves, options, axes, word in (
        ({}, {}, None, "no curve"),
        ({"a": example()}, {"isolated": ["b"]}, None, "'b'"),
        ({"a": example()}, {}, row(2), "3 axes"),
    ):
        with pytest.raises(InputError, match=word):
            RejectionCurveDisplay.from_curves(curves, **options).plot(axes)


def test_relative_optimality_against_a_loop() -> None:
    curve = example(40)
    display = RelativeOptimalityDisplay.from_curve(curve)
    share = curve.accurate_kept.values / 40
    fraction = curve.rejected_fraction.values
    for i, r1 in enumerate(fraction):
        for j, r0 in enumerate(fraction):
            expected = 0.0
            if r1 > r0:
                expected = 2 * (share[i] - share[j]) / (r1 - r0) + 1
            elif r1 < r0:
                expected = -2 * (share[i] - share[j]) / (r1 - r0) - 1
            assert display.optimality[i, j] == pytest.approx(expected, abs=1e-12)


def test_the_marked_row_is_nowhere_negative() -> None:
    display = RelativeOptimalityDisplay.from_curve(example(5000))
    best = display.optimality[display.fraction.tolist().index(display.best)]
    assert best.min() >= 0
    assert len(display.fraction) in {250, 251}
    largest_q, better = hr.OperatingPoint(60, 35, 0, 5), hr.OperatingPoint(62, 30, 8, 0)
    joint = RelativeOptimalityDisplay.from_curve(hr.curve_of_points([largest_q, better]))
    best = joint.optimality[joint.fraction.tolist().index(joint.best)]
    assert joint.best == better.rejected_fraction
    assert best.min() >= 0


def test_heat_map_is_centred_on_zero_and_shows_what_it_clips() -> None:
    beyond = np.array([[0.0, 3.0], [-3.0, 0.0]])
    for display, extend in (
        (RelativeOptimalityDisplay.from_curve(example(100)), "neither"),  # stays within [-1, 1]
        (RelativeOptimalityDisplay(np.array([0.1, 0.2]), beyond, best=0.1), "both"),
    ):
        mesh = display.plot(row(1)[0]).collections[0]
        assert mesh.get_clim() == (-1, 1)
        assert mesh.colorbar.extend == extend


def filled(ax: Axes, color: str) -> PolyCollection:
    rgb = to_rgb(color)
    (found,) = [
        artist for artist in ax.collections if np.allclose(artist.get_facecolor()[0, :3], rgb)
    ]
    return found


def test_regions_are_those_that_no_cost_can_change() -> None:
    three = OperatingSetDisplay.from_point(REFERENCE).plot(row(3))
    generator = np.random.default_rng(0)
    costs = np.linspace(0.001, 0.999, 99)
    seen = set()
    for _ in range(300):
        r = generator.uniform(0.01, 0.99)
        accurate_kept = generator.uniform(max(0, 0.55 - r), min(0.55, 1 - r))
        point = hr.OperatingPoint(
            accurate_kept, 1 - r - accurate_kept, 0.55 - accurate_kept, r - 0.55 + accurate_kept
        )
        gain = REFERENCE.cost(costs) - point.cost(costs)
        verdict = "better" if (gain > 0).all() else "worse" if (gain < 0).all() else "depends"
        for ax, measure in zip(three, MEASURES, strict=True):
            place = (r, getattr(point, measure))
            if place[1] > 9.9:
                continue  # beyond the axis of rejection quality
            better = filled(ax, BETTER).get_paths()[0].contains_point(place)
            worse = filled(ax, WORSE).get_paths()[0].contains_point(place)
            assert ("better" if better else "worse" if worse else "depends") == verdict
            seen.add((measure, verdict))
    assert len(seen) == 9, "every region of every panel was tried"


def test_borders_meet_in_the_reference_point_which_is_marked() -> None:
    display = OperatingSetDisplay.from_point(REFERENCE)
    borders = display.borders.sel(rejected_fraction=0.2, border=["worst", "middle", "best"])
    three = display.plot(row(3))
    for ax, measure in zip(three, MEASURES, strict=True):
        value = getattr(REFERENCE, measure)
        np.testing.assert_allclose(borders[measure], value)
        assert [[0.2, value]] in [artist.get_xydata().tolist() for artist in ax.get_lines()]
    assert "out of reach" in legend(three[0])
    with pytest.raises(InputError, match="overall accuracy 1"):
        OperatingSetDisplay.from_point(hr.OperatingPoint(5, 0, 5, 0))
