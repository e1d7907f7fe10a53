"""A lazily opened scene is not read before its pixels are needed."""

import pickle
import tracemalloc
from pathlib import Path

import dask
import numpy as np
import pytest
import rasterio
import scipy.io

import hsreject as hr
from tests.io.writers import random_cube, save_hdf5, write_envi, write_with_gdal

FIRST, SECOND = (random_cube("int16", (6, 90, 200), seed=seed) for seed in (1, 2))


def save_mat(path: Path, cube: np.ndarray) -> Path:
    scipy.io.savemat(path, {"cube": cube.transpose(1, 2, 0)})
    return path


def save_npy(path: Path, cube: np.ndarray) -> Path:
    np.save(path, cube)
    return path


WRITERS = {
    "ENVI": lambda folder, cube: write_envi(folder, cube, interleave="bil"),
    "masked ENVI": lambda folder, cube: write_envi(folder, cube, fields={"data ignore value": 0}),
    "scaled ENVI": lambda folder, cube: write_envi(
        folder, cube, fields={"reflectance scale factor": 1000}
    ),
    "GeoTIFF": lambda folder, cube: write_with_gdal(folder / "scene.tif", cube, interleave="pixel"),
    "npy": lambda folder, cube: save_npy(folder / "scene.npy", cube),
    "mat": lambda folder, cube: save_mat(folder / "scene.mat", cube),
    "hdf5": lambda folder, cube: save_hdf5(folder / "scene.mat", cube=cube.transpose(1, 2, 0)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_pixels_are_read_when_they_are_needed(tmp_path: Path, name: str) -> None:
    """Pixels that change on disk after opening are seen: none had been read."""
    axis = 0 if name == "npy" else None  # the axis would be guessed from some of the values
    other = tmp_path / "other"
    other.mkdir()
    path = WRITERS[name](tmp_path, FIRST)
    lazy = hr.open_scene(path, chunks={"y": 7}, band_axis=axis)
    path.write_bytes(WRITERS[name](other, SECOND).read_bytes())
    expected = SECOND / 1000 if name == "scaled ENVI" else SECOND
    assert lazy.chunks[1:] == ((7,) * 12 + (6,), (200,))
    # Whoever reads the start of a file gets the first pixels into its buffer: look further in.
    middle = slice(30, 60)
    np.testing.assert_array_equal(lazy[:, middle].values, expected[:, middle].astype(lazy.dtype))


@pytest.mark.parametrize("name", WRITERS)
def test_lazy_and_eager_agree(tmp_path: Path, name: str) -> None:
    path, axis = WRITERS[name](tmp_path, FIRST), 0 if name == "npy" else None
    eager = hr.open_scene(path, band_axis=axis)
    for chunks in ("auto", True, 8, {"band": 2, "x": 11}, (3, -1, "auto")):
        lazy = hr.open_scene(path, chunks=chunks, band_axis=axis)
        assert lazy.dtype == eager.dtype
        assert lazy.attrs == eager.attrs
        np.testing.assert_array_equal(lazy.values, eager.values)


@pytest.mark.parametrize("name", WRITERS)
def test_a_lazy_scene_travels_to_another_process_and_folder(
    tmp_path: Path, name: str, monkeypatch
) -> None:
    path, axis = WRITERS[name](tmp_path, FIRST), 0 if name == "npy" else None
    expected = hr.open_scene(path, band_axis=axis).values
    monkeypatch.chdir(tmp_path)
    lazy = hr.open_scene(path.name, chunks={"y": 7}, band_axis=axis)
    sent = pickle.loads(pickle.dumps(lazy))
    monkeypatch.chdir(tmp_path.parent)
    with dask.config.set(scheduler="synchronous"):
        np.testing.assert_array_equal(sent.values, expected)


def test_a_scene_larger_than_memory_opens_at_once(tmp_path: Path) -> None:
    """60 GB that are not on disk: a sparse file whose last pixel alone was written."""
    side, bands = 10_000, 300
    path = write_envi(
        tmp_path,
        np.zeros((1, 1, 1), dtype=np.uint16),
        interleave="bip",
        fields={"samples": side, "lines": side, "bands": bands},
    )
    with path.open("r+b") as stream:
        stream.truncate(side * side * bands * 2)
        stream.seek(-2, 2)
        stream.write(np.uint16(7).tobytes())
    lazy = hr.open_scene(path, chunks="auto")
    assert lazy.nbytes == 60e9
    assert lazy.chunks[0] == (bands,)
    assert 2 * np.prod([max(sizes) for sizes in lazy.chunks]) <= 64 * 2**20
    assert lazy[:, -1:, -1:].values.ravel()[-1] == 7


def test_gdal_keeps_little_of_a_lazy_scene_in_any_process(tmp_path: Path, monkeypatch) -> None:
    path = WRITERS["GeoTIFF"](tmp_path, FIRST)
    lazy = hr.open_scene(path, chunks={"y": 7})
    limits = []
    original = rasterio.io.DatasetReader.read

    def read(*args, **options):
        limits.append(rasterio.env.getenv().get("GDAL_CACHEMAX"))
        return original(*args, **options)

    monkeypatch.setattr("rasterio.io.DatasetReader.read", read)
    lazy.compute(scheduler="synchronous")
    assert set(limits) == {128}


@pytest.mark.parametrize(
    "layout",
    [
        {},
        {"driver": "HFA"},
        {"tiled": True, "blockxsize": 512, "blockysize": 512},
        {"interleave": "pixel", "blockysize": 1000, "compress": "deflate"},
    ],
    ids=["rows", "ERDAS", "tiles", "one strip"],
)
def test_bytes_become_floats_in_little_more_than_their_room(tmp_path: Path, layout: dict) -> None:
    """64 MB of floats out of 16 MB of bytes, some of them without data."""
    values = random_cube("uint8", (16, 1000, 1000))
    name = "scene.img" if layout.get("driver") else "scene.tif"
    path = write_with_gdal(tmp_path / name, values, nodata=0, **layout)
    hr.open_scene(path, chunks="auto")  # what is imported does not count
    tracemalloc.start()
    cube = hr.open_scene(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert cube.dtype == np.float32
    assert peak < 1.5 * cube.nbytes
