"""Products are read when and where they are needed, and by any number of threads."""

import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import dask
import h5py
import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.io.products.backend import HsrejectBackend
from tests.io.products.writers import (
    FILL,
    reflectance,
    write_aviris,
    write_desis,
    write_emit,
    write_emit_mask,
    write_enmap,
    write_neon,
    write_prisma,
    write_tanager,
)

SHAPE = (7, 60, 50)
COUNTS = np.random.default_rng(5).integers(1, 9000, SHAPE).astype("int16")
OTHER = COUNTS[:, ::-1].copy()
NM = (900.0, 800.0, 700.0, 600.0, 500.0, 450.0, 400.0)


def prisma(folder: Path, counts: np.ndarray) -> Path:
    swir = tuple(centre + 850 for centre in NM)
    return write_prisma(folder / "p.he5", counts, counts[::-1], (NM, swir), ((0, 1), (0, 1)))


WRITERS = {
    "EMIT": lambda folder, counts: write_emit(folder / "e.nc", counts / np.float32(1e4)),
    "EMIT in chunks": lambda folder, counts: write_emit(
        folder / "e.nc", counts / np.float32(1e4), chunks=(16, 12, 3)
    ),
    "AVIRIS": lambda folder, counts: write_aviris(folder / "a.nc", counts / np.float32(1e4)),
    "PRISMA": prisma,
    "NEON": lambda folder, counts: write_neon(folder / "n.h5", counts),
    "Tanager": lambda folder, counts: write_tanager(folder / "t.h5", counts / np.float32(1e4)),
    "EnMAP": lambda folder, counts: write_enmap(folder, counts)[0],
    "DESIS": lambda folder, counts: write_desis(folder, counts)[0],
}


@pytest.mark.parametrize("name", WRITERS)
def test_lazy_and_eager_agree(tmp_path: Path, name: str) -> None:
    path = WRITERS[name](tmp_path, COUNTS)
    eager = hr.open_scene(path)
    assert isinstance(eager.data, np.ndarray)
    for chunks in ("auto", {"y": 7, "x": 11}, {"y": 32}, {"band": 2, "x": 9}, (3, -1, "auto")):
        lazy = hr.open_scene(path, chunks=chunks)
        assert lazy.dtype == eager.dtype
        assert lazy.attrs == eager.attrs
        with dask.config.set(scheduler="threads", num_workers=4):
            np.testing.assert_array_equal(lazy.values, eager.values)
    part = lazy[[5, 0, 2], 3:50:4, [8, 3]]
    np.testing.assert_array_equal(part.values, eager.values[[5, 0, 2], 3:50:4][..., [8, 3]])
    np.testing.assert_array_equal(lazy[2, :, 4].values, eager.values[2, :, 4])


def test_only_the_stored_chunks_of_a_block_are_read(tmp_path: Path) -> None:
    values = COUNTS / np.float32(1e4)
    path = write_emit(tmp_path / "e.nc", values, chunks=(16, 10, 7), compression="gzip")
    with h5py.File(path, "r+") as file:
        file["reflectance"].id.write_direct_chunk((0, 0, 0), b"not deflated")
    lazy = hr.open_scene(path, chunks={"y": 16, "x": 10})
    np.testing.assert_array_equal(lazy[:, :16, 10:].values, values[:, :16, 10:])
    with pytest.raises(hr.errors.FileError):
        lazy[:, :16, :10].values  # noqa: B018 (reads)


@pytest.mark.parametrize("name", WRITERS)
def test_pixels_are_read_when_they_are_needed(tmp_path: Path, name: str) -> None:
    """Pixels that change on disk after opening are seen: none had been read."""
    other = tmp_path / "other"
    other.mkdir()
    path = WRITERS[name](tmp_path, COUNTS)
    lazy = hr.open_scene(path, chunks={"y": 7})
    replaced = WRITERS[name](other, OTHER)
    expected = hr.open_scene(replaced).values
    path.write_bytes(replaced.read_bytes())
    assert (expected != hr.open_scene(WRITERS[name](other, COUNTS)).values).any()
    np.testing.assert_array_equal(lazy.values, expected)


@pytest.mark.parametrize("name", ["EMIT", "PRISMA", "EnMAP"])
def test_a_lazy_product_travels(tmp_path: Path, name: str, monkeypatch) -> None:
    path = WRITERS[name](tmp_path, COUNTS)
    expected = hr.open_scene(path).values
    monkeypatch.chdir(tmp_path)
    sent = pickle.loads(pickle.dumps(hr.open_scene(path.name, chunks={"y": 7})))
    monkeypatch.chdir(tmp_path.parent)
    with dask.config.set(scheduler="synchronous"):
        np.testing.assert_array_equal(sent.values, expected)


def test_blocks_follow_what_is_stored_together(tmp_path: Path) -> None:
    path = write_emit(tmp_path / "e.nc", reflectance((4, 600, 500)), chunks=(100, 90, 2))
    with h5py.File(path, "r+") as file:  # 4 TB that are not on disk
        del file["reflectance"]
        file.create_dataset("reflectance", (100_000, 10_000, 1000), "float32", chunks=(256, 64, 10))
        for name in ("wavelengths", "fwhm"):
            del file[f"sensor_band_parameters/{name}"]
            file[f"sensor_band_parameters/{name}"] = np.linspace(400, 2400, 1000)
    lazy = hr.open_scene(path, chunks="auto")
    assert lazy.nbytes == 4e12
    assert lazy.chunks[0] == (1000,)
    assert lazy.chunks[1][0] % 256 == 0
    assert lazy.chunks[2][0] % 64 == 0
    assert lazy[:, :1, :1].values.shape == (1000, 1, 1)


def test_a_block_of_rows_needs_no_more_than_itself(tmp_path: Path) -> None:
    """512 MB on disk, of which 32 MB are read."""
    path = write_emit(tmp_path / "e.nc", reflectance((4, 6, 5)))
    with h5py.File(path, "r+") as file:
        del file["reflectance"]
        file.create_dataset("reflectance", (2048, 1024, 64), "float32", chunks=(64, 1024, 64))
        file["reflectance"][:64] = 1.0
        file["reflectance"][-64:] = 1.0
        for name in ("wavelengths", "fwhm"):
            del file[f"sensor_band_parameters/{name}"]
            file[f"sensor_band_parameters/{name}"] = np.linspace(400, 2400, 64)
    cube = hr.open_scene(path, chunks={"y": 128})
    tracemalloc.start()
    total = float(cube[:, :128].sum())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert total == 64 * 1024 * 64
    assert peak < 3 * 128 * 1024 * 64 * 4  # the block, what is read of it at a time, and its sum


@pytest.mark.parametrize("chunks", [None, (96, 64, 16), (7, 400, 1)])
def test_a_large_block_is_put_together_from_pieces(tmp_path: Path, chunks) -> None:
    """40 MB, read some rows at a time, with a fill value and a mask."""
    values = np.random.default_rng(1).random((60, 420, 400), dtype=np.float32)
    values[3:7, 90:100, 50:70] = FILL
    path = write_emit(tmp_path / "EMIT_L2A_RFL_1.nc", values, chunks=chunks)
    cloud = np.zeros((1, *values.shape[1:]))
    cloud[0, 200:300, 300:] = 1
    write_emit_mask(tmp_path / "EMIT_L2A_MASK_1.nc", cloud, ["Cloud flag"])
    expected = np.where((values == FILL) | (cloud > 0), np.nan, values)
    np.testing.assert_array_equal(hr.open_scene(path).values, expected)
    lazy = hr.open_scene(path, chunks={"y": -1})
    np.testing.assert_array_equal(lazy.values, expected)
    np.testing.assert_array_equal(lazy[::-1, 5:, ::3].values, expected[::-1, 5:, ::3])


# The engine for xarray.


@pytest.mark.parametrize("name", WRITERS)
def test_xarray_opens_products(tmp_path: Path, name: str) -> None:
    path = WRITERS[name](tmp_path, COUNTS)
    expected = hr.open_scene(path)
    cube = xr.open_dataarray(path, engine=HsrejectBackend)
    assert not cube.variable._in_memory
    part = cube[[5, 0], 3:50:4, [8, 3, 8]].load()
    assert isinstance(part.data, np.ndarray)
    np.testing.assert_array_equal(part, expected.values[[5, 0], 3:50:4][..., [8, 3, 8]])
    xr.testing.assert_identical(cube.load(), expected)
    assert isinstance(cube.data, np.ndarray)
    with xr.open_dataset(path, engine=HsrejectBackend, chunks={"y": 13}) as dataset:
        assert list(dataset.data_vars) == ["cube"]
        assert dataset["cube"].chunks[1][0] == 13
        np.testing.assert_array_equal(dataset["cube"].values, expected.values)


def test_what_breaks_while_xarray_reads_is_said_of_the_file(tmp_path: Path) -> None:
    path = WRITERS["EMIT in chunks"](tmp_path, COUNTS)
    cubes = [xr.open_dataarray(path, engine=HsrejectBackend, chunks=c) for c in (None, {})]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    for cube in cubes:
        with pytest.raises(hr.errors.FileError, match=r"e\.nc"):
            cube.load()


def test_xarray_opens_what_is_named(tmp_path: Path) -> None:
    np.save(tmp_path / "scene.npy", COUNTS)
    cube = xr.open_dataarray(tmp_path / "scene.npy", engine=HsrejectBackend, band_axis=0)
    np.testing.assert_array_equal(cube.values, COUNTS)
    assert not HsrejectBackend().guess_can_open("scene.npy")


def test_xarray_lists_its_engines_without_waiting_for_us() -> None:
    code = (
        "import sys, hsreject.io.products.backend\n"
        "print([m for m in ('rasterio', 'rioxarray', 'dask.array', 'h5py') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
