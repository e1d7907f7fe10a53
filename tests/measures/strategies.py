"""Random classifications: accuracy vectors, confidences with many ties, pairs of rejectors."""

import numpy as np
from hypothesis import strategies as st

Samples = tuple[np.ndarray, np.ndarray]
Rejections = tuple[np.ndarray, np.ndarray, np.ndarray]

# few distinct values, so that ties are the rule; a negative zero, negatives, tiny and huge values
TIED = st.sampled_from([0.0, -0.0, 0.25, 0.5, 0.5 + 2**-53, 1.0, -0.5, -3.0, 1e-320, 1e300])
FREE = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def samples(draw: st.DrawFn) -> Samples:
    """Return (correct, confidence)."""
    n = draw(st.integers(1, 30))
    correct = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    element = draw(st.sampled_from([TIED, FREE]))
    confidence = draw(st.lists(element, min_size=n, max_size=n))
    return np.array(correct, dtype=bool), np.array(confidence, dtype=float)


@st.composite
def rejections(draw: st.DrawFn) -> Rejections:
    """Return one accuracy vector and two rejection vectors."""
    n = draw(st.integers(1, 16))
    bools = st.lists(st.booleans(), min_size=n, max_size=n)
    return tuple(np.array(draw(bools), dtype=bool) for _ in range(3))  # type: ignore[return-value]
