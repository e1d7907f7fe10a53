"""Every way in which a file marks pixels without data makes NaN, also where GDAL overlooks it."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
from rasterio.enums import ColorInterp

import hsreject as hr
from tests.io.writers import random_cube, write_envi, write_with_gdal

lazily_or_not = pytest.mark.parametrize("chunks", [None, "auto"])


@lazily_or_not
@pytest.mark.parametrize(("dtype", "nodata"), [("int64", -9999), ("uint64", 65535)])
@pytest.mark.parametrize("form", ["tif", "envi"])
def test_nodata_of_64_bits(tmp_path: Path, form, dtype, nodata, chunks) -> None:
    written = random_cube(dtype, (3, 4, 5))
    written[1, 2, 3] = nodata
    if form == "tif":
        path = write_with_gdal(tmp_path / "scene.tif", written, nodata=nodata)
    else:
        path = write_envi(tmp_path, written, fields={"data ignore value": nodata})
    expected = np.where(written == nodata, np.nan, written)
    np.testing.assert_array_equal(hr.open_scene(path, chunks=chunks).values, expected)


@lazily_or_not
def test_a_nodata_value_beside_a_mask(tmp_path: Path, chunks) -> None:
    """GDAL forgets the value then."""
    written = random_cube("int16", (3, 4, 5))
    written[0, 2, 2] = -9999
    path = write_with_gdal(tmp_path / "scene.tif", written, nodata=-9999)
    mask = np.ones((4, 5), dtype=bool)
    mask[1, 1] = False
    with rasterio.open(path, "r+") as dataset:
        dataset.write_mask(mask)
    expected = np.where((written == -9999) | ~mask, np.nan, written)
    np.testing.assert_array_equal(hr.open_scene(path, chunks=chunks).values, expected)


@lazily_or_not
def test_bands_with_nodata_values_of_their_own(tmp_path: Path, chunks) -> None:
    written = np.arange(36).reshape(3, 3, 4).astype(np.int16)
    write_with_gdal(tmp_path / "plain.tif", written)
    source = "<SourceFilename relativeToVRT='1'>plain.tif</SourceFilename>"
    bands = "".join(
        f"<VRTRasterBand dataType='Int16' band='{band}'>{nodata}<SimpleSource>{source}"
        f"<SourceBand>{band}</SourceBand></SimpleSource></VRTRasterBand>"
        for band, nodata in ((1, ""), (2, "<NoDataValue>15</NoDataValue>"), (3, ""))
    )
    path = tmp_path / "scene.vrt"
    path.write_text(f"<VRTDataset rasterXSize='4' rasterYSize='3'>{bands}</VRTDataset>")
    cube = hr.open_scene(path, chunks=chunks)
    np.testing.assert_array_equal(cube.values, np.where(written == 15, np.nan, written))
    assert "Bands have different nodata values: each band its own." in cube.attrs["guesses"]


@lazily_or_not
def test_a_nodata_value_that_only_envi_tags_tell(tmp_path: Path, chunks) -> None:
    written = random_cube("int16", (3, 4, 5))
    written[0, 2, 2] = -9999
    path = write_with_gdal(tmp_path / "scene.tif", written)
    with rasterio.open(path, "r+") as dataset:
        dataset.update_tags(ns="ENVI", data_ignore_value="-9999")
    cube = hr.open_scene(path, chunks=chunks)
    np.testing.assert_array_equal(cube.values, np.where(written == -9999, np.nan, written))
    assert cube.attrs["nodata_in_file"] == -9999


def test_an_alpha_channel_is_a_mask_and_no_band(tmp_path: Path) -> None:
    written = random_cube("uint8", (4, 3, 4))
    written[3] = 255
    written[3, 1, 1] = 0
    path = write_with_gdal(tmp_path / "scene.tif", written, photometric="RGB", alpha="YES")
    with rasterio.open(path) as dataset:
        assert dataset.colorinterp[3] is ColorInterp.alpha
    cube = hr.open_scene(path)
    assert cube.good_band.values.tolist() == [True] * 3 + [False]
    np.testing.assert_array_equal(np.isnan(cube.values[:3]).any(axis=0), written[3] == 0)
    assert any(guess.startswith("Band 4 is an alpha channel") for guess in cube.attrs["guesses"])
