"""The reliability diagram draws what the table says."""

import numpy as np

import hsreject as hr
from tests.plot.drawing import legend, line, row


def test_it_draws_accuracy_over_probability_and_names_the_error() -> None:
    generator = np.random.default_rng(0)
    probability = generator.uniform(0, 1, 200)
    correct = generator.uniform(0, 1, 200) < probability
    display = hr.plot.ReliabilityDisplay.from_samples(
        {"pool": (correct, probability), "context": (correct, probability**2)}, n_bins=10
    )
    ax = display.plot(row(1)[0])
    error = hr.expected_calibration_error(correct, probability, n_bins=10)
    assert legend(ax)[0] == f"pool, ECE {error:.3f}"
    table = hr.reliability(correct, probability, n_bins=10)
    drawn = line(ax, f"pool, ECE {error:.3f}")
    np.testing.assert_allclose(drawn, np.c_[table["mean_probability"], table["accuracy"]])
    areas = ax.collections[0].get_sizes()
    assert areas.argmax() == table["n_samples"].values.argmax()
