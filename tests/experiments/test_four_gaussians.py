"""The synthetic problem against its closed forms."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from hsreject.confidence import Margin, Maximum
from hsreject.errors import InputError
from hsreject.experiments.figure_4 import synthetic_curves
from hsreject.experiments.four_gaussians import CENTRES, FourGaussians


def test_posteriors_are_those_of_the_densities() -> None:
    problem = FourGaussians.draw(50, seed=1)
    density = np.array([multivariate_normal(centre).pdf(problem.samples) for centre in CENTRES])
    np.testing.assert_allclose(problem.probability, density / density.sum(axis=0), rtol=1e-9)


def test_label_is_the_nearest_centre_and_the_most_probable_class() -> None:
    problem = FourGaussians.draw(200, seed=2)
    quadrant = {(-1, 1): 1, (1, 1): 2, (-1, -1): 3, (1, -1): 4}
    signs = np.sign(problem.samples).astype(int)
    assert problem.label.tolist() == [quadrant[a, b] for a, b in signs]
    np.testing.assert_array_equal(problem.label, problem.probability.argmax(axis=0) + 1)


def test_accuracy_is_that_of_the_bayes_rule() -> None:
    problem = FourGaussians.draw(10_000, seed=0)
    expected = norm.cdf(1) ** 2  # both coordinates on their centre's side of the axis
    sigma = np.sqrt(expected * (1 - expected) / problem.correct.size)
    assert abs(problem.correct.mean() - expected) < 4 * sigma


def test_the_same_seed_draws_the_same_samples() -> None:
    first, second = (FourGaussians.draw(20, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.samples, second.samples)
    assert (FourGaussians.draw(20, seed=4).samples != first.samples).all()


def test_no_samples_are_refused() -> None:
    with pytest.raises(InputError, match="at least 1"):
        FourGaussians.draw(0, seed=0)


def test_confidences_in_closed_form() -> None:
    problem = FourGaussians.draw(100, seed=5)
    near, far = np.sort(np.abs(problem.samples), axis=1).T

    def right(distance: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-2 * distance))  # posterior of the nearer of two centres

    np.testing.assert_allclose(Maximum()(problem.probability), right(near) * right(far))
    margin = right(far) * (2 * right(near) - 1)
    np.testing.assert_allclose(Margin()(problem.probability), margin, atol=1e-12)


def test_chow_rule_holds_for_maximum_probability() -> None:
    # With exact posteriors the cheapest threshold for rejection cost rho is 1 - rho (Chow 1970).
    # Near its minimum the cost is flat, so compare costs: within sampling noise of the cheapest.
    curve = synthetic_curves(20_000)["maximum probability"]
    errors = curve.misclassified_kept.values / 80_000
    for rho in (0.1, 0.3, 0.5, 0.7):
        cost = errors + rho * curve.rejected_fraction.values
        chow = int(np.searchsorted(curve.threshold.values, 1 - rho))
        assert cost[chow] - cost.min() < 0.002  # about 1.2 sigma of a mean of 80,000 errors


def test_maximum_probability_is_not_worse_than_breaking_ties() -> None:
    best, other = synthetic_curves(20_000).values()
    grid = np.linspace(0.05, 0.95, 19)
    accuracy = [np.interp(grid, c.rejected_fraction, c.nonrejected_accuracy) for c in (best, other)]
    # four times the noise of a difference of two strongly correlated accuracies
    assert (accuracy[0] - accuracy[1]).min() > -0.003
    assert (accuracy[0] - accuracy[1])[:4].min() > 0.001, "they differ where little is rejected"
