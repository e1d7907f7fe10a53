"""The solvers reach the optimum, and the duality gap never flatters them."""

import numpy as np
import pytest

from hsreject.classify.multinomial import MultinomialProblem, duality_gap
from hsreject.classify.proximal_newton import proximal_newton
from tests.classify import regression_problems
from tests.classify.regression_problems import (
    CASES,
    largest_sparsity,
    objective,
    optimum,
    problem,
)

SHARES = (0.5, 0.1, 0.01)  # of the smallest sparsity that zeroes all weights
# Interior-point answers are good to about 1e-9 of the objective; the gap may miss by as much.
ORACLE_ERROR = 1e-8


def sparsities(name):
    return [share * largest_sparsity(problem(name)) for share in SHARES]


@pytest.mark.parametrize("name", CASES)
def test_same_objective_as_a_conic_solver(name) -> None:
    for sparsity in sparsities(name):
        solution = proximal_newton(problem(name), sparsity, tol=1e-7, max_iter=200)
        assert solution.converged
        assert solution.objective == pytest.approx(optimum(name, sparsity), rel=1e-6)
        restored = problem(name).restore(solution)
        assert objective(name, restored.coef, restored.intercept, sparsity) == pytest.approx(
            solution.objective, rel=1e-9
        )


@pytest.mark.parametrize("name", CASES)
def test_the_gap_bounds_the_true_distance_on_the_way(name) -> None:
    for sparsity in sparsities(name):
        lowest = optimum(name, sparsity)
        for max_iter in (1, 2, 3, 5, 8, 13, 50):
            found = proximal_newton(problem(name), sparsity, tol=1e-12, max_iter=max_iter)
            distance = found.objective - lowest
            assert found.duality_gap >= distance - ORACLE_ERROR * lowest


@pytest.mark.parametrize("name", CASES)
def test_the_gap_bounds_the_true_distance_anywhere(name) -> None:
    """Intercepts far from their best are where a careless dual point would not be feasible."""
    rng = np.random.default_rng(0)
    it = problem(name)
    for sparsity in sparsities(name):
        for scale in (1e-8, 1e-3, 0.1, 3.0):
            coef = scale * rng.standard_normal((len(it.features), it.target.shape[1]))
            intercept = it.null_intercept + scale * rng.standard_normal(len(it.null_intercept))
            value, gap = value_and_gap(it, coef, intercept, sparsity)
            assert value - optimum(name, sparsity) <= gap + ORACLE_ERROR * value
            assert gap <= value  # zero is always a lower bound


def value_and_gap(it, coef, intercept, sparsity):
    """Return F and the bound on its distance from the optimum, from weights alone."""
    probability, loss = it.probability_and_loss(it.scores(coef, intercept))
    value = loss + sparsity * np.abs(coef).sum()
    gradient = it.gradient(probability)
    return value, duality_gap(it, probability, gradient, objective=value, sparsity=sparsity)


def test_all_weights_are_zero_from_the_largest_sparsity_on() -> None:
    it = problem("overlapping")
    largest = largest_sparsity(it)
    at, above, below = (
        proximal_newton(it, share * largest, tol=1e-10, max_iter=50) for share in (1, 1.0001, 0.999)
    )
    assert at.objective == pytest.approx(it.null_objective())
    assert below.coef.any()
    assert not above.coef.any()


def test_a_thousand_features_and_160_samples() -> None:
    """Too large for the conic solver: check the optimality conditions themselves."""
    rng = np.random.default_rng(2)
    codes = np.arange(160) % 16
    walk = rng.standard_normal((16, 1000)).cumsum(axis=1)[codes]
    walk += rng.standard_normal((160, 1000)).cumsum(axis=1)
    it = MultinomialProblem.from_samples(walk / walk.std(axis=0), codes)
    sparsity = 0.01 * largest_sparsity(it)
    found = proximal_newton(it, sparsity, tol=1e-6, max_iter=100)
    assert found.converged
    probability, _ = it.probability_and_loss(it.scores(found.coef, found.intercept))
    gradient = it.gradient(probability)
    assert np.abs(gradient).max() <= sparsity * (1 + 1e-4)
    nonzero = found.coef != 0
    np.testing.assert_allclose(
        gradient[nonzero], -sparsity * np.sign(found.coef[nonzero]), rtol=1e-3
    )
    assert np.abs(it.weight @ (probability - it.target)).max() < 1e-4


@pytest.mark.parametrize("scale", [1.0, 1e37, 1e-44])
def test_a_large_problem_is_certified_in_double_precision(scale) -> None:
    """Whatever the unit of its features."""
    rng = np.random.default_rng(4)
    codes = np.arange(1100) % 4
    features = rng.standard_normal((1100, 1000))
    features[:, :20] += rng.standard_normal((4, 20))[codes]
    it = MultinomialProblem.from_samples(scale * features, codes)
    sparsity = 0.1 * largest_sparsity(it)
    found = proximal_newton(it, sparsity, tol=1e-6, max_iter=100)
    assert found.converged
    value, gap = value_and_gap(it, found.coef, found.intercept, sparsity)
    assert value == pytest.approx(found.objective, rel=1e-10)
    assert gap <= 1.01e-6 * value  # again, from the answer alone; scores were added up step by step


@pytest.mark.parametrize("name", ["collinear", "weighted_and_uneven"])
def test_class_order_does_not_matter(name) -> None:
    features, codes, weight = regression_problems.samples(name)
    order = np.array([2, 0, 1])
    turned = MultinomialProblem.from_samples(features, order[codes], weight)
    sparsity = 0.1 * largest_sparsity(turned)
    one = proximal_newton(problem(name), sparsity, tol=1e-10, max_iter=100)
    two = proximal_newton(turned, sparsity, tol=1e-10, max_iter=100)
    np.testing.assert_allclose(
        turned.probability_and_loss(turned.scores(two.coef, two.intercept))[0][:, order],
        problem(name).probability_and_loss(problem(name).scores(one.coef, one.intercept))[0],
        atol=1e-5,  # probabilities follow the square root of the gap
    )
