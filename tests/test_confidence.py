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
    label_map,
    label_map_of_positions,
    named_confidence,
    reference_samples,
)
from hsreject.errors import ConfigError, InputError

N_CLASSES = 5


@pytest.fixture(params=list(CONFIDENCES))
def confidence(request) -> Confidence:
    return CONFIDENCES.create(request.param)


@pytest.fixture(params=[np.float32, np.float64])
def fields(request) -> tuple[np.ndarray, np.ndarray]:
    """Return a hidden field and probabilities, (category, y, x), with two pixels without data."""
    rng = np.random.default_rng(0)
    pair = rng.dirichlet(np.full(N_CLASSES, 0.4), size=(2, 6, 7)).transpose(0, 3, 1, 2)
    pair = np.ascontiguousarray(pair, dtype=request.param)
    pair[:, :, 0, 0] = np.nan
    pair[:, :, 3, 4] = np.nan
    return pair[0], pair[1]


def test_nodata_stays_nodata_and_precision_stays(confidence, fields) -> None:
    field, probability = fields
    found = confidence(field, probability=probability)
    assert found.shape == field.shape[1:]
    assert found.dtype == field.dtype
    np.testing.assert_array_equal(np.isnan(found), np.isnan(field[0]))


def test_nodata_of_the_probability_counts(fields) -> None:
    field, probability = fields
    probability = probability.copy()
    probability[:, 5, 5] = np.nan
    assert np.isnan(named_confidence("posterior")(field, probability=probability)[5, 5])
    assert not np.isnan(named_confidence("maximum")(field, probability=probability)[5, 5])


@pytest.mark.parametrize("dims", [schema.FIELD_DIMS, ("y", "x", "category")])
@pytest.mark.parametrize("lazy", [False, True])
def test_xarray_equals_numpy(confidence, fields, dims, lazy) -> None:
    expected = confidence(fields[0], probability=fields[1])
    labelled = [
        xr.DataArray(array, dims=schema.FIELD_DIMS, coords={"y": np.arange(6.0)})
        for array in fields
    ]
    field = labelled[0].transpose(*dims)
    if lazy:
        field = field.chunk({"y": 2, "x": 3})
    found = confidence(field, probability=labelled[1])
    assert isinstance(found.data, dask.array.Array) == lazy
    assert found.dtype == expected.dtype
    assert found.name == "confidence"
    xr.testing.assert_equal(
        found.compute(),
        xr.DataArray(expected, dims=schema.MAP_DIMS, coords={"y": np.arange(6.0)}),
    )


def test_certain_is_surest_and_even_is_least_sure(confidence, fields) -> None:
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
    assert (between >= confidence.lowest(N_CLASSES) - tolerance).all()


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


def test_input_is_left_alone(confidence, fields) -> None:
    before = [array.copy() for array in fields]
    confidence(fields[0], probability=fields[1])
    for array, copy in zip(fields, before, strict=True):
        np.testing.assert_array_equal(array, copy)


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
    with pytest.raises(InputError, match="weight must be above 0"):
        TieBrokenMaximum(weight=0)


def test_a_field_that_excludes_every_probable_class_is_not_trusted() -> None:
    field, probability = np.array([[1.0], [0.0]]), np.array([[0.0], [1.0]])
    assert named_confidence("posterior")(field, probability=probability) == [0.0]


@pytest.mark.parametrize(
    "name", [n for n in CONFIDENCES if CONFIDENCES.create(n).needs_probability]
)
def test_missing_or_misshapen_probability_is_refused(name, fields) -> None:
    with pytest.raises(InputError, match="needs the class probabilities"):
        named_confidence(name)(fields[0])
    with pytest.raises(InputError, match=r"got \(4, 6, 7\) and \(5, 6, 7\)"):
        named_confidence(name)(fields[0], probability=fields[1][1:])


def test_chunks_along_the_categories_are_joined(confidence, fields) -> None:
    labelled = [xr.DataArray(array, dims=schema.FIELD_DIMS) for array in fields]
    lazy = [array.chunk({"category": 2, "y": 3}) for array in labelled]
    expected = confidence(labelled[0], probability=labelled[1])
    for field, probability in (lazy, (labelled[0], lazy[1]), (lazy[0], labelled[1])):
        found = confidence(field, probability=probability)
        assert found.chunks is not None or not confidence.needs_probability
        xr.testing.assert_identical(found.compute(), expected)
    xr.testing.assert_identical(label_map(lazy[0]).compute(), label_map(labelled[0]))


def test_margin_is_right_for_any_numbers() -> None:
    margin = named_confidence("margin")
    np.testing.assert_array_equal(margin(np.log([[0.5], [0.25]])), [np.log(0.5) - np.log(0.25)])
    np.testing.assert_array_equal(margin(np.array([[-3.0, 2.0], [-1.0, -5.0]])), [2.0, 7.0])
    np.testing.assert_array_equal(margin(np.array([[0.75, 1.0, np.nan]])), [0.75, 1.0, np.nan])


def test_masked_fields_are_refused(confidence, fields) -> None:
    for position, name in enumerate(("field", "probability")):
        given: list = list(fields)
        given[position] = np.ma.masked_less(given[position], 0.01)
        if name == "probability" and not confidence.needs_probability:
            continue
        with pytest.raises(InputError, match=rf"{name} is a masked array .* {name}.filled\(np.nan"):
            confidence(given[0], probability=given[1])
    without = np.ma.masked_array(fields[0])
    np.testing.assert_array_equal(
        confidence(without, probability=fields[1]), confidence(*fields[:1], probability=fields[1])
    )


def test_what_is_no_field_is_refused() -> None:
    with pytest.raises(InputError, match="must have the dimension 'category'"):
        named_confidence("maximum")(xr.DataArray(np.ones((2, 2)), dims=("y", "x")))
    with pytest.raises(InputError, match="at least one category"):
        named_confidence("maximum")(np.ones((0, 2, 2)))
    with pytest.raises(ConfigError, match="Did you mean 'margin'"):
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
    assert (label_map(field.chunk({"y": 2})).compute() == label).all()


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
    message = rf"whole numbers from 1 to 65534, all different.*\(got {shown}\).*range\(1, 4\)"
    reference = np.array([[1, 2]])
    for attempt in (
        lambda: label_map(field),
        lambda: label_map(field.chunk()),
        lambda: label_map_of_positions(np.array([[0, 1]]), field),
        lambda: reference_samples(reference, field, named_confidence("margin"), probability=field),
    ):
        with pytest.raises(InputError, match=message):
            attempt()


def test_categories_up_to_the_last_label_and_whole_floats_are_labels() -> None:
    field = xr.DataArray(np.eye(3)[:, None], dims=schema.FIELD_DIMS)
    large = label_map(field.assign_coords(category=[1, 255, 65534]))
    assert (large.dtype, large.values.tolist()) == (np.uint16, [[1, 255, 65534]])
    whole = label_map(field.assign_coords(category=[1.0, 2.0, 7.0]))
    assert (whole.dtype, whole.values.tolist()) == (np.uint8, [[1, 2, 7]])
    with pytest.raises(InputError, match=r"\(got none\)"):
        label_map(field.assign_coords(category=[1, 2, 3]).isel(category=[]))
