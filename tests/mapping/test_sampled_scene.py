"""A map whose threshold comes from a sample, of a scene far larger than the memory."""

import tracemalloc

import dask.array as da
import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import InputError
from hsreject.mapping.map_summary import check_evidence, rejection_of
from hsreject.mapping.ranked_blocks import MapJob
from hsreject.progress import no_progress
from tests.mapping.scenes import CONFIG, larger_scene

SIDE = 20_000
N_POINTS = 100


@pytest.fixture(scope="module")
def model() -> hr.MapModel:
    return hr.train(CONFIG)


def lazily(dtype: str, value: float, *, n_bands: int = 0) -> xr.DataArray:
    """Return a layer of 400 million pixels that exists only while it is looked at."""
    bands = (n_bands,) if n_bands else ()
    shape, chunks = (*bands, SIDE, SIDE), (*bands, 1000, 1000)
    dims = ("band", "y", "x")[-len(shape) :]
    return xr.DataArray(da.full(shape, value, dtype=dtype, chunks=chunks), dims=dims)


def test_points_are_looked_up_block_by_block(model, tmp_path) -> None:
    """Without a byte for each pixel of the map: 400 MB."""
    rows, columns = np.random.default_rng(0).integers(0, SIDE, size=(2, N_POINTS))
    design = f"random n={N_POINTS} pixels={SIDE**2} seed=0 map=0123456789abcdef"
    lines = [f"{row},{column},1,{design}" for row, column in zip(rows, columns, strict=True)]
    path = tmp_path / "points.csv"
    path.write_text("\n".join(["row,column,reference,design", *lines]))
    cube = lazily("float32", 0.5, n_bands=12)
    job = MapJob(
        cube, model, hr.Goal(accuracy=0.9), None, path, blocks=None, record=None,
        reading=hr.Reading(), flat=False, names=("scene", "model"),
    )  # fmt: skip
    label = lazily("uint8", 1).assign_attrs(model.classes.to_attrs())
    ranking = hr.Ranking(label, lazily("float32", 0.5))
    tracemalloc.start()
    found = rejection_of(check_evidence(job), ranking, no_progress)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert f"{N_POINTS} sampled pixels of this scene" in found.source
    assert peak < 100e6


def test_points_of_a_sequential_design_determine_no_threshold(model) -> None:
    scene = larger_scene(60, 50)
    label = hr.map_scene(scene, model, hr.Goal(fraction=0.0)).maps.label
    confidence = np.linspace(0, 1, label.size).reshape(label.shape)
    sample = hr.draw_sample(label, 60, design="sequential", confidence=confidence)
    with pytest.raises(InputError, match="simple random sample"):
        hr.map_scene(scene, model, hr.Goal(accuracy=0.9), sample=sample.with_reference(label))
