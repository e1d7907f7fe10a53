"""Bare arrays: NumPy and MATLAB files, their axes, variables and types."""

import itertools
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.io

import hsreject as hr
from hsreject import schema
from hsreject.errors import FileError
from tests.io.writers import guesses, random_cube, save_hdf5


def bright_bands(n_bands: int, height: int, width: int, seed: int = 0) -> np.ndarray:
    """Return a scene (band, y, x) whose bands differ more than its pixels, as real ones do."""
    rng = np.random.default_rng(seed)
    spectrum = 1000 + 500 * np.sin(np.linspace(0, 5, n_bands))
    return (spectrum[:, None, None] * rng.uniform(0.8, 1.2, (height, width))).astype(np.uint16)


@pytest.mark.parametrize("shape", [(60, 7, 9), (60, 80, 90), (83, 86, 204), (7, 300, 20)])
def test_the_band_axis_of_real_scenes_is_found(tmp_path: Path, shape) -> None:
    cube = bright_bands(*shape)
    for axes, chunks in itertools.product([(0, 1, 2), (1, 2, 0)], [None, "auto"]):
        np.save(tmp_path / "scene.npy", cube.transpose(axes))
        opened = hr.open_scene(tmp_path / "scene.npy", chunks=chunks)
        np.testing.assert_array_equal(opened.values, cube)
        assert "was taken for the bands" in opened.guesses[0]


def test_a_square_image_shows_its_bands(tmp_path: Path) -> None:
    for shape, axis in (((6, 9, 9), 0), ((9, 9, 6), 2), ((9, 9, 20), 2)):
        values = random_cube(shape=shape)
        np.save(tmp_path / "scene.npy", values)
        opened = hr.open_scene(tmp_path / "scene.npy")
        np.testing.assert_array_equal(opened.values, np.moveaxis(values, axis, 0))


def test_the_band_axis_may_be_named(tmp_path: Path) -> None:
    values = random_cube(shape=(3, 4, 5))
    np.save(tmp_path / "scene.npy", values)
    scipy.io.savemat(tmp_path / "scene.mat", {"cube": values})
    names = ("scene.npy", "scene.mat")
    for axis, chunks, name in itertools.product((0, 1, 2, -1), (None, "auto"), names):
        opened = hr.open_scene(tmp_path / name, band_axis=axis, chunks=chunks)
        np.testing.assert_array_equal(opened.values, np.moveaxis(values, axis, 0))
        assert "guesses" not in opened.attrs


@pytest.mark.parametrize("dtype", [">u2", "<f4", ">f8", "int64", "float16", "longdouble"])
def test_types_and_memory_orders(tmp_path: Path, dtype) -> None:
    for order, chunks in itertools.product("CF", (None, "auto")):
        values = np.array(random_cube(shape=(4, 4, 5)), dtype=dtype, order=order)
        np.save(tmp_path / "scene.npy", values)
        opened = hr.open_scene(tmp_path / "scene.npy", chunks=chunks)
        assert opened.dtype == (
            {"float16": np.float32, "longdouble": np.float64}.get(dtype)
            or np.dtype(dtype).newbyteorder("=")
        )
        assert opened.dtype.isnative
        np.testing.assert_array_equal(opened.values, np.moveaxis(values, 2, 0))


@pytest.mark.parametrize("version", ["old", "old and compressed", "new"])
def test_a_matlab_scene(tmp_path: Path, version) -> None:
    cube = random_cube("float64", (5, 7, 9))
    if version == "new":
        save_hdf5(tmp_path / "scene.mat", paviaU=cube.transpose(1, 2, 0), n=np.ones((1, 1)))
    else:
        arrays = {"paviaU": cube.transpose(1, 2, 0), "note": "a text", "n": 3.0}
        scipy.io.savemat(tmp_path / "scene.mat", arrays, do_compression="compressed" in version)
    for chunks in (None, "auto"):
        opened = hr.open_scene(tmp_path / "scene.mat", chunks=chunks)
        assert opened.dtype == np.float64
        np.testing.assert_array_equal(opened.values, cube)
        assert "The scene is 'paviaU'" in guesses(opened)


def test_wavelengths_beside_a_matlab_scene(tmp_path: Path) -> None:
    cube = random_cube(shape=(4, 5, 6))
    arrays = {"data": cube, "wavelength": np.array([0.4, 0.5, 0.6, 0.7])}
    scipy.io.savemat(tmp_path / "scene.mat", arrays)
    opened = hr.open_scene(tmp_path / "scene.mat")
    np.testing.assert_array_equal(opened.values, cube)  # the list tells the band axis
    np.testing.assert_array_equal(opened.wavelength, [400, 500, 600, 700])
    scipy.io.savemat(tmp_path / "scene.mat", arrays | {"wavelength": np.array([400.0, 500.0])})
    with pytest.raises(FileError, match="2 wavelengths for 6 bands"):
        hr.open_scene(tmp_path / "scene.mat")


def test_the_variable_may_be_named(tmp_path: Path) -> None:
    first, second = random_cube(shape=(4, 4, 3)), random_cube(shape=(4, 4, 5))
    scipy.io.savemat(tmp_path / "scene.mat", {"first": first, "second": second})
    opened = hr.open_scene(tmp_path / "scene.mat", variable="second")
    np.testing.assert_array_equal(opened.values, np.moveaxis(second, 2, 0))
    with pytest.raises(FileError, match=r"'third'.* first \(4 x 4 x 3\), sec"):
        hr.open_scene(tmp_path / "scene.mat", variable="third")


def test_nan_is_nodata_and_infinity_does_not_hide_the_band_axis(tmp_path: Path) -> None:
    cube = bright_bands(30, 7, 9).astype(np.float32)
    cube[3, 3, 3], cube[1] = np.inf, np.nan
    np.save(tmp_path / "scene.npy", cube)
    opened = hr.open_scene(tmp_path / "scene.npy")
    np.testing.assert_array_equal(opened.values, cube)
    assert np.flatnonzero(~opened.good_band).tolist() == [1]


LABELS = np.array([[0, 1, 3], [3, 3, 1]])


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float64"])
def test_matlab_labels(tmp_path: Path, dtype) -> None:
    given = LABELS.astype(dtype)
    scipy.io.savemat(tmp_path / "old.mat", {"gt": given, "n": 3.0, "list": np.arange(5)})
    save_hdf5(tmp_path / "new.mat", gt=given, note=LABELS, nothing=LABELS)
    with h5py.File(tmp_path / "new.mat", "r+") as file:
        file["note"].attrs["MATLAB_class"] = np.bytes_("char")
        file["nothing"].attrs["MATLAB_empty"] = np.uint8(1)
    for name in ("old.mat", "new.mat"):
        labels = hr.open_labels(tmp_path / name)
        assert labels.dims == schema.MAP_DIMS
        assert labels.dtype == np.uint8
        np.testing.assert_array_equal(labels.values, LABELS)
        assert schema.class_table(labels).values == (1, 3)


def test_numpy_labels_with_another_nodata(tmp_path: Path) -> None:
    np.save(tmp_path / "gt.npy", LABELS - 1)
    with pytest.raises(FileError, match="nodata=-1"):
        hr.open_labels(tmp_path / "gt.npy")
    np.testing.assert_array_equal(
        hr.open_labels(tmp_path / "gt.npy", nodata=-1).values, [[0, 0, 2], [2, 2, 0]]
    )


def test_several_candidates_for_labels_are_named(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "gt.mat", {"train": LABELS, "test": LABELS})
    with pytest.raises(FileError, match=r"train \(2 x 3\), test \(2 x 3\)"):
        hr.open_labels(tmp_path / "gt.mat")
    assert hr.open_labels(tmp_path / "gt.mat", variable="test").shape == (2, 3)


def test_arrays_larger_than_memory_are_not_allocated(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "scene.mat", "w") as file:
        file.create_dataset("cube", (200, 10**6, 10**6), dtype="f8", chunks=(10, 100, 100))
    with pytest.raises(FileError, match=r"claims .*chunks='auto'"):
        hr.open_scene(tmp_path / "scene.mat")
    assert hr.open_scene(tmp_path / "scene.mat", chunks="auto").shape == (200, 10**6, 10**6)


@pytest.mark.parametrize("share", [0.34, 0.5, 0.8])
@pytest.mark.parametrize("shape", [(60, 45, 30), (30, 60, 60), (45, 60, 100), (90, 20, 50)])
@pytest.mark.parametrize("value", [0, -9999])
@pytest.mark.parametrize("bands_last", [True, False])
def test_empty_rows_do_not_turn_a_scene(
    tmp_path: Path, share: float, shape: tuple[int, int, int], value: int, bands_last
) -> None:
    rng = np.random.default_rng(3)
    spectrum = 1000 + 800 * np.sin(np.linspace(0, 5, shape[2]))
    cube = spectrum * rng.uniform(0.8, 1.2, (*shape[:2], 1)) + rng.normal(0, 20, shape)
    cube[: round(share * shape[0])] = value
    stored = cube if bands_last else cube.transpose(2, 0, 1)
    np.save(tmp_path / "scene.npy", stored.astype("int16"))
    assert hr.open_scene(tmp_path / "scene.npy").shape == (shape[2], *shape[:2])
    if bands_last:
        scipy.io.savemat(tmp_path / "scene.mat", {"cube": stored.astype("int16")})
        assert hr.open_scene(tmp_path / "scene.mat").shape == (shape[2], *shape[:2])
