"""``hsreject explore`` on rasters that GDAL wrote."""

import warnings
from pathlib import Path

import geopandas
import numpy as np
import pytest
from rasterio.transform import from_origin
from shapely.geometry import box

from hsreject.errors import TrainingPixelsWarning
from tests.cli.calling import call
from tests.io.writers import write_with_gdal
from tests.report.test_explorer import Page, unpacked

ROWS, COLUMNS = 12, 15
RNG = np.random.default_rng(0)
LABEL = RNG.integers(1, 4, (ROWS, COLUMNS)).astype(np.uint8)
CONFIDENCE = RNG.random((ROWS, COLUMNS), dtype=np.float32)


def write(path: Path, values: np.ndarray, **profile) -> Path:
    bands = values if values.ndim == 3 else values[np.newaxis]
    place = from_origin(5e5, 5.8e6, 30, 30)
    return write_with_gdal(path, bands, driver="GTiff", transform=place, **profile)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    return {
        "labels": write(tmp_path / "map.tif", np.where(LABEL == 3, 9, LABEL), nodata=9),
        "confidence": write(tmp_path / "sure.tif", CONFIDENCE),
        "reference": write(tmp_path / "truth.tif", LABEL),
        "scene": write(tmp_path / "scene.tif", RNG.random((5, ROWS, COLUMNS), dtype=np.float32)),
    }


def words(options: dict[str, object]) -> list[object]:
    return [word for name, value in options.items() for word in (f"--{name}", value)]


def test_maps_from_files_become_a_page(files, tmp_path, capsys) -> None:
    page = tmp_path / "page.html"
    assert call("explore", *words(files), "--out", page, "--title", "Fields") == 0
    assert str(page) in capsys.readouterr().out
    carried = Page(page).carried
    system = carried["systems"][0]
    assert (carried["title"], system["name"]) == ("Fields", "map")
    assert (carried["width"], carried["height"]) == (COLUMNS, ROWS)
    assert carried["place"] == pytest.approx([500015, 30, 5799985, -30])
    assert system["pixels"] == (LABEL != 3).sum()
    np.testing.assert_array_equal(unpacked(system["an"])[0], (LABEL != 3).sum())
    pictures = [attrs["src"] for tag, attrs in Page(page).tags if tag == "img"]
    assert [source[:22] for source in pictures] == ["data:image/png;base64,"]
    assert carried["picture"]


def test_training_pixels_in_the_reference_are_warned_of(files, tmp_path, capsys) -> None:
    write(tmp_path / "train.tif", np.where(np.arange(COLUMNS) < 2, LABEL, 0).astype(np.uint8))
    with warnings.catch_warnings():
        warnings.simplefilter("always", TrainingPixelsWarning)
        assert call("explore", *words(files), "--out", tmp_path / "page.html") == 0
    assert f"{2 * ROWS} of the {LABEL.size}" in capsys.readouterr().err


def test_two_systems_and_polygons(files, tmp_path) -> None:
    page = tmp_path / "page.html"
    fields = geopandas.GeoDataFrame(
        {"class": [1, 2]},
        geometry=[
            box(5e5, 5.8e6 - 90, 5e5 + 90, 5.8e6),
            box(5e5, 5.8e6 - 300, 5e5 + 60, 5.8e6 - 180),
        ],
        crs="EPSG:32633",
    )
    fields.to_file(tmp_path / "fields.gpkg")
    given = {**files, "reference": tmp_path / "fields.gpkg", "attribute": "class"}
    second = ("--labels", files["reference"], "--confidence", files["confidence"])
    names = ("--name", "first", "--name", "second")
    assert call("explore", *words(given), *second, *names, "--out", page) == 0
    carried = Page(page).carried
    assert [system["name"] for system in carried["systems"]] == ["first", "second"]
    assert [unpacked(system["truth"]).size > 0 for system in carried["systems"]] == [True, True]


def test_bad_input_is_one_line_and_writes_nothing(files, tmp_path, capsys) -> None:
    page = tmp_path / "page.html"
    smaller = write(tmp_path / "smaller.tif", CONFIDENCE[:-1])
    constant = write(tmp_path / "constant.tif", np.full_like(CONFIDENCE, 0.5))
    for change, word in (
        ({"confidence": smaller}, "11 rows x 15 columns"),
        ({"confidence": constant}, "0.5 to 0.5"),
        ({"scene": smaller}, "11 rows"),
        ({"reference": tmp_path / "missing.tif"}, "does not exist"),
        ({"fraction": 10}, "[0, 1]"),
        ({"labels": files["reference"], "nodata": 7, "name": "a", "out": tmp_path}, "is a folder"),
    ):
        assert call("explore", *words({**files, "out": page, **change})) == 2
        told = capsys.readouterr()
        *logged, _sentence = told.err.splitlines()
        assert logged in ([], ["page ..."]), told.err
        assert word in told.err
        assert not page.exists()
    assert call("explore", *words({**files, "out": page}), "--labels", smaller) == 2
    assert "--confidence" in capsys.readouterr().err
