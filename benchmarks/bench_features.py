"""Features and the scene adapter: speed beside the bare library calls, memory beside the scene."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import spectral
from threadpoolctl import threadpool_limits

import hsreject as hr
from benchmarks.timing import Row, best_seconds, peak_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

MINUTES = 1
_LARGE_SCENE = """
import dask.array as da, numpy as np, xarray as xr
import hsreject as hr

def block(block_id):
    return np.random.default_rng(block_id).normal(size=(60, 200, 200)).astype("float32")

chunks = ((60,), (200,) * {blocks}, (200,) * {blocks})
data = da.map_blocks(block, chunks=chunks, dtype="float32", meta=np.empty((0, 0, 0), "float32"))
cube = xr.DataArray(data, dims=("band", "y", "x"))
labels = xr.DataArray(np.zeros(cube.shape[1:], "uint8"), dims=("y", "x"))
labels[0, :10], labels[1, :10] = 1, 2
model = hr.SceneClassifier("lda", features=[hr.MNF(10), hr.Smooth(1.0)]).fit(cube, labels)
largest = model.predict_proba(cube).max().compute(scheduler="synchronous")
"""


def rows() -> Iterator[Row]:
    """Yield the figures: each time is a best of several, on one thread."""
    cube, labels = hr.load_indian_pines()
    train, _ = hr.sample_per_class(labels, 10, seed=0)
    with threadpool_limits(limits=1):
        yield _mnf(cube)
        model = hr.SceneClassifier("smlr", features=[hr.MNF(15)]).fit(cube, train)
        features = model.transform(cube)
        samples = np.ascontiguousarray(features.values.reshape(15, -1).T)
        bare = hr.SceneClassifier("smlr").fit(features, train)
        adapter = best_seconds(lambda: bare.predict_proba(features))
        alone = best_seconds(lambda: model.classifier_.predict_proba(samples))
        yield Row(
            "145 x 145 scene through the adapter / predict_proba of its samples",
            f"{adapter / alone:.2f} ({1e3 * adapter:.0f} ms)",
        )
    small, large = (peak_bytes(_LARGE_SCENE.format(blocks=blocks)) for blocks in (2, 6))
    yield Row(
        "peak memory, fit and predict, 1200 x 1200 x 60 / 400 x 400 x 60 dask-backed",
        f"{large / small:.2f} ({large / 2**20:.0f} MiB; the larger scene has 330 MiB)",
    )


def _mnf(cube: object) -> Row:
    image = np.asarray(cube).transpose(1, 2, 0).astype(np.float64)
    ours = best_seconds(lambda: hr.MNF(15).fit(cube))
    theirs = best_seconds(
        lambda: spectral.mnf(spectral.calc_stats(image), spectral.noise_from_diffs(image))
    )
    return Row(
        "MNF of Indian Pines, fit / spectral's statistics and mnf",
        f"{ours / theirs:.2f} ({1e3 * ours:.0f} ms)",
    )
