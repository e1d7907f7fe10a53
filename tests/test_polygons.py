import numpy as np
import pytest
import xarray as xr

from hsreject.sampling.draws import sample_fraction, sample_per_class
from hsreject.sampling.polygons import clump_size, polygon_folds, polygon_numbers


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
    assert clump_size(sample_per_class(field, 50)[0]) < 1.6
    assert clump_size(sample_fraction(field, 0.05)[0]) < 1.6
    assert clump_size(digitised()) == 25
    assert np.isnan(clump_size(np.zeros((3, 3), dtype=int)))


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
