"""AURC, excess AURC and accuracy at fractions, against sums over every order of the ties."""

from fractions import Fraction
from itertools import chain, groupby, permutations, product

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import hsreject as hr
from hsreject.errors import InputError

TIED_SAMPLES = st.lists(
    st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=1, max_size=7
)


def mean_risk(ordered: list[bool]) -> Fraction:
    """The mean over k of the share of errors among the first k."""
    risks = [Fraction(sum(not c for c in ordered[:k]), k) for k in range(1, len(ordered) + 1)]
    return sum(risks, Fraction(0)) / len(ordered)


def slow_aurc(samples: list[tuple[float, bool]]) -> Fraction:
    """The mean over all orders that sort the samples by falling confidence."""
    ranked = sorted(samples, key=lambda sample: -sample[0])
    ties = [[correct for _, correct in tie] for _, tie in groupby(ranked, key=lambda s: s[0])]
    orders = [list(chain(*order)) for order in product(*(permutations(t) for t in ties))]
    return sum((mean_risk(order) for order in orders), Fraction(0)) / len(orders)


def curve_of(samples: list[tuple[float, bool]]) -> object:
    return hr.rejection_curve([c for _, c in samples], [value for value, _ in samples])


@given(TIED_SAMPLES)
def test_aurc_is_the_mean_over_all_orders_of_the_ties(samples: list[tuple[float, bool]]) -> None:
    curve = curve_of(samples)
    assert hr.aurc(curve) == pytest.approx(float(slow_aurc(samples)), rel=1e-13, abs=1e-15)
    best = mean_risk(sorted((correct for _, correct in samples), reverse=True))
    excess = float(slow_aurc(samples) - best)
    assert hr.excess_aurc(curve) == pytest.approx(excess, rel=1e-12, abs=1e-15)


def test_aurc_of_many_samples_agrees_with_the_plain_sum() -> None:
    rng = np.random.default_rng(4)
    confidence = rng.random(20_000)
    correct = rng.random(20_000) < confidence
    errors = np.cumsum(~correct[np.argsort(-confidence)])
    plain = (errors / np.arange(1, errors.size + 1)).mean()
    assert hr.aurc(hr.rejection_curve(correct, confidence)) == pytest.approx(plain, rel=1e-13)


def test_aurc_of_weights_is_the_limit_of_many_small_samples() -> None:
    rng = np.random.default_rng(6)
    correct, confidence = rng.random(12) < 0.6, rng.integers(0, 5, 12) / 5
    weights = rng.integers(1, 4, 12)
    exact = hr.aurc(hr.rejection_curve(correct, confidence, sample_weight=weights.astype(float)))
    parts = 20_000
    repeated = (np.repeat(array, weights * parts) for array in (correct, confidence))
    many = hr.aurc(hr.rejection_curve(*repeated))
    assert exact == pytest.approx(many, abs=1e-4)  # the sum is 1 / (2 n) from the integral
    even = hr.rejection_curve(correct, confidence, sample_weight=np.full(12, 0.3))
    assert hr.excess_aurc(even) >= 0


def test_aurc_of_a_long_tie_after_many_samples() -> None:
    """k accurate samples, then a tie of g with m errors, against the sum over every coverage.

    Without samples before it, a tie knows nothing: AURC is the error rate m / g.
    """
    for k, g, m in ((0, 500, 7), (1, 127, 127), (128, 2, 1), (10**4, 500, 100)):
        correct = np.arange(k + g) < k + g - m
        curve = hr.rejection_curve(correct, np.arange(k + g) < k)
        risks = sum(Fraction(m * j, g * (k + j)) for j in range(1, g + 1))
        assert hr.aurc(curve) == pytest.approx(float(risks / (k + g)), rel=1e-13)


@given(TIED_SAMPLES, st.fractions(0, 1, max_denominator=14))
def test_accuracy_at_a_fraction(samples: list[tuple[float, bool]], wanted: Fraction) -> None:
    """The exact share of accurate kept samples, each tied sample rejected in equal part."""
    found = hr.accuracy_at(curve_of(samples), float(wanted))
    if wanted == 1:
        assert np.isnan(found.item())
        return
    left, accurate = wanted * len(samples), Fraction(0)
    for _, tie in groupby(sorted(samples), key=lambda sample: sample[0]):
        tied = list(tie)
        rejected = min(left, Fraction(len(tied)))
        left -= rejected
        accurate += (1 - rejected / len(tied)) * sum(correct for _, correct in tied)
    expected = accurate / (len(samples) * (1 - wanted))
    assert found.item() == pytest.approx(float(expected), rel=1e-12, abs=1e-14)


def test_accuracy_at_says_what_is_reached() -> None:
    curve = hr.rejection_curve([True, False, True, True], [0.1, 0.1, 0.6, 0.9])
    found = hr.accuracy_at(curve, [0.5, 0.25, 1.0])
    assert found.dims == ("rejected_fraction",)
    assert found.reached.values.tolist() == [True, False, True]
    few = hr.curve_of_points([hr.OperatingPoint(50, 30, 5, 15), hr.OperatingPoint(45, 20, 10, 25)])
    outside = hr.accuracy_at(few, [0.1, 0.2, 0.9])
    np.testing.assert_array_equal(outside, [np.nan, 0.625, np.nan])


def test_points_that_are_not_one_whole_curve_are_refused() -> None:
    few = hr.curve_of_points([hr.OperatingPoint(50, 30, 5, 15)])
    with pytest.raises(InputError, match=r"from 0\.2 to 0\.2"):
        hr.aurc(few)
    curve = hr.rejection_curve([True, False, True], [0.9, 0.5, 0.1])
    twice = xr.concat([curve, curve], "operating_point")
    empty = curve.isel(operating_point=slice(0, 0))
    for summary in (hr.aurc, hr.excess_aurc, lambda points: hr.accuracy_at(points, 0.5)):
        with pytest.raises(InputError, match="falls from 1 to 0"):
            summary(twice)
        with pytest.raises(InputError, match="no operating point"):
            summary(empty)
    backwards = curve.isel(operating_point=slice(None, None, -1))
    assert hr.aurc(backwards.sortby("rejected_fraction")) == hr.aurc(curve)
