"""Distances to the training pixels and their p-values, against counting pixel by pixel."""

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject import schema
from hsreject.errors import InputError
from hsreject.rejection.novelty import RankReference, quantiles, share_below


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


def test_distances_and_p_values_by_counting(features, training) -> None:
    novelty = hr.Novelty().fit(features, training)
    found = novelty.distance(features)
    assert found.dims == schema.FIELD_DIMS
    assert found.category.values.tolist() == [2, 5]
    expected = counted_distance(features, training)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    nearest = expected.min(axis=0)
    known = np.sort(nearest[~np.isnan(nearest)])
    p_value = novelty.p_value(features)
    assert (p_value.name, p_value.dtype, p_value.dims) == ("novelty_p_value", "f4", ("y", "x"))
    for place in np.argwhere(~np.isnan(nearest)):
        at_least_as_far = (known >= nearest[tuple(place)]).sum() / known.size
        # 201 quantiles of 155 distances: a place more or less, and training pixels are all at 0
        wanted = at_least_as_far if nearest[tuple(place)] else 1 - 5.5 / known.size
        assert abs(p_value.values[tuple(place)] - wanted) < 1.5 / known.size


def test_far_pixels_are_novel_and_nodata_is_nodata(features, training) -> None:
    p_value = hr.Novelty().fit(features, training).p_value(features)
    np.testing.assert_array_equal(np.isnan(p_value), np.isnan(features[0]))
    novel = np.zeros(p_value.shape, dtype=bool)
    novel[7:9, 7:9] = True
    known = ~novel & ~np.isnan(p_value.values)
    assert p_value.values[novel].max() < p_value.values[known].min()
    xr.testing.assert_equal(p_value.y, features.y)


def test_chunks_and_bad_bands_change_nothing(features, training) -> None:
    novelty = hr.Novelty().fit(features, training)
    wider = xr.concat([features, features[:1] * 100], "band")
    wider = wider.assign_coords(good_band=("band", [True, True, True, True, False]))
    for method in ("distance", "p_value"):
        expected = getattr(novelty, method)(features)
        lazy = getattr(novelty, method)(features.chunk({"y": 5, "x": 4}))
        assert lazy.chunks is not None
        xr.testing.assert_identical(lazy.compute(), expected)
        wide = getattr(hr.Novelty().fit(wider, training), method)(wider)
        np.testing.assert_array_equal(wide.values, expected.values)


def test_many_training_pixels_are_thinned(features, training) -> None:
    novelty = hr.Novelty(n_per_class=2).fit(features, training)
    plain = features.values.astype(np.float64)
    expected = plain[:, [6, 9, 0, 3], [0, 0, 10, 10]].T  # every third of six, class by class
    np.testing.assert_array_equal(novelty.samples_, expected)
    few = novelty.distance(features)
    assert (few >= hr.Novelty().fit(features, training).distance(features)).sum() == 2 * 155


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
            share = float((novelty.p_value(scene) <= level).mean())
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
    rng = np.random.default_rng(2)
    confidence, distance = rng.random((2, 9, 9))
    one, same = (RankReference.of(confidence, distance) for _ in range(2))
    assert one == same
    assert hash(one) == hash(same)
    assert one != RankReference.of(distance, confidence)


def test_what_cannot_work_is_refused(features, training) -> None:
    novelty = hr.Novelty().fit(features, training)
    for message, call in {
        "on 4 features but is given 3": lambda: novelty.distance(features[:3]),
        "training labels has 11 rows": lambda: hr.Novelty().fit(features, training[:11]),
        "1.5": lambda: hr.Novelty(n_per_class=1.5).fit(features, training),
        "got 0": lambda: hr.Novelty(n_per_class=0).fit(features, training),
        "no training pixel": lambda: hr.Novelty().fit(features, training * 0),
    }.items():
        with pytest.raises(InputError, match=message):
            call()
