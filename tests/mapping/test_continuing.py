"""A map that was stopped goes on from its finished blocks, and is the map of an undisturbed run."""

import multiprocessing
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

import hsreject as hr
from hsreject.errors import FileError
from hsreject.files import folder_lock

CONFIG = {
    "features": [{"name": "pca", "n_components": 5}],
    "classifier": "lda",
    "context": {"prior": "vector_tv", "weight": 1.0},
}
GOAL = hr.Goal(fraction=0.1)
RESOURCES = hr.Resources(block_size=24, n_workers=1)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Return a folder with a scene, a model, and the undisturbed map in `whole`."""
    place = tmp_path_factory.mktemp("place")
    cube, labels = hr.synthetic_scene(rows=100, columns=90, seed=3)
    cube = cube.drop_vars("wavelength")  # which a plain GeoTIFF loses
    cube.rio.to_raster(place / "scene.tif")
    hr.save_model(hr.train({**CONFIG, "scene": (cube, labels)}), place / "model.skops")
    map_there(place, place / "whole")
    return place


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.is_dir() or path.suffix != ".toml"  # the summary says how often it was stopped
    }


def unfinished(out: Path) -> list[Path]:
    return list(out.glob(".unfinished.*/*.npy"))


def stop_after(n_blocks: int, out: Path):
    def progress(stage: str, done: float, total: float | None) -> None:
        if len(unfinished(out)) >= n_blocks:
            raise KeyboardInterrupt

    return progress


def map_there(place: Path, out: Path, **options):
    options = {"resources": RESOURCES, **options}
    return hr.map_scene(place / "scene.tif", place / "model.skops", GOAL, out=out, **options)


def test_stopped_work_goes_on_and_ends_in_the_same_files(place, tmp_path) -> None:
    out = tmp_path / "map"
    for wanted in (2, 5):
        with pytest.raises(KeyboardInterrupt):
            map_there(place, out, progress=stop_after(wanted, out))
        assert wanted <= len(unfinished(out)) < 20
        assert [path.name[:12] for path in out.iterdir()] == [".unfinished."]
    kept = len(unfinished(out))
    made = map_there(place, out)
    assert made.summary.n_continued == kept
    assert len(made.summary.blocks) == 20
    assert files_in(out) == files_in(place / "whole")


@pytest.mark.parametrize(
    "change", [{"resources": hr.Resources(block_size=20)}, {"reading": hr.Reading(band_axis=0)}]
)
def test_other_work_starts_afresh(change, place, tmp_path) -> None:
    with pytest.raises(KeyboardInterrupt):
        map_there(place, tmp_path / "map", progress=stop_after(3, tmp_path / "map"))
    made = map_there(place, tmp_path / "map", **change)
    assert made.summary.n_continued == 0
    assert not list((tmp_path / "map").glob(".*"))


def test_a_changed_scene_starts_afresh(place, tmp_path) -> None:
    out = tmp_path / "map"
    with pytest.raises(KeyboardInterrupt):
        map_there(place, out, progress=stop_after(3, out))
    os.utime(place / "scene.tif")
    assert map_there(place, out).summary.n_continued == 0


def test_a_scene_that_is_replaced_while_it_is_mapped_is_refused(place, tmp_path) -> None:
    for name in ("scene.tif", "model.skops"):
        shutil.copy(place / name, tmp_path / name)
    cube = hr.open_scene(place / "scene.tif")
    other = cube.copy(data=cube.values[:, ::-1])
    other.rio.to_raster(tmp_path / "other.tif")
    out = tmp_path / "map"

    def replace(stage: str, done: float, total: float | None) -> None:
        if unfinished(out) and (tmp_path / "other.tif").exists():
            (tmp_path / "other.tif").replace(tmp_path / "scene.tif")

    with pytest.raises(FileError, match="changed while it was mapped"):
        map_there(tmp_path, out, progress=replace)
    assert [path.name[:12] for path in out.iterdir()] == [".unfinished."]
    map_there(tmp_path, out)
    map_there(tmp_path, tmp_path / "anew")
    assert files_in(out) == files_in(tmp_path / "anew")


@pytest.mark.posix
def test_killed_work_goes_on(place, tmp_path) -> None:
    out = tmp_path / "map"
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=map_there, args=(place, out))
    process.start()
    deadline = time.monotonic() + 60
    while not unfinished(out) and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    made = map_there(place, out)
    assert made.summary.n_continued > 0
    assert files_in(out) == files_in(place / "whole")


def test_a_second_process_is_kept_out(place, tmp_path) -> None:
    (tmp_path / "map").mkdir()
    with folder_lock(tmp_path / "map"), pytest.raises(FileError, match="Another process"):
        map_there(place, tmp_path / "map")


def test_a_disk_without_room_is_told_before_the_work(place, tmp_path, monkeypatch) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=100_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    began = []
    with pytest.raises(FileError, match=r"0\.1 MB are free"):
        map_there(place, tmp_path / "map", progress=lambda *_: began.append(1))
    assert not began
    assert not (tmp_path / "map").exists()
