"""`hsreject init` as a user calls it: what it writes runs without an edit."""

import numpy as np
import pytest

import hsreject as hr
from tests.cli.calling import call


@pytest.fixture
def files(tmp_path, monkeypatch):
    cube, labels = hr.synthetic_scene(rows=36, columns=32, n_classes=3, n_bands=8)
    np.save(tmp_path / "scene.npy", np.nan_to_num(np.moveaxis(cube.values, 0, -1)))
    np.save(tmp_path / "labels.npy", labels.values)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.filterwarnings("always::hsreject.errors.GuessWarning")
def test_what_is_written_runs_without_an_edit(files, capsys) -> None:
    assert call("init", "scene.npy", "labels.npy", "--out", "my.toml") == 0
    said = capsys.readouterr().out
    assert "36 rows x 32 columns x 8 bands; 3 classes" in said
    assert "hsreject run my.toml" in said
    assert call("run", "my.toml", "--out", "out") == 0
    assert "zero in all bands" in capsys.readouterr().err
    assert (files / "out/report.html").stat().st_size > 100_000
    assert (files / "out/maps/map.tif").exists()


def test_bad_input_is_one_sentence_and_nothing_is_written(files, capsys) -> None:
    (files / "old.toml").write_text("mine")
    labels = np.load("labels.npy")
    labels[:3] = 255
    np.save("odd.npy", labels)
    for arguments, word in [
        (("none.tif", "labels.npy"), "none.tif does not exist"),
        (("labels.npy", "scene.npy"), "scene"),
        (("scene.npy", "labels.npy", "--out", "no/my.toml"), "no folder"),
        (("scene.npy", "labels.npy", "--out", "old.toml"), "--overwrite"),
        (("scene.npy", "labels.npy", "--goal", "accuracy=95"), "0.95"),
        (
            ("scene.npy", "labels.npy", "--goal", "accuracy=0.9", "--goal", "accuracy=0.8"),
            "exactly",
        ),
        (("scene.npy", "labels.npy", "--sampling", "polygon"), "polygons"),
        (("scene.npy", "odd.npy"), "--nodata 255"),
    ]:
        assert call("init", *arguments) == 2
        said = capsys.readouterr().err
        assert word in said
        assert said.count("\n") == 1
    assert (files / "old.toml").read_text() == "mine"
    names = ["labels.npy", "odd.npy", "old.toml", "scene.npy"]
    assert sorted(path.name for path in files.iterdir()) == names
