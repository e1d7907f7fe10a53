"""Rejection curves: every reachable point, ties together, any order, weights, bad input."""

from itertools import product
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import hsreject as hr
from hsreject.errors import InputError
from hsreject.measures.point import MEASURES as MEASURE_TABLE
from hsreject.measures.point import Counts, Measure, share
from tests.measures import slow
from tests.measures.strategies import Samples, samples

COUNTS = slow.Counts._fields
MEASURES = ("rejected_fraction", *slow.MEASURES)


def check_point(curve: xr.Dataset, index: int, point: hr.OperatingPoint) -> None:
    """A row of a curve has the counts of the point, and every measure of it."""
    assert point == hr.OperatingPoint.from_curve(curve, index)
    for name in MEASURES:
        np.testing.assert_equal(curve[name].values[index], getattr(point, name))


@given(samples())
def test_curve_agrees_with_the_slow_loop(drawn: Samples) -> None:
    correct, confidence = drawn
    curve = hr.rejection_curve(correct, confidence)
    assert curve.threshold.values.tolist() == [*sorted(set(confidence.tolist())), np.inf]
    for index, counts in enumerate(slow.curve(correct, confidence)):
        check_point(curve, index, hr.OperatingPoint(*counts))


def test_long_curves_count_every_sample() -> None:
    """All, some or no confidences negative; with and without ties."""
    rng = np.random.default_rng(3)
    for shift, digits in product((0.0, 0.5, 1.0), (17, 4)):
        confidence = rng.random(40_000).round(digits) - shift
        correct = rng.random(40_000) < 0.7
        curve = hr.rejection_curve(correct, confidence)
        np.testing.assert_array_equal(curve.threshold, [*np.unique(confidence), np.inf])
        for index in [*range(0, curve.sizes["operating_point"], 997), -1]:
            rejected = confidence < curve.threshold.values[index]
            check_point(curve, index, hr.operating_point(correct, rejected))


def test_separate_points_keep_their_own_totals() -> None:
    points = [hr.OperatingPoint(50, 30, 5, 15), hr.OperatingPoint(52, 40, 5, 3)]
    curve = hr.curve_of_points(points)
    for index, point in enumerate(reversed(points)):
        check_point(curve, index, point)
    with pytest.raises(InputError, match="no operating points"):
        hr.curve_of_points([])


def test_other_number_types_give_the_same_curve() -> None:
    rng = np.random.default_rng(4)
    for n, dtype in product((1, 2, 3, 5000), ("float32", "float16", "int16", "uint8", "bool")):
        confidence = rng.normal(0, 3, n).astype("uint8" if dtype == "bool" else int).astype(dtype)
        correct = rng.random(n) < 0.6
        before = correct.tobytes(), confidence.tobytes()
        found = hr.rejection_curve(correct, confidence)
        xr.testing.assert_identical(found, hr.rejection_curve(correct, confidence.astype(float)))
        assert found.threshold.dtype == np.float64
        assert (correct.tobytes(), confidence.tobytes()) == before


@given(samples(), st.randoms(use_true_random=False))
def test_order_of_samples_never_matters(drawn: Samples, random: object) -> None:
    correct, confidence = drawn
    order = list(range(correct.size))
    random.shuffle(order)  # type: ignore[attr-defined]
    weights = np.linspace(0.1, 1, correct.size)
    for extra, moved in ((None, None), (weights, weights[order])):
        first = hr.rejection_curve(correct, confidence, sample_weight=extra)
        second = hr.rejection_curve(correct[order], confidence[order], sample_weight=moved)
        xr.testing.assert_identical(first, second)


@given(samples(), st.data())
def test_integer_weights_count_like_repeated_samples(drawn: Samples, data: st.DataObject) -> None:
    correct, confidence = drawn
    n = correct.size
    weights = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    if not weights.any():
        weights[0] = 1
    repeated = hr.rejection_curve(np.repeat(correct, weights), np.repeat(confidence, weights))
    weighted = hr.rejection_curve(correct, confidence, sample_weight=weights)
    halved = hr.rejection_curve(correct, confidence, sample_weight=weights / 2)
    for name in (*MEASURES, *COUNTS, "threshold"):
        np.testing.assert_array_equal(weighted[name], repeated[name])
    for name in (*MEASURES, "threshold"):  # halves are exact in binary: not even rounding differs
        np.testing.assert_array_equal(halved[name], repeated[name])


def test_both_zeros_are_one_confidence() -> None:
    for weights in (None, [1.0, 1.0, 1.0]):
        curve = hr.rejection_curve([True, False, True], [-0.0, 0.0, 1.0], sample_weight=weights)
        assert curve.rejected_fraction.values.tolist() == [0.0, 2 / 3, 1.0]
        assert not np.signbit(curve.threshold).any()


def test_weighted_curve_keeps_its_digits_from_nothing_to_everything() -> None:
    curve = hr.rejection_curve([True, True, False], [0.1, 0.5, 0.9], sample_weight=[1e17, 1.0, 3.0])
    np.testing.assert_array_equal(curve.nonrejected_accuracy[1:], [0.25, 0.0, np.nan])
    rng = np.random.default_rng(0)
    confidence, weights = rng.random(1000), rng.random(1000)
    curve = hr.rejection_curve(confidence > 0.5, confidence, sample_weight=weights)
    assert curve.accurate_kept[-1] == curve.misclassified_kept[-1] == 0
    assert curve.rejected_fraction.values[[0, -1]].tolist() == [0, 1]
    assert (np.diff(curve.rejected_fraction) > 0).all()


def test_columns_are_named_and_survive_a_file(tmp_path: Path) -> None:
    curve = hr.rejection_curve([True, False, True], [0.3, 0.2, 0.2])
    assert set(curve.data_vars) == {*COUNTS, *MEASURES, "threshold"}
    assert all(curve[name].dims == ("operating_point",) for name in curve)
    assert all("long_name" in curve[name].attrs for name in curve)
    hr.write_dataset(curve, tmp_path / "curve.nc")
    again = hr.open_dataset(tmp_path / "curve.nc")
    del again.attrs["Conventions"]
    xr.testing.assert_identical(again, curve)


def test_weights_of_stratified_samples_estimate_the_curve_of_the_map() -> None:
    """400 pixels of each of two classes, drawn 40 times: right on average, plain counts are not."""
    rng = np.random.default_rng(3)
    label = np.where(rng.random(20_000) < 0.95, 1, 2)
    confidence = rng.random(20_000)
    correct = rng.random(20_000) < np.where(label == 1, 0.9, 0.4)
    weighted, plain = [], []
    for _ in range(40):
        drawn = np.concatenate([rng.choice(np.flatnonzero(label == c), 400) for c in (1, 2)])
        weights = np.bincount(label)[label[drawn]] / 400
        samples = correct[drawn], confidence[drawn]
        weighted.append(hr.rejection_curve(*samples, sample_weight=weights).nonrejected_accuracy[0])
        plain.append(hr.rejection_curve(*samples).nonrejected_accuracy[0])
    # standard error of the mean: 0.95 * sqrt(0.9 * 0.1 / 400 / 40) = 0.0023
    assert np.mean(weighted) == pytest.approx(correct.mean(), abs=0.01)
    assert abs(np.mean(plain) - correct.mean()) > 0.15


def test_a_new_measure_is_one_property_and_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What CONTRIBUTING promises."""

    def found_errors(counts: Counts) -> object:
        return share(counts.misclassified_rejected, counts.misclassified)

    monkeypatch.setattr(Counts, "found_errors", property(found_errors), raising=False)
    monkeypatch.setitem(MEASURE_TABLE, "found_errors", Measure("found errors", "errors found"))
    correct, confidence = [True, False, False], [0.9, 0.5, 0.1]
    curve = hr.rejection_curve(correct, confidence)
    assert curve.found_errors.values.tolist() == [0.0, 0.5, 1.0, 1.0]
    assert curve.found_errors.long_name == "errors found"
    assert hr.OperatingPoint.from_curve(curve, 1).found_errors == 0.5
    bands = hr.bootstrap_difference(correct, confidence, correct, confidence, n_resamples=2)
    assert "found_errors_lower" in bands
    assert "found_errors" in hr.operating_set(hr.OperatingPoint(1, 1, 1, 1))


def test_labelled_maps_and_lazy_arrays_give_the_same_curve() -> None:
    rng = np.random.default_rng(2)
    confidence, correct = rng.random((5, 4)), rng.random((5, 4)) < 0.7
    expected = hr.rejection_curve(correct, confidence)
    maps = [xr.DataArray(array, dims=("y", "x")) for array in (correct, confidence)]
    for right, sure in (
        (maps[0], maps[1].transpose("x", "y")),
        (maps[0].chunk(x=3), maps[1].chunk(y=2)),
        (da.from_array(correct, chunks=2), confidence),
    ):
        xr.testing.assert_identical(hr.rejection_curve(right, sure), expected)
    lazy, kept = da.from_array(confidence, chunks=2), confidence > 0.5
    chosen = hr.rejection_curve(correct[kept], lazy[lazy > 0.5])  # of a size not known before
    assert chosen.accurate_kept[0] == correct[kept].sum()


def test_bad_input_has_one_clear_error() -> None:
    for correct, confidence, word in (
        ([True, False], [0.1], "shape"),
        ([1.0, 0.0], [0.1, 0.2], "boolean"),
        ([True, False], [0.1, np.nan], "1 NaN and 0 infinite of 2"),
        ([True, False], [0.1, -np.inf], "0 NaN and 1 infinite of 2"),
        ([True, False], da.from_array([0.1, np.nan]), "1 NaN"),
        ([True, False], ["a", "b"], "real numbers"),
        ([], [], "empty"),
        ([True, False], np.ma.masked_less([0.1, 0.9], 0.5), "mask"),
    ):
        with pytest.raises(InputError, match=word):
            hr.rejection_curve(correct, confidence)


def test_zeros_and_ones_are_as_good_as_booleans() -> None:
    confidence = [0.9, 0.4, 0.4, 0.1]
    wanted = hr.rejection_curve([True, False, True, False], confidence)
    assert hr.rejection_curve([1, 0, 1, 0], confidence).identical(wanted)
    assert hr.rejection_curve(np.array([1, 0, 1, 0], np.uint8), confidence).identical(wanted)
