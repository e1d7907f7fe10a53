"""QGIS itself, where it is installed: legends and pictures of our maps, and the plugin at work."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import geopandas
import numpy as np
import pytest
import rasterio.features
import shapely
import xarray as xr

import hsreject as hr
from hsreject import ClassTable
from hsreject.io.grid import Grid
from hsreject.schema import LABEL_WITH_REJECTION, MAP_DIMS, class_table
from tests.io.writers import write_with_gdal
from tests.mapping.scenes import CONFIG, larger_scene

ROOT = Path(__file__).parents[2]
PLUGINS = (ROOT / "integrations" / "qgis", Path("/usr/share/qgis/python/plugins"))
OFF_SCREEN = {
    **os.environ,
    "QT_QPA_PLATFORM": "offscreen",
    "PYTHONPATH": os.pathsep.join(map(str, PLUGINS)),
    "PYTHONDONTWRITEBYTECODE": "1",
}


@pytest.fixture(scope="session")
def qgis_python() -> str:
    for python in filter(None, (sys.executable, shutil.which("python3", path="/usr/bin"))):
        found = subprocess.run(
            [python, "-c", "import qgis.core, processing"],
            env=OFF_SCREEN,
            capture_output=True,
            check=False,
        )
        if found.returncode == 0:
            return python
    pytest.skip("QGIS is not installed: no Python here imports qgis.core")


@pytest.fixture
def ask(qgis_python, tmp_path):
    """Give a function that has QGIS do tasks of `qgis_session`, in a profile of its own."""

    def do(*tasks: tuple[str, dict]) -> list:
        question, answer = tmp_path / "question.json", tmp_path / "answer.json"
        question.write_text(json.dumps(tasks, default=str))
        session = Path(__file__).with_name("qgis_session.py")
        told = subprocess.run(
            [qgis_python, session, question, answer],
            env={**OFF_SCREEN, "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)},
            capture_output=True,
            # what cancels work is ignored in background jobs
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            text=True,
            check=False,
        )
        assert told.returncode == 0, told.stderr
        return json.loads(answer.read_text())

    return do


PROGRAM = f"""#!/bin/sh
export PYTHONPATH='{ROOT}' HOME='{Path.home()}'  # with the caches that are there
exec '{sys.executable}' -m hsreject "$@"
"""


@pytest.fixture(scope="module")
def files(qgis_python, tmp_path_factory) -> dict[str, Path]:
    """Return a scene, a larger one, a model, a reference and the program, as a user has them."""
    folder = tmp_path_factory.mktemp("files")
    small, labels = hr.synthetic_scene(rows=64, columns=64, n_bands=12, noise=0.4)
    hr.write_map(labels, folder / "reference.tif")
    program = folder / "hsreject"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return {
        "program": program,
        "model": hr.save_model(hr.train(CONFIG), folder / "model.skops"),
        "scene": write_with_gdal(
            folder / "scene.tif", small.values, transform=Grid.of(small).transform
        ),
        "large": write_with_gdal(folder / "large.tif", larger_scene(600, 600).values),
        "reference": folder / "reference.tif",
    }


def map_parameters(files: dict[str, Path], out: Path, **changes) -> dict:
    names = {"SCENE": files["scene"], "MODEL": files["model"], "EXECUTABLE": files["program"]}
    return {**names, "GOAL": 0, "VALUE": 0.2, "OUTPUT": out, **changes}


def test_a_map_shows_its_classes_and_what_is_rejected_and_nothing_else(ask, tmp_path) -> None:
    table = ClassTable.from_names(
        {1: "Grünland", 3: "water & <ice>"}, colors=["#12ab34", "#0000c8"]
    )
    values = np.random.default_rng(0).choice(np.array([0, 1, 3, 255], np.uint8), (40, 50))
    labels = xr.DataArray(values, dims=MAP_DIMS, name=LABEL_WITH_REJECTION)
    place = {"transform": (30, 0, 5e5, 0, -30, 5.8e6), "crs": "EPSG:32633"}
    hr.write_map(labels, tmp_path / "map.tif", classes=table, **place)
    (shown,) = ask(("draw", {"path": tmp_path / "map.tif"}))
    entries = [["rejected", "#000000"], ["Grünland", "#12ab34"], ["water & <ice>", "#0000c8"]]
    assert shown["legend"] == ["paletted", 1 + len(entries), entries]  # and the name of the band
    colors = {0: "#000000", 1: "#12ab34", 3: "#0000c8", 255: "#ff00ff"}  # no data: what lies below
    assert shown["drawn"] == Counter(colors[value] for value in values.flat)


def test_a_confidence_map_has_a_continuous_legend(ask, tmp_path) -> None:
    values = np.linspace(0.25, 0.75, 2000).reshape(40, 50)
    values[:3] = np.nan
    hr.write_map(values, tmp_path / "map.tif", transform=(30, 0, 5e5, 0, -30, 5.8e6))
    (shown,) = ask(("draw", {"path": tmp_path / "map.tif"}))
    kind, n_nodes, steps = shown["legend"]
    assert (kind, n_nodes) == ("singlebandpseudocolor", 2)  # the name of the band, one bar
    assert [steps[0][1], steps[-1][1]] == ["#00224e", "#fee838"]
    assert shown["drawn"]["#ff00ff"] == 3 * 50
    assert len(shown["drawn"]) > 100  # between the steps, too


@pytest.mark.posix
def test_mapping_and_evaluating(ask, files, tmp_path) -> None:
    out, first, second = (tmp_path / name for name in ("maps", "first", "second"))
    judged = {
        "LABELS": out / "label.tif",
        "CONFIDENCE": out / "confidence.tif",
        "REJECTION_COST": 0.3,
        "EXECUTABLE": files["program"],
    }
    raster = {**judged, "REFERENCE": files["reference"], "OUTPUT": first}
    # the same reference as polygons, which QGIS holds in memory
    polygons = tmp_path / "reference.gpkg"
    polygons_of(hr.open_labels(files["reference"])).to_file(polygons)
    vector = {**judged, "ATTRIBUTE": "kind", "OUTPUT": second}
    answers = ask(
        ("run", {"algorithm": "hsreject:map", "parameters": map_parameters(files, out)}),
        ("run", {"algorithm": "hsreject:evaluate", "parameters": raster}),
        ("run", {"algorithm": "hsreject:evaluate", "parameters": vector, "polygons": polygons}),
    )
    assert all(answer["ok"] for answer in answers), answers
    made = answers[0]
    assert made["results"]["LABEL"] == str(out / "label.tif")
    assert "mapping ..." in made["told"]
    assert any(text.startswith("warning: ") and "wavelengths" in text for text in made["told"])
    labels = hr.open_map(out / "label_with_rejection.tif")
    assert (labels == 0).sum() / (labels != 255).sum() == pytest.approx(0.2, abs=0.005)
    kind, _, entries = made["loaded"]["Map with rejection"]
    names = ["rejected", *class_table(labels).names]
    assert (kind, [name for name, _ in entries]) == ("paletted", names)
    assert made["loaded"]["Confidence"][0] == "singlebandpseudocolor"
    assert any({"rejected", "A", "Q", "phi"} <= {*text.split()} for text in answers[1]["told"])
    assert (first / "curve.csv").is_file()
    assert (first / "points.csv").read_text() == (second / "points.csv").read_text()


def polygons_of(labels: xr.DataArray) -> geopandas.GeoDataFrame:
    transform = labels.rio.transform(recalc=True)
    found = rasterio.features.shapes(labels.values, mask=labels.values > 0, transform=transform)
    shapes, values = zip(*found, strict=True)
    kinds = [int(value) for value in values]
    places = [shapely.geometry.shape(shape) for shape in shapes]
    return geopandas.GeoDataFrame({"kind": kinds}, geometry=places, crs=labels.rio.crs)


@pytest.mark.posix
def test_what_goes_wrong_is_said_in_the_words_of_hsreject(ask, files, tmp_path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    out = tmp_path / "out"
    cases = {
        "[0, 1]": {"VALUE": 1.5},
        "is not empty": {"OUTPUT": tmp_path / "full"},
        "pip install hsreject": {"EXECUTABLE": tmp_path / "nowhere"},
        "Cancelled": {"SCENE": files["large"]},
    }
    tasks = [
        (
            "run",
            {
                "algorithm": "hsreject:map",
                "parameters": map_parameters(files, out, **changes),
                "cancel_at": "mapping ..." if message == "Cancelled" else None,
            },
        )
        for message, changes in cases.items()
    ]
    for message, answer in zip(cases, ask(*tasks), strict=True):
        assert not answer["ok"]
        assert answer["told"][-1].startswith("error: ")
        assert message in answer["told"][-1]
        assert not any("done" in text for text in answer["told"])
    assert not out.exists()
