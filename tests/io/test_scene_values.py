"""Nodata, scales and offsets of pixels come out right, and so does their place."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
import rasterio.shutil
from rasterio.transform import Affine

import hsreject as hr
from hsreject import schema
from hsreject.io.scene import mark_empty_bands
from tests.io.writers import UTM, envi_scene, guesses, random_cube, write_envi, write_with_gdal


@pytest.mark.parametrize("chunks", [None, "auto"])
@pytest.mark.parametrize(
    ("dtype", "nodata", "read_as"),
    [
        ("uint8", 255, "float32"),
        ("int16", -9999, "float32"),
        ("uint16", 0, "float32"),
        ("int32", -2147483648, "float64"),
        ("float32", -9999, "float32"),
        ("float32", -3.4028234663852886e38, "float32"),
        ("float32", np.nan, "float32"),
        ("float64", -1e34, "float64"),
    ],
)
@pytest.mark.parametrize("form", ["tif", "envi"])
def test_nodata_is_nan(tmp_path: Path, form, dtype, nodata, read_as, chunks) -> None:
    written = random_cube(dtype, (3, 4, 5))
    hole = np.zeros(written.shape, dtype=bool)
    hole[1, 2, 3] = hole[0, 0, 0] = True
    written[hole] = nodata
    if form == "tif":
        path = write_with_gdal(tmp_path / "scene.tif", written, nodata=nodata)
    else:
        path = write_envi(tmp_path, written, fields={"data ignore value": nodata})
    cube = hr.open_scene(path, chunks=chunks)
    assert cube.dtype == read_as
    np.testing.assert_array_equal(np.isnan(cube.values), hole)
    np.testing.assert_array_equal(cube.values[~hole], written[~hole])


def test_nodata_that_cannot_occur_changes_nothing(tmp_path: Path) -> None:
    cube = envi_scene(tmp_path, data_ignore_value=-9999)
    assert cube.dtype == np.uint16
    assert "The data ignore value -9999 cannot occur in uint16 pixels: ignored." in guesses(cube)


@pytest.mark.parametrize("chunks", [None, "auto"])
def test_a_mask_in_the_file_is_nodata(tmp_path: Path, chunks) -> None:
    written = random_cube(shape=(3, 4, 5))
    path = write_with_gdal(tmp_path / "scene.tif", written)
    mask = np.ones((4, 5), dtype=bool)
    mask[1, 1] = False
    with rasterio.open(path, "r+") as dataset:
        dataset.write_mask(mask)
    cube = hr.open_scene(path, chunks=chunks)
    np.testing.assert_array_equal(np.isnan(cube.values), np.broadcast_to(~mask, written.shape))


@pytest.mark.parametrize("chunks", [None, "auto"])
def test_reflectance_scale_factor_once_and_never_on_nodata(tmp_path: Path, chunks) -> None:
    written = np.array([[[-9999, 5000, 10000]], [[1, -9999, 2]]], dtype=np.int16)
    fields = {"data ignore value": -9999, "reflectance scale factor": 10000.0}
    cube = hr.open_scene(write_envi(tmp_path, written, fields=fields), chunks=chunks)
    assert cube.dtype == np.float32
    expected = np.where(written == -9999, np.nan, written / 1e4).astype(np.float32)
    np.testing.assert_array_equal(cube.values, expected)
    assert "scale_factor" not in cube.attrs  # nobody downstream scales again
    assert "scale_factor" not in cube.encoding


def test_a_scaled_integer_file_without_nodata_becomes_float(tmp_path: Path) -> None:
    cube = envi_scene(tmp_path, reflectance_scale_factor="1e4")
    assert cube.dtype == np.float32
    expected = (random_cube(shape=(3, 4, 5)) / 1e4).astype(np.float32)
    np.testing.assert_array_equal(cube.values, expected)


@pytest.mark.parametrize("chunks", [None, "auto"])
def test_band_scales_and_offsets_once(tmp_path: Path, chunks) -> None:
    written = random_cube("int16", (2, 3, 4))
    written[0, 0, 0] = -1
    path = write_with_gdal(tmp_path / "scene.tif", written, nodata=-1)
    with rasterio.open(path, "r+") as dataset:
        dataset.scales, dataset.offsets = (0.5, 0.25), (10.0, -1.0)
    cube = hr.open_scene(path, chunks=chunks)
    expected = (
        written * np.array([0.5, 0.25])[:, None, None] + np.array([10.0, -1.0])[:, None, None]
    )
    expected[0, 0, 0] = np.nan
    np.testing.assert_array_equal(cube.values, expected.astype(np.float32))


def test_gains_beside_a_scale_factor_are_not_applied_too(tmp_path: Path) -> None:
    cube = envi_scene(
        tmp_path,
        reflectance_scale_factor=10000,
        data_gain_values="{0.0001, 0.0001, 0.0001}",
    )
    expected = (random_cube(shape=(3, 4, 5)) / 1e4).astype(np.float32)
    np.testing.assert_array_equal(cube.values, expected)
    assert "only the factor was applied" in guesses(cube)


def test_bands_without_data_are_marked_bad(tmp_path: Path) -> None:
    written = random_cube("int16", (3, 4, 5))
    written[1] = -9999
    written[0, 0, 0] = -9999
    fields = {"data ignore value": -9999, "bbl": "{1, 1, 0}"}
    path = write_envi(tmp_path, written, fields=fields)
    np.testing.assert_array_equal(hr.open_scene(path).good_band, [True, False, False])
    lazy = hr.open_scene(path, chunks="auto")
    np.testing.assert_array_equal(lazy.good_band, [True, True, False])
    np.testing.assert_array_equal(mark_empty_bands(lazy).good_band, [True, False, False])
    assert schema.valid_pixels(hr.open_scene(path)).values.sum() == 19


@pytest.mark.parametrize("chunks", [None, "auto"])
@pytest.mark.parametrize("form", ["tif", "envi"])
def test_rotation_is_kept(tmp_path: Path, form, chunks) -> None:
    written = random_cube(shape=(2, 4, 5))
    turn = np.radians(30)
    wanted = Affine(
        10 * np.cos(turn), 10 * np.sin(turn), 500000, 10 * np.sin(turn), -10 * np.cos(turn), 4e6
    )
    if form == "tif":
        path = write_with_gdal(tmp_path / "scene.tif", written, transform=wanted)
    else:
        place = "{UTM, 1, 1, 500000, 4000000, 10, 10, 33, North, WGS-84, rotation=30}"
        path = write_envi(tmp_path, written, interleave="bil", fields={"map info": place})
    cube = hr.open_scene(path, chunks=chunks)
    np.testing.assert_array_equal(cube.values, written)
    np.testing.assert_allclose(cube.rio.transform()[:6], wanted[:6], rtol=1e-12)
    assert schema.X not in cube.coords
    assert cube.xc.dims == schema.MAP_DIMS
    # the centre of the pixel in row 2, column 3
    column, row = 3.5, 2.5
    assert float(cube.xc[2, 3]) == pytest.approx(wanted.c + wanted.a * column + wanted.b * row)
    assert float(cube.yc[2, 3]) == pytest.approx(wanted.f + wanted.d * column + wanted.e * row)


def test_pixel_centres_and_reference_system(tmp_path: Path) -> None:
    place = "{UTM, 1, 1, 364095, 5809965, 30, 30, 33, North, WGS-84, units=Meters}"
    cube = envi_scene(tmp_path, map_info=place)
    np.testing.assert_array_equal(cube.x, 364110 + 30 * np.arange(5))
    np.testing.assert_array_equal(cube.y, 5809950 - 30 * np.arange(4))
    assert cube.rio.crs.to_epsg() == 32633
    assert cube.rio.transform() == UTM


def test_a_file_without_a_place_has_no_coordinates(tmp_path: Path) -> None:
    cube = envi_scene(tmp_path)
    assert schema.X not in cube.coords
    assert cube.rio.crs is None
