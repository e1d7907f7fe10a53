"""`hsreject info` prints what was understood, and every guess."""

import subprocess
import sys
from pathlib import Path

import geopandas
import numpy as np
import pytest
import scipy.io
import shapely
from typer.testing import CliRunner

import hsreject as hr
from hsreject.cli import app
from tests.io.writers import write_envi, write_with_gdal


def lines_of(path: Path, *options: str) -> dict[str, str]:
    done = CliRunner().invoke(app, ["info", str(path), *options])
    assert done.exit_code == 0, done.output
    pairs = [line.partition(": ") for line in done.output.splitlines()]
    return {name: value for name, _, value in pairs if name != "Guess"} | {
        "guesses": " ".join(value for name, _, value in pairs if name == "Guess")
    }


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    cube = np.arange(1, 61, dtype=np.int16).reshape(4, 3, 5)
    cube[:, 0, :3] = -9999  # three pixels of fifteen
    cube[2] = -9999  # a band without data
    return write_envi(
        tmp_path,
        cube,
        interleave="bil",
        fields={
            "wavelength": "{0.45, 0.55, 0.65, 0.75}",
            "fwhm": "{0.01, 0.01, 0.02, 0.02}",
            "bbl": "{0, 1, 1, 1}",
            "data ignore value": -9999,
            "reflectance scale factor": 100,
            "map info": "{UTM, 1, 1, 364095, 5809965, 30, 30, 33, North, WGS-84}",
        },
    )


def test_a_scene_in_full(scene: Path) -> None:
    lines = lines_of(scene)
    assert (
        lines.items()
        >= {
            "Holds": "a scene",
            "Format": "ENVI bil",
            "Size": "3 rows x 5 columns x 4 bands",
            "Type": "int16 in the file, float32 as read",
            "Reference system": "EPSG:32633",
            "Pixel size": "30 x 30",
            "Upper left corner": "364095, 5809965",
            "Wavelengths": "450 to 750 nm",
            "Band widths": "10 to 20 nm",
            "Bad bands": "2 of 4 (1, 3)",
            "Nodata value": "-9999",
            "Scaling": "times 0.01, plus 0",
            "Without data": "20.00 % of the pixels",
            "Values": "0.19 to 0.6 in the good bands",
        }.items()
    )
    assert "is described by scene.hdr" in lines["guesses"]
    assert "values from 0.45 to 0.75 were read as um" in lines["guesses"]
    quick = lines_of(scene, "--quick")  # reads no pixels
    assert quick["Bad bands"] == "1 of 4 (1)"
    assert "Values" not in quick


def test_names_in_a_file_do_not_steer_the_terminal(tmp_path: Path) -> None:
    fields = {
        "file type": "ENVI Classification",
        "classes": 2,
        "class names": "{none, \x1b[2Jsoil\x9b1m}",
    }
    path = write_envi(tmp_path, np.array([[[0, 1, 1]]], dtype=np.uint8), fields=fields)
    for file in (path, tmp_path / "missing\x1b[2J"):
        shown = CliRunner().invoke(app, ["info", str(file)])
        told = shown.output or str(shown.exception)
        assert told.replace("\n", "").isprintable()
    assert "soil" in lines_of(path)["Class 1"]


def test_labels_with_counts(tmp_path: Path) -> None:
    values = np.array([[[0, 1, 1], [2, 2, 2]]], dtype=np.uint8)
    fields = {
        "file type": "ENVI Classification",
        "classes": 3,
        "class names": "{Unclassified, bare soil, water}",
        "class lookup": "{0,0,0, 9,9,9, 0,0,255}",
    }
    lines = lines_of(write_envi(tmp_path, values, fields=fields))
    assert (
        lines.items()
        >= {
            "Holds": "labels",
            "Class 1": "bare soil, 2 pixels",
            "Class 2": "water, 3 pixels",
            "With reference": "5 of 6 pixels",
        }.items()
    )


def test_a_map_with_rejection(tmp_path: Path) -> None:
    probability = np.array([[[0.9, 0.6, np.nan]], [[0.1, 0.4, np.nan]]])
    made = hr.PixelwiseRejector().reject(probability, fraction=0.5)
    hr.write_map(made["label_with_rejection"], tmp_path / "map.tif")
    lines = lines_of(tmp_path / "map.tif")
    assert lines["Nodata value"] == "255"
    assert lines["With a class"] == "1 of 3 pixels"
    assert lines["Rejected"] == lines["Without data"] == "1 pixels"
    assert "With reference" not in lines


def test_one_band_of_many_values_is_a_scene(tmp_path: Path) -> None:
    heights = np.arange(400, dtype=np.int16).reshape(1, 20, 20)
    assert lines_of(write_with_gdal(tmp_path / "dem.tif", heights))["Holds"] == "a scene"


def test_matlab_variables(tmp_path: Path) -> None:
    cube = np.arange(60, dtype=np.uint16).reshape(3, 4, 5)
    gt = np.array([[0, 1], [2, 2]], dtype=np.uint8)
    scipy.io.savemat(tmp_path / "two.mat", {"cube": cube, "other": cube, "gt": gt})
    lines = lines_of(tmp_path / "two.mat", "--variable", "cube", "--band-axis", "0")
    assert lines["Size"] == "4 rows x 5 columns x 3 bands"
    assert lines_of(tmp_path / "two.mat", "--variable", "gt")["With reference"] == "3 of 4 pixels"


def test_features(tmp_path: Path) -> None:
    table = geopandas.GeoDataFrame({"kind": ["a"]}, geometry=[shapely.Point(1, 2)], crs=4326)
    table.to_file(tmp_path / "points.gpkg")
    assert (
        lines_of(tmp_path / "points.gpkg").items()
        >= {
            "Holds": "1 features (Point)",
            "Attributes": "kind",
            "Reference system": "EPSG:4326",
        }.items()
    )


def test_progress_counts_what_is_read(scene: Path) -> None:
    calls: list[tuple[str, float, float | None]] = []
    hr.describe(scene, progress=lambda *call: calls.append(call))
    assert {stage for stage, *_ in calls} == {"reading pixels"}
    assert calls[-1][1] == calls[-1][2]


def test_bad_input_in_a_real_process(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no scene")
    done = subprocess.run(
        [sys.executable, "-m", "hsreject", "info", str(tmp_path / "notes.txt")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "notes.txt is not a raster" in done.stderr
