"""Displays of measures: the data that artists carry, against the definitions."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

import hsreject as hr
from hsreject.errors import InputError
from hsreject.plot import (
    OperatingSetDisplay,
    RejectionCurveDisplay,
    RelativeOptimalityDisplay,
    new_row,
)
from hsreject.plot.style import BETTER, WORSE
from tests.measures import slow


def example(n: int = 300, seed: int = 0) -> xr.Dataset:
    generator = np.random.default_rng(seed)
    confidence = generator.uniform(0, 1, n)
    return hr.rejection_curve(generator.uniform(0, 1, n) < 0.4 + 0.5 * confidence, confidence)


@pytest.fixture
def three() -> list[Axes]:
    return new_row(3)[1]


def line(ax: Axes, label: str) -> np.ndarray:
    (found,) = [artist for artist in ax.get_lines() if artist.get_label() == label]
    return np.asarray(found.get_xydata())


def test_curves_are_drawn_as_they_are(three: list[Axes]) -> None:
    curve = example()
    drawn = RejectionCurveDisplay.from_curves({"maximum": curve}).plot(three)
    assert drawn == three
    for ax, measure in zip(three, slow.MEASURES, strict=True):
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
    axes = new_row(3)[1]
    RejectionCurveDisplay.from_curves(curve).plot(axes)
    ((fraction, quality),) = line(axes[1], "_marked")
    assert quality == curve.classification_quality.values.max()
    assert fraction in curve.rejected_fraction.values
    axes = new_row(3)[1]
    points = {"a": [hr.OperatingPoint(50, 30, 5, 15)]}
    RejectionCurveDisplay.from_curves({"a": curve}, marked=points).plot(axes)
    assert line(axes[0], "_marked").tolist() == [[0.2, 0.625]]


def test_points_given_by_name_are_named_in_the_legend(three: list[Axes]) -> None:
    points = {"ours": hr.OperatingPoint(50, 30, 5, 15), "theirs": hr.OperatingPoint(40, 20, 15, 25)}
    RejectionCurveDisplay.from_curves({"a": example()}, marked={"a": points}).plot(three)
    texts = [text.get_text() for text in three[0].figure.legends[0].get_texts()]
    assert texts == ["a", "ours", "theirs"]
    markers = {artist.get_label(): artist.get_marker() for artist in three[0].get_lines()}
    assert markers["ours"] != markers["theirs"]


def test_isolated_points_have_symbols_and_curves_have_none(three: list[Axes]) -> None:
    curves = {"sequential": example(), "joint": example(8, seed=1)}
    RejectionCurveDisplay.from_curves(curves, marked={}, isolated=["joint"]).plot(three)
    markers = {artist.get_label(): artist.get_marker() for artist in three[0].get_lines()}
    assert markers["sequential"] == "None"
    assert markers["joint"] != "None"
    first, second = three[0].get_lines()[:2]
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    texts = [text.get_text() for text in three[0].get_legend().get_texts()]
    assert texts == ["sequential", "joint"]


def test_bands_are_filled_between_their_limits(three: list[Axes]) -> None:
    curve = example()
    band = xr.Dataset({"rejected_fraction": ("point", [0.1, 0.5])})
    for measure in slow.MEASURES:
        band[f"{measure}_lower"] = ("point", [0.4, 0.5])
        band[f"{measure}_upper"] = ("point", [0.6, 0.8])
    RejectionCurveDisplay.from_curves({"a": curve}, bands={"a": band}).plot(three)
    (filled,) = [c for c in three[0].collections if isinstance(c, PolyCollection)]
    corners = {tuple(corner) for corner in filled.get_paths()[0].vertices.round(6).tolist()}
    assert {(0.1, 0.4), (0.1, 0.6), (0.5, 0.5), (0.5, 0.8)} <= corners


def test_long_curves_are_thinned_to_points_of_the_curve(three: list[Axes]) -> None:
    curve = example(20_000)
    RejectionCurveDisplay.from_curves({"a": curve}, marked={}).plot(three)
    drawn = line(three[1], "a")
    assert len(drawn) <= 1000
    assert drawn[0, 0] == 0
    assert drawn[-1, 0] == 1
    points = set(
        zip(curve.rejected_fraction.values, curve.classification_quality.values, strict=True)
    )
    assert {tuple(point) for point in drawn} <= points


def test_mistakes_in_curves_are_named() -> None:
    with pytest.raises(InputError, match="no curve"):
        RejectionCurveDisplay.from_curves({})
    with pytest.raises(InputError, match="'b'"):
        RejectionCurveDisplay.from_curves({"a": example()}, isolated=["b"])
    with pytest.raises(InputError, match="3 axes"):
        RejectionCurveDisplay.from_curves({"a": example()}).plot(new_row(2)[1])


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
    row = display.optimality[display.fraction.tolist().index(display.best)]
    assert row.min() >= 0
    assert len(display.fraction) in {250, 251}


def test_heat_map_is_centred_on_zero_and_shows_what_it_clips() -> None:
    _, (ax, other) = new_row(2)
    RelativeOptimalityDisplay.from_curve(example(100)).plot(ax)
    mesh = ax.collections[0]
    assert mesh.get_clim() == (-1, 1)
    assert mesh.colorbar.extend == "neither", "one rejector never leaves [-1, 1]"
    beyond = RelativeOptimalityDisplay(
        np.array([0.1, 0.2]), np.array([[0.0, 3.0], [-3.0, 0.0]]), best=0.1
    )
    beyond.plot(other)
    assert other.collections[0].colorbar.extend == "both"


REFERENCE = hr.OperatingPoint(50, 30, 5, 15)


def test_borders_meet_in_the_reference_point() -> None:
    borders = OperatingSetDisplay.from_point(REFERENCE).borders.sel(rejected_fraction=0.2)
    for measure in slow.MEASURES:
        for border in ("worst", "middle", "best"):
            value = borders[measure].sel(border=border)
            assert float(value) == pytest.approx(getattr(REFERENCE, measure))


def filled(ax: Axes, color: str) -> PolyCollection:
    rgb = to_rgb(color)
    (found,) = [
        artist for artist in ax.collections if np.allclose(artist.get_facecolor()[0, :3], rgb)
    ]
    return found


def test_regions_are_those_that_no_cost_can_change(three: list[Axes]) -> None:
    OperatingSetDisplay.from_point(REFERENCE).plot(three)
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
        for ax, measure in zip(three, slow.MEASURES, strict=True):
            place = (r, getattr(point, measure))
            if place[1] > 9.9:
                continue  # beyond the axis of rejection quality
            better = filled(ax, BETTER).get_paths()[0].contains_point(place)
            worse = filled(ax, WORSE).get_paths()[0].contains_point(place)
            assert ("better" if better else "worse" if worse else "depends") == verdict
            seen.add((measure, verdict))
    assert len(seen) == 9, "every region of every panel was tried"


def test_operating_set_marks_the_reference_in_each_panel(three: list[Axes]) -> None:
    OperatingSetDisplay.from_point(REFERENCE).plot(three)
    for ax, measure in zip(three, slow.MEASURES, strict=True):
        ends = [artist.get_xydata().tolist() for artist in ax.get_lines()]
        assert [[0.2, getattr(REFERENCE, measure)]] in ends
    labels = [text.get_text() for text in three[0].figure.legends[0].get_texts()]
    assert "out of reach" in labels
    with pytest.raises(InputError, match="overall accuracy 1"):
        OperatingSetDisplay.from_point(hr.OperatingPoint(5, 0, 5, 0))
