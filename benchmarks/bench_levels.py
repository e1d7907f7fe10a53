"""Coarser answers: time of their curve, whether their promises hold, and what they keep.

``python -m benchmarks levels`` redraws the samples of a promise 1,000 times. What coarser answers
bring on real scenes is printed by ``python -m benchmarks.bench_levels --enmap CUBE LABELS``: the
coverage at 5 and 10 % error, best possible (the threshold chosen with the truth) and certified (a
sequential design of 400 labels, 90 % confidence), as Markdown.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr

import hsreject as hr
from benchmarks.timing import Row, best_in_turns
from hsreject import schema
from hsreject.errors import HsrejectWarning

MINUTES = 5
N_REDRAWS = 1000
ERRORS = (0.05, 0.1)
N_LABELS = 400

INDIAN_PINES_GROUPS = {
    "corn": ["Corn-notill", "Corn-mintill", "Corn"],
    "soybean": ["Soybean-notill", "Soybean-mintill", "Soybean-clean"],
    "grass": ["Grass-pasture", "Grass-trees", "Grass-pasture-mowed"],
    "wood": ["Woods", "Buildings-Grass-Trees-Drives"],
}
ENMAP_NAMES = ["roof", "pavement", "low vegetation", "soil", "tree", "water"]
ENMAP_GROUPS = {
    "sealed": ["roof", "pavement"],
    "vegetation": ["low vegetation", "tree"],
    "unsealed": ["vegetation", "soil"],
}


def redrawn_scene() -> tuple[xr.Dataset, np.ndarray]:
    """Return a ranking that is too sure of itself, and the truth: promises are hard to keep."""
    rng = np.random.default_rng(0)
    honest = rng.dirichlet(np.full(5, 0.35), (50, 60)).transpose(2, 0, 1) + 1e-9
    total = np.cumsum(honest / honest.sum(axis=0), axis=0)
    truth = (rng.uniform(size=(50, 60)) > total[:-1]).sum(axis=0) + 1
    stated = honest**1.4 / (honest**1.4).sum(axis=0)
    table = hr.ClassTable.from_names(["grass", "soil", "tree", "water", "ice"])
    field = schema.attach_classes(xr.DataArray(stated, dims=schema.FIELD_DIMS), table)
    groups = {"low": ["grass", "soil"], "land": ["low", "tree"]}
    return hr.HierarchicalRejector(groups).rank(field.assign_attrs(calibrated=True)), truth


def labelled(
    label: xr.DataArray, confidence: xr.DataArray, truth: np.ndarray, n: int, **asked: object
) -> hr.Certificate:
    """Return the certificate of a sequential design that was labelled to its end."""
    exclude = asked.get("exclude")
    sample = hr.draw_sample(label, n, design="sequential", confidence=confidence, **asked)
    size = 0
    while len(sample) > size:
        size = len(sample)
        sample = hr.more_points(
            label, confidence, sample.with_reference(truth), 100, exclude=exclude
        )
    return hr.certify(label, confidence, sample, exclude=exclude)


def error_at(ranking: hr.Ranking, truth: np.ndarray, threshold: float) -> float:
    """Return the share of wrong answers among those that a threshold keeps."""
    answers = ranking.answers(threshold).values
    kept_pixels = (answers != schema.REJECTED) & ranking.has_data.values & (truth > 0)
    tree = hr.ClassTree.from_attrs(ranking.confidence.attrs)
    return float(1 - tree.holds(answers[kept_pixels], truth[kept_pixels]).mean())


def sort_row(n: int = 1_000_000) -> Row:
    """Compare the curve of three levels, all confidences distinct, with a bare sort per level."""
    rng = np.random.default_rng(0)
    tree = hr.ClassTree.from_groups(ENMAP_NAMES, ENMAP_GROUPS)
    label = rng.integers(1, 7, n)
    reference = np.where(rng.random(n) < 0.7, label, rng.integers(1, 7, n))
    levels = np.sort(rng.random((tree.n_levels, n)), axis=0)
    seconds = best_in_turns(
        {
            "sorts": lambda: [np.argsort(confidence) for confidence in levels],
            "flat": lambda: hr.rejection_curve(np.tile(label == reference, 3), levels.ravel()),
            "levels": lambda: hr.level_curve(label, levels, reference, tree),
        },
        rounds=9,
        clock=time.process_time,  # none uses threads, and others on the machine do not count
    )
    times = " / ".join(f"{1e3 * seconds[name]:.0f} ms" for name in ("levels", "sorts"))
    return Row(
        f"exact curve of {n:,} samples with 3 levels ({3 * n + 1:,} points) / one bare argsort per "
        "level; the same / a flat curve of as many points",
        f"{seconds['levels'] / seconds['sorts']:.1f} ({times}); "
        f"{seconds['levels'] / seconds['flat']:.1f}",
        "of the order of the sorts; at most 1.5",
    )


def rows() -> Iterator[Row]:
    """Yield the time of a curve, and how often promises of coarser answers are broken."""
    yield sort_row()
    ranking, truth = redrawn_scene()
    label, levels = ranking.label, ranking.confidence
    for design, n, alpha in (
        ("random", 200, 0.15),
        ("sequential", 200, 0.15),
        ("sequential", 200, 0.1),
    ):
        broken, coverage = 0, []
        for seed in range(N_REDRAWS):
            if design == "sequential":
                certificate = labelled(label, levels, truth, n, seed=seed, max_error=alpha)
            else:
                sample = hr.draw_sample(label, n, seed=seed).with_reference(truth)
                certificate = hr.certify(label, levels, sample, max_error=alpha)
            coverage.append(certificate.coverage)
            if certificate.threshold is not None:
                broken += error_at(ranking, truth, certificate.threshold) > alpha
        yield Row(
            f"{design}, {n} labels, {100 * alpha:g} % error: promises broken of {N_REDRAWS}",
            f"{100 * broken / N_REDRAWS:.1f} %, keeps {100 * np.mean(coverage):.0f} %",
            "at most 10 %",
        )
    broken, coverage = 0, []
    for seed in range(N_REDRAWS):
        asked = {"seed": seed, "max_error": 0.15, "per_class": "together"}
        certificate = labelled(label, levels, truth, 500, **asked)
        coverage.append(certificate.coverage)
        broken += any(_is_broken(one, ranking, truth) for one in certificate.by_class)
    yield Row(
        "sequential, 500 labels, 15 % error, per class and group together: promises broken of "
        f"{N_REDRAWS}",
        f"{100 * broken / N_REDRAWS:.1f} %, keeps {100 * np.mean(coverage):.0f} %",
        "at most 10 %",
    )


def _is_broken(one: hr.Certificate, ranking: hr.Ranking, truth: np.ndarray) -> bool:
    """Tell whether more of what is kept as a class or group is something else than promised."""
    if one.threshold is None:
        return False
    levels = ranking.confidence
    tree = hr.ClassTree.from_attrs(levels.attrs)
    row = tree.table.values.index(one.class_value)
    kept_pixels = levels.values[tree.levels[row]] >= one.threshold
    kept_pixels &= tree.holds(one.class_value, ranking.label.values)
    return bool((~tree.holds(one.class_value, truth[kept_pixels])).mean() > one.max_error)


Draw = Callable[[int], tuple[xr.DataArray, xr.DataArray, xr.DataArray]]


def scenes(enmap: tuple[str, str] | None) -> Iterator[tuple[str, dict[str, list[str]], Draw]]:
    """Yield what is measured: a name, its groups, and how training pixels are drawn."""
    loaded = {"Indian Pines": (*hr.load_indian_pines(), INDIAN_PINES_GROUPS)}
    if enmap is not None:
        cube = hr.open_scene(enmap[0]).compute()
        labels = hr.open_labels(enmap[1], like=cube)
        labels = schema.attach_classes(labels, hr.ClassTable.from_names(ENMAP_NAMES))
        loaded["EnMAP Potsdam"] = cube, labels, ENMAP_GROUPS
    samplings = {
        "random": partial(hr.sample_per_class, n_per_class=10),
        "blocks": partial(hr.sample_blocks, block_size=12, fraction=0.3, buffer=4, n_per_class=10),
    }
    for name, (cube, labels, groups) in loaded.items():
        for split, sampling in samplings.items():

            def drawn(seed: int, cube=cube, labels=labels, sampling=sampling):
                return cube, *sampling(labels, seed=seed)

            yield f"{name}, {split}", groups, drawn


def measured(groups: dict[str, list[str]], draw: Draw, seed: int) -> dict[str, list[float]]:
    """Return the figures of one draw by row: coverage, levels, bits, certified coverage, broken."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HsrejectWarning)
        cube, train, test = draw(seed)
        probability = hr.AutoClassifier().fit_predict_proba(cube, train)
    tree = hr.ClassTree.from_groups(schema.class_table(train), groups)
    tree = tree.subset(probability["category"].values)
    flat = hr.PixelwiseRejector().rank(probability)
    coarse = hr.HierarchicalRejector(tree).rank(probability)
    judged = (test > 0).values & coarse.has_data.values
    truth = np.where(judged, test.values, 0)
    figures: dict[str, list[float]] = {}
    for name, ranking in (("flat", flat), ("hierarchical", coarse)):
        curve = ranking.points(truth)
        bits = np.log2(probability.sizes["category"])
        for alpha in ERRORS:
            point = hr.choose_point(curve, accuracy=1 - alpha)
            row = curve.isel(operating_point=point.index)
            if name == "flat":
                levels = np.array([1 - point.rejected_fraction, 0.0, 0.0])
                information = bits * levels[0]
            else:
                levels = np.resize(np.append(row["kept_at_level"].values, [0.0, 0.0]), 3)
                information = float(row["information"])
            certificate = labelled(
                ranking.label, ranking.confidence, truth, N_LABELS, seed=seed, max_error=alpha,
                exclude=~judged,
            )  # fmt: skip
            error = np.nan
            if certificate.threshold is not None:
                kept_pixels = judged & (ranking.coarsest.values >= certificate.threshold)
                if name == "flat":
                    error = float((ranking.label.values != truth)[kept_pixels].mean())
                else:
                    error = error_at(ranking, truth, certificate.threshold)
            figures[f"{name}, {100 * alpha:g} %"] = [
                1 - point.rejected_fraction,
                *levels,
                information,
                certificate.coverage,
                float(error > alpha),
            ]
    return figures


def main() -> None:
    """Measure on real scenes, print, and keep what is measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first", type=int, default=1100)
    parser.add_argument("--enmap", nargs=2, metavar=("CUBE", "LABELS"), help="a second scene")
    parser.add_argument("--resume", type=Path, help="a file that keeps what is measured")
    options = parser.parse_args()
    results: dict[str, dict[str, list[float]]] = {}
    if options.resume is not None and options.resume.exists():
        for line in options.resume.read_text("utf-8").splitlines():
            results |= json.loads(line)
    seeds = range(options.first, options.first + options.seeds)
    print("| scene | error | answers | kept | as class | group | larger group | bits | certified |")
    print("|---" * 9 + "|", flush=True)
    for title, groups, draw in scenes(options.enmap):
        draws = []
        for seed in seeds:
            key = f"{title}; {seed}"
            if key not in results:
                results[key] = measured(groups, draw, seed)
                if options.resume is not None:
                    with options.resume.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({key: results[key]}) + "\n")
            draws.append(results[key])
        for alpha in ERRORS:
            for name in ("flat", "hierarchical"):
                values = np.array([one[f"{name}, {100 * alpha:g} %"] for one in draws])
                mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
                error = spread / np.sqrt(len(values))
                cells = [
                    f"{m:.3f} ± {e:.3f}" for m, e in zip(mean[[0, 5]], error[[0, 5]], strict=True)
                ]
                levels = [f"{share:.3f}" for share in mean[1:4]]
                print(
                    f"| {title} | {100 * alpha:g} % | {name} | {cells[0]} | {' | '.join(levels)} | "
                    f"{mean[4]:.2f} | {cells[1]} ({values[:, 6].sum():.0f} broken) |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
