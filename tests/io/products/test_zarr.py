"""Scenes in Zarr stores: on disk and by URL, both versions of the format, as others write them."""

import warnings
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr

import hsreject as hr
from hsreject.errors import FileError
from tests.cli.calling import call
from tests.io.web_server import serving
from tests.mapping.scenes import CONFIG, larger_scene


def write_store(path: Path, cube: xr.DataArray, **options) -> Path:
    with warnings.catch_warnings():  # zarr says that consolidated metadata is not in the standard
        warnings.simplefilter("ignore")
        cube.to_dataset(name="reflectance").to_zarr(path, **options)
    return path


@pytest.mark.parametrize("version", [2, 3])
def test_a_store_says_what_a_cube_said(tmp_path, version) -> None:
    cube = larger_scene(40, 36).chunk(y=16, x=16)
    cube[:, :3, :3] = np.nan
    path = write_store(tmp_path / "scene.zarr", cube, zarr_format=version)
    for opened in (hr.open_scene(path), hr.open_scene(path, chunks="auto")):
        xr.testing.assert_equal(opened.drop_vars("band"), cube.drop_vars("band", errors="ignore"))
        assert opened.rio.crs.to_epsg() == 32633
    assert opened.encoding["preferred_chunks"] == {"y": 16, "x": 16}


def test_other_axes_types_and_units(tmp_path) -> None:
    """Packed integers, bands last, wavelengths in micrometres: what CF programs write."""
    true = np.random.default_rng(0).integers(0, 50, (6, 5, 4)) / 100.0
    true[0, 0] = np.nan
    cube = xr.DataArray(true, dims=("lat", "lon", "channel"))
    cube.coords["wavelength"] = ("channel", [0.5, 0.6, 0.7, 0.8], {"units": "um"})
    cube.coords["fwhm"] = ("channel", [0.01] * 4)
    packing = {"dtype": "int16", "scale_factor": 0.01, "_FillValue": -1}
    path = write_store(tmp_path / "s.zarr", cube, encoding={"reflectance": packing})
    opened = hr.open_scene(path)
    np.testing.assert_allclose(opened.values, true.transpose(2, 0, 1), rtol=1e-6)
    np.testing.assert_allclose(opened.wavelength, [500, 600, 700, 800])
    np.testing.assert_allclose(opened.fwhm, 10)
    chosen = hr.open_scene(path, variable="reflectance", band_axis=0)
    assert chosen.shape == (6, 5, 4)


def test_a_store_is_mapped_by_url_and_from_disk(tmp_path, capsys) -> None:
    model = hr.save_model(hr.train(CONFIG), tmp_path / "model.skops")
    path = write_store(tmp_path / "scene.zarr", larger_scene(70, 60).chunk(y=32, x=32))
    with serving(tmp_path) as url:
        places = (path, f"{url}/good/scene.zarr")
        for number, place in enumerate(places):
            assert call("info", place) == 0
            assert "70 rows x 60 columns x 12 bands" in capsys.readouterr().out
            asked = ("map", place, "--model", model, "--fraction", 0.1)
            assert call(*asked, "--out", tmp_path / str(number)) == 0
        labels = [hr.open_map(tmp_path / str(number) / "label.tif") for number in (0, 1)]
        xr.testing.assert_identical(*labels)
        with pytest.raises(FileError, match=f"{url}/broken/scene.zarr"):
            hr.open_scene(f"{url}/broken/scene.zarr")
        with pytest.raises(FileError, match="not a Zarr store"):
            hr.open_scene(f"{url}/good/nothing.zarr")
    # a folder of scenes holds stores, too
    many = ("map", tmp_path, "--model", model, "--fraction", 0.1, "--out", tmp_path / "many")
    assert call(*many) == 0
    assert (tmp_path / "many" / "scene" / "label.tif").exists()


def test_what_is_not_a_scene_is_said(tmp_path) -> None:
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(FileError, match="not a Zarr store"):
        hr.open_scene(tmp_path / "empty.zarr")
    flat = write_store(tmp_path / "flat.zarr", xr.DataArray(np.ones((4, 4)), dims=("y", "x")))
    with pytest.raises(FileError, match="three axes"):
        hr.open_scene(flat)
    odd = write_store(tmp_path / "odd.zarr", xr.DataArray(np.ones((4, 4, 4)), dims=("a", "b", "c")))
    with pytest.raises(FileError, match="band_axis"):
        hr.open_scene(odd)


def test_a_cube_in_a_group_of_a_store(tmp_path) -> None:
    cube = larger_scene(6, 5)
    path = write_store(tmp_path / "scene.zarr", cube, group="level")
    np.testing.assert_array_equal(hr.open_scene(path, variable="level/reflectance"), cube)
    with pytest.raises(FileError, match=r"no array 'level/reflectanc'.*mean 'level/reflectance'"):
        hr.open_scene(path, variable="level/reflectanc")
    bare = tmp_path / "bare.zarr"
    zarr.create_array(bare, data=cube.values[None])
    with pytest.raises(FileError, match=r"no array 'level/cube'.*bare \(1 x"):
        hr.open_scene(bare, variable="level/cube")
    np.testing.assert_array_equal(hr.open_scene(bare, band_axis=1), cube)
