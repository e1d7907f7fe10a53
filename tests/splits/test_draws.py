"""Training and test pixels: sizes, disjointness, gaps, and what a draw may depend on."""

import warnings

import dask.array as da
import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import hsreject as hr
from hsreject import schema
from hsreject.errors import EmptyClassWarning, InputError
from hsreject.schema.classes import ClassTable

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


@settings(deadline=None, derandomize=True)
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
    assert (sample(values, 4)[0] != expected).any()


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


def test_a_class_is_drawn_whatever_the_others_are_and_more_keeps_fewer() -> None:
    labels = random_labels()
    alone = np.where(labels == 2, labels, 0)
    both = hr.sample_per_class(labels, 6, seed=1)[0]
    np.testing.assert_array_equal(
        np.where(both == 2, both, 0), hr.sample_per_class(alone, 6, seed=1)[0]
    )
    more = hr.sample_per_class(labels, n_per_class=9, seed=1)[0]
    assert (more[both > 0] == both[both > 0]).all()
    assert [np.count_nonzero(more == v) for v in (1, 2, 3)] == [9, 9, 9]


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


REFUSED = {
    "at least 1": lambda a: hr.sample_per_class(a, 0),
    "whole number": lambda a: hr.sample_per_class(a, 2.5),
    "seed": lambda a: hr.sample_per_class(a, 3, seed=-1),
    "every label is 0": lambda a: hr.sample_per_class(a * 0, 3),
    "integers": lambda a: hr.sample_per_class(a / 2, 3),
    "negative": lambda a: hr.sample_per_class(a.astype(int) - 5, 3),
    "masked": lambda a: hr.sample_per_class(np.ma.masked_equal(a, 2), 3),
    r"got 0\.6": lambda a: hr.sample_fraction(a, 0.6),
    "got nan": lambda a: hr.sample_fraction(a, float("nan")),
    "block_size": lambda a: hr.sample_blocks(a, block_size=0),
    "buffer": lambda a: hr.sample_blocks(a, buffer=-1),
    "n_per_class": lambda a: hr.sample_blocks(a, n_per_class=0),
    "dims": lambda a: hr.sample_blocks(a.ravel()),
    "share 1 pixels": lambda _: hr.given_split(np.array([[1, 2]]), np.array([[1, 0]])),
    "one grid": lambda _: hr.given_split(np.array([1, 2]), np.array([1, 0, 0])),
    "train must": lambda _: hr.given_split(np.array([0.5, 0]), np.array([0, 1])),
    "Class 1 is 'bare soil' in train": lambda a: hr.given_split(
        labelled(a * 0 + 1), labelled(a * 0).assign_attrs(class_names=["x", "y", "z"])
    ),
    "different grids": lambda a: hr.given_split(
        labelled(a), labelled(a * 0).assign_coords(x=np.arange(31.0) + 7)
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_impossible_wishes_are_refused(message) -> None:
    with pytest.raises(InputError, match=message):
        REFUSED[message](random_labels())


def chebyshev_distance(first: np.ndarray, second: np.ndarray) -> int:
    one, two = np.argwhere(first), np.argwhere(second)
    return int(np.abs(one[:, None] - two[None]).max(axis=2).min())


@pytest.fixture(scope="module")
def fields() -> np.ndarray:
    """Four classes in fields of 10 x 10 pixels, every fifth pixel without reference."""
    rng = np.random.default_rng(5)
    labels = np.kron(rng.integers(1, 5, size=(6, 7)), np.ones((10, 10), dtype=int))
    labels[rng.random(labels.shape) < 0.2] = 0
    return labels


@pytest.mark.parametrize("buffer", [0, 1, 4])
def test_the_gap_separates_all_pairs(fields, buffer) -> None:
    whole = hr.sample_blocks(fields, block_size=9, buffer=buffer, seed=2)
    thin = hr.sample_blocks(fields, block_size=9, buffer=buffer, n_per_class=5, seed=2)
    assert chebyshev_distance(whole[0] > 0, whole[1] > 0) > buffer
    np.testing.assert_array_equal(whole[1], thin[1])  # thinning leaves the test pixels alone
    assert np.bincount(thin[0].ravel()).tolist()[1:] == [5, 5, 5, 5]
    assert (whole[0][thin[0] > 0] == thin[0][thin[0] > 0]).all()


def test_training_takes_whole_blocks(fields) -> None:
    train, test = hr.sample_blocks(fields, block_size=9, buffer=0, seed=2)
    for top in range(0, fields.shape[0], 9):
        for left in range(0, fields.shape[1], 9):
            window = np.s_[top : top + 9, left : left + 9]
            inside = train[window] > 0
            assert not inside.any() or (inside == (fields[window] > 0)).all()
    assert (train + test == fields).all()  # with no gap, what is not trained on is tested


def test_every_class_gets_about_its_fraction(fields) -> None:
    train, _ = hr.sample_blocks(fields, block_size=5, buffer=0, fraction=0.3, seed=0)
    shares = np.bincount(train.ravel(), minlength=5)[1:] / np.bincount(fields.ravel())[1:]
    # at least the wanted part; a last block adds up to 25 pixels, 5 % of the smallest class
    assert shares.min() >= 0.295
    assert shares.max() <= 0.5


def test_indian_pines_splits_with_a_gap() -> None:
    _, labels = hr.load_indian_pines()
    with pytest.warns(EmptyClassWarning, match="Grass-pasture-mowed"):  # 28 pixels in one block
        train, test = hr.sample_blocks(labels)
    counts = np.bincount(labels.values.ravel())
    kept = np.bincount(train.values.ravel(), minlength=17)
    assert (2 * kept[1:] <= counts[1:]).all()
    assert np.count_nonzero(kept[1:]) == 15
    assert np.count_nonzero(np.bincount(test.values.ravel(), minlength=17)[1:]) == 16
    assert chebyshev_distance(train.values > 0, test.values > 0) > 4


def test_a_given_split_comes_back_unchanged_with_a_report_of_empty_classes() -> None:
    given = [labelled(np.array([v], np.uint8)) for v in ([1, 2, 0, 0], [0, 0, 1, 0])]
    with pytest.warns(EmptyClassWarning, match=r"No test pixel for class 2 \(water"):
        split = hr.given_split(*given)
    for before, after in zip(given, split, strict=True):
        np.testing.assert_array_equal(before, after)
        assert after.attrs["sampling"] == "given"
        assert after.attrs["classes_without_test"] == [2]
        assert "sampling" not in before.attrs
    with pytest.warns(EmptyClassWarning, match="No training pixel for class 2"):
        hr.given_split(np.array([[1, 0, 0]]), np.array([[0, 1, 2]]))
