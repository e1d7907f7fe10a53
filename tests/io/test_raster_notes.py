"""What a file says and cannot be followed is told; what is broken is refused."""

import os
from pathlib import Path

import numpy as np
import pytest
import rasterio
from rasterio.control import GroundControlPoint

import hsreject as hr
from hsreject.errors import FileError
from tests.io.writers import random_cube, write_envi, write_with_gdal

CUBE = random_cube(shape=(3, 4, 5))
UTM = "{UTM, 1, 1, 500000, 6000000, 30, 30, 33, North, WGS-84}"


def guesses(path: Path) -> list[str]:
    return hr.open_scene(path).attrs.get("guesses", [])


@pytest.mark.parametrize(
    ("fields", "note"),
    [
        ({"map info": "{UTM, 1, 1}"}, "The map info of the header is not understood"),
        ({"band names": "{a, b}"}, "The header has 2 band names for 3 bands: not used."),
        (
            {"map info": UTM, "coordinate system string": '{PROJCS["WGS_19}'},
            "The coordinate system string of the header is not understood",
        ),
        ({"wavelength": "{0, 500, 600}"}, "1 of 3 bands have the wavelength 0: read as unknown"),
    ],
)
def test_header_fields_that_cannot_be_followed(tmp_path: Path, fields, note, capfd) -> None:
    path = write_envi(tmp_path, CUBE, fields=fields)
    assert any(guess.startswith(note) for guess in guesses(path))
    assert capfd.readouterr().err == ""  # GDAL does not complain on the screen


def test_wavelengths_of_zero_are_unknown(tmp_path: Path) -> None:
    path = write_envi(tmp_path, CUBE, fields={"wavelength": "{0, 0.5, 0.6}"})
    np.testing.assert_array_equal(hr.open_scene(path).wavelength, [np.nan, 500, 600])


def test_ground_control_points_are_told(tmp_path: Path) -> None:
    path = write_with_gdal(tmp_path / "scene.tif", CUBE)
    points = [GroundControlPoint(y, x, 5e5 + x, 6e6 - y) for y, x in ((0, 0), (0, 5), (4, 0))]
    with rasterio.open(path, "r+") as dataset:
        dataset.gcps = points, "EPSG:32633"
    assert any("by 3 ground control points only, which are not used" in g for g in guesses(path))


def test_an_arbitrary_map_has_coordinates_and_no_reference_system(tmp_path: Path) -> None:
    place = {"map info": "{Arbitrary, 1, 1, 100, 200, 0.5, 0.5, 0, North}"}
    cube = hr.open_scene(write_envi(tmp_path, CUBE, fields=place))
    assert cube.rio.crs is None
    assert cube.x.values[0] == 100.25


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"map info": "{UTM, 1, 1, 5e5, 6e6, 0, 0, 33, North}"}, "has pixels of size 0"),
        ({"map info": "{UTM, a, b, c, d, e, f, 33, North}"}, "has pixels of size 0"),
        ({"data ignore value": "none"}, "'data ignore value = none' must be a number"),
        ({"data ignore value": ""}, "'data ignore value = ' must be a number"),
        ({"data ignore value": "-nan"}, "'data ignore value = -nan' must be a number"),
        ({"data gain values": "{2, 2}"}, "'data gain values' has 2 values for 3 bands"),
        ({"data gain values": "{0, 1, 1}"}, "the scale of a band must be a number other than 0"),
        ({"bbl": "{0, 0, 0}"}, "calls every band bad"),
    ],
)
def test_fields_that_make_no_sense(tmp_path: Path, fields, message) -> None:
    with pytest.raises(FileError, match=message):
        hr.open_scene(write_envi(tmp_path, CUBE, fields=fields))


def test_a_link_finds_the_header_of_its_target(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    path = write_envi(tmp_path / "store", CUBE)
    (tmp_path / "link").symlink_to(path)
    cube = hr.open_scene(tmp_path / "link")
    np.testing.assert_array_equal(cube, CUBE)
    assert cube.attrs["guesses"][0] == f"link is a link to {path.resolve()}."


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("scene.img.gz", b"\x1f\x8b" + bytes(9), r"is packed \(gzip\). Unpack it"),
        ("scene.npz", b"PK\x03\x04" + bytes(9), r"is packed \(zip\)"),
        ("scene.nc", b"CDF\1" + bytes(9), "is an HDF5 or NetCDF file. Open one"),
        ("scene.h5", b"\x89HDF\r\n\x1a\n" + bytes(9), "with open_dataset, and convert others"),
        ("scene", b"", "looked for scene.hdr.$"),
    ],
)
def test_files_of_no_kind(tmp_path: Path, name, raw, message) -> None:
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(FileError, match=message):
        hr.open_scene(tmp_path / name)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "scene.img")
    with pytest.raises(FileError, match="is a pipe or a device"):
        hr.open_scene(tmp_path / "scene.img")


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/sc\xe8ne.tif"))
    write_with_gdal(tmp_path / "plain.tif", CUBE).rename(path)
    with pytest.raises(FileError, match=r"The name '.*sc\\udce8ne.tif' is not in UTF-8"):
        hr.open_scene(path)


def test_a_folder_is_called_a_folder_once(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"^\S+ is a folder. Give the file inside it.$"):
        hr.open_scene(tmp_path)
