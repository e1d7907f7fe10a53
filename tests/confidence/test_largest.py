"""The one pass over a field against NumPy's argmax, for every layout that a field can have."""

import numpy as np
import pytest
import xarray as xr

from hsreject.confidence import CONFIDENCES, label_and_confidence, label_map, named_confidence
from hsreject.confidence.largest import CHUNK, FirstLargest, first_largest
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
    found = first_largest(field, beside)
    check_some(field, beside, found)
    position = field.argmax(axis=0)  # NumPy, too, returns the first of several
    np.testing.assert_array_equal(found.position, position)
    np.testing.assert_array_equal(found.value, field.max(axis=0))
    expected = np.take_along_axis(beside, position[np.newaxis], axis=0)[0]
    np.testing.assert_array_equal(found.beside, expected)


def check_some(field: np.ndarray, beside: np.ndarray, found: FirstLargest) -> None:
    """Some pixels alone: none, one, each third, the last ones, all."""
    numbers = np.arange(found.value.size)
    for pixels in (numbers[:0], numbers[-1:], numbers[1::3], numbers[-CHUNK // 2 :], numbers):
        some = first_largest(field, beside, pixels=pixels)
        for values, everywhere in zip(some, found, strict=True):
            np.testing.assert_array_equal(values, everywhere.ravel()[pixels])
            assert values.dtype == everywhere.dtype


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
def test_some_pixels_are_decided_as_in_the_whole_map(name, of_field) -> None:
    field, probability = make_fields((5, 7, 9))
    field[:, 2, 3] = np.nan
    probability[0, 4, 4] = np.nan
    confidence = named_confidence(name)
    expected = confidence.decide(LAYOUTS[of_field](field), probability=probability)
    np.testing.assert_array_equal(expected[1], confidence(field, probability=probability))
    for pixels in (np.arange(0), np.arange(0, 63, 2), np.arange(63)):
        found = confidence.decide(LAYOUTS[of_field](field), probability=probability, pixels=pixels)
        for some, everywhere in zip(found, expected, strict=True):
            np.testing.assert_array_equal(some, everywhere.ravel()[pixels])
            assert some.dtype == everywhere.dtype


@pytest.mark.parametrize("name", ["tie_broken_maximum", "posterior"])
def test_deciding_without_the_needed_probability_is_refused(name) -> None:
    with pytest.raises(InputError, match="needs the class probabilities"):
        named_confidence(name).decide(np.ones((2, 3)))
