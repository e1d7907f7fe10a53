import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import InputError
from tests.rejection.scene import make_scene


def test_training_pixels_are_refused() -> None:
    scene = make_scene()
    n_calibration = int((scene.calibration > 0).sum())
    overlapping = scene.calibration.copy()
    y, x = np.argwhere(scene.training.values > 0)[0]
    overlapping[y, x] = 2
    with pytest.raises(InputError, match=f"1 of {n_calibration + 1} "):
        hr.Calibration(overlapping, training=scene.training)
    n_training = int((scene.training > 0).sum())
    with pytest.raises(InputError, match=f"{n_training} of"):
        hr.Calibration(scene.reference, training=scene.training)
    assert hr.Calibration(scene.reference, training=None).n_pixels == scene.reference.size


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros((14, 15), dtype=int), "no calibration pixels"),
        (np.ones((14, 15)), "must hold integers"),
        (np.ones(14, dtype=int), r"must be a map \(y, x\)"),
        (-np.ones((14, 15), dtype=int), r"labels must not be negative \(found -1\). Use 0"),
        (np.ma.masked_equal([[1, 2]], 2), r"masked values. Fill them with 0"),
    ],
)
def test_what_cannot_calibrate_is_refused(labels, message) -> None:
    with pytest.raises(InputError, match=message):
        hr.Calibration(labels, training=None)


def test_the_fill_value_calibrates_nothing() -> None:
    scene = make_scene()
    labels = scene.calibration.where(scene.calibration > 0, 255).assign_attrs(_FillValue=255)
    training = scene.training.where(scene.training > 0, 255).assign_attrs(_FillValue=255)
    calibration = hr.Calibration(labels, training=training)
    assert calibration.n_pixels == int((scene.calibration > 0).sum())
    expected = hr.Calibration(scene.calibration, training=scene.training)
    label = hr.PixelwiseRejector().rank(scene.probability)["label"]
    for found, wanted in zip(calibration.pixels(label), expected.pixels(label), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_an_array_is_no_calibration() -> None:
    scene = make_scene()
    for rejector in (hr.PixelwiseRejector(), hr.JointRejector()):
        with pytest.raises(InputError, match=r"calibration must be .*Calibration \(got DataArray"):
            rejector.reject(scene.probability, accuracy=0.5, calibration=scene.calibration)


def test_calibration_of_another_grid_or_without_data_is_refused() -> None:
    scene = make_scene()
    rejector = hr.PixelwiseRejector()
    small = hr.Calibration(np.ones((3, 3), dtype=int), training=None)
    with pytest.raises(InputError, match="14 rows x 15 columns but calibration labels has 3 rows"):
        rejector.reject(scene.probability, accuracy=0.5, calibration=small)
    corner = np.zeros((14, 15), dtype=int)
    corner[0, 0] = 2
    with pytest.raises(InputError, match="none of them has data"):
        rejector.reject(
            scene.probability, accuracy=0.5, calibration=hr.Calibration(corner, training=None)
        )


def test_accuracy_and_cost_by_trying_every_threshold() -> None:
    scene = make_scene()
    calibration = hr.Calibration(scene.calibration, training=scene.training)
    rejector = hr.PixelwiseRejector()
    ranking = rejector.rank(scene.probability)
    used = (scene.calibration.values > 0) & ~np.isnan(ranking.confidence.values)
    correct = (ranking.label == scene.calibration).values[used]
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
        maps = rejector.reject(scene.probability, accuracy=wanted, calibration=calibration)
        smallest = min(fraction for fraction, accuracy, _ in table if accuracy >= wanted)
        assert maps.rejected.values[used].mean() == smallest
    for cost in (0.0, 0.1, 0.3, 0.6, 1.0):
        maps = rejector.reject(scene.probability, rejection_cost=cost, calibration=calibration)
        gone = maps.rejected.values[used]
        found = np.mean(~correct & ~gone) + cost * gone.mean()
        every = [errors / correct.size + cost * fraction for fraction, _, errors in table]
        assert found == pytest.approx(min([*every, cost]), abs=1e-12)
