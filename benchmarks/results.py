"""Measure the methods side by side: ``python -m benchmarks.results --seeds 30``.

Every method sees the same training pixels and is judged on the same test pixels: ten per class
drawn at random, with a tenth of them labelled wrong, or by blocks (12 pixels wide, 4 apart; classes
that are left without training pixels count as errors); one, two or three polygons of 5 x 5 pixels
per class; and ten pixels per class of one half of a scene, whose model is carried to the other
half. One class at a time is left out of training to see whether its pixels are told apart. The
table goes to the screen and to ``out/results.md``; ``docs/results.md`` is put together from several
runs.
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
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import hsreject as hr
from hsreject.classify.classifiers import SupportVectorMachine
from hsreject.errors import HsrejectWarning
from hsreject.features.pixels import labelled_samples

DEFAULT_PATH = Path("out/results.md")
COLUMNS = ("OA %", "A(0.1) %", "max Q %", "AURC", "ECE", "CPU s")
UNKNOWN_COLUMNS = ("AUROC", "A(0.1) %", "flagged, class left out %", "flagged, others %", "CPU s")
# 110 candidates, as people tune them
SVM_GRID = {"C": np.logspace(-1, 4, 11), "gamma": np.logspace(-5, 0, 10)}


@dataclass(frozen=True)
class Answer:
    """What a method says of a scene."""

    label: xr.DataArray  # (y, x)
    confidence: xr.DataArray  # (y, x): larger is surer
    is_probability: bool = True  # or a rank, which has no calibration error
    unknown: xr.DataArray | None = None  # (y, x): flagged as like no training pixel


@dataclass(frozen=True)
class Task:
    """A scene with training pixels, and what is to be mapped and judged."""

    cube: xr.DataArray
    train: xr.DataArray
    test: xr.DataArray
    target: xr.DataArray | None = None  # the scene of the test pixels, if it is another one
    left_out: np.ndarray | None = (
        None  # (y, x) of that scene: pixels of a class nobody has labelled
    )

    @property
    def image(self) -> xr.DataArray:
        """The scene of the test pixels."""
        return self.cube if self.target is None else self.target

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
    context = hr.SegSALSA(hr.VectorTV(1.0, edges="image"))
    if task.left_out is None:
        yield "auto", from_field(probability)
        ranked = hr.SequentialRejector(context).rank(
            xr.Dataset({"probability": probability, "image": task.image})
        )
        answer = Answer(ranked.label, ranked.confidence, is_probability=False)
        yield "auto, then vector TV with image edges", answer
        return
    novelty = hr.Novelty()
    if task.target is None:
        p_value = novelty.fit_p_value(task.cube, task.train)
    else:
        p_value = novelty.fit(task.cube, task.train).p_value(task.target)
    maps = xr.Dataset({"probability": probability, "image": task.image, "p_value": p_value})
    for name, rejector in (
        ("auto", hr.PixelwiseRejector()),
        ("auto, then vector TV with image edges", hr.SequentialRejector(context)),
    ):
        for words, looks in (("confidence alone", False), ("novelty", True)):
            ranked = replace(rejector, novelty=looks).rank(maps)
            scores = ranked.confidence.copy(data=ranked.scores())
            answer = Answer(ranked.label, scores, unknown=ranked.unknown)
            yield f"{name}: {words}", answer


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
    good = task.image[bands]
    valid = hr.schema.valid_pixels(good)
    spectra = scale.transform(good.values[:, valid.values].T)
    predicted = search.predict(spectra)
    label, confidence = xr.zeros_like(valid, int), xr.full_like(valid, np.nan, float)
    label.values[valid.values] = predicted
    if fewest > 1:
        platt = SupportVectorMachine(**search.best_params_).fit(scale.transform(samples), values)
        column = np.searchsorted(platt.classes_, predicted)
        confidence.values[valid.values] = platt.predict_proba(spectra)[
            np.arange(len(predicted)), column
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
    for name, answer in method(task):
        figures = figures_of(answer, task.test)
        if task.left_out is not None:
            figures = figures_of_unknown(answer, task.test, task.left_out)
        rows[name] = [*figures, time.process_time() - begun]
    return rows


def figures_of_unknown(answer: Answer, test: xr.DataArray, left_out: np.ndarray) -> list[float]:
    """Return all columns of the table of unknown classes but the time."""
    confidence = answer.confidence.values
    others = (test > 0).values & np.isfinite(confidence)
    left_out = left_out & np.isfinite(confidence)
    both = others | left_out
    auroc = roc_auc_score(left_out[both], -confidence[both])
    shares = [np.nan, np.nan]
    if answer.unknown is not None:
        shares = [100 * answer.unknown.values[part].mean() for part in (left_out, others)]
    return [auroc, figures_of(answer, test)[1], *shares]


def figures_of(answer: Answer, test: xr.DataArray) -> list[float]:
    """Return all columns of the table but the time."""
    used = (test > 0).values & answer.confidence.notnull().values
    correct = answer.label.values[used] == test.values[used]
    confidence = answer.confidence.values[used]
    curve = hr.rejection_curve(correct, confidence)
    calibration = np.nan
    if answer.is_probability:
        calibration = hr.expected_calibration_error(correct, np.clip(confidence, 0, 1))
    accuracy = hr.accuracy_at(curve, [0.1]).values[0]
    quality = curve["classification_quality"].values.max()
    return [100 * correct.mean(), 100 * accuracy, 100 * quality, hr.aurc(curve), calibration]


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


def without_class(cube: xr.DataArray, labels: xr.DataArray, seed: int) -> Task:
    """Leave one class of more than 30 pixels out of training, another one with every seed."""
    values, counts = np.unique(labels.values[labels.values > 0], return_counts=True)
    candidates = values[counts > 30]
    left_out = labels.values == candidates[seed % len(candidates)]
    others = labels.copy(data=np.where(left_out, 0, labels.values))
    return Task(cube, *hr.sample_per_class(others, 10, seed=seed), left_out=left_out)


def water_in_the_south(cube: xr.DataArray, labels: xr.DataArray, seed: int) -> Task:
    """Train in the north, where no label is water, and map the south, where some are."""
    middle = cube.sizes["y"] // 2
    north, south = {"y": slice(middle)}, {"y": slice(middle, None)}
    train, _ = hr.sample_per_class(labels.isel(north), 10, seed=seed)
    test = labels.isel(south)
    trained = np.isin(test, np.unique(train))
    left_out = (test.values > 0) & ~trained
    test = test.where(trained, 0).astype(test.dtype)
    return Task(cube.isel(north), train, test, cube.isel(south), left_out)


def scenes(enmap: Sequence[str] | None) -> Iterator[tuple[str, tuple[str, ...], Split]]:
    """Yield what is measured: a name, the columns, and how training pixels are drawn."""
    loaded = {"Indian Pines": hr.load_indian_pines()}
    if enmap is not None:
        cube = hr.open_scene(enmap[0]).compute()
        loaded["EnMAP Potsdam"] = cube, hr.open_labels(enmap[1], like=cube)
    blocks = partial(hr.sample_blocks, block_size=12, fraction=0.3, buffer=4, n_per_class=10)
    for name, (cube, labels) in loaded.items():

        def drawn(seed: int, cube=cube, labels=labels) -> Task:
            return Task(cube, *hr.sample_per_class(labels, 10, seed=seed))

        def in_blocks(seed: int, cube=cube, labels=labels) -> Task:
            return Task(cube, *blocks(labels, seed=seed))

        def digitised(seed: int, count: int, cube=cube, labels=labels) -> Task:
            return Task(cube, *polygons(labels, seed, n_polygons=count))

        def wrong(seed: int, drawn=drawn) -> Task:
            task = drawn(seed)
            return replace(task, train=mislabelled(task.train, seed))

        yield f"{name}, random", COLUMNS, drawn
        yield f"{name}, blocks", COLUMNS, in_blocks
        for count in (1, 2, 3):
            title = f"{name}, polygons per class: {count}"
            yield title, COLUMNS, partial(digitised, count=count)
        yield f"{name}, a tenth of the labels wrong", COLUMNS, wrong
        yield f"{name}, carried to the other half", COLUMNS, partial(carried, cube, labels)
        title = f"{name}, a class without a label"
        yield title, UNKNOWN_COLUMNS, partial(without_class, cube, labels)
        if name != "Indian Pines":
            title = f"{name}, water without a label, carried from north to south"
            yield title, UNKNOWN_COLUMNS, partial(water_in_the_south, cube, labels)


def shown(values: np.ndarray, headings: Sequence[str]) -> list[str]:
    """Return mean and standard error of each column as text; nothing where a column has none."""
    texts = []
    for draws, heading in zip(values.T, headings, strict=True):
        column = draws[np.isfinite(draws)]
        digits = {"AURC": 4, "ECE": 3, "AUROC": 3}.get(heading, 1)
        error = column.std(ddof=1) / np.sqrt(len(column)) if len(column) > 1 else 0.0
        texts.append(f"{column.mean():.{digits}f} ± {error:.{digits}f}" if column.size else "")
    return texts


class Measured:
    """Rows by scene, method and seed; those of `path` count as measured, new ones join them."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.draws: dict[str, dict[str, list[float]]] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self.draws |= json.loads(line)

    def rows(
        self, title: str, method: str, seeds: range, split: Split, *, measure: bool
    ) -> list[dict[str, list[float]]]:
        """Return the rows of all draws; with `measure`, what is not known is measured."""
        rows = []
        for seed in seeds:
            key = f"{title}; {method}; {seed}"
            if key not in self.draws and measure:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", HsrejectWarning)
                    self.draws[key] = rows_of(METHODS[method], split(seed))
                if self.path is not None:
                    with self.path.open("a", encoding="utf-8") as file:
                        file.write(json.dumps({key: self.draws[key]}) + "\n")
            if key in self.draws:
                rows.append(self.draws[key])
        return rows


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=30, help="how many draws (from --first on)")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--enmap", nargs=2, metavar=("CUBE", "LABELS"), help="a second scene")
    parser.add_argument("--only", nargs="*", choices=METHODS, default=list(METHODS))
    parser.add_argument("--scenes", default="", help="only scenes whose names contain this")
    parser.add_argument("--resume", type=Path, help="a file that keeps what is measured")
    parser.add_argument(
        "--written", action="store_true", help="measure nothing: write what --resume holds"
    )
    parser.add_argument("--out", type=Path, default=DEFAULT_PATH)
    return parser.parse_args()


def introduction(seeds: range, *, enmap: bool) -> str:
    """Say what was measured, by which command."""
    command = f"python -m benchmarks.results --seeds {len(seeds)} --first {seeds[0]}"
    command += " --enmap CUBE LABELS" if enmap else ""
    return (
        f"Mean and standard error over {len(seeds)} draws (seeds {seeds[0]} to {seeds[-1]}; a row "
        "of fewer draws says so) of ten training pixels per class, or of polygons of 5 x 5 pixels, "
        f"made by `{command}`.\n\n"
        "- **OA**: overall accuracy, the share of right labels with nothing rejected.\n"
        "- **A(0.1)**: accuracy of the kept pixels when a tenth is rejected; how far it lies above "
        "OA is what rejecting buys.\n"
        "- **max Q**: the best classification quality, the share of right decisions (right and "
        "kept, or wrong and rejected) at the best rejected fraction.\n"
        "- **AURC**: mean error of the kept pixels over all coverages; lower is better.\n"
        "- **ECE**: how far the probabilities are from how often the labels are right; empty where "
        "a confidence only ranks.\n"
        "- **CPU s**: processor seconds to train and to map the scene.\n"
        "- **AUROC**, where a class is without a label: how well the confidence separates its "
        "pixels from test pixels of the others (0.5 is chance); **flagged** pixels are called "
        "unknown.\n\n"
        "*Random*: training pixels are drawn from all labels, so test pixels lie beside them. "
        "*Blocks*: training and test pixels lie in different blocks of 12 pixels, 4 pixels apart; "
        "classes without training pixels count as errors. *Carried*: trained on one half of the "
        "scene, judged on the other. Read every row against *coordinates*, which knows only where "
        "a pixel lies."
    )


def main() -> None:
    """Measure, print, and write the table."""
    arguments = options()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    measured = Measured(arguments.resume)
    lines = ["# Results", "", introduction(seeds, enmap=arguments.enmap is not None)]
    for title, headings, split in scenes(arguments.enmap):
        if arguments.scenes not in title:
            continue
        lines += ["", f"## {title}", "", f"| method | {' | '.join(headings)} |"]
        lines.append("|---" * (len(headings) + 1) + "|")
        print("\n".join(lines[-4:]), flush=True)
        for method in arguments.only:
            rows = measured.rows(title, method, seeds, split, measure=not arguments.written)
            for name in rows[0] if rows else ():
                values = np.array([row[name] for row in rows])
                fewer = "" if len(rows) == len(seeds) else f" ({len(rows)} draws)"
                lines.append(f"| {name}{fewer} | {' | '.join(shown(values, headings))} |")
                print(lines[-1], flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
