"""Whether `hsreject next` is worth it: labels where it asks for them, against other labels.

Starting from few labels, five rounds of twenty more are added: where `hr.next_labels` asks, at
random, and where the map is least confident. After each round the automatic classifier maps the
scene anew, and test pixels, a random half of the reference that nobody may ask about, judge it. A
quarter of the pixels is rejected in every round. The map is cut to the pixels that have a reference
or are labelled, since only these can be answered.

``python -m benchmarks.next_labels --out rows.csv --enmap FOLDER`` adds a line per map to the file
as it is made, and goes on where it was stopped; ``--table`` prints what the lines say. The rule was
chosen on seeds 5000 to 5004; the figures are those of seeds 5100 to 5129.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import numpy as np
import xarray as xr

import hsreject as hr
from benchmarks.bench_truth import drifting_scene

ROUNDS, LABELS, REJECTED = 5, 20, 0.25
SCENES = {
    "drift": "synthetic, spectra drift",
    "ip_random": "Indian Pines, random start",
    "enmap": "EnMAP Potsdam, polygon start",
    "ip_polygons": "Indian Pines, polygon start",
}
RULES = ("next", "random", "least confident")
COLUMNS = ("scene", "seed", "rule", "round", "labels", "accuracy", "aurc", "certified")


def polygons(labels: xr.DataArray, seed: int, per_class: int) -> xr.DataArray:
    """Return the labels of some polygons of 3 x 3 pixels per class, as somebody digitises them."""
    rng, values = np.random.default_rng([seed, 7]), labels.values
    drawn = np.zeros_like(values)
    for value in np.unique(values[values > 0]):
        for _ in range(per_class):
            row, column = rng.choice(np.argwhere((values == value) & (drawn == 0)))
            square = (slice(max(row - 1, 0), row + 2), slice(max(column - 1, 0), column + 2))
            drawn[square][values[square] == value] = value
    return labels.copy(data=drawn)


def start(scene: str, seed: int, enmap: Path) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """Return the cube, the reference and the labels that a draw begins with."""
    if scene == "drift":  # spectra of a class drift from place to place; truth everywhere
        window = {"y": slice(0, 96), "x": slice(0, 96)}
        cube, labels = (array.isel(window) for array in drifting_scene(1000 + seed))
        return cube, labels, polygons(labels, seed, 3)
    if scene == "enmap":
        cube = hr.open_scene(enmap / "enmap_potsdam_mosaic18.tif").compute()
        labels = hr.open_labels(enmap / "enmap_potsdam_mosaic18_labels.tif").compute()
        return cube, labels, polygons(labels, seed, 3)
    cube, labels = hr.load_indian_pines()
    if scene == "ip_random":
        return cube, labels, hr.sample_per_class(labels, 5, seed=seed)[0]
    return cube, labels, polygons(labels, seed, 2)


def asked(
    rule: str,
    probability: xr.DataArray,
    inside: np.ndarray,
    open_pixels: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the flat places of the next labels, of the pixels that may be asked about."""
    confidence = probability.max("category").values
    places = np.flatnonzero(open_pixels)
    if rule == "random":
        return rng.choice(places, LABELS, replace=False)
    if rule == "least confident":
        return places[np.argsort(confidence.ravel()[places], kind="stable")[:LABELS]]
    label = probability.fillna(0).idxmax("category").astype(np.uint8)
    label = label.copy(data=np.where(inside, label.values, 255).astype(np.uint8))
    label = hr.schema.attach_classes(label, hr.schema.class_table(probability))
    doubtful = confidence <= np.quantile(confidence[open_pixels], REJECTED)
    maps = hr.filled_map(label, doubtful & inside, probability=probability)
    points = hr.next_labels(maps, LABELS, exclude=~open_pixels).points
    return np.ravel_multi_index((points.row, points.column), inside.shape)


def certified_share(label: np.ndarray, confidence: np.ndarray, test: np.ndarray) -> float:
    """Return the share of the test pixels that 400 labels certify: 5 % wrong, level 90 %."""
    on_test = np.where(test > 0, label, 255).astype(np.uint8)
    sample = hr.draw_sample(on_test, min(400, int((test > 0).sum())), seed=0)
    return hr.certify(on_test, np.nan_to_num(confidence), sample.with_reference(test)).coverage


def draw(scene: str, seed: int, done: set[tuple[str, ...]], enmap: Path, path: Path) -> None:
    """Write a row for every round of every rule that is not done yet."""
    cube, reference, begin = start(scene, seed, enmap)
    values = reference.values
    half = np.random.default_rng([seed, 3]).random(values.shape) < 0.5
    test = np.where((begin.values == 0) & half, values, 0)
    first = None
    for rule in RULES:
        if (scene, str(seed), rule, str(ROUNDS)) in done:
            continue
        train, rng = begin.values.copy(), np.random.default_rng([seed, 5])
        for number in range(ROUNDS + 1):
            probability = first
            if probability is None or number:
                labels = begin.copy(data=train)
                probability = hr.AutoClassifier().fit_predict_proba(cube, labels)
            first = probability if first is None else first
            confidence = probability.max("category").values
            label = probability.fillna(0).idxmax("category").values
            judged = test > 0
            curve = hr.rejection_curve(label[judged] == test[judged], confidence[judged])
            share = certified_share(label, confidence, test) if number in {0, ROUNDS} else ""
            accuracy = float((label[judged] == test[judged]).mean())
            row = (scene, seed, rule, number, (train > 0).sum(), accuracy, hr.aurc(curve), share)
            with path.open("a", newline="") as stream:
                csv.writer(stream).writerow(row)
            if number < ROUNDS:
                has_data = np.isfinite(confidence)
                open_pixels = (values > 0) & ~half & (train == 0) & has_data
                places = asked(rule, probability, (values > 0) & has_data, open_pixels, rng)
                train.flat[places] = values.flat[places]


def table(path: Path) -> None:
    """Print means and paired gains with standard errors as Markdown, of draws that are complete."""
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in csv.reader(path.open())]
    percent = {
        (row["scene"], row["seed"], row["rule"], int(row["round"]), figure): 100
        * float(row[figure])
        for row in rows
        for figure in ("accuracy", "aurc", "certified")
        if row[figure]
    }
    columns = (
        "scene",
        "draws",
        "after",
        "figure",
        *RULES,
        *(f"next - {rule}" for rule in RULES[1:]),
    )
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for scene, title in SCENES.items():
        last = {(row["seed"], row["rule"]) for row in rows
                if (row["scene"], row["round"]) == (scene, str(ROUNDS))}  # fmt: skip
        seeds = sorted({seed for seed, _ in last if all((seed, rule) in last for rule in RULES)})
        if len(seeds) < 2:
            continue
        for number, figure in ((1, "accuracy"), (2, "accuracy"), (5, "accuracy"), (5, "aurc"),
                               (5, "certified")):  # fmt: skip
            of_rule = [
                np.array([percent[scene, seed, rule, number, figure] for seed in seeds])
                for rule in RULES
            ]
            gains = [of_rule[0] - other for other in of_rule[1:]]
            cells = [title, str(len(seeds)), f"{number * LABELS} labels", figure]
            cells += [f"{values.mean():.2f}" for values in of_rule]
            cells += [f"{g.mean():+.2f} ± {g.std(ddof=1) / len(g) ** 0.5:.2f}" for g in gains]
            print(f"| {' | '.join(cells)} |")


def main() -> None:
    """Run the draws that were asked for, or print what the rows say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="CSV file of rows")
    parser.add_argument("--scenes", nargs="*", default=SCENES)
    parser.add_argument("--seeds", nargs=2, type=int, default=[5100, 5130])
    parser.add_argument("--enmap", type=Path, help="folder of the EnMAP mosaic")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        warnings.simplefilter("ignore", hr.HsrejectWarning)
        options.out.touch()
        done = {tuple(row[:4]) for row in csv.reader(options.out.open())}
        for seed in range(*options.seeds):
            for scene in options.scenes:
                draw(scene, seed, done, options.enmap, options.out)
    table(options.out)


if __name__ == "__main__":
    main()
