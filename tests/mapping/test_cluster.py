"""The same call on a dask.distributed cluster: two worker processes, the same map."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import rasterio
from distributed import Client, LocalCluster

import hsreject as hr
from hsreject.mapping import blocks
from hsreject.mapping.blocks import cluster
from tests.cli.calling import call
from tests.cli.test_map import write_scene
from tests.io.web_server import serving
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


def test_workers_read_a_scene_by_url_and_nothing_is_told_twice(
    address: str, tmp_path: Path, monkeypatch
) -> None:
    """dask warns where two graphs have the same keys, which the second of two maps would show."""
    told: list[str] = []
    monkeypatch.setattr("distributed.scheduler.logger.warning", lambda text, *_: told.append(text))
    model = hr.save_model(hr.train(CONFIG), tmp_path / "m.skops")
    scene = write_scene(larger_scene(70, 60), tmp_path / "scene.tif", "GTiff")
    with serving(tmp_path) as url:
        places = (scene, f"{url}/good/scene.tif")
        for number, place in enumerate(places):
            asked = ("map", place, "--model", model, "--fraction", 0.1, "--cluster", address)
            assert call(*asked, "--out", tmp_path / str(number)) == 0
    assert told == []
    first, second = ((tmp_path / str(n) / "label.tif").read_bytes() for n in (0, 1))
    assert first == second


def test_a_cube_in_memory_and_errors_travel_too(address: str) -> None:
    model = hr.train(CONFIG)
    scene = larger_scene(100, 90)
    here = hr.map_scene(scene, model, hr.Goal(fraction=0.1), resources=hr.Resources(block_size=50))
    steps = []
    with cluster(address):
        there = hr.map_scene(
            scene,
            model,
            hr.Goal(fraction=0.1),
            progress=lambda stage, done, total: steps.append((stage, done, total)),
            resources=hr.Resources(block_size=50),
        )
        broken = scene.chunk({"y": 50}).map_blocks(_refuse, template=scene.chunk({"y": 50}))
        with pytest.raises(hr.HsrejectError, match="this block is refused"):
            hr.map_scene(
                broken, model, hr.Goal(fraction=0.1), resources=hr.Resources(block_size=50)
            )
    assert there.maps.equals(here.maps)
    assert [step for step in steps if step[0] == "mapping"][-1] == ("mapping", 1, 1)


CLUSTER = {
    "n_workers": 1,
    "threads_per_worker": 1,
    "dashboard_address": "127.0.0.1:0",
    "scheduler_kwargs": {"dashboard": False},
    "silence_logs": logging.CRITICAL,
}


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> tuple[object, ...]:
    place = tmp_path_factory.mktemp("job")
    model = hr.save_model(hr.train(CONFIG), place / "m.skops")
    scene = write_scene(larger_scene(130, 110), place / "scene.tif", "GTiff")
    return ("map", scene, "--model", model, "--fraction", 0.1, "--block-size", 20)


def when_begun(out: Path, stop: Callable[[], object]) -> threading.Thread:
    """Call `stop` when the first block of the map in `out` is finished."""

    def wait() -> None:
        while not list(out.glob(".unfinished.*/*.npy")):
            time.sleep(0.01)
        stop()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.mark.posix
def test_a_lost_worker_is_invisible(job, address: str, tmp_path: Path) -> None:
    assert call(*job, "--out", tmp_path / "whole") == 0
    out = tmp_path / "out"
    with Client(address) as client:
        (pid, *_) = client.run(os.getpid).values()
    killer = when_begun(out, lambda: os.kill(pid, signal.SIGKILL))
    assert call(*job, "--out", out, "--cluster", address) == 0
    killer.join()
    for name in ("label.tif", "confidence.tif"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


@pytest.mark.posix
def test_ctrl_c_ends_in_one_sentence(job, address: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    # a shell that starts the tests in the background has SIGINT ignored, and children inherit that
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from hsreject.__main__ import main; main()"
    )
    options = ("--out", out, "--cluster", address)
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, (*job, *options))],
        stderr=subprocess.PIPE,
        text=True,
    )
    when_begun(out, lambda: process.send_signal(signal.SIGINT))
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert "continues" in errors.splitlines()[-1]


def test_workers_without_memory_are_told_of(job, tmp_path, capsys) -> None:
    with LocalCluster(memory_limit="120MB", processes=True, **CLUSTER) as small:
        assert call(*job, "--out", tmp_path / "o", "--cluster", small.scheduler_address) == 2
    assert "memory" in capsys.readouterr().err.splitlines()[-1]


def test_a_lost_scheduler_is_one_sentence(job, tmp_path, capfd, monkeypatch) -> None:
    monkeypatch.setattr(blocks, "SECONDS_TO_CONNECT", 1.0)
    place, out = tmp_path / "scheduler.json", tmp_path / "out"
    run = "from distributed.cli.dask_{0} import main; main()"
    start = partial(subprocess.Popen, stderr=subprocess.DEVNULL, cwd=tmp_path)
    options = ("--no-dashboard", "--scheduler-file", str(place))
    command = [sys.executable, "-c", run.format("scheduler"), "--port", "0", *options]
    with start(command) as scheduler:
        while not place.exists() or not place.read_text():
            time.sleep(0.05)
        address = json.loads(place.read_text())["address"]
        with start([sys.executable, "-c", run.format("worker"), *options]) as worker:
            killer = when_begun(out, scheduler.kill)
            assert call(*job, "--out", out, "--cluster", address) == 2
            killer.join()
            worker.kill()
    errors = capfd.readouterr().err
    assert "scheduler was lost" in errors.splitlines()[-1]
    assert "Traceback" not in errors


def _refuse(block):
    raise hr.HsrejectError("this block is refused")
