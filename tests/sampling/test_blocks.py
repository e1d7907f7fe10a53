"""Blocks: whole blocks for training, and a gap that holds for every pair of pixels."""

import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import EmptyClassWarning


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
@pytest.mark.parametrize("n_per_class", [None, 5])
def test_the_gap_separates_all_pairs(fields, buffer, n_per_class) -> None:
    train, test = hr.sample_blocks(
        fields, block_size=9, buffer=buffer, n_per_class=n_per_class, seed=2
    )
    assert chebyshev_distance(train > 0, test > 0) > buffer


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


def test_thinning_leaves_the_test_pixels_alone(fields) -> None:
    whole = hr.sample_blocks(fields, block_size=9, seed=2)
    thin = hr.sample_blocks(fields, block_size=9, n_per_class=5, seed=2)
    np.testing.assert_array_equal(whole[1], thin[1])
    assert np.bincount(thin[0].ravel()).tolist()[1:] == [5, 5, 5, 5]
    assert (whole[0][thin[0] > 0] == thin[0][thin[0] > 0]).all()


def test_a_class_inside_one_block_is_reported() -> None:
    labels = np.ones((30, 30), dtype=np.uint8)
    labels[2:5, 2:5] = 2
    with pytest.warns(EmptyClassWarning, match=r"No training pixel for class 2"):
        train, test = hr.sample_blocks(labels, block_size=10, buffer=1)
    assert not (train == 2).any()
    assert (test == 2).any()


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
