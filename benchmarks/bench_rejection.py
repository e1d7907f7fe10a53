"""Rejection: what operating points cost, and what they keep on Indian Pines.

Accuracies are means over five draws of ten training pixels per class; speeds are the best of some
runs on one draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from sklearn.base import clone
from sklearn.metrics import auc, roc_auc_score

import hsreject as hr
from benchmarks.timing import Row, best_in_turns

MINUTES = 20
N_SEEDS = 5
WEIGHT = 1.0
STRONG_WEIGHT = 2.0
FOUR_CLASSES = "joint, four rejection classes"
FRACTIONS = np.arange(0.05, 0.501, 0.05)
HOLD_OUTS = ((14,), (10, 11), (2,), (5, 6), (8,), (11,))  # classes that are unknown together
LARGE_CLASSES = (2, 3, 4, 5, 6, 8, 10, 11, 12, 13, 14, 15)  # of at least 200 pixels


def evidence(seed: int, context: hr.SegSALSA) -> tuple[xr.Dataset, xr.DataArray]:
    """Return probabilities and hidden field of the paper's protocol, and the test labels."""
    cube, labels = hr.load_indian_pines()
    training, test = hr.sample_per_class(labels, 10, seed=seed)
    regression = hr.SparseMultinomialRegression(sparsity=0.01, kernel="rbf")
    model = hr.SceneClassifier(regression, features=[hr.MNF(15)]).fit(cube, training)
    probability = model.predict_proba(cube)
    hidden_field = context.solve(probability).hidden_field
    return xr.Dataset({"probability": probability, "hidden_field": hidden_field}), test


def rows() -> Iterator[Row]:
    """Yield the rows of the table."""
    context = hr.SegSALSA(hr.VectorTV(WEIGHT), n_threads=1)
    maps, test = evidence(0, context)
    yield from sequential_cost(maps, test, context)
    yield from joint_cost(maps, test, context)
    yield from search_cost(maps, test, context)
    yield from kept_accuracy(context)
    yield from strong_context()
    yield from novelty()


def sequential_cost(maps: xr.Dataset, test: xr.DataArray, context: hr.SegSALSA) -> Iterator[Row]:
    """Yield what all operating points cost beside the solve, on the scene, four and nine of it."""
    rejector = hr.SequentialRejector(context)
    for side in (1, 2, 3):
        tiled = _tiled(maps, side)
        reference = np.tile(test.values, (side, side))
        seconds = best_in_turns(
            {
                "points": lambda t=tiled, r=reference: rejector.operating_points(t, r),
                "solve": lambda t=tiled: context.solve(t["probability"]),
            },
            rounds=10,
            repeat=20 // side,
        )
        size = f"{145 * side} x {145 * side} x 16"
        yield Row(
            f"sequential, all operating points / context solve, {size}",
            f"{seconds['points'] / seconds['solve']:.1%} of {1e3 * seconds['solve']:.0f} ms",
            "nobody waits for them",
        )


def joint_cost(maps: xr.Dataset, test: xr.DataArray, context: hr.SegSALSA) -> Iterator[Row]:
    """Yield what a sweep costs in cold solves, and what a second worker brings."""
    one = hr.JointRejector(context, n_workers=1)
    sweep = one.operating_points(maps["probability"], test).isel(operating_point=slice(-1))
    exact = replace(context, tol=1e-4)
    probability = maps["probability"].values

    def cold() -> None:
        for q in sweep["failure_probability"].values:
            rejecting = np.full((1, *probability.shape[1:]), q, dtype=np.float32)
            exact.solve(np.concatenate([(1 - q) * probability, rejecting]))

    def run(n_workers: int) -> None:
        replace(one, n_workers=n_workers).operating_points(maps["probability"], test)

    seconds = best_in_turns({"one": lambda: run(1), "cold": cold, "two": lambda: run(2)}, rounds=8)
    yield Row(
        f"joint sweep of {sweep.sizes['operating_point']} / as many cold solves, one worker",
        f"{seconds['one'] / seconds['cold']:.2f} ({seconds['one']:.1f} s)",
        "<= 1",
    )
    yield Row(
        "the same sweep, two workers / one", f"{seconds['two'] / seconds['one']:.2f}", "<= 0.6"
    )


def search_cost(maps: xr.Dataset, test: xr.DataArray, context: hr.SegSALSA) -> Iterator[Row]:
    """Yield how many solves a wanted fraction takes, without and with the points of a sweep."""
    fractions = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8)
    rejector = hr.JointRejector(context)
    listed = ", ".join(f"{fraction:g}" for fraction in fractions)
    for start, attributes in (
        ("from nothing", lambda r: rejector.reject(maps["probability"], fraction=r).attrs),
        ("after a sweep", lambda r: after_sweep(rejector, maps["probability"], test, r)),
    ):
        points = [attributes(fraction) for fraction in fractions]
        off = [
            abs(attrs["rejected_fraction"] - r) for attrs, r in zip(points, fractions, strict=True)
        ]
        yield Row(
            f"solves for a wanted fraction of {listed}, {start}",
            f"{', '.join(str(attrs['n_solves']) for attrs in points)} (at most {max(off):.4f} off)",
            "<= 12, <= 0.005",
        )


def after_sweep(
    rejector: hr.JointRejector, probability: xr.DataArray, test: xr.DataArray, fraction: float
) -> dict[str, Any]:
    """Return what a search reaches from the points of a sweep, whose solves are not counted."""
    in_sweep = rejector.sweep(probability, test)
    swept = rejector.sweep(probability, test, fraction=fraction)
    shares = swept["rejected"].sum(("y", "x")) / probability[0].notnull().sum()
    return {
        "rejected_fraction": float(shares[abs(shares - fraction).argmin()]),
        "n_solves": swept.attrs["n_solves"] - in_sweep.attrs["n_solves"],
    }


def kept_accuracy(context: hr.SegSALSA) -> Iterator[Row]:
    """Yield the accuracy of the kept pixels, the rejectors side by side."""
    rejectors = {
        "pixelwise": hr.PixelwiseRejector(),
        "sequential": hr.SequentialRejector(context),
        "joint": hr.JointRejector(context),
        FOUR_CLASSES: hr.JointRejector(context, rejection_classes=4),
    }
    mean = mean_accuracies(rejectors, context)
    for name, values in mean.items():
        yield Row(
            f"{name}: A at r = 0.05, 0.1, 0.2, 0.3, 0.4, 0.5",
            ", ".join(f"{values[i]:.2f}" for i in (0, 1, 3, 5, 7, 9)),
        )
    yield from (least_difference(mean, name) for name in ("joint", FOUR_CLASSES))
    for name in ("sequential", "joint"):
        yield Row(
            f"{name} - pixelwise, least for r in [0.05, 0.5], points",
            f"{(mean[name] - mean['pixelwise']).min():+.2f}",
            "> 0",
        )


def strong_context() -> Iterator[Row]:
    """Yield joint beside sequential rejection where the context ties whole regions together."""
    context = hr.SegSALSA(hr.VectorTV(STRONG_WEIGHT), n_threads=1)
    rejectors = {
        "sequential": hr.SequentialRejector(context),
        "joint, the paper's rule": hr.JointRejector(context),
        FOUR_CLASSES: hr.JointRejector(context, rejection_classes=4),
    }
    mean = mean_accuracies(rejectors, context)
    for name in list(rejectors)[1:]:
        row = least_difference(mean, name)
        yield replace(row, what=f"weight {STRONG_WEIGHT:g}: {row.what}")


def mean_accuracies(
    rejectors: Mapping[str, hr.Rejector], context: hr.SegSALSA
) -> dict[str, np.ndarray]:
    """Return the kept accuracy of each rejector at `FRACTIONS` in percent, mean over the draws."""
    accuracies: dict[str, list[np.ndarray]] = {name: [] for name in rejectors}
    for seed in range(N_SEEDS):
        maps, test = evidence(seed, context)
        for name, rejector in rejectors.items():
            points = rejector.operating_points(maps, test)
            accuracies[name].append(100 * hr.accuracy_at(points, FRACTIONS).values)
    return {name: np.mean(values, axis=0) for name, values in accuracies.items()}


def least_difference(mean: Mapping[str, np.ndarray], name: str) -> Row:
    """Return how far a rejector falls behind sequential rejection at most."""
    difference = (mean[name] - mean["sequential"])[FRACTIONS < 0.401]
    some = ", ".join(f"{value:+.2f}" for value in difference[1::2])
    return Row(
        f"{name} - sequential, least for r in [0.05, 0.4], and at 0.1, 0.2, 0.3, 0.4, points",
        f"{difference.min():+.2f}; {some}",
        ">= -0.5",
    )


def novelty() -> Iterator[Row]:
    """Yield how well left-out classes are recognised, and what that costs with all classes."""
    cube, labels = hr.load_indian_pines()
    regression = hr.SparseMultinomialRegression(sparsity=0.01, kernel="rbf")
    smooth = hr.SceneClassifier(regression, features=[hr.MNF(30), hr.Smooth(2.0)])
    context = hr.SegSALSA(hr.VectorTV(STRONG_WEIGHT))
    ranked = {"pixelwise": hr.PixelwiseRejector(), "sequential": hr.SequentialRejector(context)}
    yield from recognition("regression", smooth, cube, labels, ranked, context)
    context = hr.SegSALSA(hr.VectorTV(WEIGHT, edges="image"))
    # how novelty counts was chosen on seeds 0 to 5 and 500 to 504
    pool = partial(recognition, "pool", hr.AutoClassifier(), cube, labels, context=context)
    yield from pool(ranked, hold_outs=[(k,) for k in LARGE_CLASSES], seeds=range(600, 608))
    joint = {"joint": hr.JointRejector(context, n_points=12)}
    yield from pool(joint, hold_outs=((14,), (2,)), seeds=range(600, 608))


def recognition(
    what: str,
    classifier: Any,
    image: xr.DataArray,
    labels: xr.DataArray,
    rejectors: Mapping[str, Any],
    context: hr.SegSALSA,
    *,
    hold_outs: Sequence[tuple[int, ...]] = HOLD_OUTS,
    seeds: Sequence[int] = range(N_SEEDS),
) -> Iterator[Row]:
    """Yield AUROC and kept accuracy of rejectors, first without and then with novelty."""
    pairs = [[replace(r, novelty=aware) for r in rejectors.values()] for aware in (False, True)]
    separated, accuracies = [], []
    for seed in seeds:
        for hold in hold_outs:
            maps, test = held_out(classifier, image, labels, hold, seed, context)
            unknown = labels.isin(hold).values
            separated.append(
                [[_auroc(r, maps, test.values > 0, unknown) for r in row] for row in pairs]
            )
        maps, test = held_out(classifier, image, labels, (), seed, context)
        points = [[r.operating_points(maps, test) for r in row] for row in pairs]
        accuracies.append(
            [[100 * hr.accuracy_at(curve, 0.1).item() for curve in row] for row in points]
        )
    names = ", ".join(rejectors)
    without = ", ".join(f"{mean:.3f}" for mean in np.mean(separated, axis=0)[0])
    yield Row(f"{what}: AUROC of unknown classes without novelty: {names}", without)
    yield Row(f"{what}: gain with novelty, paired", _gain(separated, 3), "> 0")
    yield Row(f"{what}: A(0.1), points, nothing unknown, paired", _gain(accuracies, 2), ">= -0.3")


def held_out(
    classifier: Any,
    image: xr.DataArray,
    labels: xr.DataArray,
    hold: tuple[int, ...],
    seed: int,
    context: hr.SegSALSA,
) -> tuple[xr.Dataset, xr.DataArray]:
    """Return what is learned without the classes `hold`, and the test labels of the others."""
    others = labels.where(~labels.isin(hold), 0).astype(labels.dtype)
    training, test = hr.sample_per_class(others, 10, seed=seed)
    model = clone(classifier)
    probability = model.fit_predict_proba(image, training)
    maps = {
        "probability": probability,
        "hidden_field": context.solve(probability, image=image).hidden_field,
        "p_value": hr.Novelty().fit_p_value(image, training),
        "image": image,
    }
    return xr.Dataset(maps), test


def _auroc(rejector: Any, maps: xr.Dataset, others: np.ndarray, unknown: np.ndarray) -> float:
    """Return the probability that an unknown pixel is rejected before a known one."""
    judged = others | unknown
    if isinstance(rejector, hr.RankedRejector):
        confidence = rejector.rank(maps).scores()
        return float(roc_auc_score(unknown[judged], -confidence[judged]))
    rejected = rejector.sweep(maps, judged.astype(np.uint8)).rejected.values
    return float(
        auc(*np.sort([rejected[:, others].mean(axis=1), rejected[:, unknown].mean(axis=1)]))
    )


def _gain(pairs: Sequence[Any], digits: int) -> str:
    """Return mean and standard error of the second minus the first of (draw, 2, rejector)."""
    gain = np.diff(pairs, axis=1)[:, 0]
    error = gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
    both = zip(gain.mean(axis=0), error, strict=True)
    return ", ".join(f"{mean:+.{digits}f} ± {of_mean:.{digits}f}" for mean, of_mean in both)


def _tiled(maps: xr.Dataset, side: int) -> xr.Dataset:
    plain = {name: np.tile(maps[name].values, (1, side, side)) for name in maps}
    coords = {"category": maps["category"].values}
    dims = ("category", "y", "x")
    return xr.Dataset({name: (dims, values) for name, values in plain.items()}, coords=coords)
