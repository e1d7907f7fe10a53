"""The sparse regression as a scikit-learn classifier."""

import sys

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from hsreject import SparseMultinomialRegression
from hsreject.errors import InputError, NotConvergedWarning


def clouds(*, n_classes=3, per_class=15, spread=1.0, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n_classes * per_class) % n_classes
    return rng.standard_normal((n_classes, 4))[y] * 2 + spread * rng.standard_normal((len(y), 4)), y


@pytest.mark.parametrize(
    "estimator",
    [
        SparseMultinomialRegression(),
        SparseMultinomialRegression(sparsity=0.1, kernel="linear"),
        SparseMultinomialRegression(n_centers=5),
    ],
    ids=["rbf", "linear", "centres"],
)
def test_the_contract_of_scikit_learn(estimator) -> None:
    check_estimator(estimator, on_skip=None)


@pytest.fixture(scope="module")
def solved():
    """Overlapping samples and their optimum: summed losses, free intercepts, sparsity 2."""
    X, y = clouds(spread=2.0)
    return X, y, SparseMultinomialRegression(2.0, kernel="linear", tol=1e-9).fit(X, y)


def test_same_optimum_as_scikit_learn_run_long(solved) -> None:
    X, y, ours = solved
    # scikit-learn's C multiplies the sum of losses; saga leaves the intercept free, as we do
    # and before 1.8 it has to be told that a ratio of 1 means the lasso
    named = {"penalty": "elasticnet"} if LogisticRegression().penalty == "l2" else {}
    options = {"l1_ratio": 1.0, "solver": "saga", "tol": 1e-10, "max_iter": 200_000, **named}
    theirs = LogisticRegression(C=1 / 2.0, random_state=0, **options).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)


@pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="python-glmnet has no wheel for Python 3.14"
)
def test_same_optimum_as_glmnet(solved) -> None:
    import glmnet  # noqa: PLC0415 (not there on every Python)

    X, y, ours = solved
    # glmnet averages the losses, and wants a path
    path = np.array([16, 8, 4, 2]) / len(y)
    theirs = glmnet.LogitNet(
        alpha=1, lambda_path=path, standardize=False, n_splits=0, tol=1e-14, max_iter=10**6
    ).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_path_[:, :, -1], atol=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_probabilities_follow_from_the_attributes(kernel, n_classes) -> None:
    X, y = clouds(n_classes=n_classes)
    model = SparseMultinomialRegression(0.1, kernel=kernel).fit(X, y)
    functions = X
    if kernel == "rbf":
        squared = ((X[:, None] - model.centers_[None]) ** 2).sum(axis=2)
        assert model.gamma_ == pytest.approx(1 / ((X[:, None] - X[None]) ** 2).sum(axis=2).mean())
        functions = np.exp(-model.gamma_ * squared)
    scores = functions @ model.coef_.T + model.intercept_
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9)
    loss = -np.log(expected[np.arange(len(y)), y]).sum() + 0.1 * np.abs(model.coef_).sum()
    assert model.objective_ == pytest.approx(loss, rel=1e-9)
    assert 0 <= model.duality_gap_ <= 1e-4 * model.objective_
    assert model.n_iter_ > 1


def test_every_type_of_class_and_order_of_samples() -> None:
    X, y = clouds()
    numbers = SparseMultinomialRegression().fit(X, y)
    turned = np.random.default_rng(3).permutation(len(y))
    again = SparseMultinomialRegression().fit(X[turned], y[turned])
    np.testing.assert_array_equal(again.coef_, numbers.coef_)
    for names in (np.array(["oak", "pine", "ash"]), np.array([30, 7, 255], dtype=np.uint8)):
        named = SparseMultinomialRegression().fit(X, names[y])
        assert set(named.predict(X)) <= set(names)
        assert named.classes_.dtype == names.dtype
        order = np.searchsorted(named.classes_, names)
        # another class order: the optimum is the same, the way to it is not
        np.testing.assert_allclose(
            named.predict_proba(X)[:, order], numbers.predict_proba(X), atol=2e-2
        )


def test_repeated_samples_are_weights() -> None:
    X, y = clouds()
    counts = np.random.default_rng(1).integers(0, 4, len(y))
    repeated = SparseMultinomialRegression().fit(np.repeat(X, counts, 0), np.repeat(y, counts))
    weighted = SparseMultinomialRegression().fit(X, y, sample_weight=counts)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)


def test_few_centres_represent_many_samples() -> None:
    """The chosen centres leave less of the kernel matrix unexplained than any random ones."""
    X, y = clouds(per_class=100)
    every = SparseMultinomialRegression().fit(X, y)
    few = SparseMultinomialRegression(n_centers=30).fit(X, y)
    assert few.centers_.shape == (30, 4)
    assert few.score(X, y) > every.score(X, y) - 0.03
    kernel = np.exp(-few.gamma_ * cdist(X, X, "sqeuclidean"))

    def unexplained(centers):
        across = np.exp(-few.gamma_ * cdist(centers, X, "sqeuclidean"))
        within = np.exp(-few.gamma_ * cdist(centers, centers, "sqeuclidean"))
        return np.trace(kernel - across.T @ np.linalg.pinv(within, hermitian=True) @ across)

    rng = np.random.default_rng(3)
    random = [unexplained(X[rng.choice(300, 30, replace=False)]) for _ in range(20)]
    assert unexplained(few.centers_) < min(random)
    turned = rng.permutation(300)
    again = SparseMultinomialRegression(n_centers=30).fit(X[turned], y[turned])
    np.testing.assert_array_equal(again.centers_, few.centers_)
    X[4:] = X[:4].repeat(74, axis=0)  # four samples explain all
    assert len(SparseMultinomialRegression(n_centers=10).fit(X, y).centers_) == 4


def test_single_precision_agrees_and_blocks_do_not_matter() -> None:
    X, y = clouds(spread=2.0)
    scene = np.random.default_rng(1).standard_normal((20_000, 4))
    model = SparseMultinomialRegression().fit(X, y)
    probability = model.predict_proba(scene)
    single = model.predict_proba(scene.astype(np.float32))
    assert (single.dtype, probability.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(single, probability, atol=2e-6)
    np.testing.assert_allclose(model.predict_proba(scene[:7]), probability[:7], rtol=1e-9)


def test_samples_far_from_zero_keep_their_digits() -> None:
    """Squares of large offsets must not eat the distances."""
    X, y = clouds(spread=2.0)
    near = SparseMultinomialRegression(gamma=0.3).fit(X, y)
    far = SparseMultinomialRegression(gamma=0.3).fit(1e5 + X, y)
    # both are certified to 1e-4 of the objective
    np.testing.assert_allclose(far.predict_proba(1e5 + X), near.predict_proba(X), rtol=1e-4)


def test_wrong_parameters_are_named() -> None:
    X, y = clouds()
    for options, message in [
        ({"sparsity": 0}, r"sparsity .* above 0 \(got 0\)"),
        ({"sparsity": np.nan}, "sparsity"),
        ({"sparsity": "small"}, "sparsity"),
        ({"kernel": "rbff"}, r"kernel .* 'rbf'"),
        ({"gamma": 0}, "gamma .* above 0"),
        ({"n_centers": 0}, "n_centers .* at least 1"),
        ({"tol": 0}, "tol .* above 0"),
        ({"max_iter": 2.5}, r"max_iter .* \(got 2.5\)"),
    ]:
        with pytest.raises(InputError, match=message):
            SparseMultinomialRegression(**options).fit(X, y)


def test_wrong_samples_are_named() -> None:
    X, y = clouds()
    broken = X.copy()
    broken[3, 1] = np.nan
    model = SparseMultinomialRegression()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(broken, y)
    with pytest.raises(InputError, match="at least two classes"):
        model.fit(X, np.ones(len(y)))
    for weight in (-np.ones(len(y)), np.full(len(y), np.inf), np.zeros(len(y)), [1.0]):
        with pytest.raises(InputError, match="sample_weight must be"):
            model.fit(X, y, sample_weight=weight)
    model.fit(X, y)
    broken[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        model.predict_proba(broken)
    with pytest.raises(ValueError, match=r"3 features, but .* expecting 4"):
        model.predict(X[:, :3])


def test_stopping_early_warns_at_the_callers_line() -> None:
    X, y = clouds()
    with pytest.warns(NotConvergedWarning, match="Raise max_iter") as seen:
        SparseMultinomialRegression(max_iter=2).fit(X, y)
    assert seen[0].filename == __file__
