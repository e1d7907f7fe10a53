"""Partitions: given ones, superpixels, and what nodata does to them."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.context.prior import Grid
from hsreject.context.priors.graph_tv import slic_partition
from hsreject.errors import InputError
from tests.context.scenes import example_image, grid_of, random_probability, regions, with_hole

HALVES = np.repeat([[5, 5, 5, -2, -2, -2]], 4, axis=0)


def small_grid(valid: np.ndarray) -> Grid:
    return Grid(valid, n_classes=2, dtype=np.dtype(float))


def test_the_value_is_the_squared_distance_to_the_mean_of_the_valid_pixels_of_a_segment() -> None:
    valid = np.ones((4, 6), dtype=bool)
    valid[1, 1] = valid[3, 5] = False
    term = hr.GraphTV(0.7, partitions=HALVES).bind(small_grid(valid))
    field = np.random.default_rng(0).standard_normal((4, 2, 6))
    segments = [field[:, k][valid & (name == HALVES)] for name in (5, -2) for k in range(2)]
    wanted = 0.7 * sum(((values - values.mean()) ** 2).sum() for values in segments)
    assert term.value(term.forward(field)) == pytest.approx(wanted, rel=1e-12)


def test_duals_are_feasible_only_where_segments_have_mean_zero() -> None:
    term = hr.GraphTV(2.0, partitions=HALVES).bind(small_grid(np.ones((4, 6), bool)))
    dual = term.prox_conjugate(np.random.default_rng(1).standard_normal((1, 2, 4, 6)), 1.0)
    assert term.conjugate(dual) == pytest.approx((dual**2).sum() / 8, rel=1e-12)
    assert term.conjugate(dual + 1e-6) == np.inf


def segments_of(labels: np.ndarray, valid: np.ndarray) -> np.ndarray:
    return hr.GraphTV(partitions=labels).bind(small_grid(valid)).partitions[0].index


def test_a_label_on_both_sides_of_a_gap_names_two_segments() -> None:
    valid = np.ones((3, 5), dtype=bool)
    valid[:, 2] = False
    index = segments_of(np.ones((3, 5), int), valid)
    assert set(index[:, :2].ravel()) == {0}
    assert set(index[:, 3:].ravel()) == {1}


def test_pixels_of_a_label_that_do_not_touch_are_one_segment() -> None:
    index = segments_of(np.array([[1, 2, 1, 2, 1]]), np.ones((1, 5), bool))
    assert index.tolist() == [[0, 1, 0, 1, 0]]


def test_partitions_come_in_many_forms() -> None:
    probability = random_probability((2, 4, 6), seed=3)
    wanted = hr.SegSALSA(hr.GraphTV(2.0, partitions=HALVES)).solve(probability)
    for partitions in (
        HALVES.astype(np.uint8),
        xr.DataArray(HALVES, dims=("y", "x")),
        xr.DataArray(HALVES.T, dims=("x", "y")),
        [HALVES],
        HALVES[np.newaxis],
    ):
        result = hr.SegSALSA(hr.GraphTV(2.0, partitions=partitions)).solve(probability)
        np.testing.assert_array_equal(result.hidden_field, wanted.hidden_field)


def test_several_partitions_are_the_sum_of_the_single_ones() -> None:
    rows = np.repeat(np.arange(4)[:, None], 6, axis=1)
    probability = random_probability((3, 4, 6), seed=4)
    together = hr.GraphTV(0.8, partitions=[HALVES, rows])
    apart = [hr.GraphTV(0.8, partitions=HALVES), hr.GraphTV(0.8, partitions=rows)]
    results = [
        hr.SegSALSA(p, tol=1e-8, dtype="float64").solve(probability) for p in (together, apart)
    ]
    np.testing.assert_allclose(results[0].hidden_field, results[1].hidden_field, atol=1e-3)
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-7)


def test_bad_options_are_refused() -> None:
    for options, message in (
        ({"partitions": HALVES[0]}, r"axes \(y, x\)"),
        ({"partitions": HALVES.astype(float)}, "float64"),
        ({"partitions": []}, "empty"),
        ({"partitions": 12}, "int"),
        ({"partitions": HALVES, "n_segments": 4}, "not both"),
        ({"n_segments": 0}, "n_segments"),
        ({"n_segments": []}, "n_segments"),
        ({"n_segments": 2.5}, "n_segments"),
    ):
        with pytest.raises(InputError, match=message):
            hr.GraphTV(**options)


def test_a_partition_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match=r"\(3, 6\) \(got \(4, 6\)\)"):
        hr.SegSALSA(hr.GraphTV(partitions=HALVES)).solve(random_probability((2, 3, 6), seed=0))


def test_superpixels_need_the_image() -> None:
    with pytest.raises(InputError, match="image"):
        hr.SegSALSA(hr.GraphTV()).solve(random_probability((2, 3, 6), seed=0))


def test_superpixels_follow_the_image() -> None:
    # two flat halves: no superpixel reaches across
    image = np.zeros((2, 20, 20))
    image[:, :, 9:] = 1.0
    partition = slic_partition(image, np.ones((20, 20), bool), 16)
    assert not set(partition[:, :9].ravel()) & set(partition[:, 9:].ravel())
    assert 8 <= len(np.unique(partition)) <= 24


def test_superpixels_cover_the_valid_pixels_and_no_other() -> None:
    valid = with_hole()
    for n_segments in (1, 2, 5, 20, 45, 46, 1000):
        partition = slic_partition(example_image((3, 7, 9), seed=5), valid, n_segments)
        assert (partition[valid] > 0).all()
        assert not partition[~valid].any()
        assert len(np.unique(partition[valid])) <= 2 * n_segments


def test_superpixels_do_not_depend_on_what_surrounds_the_footprint() -> None:
    image = example_image((3, 10, 12), seed=6)
    whole = slic_partition(image, np.ones((10, 12), bool), 8)
    valid = np.pad(np.ones((10, 12), bool), ((2, 3), (1, 4)))
    padded = slic_partition(np.pad(image, ((0, 0), (2, 3), (1, 4))), valid, 8)
    np.testing.assert_array_equal(padded[2:-3, 1:-4], whole)


def test_superpixels_do_not_depend_on_the_units_of_the_image() -> None:
    grid = grid_of(with_hole(12, 14))
    assert grid.image is not None
    other = Grid(grid.valid, 3, grid.dtype, 1000 * grid.image + 7)
    first, second = (hr.GraphTV(n_segments=9).bind(g).partitions[0].index for g in (grid, other))
    np.testing.assert_array_equal(first, second)


def test_default_scales_grow_with_the_scene() -> None:
    counts = [
        [s.index.max() + 1 for s in hr.GraphTV().bind(grid_of(np.ones(shape, bool))).partitions]
        for shape in ((20, 30), (40, 60))
    ]
    assert counts[0] == sorted(counts[0])
    assert np.all(np.array(counts[1]) > 2 * np.array(counts[0]))


def test_a_large_weight_makes_each_segment_one_answer() -> None:
    probability = regions((3, 6, 9), seed=7)
    partition = np.arange(6)[:, None] // 3 * 3 + np.arange(9) // 3
    segsalsa = hr.SegSALSA(hr.GraphTV(1e4, partitions=partition), tol=1e-5, dtype="float64")
    field = segsalsa.solve(probability).hidden_field
    for segment in range(6):
        members = partition == segment
        assert np.ptp(field[:, members], axis=1).max() < 1e-3
