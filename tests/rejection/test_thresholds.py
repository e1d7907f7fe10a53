import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import hsreject.rejection.decision
from hsreject.errors import InputError
from hsreject.rejection.decision import threshold_for_fraction

CONFIDENCES = st.lists(st.integers(0, 8), min_size=1, max_size=40).map(
    lambda values: np.array(values) / 8
)


@given(CONFIDENCES, st.floats(0, 1) | st.sampled_from([0.0, 1.0]))
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


def test_halfway_rejects_less_and_decimal_fractions_are_met() -> None:
    assert threshold_for_fraction(np.array([0.1, 0.2]), 0.25).rejected_fraction == 0
    for hundredth in range(101):  # 0.29 * 100 is 28.999999999999996
        found = threshold_for_fraction(np.arange(100.0), hundredth / 100)
        assert found.rejected_fraction == hundredth / 100
        assert found.reachable_below == found.reachable_above == hundredth / 100


@settings(deadline=None, derandomize=True, max_examples=60)  # dask's scheduler takes its time
@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        st.integers(1, 40),
        elements=st.one_of(
            st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0]),  # ties, and both zeros
            st.floats(-4, 4, width=32),
        ),
    ),
    st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0])),
    st.integers(1, 15),
    st.booleans(),
)
def test_blocks_give_the_threshold_of_all_confidences(confidence, fraction, chunk, many) -> None:
    """To the last bit, also where there are too many to be fetched without a histogram."""
    with_nodata = np.insert(confidence, [0, confidence.size // 2, confidence.size], np.nan)
    assert threshold_for_fraction(with_nodata, fraction) == threshold_for_fraction(
        confidence, fraction
    )
    with pytest.MonkeyPatch.context() as patch:
        if many:
            patch.setattr(hsreject.rejection.decision, "FEW", 3)
            patch.setattr(hsreject.rejection.decision, "N_BINS", 4)
        found = threshold_for_fraction(da.from_array(with_nodata, chunks=chunk), fraction)
    assert found == threshold_for_fraction(confidence, fraction)


def test_progress_of_blocks_goes_forward_and_ends() -> None:
    heard: list[tuple[float, float | None]] = []
    confidence = da.from_array(np.linspace(0, 1, 100, dtype=np.float32), chunks=10)
    threshold_for_fraction(
        confidence, 0.999, progress=lambda _, done, total: heard.append((done, total))
    )
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)
    assert heard[-1][0] == heard[-1][1]


@pytest.mark.parametrize("kind", [np.asarray, lambda values: da.from_array(values, chunks=2)])
def test_a_scene_without_data_and_a_map_of_labels_are_refused(kind) -> None:
    with pytest.raises(InputError, match="No pixel"):
        threshold_for_fraction(kind(np.full(5, np.nan)), 0.1)
    with pytest.raises(InputError, match="int64"):
        threshold_for_fraction(kind(np.arange(5)), 0.1)
