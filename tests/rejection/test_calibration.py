import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import InputError
from tests.rejection.scene import CONTEXT, SMALL


def test_training_pixels_are_refused() -> None:
    n_calibration = int((SMALL.calibration > 0).sum())
    overlapping = SMALL.calibration.copy()
    y, x = np.argwhere(SMALL.training.values > 0)[0]
    overlapping[y, x] = 2
    with pytest.raises(InputError, match=f"1 of {n_calibration + 1} "):
        hr.Calibration(overlapping, training=SMALL.training)
    n_training = int((SMALL.training > 0).sum())
    with pytest.raises(InputError, match=f"{n_training} of"):
        hr.Calibration(SMALL.reference, training=SMALL.training)
    assert hr.Calibration(SMALL.reference, training=None).n_pixels == SMALL.reference.size


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros((14, 15), dtype=int), "0 everywhere"),
        (np.ones((14, 15)), "float64"),
        (np.ones(14, dtype=int), r"\(14,\)"),
        (-np.ones((14, 15), dtype=int), "found -1"),
        (np.ma.masked_equal([[1, 2]], 2), "masked"),
    ],
)
def test_what_cannot_calibrate_is_refused(labels, message) -> None:
    with pytest.raises(InputError, match=message):
        hr.Calibration(labels, training=None)


def test_the_fill_value_calibrates_nothing() -> None:
    filled = [
        labels.where(labels > 0, 255).assign_attrs(_FillValue=255)
        for labels in (SMALL.calibration, SMALL.training)
    ]
    found = hr.Calibration(filled[0], training=filled[1])
    np.testing.assert_array_equal(found.labels, SMALL.calibration)


CORNER = np.pad([[2]], ((0, 13), (0, 14)))  # has no data


@pytest.mark.parametrize("rejector", [hr.PixelwiseRejector(), hr.JointRejector(CONTEXT)], ids=repr)
@pytest.mark.parametrize(
    ("calibration", "message"),
    [
        (SMALL.calibration, "got DataArray"),
        (hr.Calibration(np.ones((3, 3), dtype=int), training=None), "reference has 3"),
        (hr.Calibration(CORNER, training=None), "none of them has data"),
    ],
)
def test_calibration_of_another_kind_or_place_is_refused(rejector, calibration, message) -> None:
    with pytest.raises(InputError, match=message):
        rejector.reject(SMALL.probability, accuracy=0.5, calibration=calibration)


def test_accuracy_and_cost_by_trying_every_threshold() -> None:
    calibration = hr.Calibration(SMALL.calibration, training=SMALL.training)
    rejector = hr.PixelwiseRejector()
    ranking = rejector.rank(SMALL.probability)
    used = (SMALL.calibration.values > 0) & ~np.isnan(ranking.confidence.values)
    correct = (ranking.label == SMALL.calibration).values[used]
    confidence = ranking.confidence.values[used]
    table = [
        (
            np.mean(confidence < t),
            correct[confidence >= t].mean(),
            np.sum(~correct[confidence >= t]),
        )
        for t in np.unique(confidence)
    ]
    for wanted in (0.7, 0.8, 0.9):
        maps = rejector.reject(SMALL.probability, accuracy=wanted, calibration=calibration)
        smallest = min(fraction for fraction, accuracy, _ in table if accuracy >= wanted)
        assert maps.rejected.values[used].mean() == smallest
    for cost in (0.0, 0.1, 0.3, 0.6, 1.0):
        maps = rejector.reject(SMALL.probability, rejection_cost=cost, calibration=calibration)
        rejected = maps.rejected.values[used]
        found = np.mean(~correct & ~rejected) + cost * rejected.mean()
        every = [errors / correct.size + cost * fraction for fraction, _, errors in table]
        assert found == pytest.approx(min([*every, cost]), abs=1e-12)
