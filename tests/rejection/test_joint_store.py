"""Finished solves on disk: interrupted work goes on, and nothing is mistaken for it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from hsreject.context.priors import VectorTV
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import FileError
from hsreject.rejection import JointRejector
from hsreject.rejection.joint_solution import JointSolution, SolutionStore
from tests.rejection.scene import make_scene

CONTEXT = SegSALSA(VectorTV(weight=0.3))


def n_solves(rejector: JointRejector, probability: xr.DataArray) -> int:
    maps = rejector.reject(probability, failure_probability=0.33)
    return maps.attrs["n_solves"]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_sweep_goes_on(tmp_path: Path, workers: int) -> None:
    scene = make_scene()
    rejector = JointRejector(CONTEXT, n_points=10, n_workers=workers, store=tmp_path / "solves")
    expected = replace(rejector, store=None).sweep(scene.probability)

    def interrupt(stage: str, done: float, total: float | None) -> None:
        if done > 5.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rejector.sweep(scene.probability, progress=interrupt)
    files = sorted((tmp_path / "solves").iterdir())
    assert 4 <= len(files) < 10
    assert all(file.suffix == ".npz" for file in files)
    times = {file: file.stat().st_mtime_ns for file in files}
    heard: list[float] = []
    found = rejector.sweep(
        scene.probability, progress=lambda stage, done, total: heard.append(done)
    )
    xr.testing.assert_equal(found, expected)
    assert heard[0] == 1  # what was kept counts as done
    assert len(list((tmp_path / "solves").iterdir())) == 10
    assert {file: file.stat().st_mtime_ns for file in files} == times


def test_finished_solves_are_used_only_for_the_same_problem(tmp_path: Path) -> None:
    scene = make_scene()
    rejector = JointRejector(CONTEXT, store=tmp_path)
    assert n_solves(rejector, scene.probability) >= 1
    assert n_solves(rejector, scene.probability) == 0
    assert n_solves(replace(rejector, n_workers=3, n_points=7), scene.probability) == 0
    assert n_solves(rejector, scene.probability * np.float32(0.9999)) >= 1
    heavier = replace(rejector, context=SegSALSA(VectorTV(weight=0.4)))
    assert n_solves(heavier, scene.probability) >= 1
    exact = replace(rejector, context=replace(CONTEXT, tol=1e-5))
    assert n_solves(exact, scene.probability) >= 1
    threads = replace(rejector, context=replace(CONTEXT, n_threads=2))
    assert n_solves(threads, scene.probability) == 0


def test_a_damaged_file_counts_as_none(tmp_path: Path) -> None:
    scene = make_scene()
    rejector = JointRejector(CONTEXT, store=tmp_path)
    expected = rejector.reject(scene.probability, failure_probability=0.33)
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:200])
    found = rejector.reject(scene.probability, failure_probability=0.33)
    xr.testing.assert_equal(found, expected)
    assert found.attrs["n_solves"] >= 1
    assert n_solves(rejector, scene.probability) == 0


def test_a_changed_byte_is_noticed_or_harmless(tmp_path: Path) -> None:
    solution = JointSolution(
        np.arange(12, dtype=np.int16).reshape(3, 4),
        np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4),
        1e-5,
        7,
    )
    store = SolutionStore(tmp_path)
    store.save("key", solution)
    (file,) = tmp_path.glob("*.npz")
    whole = file.read_bytes()
    n_lost = 0
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        file.write_bytes(changed)
        found = store.load("key")
        n_lost += found is None
        if found is not None:
            np.testing.assert_array_equal(found.confidence, solution.confidence)
    assert n_lost > len(whole) / 2


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(FileError, match="folder for finished solves cannot be made"):
        n_solves(JointRejector(CONTEXT, store=tmp_path / "file"), make_scene().probability)


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: (
            kept | {"category": kept["category"][:5], "confidence": kept["confidence"][:5]}
        ),
        lambda kept: kept | {"category": kept["category"].astype(float)},
        lambda kept: kept | {"category": kept["category"] + 100},
        lambda kept: kept | {"gap": np.zeros(3)},
        lambda kept: {name: kept[name] for name in ("category", "confidence")},
    ],
)
def test_a_file_that_cannot_be_the_solution_counts_as_none(tmp_path: Path, change) -> None:
    scene = make_scene()
    rejector = JointRejector(CONTEXT, store=tmp_path)
    expected = rejector.reject(scene.probability, failure_probability=0.33)
    for file in tmp_path.iterdir():
        with np.load(file) as opened:
            kept = dict(opened)
        np.savez_compressed(file, **change(kept))
    found = rejector.reject(scene.probability, failure_probability=0.33)
    assert found.attrs["n_solves"] >= 1
    xr.testing.assert_equal(found, expected)
