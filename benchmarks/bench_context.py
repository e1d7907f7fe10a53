"""Context: time to a certified optimum, threads, memory, growth, compilation, accuracy."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

import hsreject as hr
from benchmarks.numpy_admm import numpy_admm, objective
from benchmarks.timing import Row, best_in_turns, best_seconds, peak_bytes
from hsreject.context.priors import PRIORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

MINUTES = 4
PENALTIES = (1.0, 1.5, 2.0, 3.0, 4.0)
N_SEEDS = 10

_RANDOM_SCENE = """
import warnings
import numpy as np
import hsreject as hr
from hsreject.errors import NotConvergedWarning
probability = np.empty(({n_classes}, {side}, {side}), "float32")
for row in range({side}):
    probability[:, row] = np.random.default_rng(row).random(({n_classes}, {side}), "float32")
    probability[:, row] /= probability[:, row].sum(axis=0)
warnings.simplefilter("ignore", NotConvergedWarning)
result = hr.SegSALSA(hr.VectorTV(1.0), max_iter=2, n_threads=1).solve(probability)
"""

_FIRST_USE = """
import time
import numpy as np
import hsreject as hr
probability = np.full((3, 20, 20), 1 / 3)
context = hr.SegSALSA(hr.VectorTV(1.0))  # imports it, too
start = time.perf_counter()
context.solve(probability)
print(time.perf_counter() - start)
"""


def rows() -> Iterator[Row]:
    """Yield the figures. Ratios are of times measured in this run."""
    with threadpool_limits(limits=1):  # NumPy and SciPy on one core, like us
        scenes = IndianPines()
        yield from _against_numpy(scenes.probability(seed=0).values)
        yield from _threads()
        yield from _growth()
        yield from _priors()
        yield from _compilation()
        yield _accuracy(scenes)


class IndianPines:
    """Class probabilities of Indian Pines: ten pixels per class, 15 MNF components."""

    def __init__(self) -> None:
        cube, self.labels = hr.load_indian_pines()
        self.features = hr.MNF(15).fit(cube).transform(cube)

    def probability(self, seed: int) -> object:
        """Return the probabilities (category, y, x) of one draw of training pixels."""
        train, _ = hr.sample_per_class(self.labels, 10, seed=seed)
        model = hr.SceneClassifier(hr.SparseMultinomialRegression()).fit(self.features, train)
        return model.predict_proba(self.features).astype("float32")


def _against_numpy(probability: NDArray[np.float32]) -> Iterator[Row]:
    probability = np.ascontiguousarray(probability / probability.sum(axis=0))
    prior = hr.VectorTV(1.0)
    exact = hr.SegSALSA(prior, tol=2e-6, dtype="float64", max_iter=10_000).solve(probability)
    optimum = exact.objective - exact.gap / 2
    ours = hr.SegSALSA(prior, n_threads=1).solve(probability)
    excess = ours.objective - optimum
    needed = {
        penalty: numpy_admm(
            probability,
            1.0,
            penalty,
            100,
            lambda field: objective(probability, field, 1.0) - optimum <= excess,
        )[1]
        for penalty in PENALTIES
    }
    best = min(needed, key=needed.__getitem__)
    single, double = (probability.astype(dtype) for dtype in ("float32", "float64"))
    seconds = best_in_turns(
        {
            "single": partial(numpy_admm, single, 1.0, best, needed[best]),
            "double": partial(numpy_admm, double, 1.0, best, needed[best]),
            "1": partial(hr.SegSALSA(prior, n_threads=1).solve, probability),
            "2": partial(hr.SegSALSA(prior, n_threads=2).solve, probability),
        },
        rounds=10,
        repeat=3,  # the first one of a turn finds its memory cold
    )
    for n_threads in ("1", "2"):
        yield Row(
            f"Indian Pines 145 x 145 x 16, weight 1, certified gap {ours.relative_gap:.1e} (true "
            f"{excess / optimum:.1e}): NumPy ADMM (penalty {best:g}) / ours, {n_threads} thread(s)",
            f"{seconds['single'] / seconds[n_threads]:.1f} ({1e3 * seconds['single']:.0f} ms, "
            f"{needed[best]} iterations; {1e3 * seconds[n_threads]:.1f} ms, {ours.n_iterations} "
            f"iterations); {seconds['double'] / seconds[n_threads]:.1f} if NumPy works in float64, "
            "unlike us",
            "at least 15",
        )


def _random_probability(n_classes: int, n_rows: int, n_columns: int) -> NDArray[np.float32]:
    random = np.random.default_rng(0).random((n_classes, n_rows, n_columns), "float32")
    powers = np.exp(4 * random)
    return powers / powers.sum(axis=0)


def _threads() -> Iterator[Row]:
    probability = _random_probability(9, 610, 340)
    seconds = best_in_turns(
        {
            n_threads: partial(
                hr.SegSALSA(hr.VectorTV(1.0), n_threads=int(n_threads)).solve, probability
            )
            for n_threads in ("1", "2")
        },
        rounds=8,
        repeat=2,
    )
    yield Row(
        "610 x 340 x 9: one thread / two threads",
        f"{seconds['1'] / seconds['2']:.2f} ({1e3 * seconds['1']:.0f} and "
        f"{1e3 * seconds['2']:.0f} ms)",
        "at least 1.6",
    )


def _seconds_per_iteration(prior: hr.Prior, probability: NDArray[np.float32]) -> float:
    """Return the time of ten iterations less that of one, over nine."""
    image = _random_probability(4, *probability.shape[1:])
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is not meant to converge
        for n_iterations in (1, 10):
            segsalsa = hr.SegSALSA(prior, max_iter=n_iterations, tol=1e-12, n_threads=1)
            segsalsa.solve(probability, image=image)
            seconds.append(best_seconds(partial(segsalsa.solve, probability, image=image)))
    return (seconds[1] - seconds[0]) / 9


def _growth() -> Iterator[Row]:
    small, large = (
        _seconds_per_iteration(hr.VectorTV(1.0), _random_probability(16, side, side)) / side**2
        for side in (400, 1200)
    )
    yield Row(
        "time per iteration and pixel, 1200 x 1200 x 16 / 400 x 400 x 16",
        f"{large / small:.2f} ({1e9 * large:.0f} ns)",
        "about 1: linear",
    )
    nothing, whole = (
        peak_bytes(_RANDOM_SCENE.format(n_classes=16, side=side)) for side in (20, 2000)
    )
    yield Row(
        "peak memory of 2000 x 2000 x 16 in float32, probabilities and result included",
        f"{(whole - nothing) / (2000 * 2000 * 16):.1f} bytes per pixel and class",
        "at most 25",
    )


def _priors() -> Iterator[Row]:
    probability = _random_probability(9, 120, 120)
    reference = _seconds_per_iteration(hr.VectorTV(1.0), probability)
    for name in PRIORS:
        if name != "vector_tv":
            seconds = _seconds_per_iteration(PRIORS.create(name), probability)
            yield Row(
                f"time per iteration, {name} / vector_tv",
                f"{seconds / reference:.1f}",
                "at most 15" if name == "structure_tensor" else "",
            )


def _compilation() -> Iterator[Row]:
    seconds = np.array([_two_first_solves() for _ in range(3)])
    first, second = seconds.min(axis=0)
    yield Row("first solve after install, compilation included", f"{first:.1f} s", "below 6 s")
    yield Row("first solve of a later process", f"{second:.2f} s", "compiles nothing")


def _two_first_solves() -> list[float]:
    """Return the seconds of a first solve in a process that compiles, and in one that need not."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        command = [sys.executable, "-c", _FIRST_USE]
        return [
            float(subprocess.check_output(command, text=True, env=environment)) for _ in range(2)
        ]


def _accuracy(scenes: IndianPines) -> Row:
    accuracy = []
    for seed in range(N_SEEDS):
        probability = scenes.probability(seed)
        _, test = hr.sample_per_class(scenes.labels, 10, seed=seed)
        tested = test.values > 0
        pixelwise = probability.category.values[probability.values.argmax(axis=0)]
        label = hr.SegSALSA(hr.VectorTV(2.0)).solve(probability).label.values
        accuracy.append(
            [100 * (answer == test.values)[tested].mean() for answer in (pixelwise, label)]
        )
    before, after = np.mean(accuracy, axis=0)
    return Row(
        f"Indian Pines, ten pixels per class, 15 MNF, mean of {N_SEEDS} seeds: points of overall "
        "accuracy that vector TV of weight 2 adds",
        f"{after - before:.1f} ({before:.1f} to {after:.1f} %)",
        "at least 8",
    )
