"""One operating point: counts, measures, degenerate cases, reconstruction, bad input."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given

import hsreject as hr
from hsreject.errors import InputError
from hsreject.measures.counts import MEASURES
from tests.measures import slow
from tests.measures.strategies import rejections

WORKED = hr.OperatingPoint(50, 30, 5, 15)
NAN, INF = float("nan"), float("inf")


def test_worked_example_of_the_paper() -> None:
    assert WORKED.n == 100
    assert WORKED.rejected_fraction == 0.2
    assert WORKED.nonrejected_accuracy == 0.625
    assert WORKED.classification_quality == 0.65
    assert WORKED.overall_accuracy == 0.55
    assert WORKED.rejection_quality == pytest.approx(11 / 3)


@given(rejections())
def test_measures_agree_with_the_slow_loop(
    drawn: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    correct, rejected, _ = drawn
    expected = slow.count(correct, rejected)
    point = hr.operating_point(correct, rejected)
    assert point == hr.OperatingPoint(*expected)
    assert point.rejected_fraction == slow.as_float(slow.fraction(expected))
    for name, formula in slow.MEASURES.items():  # at most three divisions, so a few last places
        np.testing.assert_allclose(
            getattr(point, name), slow.as_float(formula(expected)), rtol=1e-15
        )


def test_every_measure_has_an_attribute_and_a_slow_formula() -> None:
    assert set(MEASURES) == set(slow.MEASURES)
    assert all(isinstance(getattr(WORKED, name), float) for name in MEASURES)


@pytest.mark.parametrize(
    ("counts", "accuracy", "quality", "phi"),
    [
        pytest.param((3, 2, 0, 0), 0.6, 0.6, 1.0, id="nothing rejected"),
        pytest.param((0, 0, 3, 2), NAN, 0.4, 1.0, id="everything rejected"),
        pytest.param((3, 1, 0, 1), 0.75, 0.8, INF, id="only errors rejected"),
        pytest.param((2, 2, 1, 0), 0.5, 0.4, 0.0, id="only accurate samples rejected"),
        pytest.param((3, 0, 0, 2), 1.0, 1.0, INF, id="best: exactly the errors rejected"),
        pytest.param((0, 2, 3, 0), 0.0, 0.0, 0.0, id="worst: exactly the accurate rejected"),
        pytest.param((5, 0, 0, 0), 1.0, 1.0, 1.0, id="no errors, nothing rejected"),
        pytest.param((3, 0, 2, 0), 1.0, 0.6, NAN, id="no errors, some rejected"),
        pytest.param((0, 0, 5, 0), NAN, 0.0, NAN, id="no errors, everything rejected"),
        pytest.param((0, 5, 0, 0), 0.0, 0.0, 1.0, id="only errors, nothing rejected"),
        pytest.param((0, 3, 0, 2), 0.0, 0.4, NAN, id="nothing accurate, some rejected"),
        pytest.param((0, 0, 0, 5), NAN, 1.0, NAN, id="nothing accurate, everything rejected"),
    ],
)
def test_degenerate_points_have_their_documented_value(
    counts: tuple[int, int, int, int], accuracy: float, quality: float, phi: float
) -> None:
    point = hr.OperatingPoint(*counts)
    np.testing.assert_equal(point.nonrejected_accuracy, accuracy)
    np.testing.assert_equal(point.classification_quality, quality)
    np.testing.assert_equal(point.rejection_quality, phi)
    assert point.cost(1.0) == (counts[1] + counts[2] + counts[3]) / 5


def test_names_of_the_binary_decision() -> None:
    """Against the textbook definitions, from the confusion matrix of the decision."""
    kept_right, kept_wrong, gone_wrong, gone_right = 50, 30, 5, 15
    assert WORKED.precision == kept_right / (kept_right + kept_wrong)
    assert WORKED.accuracy == (kept_right + gone_right) / 100
    true_positive_rate = gone_right / (gone_right + kept_wrong)
    false_positive_rate = gone_wrong / (gone_wrong + kept_right)
    assert WORKED.positive_likelihood_ratio == pytest.approx(
        true_positive_rate / false_positive_rate
    )


def test_cost_broadcasts_and_is_the_mean_over_the_samples() -> None:
    costs = np.array([0.0, 0.25, 1.0])
    np.testing.assert_allclose(WORKED.cost(costs), [0.30, 0.35, 0.50], rtol=1e-15)
    assert isinstance(WORKED.cost(0.25), float)


@given(rejections())
def test_reconstruction_gives_back_the_counts(
    drawn: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    """Theorem 2, with the corrected matrix."""
    point = hr.operating_point(drawn[0], drawn[1])
    again = hr.OperatingPoint.from_measures(
        nonrejected_accuracy=point.nonrejected_accuracy,
        classification_quality=point.classification_quality,
        rejected_fraction=point.rejected_fraction,
        n=point.n,
    )
    assert again == point


def test_reconstruction_from_rounded_measures_keeps_fractional_counts() -> None:
    point = hr.OperatingPoint.from_measures(
        nonrejected_accuracy=0.913, classification_quality=0.88, rejected_fraction=0.1, n=10249
    )
    assert point.nonrejected_accuracy == pytest.approx(0.913)
    assert point.accurate_kept == pytest.approx(10249 * 0.913 * 0.9)


def test_impossible_measures_are_refused() -> None:
    with pytest.raises(InputError, match="No operating point of 100 samples"):
        hr.OperatingPoint.from_measures(
            nonrejected_accuracy=0.9, classification_quality=0.1, rejected_fraction=0.2, n=100
        )


def test_weights_count_like_repeated_samples() -> None:
    correct = np.array([True, False, True, False])
    rejected = np.array([False, False, True, True])
    weights = np.array([3, 1, 2, 5])
    repeated = hr.operating_point(np.repeat(correct, weights), np.repeat(rejected, weights))
    assert hr.operating_point(correct, rejected, weights=weights) == repeated
    assert hr.operating_point(correct, rejected, weights=weights / 2).n == repeated.n / 2


def test_labelled_maps_and_lazy_arrays_give_the_same_point() -> None:
    rng = np.random.default_rng(3)
    correct, rejected = rng.random((6, 7)) < 0.7, rng.random((6, 7)) < 0.2
    expected = hr.operating_point(correct, rejected)
    first = xr.DataArray(correct, dims=("y", "x"))
    second = xr.DataArray(rejected, dims=("y", "x")).transpose("x", "y")
    assert hr.operating_point(first, second) == expected
    assert hr.operating_point(da.from_array(correct, chunks=3), rejected) == expected


@pytest.mark.parametrize(
    ("correct", "rejected", "message"),
    [
        ([True, False], [True], r"correct has shape \(2,\) but rejected has shape \(1,\)"),
        ([1, 0], [True, False], "correct must be boolean .* label == reference"),
        ([True, False], [1, 0], "rejected must be boolean .* confidence < threshold"),
        ([], [], "correct is empty"),
    ],
)
def test_bad_input_has_one_clear_error(correct: list, rejected: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hr.operating_point(correct, rejected)


def test_maps_on_different_grids_are_refused() -> None:
    first = xr.DataArray(np.ones((2, 2), bool), dims=("y", "x"), coords={"x": [0.0, 10.0]})
    shifted = first.assign_coords(x=[5.0, 15.0])
    with pytest.raises(InputError, match="different grids"):
        hr.operating_point(first, shifted)
    with pytest.raises(InputError, match="dims"):
        hr.operating_point(first, first.rename(y="row"))


@pytest.mark.parametrize("cost", [-0.1, 1.1, float("nan")])
def test_rejection_costs_outside_the_unit_interval_are_refused(cost: float) -> None:
    with pytest.raises(InputError, match=r"rejection_cost must lie in \[0, 1\]"):
        WORKED.cost(cost)


@pytest.mark.parametrize("weights", [[1.0, -1.0], [1.0, float("nan")], [0, 0], ["a", "b"]])
def test_bad_weights_are_refused(weights: list) -> None:
    with pytest.raises(InputError, match="weights"):
        hr.operating_point([True, False], [True, False], weights=weights)


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(InputError, match="not negative"):
        hr.OperatingPoint(-1, 2, 0, 0)
    with pytest.raises(InputError, match="not all 0"):
        hr.OperatingPoint(0, 0, 0, 0)
