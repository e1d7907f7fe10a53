"""Products with latitude and longitude per pixel: the map is made of them, nearest pixel."""

from pathlib import Path

import h5py
import numpy as np
import pytest
import rasterio
from rasterio.warp import transform

import hsreject as hr
from tests.io.products.writers import UTM, reflectance, wavelengths, write_prisma, write_tanager

SHAPE = (6, 30, 24)
CUBE = reflectance(SHAPE)


def places() -> tuple[np.ndarray, np.ndarray]:
    """Return latitude and longitude of a sensor of 30 m that flies askew over UTM zone 33."""
    row, column = np.mgrid[0 : SHAPE[1], 0 : SHAPE[2]]
    turn = np.radians(20)
    x = UTM.c + 30 * (np.cos(turn) * column - np.sin(turn) * row)
    y = UTM.f - 30 * (np.sin(turn) * column + np.cos(turn) * row)
    longitude, latitude = transform("EPSG:32633", "EPSG:4326", x.ravel(), y.ravel())
    return tuple(np.reshape(values, row.shape) for values in (latitude, longitude))


def prisma(folder: Path) -> Path:
    counts = np.random.default_rng(0).integers(1, 65535, (2, *SHAPE))
    centres = (np.linspace(900, 400, 6), np.linspace(2400, 1000, 6))
    path = write_prisma(folder / "p.he5", *counts, centres, ((0, 1), (0, 1)), level="L2C")
    return _with_places(path, "HDFEOS/SWATHS/PRS_L2C_HCO/Geolocation Fields")


def tanager(folder: Path) -> Path:
    path = write_tanager(folder / "t.h5", CUBE, kind="SWATHS")
    return _with_places(path, "HDFEOS/SWATHS/HYP/Geolocation Fields")


def pace(folder: Path) -> Path:
    path = folder / "PACE_OCI.L2.SFREFL.nc"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("geophysical_data/rhos", data=CUBE.transpose(1, 2, 0))
        data.attrs["_FillValue"] = np.float32(-32767)
        file["sensor_band_parameters/wavelength_3d"] = wavelengths(SHAPE[0])
    return _with_places(path, "navigation_data", lower=True)


def _with_places(path: Path, group: str, *, lower: bool = False) -> Path:
    with h5py.File(path, "r+") as file:
        for name, values in zip(("Latitude", "Longitude"), places(), strict=True):
            file[f"{group}/{name.lower() if lower else name}"] = values
    return path


@pytest.mark.parametrize("write", [prisma, tanager, pace])
def test_maps_of_a_swath_lie_where_its_pixels_lie(tmp_path: Path, write) -> None:
    cube = hr.open_scene(write(tmp_path))
    assert cube.shape[1:] == SHAPE[1:]
    assert "wavelength" in cube.coords
    hr.write_map(cube[0].rename("map"), tmp_path / "map.tif")
    latitude, longitude = places()
    x, y = transform("EPSG:4326", "EPSG:32633", longitude.ravel(), latitude.ravel())
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.crs.to_epsg() == 32633
        assert file.transform.a == 30
        written = file.read(1)
        centres = np.array([file.xy(*place) for place in np.ndindex(*file.shape)])
    distances = np.hypot(centres[:, :1] - np.array(x), centres[:, 1:] - np.array(y))
    nearest = cube[0].values.ravel()[distances.argmin(axis=1)]
    near, far = distances.min(axis=1) < 30, distances.min(axis=1) > 46
    np.testing.assert_array_equal(written.ravel()[near], nearest[near])
    assert np.isnan(written.ravel()[far]).all()
    assert near.sum() > 0.9 * SHAPE[1] * SHAPE[2]
