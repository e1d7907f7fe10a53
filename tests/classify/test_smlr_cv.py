"""The choice of sparsity and width by cross-validation."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from hsreject import SparseMultinomialRegression, SparseMultinomialRegressionCV
from hsreject.errors import InputError


@pytest.fixture
def samples():
    rng = np.random.default_rng(4)
    y = np.arange(60) % 3
    X = rng.standard_normal((60, 6))
    X[:, 0] += 1.5 * y
    X[:, 1] -= 1.5 * (y == 1)
    return X, y


def test_the_contract_of_scikit_learn() -> None:
    check_estimator(SparseMultinomialRegressionCV(3, gamma_factors=(1.0,), n_folds=2), on_skip=None)


def test_the_choice_is_the_best_held_out_log_loss(samples) -> None:
    """The folds, done again by hand: the k-th sample of a class, sorted, is in fold k mod n."""
    X, y = samples
    grid = [5.0, 0.5, 0.05]
    model = SparseMultinomialRegressionCV(grid, kernel="linear", n_folds=4, tol=1e-8).fit(X, y)
    fold = np.empty(len(y), dtype=int)
    for value in range(3):
        members = np.flatnonzero(y == value)
        fold[members[np.lexsort(X[members].T[::-1])]] = np.arange(len(members)) % 4
    expected = []
    for sparsity in grid:
        losses = np.empty(len(y))
        for number in range(4):
            inside = fold != number
            part = SparseMultinomialRegression(
                sparsity * inside.mean(), kernel="linear", tol=1e-8
            ).fit(X[inside], y[inside])
            probability = part.predict_proba(X[~inside])
            losses[~inside] = -np.log(probability[np.arange(len(probability)), y[~inside]])
        expected.append(losses.mean())
    np.testing.assert_allclose(model.log_loss_[0], expected, rtol=1e-4)
    assert model.sparsity_ == grid[np.argmin(expected)]
    refitted = SparseMultinomialRegression(model.sparsity_, kernel="linear", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, refitted.coef_, atol=1e-9)


def test_the_width_is_chosen_too(samples) -> None:
    X, y = samples
    model = SparseMultinomialRegressionCV(4, gamma_factors=(64.0, 1.0), n_folds=3).fit(X, y)
    scale = SparseMultinomialRegression().fit(X, y).gamma_
    np.testing.assert_allclose(model.gammas_, scale * np.array([1.0, 64.0]))
    assert model.gamma_ == pytest.approx(scale)  # 64 times narrower functions see no neighbours
    assert model.log_loss_.shape == (2, 4)


def test_candidates_begin_where_all_weights_are_zero(samples) -> None:
    X, y = samples
    model = SparseMultinomialRegressionCV(7, kernel="linear", smallest=0.02).fit(X, y)
    assert len(model.sparsities_) == 7
    largest = model.sparsities_[0]
    assert model.sparsities_[-1] == pytest.approx(0.02 * largest)
    for share, empty in ((1.001, True), (0.99, False)):
        alone = SparseMultinomialRegression(share * largest, kernel="linear", tol=1e-8).fit(X, y)
        assert alone.coef_.any() == (not empty)


def test_order_of_samples_does_not_matter(samples) -> None:
    X, y = samples
    turned = np.random.default_rng(0).permutation(len(y))
    one = SparseMultinomialRegressionCV(4, temperature="cv").fit(X, y)
    two = SparseMultinomialRegressionCV(4, temperature="cv").fit(X[turned], y[turned])
    np.testing.assert_array_equal(one.log_loss_, two.log_loss_)
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


def test_single_samples_of_a_class_always_train(samples) -> None:
    X, y = samples
    keep = (y != 2) | (np.arange(len(y)) == 2)
    model = SparseMultinomialRegressionCV(3, gamma_factors=[1.0]).fit(X[keep], y[keep])
    assert list(model.classes_) == [0, 1, 2]


def test_wrong_parameters_are_named(samples) -> None:
    for options, message in [
        ({"sparsities": 0}, "sparsities"),
        ({"sparsities": [-1.0]}, "at least 0"),
        ({"sparsities": []}, "sparsities"),
        ({"smallest": 0}, "smallest"),
        ({"gamma_factors": ()}, "gamma_factors"),
        ({"gamma_factors": (0,)}, "gamma_factors"),
        ({"n_folds": 1}, "n_folds"),
    ]:
        with pytest.raises(InputError, match=message):
            SparseMultinomialRegressionCV(**options).fit(*samples)
