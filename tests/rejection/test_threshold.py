import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hsreject.rejection.thresholds import threshold_for_fraction

CONFIDENCES = st.lists(st.integers(0, 8), min_size=1, max_size=40).map(
    lambda values: np.array(values) / 8
)


@given(CONFIDENCES, st.floats(0, 1))
def test_nearest_reachable_fraction_by_trying_all(confidence, fraction) -> None:
    candidates = [*np.unique(confidence), np.inf]
    reachable = np.array([np.mean(confidence < value) for value in candidates])
    found = threshold_for_fraction(confidence, fraction)
    assert found.rejected_fraction == np.mean(confidence < found.value)
    assert abs(found.rejected_fraction - fraction) == pytest.approx(
        np.abs(reachable - fraction).min(), abs=1e-12
    )
    assert found.reachable_below in reachable
    assert found.reachable_above in reachable
    assert found.reachable_below <= fraction + 1e-6
    assert found.reachable_above >= fraction - 1e-6
    between = (reachable > found.reachable_below) & (reachable < found.reachable_above)
    assert not between.any()


@given(CONFIDENCES)
def test_ends_are_exact(confidence) -> None:
    assert threshold_for_fraction(confidence, 0.0).rejected_fraction == 0
    assert threshold_for_fraction(confidence, 1.0).rejected_fraction == 1


@given(CONFIDENCES, st.floats(0, 1), st.randoms(use_true_random=False))
def test_order_of_pixels_does_not_matter(confidence, fraction, random) -> None:
    shuffled = confidence.copy()
    random.shuffle(shuffled)
    assert threshold_for_fraction(shuffled, fraction) == threshold_for_fraction(
        confidence, fraction
    )


def test_halfway_rejects_less_and_decimal_fractions_are_met() -> None:
    assert threshold_for_fraction(np.array([0.1, 0.2]), 0.25).rejected_fraction == 0
    for hundredth in range(101):  # 0.29 * 100 is 28.999999999999996
        found = threshold_for_fraction(np.arange(100.0), hundredth / 100)
        assert found.rejected_fraction == hundredth / 100
        assert found.reachable_below == found.reachable_above == hundredth / 100
