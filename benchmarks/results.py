"""Measure the methods side by side: ``python -m benchmarks.results --seeds 30``.

Every method sees the same training pixels and is judged on the same test pixels: ten per class
drawn at random, with a tenth of them labelled wrong, or by blocks (12 pixels wide, 4 apart; classes
that are left without training pixels count as errors); one, two or three polygons of 5 x 5 pixels
per class; and ten pixels per class of one half of a scene, whose model is carried to the other
half. The table goes to the screen and to ``docs/results.md``.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import xarray as xr
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import hsreject as hr
from hsreject.classify.classifiers import SupportVectorMachine
from hsreject.errors import FewPolygonsWarning, HsrejectWarning
from hsreject.features.pixels import labelled_samples

DEFAULT_PATH = Path(__file__).parents[1] / "docs" / "results.md"
COLUMNS = ("OA %", "A(0.1) %", "max Q %", "AURC", "ECE", "CPU s")
# 110 candidates, as people tune them
SVM_GRID = {"C": np.logspace(-1, 4, 11), "gamma": np.logspace(-5, 0, 10)}


@dataclass(frozen=True)
class Answer:
    """What a method says of a scene."""

    label: xr.DataArray  # (y, x)
    confidence: xr.DataArray  # (y, x): larger is surer
    is_probability: bool = True  # or a rank, which has no calibration error


@dataclass(frozen=True)
class Task:
    """A scene with training pixels, and what is to be mapped and judged."""

    cube: xr.DataArray
    train: xr.DataArray
    test: xr.DataArray
    target: xr.DataArray | None = None  # the scene of the test pixels, if it is another one

    def probability(self, model: hr.SceneClassifier | hr.AutoClassifier) -> xr.DataArray:
        """Return what a model says: its strongest map, or that of the scene it is carried to."""
        if self.target is None:
            return model.fit_predict_proba(self.cube, self.train)
        return model.fit(self.cube, self.train).predict_proba(self.target)


Method = Callable[[Task], Iterator[tuple[str, Answer]]]
Split = Callable[[int], Task]


def from_field(field: xr.DataArray, *, is_probability: bool = True) -> Answer:
    """Return the most probable classes of a field (category, y, x), and how probable they are."""
    best = field.fillna(0).argmax("category")
    label = field["category"][best].where(field[0].notnull(), 0).astype(int)
    return Answer(label, field.max("category"), is_probability)


def auto(task: Task) -> Iterator[tuple[str, Answer]]:
    """Let the pool choose everything by itself, then put SegSALSA on top; its max z is a rank."""
    probability = task.probability(hr.AutoClassifier())
    yield "auto", from_field(probability)
    image = task.cube if task.target is None else task.target
    rejector = hr.SequentialRejector(hr.SegSALSA(hr.VectorTV(1.0, edges="image")))
    ranked = rejector.rank(xr.Dataset({"probability": probability, "image": image}))
    answer = Answer(ranked["label"], ranked["confidence"], is_probability=False)
    yield "auto, then vector TV with image edges", answer


def coordinates(task: Task) -> Iterator[tuple[str, Answer]]:
    """Classify by place alone."""
    model = hr.SceneClassifier("nearest_neighbor", features=["coordinates"])
    probability = task.probability(model)
    yield "coordinates", from_field(probability, is_probability=False)


def random_forest(task: Task) -> Iterator[tuple[str, Answer]]:
    """Classify the bands as they are with a forest of 500 trees."""
    probability = task.probability(hr.SceneClassifier("random_forest"))
    yield "random forest, raw bands", from_field(probability)


def tuned_svm(task: Task) -> Iterator[tuple[str, Answer]]:
    """Classify scaled bands with the best of 110 support vector machines.

    The confidence is Platt's probability of the label, or a rank where a class has a single pixel
    and no sigmoid can be fitted.
    """
    bands = np.flatnonzero(hr.schema.good_bands(task.cube))
    samples, values = labelled_samples(task.cube[bands], task.train)
    fewest = int(np.unique(values, return_counts=True)[1].min())
    scale = StandardScaler().fit(samples)
    folds = StratifiedKFold(min(max(fewest, 2), 5), shuffle=True, random_state=0)
    search = GridSearchCV(SVC(), SVM_GRID, cv=folds)
    with warnings.catch_warnings():  # a class with one pixel cannot be in two folds
        warnings.simplefilter("ignore", UserWarning)
        search.fit(scale.transform(samples), values)
    good = (task.cube if task.target is None else task.target)[bands]
    valid = hr.schema.valid_pixels(good)
    spectra = scale.transform(good.values[:, valid.values].T)
    found = search.predict(spectra)
    label, confidence = xr.zeros_like(valid, int), xr.full_like(valid, np.nan, float)
    label.values[valid.values] = found
    if fewest > 1:
        platt = SupportVectorMachine(**search.best_params_).fit(scale.transform(samples), values)
        column = np.searchsorted(platt.classes_, found)
        confidence.values[valid.values] = platt.predict_proba(spectra)[
            np.arange(len(found)), column
        ]
    else:
        scores = np.sort(search.decision_function(spectra).reshape(len(spectra), -1), axis=1)
        confidence.values[valid.values] = np.abs(scores[:, -1] - scores[:, :-1].max(axis=1))
    yield "SVM, tuned, raw bands", Answer(label, confidence, is_probability=fewest > 1)


def paper(task: Task) -> Iterator[tuple[str, Answer]]:
    """Follow the paper: 15 MNF components, sparse regression, vector TV; max z is a rank."""
    model = hr.SceneClassifier("smlr", features=[hr.MNF(15)])
    probability = task.probability(model)
    rejector = hr.SequentialRejector(hr.SegSALSA(hr.VectorTV(2.0)))
    maps = rejector.reject(probability, fraction=0.0)
    answer = Answer(maps["label"], maps["confidence"], is_probability=False)
    yield "paper: MNF, sparse regression, vector TV", answer


METHODS: dict[str, Method] = {
    "auto": auto,
    "coordinates": coordinates,
    "svm": tuned_svm,
    "random_forest": random_forest,
    "paper": paper,
}


def rows_of(method: Method, task: Task) -> dict[str, list[float]]:
    """Return the rows of a method for one draw of training pixels."""
    rows = {}
    begun = time.process_time()
    warnings.simplefilter("ignore", FewPolygonsWarning)  # few are what is measured
    for name, answer in method(task):
        rows[name] = [*figures(answer, task.test), time.process_time() - begun]
    return rows


def figures(answer: Answer, test: xr.DataArray) -> list[float]:
    """Return all columns of the table but the time."""
    used = (test > 0).values & answer.confidence.notnull().values
    correct = answer.label.values[used] == test.values[used]
    confidence = answer.confidence.values[used]
    curve = hr.rejection_curve(correct, confidence)
    calibration = np.nan
    if answer.is_probability:
        calibration = hr.expected_calibration_error(correct, np.clip(confidence, 0, 1))
    kept = hr.accuracy_at(curve, [0.1]).values[0]
    quality = curve["classification_quality"].values.max()
    return [100 * correct.mean(), 100 * kept, 100 * quality, hr.aurc(curve), calibration]


def polygons(
    labels: xr.DataArray, seed: int, *, n_polygons: int, side: int = 5
) -> tuple[xr.DataArray, xr.DataArray]:
    """Draw squares of one class as people digitise them; return training and test pixels.

    A square has four fifths of its pixels in the class, or fewer where the class is too small.
    """
    values, radius = labels.values, side // 2
    train = np.zeros_like(values)
    rng = np.random.default_rng(seed)
    for value in np.unique(values[values > 0]):
        places = rng.permutation(np.argwhere(values == value))
        taken = np.zeros(values.shape, dtype=bool)
        count = 0
        for least in (0.8 * side**2, 0.4 * side**2, 1):
            for row, column in places:
                square, around = (
                    np.s_[max(row - r, 0) : row + r + 1, max(column - r, 0) : column + r + 1]
                    for r in (radius, radius + 2)
                )
                inside = values[square] == value
                if count < n_polygons and inside.sum() >= least and not taken[around].any():
                    train[square][inside] = value
                    taken[square] = True
                    count += 1
    return labels.copy(data=train), labels.copy(data=np.where(train > 0, 0, values))


def mislabelled(train: xr.DataArray, seed: int, share: float = 0.1) -> xr.DataArray:
    """Return training pixels of which a share has another class."""
    rng = np.random.default_rng([seed, 1])
    values = train.values.copy()
    used = np.flatnonzero(values)
    classes = np.unique(values[values > 0])
    for place in rng.choice(used, round(share * used.size), replace=False):
        values.flat[place] = rng.choice(classes[classes != values.flat[place]])
    return train.copy(data=values)


def carried(cube: xr.DataArray, labels: xr.DataArray, seed: int) -> Task:
    """Train on one half of a scene, the first or the second, and map the other."""
    middle = cube.sizes["y"] // 2
    halves = [{"y": slice(middle)}, {"y": slice(middle, None)}]
    here, there = halves if seed % 2 else halves[::-1]
    train, _ = hr.sample_per_class(labels.isel(here), 10, seed=seed)
    test = labels.isel(there)
    test = test.where(np.isin(test, np.unique(train)), 0).astype(test.dtype)
    return Task(cube.isel(here), train, test, cube.isel(there))


def scenes(enmap: Sequence[str] | None) -> Iterator[tuple[str, Split]]:
    """Yield what is measured: a name, and how its training pixels are drawn."""
    loaded = {"Indian Pines": hr.load_indian_pines()}
    if enmap is not None:
        cube = hr.open_scene(enmap[0]).compute()
        loaded["EnMAP Potsdam"] = cube, hr.open_labels(enmap[1], like=cube)
    blocks = partial(hr.sample_blocks, block_size=12, fraction=0.3, buffer=4, n_per_class=10)
    for name, (cube, labels) in loaded.items():

        def drawn(seed: int, cube=cube, labels=labels) -> Task:
            return Task(cube, *hr.sample_per_class(labels, 10, seed=seed))

        def wrong(seed: int, drawn=drawn) -> Task:
            task = drawn(seed)
            return replace(task, train=mislabelled(task.train, seed))

        yield f"{name}, random", drawn
        yield (
            f"{name}, blocks",
            lambda seed, cube=cube, labels=labels: Task(cube, *blocks(labels, seed=seed)),
        )
        for count in (1, 2, 3):
            yield (
                f"{name}, polygons per class: {count}",
                lambda seed, cube=cube, labels=labels, count=count: Task(
                    cube, *polygons(labels, seed, n_polygons=count)
                ),
            )
        yield f"{name}, a tenth of the labels wrong", wrong
        yield f"{name}, carried to the other half", partial(carried, cube, labels)


def shown(values: np.ndarray) -> list[str]:
    """Return mean and standard error of each column as text; nothing where a column has none."""
    texts = []
    for figures_of_all, heading in zip(values.T, COLUMNS, strict=True):
        column = figures_of_all[np.isfinite(figures_of_all)]
        digits = {"AURC": 4, "ECE": 3}.get(heading, 1)
        error = column.std(ddof=1) / np.sqrt(len(column)) if len(column) > 1 else 0.0
        texts.append(f"{column.mean():.{digits}f} ± {error:.{digits}f}" if column.size else "")
    return texts


class Measured:
    """Rows by scene, method and seed; those of `path` count as measured, new ones join them."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[str, dict[str, list[float]]] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self.known |= json.loads(line)

    def get(
        self, key: str, measure: Callable[[], dict[str, list[float]]]
    ) -> dict[str, list[float]]:
        """Return the rows of one draw, measured unless they are known."""
        if key not in self.known:
            self.known[key] = measure()
            if self.path is not None:
                with self.path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({key: self.known[key]}) + "\n")
        return self.known[key]


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=30, help="how many draws (from --first on)")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--enmap", nargs=2, metavar=("CUBE", "LABELS"), help="a second scene")
    parser.add_argument("--only", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--scenes", default="", help="only scenes whose names contain this")
    parser.add_argument("--resume", type=Path, help="a file that keeps what is measured")
    parser.add_argument("--out", type=Path, default=DEFAULT_PATH)
    return parser.parse_args()


def introduction(seeds: range, *, enmap: bool) -> str:
    """Say what was measured, by which command."""
    command = f"python -m benchmarks.results --seeds {len(seeds)} --first {seeds[0]}"
    command += " --enmap CUBE LABELS" if enmap else ""
    return (
        f"Mean and standard error over {len(seeds)} draws (seeds {seeds[0]} to {seeds[-1]}) of ten "
        f"training pixels per class, or of polygons of 5 x 5 pixels, made by `{command}`. OA: "
        "overall accuracy. A(0.1): accuracy "
        "of what is kept when a tenth is rejected. max Q: best classification quality. AURC: area "
        "under the risk-coverage curve, lower is better. ECE: expected calibration error, empty "
        "where a confidence is a rank. Blocks: training and test pixels lie in different blocks of "
        "12 pixels, 4 pixels apart; classes without training pixels count as errors. Carried: "
        "trained on one half of the scene, judged on the other."
    )


def main() -> None:
    """Measure, print, and write the table."""
    chosen = options()
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    measured = Measured(chosen.resume)
    lines = ["# Results", "", introduction(seeds, enmap=chosen.enmap is not None)]
    for title, split in scenes(chosen.enmap):
        if chosen.scenes not in title:
            continue
        lines += ["", f"## {title}", "", f"| method | {' | '.join(COLUMNS)} |"]
        lines.append("|---" * (len(COLUMNS) + 1) + "|")
        print("\n".join(lines[-4:]), flush=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HsrejectWarning)
            draws = {seed: split(seed) for seed in seeds}
        for method in chosen.only:
            measure = partial(rows_of, METHODS[method])
            found = [
                measured.get(f"{title}; {method}; {seed}", partial(measure, task))
                for seed, task in draws.items()
            ]
            for name in found[0]:
                values = np.array([rows[name] for rows in found])
                lines.append(f"| {name} | {' | '.join(shown(values))} |")
                print(lines[-1], flush=True)
    chosen.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
