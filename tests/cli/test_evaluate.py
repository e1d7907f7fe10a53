"""``hsreject evaluate`` on rasters that GDAL wrote: what people see, right or wrong."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import geopandas
import numpy as np
import pytest
from rasterio.transform import from_origin
from rich.console import Console
from shapely.geometry import box

import hsreject as hr
from hsreject.cli.evaluate_commands import show_evaluation
from hsreject.errors import TrainingPixelsWarning
from tests.cli.calling import call
from tests.io.writers import write_with_gdal

ROWS, COLUMNS = 12, 15

Files = dict[str, Path]
Run = Callable[[dict[str, object]], "Told"]


def write(path: Path, values: np.ndarray, *, west: float = 5e5, **profile) -> Path:
    driver = "GTiff" if path.suffix == ".tif" else "ENVI"
    place = from_origin(west, 5.8e6, 30, 30)
    return write_with_gdal(path, values[np.newaxis], driver=driver, transform=place, **profile)


def maps() -> dict[str, np.ndarray]:
    generator = np.random.default_rng(0)
    reference = generator.integers(0, 4, (ROWS, COLUMNS)).astype(np.uint8)
    confidence = generator.uniform(0.3, 1, (ROWS, COLUMNS)).astype(np.float32)
    wrong = generator.uniform(0.3, 1, (ROWS, COLUMNS)) > confidence
    label = np.where(wrong, 1 + reference % 3, np.maximum(reference, 1)).astype(np.uint8)
    return {"reference": reference, "labels": label, "confidence": confidence}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return {name: write(tmp_path / f"{name}.tif", values) for name, values in maps().items()}


class Told(NamedTuple):
    """What a call says."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Call ``hsreject evaluate`` with options by name."""

    def call_evaluate(options: dict[str, object]) -> Told:
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return Told(call("evaluate", *words), *capsys.readouterr())

    return call_evaluate


def test_table_on_screen_agrees_with_counting(files: Files, run: Run) -> None:
    code, shown, _ = run({**files, "rejection-cost": 0.3})
    assert code == 0
    given = maps()
    known = given["reference"] > 0
    accuracy = (given["labels"] == given["reference"])[known].mean()
    (line,) = [line for line in shown.splitlines() if line.startswith("no rejection")]
    assert line.split()[-3:] == [f"{accuracy:.4f}", f"{accuracy:.4f}", "1.0000"]
    assert "cheapest at cost 0.3" in shown
    assert f"{known.sum()} pixels with reference and data" in shown


def test_lines_fit_a_terminal_of_80_columns(files: Files, run: Run) -> None:
    lines = run({**files, "rejection-cost": 0.3}).out.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    result = hr.evaluate(*maps().values(), rejection_cost=[0.3, 0.25])
    terminal = Console(force_terminal=True, width=80, color_system=None)
    with terminal.capture() as captured:
        show_evaluation(result, terminal)
    rows = captured.get().splitlines()
    assert max(len(row) for row in rows) <= 80
    assert any("cheapest at cost 0.25 " in row for row in rows)  # nothing is cut off


def test_envi_files_and_nodata(tmp_path: Path, run: Run) -> None:
    given = maps()
    given["labels"][0] = 99
    given["confidence"][1] = -9999
    paths = {
        "reference": write(tmp_path / "reference.dat", given["reference"]),
        "labels": write(tmp_path / "labels.dat", given["labels"], nodata=99),
        "confidence": write(tmp_path / "confidence.dat", given["confidence"], nodata=-9999),
    }
    told = run(paths)
    assert told.code == 0
    known = given["reference"] > 0
    assert f"{known[2:].sum()} pixels with reference and data, {known[:2].sum()} with" in told.out
    known[given["labels"] == 1] = False
    told = run({**paths, "nodata": 1})
    assert f"{known[2:].sum()} pixels with reference and data" in told.out


def test_a_mask_alone_gives_its_operating_point(files: Files, tmp_path: Path, run: Run) -> None:
    given = maps()
    mask = (given["confidence"] < 0.5).astype(np.uint8)
    mask[0] = 255
    files["rejected"] = write(tmp_path / "rejected.tif", mask, nodata=255)
    del files["confidence"]
    told = run({**files, "out": tmp_path / "out"})
    assert told.code == 0
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert f"wrote {len(written) - 1} files" in told.out  # and the list of them
    assert "report.html" in told.out
    known = given["reference"] > 0
    known[0] = False
    (line,) = [line for line in told.out.splitlines() if line.startswith("given mask")]
    assert line.split()[2] == f"{100 * (mask[known] == 1).mean():.2f}"


def test_bad_input_is_one_line_and_writes_nothing(files: Files, tmp_path: Path, run: Run) -> None:
    given = maps()
    shifted = write(tmp_path / "shifted.tif", given["confidence"], west=5e5 + 10)
    elsewhere = write(tmp_path / "elsewhere.tif", given["confidence"], crs="EPSG:32632")
    smaller = write(tmp_path / "smaller.tif", given["confidence"][:-1])
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    mask = write(tmp_path / "mask.tif", (given["confidence"] < 0.5).astype(np.uint8), nodata=0)
    for change, words in (
        ({"confidence": shifted}, "lie on different grids"),
        ({"confidence": elsewhere}, "in EPSG:32632"),
        ({"confidence": smaller}, "11 rows x 15 columns"),
        ({"reference": tmp_path / "missing.tif"}, "does not exist"),
        ({"rejection-cost": 1.5}, "must lie in [0, 1]"),
        ({"rejected": mask}, "calls 0 its nodata value"),
        ({"rejected": files["confidence"]}, "--confidence"),
        ({"out": tmp_path / "full"}, "is not empty"),
    ):
        told = run({**files, "out": tmp_path / "out", **change})
        assert told.code == 2
        assert told.err.count("\n") == 1, told.err
        assert told.err.startswith("hsreject: ")
        assert words in told.err
        assert told.out == ""
        assert not (tmp_path / "out").exists()


def test_polygons_serve_as_reference(files: Files, tmp_path: Path, run: Run) -> None:
    west, north = 5e5, 5.8e6
    shapes = [
        box(west, north - 90, west + 120, north),
        box(west, north - 240, west + 60, north - 120),
    ]
    fields = geopandas.GeoDataFrame({"class": [1, 2]}, geometry=shapes, crs="EPSG:32633")
    files["reference"] = tmp_path / "fields.gpkg"
    fields.to_file(files["reference"])
    told = run({**files, "attribute": "class"})
    assert told.code == 0
    assert f"{3 * 4 + 4 * 2} pixels with reference and data" in told.out


def test_classes_of_one_side_only_are_told(files: Files, tmp_path: Path, run: Run) -> None:
    """A nodata value that the file does not state would otherwise count as an error in silence."""
    known = run(files).out
    assert "does not have" not in known
    assert "never assigned" not in known
    reference, labels, _ = maps().values()
    labels[:3] = 255
    labels[labels == 3] = 2
    told = run(files | {"labels": write(tmp_path / "other.tif", labels)})
    assert told.code == 0
    strange, missing = int((reference[:3] > 0).sum()), int((reference == 3).sum())
    for line in (
        f"labels that the reference does not have, all errors: class 255 ({strange} pixels)",
        f"reference classes that were never assigned: class 3 ({missing} pixels)",
    ):
        assert line in told.out.splitlines()


def test_training_pixels_in_the_reference_are_warned_of(
    files: Files, tmp_path: Path, run: Run
) -> None:
    train = np.where(np.arange(ROWS)[:, np.newaxis] < 2, maps()["reference"], 0).astype(np.uint8)
    write(tmp_path / "train.tif", train)
    with warnings.catch_warnings():
        warnings.simplefilter("always", TrainingPixelsWarning)
        told = run(files)
    assert told.code == 0
    assert f"{np.count_nonzero(train)} of the" in told.err.splitlines()[0]
    known = maps()["reference"] * (train == 0)
    files["reference"] = write(tmp_path / "test.tif", known.astype(np.uint8))
    assert "train.tif" not in run(files).err
