"""QGIS itself, where it is installed: legends and pictures of our maps, and the plugin at work."""

import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
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
from hsreject.io.grid import PixelGrid
from hsreject.schema import LABEL_WITH_REJECTION, MAP_DIMS, class_table
from tests.cli.calling import call
from tests.io.writers import write_with_gdal
from tests.mapping.scenes import CONFIG, larger_scene
from tools import plugin_zip

ROOT = Path(__file__).parents[2]
OF_QGIS = "/usr/share/qgis/python/plugins"
OFF_SCREEN = {
    **os.environ,
    "QT_QPA_PLATFORM": "offscreen",
    "PYTHONPATH": OF_QGIS,
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


@pytest.fixture(scope="session")
def installed(tmp_path_factory) -> Path:
    """Return a folder of plugins with ours as QGIS unpacks it from its zip."""
    folder = tmp_path_factory.mktemp("plugins")
    assert list(plugin_zip.problems(plugin_zip.PLUGIN, release=False)) == []
    plugin_zip.write_zip(plugin_zip.PLUGIN, folder / "plugin.zip")
    zipfile.ZipFile(folder / "plugin.zip").extractall(folder)
    return folder


@pytest.fixture
def ask(qgis_python, installed, tmp_path):
    """Give a function that has QGIS do tasks of `qgis_session`, in a profile of its own."""

    def do(*tasks: tuple[str, dict]) -> list:
        question, answer = tmp_path / "question.json", tmp_path / "answer.json"
        question.write_text(json.dumps(tasks, default=str))
        session = Path(__file__).with_name("qgis_session.py")
        told = subprocess.run(
            [qgis_python, session, question, answer],
            env={
                **OFF_SCREEN,
                "PYTHONPATH": os.pathsep.join((str(installed), OF_QGIS)),
                "HOME": str(tmp_path),
                "XDG_RUNTIME_DIR": str(tmp_path),
            },
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
            folder / "scene.tif", small.values, transform=PixelGrid.of(small).transform
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
    flag = hr.open_map(out / "flag.tif").values  # unknown pixels (3) are rejected beside the share
    assert (flag == 2).sum() / ((flag == 1) | (flag == 2)).sum() == pytest.approx(0.2, abs=0.005)
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


@pytest.mark.posix
def test_every_other_form_does_what_its_command_does(ask, files, tmp_path) -> None:
    (tmp_path / "hsreject" / "bin").mkdir(parents=True)  # found there, with nothing said
    shutil.copy(files["program"], tmp_path / "hsreject" / "bin" / "hsreject")
    forms, lines = tmp_path / "forms", tmp_path / "lines"
    out, typed = run_both(forms, lines, files)
    answers = ask(*(("run", {"algorithm": f"hsreject:{n}", "parameters": p}) for n, p in out))
    for (name, _), answer in zip(out, answers, strict=True):
        assert answer["ok"], (name, answer)
    for arguments in typed:
        assert call(*arguments, "--overwrite") == 0
    delivered = [hr.open_map(folder / "run/maps/map.tif") for folder in (forms, lines)]
    xr.testing.assert_identical(*delivered)
    same = ("scene.toml", "next.csv", "sample.csv", "areas/assessment.csv")
    for name in same:
        assert (forms / name).read_bytes() == (lines / name).read_bytes(), name
    kept = (hr.Certificate.read(folder / "promise/certificate.json") for folder in (forms, lines))
    assert len({one.statement for one in kept}) == 1
    for name in ("label.html", "explorer.html", "model.skops"):
        assert (forms / name).stat().st_size > 1000
    loaded = {name: answer["loaded"] for (name, _), answer in zip(out, answers, strict=True)}
    assert loaded["run"]["Map with rejection"][0] == "paletted"
    assert loaded["run"]["Map without holes"][0] == "paletted"
    kind, n_polygons, columns = loaded["polygons"]["Polygons"]
    assert (kind, n_polygons) == ("vector", len(geopandas.read_file(lines / "map.gpkg")))
    assert {"class", "name", "area_ha", "rejected_share"} <= set(columns)


def run_both(forms: Path, lines: Path, files: dict[str, Path]) -> tuple[list, list]:
    """Return the forms to fill in, in order, and the same commands as somebody types them."""
    scene, reference = files["scene"], files["reference"]
    forms.mkdir()
    lines.mkdir()
    assert call("init", scene, reference, "--out", lines / "scene.toml") == 0
    config = lines / "small.toml"
    config.write_text(
        'features = []\nclassifier = "lda"\n'
        f'[scene]\nname = "files"\npath = "{scene}"\nlabels = "{reference}"\n'
    )
    assert call("run", config, "--out", lines / "run") == 0
    label = lines / "run/maps/label_pixelwise.tif"
    sure = lines / "run/maps/confidence_pixelwise.tif"
    delivered, filled = lines / "run/maps/map.tif", lines / "run/maps/map_filled.tif"
    truth = hr.open_labels(reference)
    sample = hr.draw_sample(hr.open_map(label), 300, seed=0)
    sample.with_reference(truth.where(truth > 0, 1)).write(lines / "labelled.csv")
    points, labelled = lines / "sample.csv", lines / "labelled.csv"
    filled_in = [
        ("init", {"SCENE": scene, "LABELS": reference, "OUTPUT": forms / "scene.toml"}),
        ("run", {"CONFIG": config, "OUTPUT": forms / "run"}),
        ("train", {"CONFIG": config, "OUTPUT": forms / "model.skops"}),
        ("next", {"LABELS": filled, "N": 5, "OUTPUT": forms / "next.csv"}),
        ("sample", {"LABELS": label, "N": 50, "OUTPUT": forms / "sample.csv"}),
        ("label", {"POINTS": labelled, "SCENE": scene, "LABELS": label,
                   "OUTPUT": forms / "label.html"}),
        ("certify", {"LABELS": label, "CONFIDENCE": sure, "SAMPLE": labelled, "MAX_ERROR": 0.2,
                     "OUTPUT": forms / "promise"}),
        ("assess", {"LABELS": delivered, "SAMPLE": labelled, "OUTPUT": forms / "areas"}),
        ("polygons", {"LABELS": delivered, "MINIMUM_AREA": "1ha", "OUTPUT": forms / "map.gpkg"}),
        ("explore", {"LABELS": label, "CONFIDENCE": sure, "OUTPUT": forms / "explorer.html"}),
    ]  # fmt: skip
    typed = [
        ("next", filled, "--n", 5, "--out", lines / "next.csv"),
        ("sample", label, "--n", 50, "--out", points),
        ("certify", "--labels", label, "--confidence", sure, "--sample", labelled,
         "--max-error", 0.2, "--out", lines / "promise"),
        ("assess", delivered, "--sample", labelled, "--out", lines / "areas"),
        ("polygons", delivered, "--minimum-area", "1ha", "--out", lines / "map.gpkg"),
    ]  # fmt: skip
    return filled_in, typed


def test_the_plugin_names_what_the_repository_would_refuse(tmp_path) -> None:
    folder = tmp_path / "plugin"
    shutil.copytree(plugin_zip.PLUGIN, folder, ignore=shutil.ignore_patterns("__pycache__"))
    assert list(plugin_zip.problems(folder, release=False)) == []
    assert any("reserved" in one for one in plugin_zip.problems(folder, release=True))
    (folder / "LICENSE").unlink()
    (folder / "kernel.so").write_bytes(b"\0")
    text = (folder / "metadata.txt").read_text()
    (folder / "metadata.txt").write_text(text.replace("tracker=", "x=").replace("4.99", "3.99"))
    wrong = " ".join(plugin_zip.problems(folder, release=False))
    assert all(word in wrong for word in ("LICENSE", "kernel.so", "tracker", "QGIS 4"))
