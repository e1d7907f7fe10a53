"""The whole run of the paper's protocol beside a tuned support vector machine."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import hsreject as hr
from benchmarks.timing import Row, best_seconds, peak_bytes

CONFIG = Path(__file__).parents[1] / "configs" / "indian_pines.toml"

# The grid of Hsu, Chang and Lin, "A practical guide to support vector classification" (2003), and a
# grid of a fifth of its values.
GUIDE_GRID = {"C": 2.0 ** np.arange(-5, 16, 2), "gamma": 2.0 ** np.arange(-15, 4, 2)}
COARSE_GRID = {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-4, 0, 5)}


def support_vector_machine(grid: dict[str, np.ndarray]) -> None:
    """Tune an SVM by 5-fold cross-validation on 15 MNF components and predict the scene."""
    cube, labels = hr.load_indian_pines()
    train, _ = hr.sample_per_class(labels, 10, seed=0)
    components = hr.MNF(15).fit(cube).transform(cube).values.reshape(15, -1).T
    chosen = train.values.ravel() > 0
    search = GridSearchCV(SVC(kernel="rbf"), grid, cv=5)
    search.fit(components[chosen], train.values.ravel()[chosen])
    search.predict(components)


def rows() -> Iterator[Row]:
    """Yield the time of the run, without figures and files, and its peak memory."""
    ours = best_seconds(lambda: hr.run(CONFIG), repeat=3)
    plain = best_seconds(
        lambda: hr.run(CONFIG, settings=["rejectors=['pixelwise', 'sequential']"]), repeat=3
    )
    for name, grid, wanted in (
        ("110 candidates", GUIDE_GRID, "<= 3 times"),
        ("25 candidates", COARSE_GRID, ""),
    ):
        theirs = best_seconds(partial(support_vector_machine, grid), repeat=3)
        yield Row(f"SVM tuned over {name}, 5 folds, 15 MNF", f"{theirs:.2f} s")
        yield Row(
            "the run, with a joint sweep of 20 points",
            f"{ours:.2f} s, {ours / theirs:.2f} times",
            wanted,
        )
        yield Row("the run without joint rejection", f"{plain:.2f} s, {plain / theirs:.2f} times")
    peak = peak_bytes(f"import hsreject as hr; hr.run({str(CONFIG)!r})")
    yield Row("peak memory of the run", f"{peak / 1e9:.2f} GB", "< 1 GB")
