"""Small sparse regressions of every awkward kind, and their optimum by a conic solver."""

from functools import cache

import cvxpy as cp
import numpy as np

from hsreject.classify.multinomial import MultinomialProblem


def _overlapping(rng):
    return rng.standard_normal((40, 5)), np.arange(40) % 3, None


def _two_classes(rng):
    return rng.standard_normal((30, 4)), np.arange(30) % 2, None


def _weighted_and_uneven(rng):
    return rng.standard_normal((30, 4)), np.r_[[0] * 20, [1] * 7, [2] * 3], rng.uniform(0.1, 5, 30)


def _separable(rng):
    codes = np.arange(24) % 4
    return 6 * np.eye(4)[codes] + 0.1 * rng.standard_normal((24, 4)), codes, None


def _one_sample_a_class(rng):
    return rng.standard_normal((5, 3)), np.arange(5), None


def _constant_features(rng):
    features, codes, weight = _overlapping(rng)
    return np.column_stack([features, np.full(40, 0.1), np.full(40, 1e6)]), codes, weight


def _collinear(rng):
    features, codes, weight = _overlapping(rng)
    return np.column_stack([features, features, features.sum(axis=1), -features]), codes, weight


def _far_from_zero(rng):
    features, codes, weight = _overlapping(rng)
    return 3000 + [1, 10, 100, 1, 1] * features, codes, weight


def _more_features_than_samples(rng):
    walk = rng.standard_normal((25, 80)).cumsum(axis=1)
    return walk / walk.std(axis=0), np.arange(25) % 5, None


CASES = {
    make.__name__.removeprefix("_"): make
    for make in (
        _overlapping, _two_classes, _weighted_and_uneven, _separable, _one_sample_a_class,
        _constant_features, _collinear, _far_from_zero, _more_features_than_samples,
    )
}  # fmt: skip


def samples(name):
    """Return features (sample, feature), class numbers and weights of a case."""
    return CASES[name](np.random.default_rng(5))


@cache
def problem(name):
    """Return the case as a problem."""
    return MultinomialProblem.from_samples(*samples(name))


def largest_sparsity(it):
    """Return the smallest sparsity whose optimum has all weights zero."""
    return np.abs(it.class_totals).max()


def objective(case, coef, intercept, sparsity):
    """Return F from its definition, on the features before centring."""
    features, codes, weight = samples(case)
    scores = features @ coef + intercept
    loss = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(codes)), codes]
    return (
        np.average(loss, weights=weight) * (len(codes) if weight is None else weight.sum())
        + sparsity * np.abs(coef).sum()
    )


@cache
def optimum(case, sparsity):
    """Return min F by a conic interior-point solver."""
    features, codes, weight = samples(case)
    # A free intercept makes any shift of the features harmless; the conic solver needs it.
    features = features - features.mean(axis=0)
    n_classes = codes.max() + 1
    coef, intercept = cp.Variable((features.shape[1], n_classes)), cp.Variable(n_classes)
    scores = features @ coef + np.ones((len(codes), 1)) @ cp.reshape(intercept, (1, -1), order="C")
    loss = cp.log_sum_exp(scores, axis=1) - cp.sum(
        cp.multiply(np.eye(n_classes)[codes], scores), axis=1
    )
    weight = np.ones(len(codes)) if weight is None else weight
    found = cp.Problem(cp.Minimize(weight @ loss + sparsity * cp.sum(cp.abs(coef))))
    return found.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
