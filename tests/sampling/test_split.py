"""A split that somebody else made: checked, never changed."""

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject import schema
from hsreject.classes import ClassTable
from hsreject.errors import EmptyClassWarning, InputError


def label_map(values, names=("soil", "water")) -> xr.DataArray:
    array = xr.DataArray(np.array(values, dtype=np.uint8), dims=schema.MAP_DIMS)
    return schema.attach_classes(array, ClassTable.from_names(names))


def test_a_good_split_comes_back_unchanged() -> None:
    given = label_map([[1, 0, 2, 0]]), label_map([[0, 1, 0, 2]])
    for before, after in zip(given, hr.given_split(*given), strict=True):
        np.testing.assert_array_equal(before, after)
        assert after.attrs["sampling"] == "given"
        assert "sampling" not in before.attrs


def test_classes_of_one_part_only_are_reported() -> None:
    with pytest.warns(EmptyClassWarning, match=r"No test pixel for class 2 \(water"):
        train, test = hr.given_split(label_map([[1, 2, 0]]), label_map([[0, 0, 1]]))
    assert train.attrs["classes_without_test"] == test.attrs["classes_without_test"] == [2]
    with pytest.warns(EmptyClassWarning, match=r"No training pixel for class 2"):
        hr.given_split(np.array([[1, 0, 0]]), np.array([[0, 1, 2]]))


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        (label_map([[1, 2]]), label_map([[1, 0]]), "share 1 pixels"),
        (np.array([1, 2]), np.array([1, 0, 0]), "one grid"),
        (label_map([[1, 0]]), label_map([[0, 1]], ["water", "soil"]), "Class 1 is 'soil' in train"),
        (np.array([0, 0]), np.array([0, 0]), "every label is 0"),
        (np.array([0.5, 0]), np.array([0, 1]), "train must hold integers"),
    ],
)
def test_broken_splits_are_refused(train, test, message) -> None:
    with pytest.raises(InputError, match=message):
        hr.given_split(train, test)


def test_shifted_grids_are_refused() -> None:
    train = label_map([[1, 0]]).assign_coords(x=[0.0, 1.0])
    test = label_map([[0, 1]]).assign_coords(x=[5.0, 6.0])
    with pytest.raises(InputError, match="different grids"):
        hr.given_split(train, test)
