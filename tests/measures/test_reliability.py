"""Expected calibration error against tables worked out by hand and against a loop over bins."""

from itertools import pairwise

import numpy as np
import pytest

import hsreject as hr


def test_by_hand() -> None:
    # bins of width 0.2: two samples in (0.4, 0.6], three in (0.8, 1]
    probability = [0.5, 0.6, 0.9, 1.0, 0.95]
    correct = [True, False, True, True, False]
    table = hr.reliability(correct, probability, n_bins=5)
    assert table["n_samples"].values.tolist() == [2, 3]
    np.testing.assert_allclose(table["mean_probability"], [0.55, 0.95])
    np.testing.assert_allclose(table["accuracy"], [1 / 2, 2 / 3])
    expected = (2 * 0.05 + 3 * (0.95 - 2 / 3)) / 5
    assert hr.expected_calibration_error(correct, probability, n_bins=5) == pytest.approx(expected)


@pytest.mark.parametrize("binning", ["width", "count"])
def test_against_a_loop_over_bins(binning) -> None:
    generator = np.random.default_rng(0)
    probability = generator.uniform(0, 1, 500)
    correct = generator.uniform(0, 1, 500) < probability**2
    if binning == "width":
        edges = np.linspace(0, 1, 11)
    else:
        edges = np.sort(probability)[np.arange(-1, 500, 50)]
        edges[0] = 0.0
    expected = 0.0
    for low, high in pairwise(edges):
        inside = (probability > low) & (probability <= high)
        expected += inside.sum() * abs(correct[inside].mean() - probability[inside].mean()) / 500
    found = hr.expected_calibration_error(correct, probability, n_bins=10, binning=binning)
    assert found == pytest.approx(expected)


def test_what_comes_true_as_often_as_it_says_has_no_error() -> None:
    probability = np.repeat([0.25, 0.5, 0.75], 4)
    correct = np.array([1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0], bool)
    assert hr.expected_calibration_error(correct, probability) == pytest.approx(0)


def test_equal_probabilities_stay_in_one_bin() -> None:
    table = hr.reliability(
        np.ones(10, bool), np.r_[np.full(8, 0.9), 0.1, 0.2], binning="count", n_bins=5
    )
    assert table["n_samples"].values.tolist() == [2, 8]  # bins of two, but for the tie


@pytest.mark.parametrize(
    ("probability", "options", "word"),
    [
        ([0.5, 1.2], {}, "1.2"),
        ([0.5, np.nan], {}, "NaN"),
        ([0.5], {}, "shape"),
        ([0.5, 0.5], {"n_bins": 0}, "n_bins"),
        ([0.5, 0.5], {"binning": "widht"}, "width"),
    ],
)
def test_bad_input(probability, options, word) -> None:
    with pytest.raises(hr.errors.InputError, match=word):
        hr.reliability(np.array([True, False]), np.array(probability), **options)
