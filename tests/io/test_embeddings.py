"""Embeddings: codes of one byte are decoded, or refused, never read as if they were numbers."""

from pathlib import Path

import numpy as np
import pytest
import rasterio
import zarr
from affine import Affine
from rasterio.crs import CRS

import hsreject as hr
from hsreject.errors import FileError, InputError

_PLACE = {"transform": Affine(10, 0, 300_000, 0, -10, 5_000_060), "crs": "EPSG:32633"}
RNG = np.random.default_rng(0)


def write_raster(path: Path, codes: np.ndarray, names: tuple[str, ...], **profile: object) -> Path:
    n_bands, height, width = codes.shape
    profile = {
        "count": n_bands,
        "height": height,
        "width": width,
        "dtype": codes.dtype,
        **_PLACE,
    } | profile
    with rasterio.open(path, "w", driver="GTiff", **profile) as file:
        file.write(codes)
        file.descriptions = names
    return path


@pytest.mark.parametrize("names", [tuple(f"A{k:02}" for k in range(64)), ("",) * 64])
@pytest.mark.parametrize("chunks", [None, "auto"])
def test_codes_of_alpha_earth_are_decoded(
    tmp_path: Path, names: tuple[str, ...], chunks: str | None
) -> None:
    codes = RNG.integers(-127, 128, (64, 5, 7), dtype=np.int8)
    codes[:, 1, 2] = -128
    bottom_up = Affine(10, 0, 300_000, 0, 10, 5_000_000)  # as these files come
    path = write_raster(
        tmp_path / "a.tif", codes, names, nodata=-128, transform=bottom_up, crs="EPSG:32633"
    )

    cube = hr.open_scene(path, chunks=chunks)

    wanted = np.array([np.sign(v) * (abs(float(v)) / 127.5) ** 2 for v in codes.ravel()])
    wanted = wanted.reshape(codes.shape)
    wanted[:, 1, 2] = np.nan
    assert cube.dtype == np.float32
    np.testing.assert_allclose(cube.values, wanted, rtol=1e-6)
    assert cube.attrs["product"] == "AlphaEarth embedding"
    np.testing.assert_allclose(cube.y, 5_000_005 + 10 * np.arange(5))
    assert cube.rio.transform() == bottom_up


def test_other_bytes_stay_numbers(tmp_path: Path) -> None:
    codes = RNG.integers(-127, 128, (63, 4, 4), dtype=np.int8)
    path = write_raster(tmp_path / "a.tif", codes, ("",) * 63)
    np.testing.assert_array_equal(hr.open_scene(path).values, codes)


@pytest.fixture
def tile() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes (y, x, band) and scales (y, x) as TESSERA keeps them, and what they mean."""
    codes = RNG.integers(-127, 128, (6, 5, 128), dtype=np.int8)
    scales = RNG.uniform(0.01, 0.1, (6, 5)).astype(np.float32)
    scales[0, 0], scales[3, 2] = np.nan, np.inf
    finite = np.where(np.isfinite(scales), scales, 0)
    values = np.array([[codes[r, c] * float(finite[r, c]) for c in range(5)] for r in range(6)])
    values[~np.isfinite(scales)] = np.nan
    return codes, scales, values.transpose(2, 0, 1)


@pytest.mark.parametrize("chunks", [None, {"y": 4, "x": 2}])
def test_tiles_of_tessera_are_times_the_scales_beside_them(
    tmp_path: Path, tile: tuple[np.ndarray, ...], chunks: dict[str, int] | None
) -> None:
    codes, scales, values = tile
    np.save(tmp_path / "grid.npy", codes)
    np.save(tmp_path / "grid_scales.npy", scales)
    cube = hr.open_scene(tmp_path / "grid.npy", chunks=chunks)
    np.testing.assert_allclose(cube.values, values, rtol=1e-6)
    assert cube.attrs["product"] == "TESSERA embedding"


def test_codes_without_scales_are_refused(tmp_path: Path, tile: tuple[np.ndarray, ...]) -> None:
    codes, scales, _ = tile
    np.save(tmp_path / "grid.npy", codes)
    with pytest.raises(FileError, match=r"grid_scales\.npy"):
        hr.open_scene(tmp_path / "grid.npy")
    np.save(tmp_path / "grid_scales.npy", scales[:, :3])
    with pytest.raises(FileError, match="a number per pixel"):
        hr.open_scene(tmp_path / "grid.npy")
    path = write_raster(tmp_path / "a.tif", codes.transpose(2, 0, 1), ("",) * 128)
    with pytest.raises(FileError, match="scale of each pixel"):
        hr.open_scene(path)


def write_store(path: Path, codes: np.ndarray, scales: np.ndarray | None) -> Path:
    zone = zarr.open_group(path, mode="w").create_group("utm33")
    arrays = {
        "embeddings": (codes.transpose(2, 0, 1)[None], ("time", "band", "y", "x")),
        "x": (300_005.0 + 10 * np.arange(5), ("x",)),
        "y": (5_000_055.0 - 10 * np.arange(6), ("y",)),
    }
    if scales is not None:
        arrays["scales"] = (scales[None], ("time", "y", "x"))
    for name, (values, dims) in arrays.items():
        array = zone.create_array(
            name, shape=values.shape, dtype=values.dtype, dimension_names=dims
        )
        array[...] = values
    zone.attrs["proj:code"] = "EPSG:32633"
    return path


@pytest.mark.parametrize("chunks", [None, "auto"])
def test_stores_of_tessera_have_scales_and_a_place(
    tmp_path: Path, tile: tuple[np.ndarray, ...], chunks: str | None
) -> None:
    codes, scales, values = tile
    cube = hr.open_scene(write_store(tmp_path / "t.zarr", codes, scales), chunks=chunks)
    np.testing.assert_allclose(cube.values, values, rtol=1e-6)
    assert cube.rio.crs == CRS.from_epsg(32633)
    assert cube.rio.transform() == Affine(10, 0, 300_000, 0, -10, 5_000_060)


def test_a_store_without_scales_is_refused(tmp_path: Path, tile: tuple[np.ndarray, ...]) -> None:
    with pytest.raises(FileError, match="utm33/scales"):
        hr.open_scene(write_store(tmp_path / "t.zarr", tile[0], None))


def stack_of(tmp_path: Path, *, shift: float = 0.0) -> list[Path]:
    paths = []
    for number, move in enumerate((0.0, shift)):
        values = RNG.random((3 + number, 6, 5), dtype=np.float32)
        place = Affine(10, 0, 300_000 + move, 0, -10, 5_000_060)
        names = ("",) * len(values)
        path = tmp_path / f"{number}.tif"
        paths.append(write_raster(path, values, names, transform=place, crs="EPSG:32633"))
    return paths


def test_a_stack_on_one_grid_is_one_cube(tmp_path: Path) -> None:
    paths = stack_of(tmp_path)
    for chunks in (None, "auto"):
        cube = hr.open_scene(paths, chunks=chunks)
        wanted = np.concatenate([hr.open_scene(path).values for path in paths])
        np.testing.assert_array_equal(cube.values, wanted)
        assert cube.source_scene.values.tolist() == [1, 1, 1, 2, 2, 2, 2]
        assert cube.band.values.tolist() == [*range(1, 8)]
        assert "wavelength" not in cube.coords
        assert cube.rio.crs == CRS.from_epsg(32633)
        assert cube.attrs["source"] == "0.tif + 1.tif"


def test_a_stack_of_different_grids_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="different grids"):
        hr.open_scene(stack_of(tmp_path, shift=5.0))


def test_wavelengths_of_a_stack_are_not_assumed(tmp_path: Path) -> None:
    first, second = stack_of(tmp_path)
    with rasterio.open(first, "r+") as file:
        for band in file.indexes:
            file.update_tags(band, ns="IMAGERY", CENTRAL_WAVELENGTH_UM=f"0.{4 + band}")
    assert "wavelength" in hr.open_scene(first).coords
    assert "wavelength" not in hr.open_scene([first, second]).coords
