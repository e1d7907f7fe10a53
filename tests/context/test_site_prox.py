"""The site prox against its optimality conditions, a general solver, and adversarial inputs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from hsreject.compilation import kernel
from hsreject.context.admm import site_prox
from hsreject.context.site_kernels import CHUNK, bracketed_multipliers, new_site_scratch
from hsreject.threads import Threads


def solve_one(nu: np.ndarray, p: np.ndarray, step: float, dtype: str = "float64") -> np.ndarray:
    """Return the prox of a single pixel."""
    point, likelihood = (np.asarray(a, dtype)[None, :, None] for a in (nu, p))
    return site_prox(point, likelihood, step, Threads())[0, :, 0]


def assert_optimal(x: np.ndarray, nu: np.ndarray, p: np.ndarray, step: float) -> None:
    """Check the optimality conditions: equal multipliers where x > 0, larger ones where x = 0."""
    scale = 1 + np.abs(nu).max() + step
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(1, abs=1e-9 * scale)
    s = p @ x
    assert s > 0
    slope = x - nu - step * p / s  # step times the gradient, equal to -theta on the support
    theta = -(x @ slope)
    # the slope of a class is only as exact as s is, hence the factor p / s
    tolerance = 1e-8 * scale * (1 + step * p / s)
    assert (np.abs(slope + theta)[x > 1e-9] <= tolerance[x > 1e-9]).all()
    assert (slope + theta >= -tolerance).all()


def objective(x: np.ndarray, nu: np.ndarray, p: np.ndarray, step: float) -> float:
    return float(-np.log(p @ x) + np.sum((x - nu) ** 2) / (2 * step))


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 5, 16, 100])
def test_random_pixels_are_optimal(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    for step in np.repeat([1e-3, 0.1, 1.0, 4.0], 50):
        nu = rng.normal(1 / n_classes, 0.5, n_classes)
        p = rng.dirichlet(np.full(n_classes, 0.2))
        assert_optimal(solve_one(nu, p, step), nu, p, step)


@pytest.mark.parametrize("n_classes", [2, 4, 7])
def test_no_worse_than_a_general_solver(n_classes: int) -> None:
    rng = np.random.default_rng(10 + n_classes)
    for _ in range(5):
        nu, p, step = rng.normal(0.3, 0.6, n_classes), rng.dirichlet(np.ones(n_classes)), 0.3
        found = minimize(
            objective,
            np.full(n_classes, 1 / n_classes),
            args=(nu, p, step),
            method="SLSQP",
            bounds=[(0, 1)] * n_classes,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        ours = solve_one(nu, p, step)
        assert objective(ours, nu, p, step) <= found.fun + 1e-8
        np.testing.assert_allclose(ours, found.x, atol=1e-4)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_adversarial_pixels_are_optimal(data: st.DataObject) -> None:
    """Wide ranges, zeros, ties and nearly equal numbers: where the active set is hard to find."""
    n_classes = data.draw(st.integers(2, 12))
    number = st.one_of(st.floats(-50, 50), st.sampled_from([0.0, 1.0, -1.0, 0.5, 0.5 + 1e-9, 30.0]))
    power = st.one_of(st.just(0.0), st.floats(-12, 0).map(lambda e: 10.0**e))
    nu = np.array(data.draw(st.lists(number, min_size=n_classes, max_size=n_classes)))
    p = np.array(data.draw(st.lists(power, min_size=n_classes, max_size=n_classes)))
    p[data.draw(st.integers(0, n_classes - 1))] = 1.0
    step = data.draw(st.sampled_from([1e-3, 0.05, 1.0, 4.0]))
    assert_optimal(solve_one(nu, p, step), nu, p, step)


def test_values_on_the_border_do_not_come_back_for_ever() -> None:
    # equal values of nu at the threshold: rounding takes them out of the active set and in again
    near_50, near_1 = 49.99999999999999, 0.9999997255105045
    nu = np.array([30, near_50, 0.5, 30, 0.500000001, 0, 0.500000001, near_50, 0, near_50, -1 / 3])
    p = np.array([0, near_1, near_1, 1, 0, 1, 0, 0, 0, 0, 1])
    assert_optimal(solve_one(nu, p, 1.0), nu, p, 1.0)


def test_a_cycle_is_left_by_bracketing() -> None:
    # found among random pixels: the passes over active sets go round in circles on it
    nu = np.array([6.35, -0.83, 1.05, 9.24, 7.64, -2.94, 2.93])
    p = np.array([8.1e-6, 7.4e-4, 0.175, 7.1e-5, 2.3e-4, 1.0, 1.5e-4])
    assert_optimal(solve_one(nu, p, 1.46e-3), nu, p, 1.46e-3)


@kernel
def _bracketed(tile: np.ndarray, n_classes: int, tau: float) -> tuple[float, float]:
    return bracketed_multipliers(tile, 0, n_classes, tau)


@pytest.mark.parametrize("n_classes", [2, 5, 16])
def test_bracketing_alone_is_optimal(n_classes: int) -> None:
    rng = np.random.default_rng(20 + n_classes)
    for step in (1e-3, 0.1, 4.0):
        for _ in range(20):
            nu = rng.normal(0, 2, n_classes)
            p = rng.dirichlet(np.full(n_classes, 0.3))
            tile = new_site_scratch(n_classes, np.dtype(float)).tile
            tile.reshape(-1, 2, CHUNK)[:n_classes, :, 0] = np.stack([nu, p], axis=1)
            c, theta = _bracketed(tile, n_classes, step)
            assert_optimal(np.maximum(nu + c * p - theta, 0), nu, p, step)


def test_bracketing_ends_where_rounding_lets_a_class_come_and_go() -> None:
    rng = np.random.default_rng(40)
    for _ in range(300):
        first = rng.uniform(-50, 50)
        nu = np.array([first, np.nextafter(first - 1, np.inf)])  # x is (1, 0) up to rounding
        tile = new_site_scratch(2, np.dtype(float)).tile
        tile.reshape(-1, 2, CHUNK)[:2, 0, 0] = nu
        c, theta = _bracketed(tile, 2, 0.1)
        np.testing.assert_allclose(np.maximum(nu + c - theta, 0), [1, 0], atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 16, 100])
def test_float32_agrees_with_float64(n_classes: int) -> None:
    rng = np.random.default_rng(30 + n_classes)
    shape = (4, n_classes, 45)  # not a multiple of the chunk
    nu = rng.normal(1 / n_classes, 0.3, shape)
    p = rng.dirichlet(np.full(n_classes, 0.3), (4, 45)).transpose(0, 2, 1) + 1e-7
    exact = site_prox(nu, p, 0.1, Threads())
    single = site_prox(nu.astype("f4"), p.astype("f4"), 0.1, Threads())
    np.testing.assert_allclose(single, exact, atol=2e-5)


def test_one_class_is_one() -> None:
    np.testing.assert_allclose(solve_one(np.array([-3.0]), np.array([0.2]), 0.1), [1.0])


def test_a_class_of_probability_zero_can_win() -> None:
    x = solve_one(np.array([0.0, 40.0]), np.array([1.0, 0.0]), 0.1)
    assert 0 < x[0] < 0.01
