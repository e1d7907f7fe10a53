"""The pool's weights and temperatures, against loops over their definitions."""

import numpy as np
import pytest
from scipy.special import softmax

import hsreject as hr
from hsreject.classify.pool import at_temperature, best_temperature, brier_scores, pseudo_bma
from hsreject.errors import InputError
from hsreject.splits.draws import deal_folds


def test_brier_scores_by_hand() -> None:
    probability = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(brier_scores(probability, np.array([0, 1, 2])), [0.14, 0.0, 2.0])


def test_pseudo_bma_is_its_definition() -> None:
    scores = -np.random.default_rng(0).random((3, 6))
    draws = np.random.default_rng(7).standard_exponential((6, 4))
    expected = np.zeros(3)
    for draw in draws.T:
        share = draw / draw.sum()
        total = [6 * sum(u * s for u, s in zip(share, row, strict=True)) for row in scores]
        expected += np.exp(total) / np.exp(total).sum() / 4
    np.testing.assert_allclose(pseudo_bma(scores, n_bootstraps=4, seed=7), expected)


def test_many_bootstraps_are_the_expectation() -> None:
    """Two candidates that differ on one of two samples: E[1 / (1 + exp(2 u d))], u uniform."""
    difference = 0.9
    found = pseudo_bma(np.array([[0.0, 0.0], [-difference, 0.0]]), n_bootstraps=200_000, seed=0)
    share = (np.arange(1000) + 0.5) / 1000
    expected = (1 / (1 + np.exp(-2 * share * difference))).mean()
    np.testing.assert_allclose(found[0], expected, atol=2e-3)  # 4 standard errors


def test_the_better_candidate_gets_the_weight_and_the_right_temperature() -> None:
    rng = np.random.default_rng(1)
    truth = rng.normal(size=(400, 4)) * 2
    codes = np.array([rng.choice(4, p=p) for p in softmax(truth, axis=1)])
    candidates = {"sharp": truth * 2, "noise": rng.normal(size=(400, 4))}
    pool = hr.Pool().fit(candidates, codes)
    assert pool.weights_[0] > 0.99
    assert pool.temperatures_[0] == 2.0
    np.testing.assert_allclose(pool.temperature_, 1, atol=0.2)
    pooled = pool.combine(candidates)
    np.testing.assert_allclose(pooled.sum(axis=1), 1)
    assert best_temperature(np.log(pooled), codes) == pytest.approx(1, abs=1e-3)
    assert pool.combine({"sharp": truth * 2}).shape == (400, 4) or pool.weights_[1] > 0


def test_groups_are_the_sample() -> None:
    """Repeating the pixels of a polygon changes nothing, and no group counts more than another."""
    rng = np.random.default_rng(5)
    codes = np.array([0, 0, 1, 1, 2, 2])
    candidates = {"one": rng.normal(size=(6, 3)), "two": rng.normal(size=(6, 3))}
    alone = hr.Pool().fit(candidates, codes)
    times = np.array([1, 4, 2, 3, 5, 1])
    copies = {name: np.repeat(z, times, axis=0) for name, z in candidates.items()}
    grouped = hr.Pool().fit(copies, np.repeat(codes, times), np.repeat(np.arange(6), times))
    np.testing.assert_allclose(grouped.weights_, alone.weights_)
    np.testing.assert_allclose(grouped.scores_, alone.scores_)
    np.testing.assert_array_equal(grouped.temperatures_, alone.temperatures_)
    assert grouped.temperature_ == pytest.approx(alone.temperature_, abs=1e-4)


def test_the_only_polygon_of_a_class_is_doubted() -> None:
    """Left out by halves it is always right; a doubt of .05 keeps the pool from being certain."""
    codes = np.repeat([0, 1], 8)
    certain = 4.0 * np.eye(2)[codes]
    one_each = hr.Pool().fit({"a": certain}, codes, codes)
    two_each = hr.Pool().fit({"a": certain}, codes, np.arange(16) // 4)
    pooled = [pool.combine({"a": certain}).max(axis=1)[0] for pool in (one_each, two_each)]
    assert pooled[0] == pytest.approx(0.975, abs=1e-3)  # (1 - .05) + .05 / 2
    assert pooled[1] > 0.999


def test_without_held_out_samples_all_candidates_count_the_same() -> None:
    nothing = np.zeros((0, 2))
    pool = hr.Pool().fit({"one": nothing, "two": nothing}, np.zeros(0, dtype=int))
    np.testing.assert_array_equal(pool.weights_, [0.5, 0.5])


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ({}, "at least one"),
        ({"short": np.zeros((2, 2))}, "3 samples"),
        ({"a": np.zeros((3, 2)), "b": np.zeros((3, 4))}, "same categories"),
    ],
)
def test_candidates_that_do_not_fit_are_named(candidates, message) -> None:
    with pytest.raises(InputError, match=message):
        hr.Pool().fit(candidates, np.array([0, 1, 0]))


def test_a_temperature_keeps_the_label_and_flattens() -> None:
    probability = np.array([[0.9, 0.1], [0.5, 0.5], [0.0, 1.0]])
    hot = at_temperature(probability, 2.0)
    np.testing.assert_allclose(hot.sum(axis=1), 1)
    np.testing.assert_array_equal(hot.argmax(axis=1), probability.argmax(axis=1))
    assert hot[0].max() < 0.9
    assert 0 < hot[2, 0] < 0.1


def test_folds_are_dealt_class_by_class() -> None:
    labels = np.repeat([0, 1, 2, 3, 4], [5, 1, 2, 9, 23])
    fold = deal_folds(labels, 5, seed=3)
    assert (fold[labels <= 1] == -1).all()
    assert (fold[labels > 1] >= 0).all()
    assert np.ptp(np.bincount(fold[fold >= 0])) <= 1
    for number in range(5):
        assert set(labels[(fold != number) & (labels > 0)]) == {1, 2, 3, 4}
    assert (deal_folds(labels, 5, seed=3, most=12) >= 0).sum() == 2 + 3 + 3
    assert (deal_folds(labels, 5, seed=4) != fold).any()
