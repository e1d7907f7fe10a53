"""Sparse regression: time to a certified optimum, growth with size, prediction, accuracy."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.timing import Row, best_seconds
from hsreject import MNF, SparseMultinomialRegression, load_indian_pines, sample_per_class
from hsreject.classify.multinomial import MultinomialProblem
from hsreject.classify.proximal_newton import proximal_newton
from hsreject.classify.smlr import radial_basis, scale_gamma

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

try:
    from glmnet import LogitNet
except ImportError:  # no wheel for this Python: the row says so
    LogitNet = None

MINUTES = 2
N_CLASSES = 16
SHARES = (0.1, 0.01)  # of the smallest sparsity that zeroes all weights
TOL = 1e-4
SAGA_ACCURACY = 1e-2
SAGA_PATIENCE = 20.0  # seconds


def correlated_bands(n_samples: int = 160, n_bands: int = 200) -> tuple[NDArray, NDArray]:
    """Return standardised spectra whose neighbouring bands correlate by 0.98, and their classes."""
    rng = np.random.default_rng(0)
    band = np.arange(n_bands)
    root = np.linalg.cholesky(np.exp(-np.abs(band[:, None] - band) / 50))
    codes = np.arange(n_samples) % N_CLASSES
    spectra = 0.7 * (rng.standard_normal((N_CLASSES, n_bands)) @ root.T)[codes]
    spectra += rng.standard_normal((n_samples, n_bands)) @ root.T
    return (spectra - spectra.mean(axis=0)) / spectra.std(axis=0), codes


def radial_functions(n_samples: int) -> tuple[NDArray, NDArray]:
    """Return radial basis functions of overlapping clouds in 15 dimensions, and their classes."""
    rng = np.random.default_rng(1)
    codes = np.arange(n_samples) % N_CLASSES
    samples = 1.2 * rng.standard_normal((N_CLASSES, 15))[codes]
    samples += rng.standard_normal((n_samples, 15))
    gamma = scale_gamma(samples, np.ones(n_samples))
    return radial_basis(samples, samples, gamma).T, codes


def largest_sparsity(features: NDArray, codes: NDArray) -> float:
    """Return the smallest sparsity whose optimum has all weights zero."""
    return np.abs(MultinomialProblem.from_samples(features, codes).class_totals).max()


def objective(features: NDArray, codes: NDArray, coef: NDArray, intercept: NDArray) -> NDArray:
    """Return loss and ||W||_1 of weights (category, feature)."""
    scores = features @ coef.T + intercept
    own = scores[np.arange(len(codes)), codes]
    return np.array([(np.logaddexp.reduce(scores, axis=1) - own).sum(), np.abs(coef).sum()])


def glmnet_row(features: NDArray, codes: NDArray, sparsity: float, seconds: float, best: float):
    """Time python-glmnet's path of 20 sparsities that ends at `sparsity`."""
    what = "  python-glmnet, path of 20 points to there"
    if LogitNet is None:
        return Row(what, "python-glmnet is not installed")
    largest = largest_sparsity(features, codes)
    # python-glmnet averages the losses
    path = np.geomspace(largest, sparsity, 20) / len(codes)
    model = LogitNet(alpha=1, lambda_path=path, standardize=False, n_splits=0, max_iter=10**6)
    theirs = best_seconds(lambda: model.fit(features, codes), repeat=3)
    loss, size = objective(
        features, codes, model.coef_path_[:, :, -1], model.intercept_path_[:, -1]
    )
    above = (loss + sparsity * size) / best - 1
    return Row(
        what,
        f"{1e3 * theirs:.0f} ms, {theirs / seconds:.1f} times ours; objective {above:.0e} higher",
        "at least 1 times ours",
    )


def saga_row(features: NDArray, codes: NDArray, sparsity: float, seconds: float, best: float):
    """Time scikit-learn's saga until its objective is within 1e-2 of the optimum."""
    model = LogisticRegression(
        C=1 / sparsity, l1_ratio=1.0, solver="saga", tol=0.0, warm_start=True, random_state=0
    )
    spent, above, epochs = 0.0, np.inf, 25
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it is stopped on purpose
        while above > SAGA_ACCURACY and spent < SAGA_PATIENCE:
            start = time.perf_counter()
            model.set_params(max_iter=epochs).fit(features, codes)
            spent += time.perf_counter() - start
            loss, size = objective(features, codes, model.coef_, model.intercept_)
            above = (loss + sparsity * size) / best - 1
    reached = "" if above <= SAGA_ACCURACY else f", still {above:.0e} above: stopped"
    return Row(
        "  scikit-learn's saga, to within 1e-2",
        f"{spent:.2f} s, {spent / seconds:.0f} times ours{reached}",
        "at least 20 times ours",
    )


def solve_seconds(features: NDArray, codes: NDArray, share: float) -> tuple[float, float, str]:
    """Return the time to a certified gap, the optimum, and a description."""
    problem = MultinomialProblem.from_samples(features, codes)
    sparsity = share * largest_sparsity(features, codes)

    def work() -> object:
        fresh = MultinomialProblem.from_samples(features, codes)
        return proximal_newton(fresh, sparsity, tol=TOL, max_iter=500)

    optimum = work()
    seconds = best_seconds(work, repeat=9)
    exact = proximal_newton(problem, sparsity, tol=1e-8, max_iter=500)
    gap = optimum.duality_gap / optimum.objective
    nonzero = np.count_nonzero(optimum.coef)
    text = f"{1e3 * seconds:.1f} ms (gap {gap:.0e}, {nonzero} nonzeros)"
    return seconds, exact.objective, text


def prediction_row(dtype: type[np.floating]) -> Row:
    """Compare prediction with its two matrix products alone."""
    rng = np.random.default_rng(2)
    codes = np.arange(160) % N_CLASSES
    samples = rng.standard_normal((N_CLASSES, 15))[codes] + rng.standard_normal((160, 15))
    model = SparseMultinomialRegression(1e-6, tol=1e-2).fit(samples, codes)
    scene = rng.standard_normal((145 * 145, 15)).astype(dtype)
    centers, weights = model.centers_.astype(dtype), model.coef_.T.astype(dtype)
    bare = best_seconds(lambda: (scene @ centers.T) @ weights, repeat=25)
    ours = best_seconds(lambda: model.predict_proba(scene), repeat=25)
    used = int(model.coef_.any(axis=0).sum())
    return Row(
        f"predicting 145 x 145 pixels, 160 centres ({used} in use), {dtype.__name__}",
        f"{1e3 * ours:.1f} ms, {ours / bare:.1f} times the bare products",
        "at most 0.1 s",
    )


def accuracy_row(n_seeds: int = 10) -> Row:
    """Train on ten pixels per class of Indian Pines, 15 MNF components, radial functions."""
    cube, labels = load_indian_pines()
    features = MNF(n_components=15).fit(cube).transform(cube).values
    scores = []
    for seed in range(n_seeds):
        train, test = sample_per_class(labels, 10, seed=seed)
        used, held_out = train.values > 0, test.values > 0
        model = SparseMultinomialRegression().fit(features[:, used].T, train.values[used])
        scores.append(100 * model.score(features[:, held_out].T, test.values[held_out]))
    return Row(
        f"Indian Pines, 10 pixels per class, 15 MNF, rbf, defaults, {n_seeds} draws",
        f"overall accuracy {np.mean(scores):.1f} % (standard deviation {np.std(scores):.1f})",
        "at least 67 %",
    )


def rows() -> Iterator[Row]:
    """Yield the table, on one thread: products on several would blur the ratios."""
    band_seconds = {}
    with threadpool_limits(1):
        features, codes = correlated_bands()
        for share in SHARES:
            sparsity = share * largest_sparsity(features, codes)
            seconds, best, text = solve_seconds(features, codes, share)
            band_seconds[share] = seconds
            yield Row(f"160 samples, 200 bands, sparsity {share} of the largest", text, "gap 1e-4")
            yield glmnet_row(features, codes, sparsity, seconds, best)
            yield saga_row(features, codes, sparsity, seconds, best)
        for share in SHARES:
            small, _, text = solve_seconds(*radial_functions(160), share)
            yield Row(f"160 samples and functions, sparsity {share}", text)
            large, _, text = solve_seconds(*radial_functions(1600), share)
            yield Row(
                "  1600 samples and functions",
                f"{text}, {large / band_seconds[share]:.1f} times the 160 samples with 200 bands, "
                f"{large / small:.1f} times the 160 with 160 functions",
                "at most 10 times 160 samples",
            )
        yield prediction_row(np.float64)
        yield prediction_row(np.float32)
        yield accuracy_row()
