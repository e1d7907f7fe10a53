"""Whole runs, of the demo and of the paper's protocol, beside a tuned support vector machine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import hsreject as hr
from benchmarks.timing import Row, best_seconds, peak_bytes

MINUTES = 5
CONFIGS = Path(__file__).parents[1] / "configs"
DEMO, PAPER = CONFIGS / "indian_pines.toml", CONFIGS / "indian_pines_paper.toml"

# The grid of Hsu, Chang and Lin, "A practical guide to support vector classification" (2003), and a
# grid of a fifth of its values.
GUIDE_GRID = {"C": 2.0 ** np.arange(-5, 16, 2), "gamma": 2.0 ** np.arange(-15, 4, 2)}
COARSE_GRID = {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-4, 0, 5)}


def support_vector_machine(grid: dict[str, np.ndarray], feature: hr.SceneTransformer) -> None:
    """Tune an SVM by 5-fold cross-validation on features and predict the scene."""
    cube, labels = hr.load_indian_pines()
    train, _ = hr.sample_per_class(labels, 10, seed=0)
    features = feature.fit(cube).transform(cube).values
    samples = features.reshape(len(features), -1).T
    labelled = train.values.ravel() > 0
    search = GridSearchCV(SVC(kernel="rbf"), grid, cv=5)
    search.fit(samples[labelled], train.values.ravel()[labelled])
    search.predict(samples)


def rows() -> Iterator[Row]:
    """Yield the time of the runs, without figures and files, and their peak memory."""
    alone = ["rejectors=['pixelwise', 'sequential']", "baselines=[]"]
    runs = {
        "the demo": partial(hr.run, DEMO),
        "the demo without its rows for comparison": partial(hr.run, DEMO, settings=alone[1:]),
        "the paper's protocol, with a joint sweep of 20 points": partial(hr.run, PAPER),
        "the paper's protocol without joint rejection": partial(hr.run, PAPER, settings=alone),
    }
    ours = {name: best_seconds(run, repeat=3) for name, run in runs.items()}
    for name, grid, feature, bound in (
        ("110 candidates, 5 folds, bands", GUIDE_GRID, hr.Scale(), "<= 2 times"),
        ("110 candidates, 5 folds, 15 MNF", GUIDE_GRID, hr.MNF(15), ""),
        ("25 candidates, 5 folds, 15 MNF", COARSE_GRID, hr.MNF(15), ""),
    ):
        theirs = best_seconds(partial(support_vector_machine, grid, feature), repeat=3)
        yield Row(f"SVM tuned over {name}", f"{theirs:.2f} s")
        for run, seconds in ours.items():
            yield Row(run, f"{seconds:.2f} s, {seconds / theirs:.2f} times", bound)
    for name, config in (("the demo", DEMO), ("the paper's protocol", PAPER)):
        peak = peak_bytes(f"import hsreject as hr; hr.run({str(config)!r})")
        yield Row(f"peak memory of {name}", f"{peak / 1e9:.2f} GB", "< 1 GB")
