"""Samples: every pixel has its chance, and the file of the design says how it was drawn."""

from math import comb

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import InputError
from tests.certification.scenes import placed, ranked_map


def test_every_pair_of_pixels_is_drawn_equally_often() -> None:
    label = np.ones((2, 3), dtype=int)
    n_draws = 1500
    counts = np.zeros((6, 6))
    for seed in range(n_draws):
        sample = hr.draw_sample(label, 2, seed=seed)
        first, second = sorted(sample.row * 3 + sample.column)
        counts[first, second] += 1
    expected = n_draws / comb(6, 2)
    found = counts[np.triu_indices(6, 1)]
    # chi-squared with 14 degrees of freedom stays below 36.1 in 999 of 1,000 cases
    assert ((found - expected) ** 2 / expected).sum() < 36.1


def test_no_pixel_twice_none_without_data_and_none_excluded() -> None:
    label = np.array([[1, 2, 0, 255], [1, 1, 2, 255]], dtype=np.uint8)
    train = np.array([[1, 0, 0, 0], [0, 0, 2, 0]])
    sample = hr.draw_sample(label, 4, exclude=train)
    assert sorted(zip(sample.row.tolist(), sample.column.tolist(), strict=True)) == [
        (0, 1), (0, 2), (1, 0), (1, 1),
    ]  # fmt: skip
    assert sample.design.n_pixels == 4
    assert set(sample.inclusion_probability) == {1.0}


def test_a_smaller_random_sample_is_the_beginning_of_a_larger_one() -> None:
    label, _, _ = ranked_map()
    small, large = hr.draw_sample(label, 20, seed=3), hr.draw_sample(label, 50, seed=3)
    np.testing.assert_array_equal(large.row[:20], small.row)
    np.testing.assert_array_equal(large.column[:20], small.column)
    other = hr.draw_sample(label, 20, seed=4)
    assert (other.row != small.row).any()


def test_strata_get_half_in_equal_parts_and_half_by_area_at_least_two() -> None:
    label = np.repeat([1, 2, 3, 0], [960, 30, 4, 6]).reshape(10, 100)
    sample = hr.draw_sample(label, 80, design="stratified")
    counts = dict(zip(*np.unique(sample.label, return_counts=True), strict=True))
    # 10 each, and 38.4, 1.2, 0.16 and 0.24 by area; what the last two do not have, the others share
    assert counts == {1: 54, 2: 16, 3: 4, 0: 6}
    sizes = {1: 960, 2: 30, 3: 4, 0: 6}
    assert dict(zip(sample.label, sample.stratum_pixels, strict=True)) == sizes
    np.testing.assert_allclose(
        sample.inclusion_probability, [counts[k] / sizes[k] for k in sample.label]
    )


def test_numbers_of_strata_and_order_do_not_give_the_label_away() -> None:
    label = np.repeat([1, 2, 3, 4, 5, 6], 100).reshape(6, 100)
    sample = hr.draw_sample(label, 60, design="stratified", seed=1)
    names = {int(k): int(h) for k, h in zip(sample.label, sample.stratum, strict=True)}
    assert sorted(names.values()) == [1, 2, 3, 4, 5, 6]
    assert names != {k: k for k in names}
    assert (np.diff(sample.label) != 0).sum() > 30


def test_the_design_knows_its_map_whatever_the_type_it_is_stored_in() -> None:
    label, _, _ = ranked_map()
    with_hole = label.copy()
    with_hole[0, 0] = np.iinfo(label.dtype).max
    narrow = np.where(with_hole > 3, 255, with_hole).astype(np.uint8)
    lazy = xr.DataArray(narrow, dims=("y", "x")).chunk(17)
    ids = {hr.draw_sample(one, 5).design.map_id for one in (with_hole, narrow, lazy)}
    assert len(ids) == 1
    assert hr.draw_sample(label, 5).design.map_id not in ids


def test_labels_of_a_reference_map_at_the_points() -> None:
    label, _, truth = ranked_map()
    sample = hr.draw_sample(placed(label), 30).with_reference(np.where(truth == 3, 9, truth))
    found = truth[sample.row, sample.column]
    np.testing.assert_array_equal(sample.reference, np.where(found == 3, 9, found))
    assert sample.classes.name_of(9) == "class 9"
    with pytest.raises(InputError, match="80 rows"):
        sample.with_reference(truth[:10])


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"n": 0}, "at least 1"),
        ({"n": 8001}, "8000"),
        ({"n": 5, "design": "stratified"}, "at least 6"),
        ({"n": 5, "design": "systematic"}, "systematic"),
        ({"n": 5, "seed": -1}, "seed"),
        ({"n": 5, "exclude": np.ones((3, 3), dtype=int)}, "3 rows"),
    ],
)
def test_bad_input_is_refused(options, word) -> None:
    label, _, _ = ranked_map()
    with pytest.raises(InputError, match=word):
        hr.draw_sample(label, **options)


@pytest.mark.parametrize(
    "label", [np.ones((2, 2)), np.array([[-1, 2]]), np.full((2, 2), 255, dtype=np.uint8)]
)
def test_what_is_not_a_label_map_is_refused(label) -> None:
    with pytest.raises(InputError, match="label"):
        hr.draw_sample(label, 1)
