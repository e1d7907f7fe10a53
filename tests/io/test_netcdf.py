"""Datasets as NetCDF: back as they were, and plain CF for everybody else."""

import h5py
import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject import schema
from hsreject.errors import FileError, InputError
from hsreject.io.grid import PixelGrid
from tests.io.written_maps import (
    CLASSES,
    NORTH_UP,
    ROTATED,
    confidence_map,
    placed,
    probability_field,
    reject_map,
)


@pytest.fixture
def result() -> xr.Dataset:
    """A result as the pipeline makes it, lying on a rotated grid."""
    labels = placed(reject_map((12, 17)), ROTATED)
    dataset = xr.Dataset(
        {
            "label_with_rejection": labels,
            "rejected": labels == 0,
            "confidence": placed(confidence_map((12, 17)), ROTATED),
            "probability": placed(probability_field(), ROTATED),
        },
        attrs={"seed": 3, "config": "[context]\nweight = 2\n", "converged": True},
    )
    return dataset.assign_attrs(inputs=["a.img", "b.tif"])


@pytest.mark.parametrize("chunks", [None, {"y": 12, "x": 17}])
def test_a_dataset_comes_back_as_it_was(tmp_path, result, chunks) -> None:
    hr.write_dataset(result if chunks is None else result.chunk(chunks), tmp_path / "result.nc")
    with hr.open_dataset(tmp_path / "result.nc", chunks=chunks) as back:
        for name, array in result.data_vars.items():
            assert back[name].dtype == array.dtype
            assert back[name].dims == array.dims
            np.testing.assert_array_equal(back[name].values, array.values)
            assert (back[name].chunks is None) == (chunks is None)
            place = PixelGrid.of(back[name])
            assert place.transform == ROTATED
            assert place.crs.to_epsg() == 32633
        assert schema.class_table(back.label_with_rejection) == CLASSES
        assert schema.class_table(back.probability) == CLASSES
        assert back.class_name.values.tolist() == list(CLASSES.names)
        assert back.attrs["seed"] == 3
        assert back.attrs["config"] == result.attrs["config"]
        assert back.attrs["converged"] == 1
        assert list(back.attrs["inputs"]) == ["a.img", "b.tif"]


def test_the_file_follows_cf(tmp_path, result) -> None:
    hr.write_dataset(result, tmp_path / "result.nc")
    with h5py.File(tmp_path / "result.nc") as file:
        label = file["label_with_rejection"]
        assert label.attrs["_FillValue"] == 255
        assert label.attrs["flag_values"].dtype == np.uint8
        assert label.attrs["flag_meanings"].split() == CLASSES.to_attrs()["flag_meanings"].split()
        assert label.attrs["grid_mapping"] == "spatial_ref"
        assert "WGS 84 / UTM zone 33N" in file["spatial_ref"].attrs["crs_wkt"]
        assert file.attrs["Conventions"].startswith("CF-")
    with xr.open_dataset(tmp_path / "result.nc", engine="h5netcdf") as anybody:
        # an ordinary reader sees missing pixels as missing, rejected ones as 0
        assert (anybody.label_with_rejection.isnull() == (result.label_with_rejection == 255)).all()


def test_a_second_round_changes_nothing(tmp_path, result) -> None:
    hr.write_dataset(result, tmp_path / "first.nc")
    with hr.open_dataset(tmp_path / "first.nc") as first:
        hr.write_dataset(first, tmp_path / "second.nc")
    with (
        hr.open_dataset(tmp_path / "first.nc") as first,
        hr.open_dataset(tmp_path / "second.nc") as second,
    ):
        xr.testing.assert_identical(first.load(), second.load())


def test_coordinates_and_cubes_survive(tmp_path) -> None:
    cube, labels = hr.load_indian_pines()
    hr.write_dataset(labels.to_dataset(), tmp_path / "nowhere.nc")
    with hr.open_dataset(tmp_path / "nowhere.nc") as back:
        assert "spatial_ref" not in back.variables
        np.testing.assert_array_equal(back.labels, labels)
    grid = {"y": 5.8e6 - 20.0 * np.arange(145), "x": 5e5 + 20.0 * np.arange(145)}
    dataset = xr.Dataset({"cube": cube, "labels": labels}).assign_coords(grid)
    hr.write_dataset(dataset.rio.write_crs("EPSG:32616"), tmp_path / "scene.nc")
    with hr.open_dataset(tmp_path / "scene.nc") as back:
        np.testing.assert_array_equal(back.cube, cube)
        np.testing.assert_array_equal(back.wavelength, cube.wavelength)
        assert back.wavelength.attrs["units"] == "nm"
        assert back.x.attrs["standard_name"] == "projection_x_coordinate"
        assert tuple(PixelGrid.of(back.labels).transform)[:6] == (
            20.0, 0.0, 499990.0, 0.0, -20.0, 5800010.0,
        )  # fmt: skip


def test_what_cannot_be_written_is_named(tmp_path, result) -> None:
    ruled = result.assign(confidence=result.confidence.assign_attrs(rule=None))
    for dataset, name, message in (
        (result.confidence, "a.nc", "got DataArray"),
        (result, "a.tif", r"must end in \.nc"),
        (result.assign_attrs(config={}), "a.nc", "'config' of the dataset: it is a dict"),
        (ruled, "a.nc", "'rule' of 'confidence': it is a NoneType"),
    ):
        with pytest.raises(InputError, match=message):
            hr.write_dataset(dataset, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_read_is_named(tmp_path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        hr.open_dataset(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("not a file of this kind")
    with pytest.raises(FileError, match="cannot be read"):
        hr.open_dataset(tmp_path / "text.nc")
    foreign = placed(confidence_map(), NORTH_UP).fillna(-9999).to_dataset()
    foreign.to_netcdf(
        tmp_path / "foreign.nc", engine="h5netcdf", encoding={"confidence": {"_FillValue": -9999}}
    )
    with pytest.raises(FileError, match="marks missing values by -9999"):
        hr.open_dataset(tmp_path / "foreign.nc")


@pytest.mark.parametrize(("fill", "opens"), [(np.zeros(0, "f4"), True), ("none", False)])
def test_a_fill_value_that_is_not_a_number(tmp_path, fill, opens) -> None:
    values = xr.Dataset({"confidence": (("y", "x"), np.ones((2, 3), "float32"))})
    path = hr.write_dataset(values, tmp_path / "a.nc")
    with h5py.File(path, "r+") as file:
        del file["confidence"].attrs["_FillValue"]
        file["confidence"].attrs["_FillValue"] = fill
    if opens:
        assert (hr.open_dataset(path)["confidence"] == 1).all()
    else:
        with pytest.raises(FileError, match=r"a\.nc"):
            hr.open_dataset(path)


def test_damaged_pixels_are_named_when_they_are_used(tmp_path, result) -> None:
    path = hr.write_tree(xr.DataTree.from_dict({"/": result, "/part": result}), tmp_path / "a.nc")
    with h5py.File(path) as file:
        labels = [file[name] for name in ("label_with_rejection", "part/label_with_rejection")]
        starts = [label.id.get_chunk_info(0).byte_offset for label in labels]
    with path.open("r+b") as file:
        for start in starts:
            file.seek(start + 2)
            file.write(b"damaged")
    with hr.open_dataset(path) as dataset, hr.open_tree(path) as tree:
        assert dataset.confidence.load().notnull().any()
        for owner in (dataset, tree["part"], tree):
            with pytest.raises(FileError, match=r"a\.nc cannot be read"):
                owner.load()
