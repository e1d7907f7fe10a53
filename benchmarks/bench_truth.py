"""What a run may say about itself where labels are polygons: reported accuracy minus the truth.

A synthetic scene whose every pixel is known: classes lie in patches, and the spectrum of a class
drifts from place to place, so that a polygon tells little about the next. Square polygons are
digitised inside the patches. A split by polygons and one that draws pixels from all polygons train
the same classifier; what each reports on its test pixels is compared with the accuracy of its map
on the whole scene.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.ndimage import gaussian_filter, minimum_filter

import hsreject as hr
from benchmarks.timing import Row
from hsreject.measures.uncertainty import Clusters
from hsreject.splits.polygons import polygon_numbers

MINUTES = 12
Split = tuple[xr.DataArray, xr.DataArray]

FIRST_SEED, N_DRAWS = 200, 30  # the scene was designed on other seeds
N_JUDGED = 10  # draws on which whole runs are made
SIDE, N_CLASSES, N_BANDS = 240, 4, 12
POLYGONS, WIDTH = 12, 5  # per class, and pixels of a side
DRIFT = 1.5  # how far a band of a class strays from place to place; class means stray by 1


class Report(NamedTuple):
    """What a run says, and what is true."""

    reported: float
    low: float
    high: float
    truth: float


def drifting_scene(seed: int) -> tuple[xr.DataArray, xr.DataArray]:
    """Return a cube and the class of every pixel; spectra of a class drift with the place."""
    rng = np.random.default_rng(seed)

    def smooth(sigma: float) -> np.ndarray:
        field = gaussian_filter(rng.normal(size=(SIDE, SIDE)), sigma, mode="wrap")
        return (field - field.mean()) / field.std()

    truth = np.argmax([smooth(7.0) for _ in range(N_CLASSES)], axis=0) + 1
    means = rng.normal(size=(N_CLASSES, N_BANDS))
    drift = np.array([smooth(8.0) for _ in range(N_BANDS)])
    spectra = np.moveaxis(means[truth - 1], -1, 0) + DRIFT * drift
    noisy = spectra + 0.3 * rng.normal(size=spectra.shape)
    cube = xr.DataArray(noisy.astype(np.float32), dims=("band", "y", "x"))
    return cube, xr.DataArray(truth.astype(np.uint8), dims=("y", "x"), name="labels")


def digitised(truth: xr.DataArray, seed: int) -> xr.DataArray:
    """Return labels of square polygons, each inside one patch and apart from the others."""
    rng, values = np.random.default_rng([seed, 1]), truth.values
    labels = np.zeros_like(values)
    half, apart = WIDTH // 2, WIDTH + 3  # three pixels between neighbours, which stay two
    for value in range(1, N_CLASSES + 1):
        inside = minimum_filter(values == value, size=WIDTH, mode="constant")
        n_drawn = 0
        for row, column in rng.permutation(np.argwhere(inside)):
            far = apart - half
            rows, columns = (slice(max(c - far, 0), c + far + 1) for c in (row, column))
            if n_drawn < POLYGONS and not labels[rows, columns].any():
                labels[row - half : row + half + 1, column - half : column + half + 1] = value
                n_drawn += 1
    return truth.copy(data=labels)


def report(
    model: hr.SceneClassifier, cube: xr.DataArray, split: Split, truth: xr.DataArray
) -> Report:
    """Return what the test pixels say of the map that is learned from the training pixels."""
    train, test = split
    label = model.fit_predict_proba(cube, train).idxmax("category")
    used = test.values > 0
    correct = (label == test).values[used]
    clusters = Clusters.of(correct, polygon_numbers(test)[used])
    low, high = clusters.interval(correct, np.ones(correct.size, dtype=bool))
    return Report(float(correct.mean()), low, high, float((label == truth).mean()))


def reports(model: hr.SceneClassifier, seed: int) -> dict[str, Report]:
    """Return what both splits of one scene say of a model."""
    cube, truth = drifting_scene(seed)
    labels = digitised(truth, seed)
    splits = {
        "whole polygons": hr.sample_polygons(labels, seed=seed),
        "random pixels of the polygons": hr.sample_fraction(labels, 0.5, seed=seed),
    }
    return {name: report(model, cube, split, truth) for name, split in splits.items()}


MODELS = {
    "linear discriminants": hr.SceneClassifier("lda"),
    "nearest neighbour": hr.SceneClassifier("nearest_neighbor"),
    "auto": hr.AutoClassifier(),  # which takes most of the time
}


def warned(seed: int, sampling: str) -> tuple[bool, float]:
    """Return whether a run warns that coordinates do as well, and how much better it truly is."""
    cube, truth = drifting_scene(seed)
    config = {
        "scene": (cube, digitised(truth, seed)),
        "sampling": {"name": sampling, "fraction": 0.5},
        "features": [],
        "classifier": "lda",
        "rejectors": [{"name": "pixelwise", "novelty": False}],
        "seed": seed,
    }
    result = hr.run(config)
    place = hr.SceneClassifier("nearest_neighbor", features=["coordinates"])
    other = place.fit_predict_proba(cube, result["train"]).idxmax("category")
    gain = (result["label"][0] == truth).mean() - (other == truth).mean()
    return "coordinates" in str(result["delivered"].attrs["warnings"]), 100 * float(gain)


def rows() -> Iterator[Row]:
    """Yield bias and coverage of both splits for each classifier, and what the judge says."""
    for title, model in MODELS.items():
        drawn = [reports(model, seed) for seed in range(FIRST_SEED, FIRST_SEED + N_DRAWS)]
        for name in drawn[0]:
            of_split = [one[name] for one in drawn]
            bias = np.array([100 * (one.reported - one.truth) for one in of_split])
            covered = np.mean([one.low <= one.truth <= one.high for one in of_split])
            truth = 100 * np.mean([one.truth for one in of_split])
            error = bias.std(ddof=1) / np.sqrt(N_DRAWS)
            bounds = ("-4 to +2", ">= 85 %") if name == "whole polygons" else ("", "")
            yield Row(
                f"{title}, {name}: reported minus true accuracy, mean of {N_DRAWS} draws",
                f"{bias.mean():+.1f} points (se {error:.1f}; true {truth:.1f} %)",
                bounds[0],
            )
            yield Row(
                f"{title}, {name}: the 95 % interval holds the truth",
                f"in {covered:.0%} of draws",
                bounds[1],
            )
    for sampling, name in (
        ("polygons", "whole polygons"),
        ("fraction", "random pixels of the polygons"),
    ):
        judged = [warned(seed, sampling) for seed in range(FIRST_SEED, FIRST_SEED + N_JUDGED)]
        gain = np.mean([one for _, one in judged])
        yield Row(
            f"linear discriminants, {name}: a run warns that coordinates do as well",
            f"{sum(flagged for flagged, _ in judged)} of {N_JUDGED} draws (truly {gain:.1f} points "
            "better on average)",
            "0" if sampling == "polygons" else "",
        )
