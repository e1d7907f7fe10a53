"""Intervals of clustered samples, against counting, Wilson and the truth; bootstrap bands, against
the binomial law, groups of copies, any order."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import hsreject as hr
from hsreject.errors import InputError
from hsreject.measures.uncertainty import Clusters


def scene(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.random(n), 2)  # ties
    return rng.random(n) < 0.5 + confidence / 2, confidence


def bands_of(samples: tuple, at: list[float], **options: object) -> xr.Dataset:
    """The bands of one rejector: its difference to a classifier that is never right, A = 0."""
    correct, confidence = map(np.asarray, samples)
    wrong = np.zeros_like(correct)
    return hr.bootstrap_difference(
        correct, confidence, wrong, confidence, rejected_fraction=at, **options
    )


def band(bands: xr.Dataset) -> tuple[float, float]:
    return bands.nonrejected_accuracy_lower.item(), bands.nonrejected_accuracy_upper.item()


def test_estimates_are_those_of_the_curve() -> None:
    samples = scene(300, 0)
    fractions = [0.0, 0.1, 1 / 3, 0.5, 0.99]
    bands = bands_of(samples, fractions, n_resamples=3)
    expected = hr.accuracy_at(hr.rejection_curve(*samples), fractions)
    np.testing.assert_allclose(bands.nonrejected_accuracy, expected, rtol=1e-12)


def test_band_without_rejection_is_that_of_the_binomial_law() -> None:
    """At r = 0 the number of accurate samples of a resample is binomial(n, A)."""
    samples = scene(400, 1)
    bands = bands_of(samples, [0.0], n_resamples=4000, seed=3)
    law = stats.binom(400, samples[0].mean())
    # the 2.5 % rank of 4000 draws scatters by about 0.25 % in probability: one or two counts
    assert band(bands) == pytest.approx(law.ppf([0.025, 0.975]) / 400, abs=2 / 400)


def test_groups_of_copies_count_as_one_sample_each() -> None:
    """25 identical pixels per group: the band is that of the groups, five times as wide."""
    rng = np.random.default_rng(5)
    correct_of_group, confidence_of_group = rng.random(100) < 0.7, rng.random(100)
    samples = np.repeat(correct_of_group, 25), np.repeat(confidence_of_group, 25)
    options = {"n_resamples": 4000, "seed": 1}
    grouped = bands_of(samples, [0.0], groups=np.repeat(np.arange(100), 25), **options)
    law = stats.binom(100, correct_of_group.mean())
    assert band(grouped) == pytest.approx(law.ppf([0.025, 0.975]) / 100, abs=0.011)
    naive = bands_of(samples, [0.0], **options)
    assert np.ptp(band(grouped)) / np.ptp(band(naive)) == pytest.approx(5, rel=0.15)


def test_bands_cover_the_truth_about_as_often_as_they_say() -> None:
    """A(0.5) of confidence ~ U(0, 1), P(correct) = confidence, is 3/4."""
    rng = np.random.default_rng(2)
    covered = 0
    for seed in range(120):
        confidence = rng.random(150)
        samples = rng.random(150) < confidence, confidence
        low, high = band(bands_of(samples, [0.5], n_resamples=200, seed=seed))
        covered += low <= 0.75 <= high
    # 114 - 4 standard deviations (2.4) of a binomial count; percentiles are a little too narrow
    assert covered >= 104


def test_order_of_samples_never_matters_and_seeds_do() -> None:
    correct, confidence = scene(200, 4)
    other = np.round(confidence + np.random.default_rng(1).random(200), 1)
    group = np.random.default_rng(2).integers(0, 20, 200)
    mix = np.random.default_rng(3).permutation(200)

    def run(pick: np.ndarray, seed: int) -> list[xr.Dataset]:
        samples = correct[pick], confidence[pick], correct[pick], other[pick]
        options = {"n_resamples": 20, "seed": seed}
        return [
            hr.bootstrap_difference(*samples, **options),
            hr.bootstrap_difference(*samples, groups=group[pick], **options),
        ]

    same, moved, reseeded = run(np.arange(200), 0), run(mix, 0), run(np.arange(200), 1)
    for first, second, third in zip(same, moved, reseeded, strict=True):
        xr.testing.assert_identical(first, second)
        assert not first.equals(third)


def test_difference_is_paired() -> None:
    """Two nearly equal rejectors: the paired band is far narrower than the bands themselves."""
    correct, confidence = scene(500, 8)
    nothing = hr.bootstrap_difference(correct, confidence, correct, confidence, n_resamples=30)
    kept = nothing.isel(rejected_fraction=slice(-1))
    for ending in ("", "_lower", "_upper"):
        assert (kept["nonrejected_accuracy" + ending] == 0).all()
        assert (kept["classification_quality" + ending] == 0).all()
    nearly = confidence + 0.001 * np.random.default_rng(0).random(500)
    gain = hr.bootstrap_difference(
        correct, nearly, correct, confidence, rejected_fraction=[0.3], n_resamples=200
    )
    alone = bands_of((correct, confidence), [0.3], n_resamples=200)
    assert np.ptp(band(gain)) < np.ptp(band(alone)) / 4
    curves = [hr.rejection_curve(correct, c) for c in (nearly, confidence)]
    expected = hr.accuracy_at(curves[0], 0.3) - hr.accuracy_at(curves[1], 0.3)
    assert gain.nonrejected_accuracy.item() == pytest.approx(expected.item(), abs=1e-12)


def test_infinite_and_undefined_rejection_quality() -> None:
    """One error, first or last to go: resamples of the first reject only errors, or have none."""
    correct, confidence = np.array([False] + [True] * 9), np.arange(10) / 10
    options = {"rejected_fraction": [0.1], "n_resamples": 300}
    bands = hr.bootstrap_difference(correct, confidence, correct, -confidence, **options)
    assert bands.rejection_quality.item() == np.inf
    assert bands.rejection_quality_upper.item() == np.inf
    assert not np.isnan(bands.rejection_quality_lower)
    both = hr.bootstrap_difference(correct, confidence, correct, confidence, **options)
    assert np.isnan(both.rejection_quality)


def test_bad_resampling_is_refused() -> None:
    samples = scene(4, 0)
    for options, word in (
        ({"n_resamples": 0}, "n_resamples"),
        ({"groups": [0, 1]}, "groups"),
        ({"groups": [5, 5, 5, 5]}, "one group"),
    ):
        with pytest.raises(InputError, match=word):
            bands_of(samples, [0.1], **options)


def test_squares_above_every_threshold_are_those_of_counting() -> None:
    rng = np.random.default_rng(0)
    block, confidence = rng.integers(0, 7, 200), rng.integers(0, 30, 200) / 30
    clusters = Clusters.of(rng.random(200) < 0.7, block)
    threshold = np.append(np.unique(confidence), np.inf)
    counted = [sum((confidence[block == b] >= t).sum() ** 2 for b in range(7)) for t in threshold]
    np.testing.assert_array_equal(clusters.sums_of_squares_above(confidence, threshold), counted)


def test_independent_samples_have_the_interval_of_wilson() -> None:
    rng = np.random.default_rng(0)
    correct = rng.random(4000) < 0.9
    clusters = replace(Clusters.of(correct, np.arange(4000)), critical=1.959963984540054)
    wilson = stats.binomtest(int(correct.sum()), 4000).proportion_ci(method="wilson")
    assert clusters.interval(correct, np.ones(4000, bool)) == pytest.approx(
        tuple(wilson), abs=1e-12
    )


def test_intervals_of_clustered_errors_cover_the_truth() -> None:
    """Of 200 draws: blocks of 40 samples, each with an accuracy of its own; half are rejected."""
    rng = np.random.default_rng(0)
    covered = {"all": [], "most confident": []}
    block = np.repeat(np.arange(60), 40)
    truth = {"all": 0.85, "most confident": 0.9}
    for _ in range(200):
        accuracy = rng.beta(1.6, 0.4, 60)[block]
        sure = rng.random(block.size) < 0.5  # errors are half as frequent among them
        correct = rng.random(block.size) < 1 - (1 - accuracy) * np.where(sure, 0.5, 1)
        clusters = Clusters.of(correct, block)
        for name, chosen in (("all", np.ones_like(sure)), ("most confident", sure)):
            low, high = clusters.interval(correct, chosen)
            covered[name].append(low <= truth[name] <= high)
    assert np.mean(covered["all"]) >= 0.91
    assert np.mean(covered["most confident"]) >= 0.91
