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


def test_what_is_written_runs_without_an_edit(files, capsys) -> None:
    assert call("init", "scene.npy", "labels.npy", "--out", "my.toml") == 0
    said = capsys.readouterr().out
    assert "36 rows x 32 columns x 8 bands; 3 classes" in said
    assert "hsreject run my.toml" in said
    quick = ["--set", "rejectors.joint.n_points=3"]
    assert call("run", "my.toml", "--out", "out", *quick) == 0
    assert "With 90 % confidence" in capsys.readouterr().out
    assert (files / "out/report.html").stat().st_size > 100_000
    assert (files / "out/maps/label_with_rejection_joint.tif").exists()


def test_bad_input_is_one_sentence_and_nothing_is_written(files, capsys) -> None:
    (files / "old.toml").write_text("mine")
    for arguments, word in [
        (("none.tif", "labels.npy"), "none.tif does not exist"),
        (("labels.npy", "scene.npy"), "scene"),
        (("scene.npy", "labels.npy", "--out", "no/my.toml"), "no folder"),
        (("scene.npy", "labels.npy", "--out", "old.toml"), "--overwrite"),
    ]:
        assert call("init", *arguments) == 2
        said = capsys.readouterr().err
        assert word in said
        assert said.count("\n") == 1
    assert (files / "old.toml").read_text() == "mine"
    assert sorted(path.name for path in files.iterdir()) == ["labels.npy", "old.toml", "scene.npy"]
