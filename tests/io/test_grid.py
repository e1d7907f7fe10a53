"""The transform of an array: exact as stored, right after cropping."""

import numpy as np
import pytest
import rasterio
import rioxarray
import xarray as xr
from affine import Affine

from hsreject.errors import InputError
from hsreject.io.grid import PixelGrid
from hsreject.io.labels import open_labels
from tests.io.written_maps import NORTH_UP, ROTATED, SHEARED, TURNED


@pytest.fixture(params=[NORTH_UP, ROTATED, SHEARED], ids=["north", "rot", "shear"], name="scene")
def _scene(request, tmp_path):
    profile = {"driver": "GTiff", "width": 9, "height": 7, "count": 1, "dtype": "uint8"}
    path = tmp_path / "scene.tif"
    with rasterio.open(path, "w", crs="EPSG:32633", transform=request.param, **profile) as file:
        file.write(np.arange(63, dtype=np.uint8).reshape(1, 7, 9))
    return rioxarray.open_rasterio(path).squeeze("band"), request.param


def test_a_file_gives_its_transform_back(scene) -> None:
    array, transform = scene
    assert PixelGrid.of(array).transform == transform
    assert PixelGrid.of(array).crs.to_epsg() == 32633


def test_a_crop_moves_by_whole_pixels(scene) -> None:
    array, transform = scene
    cropped = PixelGrid.of(array.isel(y=slice(2, 5), x=slice(3, 8))).transform
    a, b, c, d, e, f = transform[:6]
    assert cropped == Affine(a, b, 3 * a + 2 * b + c, d, e, 3 * d + 2 * e + f)


@pytest.mark.parametrize("transform", TURNED.values(), ids=TURNED.keys())
def test_exact_turns_and_mirrors_are_as_gdal_has_them(transform, tmp_path) -> None:
    profile = {"driver": "GTiff", "width": 9, "height": 7, "count": 1, "dtype": "uint8"}
    with rasterio.open(tmp_path / "t.tif", "w", transform=transform, **profile) as file:
        file.write(np.ones((1, 7, 9), np.uint8))
    array = open_labels(tmp_path / "t.tif")
    assert PixelGrid.of(array).transform == transform
    corner = PixelGrid.of(array[2:5, 3:8]).transform
    assert corner == transform @ Affine.translation(3, 2)


def test_coordinates_that_span_no_area_are_refused(tmp_path) -> None:
    array = xr.DataArray(np.zeros((6, 8)), dims=("y", "x"))
    degenerate = array.assign_coords(x=np.full(8, 5.0), y=np.full(6, 5.0))  # of a quarter turn
    with pytest.raises(InputError, match="no area"):
        PixelGrid.of(degenerate.rio.write_transform(TURNED["a quarter"]))


def test_coarser_coordinates_win_over_the_stored_transform() -> None:
    array = xr.DataArray(np.zeros((6, 8)), dims=("y", "x"))
    array = array.assign_coords(x=np.arange(8) * 10 + 5.0, y=60 - np.arange(6) * 10 - 5.0)
    array = array.rio.write_crs("EPSG:32633").rio.write_transform()
    assert PixelGrid.of(array).transform == Affine(10, 0, 0, 0, -10, 60)
    assert PixelGrid.of(array.isel(y=slice(0, None, 2), x=slice(0, None, 2))).transform == Affine(
        20, 0, -5, 0, -20, 65
    )


def test_an_array_that_says_nothing_lies_at_the_origin() -> None:
    place = PixelGrid.of(xr.DataArray(np.zeros((3, 4)), dims=("y", "x")))
    assert place.crs is None
    assert place.transform == Affine.identity()


def test_a_transform_without_an_inverse_is_refused() -> None:
    """As a damaged file may state it: pixels so small that their inverse is infinite."""
    array = xr.DataArray(np.zeros((7, 9)), dims=("y", "x"), coords={"y": range(7), "x": range(9)})
    damaged = Affine(5e-4, 0, 13, 0, 8e-320, 3.4e165)
    with pytest.raises(InputError, match="inverted"):
        PixelGrid.of(array.rio.write_transform(damaged))
