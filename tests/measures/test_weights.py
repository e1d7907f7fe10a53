"""Sample weights stand for repetitions: whole weights give what repeated samples give, exactly."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import InputError

RANDOM = np.random.default_rng(3)
N = 60
WEIGHT = RANDOM.integers(0, 5, N)
REFERENCE = RANDOM.integers(1, 4, N)
LABEL = np.where(RANDOM.random(N) < 0.7, REFERENCE, RANDOM.integers(1, 4, N))
CORRECT = REFERENCE == LABEL
CONFIDENCE, OTHER = RANDOM.integers(1, 12, (2, N)) / 12  # with ties
GROUP = np.arange(N) // 4


def repeated(array: np.ndarray) -> np.ndarray:
    return np.repeat(array, WEIGHT)


@pytest.mark.parametrize("n_bins", [4, 15])
def test_reliability(n_bins: int) -> None:
    weighted = hr.reliability(CORRECT, CONFIDENCE, sample_weight=WEIGHT, n_bins=n_bins)
    plain = hr.reliability(repeated(CORRECT), repeated(CONFIDENCE), n_bins=n_bins)
    xr.testing.assert_allclose(weighted, plain, rtol=1e-14)
    assert weighted.n_samples.values.tolist() == plain.n_samples.values.tolist()
    error = hr.expected_calibration_error(
        CORRECT, CONFIDENCE, sample_weight=3.5 * WEIGHT, n_bins=n_bins
    )
    assert error == pytest.approx(plain.attrs["expected_calibration_error"], rel=1e-13)


@pytest.mark.parametrize("groups", [np.arange(N), GROUP])
def test_bootstrap_difference(groups: np.ndarray) -> None:
    options = {"n_resamples": 40, "seed": 5, "rejected_fraction": [0, 0.1, 0.25, 0.6]}
    samples = (CORRECT, CONFIDENCE, CORRECT, OTHER)
    weighted = hr.bootstrap_difference(*samples, groups=groups, sample_weight=WEIGHT, **options)
    plain = hr.bootstrap_difference(*map(repeated, samples), groups=repeated(groups), **options)
    xr.testing.assert_identical(weighted, plain)


def maps(array: np.ndarray) -> np.ndarray:
    return np.asarray(array).reshape(6, 10)


def test_evaluation() -> None:
    weighted = hr.evaluate(
        maps(REFERENCE),
        maps(LABEL),
        maps(CONFIDENCE),
        rejected=maps(CONFIDENCE < 0.3),
        rejection_cost=0.4,
        sample_weight=maps(WEIGHT),
    )
    plain = hr.evaluate(
        repeated(REFERENCE)[None],
        repeated(LABEL)[None],
        repeated(CONFIDENCE)[None],
        rejected=repeated(CONFIDENCE < 0.3)[None],
        rejection_cost=0.4,
    )
    for name in ("accurate_kept", "misclassified_rejected", "nonrejected_accuracy", "threshold"):
        np.testing.assert_array_equal(weighted.curve[name], plain.curve[name])
    assert [p.name for p in weighted.points] == [p.name for p in plain.points]
    assert [p.point.counts for p in weighted.points] == [p.point.counts for p in plain.points]
    np.testing.assert_array_equal(weighted.confusion, plain.confusion)
    assert weighted.agreement == plain.agreement


def test_samples_keep_their_weights() -> None:
    reference = np.where(maps(np.arange(N)) % 7 == 0, 0, maps(REFERENCE))
    weight = np.where(reference == 0, np.nan, maps(WEIGHT))  # no weight without a reference
    samples = hr.evaluation_samples(reference, maps(LABEL), maps(CONFIDENCE), sample_weight=weight)
    np.testing.assert_array_equal(samples.sample_weight, weight[reference > 0])
    assert hr.evaluation_samples(reference, maps(LABEL)).sample_weight is None
    with pytest.raises(InputError, match="sample_weight must be finite"):
        hr.evaluation_samples(maps(REFERENCE), maps(LABEL), sample_weight=weight)


def test_intervals_do_not_depend_on_the_unit_of_weights() -> None:
    evaluated = [
        hr.evaluate(
            maps(REFERENCE), maps(LABEL), maps(CONFIDENCE), groups=maps(GROUP), sample_weight=weight
        )
        for weight in (None, maps(np.full(N, 250.0)), maps(WEIGHT), maps(0.1 * WEIGHT))
    ]
    for one, other in (evaluated[:2], evaluated[2:]):
        for end in ("lower", "upper"):
            name = f"nonrejected_accuracy_{end}"
            np.testing.assert_allclose(one.curve[name], other.curve[name], rtol=1e-9)


def test_intervals_of_uneven_weights_are_wider() -> None:
    """A sample that stands for a hundred others is one sample."""
    even, uneven = np.ones(N), np.where(np.arange(N) % 10 == 0, 100.0, 1.0)
    widths = []
    for weight in (even, uneven):
        result = hr.evaluate(
            maps(REFERENCE),
            maps(LABEL),
            maps(CONFIDENCE),
            groups=maps(np.arange(N)),
            sample_weight=maps(weight),
        )
        low, high = result.interval(result.points[0])
        widths.append(high - low)
    assert widths[1] > 2 * widths[0]


@pytest.mark.parametrize("by", ["label", "reference"])
def test_class_curves_add_up_to_the_curve(by: str) -> None:
    curves = hr.class_curves(REFERENCE, LABEL, CONFIDENCE, by=by, sample_weight=WEIGHT)
    whole = hr.rejection_curve(CORRECT, CONFIDENCE, sample_weight=WEIGHT)
    for point in range(whole.sizes["operating_point"]):
        threshold = float(whole.threshold[point])
        kept = 0
        for curve in curves.values():
            at = int(np.searchsorted(curve.threshold.values, threshold))
            kept += int(curve.accurate_kept[at])
        assert kept == int(whole.accurate_kept[point])
    own = LABEL if by == "label" else REFERENCE
    for name, curve in curves.items():
        assert (
            curve.sizes["operating_point"]
            == 1 + np.unique(CONFIDENCE[(own == int(name.split()[-1])) & (WEIGHT > 0)]).size
        )
    with pytest.raises(InputError, match="by"):
        hr.class_curves(REFERENCE, LABEL, CONFIDENCE, by="class")
