"""Many scenes: each once, finished ones skipped, failures collected, one table."""

import csv
import os
import tempfile
import zipfile
from pathlib import Path

import pytest

import hsreject as hr
from hsreject.mapping.archive import map_archive
from hsreject.mapping.reading import Reading
from tests.cli.calling import call

CONFIG = {
    "features": [{"name": "pca", "n_components": 4}],
    "classifier": "lda",
    "context": {"prior": "vector_tv", "weight": 1.0},
}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Return a folder with a model, three scenes that it can map and one that it cannot."""
    place = tmp_path_factory.mktemp("archive")
    cube, labels = hr.synthetic_scene(rows=40, columns=36, n_classes=3, n_bands=12)
    cube = cube.drop_vars("wavelength")  # which a plain GeoTIFF loses
    hr.save_model(hr.train({**CONFIG, "scene": (cube, labels)}), place / "model.skops")
    (place / "scenes").mkdir()
    for number, rows in enumerate((slice(0, 30), slice(10, 40), slice(None))):
        cube[:, rows].rio.to_raster(place / "scenes" / f"scene{number}.tif")
    cube[:5].rio.to_raster(place / "scenes" / "wrong.tif")
    (place / "scenes" / "notes.md").write_text("not a scene")
    return place


def table(out: Path) -> dict[str, dict[str, str]]:
    with (out / "summary.csv").open(newline="") as stream:
        return {Path(row["scene"]).name: row for row in csv.DictReader(stream)}


def mapped(place: Path, out: Path, *scenes: object, fraction: float = 0.1) -> int:
    given = scenes or (place / "scenes",)
    return call("map", *given, "-m", place / "model.skops", "-o", out, "--fraction", fraction)


def test_a_folder_is_mapped_and_failures_are_collected(place, tmp_path, capsys) -> None:
    assert mapped(place, tmp_path / "out") == 1
    rows = table(tmp_path / "out")
    assert {name: row["status"] for name, row in rows.items()} == {
        "scene0.tif": "mapped",
        "scene1.tif": "mapped",
        "scene2.tif": "mapped",
        "wrong.tif": "failed",
    }
    assert "12 bands" in rows["wrong.tif"]["error"]
    alone = hr.map_scene(place / "scenes/scene1.tif", place / "model.skops", hr.Goal(fraction=0.1))
    row = rows["scene1.tif"]
    assert int(row["pixels"]) == alone.summary.n_pixels
    kept = 1 - alone.summary.rejected_fraction
    assert float(row["kept_share"]) == pytest.approx(kept, abs=1e-6)
    (share, *_) = alone.summary.classes
    assert float(row[f"hectares {share.name}"]) == pytest.approx(
        alone.summary.hectares(share.n_kept), abs=0.01
    )
    shown = hr.open_map(tmp_path / "out/scene1/label.tif")
    assert (shown.values == alone.maps["label"].values).all()
    assert "3 of 4 scenes" in capsys.readouterr().out


def test_archives_are_unpacked_one_at_a_time(place, tmp_path, monkeypatch) -> None:
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    for number in (0, 1):
        with zipfile.ZipFile(tmp_path / f"{number}.zip", "w") as archive:
            archive.write(place / f"scenes/scene{number}.tif", "scene.tif")
    (tmp_path / "2.zip").write_bytes((tmp_path / "0.zip").read_bytes())
    hr.open_scene(tmp_path / "2.zip")
    (own,) = room.iterdir()  # opened before, and maybe read later
    n_folders = []

    def count(*_report: object) -> None:
        n_folders.append(len(list(room.iterdir())))

    options = {"reading": Reading(), "layers": hr.Layers(), "resources": hr.Resources()}
    scenes, goal = [tmp_path / f"{number}.zip" for number in range(3)], hr.Goal(fraction=0.1)
    rows = map_archive(
        scenes, place / "model.skops", goal, out=tmp_path / "out", progress=count, **options
    )
    assert [row["status"] for row in rows] == ["mapped"] * 3
    assert max(n_folders) == 2
    assert list(room.iterdir()) == [own]


def test_a_scene_that_cannot_be_read_does_not_stop_the_others(place, tmp_path, capsys) -> None:
    (tmp_path / "damaged.tif").write_bytes(b"II*\0 and nothing that belongs here")
    names = ("missing.tif", "damaged.tif")
    scenes = [tmp_path / name for name in names]
    assert mapped(place, tmp_path / "out", *scenes, place / "scenes/scene0.tif") == 1
    rows = table(tmp_path / "out")
    assert rows["scene0.tif"]["status"] == "mapped"
    for name in names:
        assert rows[name]["status"] == "failed"
        assert name in rows[name]["error"]
    assert "1 of 3 scenes" in capsys.readouterr().out


def test_finished_scenes_are_skipped_until_something_changes(place, tmp_path) -> None:
    scenes = [place / "scenes" / f"scene{number}.tif" for number in (0, 1)]
    out = tmp_path / "out"
    assert mapped(place, out, *scenes) == 0
    before = (out / "scene0" / "label.tif").stat().st_mtime_ns
    listed = tmp_path / "scenes.txt"
    listed.write_text("# two scenes and a third\n\n" + "\n".join(map(str, scenes)))
    assert mapped(place, out, listed, place / "scenes/scene2.tif") == 0
    status = {name: row["status"] for name, row in table(out).items()}
    assert status == {
        "scene0.tif": "finished before",
        "scene1.tif": "finished before",
        "scene2.tif": "mapped",
    }
    assert (out / "scene0" / "label.tif").stat().st_mtime_ns == before
    (out / "scene0" / "flag.tif").unlink()  # whatever the manifest says
    assert mapped(place, out, scenes[0], scenes[1]) == 0
    assert [row["status"] for row in table(out).values()][:2] == ["mapped", "finished before"]
    os.utime(scenes[1])
    assert mapped(place, out, *scenes) == 0
    status = [row["status"] for row in table(out).values()]
    assert status == ["finished before", "mapped", "mapped"]  # the third was not asked for
    assert mapped(place, out, *scenes, fraction=0.2) == 0
    assert [row["status"] for row in table(out).values()][:2] == ["mapped", "mapped"]


def test_bad_archives_are_told_in_one_line(place, tmp_path, capsys) -> None:
    scene = place / "scenes/scene0.tif"
    (tmp_path / "empty").mkdir()
    for given, word in (
        ((scene, scene), "twice"),
        ((tmp_path / "empty",), "no scene"),
        ((scene, tmp_path / "missing.txt"), "missing.txt"),
    ):
        assert mapped(place, tmp_path / "out", *given) == 2
        (complaint,) = capsys.readouterr().err.splitlines()
        assert word in complaint
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out/summary.csv").write_text("mine\n1\n")
    assert mapped(place, tmp_path / "out", scene, place / "scenes/scene1.tif") == 2
    assert (tmp_path / "out/summary.csv").read_text() == "mine\n1\n"
