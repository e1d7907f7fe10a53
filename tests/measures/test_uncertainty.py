"""Intervals of clumped samples, against counting, Wilson and the truth; bootstrap bands, against
the binomial law, blocks of copies, the slow way, any order."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import hsreject as hr
from hsreject.errors import InputError
from hsreject.measures.uncertainty import Clumps
from tests.measures import slow

MEASURES = list(slow.MEASURES)


def scene(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.random(n), 2)  # ties
    return rng.random(n) < 0.5 + confidence / 2, confidence


def bands_of(samples: tuple, at: list[float], **options: object) -> xr.Dataset:
    resampling = hr.Resampling(**options)
    return hr.bootstrap_curve(*samples, rejected_fraction=at, resampling=resampling)


def band(bands: xr.Dataset) -> tuple[float, float]:
    return bands.nonrejected_accuracy_lower.item(), bands.nonrejected_accuracy_upper.item()


def test_estimates_are_those_of_the_curve_and_progress_is_told() -> None:
    samples = scene(300, 0)
    fractions = [0.0, 0.1, 1 / 3, 0.5, 0.99, 1.0]
    seen: list[float] = []
    bands = hr.bootstrap_curve(
        *samples,
        rejected_fraction=fractions,
        resampling=hr.Resampling(n_resamples=3),
        progress=lambda _, done, __: seen.append(done),
    )
    assert seen == [1, 2, 3]
    curve = hr.rejection_curve(*samples)
    expected = hr.accuracy_at(curve, fractions)
    np.testing.assert_allclose(bands.nonrejected_accuracy, expected, rtol=1e-12)
    at_ends = curve.isel(operating_point=[0, -1])
    for name in MEASURES:
        ends = bands[name].isel(rejected_fraction=[0, -1])
        np.testing.assert_allclose(ends, at_ends[name], rtol=1e-12)


def test_band_without_rejection_is_that_of_the_binomial_law() -> None:
    """At r = 0 the number of accurate samples of a resample is binomial(n, A)."""
    samples = scene(400, 1)
    bands = bands_of(samples, [0.0], n_resamples=4000, confidence_level=0.9, seed=3)
    law = stats.binom(400, samples[0].mean())
    # the 5 % rank of 4000 draws scatters by about 0.35 % in probability: one or two counts
    assert band(bands) == pytest.approx(law.ppf([0.05, 0.95]) / 400, abs=2 / 400)


def test_blocks_of_copies_count_as_one_sample_each() -> None:
    """25 identical pixels per block: the band is that of the blocks, five times as wide."""
    rng = np.random.default_rng(5)
    block = np.arange(100)
    correct_of_block, confidence_of_block = rng.random(100) < 0.7, rng.random(100)
    inside = np.arange(25)
    row = (5 * (block // 10)[:, None] + inside[None, :] // 5).ravel()
    column = (5 * (block % 10)[:, None] + inside[None, :] % 5).ravel()
    samples = np.repeat(correct_of_block, 25), np.repeat(confidence_of_block, 25)
    options = {"n_resamples": 4000, "confidence_level": 0.9, "seed": 1}
    blocked = bands_of(samples, [0.0], groups=(row // 5, column // 5), **options)
    law = stats.binom(100, correct_of_block.mean())
    assert blocked.attrs["n_blocks"] == 100
    assert band(blocked) == pytest.approx(law.ppf([0.05, 0.95]) / 100, abs=0.011)
    naive = bands_of(samples, [0.0], **options)
    assert np.ptp(band(blocked)) / np.ptp(band(naive)) == pytest.approx(5, rel=0.15)


def test_each_resample_is_the_curve_of_the_drawn_samples() -> None:
    """With one resample both bounds are that resample: draw it the slow way."""
    correct, confidence = scene(60, 7)
    order = np.lexsort((correct, confidence))
    fractions = [0.0, 0.3, 0.6]
    bands = bands_of((correct, confidence), fractions, n_resamples=1, seed=9)
    weights = next(hr.Resampling(n_resamples=1, seed=9).weights(None, 60))
    drawn = np.repeat(order, weights)
    assert drawn.size == 60
    expected = hr.accuracy_at(hr.rejection_curve(correct[drawn], confidence[drawn]), fractions)
    np.testing.assert_allclose(bands.nonrejected_accuracy_lower, expected, rtol=1e-12)
    np.testing.assert_allclose(bands.nonrejected_accuracy_upper, expected, rtol=1e-12)


def test_bands_cover_the_truth_about_as_often_as_they_say() -> None:
    """A(0.5) of confidence ~ U(0, 1), P(correct) = confidence, is 3/4."""
    rng = np.random.default_rng(2)
    covered = 0
    for seed in range(120):
        confidence = rng.random(150)
        samples = rng.random(150) < confidence, confidence
        low, high = band(bands_of(samples, [0.5], n_resamples=100, confidence_level=0.8, seed=seed))
        covered += low <= 0.75 <= high
    # 96 +- 4 standard deviations (4.4) of a binomial count
    assert 78 <= covered <= 114


def test_order_of_samples_never_matters_and_seeds_do() -> None:
    correct, confidence = scene(200, 4)
    other = np.round(confidence + np.random.default_rng(1).random(200), 1)
    where = np.random.default_rng(2).integers(0, 20, (2, 200))
    mix = np.random.default_rng(3).permutation(200)

    def run(pick: np.ndarray, seed: int) -> list[xr.Dataset]:
        blocks = tuple(axis[pick] // 6 for axis in where)
        spatial = hr.Resampling(n_resamples=20, seed=seed, groups=blocks)
        plain = hr.Resampling(n_resamples=20, seed=seed)
        samples = correct[pick], confidence[pick]
        return [
            hr.bootstrap_curve(*samples, resampling=plain),
            hr.bootstrap_curve(*samples, resampling=spatial),
            hr.bootstrap_difference(*samples, correct[pick], other[pick], resampling=plain),
            hr.bootstrap_difference(*samples, correct[pick], other[pick], resampling=spatial),
        ]

    same, moved, reseeded = run(np.arange(200), 0), run(mix, 0), run(np.arange(200), 1)
    for first, second, third in zip(same, moved, reseeded, strict=True):
        xr.testing.assert_identical(first, second)
        assert not first.drop_attrs().equals(third.drop_attrs())


def test_difference_is_paired() -> None:
    """Two nearly equal rejectors: the paired band is far narrower than the bands themselves."""
    correct, confidence = scene(500, 8)
    nothing = hr.bootstrap_difference(
        correct, confidence, correct, confidence, resampling=hr.Resampling(n_resamples=30)
    )
    kept = nothing.isel(rejected_fraction=slice(-1))
    for ending in ("", "_lower", "_upper"):
        assert (kept["nonrejected_accuracy" + ending] == 0).all()
        assert (kept["classification_quality" + ending] == 0).all()
    nearly = confidence + 0.001 * np.random.default_rng(0).random(500)
    resampling = hr.Resampling(n_resamples=200)
    gain = hr.bootstrap_difference(
        correct, nearly, correct, confidence, rejected_fraction=[0.3], resampling=resampling
    )
    alone = bands_of((correct, confidence), [0.3], n_resamples=200)
    assert np.ptp(band(gain)) < np.ptp(band(alone)) / 4
    curves = [hr.rejection_curve(correct, c) for c in (nearly, confidence)]
    expected = hr.accuracy_at(curves[0], 0.3) - hr.accuracy_at(curves[1], 0.3)
    assert gain.nonrejected_accuracy.item() == pytest.approx(expected.item(), abs=1e-12)


def test_infinite_and_undefined_rejection_quality() -> None:
    """One error, first to go: most resamples reject only errors; those without it have none."""
    samples = np.array([False] + [True] * 9), np.arange(10) / 10
    bands = bands_of(samples, [0.1], n_resamples=300)
    assert bands.rejection_quality.item() == np.inf
    assert bands.rejection_quality_upper.item() == np.inf
    assert not np.isnan(bands.rejection_quality_lower)
    perfect = bands_of(([True] * 5, np.arange(5)), [0.4], n_resamples=5)
    assert np.isnan(perfect.rejection_quality_lower)


def test_bad_resampling_is_refused() -> None:
    for options, word in (
        ({"n_resamples": 0}, "n_resamples"),
        ({"confidence_level": 95}, "confidence_level"),
    ):
        with pytest.raises(InputError, match=word):
            hr.Resampling(**options)
    correct, confidence = scene(4, 0)
    for groups, word in (
        ([0, 1], "4 samples"),
        (([0, 1, 2, 3], [0, 1]), "4 samples"),
        ([5, 5, 5, 5], "one group"),
    ):
        resampling = hr.Resampling(groups=groups)
        with pytest.raises(InputError, match=word):
            hr.bootstrap_curve(correct, confidence, resampling=resampling)


def test_squares_above_every_threshold_are_those_of_counting() -> None:
    rng = np.random.default_rng(0)
    block, confidence = rng.integers(0, 7, 200), rng.integers(0, 30, 200) / 30
    clumps = Clumps.of(rng.random(200) < 0.7, block)
    threshold = np.append(np.unique(confidence), np.inf)
    counted = [sum((confidence[block == b] >= t).sum() ** 2 for b in range(7)) for t in threshold]
    np.testing.assert_array_equal(clumps.squares_above(confidence, threshold), counted)


def test_independent_samples_have_the_interval_of_wilson() -> None:
    rng = np.random.default_rng(0)
    correct = rng.random(4000) < 0.9
    clumps = replace(Clumps.of(correct, np.arange(4000)), critical=1.959963984540054)
    wilson = stats.binomtest(int(correct.sum()), 4000).proportion_ci(method="wilson")
    assert clumps.interval(correct, np.ones(4000, bool)) == pytest.approx(tuple(wilson), abs=1e-12)


def test_intervals_of_clumped_errors_cover_the_truth() -> None:
    """Of 200 draws: blocks of 40 samples, each with an accuracy of its own; half are rejected."""
    rng = np.random.default_rng(0)
    covered = {"all": [], "surest": []}
    block = np.repeat(np.arange(60), 40)
    truth = {"all": 0.85, "surest": 0.9}
    for _ in range(200):
        accuracy = rng.beta(1.6, 0.4, 60)[block]
        sure = rng.random(block.size) < 0.5  # errors are half as frequent among them
        correct = rng.random(block.size) < 1 - (1 - accuracy) * np.where(sure, 0.5, 1)
        clumps = Clumps.of(correct, block)
        for name, chosen in (("all", np.ones_like(sure)), ("surest", sure)):
            low, high = clumps.interval(correct, chosen)
            covered[name].append(low <= truth[name] <= high)
    assert np.mean(covered["all"]) >= 0.91
    assert np.mean(covered["surest"]) >= 0.91
