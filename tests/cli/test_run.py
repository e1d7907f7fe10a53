"""`hsreject run` as a user calls it, on files of their own."""

import os
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
import rasterio
import spectral

import hsreject as hr
from tests.cli.calling import call

CONFIG = """
title = "West fields"
fraction = 0.1

[scene]
name = "files"
path = "{scene}"
labels = "{labels}"

[[features]]
name = "pca"
n_components = 5

[classifier]
name = "smlr"

[context]
prior = "vector_tv"
weight = 1.0

[[rejectors]]
name = "pixelwise"

[[rejectors]]
name = "sequential"

[[rejectors]]
name = "joint"
n_points = 3
"""


def write_scene(folder: Path, cube, kind: str) -> Path:
    if kind == "tif":
        cube.rio.to_raster(folder / "scene.tif")
        return folder / "scene.tif"
    place = cube.rio.transform()
    info = ["UTM", 1, 1, place.c, place.f, place.a, -place.e, 33, "North", "WGS-84"]
    header = folder / "scene.hdr"
    values = np.moveaxis(np.nan_to_num(cube.values, nan=-9999), 0, -1)
    spectral.envi.save_image(
        str(header),
        values,
        metadata={
            "map info": "{" + ", ".join(map(str, info)) + "}",
            "data ignore value": -9999,
            "wavelength": list(cube["wavelength"].values),
            "wavelength units": "Nanometers",
        },
    )
    return header


@pytest.fixture
def own_scene(tmp_path, request):
    cube, labels = hr.synthetic_scene(rows=40, columns=44, n_classes=3, n_bands=10)
    path = write_scene(tmp_path, cube, getattr(request, "param", "tif"))
    hr.write_map(labels, tmp_path / "labels.tif")
    config = tmp_path / "west.toml"
    config.write_text(CONFIG.format(scene=path, labels=tmp_path / "labels.tif"))
    return config, cube


@pytest.mark.parametrize("own_scene", ["tif", "envi"], indirect=True)
def test_a_scene_of_ones_own_becomes_reject_maps(own_scene, tmp_path, capsys) -> None:
    config, cube = own_scene
    assert call("run", config, "--out", tmp_path / "out") == 0
    shown = capsys.readouterr()
    for text in ("West fields", "sequential", "report.html", "of the scene", "map.tif"):
        assert text in shown.out
    assert "writing done" in shown.err
    with rasterio.open(tmp_path / "out" / "maps" / "map.tif") as file:
        values = file.read(1)
        assert file.crs.to_epsg() == 32633
        assert file.transform == cube.rio.transform()
    nodata = np.isnan(cube.values).all(axis=0)
    np.testing.assert_array_equal(values == 255, nodata)
    kept = f"{100 * (values[~nodata] != 0).mean():.1f} % of the scene"
    assert kept in " ".join(shown.out.split())  # the terminal speaks of the file
    with hr.open_tree(tmp_path / "out" / "result.nc") as tree:
        unknown = tree["unknown"].sel(rejector="sequential").values  # rejected in any case
    asked_of = ~nodata & ~unknown
    assert (values[asked_of] == 0).mean() == pytest.approx(0.1, abs=0.002)
    assert (values[unknown] == 0).all()


def test_settings_change_the_run_and_names_stay_whole_on_a_narrow_terminal(
    own_scene, tmp_path, capsys, monkeypatch
) -> None:
    config, _ = own_scene
    monkeypatch.setenv("COLUMNS", "80")
    out = tmp_path / "out"
    settings = ("context.weight=3", "seed=2", "rejectors=['pixelwise', 'sequential']")
    options = [word for setting in settings for word in ("--set", setting)]
    assert call("run", config, "--out", out, *options) == 0
    assert "weight = 3" in (out / "config.toml").read_text()
    assert not (out / "maps" / "label_joint.tif").exists()
    shown = capsys.readouterr().out
    for name in ("pixelwise", "sequential", "coordinates", "A(0.1)", "AURC: mean"):
        assert name in shown
    assert max(map(len, shown.splitlines())) <= max(80, len(str(tmp_path)) + 30)


def test_bad_input_is_one_line_and_exit_code_2(own_scene, tmp_path, capsys) -> None:
    config, _ = own_scene
    _, elsewhere = hr.synthetic_scene(rows=20, columns=20)
    hr.write_map(elsewhere, tmp_path / "elsewhere.tif")
    for setting, message in {
        "scene.path=missing.tif": "missing.tif",
        f"scene.labels={tmp_path / 'elsewhere.tif'}": "20 rows",
        "context.wieght=3": "'weight'",
        "sampling={name='per_class', n_per_class=0}": "at least 1",
        "classifier.sparsity=much": "must be a number",
        "weight": "section.key=value",
    }.items():
        assert call("run", config, "--out", tmp_path / "out", "--set", setting) == 2
        complaint = capsys.readouterr().err.splitlines()[-1]
        assert complaint.startswith("hsreject: ")
        assert message in complaint
        assert not (tmp_path / "out" / "report.html").exists()


def test_a_goal_on_the_command_line_replaces_that_of_the_file(own_scene, tmp_path, capsys) -> None:
    config, _ = own_scene
    out = tmp_path / "out"
    fast = ("--set", "rejectors=['sequential']", "--out", out)
    assert call("run", config, "--goal", "accuracy=0.9", *fast) == 0
    assert "90 % of the kept are right. How" in " ".join(capsys.readouterr().out.split())
    assert tomllib.loads((out / "config.toml").read_text())["goal"] == {"accuracy": 0.9}
    for goal, word in {
        "accuracy=95": "Write 95 % as 0.95",
        "accuracy": "rejection_cost=0.3",
        "precision=0.9": "Unknown key 'precision'",
    }.items():
        assert call("run", config, "--goal", goal, *fast) == 2
        message = capsys.readouterr().err.splitlines()[-1]
        assert word in message
        assert "section.key" not in message  # the words of --set
    assert call("run", tmp_path / "scene.tif") == 2
    assert "did you mean init?" in capsys.readouterr().err


# A shell that starts the tests in the background has SIGINT ignored, and children inherit that.
LISTENING = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from hsreject.cli import main; main()"
)


@pytest.mark.posix
def test_an_interrupted_run_keeps_finished_stages_and_goes_on(own_scene, tmp_path) -> None:
    config, _ = own_scene
    out = tmp_path / "out"
    arguments = ["run", str(config), "--out", str(out), "--set", "rejectors=['sequential']"]
    environment = os.environ | {"PYTHONPATH": str(Path(hr.__file__).parents[1])}
    endless = ["--set", "context.tol=1e-15", "--set", "context.max_iter=1000000000"]
    command = [sys.executable, "-c", LISTENING, *arguments, *endless]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        while process.poll() is None and not list(out.glob("stages/classifier-*.nc")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        complaint = process.communicate()[1].decode()
    assert process.returncode == 130
    assert "Traceback" not in complaint
    assert not (out / "report.html").exists()
    assert not [path for path in out.rglob("*") if "partial" in path.name]
    before = {path: path.stat().st_mtime_ns for path in out.glob("stages/classifier-*.nc")}
    assert before
    assert call(*arguments) == 0
    assert {path: path.stat().st_mtime_ns for path in out.glob("stages/classifier-*.nc")} == before
    assert (out / "report.html").exists()


def test_parts_are_listed_and_explained(capsys) -> None:
    for arguments, code, words in (
        (["list"], 0, "seed indian_pines mnf smlr vector_tv joint margin coordinates"),
        (["show", "vector_tv"], 0, "weight Isotropic"),
        (["show", "joint"], 0, "[context] n_points"),
        (["show", "goal"], 0, "max_error"),
        (["show", "vectortv"], 2, "'vector_tv'?"),
    ):
        assert call("config", *arguments) == code
        shown = "".join(capsys.readouterr())
        assert [word for word in words.split() if word not in shown] == []
