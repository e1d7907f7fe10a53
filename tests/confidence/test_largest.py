"""The one pass over a field against NumPy's argmax, for every layout that a field can have."""

import numpy as np
import pytest
import xarray as xr
from hsreject.confidence.largest import CHUNK, first_largest_of_samples

from hsreject.confidence import (
    CONFIDENCES,
    FirstLargest,
    first_largest,
    label_and_confidence,
    label_map,
    named_confidence,
)
from hsreject.errors import InputError
from hsreject.schema import FIELD_DIMS

LAYOUTS = {
    "category, y, x": lambda field: field,
    "y, category, x": lambda field: np.ascontiguousarray(field.swapaxes(0, 1)).swapaxes(0, 1),
    "y, x, category": lambda field: np.ascontiguousarray(np.moveaxis(field, 0, -1)).T.swapaxes(
        1, 2
    ),
    "part of more": lambda field: np.pad(field, ((0, 2), (1, 3), (4, 1)))[:-2, 1:-3, 4:-1],
    "part of rows": lambda field: np.pad(field.swapaxes(0, 1), ((0, 0), (1, 2), (0, 0)))[
        :, 1:-2
    ].swapaxes(0, 1),
    "turned": lambda field: field[:, ::-1, ::-1].copy()[:, ::-1, ::-1],
    "every second": lambda field: np.repeat(field, 2, axis=2)[:, :, ::2],
    "big-endian": lambda field: field.astype(field.dtype.newbyteorder(">")),
}


def make_fields(shape: tuple[int, ...], dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    """Return a field of few distinct values, so that it has ties, and one beside it."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 5, shape).astype(dtype) / 5, rng.random(shape).astype(dtype)


def check(field: np.ndarray, beside: np.ndarray) -> None:
    found = first_largest(field, beside, 0.25)
    check_samples(field, beside, found)
    position = field.argmax(axis=0)  # NumPy, too, returns the first of several
    other = np.take_along_axis(beside, position[np.newaxis], axis=0)[0]
    np.testing.assert_array_equal(found.position, position)
    blended = (field.max(axis=0).astype(float) + 0.25 * other) / 1.25
    np.testing.assert_array_equal(found.value, blended.astype(found.value.dtype))
    alone = first_largest(field)
    np.testing.assert_array_equal(alone.position, position)
    np.testing.assert_array_equal(alone.value, field.max(axis=0))


def check_samples(field: np.ndarray, beside: np.ndarray, found: FirstLargest) -> None:
    """References of several types on no pixel, one, each third, the last ones, all."""
    numbers = np.arange(found.value.size)
    labels = 2 * np.arange(len(field)) + 1
    drawn = np.random.default_rng(1).choice(labels, numbers.size)
    for dtype, pixels in (
        ("uint16", numbers[:0]),
        ("int64", numbers[-1:]),
        ("int16", numbers[1::3]),
        ("uint32", numbers[-CHUNK // 2 :]),
        ("int32", numbers),
    ):
        reference = np.zeros(found.value.shape, dtype)
        np.put(reference, pixels, drawn[pixels])
        correct, value = first_largest_of_samples(field, beside, 0.25, reference, labels)
        np.testing.assert_array_equal(value, found.value.ravel()[pixels])
        assert value.dtype == found.value.dtype
        position = found.position.ravel()[pixels]
        np.testing.assert_array_equal(correct, labels[position] == drawn[pixels])


@pytest.mark.parametrize("of_field", LAYOUTS)
@pytest.mark.parametrize("of_beside", LAYOUTS)
def test_every_layout(of_field, of_beside) -> None:
    field, beside = make_fields((6, 7, 9))
    check(LAYOUTS[of_field](field), LAYOUTS[of_beside](beside))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n_categories", [1, 2, 3, 16, 17, 255, 300])
def test_every_number_of_categories(dtype, n_categories) -> None:
    check(*make_fields((n_categories, 5, 3), dtype))


@pytest.mark.parametrize(
    "shape", [(4,), (4, 11), (4, 2 * CHUNK + 3), (4, 3, CHUNK + 1), (4, 2, 3, 5)]
)
def test_every_shape(shape) -> None:
    check(*make_fields(shape))


def test_records_with_odd_steps() -> None:
    """A header of three bytes before each line: steps that are no multiples of a number's size."""
    field, beside = make_fields((3, 6, 8))
    records = np.zeros(6, dtype=[("head", "u1", 3), ("data", "f4", (3, 8))])
    records["data"] = field.swapaxes(0, 1)
    check(records["data"].swapaxes(0, 1), beside)


@pytest.mark.parametrize("category", range(4))
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_an_infinite_value_is_no_data_in_every_category(category, value) -> None:
    field, _ = make_fields((4, 2, 3))
    field[category, 0, 1] = value
    found = first_largest(field)
    assert found.position[0, 1] == 4
    assert np.isnan(found.value[0, 1])


@pytest.mark.parametrize("dtype", ["i1", "u1", ">i2", "u2", "i4", ">u4", ">i8", "u8"])
def test_every_type_of_reference(dtype) -> None:
    field, beside = make_fields((4, 7, 9))
    labels = np.array([1, 257, 2, 258])  # in one byte 257 and 258 would be 1 and 2 again
    found = first_largest(field, beside, 0.25)
    reference = np.zeros((7, 9), dtype)
    reference[2:5, 3:6], reference[6, 8] = 1, 2
    correct, value = first_largest_of_samples(field, beside, 0.25, reference, labels)
    used = reference != 0
    np.testing.assert_array_equal(correct, labels[found.position[used]] == reference[used])
    np.testing.assert_array_equal(value, found.value[used])


def test_no_pixels_at_all() -> None:
    assert first_largest(np.ones((3, 0, 5))).position.shape == (0, 5)
    assert first_largest(np.ones((3, 5, 0))).position.shape == (5, 0)


@pytest.mark.parametrize("category", range(4))
def test_one_missing_value_is_enough(category) -> None:
    field, beside = make_fields((4, 2, 3))
    field[category, 1, 1] = np.nan
    found = first_largest(field, beside)
    assert found.position[1, 1] == 4
    np.testing.assert_array_equal(np.isnan(found.value), np.isnan(field).any(axis=0))


@pytest.mark.parametrize("name", CONFIDENCES)
@pytest.mark.parametrize("lazy", [False, True])
def test_label_and_confidence_are_those_of_two_passes(name, lazy) -> None:
    field, probability = (
        xr.DataArray(
            np.random.default_rng(seed).dirichlet(np.ones(4), (5, 6)).transpose(2, 0, 1),
            dims=FIELD_DIMS,
            coords={"category": [2, 3, 5, 7], "y": np.arange(5.0)},
        )
        for seed in (1, 2)
    )
    field[:, 2, 2] = np.nan
    given = field.chunk({"y": 2}) if lazy else field
    confidence = named_confidence(name)
    label, sure = label_and_confidence(given, confidence, probability=probability)
    assert (label.chunks is not None) == lazy
    xr.testing.assert_identical(label.compute(), label_map(field))
    xr.testing.assert_identical(sure.compute(), confidence(field, probability=probability))


@pytest.mark.parametrize("name", CONFIDENCES)
@pytest.mark.parametrize("of_field", LAYOUTS)
def test_samples_are_those_of_the_whole_map(name, of_field) -> None:
    field, probability = make_fields((5, 7, 9))
    field[:, 2, 3] = probability[:, 2, 3] = np.nan
    labels = np.array([2, 3, 5, 7, 11])
    confidence = named_confidence(name)
    position, sure = confidence.decide(LAYOUTS[of_field](field), probability=probability)
    np.testing.assert_array_equal(sure, confidence(field, probability=probability))
    for step in (2, 1):
        reference = np.random.default_rng(3).choice(labels, (7, 9)) * (np.arange(9) % step == 0)
        reference[2, 3] = labels[0]  # no data is not right, whatever category it begins with
        used = reference > 0
        correct, found = confidence.samples(
            LAYOUTS[of_field](field), probability=probability, reference=reference, labels=labels
        )
        np.testing.assert_array_equal(found, sure[used])
        assert found.dtype == sure.dtype
        right = np.append(labels, -1)[position[used]] == reference[used]
        np.testing.assert_array_equal(correct, right)


@pytest.mark.parametrize("name", CONFIDENCES)
def test_samples_with_a_field_and_no_probability_are_refused(name) -> None:
    field, probability = make_fields((3, 4, 5))
    probability[:, 1, 2] = probability[:, 3, 3] = np.nan
    reference = np.eye(4, 5, dtype=int) + 1
    options = {"probability": probability, "reference": reference, "labels": np.arange(3) + 1}
    confidence = named_confidence(name)
    if not confidence.needs_probability:
        assert not np.isnan(confidence.samples(field, **options)[1]).any()
        return
    with pytest.raises(InputError, match=r"have a field but no class probabilities \(2 of them\)"):
        confidence.samples(field, **options)
    reference[1, 2] = reference[3, 3] = 0
    assert not np.isnan(confidence.samples(field, **options)[1]).any()


@pytest.mark.parametrize("name", ["tie_broken_maximum", "posterior"])
def test_deciding_without_the_needed_probability_is_refused(name) -> None:
    with pytest.raises(InputError, match="needs the class probabilities"):
        named_confidence(name).decide(np.ones((2, 3)))
