"""What a raster says and what cannot be followed is told."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from rasterio.control import GroundControlPoint

import hsreject as hr
from tests.io.writers import guesses, random_cube, write_envi, write_with_gdal

CUBE = random_cube(shape=(3, 4, 5))
UTM = "{UTM, 1, 1, 500000, 6000000, 30, 30, 33, North, WGS-84}"


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"map info": "{UTM, 1, 1}"}, "The map info of the header is not understood"),
        ({"band names": "{a, b}"}, "The header has 2 band names for 3 bands: not used."),
        (
            {"map info": UTM, "coordinate system string": '{PROJCS["WGS_19}'},
            "The coordinate system string of the header is not understood",
        ),
    ],
)
def test_header_fields_that_cannot_be_followed(tmp_path: Path, fields, note, capfd) -> None:
    path = write_envi(tmp_path, CUBE, fields=fields)
    assert note in guesses(hr.open_scene(path))
    assert capfd.readouterr().err == ""  # GDAL does not complain on the screen


def test_ground_control_points_are_told(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "scene.tif", CUBE)
    points = [GroundControlPoint(y, x, 5e5 + x, 6e6 - y) for y, x in ((0, 0), (0, 5), (4, 0))]
    with rasterio.open(path, "r+") as dataset:
        dataset.gcps = points, "EPSG:32633"
    assert "by 3 ground control points only, which are not used" in guesses(hr.open_scene(path))


def test_an_arbitrary_map_has_coordinates_and_no_reference_system(tmp_path: Path) -> None:
    place = {"map info": "{Arbitrary, 1, 1, 100, 200, 0.5, 0.5, 0, North}"}
    cube = hr.open_scene(write_envi(tmp_path, CUBE, fields=place))
    assert cube.rio.crs is None
    assert cube.x.values[0] == 100.25


def test_a_link_finds_the_header_of_its_target(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    path = write_envi(tmp_path / "store", CUBE)
    (tmp_path / "link").symlink_to(path)
    cube = hr.open_scene(tmp_path / "link")
    np.testing.assert_array_equal(cube, CUBE)
    assert cube.attrs["guesses"][0] == f"link is a link to {path.resolve()}."
