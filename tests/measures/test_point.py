"""One operating point: counts, measures, degenerate cases, reconstruction, bad input."""

import numpy as np
import pytest
import xarray as xr
from hypothesis import given

import hsreject as hr
from hsreject.errors import InputError
from hsreject.measures.point import MEASURES
from tests.measures import slow
from tests.measures.strategies import Rejections, rejections

WORKED = hr.OperatingPoint(50, 30, 5, 15)
NAN, INF = float("nan"), float("inf")


@given(rejections())
def test_measures_agree_with_the_slow_loop(drawn: Rejections) -> None:
    """And give back the counts: theorem 2, with the corrected matrix."""
    correct, rejected, _ = drawn
    expected = slow.count(correct, rejected)
    point = hr.operating_point(correct, rejected)
    assert point == hr.OperatingPoint(*expected)
    assert point.rejected_fraction == slow.as_float(slow.fraction(expected))
    for name, formula in slow.MEASURES.items():  # at most three divisions, so a few last places
        np.testing.assert_allclose(
            getattr(point, name), slow.as_float(formula(expected)), rtol=1e-15
        )
    again = hr.OperatingPoint.from_measures(
        nonrejected_accuracy=point.nonrejected_accuracy,
        classification_quality=point.classification_quality,
        rejected_fraction=point.rejected_fraction,
        n=point.n,
    )
    assert again == point


def test_every_measure_has_an_attribute_and_a_slow_formula() -> None:
    assert set(MEASURES) == set(slow.MEASURES)
    assert all(isinstance(getattr(WORKED, name), float) for name in MEASURES)


def test_degenerate_points_have_their_documented_value() -> None:
    for counts, expected, meaning in (
        ((2, 1, 1, 1), (2 / 3, 0.6, 1.5), "what is usual"),
        ((3, 2, 0, 0), (0.6, 0.6, 1.0), "nothing rejected"),
        ((0, 0, 3, 2), (NAN, 0.4, 1.0), "everything rejected"),
        ((3, 1, 0, 1), (0.75, 0.8, INF), "only errors rejected"),
        ((2, 2, 1, 0), (0.5, 0.4, 0.0), "only accurate samples rejected"),
        ((3, 0, 0, 2), (1.0, 1.0, INF), "best: exactly the errors rejected"),
        ((0, 2, 3, 0), (0.0, 0.0, 0.0), "worst: exactly the accurate rejected"),
        ((5, 0, 0, 0), (1.0, 1.0, 1.0), "no errors, nothing rejected"),
        ((3, 0, 2, 0), (1.0, 0.6, NAN), "no errors, some rejected"),
        ((0, 0, 5, 0), (NAN, 0.0, NAN), "no errors, everything rejected"),
        ((0, 5, 0, 0), (0.0, 0.0, 1.0), "only errors, nothing rejected"),
        ((0, 3, 0, 2), (0.0, 0.4, NAN), "nothing accurate, some rejected"),
        ((0, 0, 0, 5), (NAN, 1.0, NAN), "nothing accurate, everything rejected"),
    ):
        point = hr.OperatingPoint(*counts)
        found = tuple(getattr(point, name) for name in slow.MEASURES)
        np.testing.assert_equal(found, expected, err_msg=meaning)
        assert point.cost(1.0) == (counts[1] + counts[2] + counts[3]) / 5


def test_cost_broadcasts_and_is_the_mean_over_the_samples() -> None:
    costs = np.array([0.0, 0.25, 1.0])
    np.testing.assert_allclose(WORKED.cost(costs), [0.30, 0.35, 0.50], rtol=1e-15)
    assert isinstance(WORKED.cost(0.25), float)


def test_reconstruction_from_rounded_measures_keeps_fractional_counts() -> None:
    point = hr.OperatingPoint.from_measures(
        nonrejected_accuracy=0.913, classification_quality=0.88, rejected_fraction=0.1, n=10249
    )
    assert point.nonrejected_accuracy == pytest.approx(0.913)
    assert point.accurate_kept == pytest.approx(10249 * 0.913 * 0.9)
    with pytest.raises(InputError, match="100 samples"):
        hr.OperatingPoint.from_measures(
            nonrejected_accuracy=0.9, classification_quality=0.1, rejected_fraction=0.2, n=100
        )


def test_weights_count_like_repeated_samples() -> None:
    correct = np.array([True, False, True, False])
    rejected = np.array([False, False, True, True])
    weights = np.array([3, 1, 2, 5])
    repeated = hr.operating_point(np.repeat(correct, weights), np.repeat(rejected, weights))
    assert hr.operating_point(correct, rejected, sample_weight=weights) == repeated
    assert hr.operating_point(correct, rejected, sample_weight=weights / 2).n == repeated.n / 2


def test_bad_input_has_one_clear_error() -> None:
    for correct, rejected, word in (
        ([True, False], [True], r"shape \(2,\) but rejected has shape \(1,\)"),
        ([1, 2], [True, False], "label == reference"),
        ([True, False], [2, 0], "confidence < threshold"),
        ([], [], "empty"),
    ):
        with pytest.raises(InputError, match=word):
            hr.operating_point(correct, rejected)
    for weights in ([1.0, -1.0], [1.0, NAN], [0, 0], ["a", "b"]):
        with pytest.raises(InputError, match="weight"):
            hr.operating_point([True, False], [True, False], sample_weight=weights)
    for cost in (-0.1, 1.1, NAN):
        with pytest.raises(InputError, match="rejection_cost"):
            WORKED.cost(cost)
    for counts, word in (((-1, 2, 0, 0), "not negative"), ((0, 0, 0, 0), "not all 0")):
        with pytest.raises(InputError, match=word):
            hr.OperatingPoint(*counts)


def test_maps_on_different_grids_are_refused() -> None:
    first = xr.DataArray(np.ones((2, 2), bool), dims=("y", "x"), coords={"x": [0.0, 10.0]})
    shifted = first.assign_coords(x=[5.0, 15.0])
    with pytest.raises(InputError, match="different grids"):
        hr.operating_point(first, shifted)
    with pytest.raises(InputError, match="dims"):
        hr.operating_point(first, first.rename(y="row"))
