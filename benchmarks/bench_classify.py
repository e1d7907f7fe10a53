"""The automatic classifier: CPU by labels, CPU and memory by pixels, labels across windows."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

import hsreject as hr
from benchmarks.timing import Row, best_seconds, peak_bytes
from hsreject.errors import HsrejectWarning
from hsreject.features import windows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import xarray as xr

MINUTES = 12
SIDES = (760, 1500)  # rows and columns of scenes that are mapped in windows
_LARGE_SCENE = """
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np, xarray as xr
import hsreject as hr

small, reference = hr.synthetic_scene(rows=256, columns=256, n_bands=8, n_classes=5, noise=0.3)
times = -(-{side} // 256)
values = np.tile(small.values, (1, times, times))[:, :{side}, :{side}]
values += np.random.default_rng(0).normal(0, 0.01, values.shape).astype("f4")
cube = xr.DataArray(values, dims=("band", "y", "x"))
labels = xr.DataArray(np.tile(reference.values, (times, times))[:{side}, :{side}], dims=("y", "x"))
train, _ = hr.sample_per_class(labels, 40)
hr.AutoClassifier().fit_predict_proba(cube, train)
"""


def rows() -> Iterator[Row]:
    """Yield the figures: CPU on one thread for the labels, memory on all cores for the pixels."""
    warnings.simplefilter("ignore", HsrejectWarning)
    cube, labels = hr.load_indian_pines()
    with threadpool_limits(limits=1):
        for n_per_class, bound in ((10, 3), (70, 8), (170, 12)):
            train, _ = hr.sample_per_class(labels, n_per_class, seed=0)
            yield _time("Indian Pines", cube, train, bound)
        yield _time("Indian Pines, whole fields", cube, labels, 30)
        crowded = hr.synthetic_scene(rows=145, columns=145, n_bands=60, n_classes=16, noise=0.3)
        yield _time("synthetic, all pixels labelled", *crowded, 30)
        yield _seams(cube, hr.sample_per_class(labels, 10, seed=0)[0])
    for side in SIDES:
        memory = peak_bytes(_LARGE_SCENE.format(side=side))
        what = f"peak memory, {side**2 / 1e6:.1f} million pixels with labels inside"
        yield Row(what, f"{memory / 1e9:.2f} GB", "4 GB for 10 million")


def _time(name: str, cube: xr.DataArray, train: xr.DataArray, bound: int) -> Row:
    seconds = best_seconds(
        lambda: hr.AutoClassifier().fit_predict_proba(cube, train),
        repeat=2,
        clock=time.process_time,
    )
    n_labels = int((train > 0).sum())
    return Row(f"CPU, {name}, {n_labels} labels", f"{seconds:.1f} s", f"{bound} s")


def _seams(cube: xr.DataArray, train: xr.DataArray) -> Row:
    """Compare a map in windows of 97 pixels with that of the whole scene."""
    whole = hr.AutoClassifier().fit_predict_proba(cube, train)
    with patch.multiple(windows, _LARGEST_WHOLE=1000, _SIDE=97):
        cut = hr.AutoClassifier().fit_predict_proba(cube, train)
    same = np.mean(whole.values.argmax(axis=0) == cut.values.argmax(axis=0))
    return Row(
        "labels of windows of 97 pixels / of the whole scene", f"{100 * same:.3f} %", "99.9 %"
    )
