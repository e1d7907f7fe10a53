"""The classes of features as people write them: empty, as text, as 0, in the wrong coordinates."""

from pathlib import Path

import geopandas
import numpy as np
import pytest
import shapely

import hsreject as hr
from hsreject import schema
from hsreject.errors import HsrejectError
from tests.io.writers import UTM, random_cube, write_with_gdal

CENTRES = [shapely.Point(UTM.c + 15 + 30 * column, UTM.f - 45) for column in range(3)]


@pytest.fixture
def scene(tmp_path: Path):
    return hr.open_scene(write_with_gdal(tmp_path / "scene.tif", random_cube(shape=(2, 3, 4))))


def points(folder: Path, kinds: list, *, epsg: int = 32633, places: list | None = None) -> Path:
    frame = geopandas.GeoDataFrame(
        {"kind": kinds}, geometry=CENTRES if places is None else places, crs=f"EPSG:{epsg}"
    )
    frame.to_file(folder / "points.gpkg")
    return folder / "points.gpkg"


def test_whole_numbers_as_text_keep_their_numbers(tmp_path: Path, scene) -> None:
    labels = hr.open_labels(points(tmp_path, ["2", "10", "1"]), like=scene, attribute="kind")
    assert labels.values[1].tolist() == [2, 10, 1, 0]
    assert any("written as text" in guess for guess in labels.attrs["guesses"])


def test_numbers_that_are_names_are_names(tmp_path: Path, scene) -> None:
    labels = hr.open_labels(
        points(tmp_path, ["2", "10", "2"]), like=scene, attribute="kind", names=["10", "2"]
    )
    assert labels.values[1].tolist() == [2, 1, 2, 0]


def test_empty_text_is_no_class(tmp_path: Path, scene) -> None:
    labels = hr.open_labels(points(tmp_path, ["soil", " ", "water"]), like=scene, attribute="kind")
    assert schema.class_table(labels).names == ("soil", "water")
    assert "1 features without a value of 'kind' were left out." in labels.attrs["guesses"]


def test_class_zero_is_told(tmp_path: Path, scene) -> None:
    labels = hr.open_labels(points(tmp_path, [0, 5, 5]), like=scene, attribute="kind")
    assert labels.values[1].tolist() == [0, 5, 5, 0]
    assert "Features of class 0 give no reference." in labels.attrs["guesses"]


@pytest.mark.parametrize(("kinds", "count"), [([None] * 3, 3), ([], 0)])
def test_a_layer_without_classes(tmp_path: Path, scene, kinds, count) -> None:
    path = points(tmp_path, kinds, places=CENTRES[: len(kinds)])
    with pytest.raises(HsrejectError, match=f"has no feature with .* has {count} features"):
        hr.open_labels(path, like=scene, attribute="kind")


def test_coordinates_of_another_system_than_stated(tmp_path: Path, scene) -> None:
    """GeoJSON in metres is read as degrees by everybody; the reader says what is wrong."""
    path = points(tmp_path, [1, 2, 3], epsg=4326)
    with pytest.raises(HsrejectError, match="are not in EPSG:4326, as it says"):
        hr.open_labels(path, like=scene, attribute="kind")


def test_the_place_of_points(tmp_path: Path, scene) -> None:
    labels = hr.open_labels(points(tmp_path, [1, 2, 3]), like=scene, attribute="kind")
    np.testing.assert_array_equal(labels.values, [[0] * 4, [1, 2, 3, 0], [0] * 4])
