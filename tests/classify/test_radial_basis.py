"""Radial basis functions and the exponentials under them."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import softmax

from hsreject.classify.exponentials import gaussian_in_place, softmax_in_place
from hsreject.classify.kernels import Basis, choose_centers, radial_basis, scale_gamma

# The bounds that the module promises.
ERROR = {np.float64: 1e-12, np.float32: 3e-5}


@pytest.mark.parametrize("dtype", ERROR)
def test_exponentials_of_a_block(dtype) -> None:
    values = np.linspace(-60, 5, 4001).reshape(1, -1).astype(dtype)
    wanted = np.exp(np.clip(values.astype(np.float64), -40, 0))
    gaussian_in_place(values, np.zeros(1, dtype), np.zeros(4001, dtype))
    np.testing.assert_allclose(values, wanted, rtol=ERROR[dtype])
    assert values.dtype == dtype


@pytest.mark.parametrize("dtype", ERROR)
@pytest.mark.parametrize("n_classes", [2, 3, 16, 37])
def test_softmax_of_a_block(dtype, n_classes) -> None:
    scores = (30 * np.random.default_rng(0).standard_normal((500, n_classes))).astype(dtype)
    wanted = softmax(scores.astype(np.float64), axis=1)
    softmax_in_place(scores)
    np.testing.assert_allclose(scores, wanted, rtol=2 * ERROR[dtype], atol=1e-17)
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-6)


def test_far_samples_keep_their_digits() -> None:
    """Squares of large offsets must not eat the distances."""
    rng = np.random.default_rng(1)
    samples = 1e5 + rng.standard_normal((20, 3))
    wanted = np.exp(-0.3 * cdist(samples, samples, "sqeuclidean"))
    np.testing.assert_allclose(radial_basis(samples, samples, 0.3), wanted, rtol=1e-9)


def test_width_rule_is_the_mean_squared_distance() -> None:
    samples = np.random.default_rng(2).standard_normal((30, 4)) * [1, 2, 3, 4]
    weight = np.arange(30) % 3
    repeated = np.repeat(samples, weight, axis=0)
    mean = cdist(repeated, repeated, "sqeuclidean").mean()
    assert scale_gamma(samples, weight.astype(float)) == pytest.approx(1 / mean)
    assert scale_gamma(np.ones((3, 2)), np.ones(3)) == 1.0


def test_chosen_centres_explain_more_than_random_ones() -> None:
    rng = np.random.default_rng(3)
    samples = rng.standard_normal((200, 2))
    kernel = radial_basis(samples, samples, 0.5)

    def unexplained(chosen):
        part = kernel[:, chosen]
        return np.trace(kernel - part @ np.linalg.pinv(part[chosen], hermitian=True) @ part.T)

    best = unexplained(choose_centers(samples, np.ones(200), gamma=0.5, n_centers=15))
    random = [unexplained(rng.choice(200, 15, replace=False)) for _ in range(20)]
    assert best < min(random)


def test_centres_do_not_depend_on_order_and_stop_when_all_is_explained() -> None:
    samples = np.random.default_rng(4).standard_normal((50, 3))
    turned = np.random.default_rng(5).permutation(50)
    one = samples[choose_centers(samples, np.ones(50), gamma=0.2, n_centers=10)]
    two = samples[turned][choose_centers(samples[turned], np.ones(50), gamma=0.2, n_centers=10)]
    np.testing.assert_array_equal(one, two)
    twice = np.repeat(samples[:4], 5, axis=0)
    assert len(choose_centers(twice, np.ones(20), gamma=0.2, n_centers=10)) == 4


def test_scores_skip_functions_without_weight() -> None:
    rng = np.random.default_rng(6)
    samples = rng.standard_normal((40, 3))
    basis = Basis.radial(samples, np.ones(40), gamma="scale", n_centers=None)
    coef = rng.standard_normal((2, 40)) * (np.arange(40) % 3 == 0)
    np.testing.assert_allclose(
        basis.scores(samples, coef), basis.values(samples) @ coef.T, rtol=1e-9, atol=1e-12
    )
    assert not basis.scores(samples, np.zeros((2, 40))).any()
