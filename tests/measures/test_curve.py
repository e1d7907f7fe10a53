"""Rejection curves: every reachable point, ties together, any order, weights, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import hsreject as hr
from hsreject.errors import InputError
from hsreject.measures import counts
from hsreject.measures.counts import Counts, Measure, share
from tests.measures import slow
from tests.measures.strategies import samples

COUNTS = slow.Counts._fields
MEASURES = ("rejected_fraction", *slow.MEASURES)
Samples = tuple[np.ndarray, np.ndarray]


@given(samples())
def test_curve_agrees_with_the_slow_loop(drawn: Samples) -> None:
    correct, confidence = drawn
    expected = slow.curve(correct, confidence)
    curve = hr.rejection_curve(correct, confidence)
    found = list(zip(*(curve[name].values for name in COUNTS), strict=True))
    assert found == [tuple(point) for point in expected]
    for index in range(len(expected)):
        point = hr.OperatingPoint.from_curve(curve, index)
        for name in MEASURES:
            np.testing.assert_equal(curve[name].values[index], getattr(point, name))


@given(samples())
def test_each_threshold_reaches_its_point(drawn: Samples) -> None:
    correct, confidence = drawn
    curve = hr.rejection_curve(correct, confidence)
    for index, threshold in enumerate(curve.threshold.values):
        point = hr.operating_point(correct, confidence < threshold)
        assert point == hr.OperatingPoint.from_curve(curve, index)


@pytest.mark.parametrize("shift", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("digits", [17, 4])
def test_long_curves_count_every_sample(digits: int, shift: float) -> None:
    """Longer than a block; all, some or no confidences negative; with and without ties."""
    rng = np.random.default_rng(3)
    confidence = rng.random(40_000).round(digits) - shift
    correct = rng.random(40_000) < 0.7
    curve = hr.rejection_curve(correct, confidence)
    np.testing.assert_array_equal(curve.threshold, [*np.unique(confidence), np.inf])
    for index in [*range(0, curve.sizes["operating_point"], 997), -1]:
        point = hr.operating_point(correct, confidence < curve.threshold.values[index])
        assert point == hr.OperatingPoint.from_curve(curve, index)
        for name in MEASURES:
            np.testing.assert_equal(curve[name].values[index], getattr(point, name))


@pytest.mark.parametrize("shift", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("n_distinct", [7, 10**9])
@pytest.mark.parametrize("n", [1, 2, 3, 5000])
def test_single_precision_is_sorted_as_double(n: int, n_distinct: int, shift: float) -> None:
    rng = np.random.default_rng(4)
    confidence = (rng.integers(0, n_distinct, n) / n_distinct - shift).astype(np.float32)
    confidence[:1] = -0.0
    correct = rng.random(n) < 0.6
    before = confidence.tobytes()
    found = hr.rejection_curve(correct, confidence)
    xr.testing.assert_identical(found, hr.rejection_curve(correct, confidence.astype(float)))
    assert found.threshold.dtype == np.float64
    assert confidence.tobytes() == before


def test_the_samples_are_not_changed() -> None:
    correct, confidence = np.array([True, False, True]), np.array([0.5, -0.0, 0.2])
    hr.rejection_curve(correct, confidence)
    assert correct.tolist() == [True, False, True]
    assert confidence.tobytes() == np.array([0.5, -0.0, 0.2]).tobytes()


@given(samples(), st.randoms(use_true_random=False))
def test_order_of_samples_never_matters(drawn: Samples, random: object) -> None:
    correct, confidence = drawn
    order = list(range(correct.size))
    random.shuffle(order)  # type: ignore[attr-defined]
    weights = np.linspace(0.1, 1, correct.size)
    for extra, moved in ((None, None), (weights, weights[order])):
        first = hr.rejection_curve(correct, confidence, weights=extra)
        second = hr.rejection_curve(correct[order], confidence[order], weights=moved)
        xr.testing.assert_identical(first, second)


@given(samples(), st.data())
def test_integer_weights_count_like_repeated_samples(drawn: Samples, data: st.DataObject) -> None:
    correct, confidence = drawn
    n = correct.size
    weights = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    if not weights.any():
        weights[0] = 1
    repeated = hr.rejection_curve(np.repeat(correct, weights), np.repeat(confidence, weights))
    weighted = hr.rejection_curve(correct, confidence, weights=weights)
    halved = hr.rejection_curve(correct, confidence, weights=weights / 2)
    for name in (*MEASURES, *COUNTS, "threshold"):
        np.testing.assert_array_equal(weighted[name], repeated[name])
    for name in (*MEASURES, "threshold"):  # halves are exact in binary: not even rounding differs
        np.testing.assert_array_equal(halved[name], repeated[name])


@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 1.0]])
def test_both_zeros_are_one_confidence(weights: list | None) -> None:
    curve = hr.rejection_curve([True, False, True], [-0.0, 0.0, 1.0], weights=weights)
    assert curve.rejected_fraction.values.tolist() == [0.0, 2 / 3, 1.0]
    assert not np.signbit(curve.threshold).any()


def test_weights_keep_their_digits_beside_much_larger_ones() -> None:
    curve = hr.rejection_curve([True, True, False], [0.1, 0.5, 0.9], weights=[1e17, 1.0, 3.0])
    np.testing.assert_array_equal(curve.nonrejected_accuracy[1:], [0.25, 0.0, np.nan])


def test_weighted_curve_runs_strictly_from_nothing_to_everything() -> None:
    rng = np.random.default_rng(0)
    confidence, weights = rng.random(1000), rng.random(1000)
    curve = hr.rejection_curve(confidence > 0.5, confidence, weights=weights)
    assert curve.accurate_kept[-1] == curve.misclassified_kept[-1] == 0
    assert curve.rejected_fraction[0] == 0
    assert curve.rejected_fraction[-1] == 1
    assert (np.diff(curve.rejected_fraction) > 0).all()


def test_public_names_dims_and_ends() -> None:
    curve = hr.rejection_curve([True, False, True], [0.3, 0.2, 0.2])
    assert set(curve.data_vars) == {*COUNTS, *MEASURES, "threshold"}
    assert all(curve[name].dims == ("operating_point",) for name in curve)
    assert curve.sizes["operating_point"] == 3
    assert curve.rejected_fraction.values[[0, -1]].tolist() == [0.0, 1.0]
    assert curve.threshold.values.tolist() == [0.2, 0.3, np.inf]
    assert all("long_name" in curve[name].attrs for name in curve)


def test_a_new_measure_is_one_kernel_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What CONTRIBUTING promises."""

    def kernel(counts: Counts) -> object:
        return share(counts.misclassified_rejected, counts.misclassified)

    monkeypatch.setitem(counts.MEASURES, "found_errors", Measure(kernel, "share of errors found"))
    correct, confidence = [True, False, False], [0.9, 0.5, 0.1]
    curve = hr.rejection_curve(correct, confidence)
    assert curve.found_errors.values.tolist() == [0.0, 0.5, 1.0, 1.0]
    assert curve.found_errors.long_name == "share of errors found"
    bands = hr.bootstrap_curve(correct, confidence, rejected_fraction=[0.0, 1.0])
    assert bands.found_errors.values.tolist() == [0.0, 1.0]
    assert "found_errors_lower" in bands
    assert "found_errors" in hr.operating_set(hr.OperatingPoint(1, 1, 1, 1))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int16", "uint8", "bool"])
def test_other_number_types_give_the_same_curve(dtype: str) -> None:
    rng = np.random.default_rng(1)
    confidence = rng.integers(0, 2, 50).astype(dtype)
    correct = rng.random(50) < 0.6
    xr.testing.assert_identical(
        hr.rejection_curve(correct, confidence),
        hr.rejection_curve(correct, confidence.astype(float)),
    )


def test_labelled_maps_give_the_same_curve() -> None:
    rng = np.random.default_rng(2)
    confidence, correct = rng.random((5, 4)), rng.random((5, 4)) < 0.7
    maps = [xr.DataArray(array, dims=("y", "x")) for array in (correct, confidence)]
    xr.testing.assert_identical(
        hr.rejection_curve(maps[0], maps[1].transpose("x", "y")),
        hr.rejection_curve(correct, confidence),
    )


def test_curve_survives_a_netcdf_file(tmp_path: object) -> None:
    curve = hr.rejection_curve([True, False, True], [0.3, 0.2, 0.2])
    path = f"{tmp_path}/curve.nc"
    curve.to_netcdf(path, engine="h5netcdf")
    with xr.open_dataset(path, engine="h5netcdf") as again:
        xr.testing.assert_identical(again.load(), curve)


@pytest.mark.parametrize(
    ("correct", "confidence", "message"),
    [
        ([True, False], [0.1], "correct has shape .* but confidence has shape"),
        ([1.0, 0.0], [0.1, 0.2], "correct must be boolean"),
        ([True, False], [0.1, np.nan], "must be finite .found 1 NaN and 0 infinite of 2"),
        ([True, False], [0.1, -np.inf], "must be finite .found 0 NaN and 1 infinite of 2"),
        ([True, False], ["a", "b"], "confidence must hold real numbers"),
        ([True, False], [1j, 2j], "confidence must hold real numbers"),
        ([True, False], [2**60, 1], "beyond 2"),
        ([], [], "correct is empty"),
        ([True, False], np.ma.masked_less([0.1, 0.9], 0.5), "masked array with masked values"),
    ],
)
def test_bad_input_has_one_clear_error(correct: list, confidence: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        hr.rejection_curve(correct, confidence)
