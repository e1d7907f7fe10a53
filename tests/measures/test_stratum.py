"""Weights of stratified samples."""

from __future__ import annotations

import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import InputError


def test_weights_give_back_the_sizes_of_the_strata() -> None:
    stratum = np.array([[3, 1, 1], [3, 3, 7]])
    weights = hr.stratified_weights(stratum, {1: 10, 3: 90, 7: 5, 8: 1000})
    assert weights.shape == stratum.shape
    for value, size in {1: 10, 3: 90, 7: 5}.items():
        assert weights[stratum == value].sum() == pytest.approx(size)


def test_weighted_curves_of_stratified_samples_estimate_that_of_the_map() -> None:
    """400 pixels of each of two classes, drawn 40 times: right on average, plain counts are not."""
    rng = np.random.default_rng(3)
    label = np.where(rng.random(20_000) < 0.95, 1, 2)
    confidence = rng.random(20_000)
    correct = rng.random(20_000) < np.where(label == 1, 0.9, 0.4)
    sizes = {c: np.count_nonzero(label == c) for c in (1, 2)}
    weighted, plain = [], []
    for _ in range(40):
        drawn = np.concatenate([rng.choice(np.flatnonzero(label == c), 400) for c in sizes])
        weights = hr.stratified_weights(label[drawn], sizes)
        samples = correct[drawn], confidence[drawn]
        weighted.append(hr.rejection_curve(*samples, weights=weights).nonrejected_accuracy[0])
        plain.append(hr.rejection_curve(*samples).nonrejected_accuracy[0])
    # standard error of the mean: 0.95 * sqrt(0.9 * 0.1 / 400 / 40) = 0.0023
    assert np.mean(weighted) == pytest.approx(correct.mean(), abs=0.01)
    assert abs(np.mean(plain) - correct.mean()) > 0.15


def test_every_stratum_needs_a_size() -> None:
    with pytest.raises(InputError, match=r"lacks the strata \[2\]"):
        hr.stratified_weights([1, 2], {1: 10})
