"""Maps that come back as they were written, and label files of others."""

import numpy as np
import pytest
import rasterio
import xarray as xr

import hsreject as hr
from hsreject import schema
from hsreject.classes import ClassTable
from hsreject.errors import FileError
from hsreject.io.grid import Grid
from tests.io.written_maps import (
    CLASSES,
    NORTH_UP,
    ROTATED,
    confidence_map,
    placed,
    probability_field,
    reject_map,
)


@pytest.mark.parametrize("transform", [NORTH_UP, ROTATED], ids=["north", "rot"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("suffix", [".tif", ".img"])
def test_reject_maps_come_back(tmp_path, suffix, dtype, transform) -> None:
    labels = placed(reject_map(dtype=dtype), transform)
    hr.write_map(labels, tmp_path / f"map{suffix}")
    back = hr.open_map(tmp_path / f"map{suffix}")
    assert back.dtype == dtype
    assert back.name == schema.LABEL_WITH_REJECTION
    assert back.dims == schema.MAP_DIMS
    np.testing.assert_array_equal(back, labels)
    assert schema.class_table(back) == CLASSES
    assert schema.zero_meaning(back) == "rejected"
    assert Grid.of(back).transform == transform
    assert Grid.of(back).crs.to_epsg() == 32633


def test_a_reference_says_that_zero_is_no_reference(tmp_path) -> None:
    _, labels = hr.load_indian_pines()
    hr.write_map(labels, tmp_path / "labels.tif")
    back = hr.open_map(tmp_path / "labels.tif")
    assert schema.zero_meaning(back) == "no reference"
    assert schema.class_table(back) == schema.class_table(labels)
    reference = hr.open_labels(tmp_path / "labels.tif")
    np.testing.assert_array_equal(reference, labels)
    assert schema.class_table(reference) == schema.class_table(labels)


@pytest.mark.parametrize("suffix", [".tif", ".img"])
def test_names_outlive_a_lost_side_file(tmp_path, suffix) -> None:
    hr.write_map(reject_map(), tmp_path / f"map{suffix}")
    (tmp_path / f"map{suffix}.aux.xml").unlink(missing_ok=True)
    back = hr.open_map(tmp_path / f"map{suffix}")
    assert schema.class_table(back) == CLASSES
    assert schema.zero_meaning(back) == "rejected"


@pytest.mark.parametrize("suffix", [".tif", ".img"])
def test_confidences_and_probabilities_come_back(tmp_path, suffix) -> None:
    for name, array in {"confidence": confidence_map(), "probability": probability_field()}.items():
        hr.write_map(array, tmp_path / f"{name}{suffix}")
        back = hr.open_map(tmp_path / f"{name}{suffix}")
        assert back.dims == array.dims
        np.testing.assert_array_equal(back, array)
    assert schema.class_table(back).names == CLASSES.names


def test_a_file_of_others_without_names_is_read(tmp_path) -> None:
    profile = {"driver": "GTiff", "width": 3, "height": 1, "count": 1, "dtype": "int16"}
    place = {"crs": "EPSG:32633", "transform": NORTH_UP, "nodata": -1}
    with rasterio.open(tmp_path / "map.tif", "w", **profile, **place) as file:
        file.write(np.array([[[0, 7, -1]]], dtype=np.int16))
    back = hr.open_map(tmp_path / "map.tif")
    assert back.values.tolist() == [[0, 7, 255]]
    assert schema.class_table(back) == ClassTable.plain([7])


def test_what_is_no_map_is_refused(tmp_path) -> None:
    with pytest.raises(FileError, match="nothing"):
        hr.open_map(tmp_path / "nothing.tif")
    profile = {"driver": "GTiff", "width": 2, "height": 1, "count": 2, "dtype": "int32"}
    with rasterio.open(tmp_path / "cube.tif", "w", transform=NORTH_UP, **profile) as file:
        file.write(np.zeros((2, 1, 2), dtype=np.int32))
    with pytest.raises(FileError, match="2 bands of integers"):
        hr.open_map(tmp_path / "cube.tif")
    labels = xr.DataArray(np.full((1, 2), -5, dtype=np.int32), dims=("y", "x"))
    placed(labels).rio.to_raster(tmp_path / "low.tif")
    with pytest.raises(FileError, match="between 0 and 65534"):
        hr.open_map(tmp_path / "low.tif")


@pytest.mark.parametrize("suffix", [".tif", ".img"])
def test_gaps_between_classes_and_a_missing_reference_system_come_back(tmp_path, suffix) -> None:
    table = ClassTable.from_names(["soil", "water"], values=[3, 200])
    labels = xr.DataArray(np.array([[0, 3], [200, 3]], np.uint8), dims=schema.MAP_DIMS)
    labels = schema.attach_classes(labels, table).rio.write_transform(NORTH_UP)
    hr.write_map(labels, tmp_path / f"map{suffix}")
    back = hr.open_map(tmp_path / f"map{suffix}")
    np.testing.assert_array_equal(back, labels)
    assert schema.class_table(back) == table
    assert Grid.of(back).crs is None
    assert Grid.of(back).transform == NORTH_UP
    reference = hr.open_labels(tmp_path / f"map{suffix}")
    assert schema.class_table(reference) == table
