"""Promises: how often certificates break, and how much of a map they keep, over 1,000 redraws.

The naive choice keeps the most whose error on the same sample is at most what was asked for; the
oracle knows the truth. Of the certificates at most 10 % may break their promise, also where half of
the pixels are sampled, as in a run; the other half alone may well have more errors than all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

import hsreject as hr
from benchmarks.bench_rejection import evidence
from benchmarks.timing import Row

N_REDRAWS = 1000
N_POINTS = 500
LEVEL = 0.9


def rows() -> Iterator[Row]:
    """Yield the rows of the table."""
    delta = 1 - LEVEL
    most = delta + 3 * math.sqrt(delta * LEVEL / N_REDRAWS)
    for name, ranking, truth in (("synthetic", *synthetic()), ("Indian Pines", *indian_pines())):
        for max_error in (0.05, 0.1, 0.2):
            certified, naive, best = redraws(ranking, truth, max_error)
            yield Row(
                f"{name}, {max_error:.0%} promised: certificates broken (naive choice)",
                f"{np.mean(certified[:, 0]):.1%} ({np.mean(naive[:, 0]):.1%})",
                f"<= {most:.1%}",
            )
            yield Row(
                f"{name}, {max_error:.0%} promised: mean coverage, and nothing certified in",
                f"{certified[:, 1].mean():.3f} (naive {naive[:, 1].mean():.3f}, oracle {best:.3f})"
                f", {np.mean(certified[:, 1] == 0):.1%}",
            )
            of_all, of_others, coverage = halves(ranking, truth, max_error)
            yield Row(
                f"{name}, {max_error:.0%} promised, half sampled: broken (on the other half alone)",
                f"{of_all:.1%} ({of_others:.1%}), mean coverage {coverage:.3f}",
                f"<= {most:.1%}",
            )


def synthetic() -> tuple[xr.Dataset, xr.DataArray]:
    """Return label and confidence of a synthetic scene, and its truth."""
    cube, labels = hr.synthetic_scene(rows=150, columns=150, noise=0.4)
    training, test = hr.sample_per_class(labels, 10)
    regression = hr.SparseMultinomialRegression(sparsity=0.01)
    model = hr.SceneClassifier(regression, features=[hr.PCA(10)]).fit(cube, training)
    rejector = hr.SequentialRejector(hr.SegSALSA(hr.VectorTV(1.0)))
    return _within(rejector.rank(model.predict_proba(cube)), test), test


def indian_pines() -> tuple[xr.Dataset, xr.DataArray]:
    """Return label and confidence of the paper's protocol at its test pixels, and their truth."""
    context = hr.SegSALSA(hr.VectorTV(2.0))
    maps, test = evidence(0, context)
    return _within(hr.SequentialRejector(context).rank(maps), test), test


def _within(ranking: xr.Dataset, test: xr.DataArray) -> xr.Dataset:
    """Return a map that has data only where its truth is known."""
    label = ranking["label"]
    nodata = hr.schema.nodata_label(label.dtype)
    return ranking.assign(label=label.where(test > 0, nodata).assign_attrs(label.attrs))


def redraws(
    ranking: xr.Dataset, truth: xr.DataArray, max_error: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return (broken, coverage) of certificates and naive choices, and the oracle's coverage."""
    label, confidence = ranking["label"], ranking["confidence"]
    inside = (truth.values > 0) & np.isfinite(confidence.values)  # some pixels have no data
    sure, wrong = confidence.values[inside], (label.values != truth.values)[inside]
    thresholds = np.unique(sure)
    order = np.argsort(sure)
    last = np.searchsorted(sure[order], thresholds)  # how many lie below each threshold
    kept = sure.size - last
    error = (wrong.sum() - np.append(0, np.cumsum(wrong[order]))[last]) / kept
    best = float(np.max(kept[error <= max_error], initial=0) / sure.size)
    certified, naive = np.empty((N_REDRAWS, 2)), np.empty((N_REDRAWS, 2))
    for seed in range(N_REDRAWS):
        sample = hr.draw_sample(label, N_POINTS, seed=seed).with_reference(truth)
        made = hr.certify(label, confidence, sample, max_error=max_error, confidence_level=LEVEL)
        chosen = np.inf if made.threshold is None else made.threshold
        certified[seed] = _outcome(chosen, thresholds, kept, error, max_error)
        points = confidence.values[sample.row, sample.column]
        naive_choice = _naive(points, sample.label != sample.reference, max_error)
        naive[seed] = _outcome(naive_choice, thresholds, kept, error, max_error)
    return certified, naive, best


def halves(
    ranking: xr.Dataset, truth: xr.DataArray, max_error: float
) -> tuple[float, float, float]:
    """Return how often a sample of half of the pixels breaks its promise, and mean coverage.

    How often on all pixels, which it is about, and on the other half alone.
    """
    label, confidence = ranking["label"], ranking["confidence"]
    inside = (truth.values > 0) & np.isfinite(confidence.values)
    pixels, wrong = np.flatnonzero(inside), label.values != truth.values
    found = np.zeros((N_REDRAWS, 3))
    for seed in range(N_REDRAWS):
        drawn = np.random.default_rng(seed).permutation(pixels)[: pixels.size // 2]
        sample = np.zeros_like(truth.values)
        sample.flat[drawn] = truth.values.flat[drawn]
        made = hr.certify(label, confidence, sample, max_error=max_error, confidence_level=LEVEL)
        if made.threshold is not None:
            kept = inside & (confidence.values >= made.threshold)
            errors = wrong[kept].mean(), wrong[kept & (sample == 0)].mean()
            found[seed] = errors[0] > max_error, errors[1] > max_error, made.coverage
    of_all, of_others, coverage = found.mean(axis=0).tolist()
    return of_all, of_others, coverage


def _naive(sure: np.ndarray, wrong: np.ndarray, max_error: float) -> float:
    """Return the smallest threshold whose error on the sample is small enough."""
    order = np.argsort(-sure, kind="stable")
    share = np.cumsum(wrong[order]) / np.arange(1, sure.size + 1)
    ends = np.append(np.diff(sure[order]) != 0, True)  # equal confidences together
    good = np.flatnonzero((share <= max_error) & ends)
    return float(sure[order][good[-1]]) if good.size else np.inf


def _outcome(
    threshold: float,
    thresholds: np.ndarray,
    kept: np.ndarray,
    error: np.ndarray,
    max_error: float,
) -> tuple[float, float]:
    """Return whether a threshold breaks the promise on the whole map, and what it keeps."""
    place = int(np.searchsorted(thresholds, threshold))
    if place == thresholds.size:
        return 0.0, 0.0
    return float(error[place] > max_error), float(kept[place] / kept[0])
