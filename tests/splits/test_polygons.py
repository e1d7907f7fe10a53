import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from benchmarks.bench_truth import reports
from hsreject.errors import EmptyClassWarning, InputError
from hsreject.splits.draws import sample_fraction, sample_per_class
from hsreject.splits.polygons import (
    ADVICE,
    LEFT_OUT,
    cluster_size,
    polygon_folds,
    polygon_numbers,
    touching_share,
)


def digitised(n_polygons: int = 3, side: int = 5) -> np.ndarray:
    """Return two classes of `n_polygons` square polygons each."""
    labels = np.zeros((4 * side, 4 * side * n_polygons), dtype=np.uint8)
    for number in range(n_polygons):
        labels[:side, 4 * side * number :][:, :side] = 1
        labels[3 * side :, 4 * side * number :][:, :side] = 2
    return labels


def pixels(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    positions = np.argwhere(labels)
    return labels[labels > 0], polygon_numbers(labels)[labels > 0], positions


def test_connected_regions_are_polygons_across_gaps_of_two() -> None:
    row = np.array([[1, 0, 0, 1, 0, 0, 0, 1, 2]])
    assert polygon_numbers(row).tolist() == [[1, 0, 0, 1, 0, 0, 0, 2, 3]]


def test_features_of_a_vector_file_decide_where_they_are_known() -> None:
    labels = xr.DataArray(
        np.array([[1, 1, 2, 0]]), dims=("y", "x"), coords={"polygon": (("y", "x"), [[7, 4, 4, 9]])}
    )
    assert polygon_numbers(labels).tolist() == [[2, 1, 1, 0]]


def test_scattered_pixels_and_polygons_are_told_apart() -> None:
    field = np.repeat(np.repeat(np.arange(1, 5).reshape(2, 2), 60, axis=0), 60, axis=1)
    assert cluster_size(sample_per_class(field, 50)[0]) < 1.6
    assert cluster_size(sample_fraction(field, 0.05)[0]) < 1.6
    assert cluster_size(digitised()) == 25
    assert np.isnan(cluster_size(np.zeros((3, 3), dtype=int)))


def test_classes_of_a_map_touch_and_those_of_polygons_do_not() -> None:
    assert touching_share(np.array([[7, 7, 7, 2, 2, 0, 5, 5]])) == pytest.approx(2 / 7)
    assert touching_share(np.array([[7, 0, 2], [0, 0, 0], [2, 0, 9]])) == 0


@pytest.mark.parametrize("seed", range(5))
def test_folds_part_no_polygon(seed: int) -> None:
    classes, polygons, positions = pixels(digitised(3))
    fold = polygon_folds(classes, polygons, positions, 5, seed=seed)
    for polygon in np.unique(polygons):
        assert len(set(fold[polygons == polygon])) == 1
    for value in (1, 2):
        assert len(set(fold[classes == value])) == 3
        for left_out in set(fold[classes == value]):
            assert (fold[classes == value] != left_out).any()


def test_the_only_polygon_of_a_class_is_halved_across_its_longest_axis() -> None:
    labels = np.zeros((9, 9), dtype=int)
    labels[2:4, 1:9] = 1
    labels[8, 0] = 2
    fold = np.full(labels.shape, -2)
    fold[labels > 0] = polygon_folds(*pixels(labels), 5)
    halves = fold[2:4, 1:5], fold[2:4, 5:9]
    assert {len(set(half.ravel())) for half in halves} == {1}
    assert halves[0][0, 0] != halves[1][0, 0]
    assert fold[8, 0] == -1  # the only pixel of its class stays


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_per_class", [None, 10])
def test_a_split_parts_no_polygon(seed: int, n_per_class: int | None) -> None:
    labels = xr.DataArray(digitised(5), dims=("y", "x"))
    numbers = polygon_numbers(labels)
    train, test = hr.sample_polygons(labels, seed=seed, n_per_class=n_per_class)
    ours, theirs = (set(numbers[part.values > 0]) for part in (train, test))
    assert not ours & theirs
    assert len(ours) + len(theirs) == 10
    assert "whole polygons" in train.attrs["sampling_meaning"].lower()
    assert (ADVICE in train.attrs) == (len(ours) < 10)
    if n_per_class:
        assert np.bincount(train.values.ravel())[1:].tolist() == [10, 10]
        sizes = np.bincount(numbers[train.values > 0])
        assert np.ptp(sizes[sizes > 0]) <= 2  # spread evenly: 10 pixels over 2 or 3 polygons
        assert cluster_size(train) >= 3  # thinned, but still known to lie in polygons


def test_the_only_polygon_of_a_class_is_halved_with_a_gap_or_not_tested() -> None:
    labels = digitised(3).astype(int)
    labels[:12, 50:] = 0
    labels[:10, 50:] = 3
    train, test = hr.sample_polygons(labels, buffer=2)
    learned, tested = np.argwhere(train == 3), np.argwhere(test == 3)
    gaps = np.abs(learned[:, None] - tested[None]).max(axis=2)
    assert gaps.min() == 3
    labels[labels == 3] = 0
    labels[0, 55:57] = 3  # too small to be halved
    with pytest.warns(EmptyClassWarning, match="No test pixel for class 3"):
        train, test = hr.sample_polygons(labels, buffer=2)
    assert np.count_nonzero(train == 3) == 2
    with pytest.raises(InputError, match="one polygon"):
        hr.sample_polygons(np.pad(np.ones((4, 4), dtype=int), 3))


def test_polygons_that_all_touch_are_refused() -> None:
    labels = np.zeros((12, 30), dtype=int)
    labels[2:10, :10], labels[2:10, 10:20], labels[2:10, 20:] = 1, 2, 3
    with pytest.raises(InputError, match="all 3 classes touch"):
        hr.sample_polygons(labels)
    labels[2:10, 18:22] = 0  # one of them lies apart
    assert all((part > 0).any() for part in hr.sample_polygons(labels, buffer=0))


def test_where_every_polygon_is_needed_none_is_for_testing() -> None:
    labels = xr.DataArray(digitised(2), dims=("y", "x"))
    train, test = hr.sample_polygons(labels, fraction=1)
    np.testing.assert_array_equal(train, labels)
    assert not test.any()
    assert train.attrs[LEFT_OUT] == test.attrs[LEFT_OUT] == "polygons"


def test_the_accuracy_of_polygons_left_out_is_their_mean() -> None:
    reference, label = np.repeat([1, 1, 1, 2], 4), np.repeat([1, 1, 2, 1], 4)
    polygon = np.repeat([1, 2, 3, 4], 4)
    label[:2] = 2
    estimate = hr.left_out_accuracy(reference, label, polygon)
    assert estimate.accuracy == pytest.approx(0.5)  # of 0.5, 1 and 0; class 2 has one polygon
    assert estimate.standard_error == pytest.approx(0.5 / np.sqrt(3))
    assert "3 polygons" in str(estimate)
    assert "cannot be estimated" in str(hr.left_out_accuracy([1, 2], [1, 2], [1, 2]))


def test_given_parts_get_one_numbering() -> None:
    def part(values: list[list[int]]) -> xr.DataArray:
        array = xr.DataArray(np.array(values), dims=("y", "x"))
        return array.assign_coords(polygon=(("y", "x"), np.minimum(values, 1)))

    train, test = hr.given_split(part([[1, 0, 2, 0]]), part([[0, 1, 0, 2]]))
    assert train.polygon.values.tolist() == test.polygon.values.tolist() == [[1, 2, 1, 2]]
    xr.Dataset({"train": train, "test": test})


def test_whole_polygons_tell_the_truth_about_a_scene_and_random_pixels_do_not() -> None:
    drawn = [reports(hr.SceneClassifier("lda"), seed) for seed in range(100, 104)]
    bias = {
        name: 100 * np.mean([one[name].reported - one[name].truth for one in drawn])
        for name in drawn[0]
    }
    assert bias["random pixels of the polygons"] > 8
    assert -9 < bias["whole polygons"] < 9  # a draw strays by 8, so their mean by 4
    held = [one["whole polygons"].low <= one["whole polygons"].truth for one in drawn]
    assert np.mean(held) > 0.8
