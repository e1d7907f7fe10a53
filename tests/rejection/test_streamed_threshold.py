"""The threshold of a stream is that of all its confidences at once, to the last bit."""

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hsreject.errors import InputError
from hsreject.rejection.streamed_threshold import streamed_threshold
from hsreject.rejection.threshold import threshold_for_fraction

FRACTIONS = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]))


@settings(deadline=None, derandomize=True, max_examples=40)  # dask's scheduler takes its time
@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        st.integers(1, 40),
        elements=st.one_of(
            st.sampled_from([-1.0, -0.0, 0.0, 0.5, 1.0]),  # ties, and both zeros
            st.floats(-4, 4, width=32),
        ),
    ),
    FRACTIONS,
    st.integers(1, 15),
)
def test_it_is_the_threshold_of_all_confidences(confidence, fraction: float, chunk: int) -> None:
    with_nodata = np.insert(confidence, [0, confidence.size // 2, confidence.size], np.nan)
    found = streamed_threshold(da.from_array(with_nodata, chunks=chunk), fraction)
    assert found == threshold_for_fraction(confidence, fraction)


@pytest.mark.parametrize("fraction", [0.1, 0.999])
def test_progress_ends_complete_whether_or_not_the_last_pass_is_needed(fraction: float) -> None:
    confidence = da.from_array(np.linspace(0, 1, 100, dtype=np.float32), chunks=10)
    steps: list[tuple[float, float | None]] = []
    streamed_threshold(
        confidence, fraction, progress=lambda _, done, total: steps.append((done, total))
    )
    assert steps[-1] == (30, 30)
    assert steps == sorted(steps)


def test_a_scene_without_data_and_a_map_of_labels_are_refused() -> None:
    with pytest.raises(InputError, match="No pixel of the scene has data"):
        streamed_threshold(da.from_array(np.full(5, np.nan), chunks=2), 0.1)
    with pytest.raises(InputError, match=r"float32 or float64 .got int64"):
        streamed_threshold(da.from_array(np.arange(5), chunks=2), 0.1)
