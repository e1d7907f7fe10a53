"""Per-class thresholds against thresholds found one class at a time."""

import numpy as np
import pytest

from hsreject.errors import InputError
from hsreject.rejection import Calibration, PixelwiseRejector
from hsreject.rejection.class_balance import equal_accuracy, equal_rejection
from tests.rejection.scene import make_scene


@pytest.fixture
def pixels() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    label = rng.integers(1, 4, 600)
    confidence = np.round(rng.beta(1 + label, 2), 2)  # classes differ in confidence; many ties
    return label, confidence, rng.random(600) < confidence


def test_every_class_loses_the_same_share(pixels) -> None:
    label, confidence, _ = pixels
    balanced = equal_rejection(label, confidence)
    rejected = balanced < 0.3
    for value in (1, 2, 3):
        own = label == value
        largest_tie = np.unique(confidence[own], return_counts=True)[1].max() / own.sum()
        assert abs(rejected[own].mean() - 0.3) <= largest_tie
        kept, gone = confidence[own & ~rejected], confidence[own & rejected]
        assert gone.max() < kept.min()


@pytest.mark.parametrize("level", [0.5, 0.7, 0.8, 0.9])
def test_every_class_is_kept_as_accurately_with_the_fewest_rejections(pixels, level) -> None:
    label, confidence, correct = pixels
    used = np.arange(600) % 2 == 0
    balanced = equal_accuracy(label, confidence, used=used, correct=correct[used])
    for value in (1, 2, 3):
        own = label == value
        calibrating = own & used
        reached = [
            threshold
            for threshold in np.unique(confidence[calibrating])
            if correct[calibrating & (confidence >= threshold)].mean() >= level
        ]
        smallest = reached[0] if reached else np.inf
        if smallest == np.unique(confidence[calibrating])[0]:
            smallest = -np.inf  # nothing has to be rejected
        np.testing.assert_array_equal(balanced[own] < level, confidence[own] < smallest)


def test_a_class_without_calibration_pixels_follows_all_others(pixels) -> None:
    label, confidence, correct = pixels
    used = label != 2
    balanced = equal_accuracy(label, confidence, used=used, correct=correct[used])
    together = equal_accuracy(np.ones_like(label), confidence, used=used, correct=correct[used])
    np.testing.assert_array_equal(balanced[label == 2], together[label == 2])


def test_rejectors_with_thresholds_per_class() -> None:
    scene = make_scene()
    calibration = Calibration(scene.calibration, training=scene.training)
    maps = PixelwiseRejector(thresholds="equal_rejection").reject(scene.probability, fraction=0.3)
    for value in (2, 5, 9):
        own = maps.label == value
        assert abs(float(maps.rejected.where(own).mean()) - 0.3) <= 1 / int(own.sum())
    equal = PixelwiseRejector(thresholds="equal_accuracy")
    maps = equal.reject(scene.probability, threshold=0.75, calibration=calibration)
    kept = (maps.label_with_rejection == scene.calibration) & (scene.calibration > 0)
    for value in (2, 5, 9):
        own = (maps.label_with_rejection == value) & (scene.calibration > 0)
        assert int(own.sum()) > 5
        assert float(kept.where(own).mean()) >= 0.75
    with pytest.raises(InputError, match="thresholds='equal_accuracy' needs calibration pixels"):
        equal.reject(scene.probability, fraction=0.1)
    with pytest.raises(InputError, match="'equal_rejection', 'equal_accuracy'"):
        PixelwiseRejector(thresholds="equal")


@pytest.mark.parametrize("n_distinct", [1, 3, 10**9])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ranks_within_a_class_are_shares_below(dtype, n_distinct) -> None:
    rng = np.random.default_rng(7)
    label = rng.integers(1, 5, 200).astype(np.uint8)
    label[0] = 9  # a class of one pixel
    confidence = (rng.integers(0, n_distinct, 200) / n_distinct - 0.5).astype(dtype)
    expected = [
        np.mean(confidence[label == own] < sure)
        for own, sure in zip(label, confidence, strict=True)
    ]
    np.testing.assert_array_equal(equal_rejection(label, confidence), expected)
