"""Properties that every confidence of the registry has, and each formula by hand."""

import math

import dask.array
import numpy as np
import pytest
import xarray as xr

from hsreject import schema
from hsreject.confidence import (
    CONFIDENCES,
    Confidence,
    TieBrokenMaximum,
    label_and_confidence,
    label_map,
    named_confidence,
)
from hsreject.errors import ConfigError, InputError

N_CLASSES = 5


@pytest.fixture(params=list(CONFIDENCES))
def confidence(request) -> Confidence:
    return CONFIDENCES.create(request.param)


class Agreement(Confidence):
    """One where context and classifier agree: a number even where there are no probabilities."""

    needs_probability = True

    def kernel(self, field, probability):
        return (field.argmax(axis=0) == probability.argmax(axis=0)).astype(field.dtype)


LAYOUTS = {
    "category, y, x": lambda field: field,
    "y, category, x": lambda field: np.ascontiguousarray(field.swapaxes(0, 1)).swapaxes(0, 1),
    "y, x, category": lambda field: np.moveaxis(
        np.ascontiguousarray(np.moveaxis(field, 0, -1)), -1, 0
    ),
    "turned": lambda field: field[:, ::-1, ::-1].copy()[:, ::-1, ::-1],
    "big-endian": lambda field: field.astype(field.dtype.newbyteorder(">")),
}


@pytest.fixture(params=[np.float32, np.float64])
def fields(request) -> tuple[np.ndarray, np.ndarray]:
    """A hidden field and probabilities, (category, y, x), with two pixels without data."""
    rng = np.random.default_rng(0)
    pair = rng.dirichlet(np.full(N_CLASSES, 0.4), size=(2, 6, 7)).transpose(0, 3, 1, 2)
    pair = np.ascontiguousarray(pair, dtype=request.param)
    pair[:, :, 0, 0] = np.nan
    pair[:, :, 3, 4] = np.nan
    return pair[0], pair[1]


def test_nodata_stays_nodata_and_precision_stays(confidence, fields) -> None:
    field, probability = fields
    before = fields[0].copy(), fields[1].copy()
    found = confidence(field, probability=probability)
    np.testing.assert_array_equal(fields, before)
    assert found.shape == field.shape[1:]
    assert found.dtype == field.dtype
    np.testing.assert_array_equal(np.isnan(found), np.isnan(field[0]))


def test_nodata_of_the_probability_counts(confidence, fields) -> None:
    field, probability = fields[0], fields[1].copy()
    probability[:, 5, 5] = np.nan
    found = confidence(field, probability=probability)
    assert np.isnan(found[5, 5]) == confidence.needs_probability
    assert np.isnan(Agreement()(field, probability=probability)[5, 5])


def test_xarray_equals_numpy(confidence, fields) -> None:
    expected = confidence(fields[0], probability=fields[1])
    coords = {"y": np.arange(6.0)}
    labelled = [xr.DataArray(array, dims=schema.FIELD_DIMS, coords=coords) for array in fields]
    for dims in (schema.FIELD_DIMS, ("y", "x", "category")):
        for chunks in ({}, {"y": 2, "x": 3}, {"category": 2, "y": 3}):
            field = labelled[0].transpose(*dims)
            field = field.chunk(chunks) if chunks else field
            found = confidence(field, probability=labelled[1])
            assert isinstance(found.data, dask.array.Array) == bool(chunks)
            assert (found.dtype, found.name) == (expected.dtype, "confidence")
            xr.testing.assert_equal(
                found.compute(), xr.DataArray(expected, dims=schema.MAP_DIMS, coords=coords)
            )
    lazy = labelled[1].chunk({"category": 2})
    xr.testing.assert_equal(confidence(labelled[0], probability=lazy).compute(), found.compute())


def test_certain_is_most_and_even_is_least_confident(confidence, fields) -> None:
    field = fields[0].reshape(N_CLASSES, -1)
    field = field[:, ~np.isnan(field[0])]
    even = np.full_like(field, 1 / N_CLASSES)
    certain = np.zeros_like(field)
    certain[3] = 1
    # With even class probabilities no confidence has anything but the field to go by.
    between = confidence(field, probability=even)
    tolerance = 4 * np.finfo(field.dtype).eps  # a sum of five rounded terms
    assert (confidence(certain, probability=even) >= between - tolerance).all()
    assert (confidence(even, probability=even) <= between + tolerance).all()


def test_two_classes_are_ordered_alike_by_all(confidence) -> None:
    first = np.linspace(0.5, 1.0, 50)
    field = np.stack([1 - first, first])
    found = confidence(field, probability=np.full_like(field, 0.5))
    assert (np.diff(found) > 0).all()


def test_order_of_classes_and_pixels_does_not_matter(confidence, fields) -> None:
    field, probability = (array.reshape(N_CLASSES, -1) for array in fields)
    expected = confidence(field, probability=probability)
    classes = np.array([3, 0, 4, 1, 2])
    np.testing.assert_allclose(
        confidence(field[classes], probability=probability[classes]),
        expected,
        rtol=8 * np.finfo(field.dtype).eps,  # sums in another order
        atol=8 * np.finfo(field.dtype).eps,
    )
    pixels = np.random.default_rng(1).permutation(field.shape[1])
    np.testing.assert_array_equal(
        confidence(field[:, pixels], probability=probability[:, pixels]), expected[pixels]
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("maximum", 0.5),
        ("margin", 0.2),
        ("entropy", 0.5 * math.log(0.5) + 0.3 * math.log(0.3) + 0.2 * math.log(0.2)),
        ("posterior", 0.5 * 0.1 / (0.5 * 0.1 + 0.3 * 0.7 + 0.2 * 0.2)),
        ("tie_broken_maximum", (0.5 + 1e-3 * 0.1) / 1.001),
    ],
)
def test_formulas_by_hand(name, expected) -> None:
    field, probability = np.array([0.3, 0.5, 0.2]), np.array([0.7, 0.1, 0.2])
    assert named_confidence(name)(field, probability=probability) == pytest.approx(
        expected, rel=1e-14
    )


def test_tie_break_orders_what_saturates_and_nothing_else() -> None:
    rng = np.random.default_rng(2)
    field = np.zeros((2, 1000), dtype=np.float32)
    field[0] = np.where(np.arange(1000) < 500, 1, rng.uniform(0.5, 0.99, 1000))
    field[1] = 1 - field[0]
    probability = rng.dirichlet([1, 1], 1000).T.astype(np.float32)
    found = TieBrokenMaximum()(field, probability=probability)
    saturated = np.argsort(probability[0, :500], kind="stable")
    assert (np.diff(found[saturated]) >= 0).all()
    assert len(np.unique(found[:500])) > 480  # float32 leaves the probability four digits
    assert found[500:].max() < found[:500].min()
    with pytest.raises(InputError, match="above 0"):
        TieBrokenMaximum(weight=0)


def test_a_field_that_excludes_every_probable_class_is_not_trusted() -> None:
    field, probability = np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]])
    assert named_confidence("posterior")(field, probability=probability) == [0.0]


@pytest.mark.parametrize(
    "name", [n for n in CONFIDENCES if CONFIDENCES.create(n).needs_probability]
)
def test_missing_or_misshapen_probability_is_refused(name, fields) -> None:
    with pytest.raises(InputError, match="needs"):
        named_confidence(name)(fields[0])
    with pytest.raises(InputError, match=r"got \(4, 6, 7\) and \(5, 6, 7\)"):
        named_confidence(name)(fields[0], probability=fields[1][1:])


def test_margin_is_right_for_any_numbers() -> None:
    margin = named_confidence("margin")
    np.testing.assert_array_equal(margin(np.log([[0.5], [0.25]])), [np.log(0.5) - np.log(0.25)])
    np.testing.assert_array_equal(margin(np.array([[-3.0, 2.0], [-1.0, -5.0]])), [2.0, 7.0])
    np.testing.assert_array_equal(margin(np.array([[0.75, 1.0, np.nan]])), [0.75, 1.0, np.nan])


def test_masked_fields_are_refused(confidence, fields) -> None:
    field, probability = fields
    with pytest.raises(InputError, match=r"field\.filled"):
        confidence(np.ma.masked_less(field, 0.01), probability=probability)
    if confidence.needs_probability:
        with pytest.raises(InputError, match=r"probability\.filled"):
            confidence(field, probability=np.ma.masked_less(probability, 0.01))
    np.testing.assert_array_equal(
        confidence(np.ma.masked_array(field), probability=probability),
        confidence(field, probability=probability),
    )


def test_what_is_no_field_is_refused() -> None:
    with pytest.raises(InputError, match="'category'"):
        named_confidence("maximum")(xr.DataArray(np.ones((2, 2)), dims=("y", "x")))
    with pytest.raises(InputError, match="at least one category"):
        named_confidence("maximum")(np.ones((0, 2, 2)))
    with pytest.raises(ConfigError, match="'margin'"):
        named_confidence("marign")


def test_label_is_the_first_largest_category(fields) -> None:
    field = xr.DataArray(fields[0], dims=schema.FIELD_DIMS)
    label = label_map(field)
    assert label.dtype == np.uint8
    assert label.attrs["_FillValue"] == 255
    missing = np.isnan(fields[0][0])
    assert (label.values[missing] == 255).all()
    for y, x in np.argwhere(~missing):
        values = fields[0][:, y, x].tolist()
        assert label.values[y, x] == values.index(max(values)) + 1
    tied = xr.DataArray(np.full((3, 1, 1), 1 / 3), dims=schema.FIELD_DIMS)
    assert label_map(tied).item() == 1
    assert label_map(tied.assign_coords(category=[9, 4, 300])).dtype == np.uint16


@pytest.mark.parametrize("n_categories", [1, 2, 16, 300])
def test_one_decision_gives_label_and_confidence(confidence, n_categories) -> None:
    rng = np.random.default_rng(0)
    field = rng.integers(0, 5, (n_categories, 5, 7)).astype("float32") / 5  # ties
    probability = rng.random(field.shape, dtype="float32")
    best = [[max(range(n_categories), key=p.__getitem__) for p in row] for row in field.T]
    expected = confidence(field, probability=probability)
    for layout in LAYOUTS.values():
        label, sure = label_and_confidence(layout(field), confidence, probability)
        np.testing.assert_array_equal(label, np.array(best).T + 1)
        np.testing.assert_array_equal(sure, expected)
        assert sure.dtype == np.float32


def test_decisions_on_maps_keep_classes_and_coordinates(confidence) -> None:
    field, probability = (
        xr.DataArray(
            np.random.default_rng(seed).dirichlet(np.ones(4), (5, 6)).transpose(2, 0, 1),
            dims=schema.FIELD_DIMS,
            coords={"category": [2, 3, 5, 7], "y": np.arange(5.0)},
        )
        for seed in (1, 2)
    )
    field[:, 2, 2] = np.nan
    for given in (field, field.chunk({"category": 2, "y": 2})):
        label, sure = label_and_confidence(given, confidence, probability)
        assert label.chunks == sure.chunks == (given.chunks and given.chunks[1:])
        xr.testing.assert_identical(label.compute(), label_map(field))
        xr.testing.assert_identical(sure.compute(), confidence(field, probability=probability))
        xr.testing.assert_identical(label_map(given).compute(), label_map(field))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_value_that_is_not_finite_is_enough(confidence, value) -> None:
    field = np.full((4, 4, 1), 0.25)
    np.fill_diagonal(field[:, :3, 0], value)  # in the last pixel nothing is missing
    label, sure = label_and_confidence(field, confidence, np.full((4, 4, 1), 0.25))
    assert label.ravel().tolist() == [255, 255, 255, 1]
    assert np.isnan(sure).ravel().tolist() == [True, True, True, False]


def test_no_pixels_at_all(confidence) -> None:
    for shape in ((3, 0, 5), (3, 5, 0)):
        label, sure = label_and_confidence(np.ones(shape), confidence, np.ones(shape))
        assert label.shape == sure.shape == shape[1:]


@pytest.mark.parametrize(
    "category",
    [
        [-1, 1, 2],
        [0, 1, 2],
        [1, 2, 65535],
        [1, 2, 70000],
        [1, 1, 2],
        [1.5, 2, 3],
        [1.0, np.nan, 3.0],
        ["corn", "oats", "wheat"],
        [True, False, True],
    ],
    ids=str,
)
def test_categories_that_cannot_be_labels_are_refused(category) -> None:
    field = xr.DataArray(
        np.full((3, 1, 2), 1 / 3), dims=schema.FIELD_DIMS, coords={"category": category}
    )
    shown = ", ".join(map(str, np.asarray(category).tolist()))
    for given in (field, field.chunk()):
        with pytest.raises(InputError, match=rf"65534.*\(got {shown}\).*range\(1, 4\)"):
            label_map(given)


def test_categories_up_to_the_last_label_and_whole_floats_are_labels() -> None:
    field = xr.DataArray(np.eye(3)[:, None], dims=schema.FIELD_DIMS)
    large = label_map(field.assign_coords(category=[1, 255, 65534]))
    assert (large.dtype, large.values.tolist()) == (np.uint16, [[1, 255, 65534]])
    whole = label_map(field.assign_coords(category=[1.0, 2.0, 7.0]))
    assert (whole.dtype, whole.values.tolist()) == (np.uint8, [[1, 2, 7]])
    with pytest.raises(InputError, match="at least one category"):
        label_map(field.assign_coords(category=[1, 2, 3]).isel(category=[]))
