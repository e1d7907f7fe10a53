"""Which file holds the pixels that a header describes, and what formats say by themselves."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import FileError
from tests.io.writers import random_cube, write_envi, write_with_gdal

CUBE = random_cube("int16", (4, 6, 5))
OTHER = random_cube("int16", (3, 7, 9), seed=1)
BESIDE = {
    "scene.clr": b"1 255 0 0\n",
    "scene.txt": b"notes on the scene, long enough to be taken for pixels" * 40,
    "scene.csv": b"x,y\n" * 400,
    "scene.pdf": b"%PDF-1.4" + bytes(1000),
    "scene.png": b"\x89PNG\r\n\x1a\n" + bytes(1000),
    "scene.jp2": b"\0\0\0\x0cjP  \r\n\x87\n" + bytes(1000),
    "scene.raw2": bytes(1000),
}


@pytest.mark.parametrize("name", BESIDE)
def test_a_file_beside_a_header_is_not_its_data(tmp_path: Path, name: str) -> None:
    data = write_envi(tmp_path, CUBE, data_name="scene.dat")
    (tmp_path / name).write_bytes(BESIDE[name])
    with pytest.raises(FileError):
        hr.open_scene(tmp_path / name)
    for path in (data, tmp_path / "scene.hdr"):
        np.testing.assert_array_equal(hr.open_scene(path).values, CUBE)


def test_an_erdas_image_beside_the_header_of_another_file(tmp_path: Path) -> None:
    write_envi(tmp_path, CUBE, data_name="scene.dat")
    image = write_with_gdal(tmp_path / "scene.img", OTHER, driver="HFA", nodata=7)
    (tmp_path / "scene.img.aux.xml").unlink(missing_ok=True)
    cube = hr.open_scene(image)
    np.testing.assert_array_equal(cube.values, np.where(OTHER == 7, np.nan, OTHER))
    assert cube.rio.crs.to_epsg() == 32633
    np.testing.assert_array_equal(hr.open_scene(tmp_path / "scene.hdr").values, CUBE)


def test_a_header_takes_the_file_of_its_length(tmp_path: Path) -> None:
    write_envi(tmp_path, CUBE, data_name="scene.raw")
    (tmp_path / "scene").write_bytes(bytes(17))
    np.testing.assert_array_equal(hr.open_scene(tmp_path / "scene.hdr").values, CUBE)
    with pytest.raises(FileError, match=r"scene\.hdr"):
        hr.open_scene(tmp_path / "scene")


@pytest.mark.parametrize("start", [b"II*\0", b"\x89HDF\r\n\x1a\n", b"\x89PNG\r\n\x1a\n"])
def test_pixels_that_look_like_another_format(tmp_path: Path, start: bytes) -> None:
    cube = CUBE.copy()
    cube.reshape(-1)[: len(start) // 2] = np.frombuffer(start, "<i2")
    data = write_envi(tmp_path, cube)
    for path in (data, tmp_path / "scene.hdr"):
        np.testing.assert_array_equal(hr.open_scene(path).values, cube)


@pytest.mark.parametrize(
    ("name", "driver", "options"),
    [
        ("a.img", "HFA", {}),
        ("a.jp2", "JP2OpenJPEG", {"reversible": "yes", "quality": "100"}),
        ("a.j2k", "JP2OpenJPEG", {"reversible": "yes", "quality": "100"}),
    ],
)
def test_formats_that_gdal_reads(tmp_path: Path, name: str, driver: str, options: dict) -> None:
    cube = random_cube("uint16", (4, 40, 50))
    path = write_with_gdal(tmp_path / name, cube, driver=driver, **options)
    for scene in (hr.open_scene(path), hr.open_scene(path, chunks={"y": 16})):
        np.testing.assert_array_equal(scene.values, cube)
    assert hr.describe(path).rows[2][1].startswith(driver)
    labels = write_with_gdal(tmp_path / f"labels{path.suffix}", cube[:1] % 4, driver=driver)
    if driver == "HFA":
        np.testing.assert_array_equal(hr.open_labels(labels).values, cube[0] % 4)
        np.testing.assert_array_equal(hr.open_map(labels).values, cube[0] % 4)


def test_a_jpeg_2000_box_without_a_length_is_no_endless_loop(tmp_path: Path) -> None:
    """GDAL, asked how bands are interleaved, would walk through the boxes for ever."""
    path = write_with_gdal(
        tmp_path / "a.jp2", random_cube("uint8", (3, 20, 24)), driver="JP2OpenJPEG"
    )
    raw = path.read_bytes()
    at = raw.index(b"jp2h") + 4
    path.write_bytes(raw[:at] + bytes(4) + raw[at + 4 :])
    code = f"import hsreject; hsreject.describe({str(path)!r})"
    subprocess.run([sys.executable, "-c", code], timeout=300, check=False)
