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


def test_against_a_loop_over_bins() -> None:
    generator = np.random.default_rng(0)
    probability = generator.uniform(0, 1, 500)
    correct = generator.uniform(0, 1, 500) < probability**2
    expected = 0.0
    for low, high in pairwise(np.linspace(0, 1, 11)):
        inside = (probability > low) & (probability <= high)
        expected += inside.sum() * abs(correct[inside].mean() - probability[inside].mean()) / 500
    found = hr.expected_calibration_error(correct, probability, n_bins=10)
    assert found == pytest.approx(expected)


def test_what_comes_true_as_often_as_it_says_has_no_error() -> None:
    probability = np.repeat([0.25, 0.5, 0.75], 4)
    correct = np.array([1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0], bool)
    assert hr.expected_calibration_error(correct, probability) == pytest.approx(0)


@pytest.mark.parametrize(
    ("probability", "options", "word"),
    [
        ([0.5, 1.2], {}, "1.2"),
        ([0.5, np.nan], {}, "NaN"),
        ([0.5], {}, "shape"),
        ([0.5, 0.5], {"n_bins": 0}, "n_bins"),
    ],
)
def test_bad_input(probability, options, word) -> None:
    with pytest.raises(hr.errors.InputError, match=word):
        hr.reliability(np.array([True, False]), np.array(probability), **options)
