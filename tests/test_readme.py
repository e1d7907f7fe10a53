"""What README.md says can be done is done: its Python, its commands, its links."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import geopandas
import pytest
import rasterio

import hsreject as hr
from tests import pages
from tests.cli.calling import call
from tests.pages import ROOT

README = ROOT / "README.md"
COMMANDS = pages.commands(README)


def run(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},  # the package need not be installed
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder in which the command lines of the page find what they name."""
    place = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "configs", place / "configs")
    cube, labels = hr.synthetic_scene(noise=0.3)
    cube[:, :64, :64].rio.to_raster(place / "scene.tif")
    cube[:, 64:, :64].rio.to_raster(place / "other_scene.tif")
    hr.write_map(labels[64:, :64], place / "test.tif")
    every_seventh = labels[:64:7, :64:3].stack(point=("y", "x"))
    points = every_seventh[every_seventh > 0]
    geopandas.GeoDataFrame(
        {"class": points.values},
        geometry=geopandas.points_from_xy(points.x, points.y),
        crs=labels.rio.crs,
    ).to_file(place / "labels.gpkg")
    return place


def test_the_python_example_runs(folder) -> None:
    (script,) = pages.blocks(README, "python")
    said = run("-W", "error", "-c", script.source, folder=folder)
    overall, kept = (float(word) for word in said.strip(" []\n").split())
    assert 0.6 < overall < kept < 1  # rejecting the least confident pixels must help
    with rasterio.open(folder / "indian_pines.tif") as file:
        assert file.shape == (145, 145)


@pytest.mark.filterwarnings("default::hsreject.errors.GuessWarning")  # of a scene without bands
def test_the_command_lines_run_in_their_order(folder, monkeypatch, capsys) -> None:
    named = {line[1] for line in COMMANDS if line[0] == "hsreject"}
    assert named == {"init", "run", "info", "evaluate", "train", "map", "sample"}
    monkeypatch.chdir(folder)
    for program, *words in COMMANDS:
        if program == "hsreject":
            assert call(*words) == 0, capsys.readouterr().err
        assert program != "hsreject" or capsys.readouterr().out
    assert (folder / "out" / "scene" / "report.html").is_file()
    # and one of them as it is really called, in a process of its own
    assert "indian_pines" in run("-m", "hsreject", "config", "list", folder=folder)


def test_make_commands_are_targets_that_ci_runs() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    ci = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    wanted = [line for line in COMMANDS if line[0] == "make"]
    assert wanted == [["make", "demo"], ["make", "test"]]
    for line in wanted:
        assert re.search(rf"^{line[1]}:", makefile, flags=re.MULTILINE)
        assert " ".join(line) in ci
    assert {line[0] for line in COMMANDS} == {"make", "pip", "hsreject"}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "data/README.md"])
def test_links_and_paths_lead_somewhere(page) -> None:
    text = (ROOT / page).read_text("utf-8")
    links = re.findall(r"\]\((?!https?://)([^)#]+)\)", text)
    named = re.findall(r"`((?:hsreject|tests|configs|examples)/[\w./]+)`", text)
    for target in {*links, *named}:
        base = (ROOT / page).parent if target in links else ROOT
        assert (base / target).exists(), f"{page} names {target}"
