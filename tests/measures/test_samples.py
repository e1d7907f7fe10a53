"""Evaluation samples: which pixels of which maps take part."""

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import InputError

REFERENCE = np.array([[1, 2, 0], [2, 1, 2]])
LABEL = np.array([[1, 1, 2], [2, 255, 2]], dtype="uint8")
CONFIDENCE = np.array([[0.9, 0.4, 0.8], [0.7, 0.6, np.nan]])


def test_only_pixels_with_reference_and_data_take_part() -> None:
    samples = hr.evaluation_samples(REFERENCE, LABEL, CONFIDENCE, rejected=CONFIDENCE < 0.5)
    assert samples.reference.tolist() == [1, 2, 2]
    assert samples.label.tolist() == [1, 1, 2]
    assert samples.correct.tolist() == [True, False, True]
    assert samples.confidence.tolist() == [0.9, 0.4, 0.7]
    assert samples.rejected.tolist() == [False, True, False]
    assert (samples.row.tolist(), samples.column.tolist()) == ([0, 0, 1], [0, 1, 0])
    assert samples.n_without_data == 2
    areas = np.arange(6).reshape(2, 3)
    assert samples.at(areas).tolist() == [0, 1, 3]
    assert samples.at(xr.DataArray(areas.T, dims=("x", "y"))).tolist() == [0, 1, 3]
    maps = [xr.DataArray(array, dims=("y", "x")) for array in (REFERENCE, LABEL, CONFIDENCE)]
    samples = hr.evaluation_samples(maps[0], maps[1].transpose("x", "y"), maps[2])
    assert samples.label.tolist() == [1, 1, 2]
    assert samples.rejected is None


@pytest.mark.parametrize("nothing", [np.array([]), np.array([1, 2])], ids=len)
def test_a_fill_value_that_is_not_one_number_marks_nothing(nothing) -> None:
    reference = xr.DataArray(REFERENCE, dims=("y", "x"), attrs={"_FillValue": nothing})
    assert hr.evaluation_samples(reference, LABEL).reference.tolist() == [1, 2, 2, 2]


def test_labels_of_int8_that_wrapped_around_are_refused() -> None:
    wrapped = np.where(LABEL == 255, 200, LABEL).astype("int8")
    with pytest.raises(InputError, match="-56"):
        hr.evaluation_samples(REFERENCE, wrapped)
    assert hr.evaluation_samples(REFERENCE, wrapped, nodata=-56).label.tolist() == [1, 1, 2, 2]


def test_fill_values_of_the_reference_and_no_data_of_the_labels_may_be_others() -> None:
    filled = np.where(REFERENCE == 0, -9, REFERENCE)
    reference = xr.DataArray(filled, dims=("y", "x"), attrs={"_FillValue": -9})
    samples = hr.evaluation_samples(reference, LABEL)
    assert samples.reference.tolist() == [1, 2, 2, 2]
    assert samples.n_without_data == 1
    samples = hr.evaluation_samples(REFERENCE, LABEL, nodata=1)
    assert samples.label.tolist() == [2, 255, 2]
    assert samples.confidence is None


def test_bad_maps_have_one_clear_error() -> None:
    for reference, label, word in (
        (np.zeros((2, 3), int), LABEL, "no reference pixels"),
        (REFERENCE, np.full((2, 3), 255, "uint8"), "None of the 5"),
        (REFERENCE, np.zeros((2, 3), "uint8"), "label is 0 at 5"),
        (REFERENCE, LABEL[:, :2], "shape"),
        (REFERENCE * 1.0, LABEL, "reference must hold integer"),
        (REFERENCE[0], LABEL[0], "map"),
        (-REFERENCE, LABEL, "-2"),
    ):
        with pytest.raises(InputError, match=word):
            hr.evaluation_samples(reference, label)
