"""The same call on a dask.distributed cluster: two worker processes, the same map."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import rasterio
from distributed import LocalCluster

import hsreject as hr
from hsreject.mapping.blocks import cluster
from tests.cli.calling import call
from tests.cli.test_map import write_scene
from tests.mapping.scenes import CONFIG, larger_scene


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    # Port 0 is any free one: without an address the scheduler would insist on 8787, and warn where
    # another cluster of this machine has it.
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
    ) as started:
        yield started.scheduler_address


def test_a_cluster_gives_the_map_of_threads(address: str, tmp_path: Path) -> None:
    context = {"prior": "vector_tv", "weight": 1.0, "edges": "image"}
    model = hr.save_model(hr.train({**CONFIG, "context": context}), tmp_path / "m.skops")
    scene = write_scene(larger_scene(130, 110), tmp_path / "scene.tif", "GTiff")
    threads, workers = tmp_path / "threads", tmp_path / "workers"
    arguments = ("map", scene, "--model", model, "--fraction", 0.1, "--block-size", 45)
    assert call(*arguments, "--out", threads) == 0
    assert call(*arguments, "--out", workers, "--cluster", address) == 0
    for name in ("label", "label_with_rejection", "confidence"):
        file = f"{name}.tif"
        with rasterio.open(threads / file) as first, rasterio.open(workers / file) as second:
            np.testing.assert_array_equal(first.read(1), second.read(1))


def test_a_cube_in_memory_and_errors_travel_too(address: str) -> None:
    model = hr.train(CONFIG)
    scene = larger_scene(100, 90)
    here = hr.map_scene(scene, model, fraction=0.1, block_size=50)
    steps = []
    with cluster(address):
        there = hr.map_scene(
            scene,
            model,
            fraction=0.1,
            block_size=50,
            progress=lambda stage, done, total: steps.append((stage, done, total)),
        )
        broken = scene.chunk({"y": 50}).map_blocks(_refuse, template=scene.chunk({"y": 50}))
        with pytest.raises(hr.HsrejectError, match="this block is refused"):
            hr.map_scene(broken, model, fraction=0.1, block_size=50)
    assert there.maps.equals(here.maps)
    assert [step for step in steps if step[0] == "mapping"][-1] == ("mapping", 1, 1)


def _refuse(block):
    raise hr.HsrejectError("this block is refused")
