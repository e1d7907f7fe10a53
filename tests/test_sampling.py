"""Drawing pixels of each class: sizes, disjointness, and what a draw may depend on."""

import warnings

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import hsreject as hr
from hsreject import schema
from hsreject.classes import ClassTable
from hsreject.errors import EmptyClassWarning, InputError

SAMPLERS = {
    "per_class": lambda labels, seed: hr.sample_per_class(labels, 5, seed=seed),
    "fraction": lambda labels, seed: hr.sample_fraction(labels, 0.2, seed=seed),
    "blocks": lambda labels, seed: hr.sample_blocks(
        labels, block_size=3, buffer=1, fraction=0.4, seed=seed
    ),
    "thinned_blocks": lambda labels, seed: hr.sample_blocks(
        labels, block_size=3, buffer=0, n_per_class=4, seed=seed
    ),
}


def random_labels(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, size=(24, 31)).astype(np.uint8)


def labelled(values: np.ndarray) -> xr.DataArray:
    array = xr.DataArray(
        values,
        dims=schema.MAP_DIMS,
        coords={"y": 100.0 - np.arange(values.shape[0]), "x": np.arange(values.shape[1]) + 0.5},
        attrs={"source": "survey"},
    )
    return schema.attach_classes(array, ClassTable.from_names(["bare soil", "water", "wood"]))


@pytest.fixture(params=SAMPLERS, name="sample")
def _sample(request):
    return SAMPLERS[request.param]


@given(labels=hnp.arrays(np.uint8, (9, 7), elements=st.integers(0, 4)), seed=st.integers(0, 2**70))
@pytest.mark.parametrize("name", SAMPLERS)
def test_parts_are_disjoint_and_training_is_at_most_half(name, labels, seed) -> None:
    if not labels.any():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EmptyClassWarning)  # tiny classes are part of the game
        train, test = SAMPLERS[name](labels, seed)
    assert not ((train > 0) & (test > 0)).any()
    assert np.isin(train, [0, *np.unique(labels)]).all()
    assert (train[train > 0] == labels[train > 0]).all()
    assert (test[test > 0] == labels[test > 0]).all()
    for value in range(1, 5):
        assert 2 * np.count_nonzero(train == value) <= np.count_nonzero(labels == value)
    if name in {"per_class", "fraction"}:
        assert (train + test == labels).all()


def test_draws_do_not_depend_on_type_layout_or_chunks(sample) -> None:
    values = random_labels()
    expected = sample(values, 3)[0]
    assert expected.any()
    for other in (
        values.astype(np.int64),
        values.astype(">u2"),
        np.asfortranarray(values),
        xr.DataArray(values, dims=schema.MAP_DIMS),
        xr.DataArray(values.T, dims=("x", "y")),
        xr.DataArray(da.from_array(values, chunks=(7, 11)), dims=schema.MAP_DIMS),
    ):
        np.testing.assert_array_equal(np.asarray(sample(other, 3)[0]), expected)


def test_seeds_repeat_and_differ(sample) -> None:
    labels = random_labels()
    np.testing.assert_array_equal(sample(labels, 7)[0], sample(labels, 7)[0])
    assert (sample(labels, 7)[0] != sample(labels, 8)[0]).any()


def test_numpy_gives_numpy_and_xarray_keeps_coordinates_and_classes(sample) -> None:
    labels = labelled(random_labels())
    for part in sample(labels, 0):
        assert part.dims == schema.MAP_DIMS
        assert part.dtype == labels.dtype
        assert schema.class_table(part) == schema.class_table(labels)
        assert part.attrs["source"] == "survey"
        assert "seed=0" in part.attrs["sampling"]
        xr.testing.assert_equal(part.x, labels.x)
        xr.testing.assert_equal(part.y, labels.y)
    plain = sample(labels.values, 0)
    assert all(type(part) is np.ndarray for part in plain)
    assert plain[0].dtype == np.uint8
    assert "sampling" not in labels.attrs


def test_the_first_draws_are_fixed_for_ever() -> None:
    # A promise rather than a result: the keys are the first words of PCG64, which NumPy freezes.
    train, _ = hr.sample_per_class(np.ones(12, dtype=int), 3, seed=0)
    words = np.random.PCG64(np.random.SeedSequence([0, 1])).random_raw(12)
    assert set(np.flatnonzero(train)) == set(np.argsort(words)[:3])
    assert np.flatnonzero(train).tolist() == [4, 7, 10]


def test_a_class_is_drawn_whatever_the_others_are() -> None:
    labels = random_labels()
    alone = np.where(labels == 2, labels, 0)
    both = hr.sample_per_class(labels, 6, seed=1)[0]
    np.testing.assert_array_equal(
        np.where(both == 2, both, 0), hr.sample_per_class(alone, 6, seed=1)[0]
    )


def test_more_pixels_keep_those_of_fewer() -> None:
    labels = random_labels()
    few, many = (hr.sample_per_class(labels, n, seed=4)[0] for n in (3, 9))
    assert (many[few > 0] == few[few > 0]).all()
    assert [np.count_nonzero(many == v) for v in (1, 2, 3)] == [9, 9, 9]


def test_fractions_round_and_give_every_class_a_pixel() -> None:
    labels = np.repeat([1, 2, 3], [1000, 30, 2])
    train, _ = hr.sample_fraction(labels, 0.05)
    # 50, 1.5 rounded up, and one of two pixels
    assert np.bincount(train).tolist()[1:] == [50, 2, 1]


def test_classes_without_a_training_pixel_are_reported() -> None:
    values = np.array([[1, 1, 1, 1], [3, 0, 0, 0]], dtype=np.uint8)
    with pytest.warns(EmptyClassWarning, match=r"class 3 \(wood, 1 pixel\)"):
        train, test = hr.sample_per_class(labelled(values), 2)
    assert train.attrs["classes_without_training"] == [3]
    assert "classes_without_test" not in train.attrs
    assert np.count_nonzero(test == 3) == 1
    with pytest.warns(EmptyClassWarning, match=r"No training pixel for class 3 \(1 pixel\)"):
        hr.sample_fraction(values, 0.5)


def test_pixels_without_data_are_no_class() -> None:
    values = random_labels()
    values[0] = 255
    labels = labelled(values).assign_attrs(_FillValue=255)
    for part in hr.sample_per_class(labels, 3):
        assert not part.isel(y=0).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: hr.sample_per_class(a, 0), "at least 1"),
        (lambda a: hr.sample_per_class(a, 2.5), "whole number"),
        (lambda a: hr.sample_per_class(a, 3, seed=-1), "seed must be"),
        (lambda a: hr.sample_per_class(a * 0, 3), "every label is 0"),
        (lambda a: hr.sample_per_class(a / 2, 3), "integers"),
        (lambda a: hr.sample_per_class(a.astype(int) - 5, 3), "must not be negative"),
        (lambda a: hr.sample_fraction(a, 0.6), "at most 0.5"),
        (lambda a: hr.sample_fraction(a, float("nan")), "at most 0.5"),
        (lambda a: hr.sample_blocks(a, block_size=0), "block_size"),
        (lambda a: hr.sample_blocks(a, buffer=-1), "buffer"),
        (lambda a: hr.sample_blocks(a, n_per_class=0), "n_per_class"),
        (lambda a: hr.sample_blocks(a.ravel()), "dims"),
    ],
)
def test_impossible_wishes_are_refused(call, message) -> None:
    with pytest.raises(InputError, match=message):
        call(random_labels())
