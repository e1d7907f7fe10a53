"""Distances to the training pixels and their p-values, against counting pixel by pixel."""

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject import schema
from hsreject.errors import InputError
from hsreject.rejection.novelty import (
    RankReference,
    conformal_p_value,
    quantiles,
    share_below,
)


@pytest.fixture
def features() -> xr.DataArray:
    values = np.random.default_rng(0).normal(size=(4, 12, 13)).astype(np.float32)
    values[:, 2, 3] = np.nan
    values[:, 7:9, 7:9] += 12  # like nothing else
    coords = {"y": np.arange(12.0), "x": np.arange(13.0)}
    return xr.DataArray(values, dims=schema.CUBE_DIMS, coords=coords)


@pytest.fixture
def training(features) -> xr.DataArray:
    labels = xr.zeros_like(features.isel(band=0, drop=True), dtype=np.uint8)
    labels[:6, 10] = 5
    labels[6:, 0] = 2
    return labels


def counted_distance(features, training) -> np.ndarray:
    """Distances (category, y, x) to the nearest training pixel of each class, one by one."""
    plain = features.values.astype(np.float64)
    found = np.full((2, *training.shape), np.nan)
    for (y, x), _ in np.ndenumerate(training.values):
        for k, value in enumerate((2, 5)):
            apart = plain[:, training.values == value] - plain[:, y, x, None]
            found[k, y, x] = np.linalg.norm(apart, axis=0).min()
    return found


def left_out_distances(features, training) -> np.ndarray:
    """Distance of each training pixel to the nearest other one of its class, one by one."""
    found = []
    for value in (2, 5):
        samples = features.values[:, training.values == value].T.astype(np.float64)
        for i, sample in enumerate(samples):
            others = np.delete(samples, i, axis=0)
            found.append(np.linalg.norm(others - sample, axis=1).min())
    return np.array(found)


def test_p_values_by_counting(features, training) -> None:
    p_value = hr.Novelty().fit(features, training).p_value(features)
    assert (p_value.name, p_value.dtype) == ("class_p_value", "f4")
    assert p_value.dims == schema.FIELD_DIMS
    assert p_value.category.values.tolist() == [2, 5]
    distance = counted_distance(features, training)
    left_out = left_out_distances(features, training)
    n = left_out.size
    for place in np.argwhere(~np.isnan(distance)):
        one = distance[tuple(place)]
        steps = (1 + (left_out >= one).sum()) / (n + 1)
        nearer = left_out[left_out < one].max(initial=0)
        above = (1 + (left_out >= nearer).sum()) / (n + 1)
        # Interpolation stays within one step, on the safe side; float32 holds seven digits.
        assert steps - 1e-6 <= p_value.values[tuple(place)] <= above + 1e-6


def test_rarity_is_a_share_of_the_training_scene(features, training) -> None:
    rarity = hr.Novelty().fit(features, training).rarity(features)
    assert (rarity.name, rarity.dtype, rarity.dims) == ("rarity", "f4", ("y", "x"))
    nearest = counted_distance(features, training).min(axis=0)
    known = nearest[~np.isnan(nearest)]
    for place in np.argwhere(nearest > 0):  # training pixels are all at 0
        at_least_as_far = (known >= nearest[tuple(place)]).mean()
        assert abs(rarity.values[tuple(place)] - at_least_as_far) < 1.5 / known.size  # quantiles


@pytest.mark.parametrize("method", ["p_value", "rarity"])
def test_far_pixels_are_novel_and_nodata_is_nodata(features, training, method) -> None:
    found = getattr(hr.Novelty().fit(features, training), method)(features)
    found = found.max("category") if method == "p_value" else found
    np.testing.assert_array_equal(np.isnan(found), np.isnan(features[0]))
    novel = np.zeros(found.shape, dtype=bool)
    novel[7:9, 7:9] = True
    known = ~novel & ~np.isnan(found.values)
    assert found.values[novel].max() < found.values[known].min()
    xr.testing.assert_equal(found.y, features.y)


def test_known_samples_are_rarely_called_novel() -> None:
    """P(p <= level) <= level, over draws of training and test pixels of one distribution."""
    rng = np.random.default_rng(1)
    levels = np.array([0.05, 0.1, 0.2, 0.5])
    hits, n_draws = np.zeros(levels.size), 100
    labels = np.zeros((2, 60), dtype=int)
    labels[0, :30] = 1
    labels[1, :30] = 2
    training = xr.DataArray(labels, dims=schema.MAP_DIMS)
    for _ in range(n_draws):
        values = rng.standard_t(df=3, size=(3, 2, 60))  # heavy tails
        values[0, 1] += 40  # far apart, so that the classes do not help each other
        features = xr.DataArray(values, dims=schema.CUBE_DIMS)
        found = hr.Novelty().fit(features, training).p_value(features).max("category")
        hits += (found.values[labels == 0][:, None] <= levels).mean(axis=0)
    spread = np.sqrt(levels * (1 - levels) / n_draws)  # the training draws are what varies
    assert (hits / n_draws <= levels + 3 * spread).all()
    assert (hits / n_draws)[1:] == pytest.approx(levels[1:], rel=0.3)  # and not much too careful


def test_p_value_falls_strictly_beyond_what_was_seen() -> None:
    distance = np.linspace(0.5, 50, 200)
    p_value = conformal_p_value(distance, np.array([1.0, 2.0, 3.0]))
    assert (np.diff(p_value[distance >= 1]) < 0).all()
    assert p_value.min() > 1 / 4
    assert conformal_p_value(np.array([0.0, 1.0]), np.zeros(3)).tolist() == [1.0, 0.25]


def test_chunks_and_bad_bands_change_nothing(features, training) -> None:
    novelty = hr.Novelty().fit(features, training)
    wider = xr.concat([features, features[:1] * 100], "band")
    wider = wider.assign_coords(good_band=("band", [True, True, True, True, False]))
    for method in ("p_value", "rarity"):
        expected = getattr(novelty, method)(features)
        lazy = getattr(novelty, method)(features.chunk({"y": 5, "x": 4}))
        assert lazy.chunks is not None
        xr.testing.assert_identical(lazy.compute(), expected)
        wide = getattr(hr.Novelty().fit(wider, training), method)(wider)
        np.testing.assert_array_equal(wide.values, expected.values)


def test_classes_of_one_training_pixel(features, training) -> None:
    alone = training.where(training == 5, 0)
    alone[6, 0] = 2
    assert hr.Novelty().fit(features, alone).left_out_.size == 6
    alone[1:6, 10] = 0
    apart = features[:, 0, 10] - features[:, 6, 0]
    np.testing.assert_allclose(
        hr.Novelty().fit(features, alone).left_out_, np.linalg.norm(apart), rtol=1e-6
    )


def test_many_training_pixels_are_thinned(features, training) -> None:
    novelty = hr.Novelty(n_per_class=2).fit(features, training)
    plain = features.values.astype(np.float64)
    expected = plain[:, [6, 9, 0, 3], [0, 0, 10, 10]].T  # every third of six, class by class
    np.testing.assert_array_equal(novelty.samples_, expected)


def test_one_in_a_hundred_of_the_same_kind_is_novel() -> None:
    rng = np.random.default_rng(1)
    one, other = (
        xr.DataArray(rng.standard_t(df=3, size=(3, 100, 100)), dims=schema.CUBE_DIMS)  # long tails
        for _ in range(2)
    )
    training = xr.zeros_like(one[0], dtype=int)
    training[::20, ::20] = 1
    training[10::20, 10::20] = 2
    novelty = hr.Novelty().fit(one, training)
    for scene in (one, other):
        for level in (0.01, 0.05, 0.3):
            share = float((novelty.rarity(scene) <= level).mean())
            assert share == pytest.approx(level, abs=4 * np.sqrt(level / 10_000))


def test_shares_of_ties_and_beyond_the_ends() -> None:
    assert share_below([1.0, 2.0, 3.0], np.full(5, 2.0)).tolist() == [0.5, 0.5, 0.5]
    table = quantiles([0.0, 0.0, 0.0, 1.0, np.nan, 4.0])
    assert (table[0], table[-1], len(table)) == (0, 4, 201)
    below = share_below([-1, 0, 0.5, 1, 2, 4, 9], table)
    assert (np.diff(below) >= 0).all()
    assert below[1] == pytest.approx(0.25, abs=0.005)  # half of the three at 0, in steps of 1/4
    assert below[3:].tolist() == pytest.approx([0.75, 0.75 + 0.25 / 3, 1, 1])
    assert np.isnan(share_below([np.nan], table)).all()


def test_references_are_equal_where_their_scenes_are() -> None:
    confidence = np.random.default_rng(2).random((9, 9))
    one, same = (RankReference.of(confidence) for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    assert one != RankReference.of(confidence / 2)
    assert one.rank([-1.0, 2.0]).tolist() == [0, 1]


def test_what_cannot_work_is_refused(features, training) -> None:
    novelty = hr.Novelty().fit(features, training)
    for message, call in {
        "on 4 features but is given 3": lambda: novelty.p_value(features[:3]),
        "training labels has 11 rows": lambda: hr.Novelty().fit(features, training[:11]),
        "1.5": lambda: hr.Novelty(n_per_class=1.5).fit(features, training),
        "got 0": lambda: hr.Novelty(n_per_class=0).fit(features, training),
        "no training pixel": lambda: hr.Novelty().fit(features, training * 0),
    }.items():
        with pytest.raises(InputError, match=message):
            call()
