"""Cubes in NetCDF, HDF5 and Zarr, written by xarray, rioxarray and others."""

from pathlib import Path

import dask
import h5py
import numpy as np
import pytest
import rasterio.shutil
import rioxarray
import xarray as xr
import zarr
from affine import Affine

import hsreject as hr
from hsreject.errors import FileError
from hsreject.io.grid import PixelGrid
from tests.io.writers import UTM, random_cube, write_envi

CUBE = random_cube("float32", (5, 6, 7)) / 100
NM = np.array([450.0, 550.0, 650.0, 850.0, 1600.0])
DEGREES = Affine(0.001, 0.0, 13.0, 0.0, -0.001, 52.5)


def cf_cube(*, names: tuple[str, str, str] = ("wavelength", "y", "x"), degrees: bool = False):
    """Return a dataset with a cube, its wavelengths and its place, as people make them."""
    transform = DEGREES if degrees else UTM
    band, down, across = names
    cube = xr.DataArray(
        CUBE,
        dims=names,
        coords={
            band: (band, NM, {"units": "nm"}),
            down: transform.f + transform.e * (np.arange(6) + 0.5),
            across: transform.c + transform.a * (np.arange(7) + 0.5),
            "fwhm": (band, np.full(5, 9.0)),
        },
        name="reflectance",
    )
    placed = cube.rio.set_spatial_dims(across, down)
    return placed.rio.write_crs(4326 if degrees else 32633).to_dataset()


def check(path: Path, expected: np.ndarray = CUBE, transform: Affine = UTM, **options) -> None:
    for chunks in (None, {"y": 4}):
        scene = hr.open_scene(path, chunks=chunks, **options)
        np.testing.assert_allclose(scene.values, expected, rtol=1e-6)
        np.testing.assert_allclose(scene.wavelength, NM)
        grid = PixelGrid.of(scene)
        assert grid.crs.to_epsg() == (32633 if transform == UTM else 4326)
        np.testing.assert_allclose(grid.transform[:6], transform[:6])


WAYS = {
    "NetCDF": lambda ds, path: ds.to_netcdf(path.with_suffix(".nc"), engine="h5netcdf"),
    "classic NetCDF": lambda ds, path: ds.to_netcdf(
        path.with_suffix(".nc"), engine="scipy", format="NETCDF3_64BIT"
    ),
    "Zarr": lambda ds, path: ds.to_zarr(path.with_suffix(".zarr"), zarr_format=2),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("named", [False, True])
def test_what_xarray_writes(tmp_path: Path, way: str, named) -> None:
    WAYS[way](cf_cube(), tmp_path / "a")
    (path,) = tmp_path.iterdir()
    check(path, variable="reflectance" if named else None)
    assert (hr.open_scene(path).fwhm.values == 9).all()
    if path.is_file():  # known by its first bytes, not by its name
        check(path.rename(tmp_path / "b.cdf"), variable="reflectance" if named else None)


@pytest.mark.parametrize("way", WAYS)
def test_an_ortho_rectified_emit_file_with_spectra_last(tmp_path: Path, way: str) -> None:
    names = ("wavelengths", "latitude", "longitude")
    dataset = cf_cube(names=names, degrees=True).transpose("latitude", "longitude", "wavelengths")
    filled = dataset.reflectance.values.copy()
    filled[0, 0] = -9999
    dataset["reflectance"] = dataset.reflectance.copy(data=filled).assign_attrs(_FillValue=-9999.0)
    dataset["reflectance"].attrs.pop("_FillValue")
    dataset["reflectance"].encoding = {"_FillValue": np.float32(-9999)}
    WAYS[way](dataset, tmp_path / "a")
    (path,) = tmp_path.iterdir()
    expected = CUBE.copy()
    expected[:, 0, 0] = np.nan
    check(path, expected, DEGREES)


@pytest.mark.parametrize("way", WAYS)
def test_scaled_integers(tmp_path: Path, way: str) -> None:
    dataset = cf_cube()
    dataset["reflectance"].encoding = {
        "dtype": "int16", "scale_factor": 0.01, "add_offset": 0.5, "_FillValue": np.int16(-999),
    }  # fmt: skip
    WAYS[way](dataset, tmp_path / "a")
    (path,) = tmp_path.iterdir()
    check(path)
    assert hr.open_scene(path).attrs["type_in_file"] == "int16"


def test_what_rioxarray_writes(tmp_path: Path) -> None:
    fields = {
        "wavelength": "{450, 550, 650, 850, 1600}",
        "wavelength units": "nanometers",
        "map info": "{UTM, 1, 1, 364095, 5809965, 30, 30, 33, North, WGS-84}",
    }
    source = write_envi(tmp_path, CUBE, fields=fields)
    with rioxarray.open_rasterio(source) as raster:
        raster.to_netcdf(tmp_path / "b.nc", engine="h5netcdf")
    check(tmp_path / "b.nc")


def test_a_cube_in_a_group(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    cf_cube().to_netcdf(path, engine="h5netcdf", group="level/two")
    check(path)
    check(path, variable="level/two/reflectance")


def test_cubes_in_several_groups_are_named_with_their_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    for group, mode in (("one", "w"), ("two", "a")):
        cf_cube().to_netcdf(path, engine="h5netcdf", group=group, mode=mode)
    with pytest.raises(FileError, match=r"one/reflectance \(5 x 6 x 7\), two/reflectance"):
        hr.open_scene(path)
    check(path, variable="two/reflectance")


def test_several_cubes_are_asked_for(tmp_path: Path) -> None:
    dataset = cf_cube()
    dataset["uncertainty"] = 0.1 * dataset.reflectance
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(FileError, match=r"uncertainty \(5 x 6 x 7\)"):
        hr.open_scene(tmp_path / "a.nc")
    check(tmp_path / "a.nc", variable="reflectance")


def test_time_is_not_taken_for_bands(tmp_path: Path) -> None:
    cf_cube(names=("time", "y", "x")).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(FileError, match="variable"):
        hr.open_scene(tmp_path / "a.nc")


def test_what_is_missing_or_odd_is_noted(tmp_path: Path) -> None:
    dataset = cf_cube(names=("band", "y", "x")).drop_vars(["band", "spatial_ref", "fwhm"])
    dataset = dataset.assign_coords(x=dataset.x.values + 0.03 * 30 * (np.arange(7) == 3))
    dataset.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    notes = " ".join(hr.open_scene(tmp_path / "a.nc").attrs["guesses"])
    for word in ("evenly", "wavelengths", "place"):
        assert word in notes


def test_coordinates_in_single_precision_are_even(tmp_path: Path) -> None:
    """Rounding moves centres by up to a hundredth of a pixel here, and no two steps are alike."""
    step = 0.000542
    lat, lon = 52 - step * np.arange(60), 120 + step * np.arange(50)
    cube = xr.DataArray(
        np.ones((5, 60, 50), "float32"),
        dims=("wavelength", "lat", "lon"),
        coords={"wavelength": NM, "lat": lat.astype("float32"), "lon": lon.astype("float32")},
        name="reflectance",
    ).rio.set_spatial_dims("lon", "lat")
    assert np.ptp(np.diff(cube.lon.values)) > 0.01 * step
    cube.rio.write_crs(4326).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    grid = PixelGrid.of(hr.open_scene(tmp_path / "a.nc"))
    expected = Affine(step, 0.0, 120 - step / 2, 0.0, -step, 52 + step / 2)
    np.testing.assert_allclose(grid.transform[:6], expected[:6], atol=0.02 * step)


def test_a_level_3_file_of_pace(tmp_path: Path) -> None:
    names = ("wavelength", "lat", "lon")
    dataset = cf_cube(names=names, degrees=True).drop_vars("spatial_ref")
    dataset.lat.attrs["units"], dataset.lon.attrs["units"] = "degrees_north", "degrees_east"
    dataset = dataset.rename(reflectance="rhos").transpose("lat", "lon", "wavelength")
    dataset["palette"] = (("rgb", "eightbitcolor"), np.zeros((3, 256), "uint8"))
    dataset.to_netcdf(tmp_path / "PACE_OCI.L3m.nc", engine="h5netcdf")
    check(tmp_path / "PACE_OCI.L3m.nc", transform=DEGREES)


@pytest.mark.parametrize("version", [2, 3])
def test_a_store_that_is_one_array(tmp_path: Path, version: int) -> None:
    names = {"dimension_names": ("band", "y", "x")} if version == 3 else {}
    store = zarr.create_array(
        tmp_path / "a.zarr", data=CUBE, chunks=(5, 3, 3), zarr_format=version, **names
    )
    options = {} if version == 3 else {"band_axis": 0}
    store.attrs["wavelength"] = "not looked at"
    for chunks in (None, {"y": 2}):
        scene = hr.open_scene(tmp_path / "a.zarr", chunks=chunks, **options)
        np.testing.assert_array_equal(scene.values, CUBE)


def test_files_that_are_open_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    cf_cube().to_netcdf(path, engine="h5netcdf")
    scenes = [hr.open_scene(path, chunks="auto")]
    with xr.open_dataset(path, engine="h5netcdf") as opened, h5py.File(path) as file:
        assert opened.sizes["x"] == len(file["x"])
        check(path)
        scenes.append(hr.open_scene(path, chunks="auto"))
        for scene in scenes:
            np.testing.assert_allclose(scene.values, CUBE, rtol=1e-6)
    np.testing.assert_allclose(scenes[1].values, CUBE, rtol=1e-6)


def test_arrays_of_matlab_that_are_open_elsewhere(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.mat", "w") as file:
        file["cube"] = CUBE
    with h5py.File(tmp_path / "a.mat"):
        np.testing.assert_array_equal(
            hr.open_scene(tmp_path / "a.mat", band_axis=2).values, CUBE.transpose(0, 2, 1)
        )


@pytest.mark.parametrize("way", WAYS)
def test_lazy_cubes_travel(tmp_path: Path, way: str) -> None:
    WAYS[way](cf_cube(), tmp_path / "a")
    (path,) = tmp_path.iterdir()
    lazy = hr.open_scene(path, chunks={"y": 2})
    with dask.config.set(scheduler="processes", num_workers=1):
        np.testing.assert_allclose(lazy.values, CUBE, rtol=1e-6)


def write_h5netcdf(dataset: xr.Dataset, path: Path, **changes: str) -> Path:
    """Write a dataset, and change attributes of its cube, which xarray would check."""
    dataset.to_netcdf(path, engine="h5netcdf")
    with h5py.File(path, "a") as file:
        for name, value in changes.items():
            file["reflectance"].attrs[name] = value
    return path


@pytest.mark.parametrize("mapping", ["crs: x y", "other: lat lon crs: x y", "crs : y x"])
def test_a_grid_mapping_that_names_its_coordinates(tmp_path: Path, mapping: str) -> None:
    dataset = cf_cube().rename(spatial_ref="crs")
    dataset["other"] = xr.DataArray(0).rio.write_crs(4326).spatial_ref
    check(write_h5netcdf(dataset, tmp_path / "a.nc", grid_mapping=mapping))


@pytest.mark.parametrize("name", ["spatial_ref", "crs"])
@pytest.mark.parametrize("way", WAYS)
def test_the_only_reference_system_counts_without_a_link(tmp_path, way, name) -> None:
    dataset = cf_cube().rename(spatial_ref=name).reset_coords(name)
    del dataset["reflectance"].encoding["grid_mapping"]
    WAYS[way](dataset, tmp_path / "a")
    (path,) = tmp_path.iterdir()
    check(path)


def test_the_reference_system_of_an_ortho_rectified_emit_file(tmp_path: Path) -> None:
    dataset = cf_cube(names=("wavelengths", "latitude", "longitude"), degrees=True)
    system = dataset.rio.crs.to_wkt()
    dataset = dataset.drop_vars("spatial_ref")
    dataset.latitude.attrs["units"] = "degrees north"
    path = write_h5netcdf(dataset, tmp_path / "a.nc")
    check(path, transform=DEGREES)
    assert "WGS 84" in " ".join(hr.open_scene(path).attrs["guesses"])
    dataset.attrs["spatial_ref"] = system
    path = write_h5netcdf(dataset, tmp_path / "b.nc")
    check(path, transform=DEGREES)
    assert "WGS 84" not in " ".join(hr.open_scene(path).attrs["guesses"])


@pytest.mark.parametrize("system", [None, "gibberish"])
def test_coordinates_without_a_reference_system_are_noted(tmp_path: Path, system) -> None:
    dataset = cf_cube().drop_vars("spatial_ref")
    if system:
        dataset.attrs["crs_wkt"] = system
    scene = hr.open_scene(write_h5netcdf(dataset, tmp_path / "a.nc"))
    assert scene.rio.crs is None
    np.testing.assert_allclose(scene.rio.transform()[:6], UTM[:6])
    notes = " ".join(scene.attrs["guesses"])
    assert "reference system" in notes
    assert ("understood" in notes) == (system is not None)


@pytest.mark.parametrize("in_km", [False, True])
def test_coordinates_in_kilometres(tmp_path: Path, in_km) -> None:
    """They become metres, unless those of the reference system are kilometres."""
    dataset = cf_cube()
    crs = dataset.rio.crs
    dataset = dataset.assign_coords(x=dataset.x / 1000, y=dataset.y / 1000)
    dataset.x.attrs["units"] = dataset.y.attrs["units"] = "km"
    if not in_km:
        check(write_h5netcdf(dataset.rio.write_crs(crs), tmp_path / "a.nc"))
        return
    system = "+proj=utm +zone=33 +datum=WGS84 +units=km"
    scene = hr.open_scene(write_h5netcdf(dataset.rio.write_crs(system), tmp_path / "a.nc"))
    np.testing.assert_allclose(scene.rio.transform().a, 0.03)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", range(4))
def test_one_date(tmp_path: Path, way: str, place: int) -> None:
    dataset = cf_cube(names=("wavelength", "y", "x")).expand_dims("time")
    dims = ["wavelength", "y", "x"]
    dims.insert(place, "time")
    WAYS[way](dataset.transpose(*dims), tmp_path / "a")
    (path,) = tmp_path.iterdir()
    check(path)
    check(path, variable="reflectance", band_axis=dims.index("wavelength"))
    with dask.config.set(scheduler="processes", num_workers=1):
        lazy = hr.open_scene(path, chunks={"y": 2})
        np.testing.assert_allclose(lazy[:, 1:3, 2:], CUBE[:, 1:3, 2:], rtol=1e-6)
    with pytest.raises(FileError, match="band_axis"):
        hr.open_scene(path, variable="reflectance", band_axis=place)


def test_one_date_without_names(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["cube"] = CUBE[:, None]
    scene = hr.open_scene(tmp_path / "a.h5", variable="cube", band_axis=0)
    np.testing.assert_array_equal(scene.values, CUBE)


@pytest.mark.parametrize("options", [{}, {"variable": "reflectance", "band_axis": 1}])
@pytest.mark.parametrize("way", WAYS)
def test_several_dates_are_refused_with_the_remedy(tmp_path: Path, way: str, options) -> None:
    WAYS[way](cf_cube().expand_dims(time=2), tmp_path / "a")
    (path,) = tmp_path.iterdir()
    with pytest.raises(FileError, match=r"reflectance \(2 x 5 x 6 x 7\).* select one date"):
        hr.open_scene(path, **options)


@pytest.mark.parametrize("form", ["NC", "NC2", "NC4"])
@pytest.mark.parametrize("lines", ["", "WRITE_BOTTOMUP=NO"])
def test_what_gdal_writes(tmp_path: Path, form: str, lines: str) -> None:
    """An array (y, x) per band, the southern row first unless told."""
    cube = np.tile(CUBE, (3, 1, 1))[:12]
    fields = {
        "wavelength": "{" + ", ".join(map(str, 400 + 10.5 * np.arange(12))) + "}",
        "wavelength units": "nanometers",
        "map info": "{UTM, 1, 1, 364095, 5809965, 30, 30, 33, North, WGS-84}",
        "data ignore value": str(CUBE[0, 0, 0]),
    }
    source, path = write_envi(tmp_path, cube, fields=fields), tmp_path / "b.nc"
    options = dict([lines.split("=")]) if lines else {}
    rasterio.shutil.copy(source, path, driver="netCDF", FORMAT=form, **options)
    expected = hr.open_scene(source)
    for chunks in (None, {"y": 4}, {"band": 3}):
        scene = hr.open_scene(path, chunks=chunks)
        scene = scene if lines else scene.isel(y=slice(None, None, -1))
        np.testing.assert_array_equal(scene.values, expected.values)
        np.testing.assert_allclose(scene.wavelength, expected.wavelength)
        np.testing.assert_allclose(scene.y, expected.y)
        np.testing.assert_allclose(scene.x, expected.x)
        assert scene.rio.crs.to_epsg() == 32633
    assert "'Band1' to 'Band12'" in " ".join(scene.attrs["guesses"])


@pytest.mark.parametrize("way", WAYS)
def test_an_array_per_band_with_a_scale_of_its_own(tmp_path: Path, way: str) -> None:
    dataset = cf_cube()
    bands = {
        f"rhos_{number}": dataset.reflectance[place].drop_vars(["wavelength", "fwhm"])
        for place, number in enumerate([450, 550, 650, 850, 1600])
    }
    for place, (band, centre) in enumerate(zip(bands.values(), NM, strict=True)):
        band.attrs = {"wavelength": centre / 1000, "wavelength_units": "um"}
        band.encoding = {
            "dtype": "int16", "scale_factor": 0.01, "add_offset": place, "_FillValue": -99 - place,
        }  # fmt: skip
    bands["quality"] = xr.ones_like(bands["rhos_450"])
    WAYS[way](xr.Dataset(dict(sorted(bands.items()))), tmp_path / "a")
    (path,) = tmp_path.iterdir()
    check(path)


def test_images_that_are_not_the_bands_of_one_scene(tmp_path: Path) -> None:
    image = cf_cube().reflectance[0].drop_vars(["wavelength", "fwhm"])
    others = {
        "type": {"Band1": image, "Band2": image.astype("int16")},
        "axes": {"Band1": image, "Band2": image.isel(y=slice(3)).rename(y="other")},
        "stem": {"Band1": image, "Mask2": image},
        "names": {"Band1": image, "red": image},
    }
    for name, images in others.items():
        xr.Dataset(images).to_netcdf(tmp_path / name, engine="h5netcdf")
        with pytest.raises(FileError, match="three axes"):
            hr.open_scene(tmp_path / name)


def test_names_for_some_axes_only_are_said_so(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["cube"], file["wavelength"] = np.ones((3, 4, 5)), [450.0, 550.0, 650.0]
        file["wavelength"].make_scale("wavelength")
        file["cube"].dims[0].attach_scale(file["wavelength"])
    with pytest.raises(FileError, match="only some axes"):
        hr.open_scene(tmp_path / "a.h5")


@pytest.mark.parametrize("way", WAYS)
def test_a_name_that_is_not_in_the_file(tmp_path: Path, way: str) -> None:
    WAYS[way](cf_cube(), tmp_path / "a")
    (path,) = tmp_path.iterdir()
    message = r"no array 'reflectanc'.*reflectance \(5 x 6 x 7\).*mean 'reflectance'"
    with pytest.raises(FileError, match=message):
        hr.open_scene(path, variable="reflectanc")
    with pytest.raises(FileError, match=r"no array 'level/reflectance'.*reflectance \(5 x"):
        hr.open_scene(path, variable="level/reflectance")


def test_a_cube_beside_those_of_groups_is_not_called_the_only_one(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    cf_cube().to_netcdf(path, engine="h5netcdf")
    assert "only cube in the file" in " ".join(hr.open_scene(path).attrs["guesses"])
    cf_cube().to_netcdf(path, engine="h5netcdf", group="level", mode="a")
    notes = " ".join(hr.open_scene(path).attrs["guesses"])
    assert "level/reflectance" in notes
    assert "only" not in notes


def test_names_of_axes_count_where_the_axis_of_the_bands_is_stated(tmp_path: Path) -> None:
    path = write_h5netcdf(cf_cube().transpose("x", "y", "wavelength"), tmp_path / "a.nc")
    check(path, band_axis=2)


def test_a_reference_system_alone_is_not_a_place(tmp_path: Path) -> None:
    """As that of EMIT in sensor geometry, where it belongs to the lookup table."""
    dataset = cf_cube().drop_vars(["x", "y", "spatial_ref"])
    dataset.attrs["spatial_ref"] = cf_cube().rio.crs.to_wkt()
    scene = hr.open_scene(write_h5netcdf(dataset, tmp_path / "a.nc"))
    assert not PixelGrid.of(scene).georeferenced
    assert "no place" in " ".join(scene.attrs["guesses"])
