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
from tests.io.writers import random_cube


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


@pytest.mark.parametrize(("shape", "axis"), [((6, 9, 9), 0), ((9, 9, 6), 2), ((9, 9, 20), 2)])
def test_a_square_image_shows_its_bands(tmp_path: Path, shape, axis) -> None:
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


@pytest.mark.parametrize("compressed", [True, False])
def test_a_matlab_scene(tmp_path: Path, compressed) -> None:
    cube = random_cube("float64", (5, 7, 9))
    arrays = {"paviaU": cube.transpose(1, 2, 0), "note": "a text", "n": 3.0}
    scipy.io.savemat(tmp_path / "scene.mat", arrays, do_compression=compressed)
    for chunks in (None, "auto"):
        opened = hr.open_scene(tmp_path / "scene.mat", chunks=chunks)
        assert opened.dtype == np.float64
        np.testing.assert_array_equal(opened.values, cube)
        assert "The scene is 'paviaU'" in " ".join(opened.guesses)


def test_a_new_matlab_scene(tmp_path: Path) -> None:
    cube = random_cube("int16", (5, 7, 9))
    with h5py.File(tmp_path / "scene.mat", "w", userblock_size=512) as file:
        file["cube"] = cube.transpose(0, 2, 1)  # MATLAB writes (y, x, band) in reverse
    for chunks in (None, "auto"):
        opened = hr.open_scene(tmp_path / "scene.mat", chunks=chunks)
        np.testing.assert_array_equal(opened.values, cube)


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


def test_nan_is_nodata(tmp_path: Path) -> None:
    cube = random_cube("float32", (4, 4, 3))
    cube[:, :, 1] = np.nan
    np.save(tmp_path / "scene.npy", cube)
    np.testing.assert_array_equal(
        hr.open_scene(tmp_path / "scene.npy").good_band, [True, False, True]
    )


LABELS = np.array([[0, 1, 3], [3, 3, 1]])


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float64"])
def test_matlab_labels(tmp_path: Path, dtype) -> None:
    arrays = {"scene_gt": LABELS.astype(dtype), "n": 3.0, "list": np.arange(5)}
    scipy.io.savemat(tmp_path / "gt.mat", arrays)
    labels = hr.open_labels(tmp_path / "gt.mat")
    assert labels.dims == schema.MAP_DIMS
    assert labels.dtype == np.uint8
    np.testing.assert_array_equal(labels.values, LABELS)
    assert schema.class_table(labels).values == (1, 3)


def test_new_matlab_labels(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "gt.mat", "w", userblock_size=512) as file:
        file["gt"] = LABELS.astype(np.float64).T
    np.testing.assert_array_equal(hr.open_labels(tmp_path / "gt.mat").values, LABELS)


def test_numpy_labels_with_another_nodata(tmp_path: Path) -> None:
    np.save(tmp_path / "gt.npy", LABELS - 1)
    with pytest.raises(FileError, match="Pass nodata=VALUE"):
        hr.open_labels(tmp_path / "gt.npy")
    np.testing.assert_array_equal(
        hr.open_labels(tmp_path / "gt.npy", nodata=-1).values, [[0, 0, 2], [2, 2, 0]]
    )


def test_several_candidates_for_labels_are_named(tmp_path: Path) -> None:
    scipy.io.savemat(tmp_path / "gt.mat", {"train": LABELS, "test": LABELS})
    with pytest.raises(FileError, match=r"could be the labels: train \(2 x 3\), test \(2 x 3\)"):
        hr.open_labels(tmp_path / "gt.mat")
    assert hr.open_labels(tmp_path / "gt.mat", variable="test").shape == (2, 3)


def test_text_and_empty_arrays_in_hdf5_are_no_labels(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "labels.mat", "w", userblock_size=512) as file:
        file["labels"] = np.ones((3, 4), dtype=np.uint8)
        for name, kind in (("note", "char"), ("nothing", "double")):
            file[name] = np.array([[104, 105], [106, 107]], dtype=np.uint16)
            file[name].attrs["MATLAB_class"] = np.bytes_(kind)
        file["nothing"].attrs["MATLAB_empty"] = np.uint8(1)
    assert hr.open_labels(tmp_path / "labels.mat").shape == (4, 3)


def test_infinite_values_do_not_hide_the_band_axis(tmp_path: Path) -> None:
    cube = bright_bands(30, 7, 9).astype(np.float32)
    cube[3, 3, 3] = np.inf
    np.save(tmp_path / "scene.npy", cube)
    assert hr.open_scene(tmp_path / "scene.npy").shape == (30, 7, 9)


def test_arrays_larger_than_memory_are_not_allocated(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "scene.mat", "w") as file:
        file.create_dataset("cube", (200, 10**6, 10**6), dtype="f8", chunks=(10, 100, 100))
    with pytest.raises(FileError, match=r"memory .*chunks='auto'"):
        hr.open_scene(tmp_path / "scene.mat")
    assert hr.open_scene(tmp_path / "scene.mat", chunks="auto").shape == (200, 10**6, 10**6)
