"""Confidence classes: thirds counted by hand, ties that stay together, unknown pixels."""

import numpy as np
import pytest
import xarray as xr

from hsreject.evaluation.confidence_classes import confidence_classes


def classes_of(confidence, unknown=None):
    maps = xr.Dataset({"confidence": (("y", "x"), np.atleast_2d(confidence))})
    if unknown is not None:
        maps["unknown"] = ("y", "x"), np.atleast_2d(unknown)
    level = confidence_classes(maps)
    return None if level is None else level.values[0].tolist()


def third_of_middle_rank(confidence):
    """Return the classes pixel by pixel: the third that the middle of its equals' ranks is in."""
    values = confidence[~np.isnan(confidence)]
    classes = []
    for one in confidence:
        if np.isnan(one):
            classes.append(255)
            continue
        doubled = (values < one).sum() + (values <= one).sum()  # twice the middle rank
        classes.append(1 + (3 * doubled >= 2 * values.size) + (3 * doubled >= 4 * values.size))
    return classes


@pytest.mark.parametrize("n_values", [2, 3, 5, 1000])
def test_thirds_with_ties_are_those_of_the_definition(n_values) -> None:
    rng = np.random.default_rng(n_values)
    for n_pixels in (50, 101, 300):
        confidence = rng.integers(n_values, size=n_pixels).astype(float)
        confidence[rng.random(n_pixels) < 0.1] = np.nan
        level = classes_of(confidence)
        assert level == third_of_middle_rank(confidence)
        for value in np.unique(confidence[~np.isnan(confidence)]):
            assert len(set(np.array(level)[confidence == value])) == 1


def test_without_ties_thirds_are_of_one_size() -> None:
    confidence = np.random.default_rng(0).permutation(300) / 300
    np.testing.assert_array_equal(np.bincount(classes_of(confidence)), [0, 100, 100, 100])


@pytest.mark.parametrize("n_unknown", [1, 4, 8])
def test_unknown_pixels_are_low_and_fill_the_lowest_third_first(n_unknown) -> None:
    confidence = np.arange(12.0)
    unknown = confidence >= 12 - n_unknown  # the most confident, so that confidence alone is wrong
    level = np.array(classes_of(confidence, unknown))
    assert (level[unknown] == 1).all()
    assert (level == 1).sum() == max(n_unknown, 4)
    known = level[~unknown]
    np.testing.assert_array_equal(known, np.sort(known))
    assert (level == 3).sum() == 4


def test_equal_confidences_make_no_classes() -> None:
    assert classes_of([0.5, 0.5, np.nan]) is None
    assert classes_of([0.5, 0.5, 0.1], [False, False, True]) is None
    assert classes_of([0.5, 0.1], [True, True]) is None
