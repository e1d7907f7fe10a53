"""Finished solves on disk: interrupted work goes on, and nothing is mistaken for it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import FileError
from tests.rejection.scene import CONTEXT, SMALL, with_p_value


def n_solves(rejector: hr.JointRejector, maps: xr.DataArray | xr.Dataset) -> int:
    return rejector.reject(maps, failure_probability=0.33).attrs["n_solves"]


@pytest.mark.parametrize("n_workers", [1, 2])
def test_an_interrupted_sweep_goes_on(tmp_path: Path, n_workers: int) -> None:
    arguments = (SMALL.probability, SMALL.test)
    rejector = hr.JointRejector(CONTEXT, n_points=10, n_workers=n_workers, store=tmp_path / "kept")
    expected = replace(rejector, store=None).operating_points(*arguments)

    def interrupt(stage: str, done: float, total: float | None) -> None:
        if done > 5.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rejector.operating_points(*arguments, progress=interrupt)
    files = sorted((tmp_path / "kept").iterdir())
    assert 4 <= len(files) < 10
    times = {file: file.stat().st_mtime_ns for file in files}
    heard: list[float] = []
    found = rejector.operating_points(
        *arguments, progress=lambda stage, done, total: heard.append(done)
    )
    xr.testing.assert_equal(found, expected)
    assert heard[0] == 1  # what was kept counts as done
    assert len(list((tmp_path / "kept").iterdir())) == 10
    assert {file: file.stat().st_mtime_ns for file in files} == times


def test_finished_solves_are_used_only_for_the_same_problem(tmp_path: Path) -> None:
    rejector = hr.JointRejector(CONTEXT, store=tmp_path)
    assert n_solves(rejector, SMALL.probability) >= 1
    assert n_solves(rejector, SMALL.probability) == 0
    for same in (
        replace(rejector, n_workers=3, n_points=7, fraction_tol=0.1),
        replace(rejector, context=replace(CONTEXT, n_threads=2)),
        replace(rejector, store=str(tmp_path)),
    ):
        assert n_solves(same, SMALL.probability) == 0
    novel = with_p_value(SMALL, 0.05)
    assert n_solves(replace(rejector, novelty=False), novel) == 0
    assert n_solves(rejector, novel) >= 1
    assert n_solves(rejector, SMALL.probability * np.float32(0.9999)) >= 1
    for other in (
        replace(rejector, context=hr.SegSALSA(hr.VectorTV(weight=0.4))),
        replace(rejector, context=replace(CONTEXT, tol=1e-5)),
        replace(rejector, rejection_classes=2),
    ):
        assert n_solves(other, SMALL.probability) >= 1


def test_a_known_hidden_field_is_not_kept_as_the_solution_of_the_context(tmp_path: Path) -> None:
    rejector = hr.JointRejector(CONTEXT, store=tmp_path)
    other = hr.SegSALSA(hr.VectorTV(weight=3.0)).solve(SMALL.probability).hidden_field
    known = xr.Dataset({"probability": SMALL.probability, "hidden_field": other})
    rejector.reject(known, failure_probability=0.0)
    found = rejector.reject(SMALL.probability, failure_probability=0.0)
    xr.testing.assert_equal(found.label, CONTEXT.solve(SMALL.probability).label)


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: kept | {name: kept[name][:5] for name in ("category", "confidence")},
        lambda kept: kept | {"category": kept["category"].astype(float)},
        lambda kept: kept | {"category": kept["category"] + 100},
        lambda kept: kept | {"objective": np.zeros(3)},
        lambda kept: {name: kept[name] for name in ("category", "confidence")},
        None,
    ],
    ids=["size", "type", "class", "number", "missing", "cut short"],
)
def test_a_damaged_file_counts_as_none(tmp_path: Path, change) -> None:
    rejector = hr.JointRejector(CONTEXT, store=tmp_path)
    expected = rejector.reject(SMALL.probability, failure_probability=0.33)
    for file in tmp_path.iterdir():
        if change is None:
            file.write_bytes(file.read_bytes()[:200])
            continue
        with np.load(file) as opened:
            kept = dict(opened)
        np.savez_compressed(file, **change(kept))
    found = rejector.reject(SMALL.probability, failure_probability=0.33)
    assert found.attrs["n_solves"] >= 1
    xr.testing.assert_equal(found, expected)
    assert n_solves(rejector, SMALL.probability) == 0  # and is replaced


def test_a_changed_byte_is_noticed_or_harmless(tmp_path: Path) -> None:
    probability = np.random.default_rng(0).dirichlet([1, 1, 1], (3, 4)).transpose(2, 0, 1)
    rejector = hr.JointRejector(CONTEXT, store=tmp_path)
    expected = rejector.reject(probability, failure_probability=0.3)
    (file,) = tmp_path.glob("*.npz")
    whole = file.read_bytes()
    for place in range(0, len(whole), 17):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        xr.testing.assert_equal(rejector.reject(probability, failure_probability=0.3), expected)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(FileError, match="file"):
        n_solves(hr.JointRejector(CONTEXT, store=tmp_path / "file"), SMALL.probability)


def test_the_image_is_looked_at_once_for_all_solves() -> None:
    looks = []

    class Watched(hr.VectorTV):
        def guide(self, image: xr.DataArray) -> xr.DataArray:
            looks.append(image)
            return super().guide(image)

    probability = SMALL.probability.copy()
    probability[:, 1:3] = np.nan
    values = np.random.default_rng(3).normal(size=(2, *SMALL.test.shape))
    sweeps = []
    for where_left_out in (0.0, 1e4):  # which would be all that edges see, if it counted
        values[:, 1] = where_left_out
        image = xr.DataArray(values.copy(), dims=("band", "y", "x"))
        maps = xr.Dataset({"probability": probability, "image": image})
        rejector = hr.JointRejector(hr.SegSALSA(Watched(0.5, edges="image")), n_points=4)
        sweeps.append(rejector.sweep(maps, SMALL.test))
    assert len(looks) == len(sweeps)
    xr.testing.assert_equal(*sweeps)
