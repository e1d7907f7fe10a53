"""The four properties of the paper's section II-C, for each of the three measures.

Where the paper claims a strict inequality that fails at a degenerate point (nothing accurate kept,
nothing misclassified kept, nothing accurate rejected), the property holds with "not worse".
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import hsreject as hr
from tests.measures import slow
from tests.measures.strategies import Rejections, Samples, rejections, samples

MEASURES = tuple(slow.MEASURES)


def both(drawn: Rejections) -> tuple[hr.OperatingPoint, hr.OperatingPoint]:
    return hr.operating_point(drawn[0], drawn[1]), hr.operating_point(drawn[0], drawn[2])


@given(rejections())
def test_property_1_each_measure_is_a_function_of_the_rejected_fraction(drawn: Rejections) -> None:
    """Through A(r) and A(0): the equations of sections III-B and III-C."""
    point, _ = both(drawn)
    r, overall = point.rejected_fraction, point.overall_accuracy
    kept = 0.0 if r == 1 else point.nonrejected_accuracy * (1 - r)
    assert point.classification_quality == pytest.approx(2 * kept + r - overall)
    if min(point.accurate, point.misclassified, point.accurate_rejected) > 0:
        phi = (r - overall + kept) / (overall - kept) * overall / (1 - overall)
        assert point.rejection_quality == pytest.approx(phi)


@given(st.data())
@pytest.mark.parametrize("name", MEASURES)
def test_property_2_at_the_same_rejected_fraction(name: str, data: st.DataObject) -> None:
    """A measure is larger exactly for the rejector that outperforms."""
    correct, rejected, _ = data.draw(rejections())
    shuffled = np.array(data.draw(st.permutations(rejected.tolist())))
    one, two = both((correct, rejected, shuffled))
    values = getattr(one, name), getattr(two, name)
    assume(not np.isnan(values).any())
    outperforms = hr.compare(one, two).verdict == "outperforms"
    assert (values[0] > values[1]) == outperforms


@given(rejections())
@pytest.mark.parametrize("name", MEASURES)
def test_property_3_at_different_rejected_fractions(name: str, drawn: Rejections) -> None:
    """A rejector that outperforms, by the three cases or the general rule, measures higher."""
    one, two = both(drawn)
    assume(hr.compare(one, two).verdict == "outperforms")
    values = getattr(one, name), getattr(two, name)
    assume(not np.isnan(values).any())
    assert values[0] >= values[1]
    degenerate = {
        "nonrejected_accuracy": one.accurate_kept == 0 or two.misclassified_kept == 0,
        "classification_quality": False,
        "rejection_quality": two.accurate_rejected == 0 or one.misclassified_rejected == 0,
    }
    assert degenerate[name] or values[0] > values[1]


@given(rejections())
def test_property_4_extremes(drawn: Rejections) -> None:
    """Rejecting exactly the errors is best, exactly the accurate worst; only for Q uniquely."""
    correct = drawn[0]
    assume(correct.any() and not correct.all())
    point, _ = both(drawn)
    best, worst = hr.operating_point(correct, ~correct), hr.operating_point(correct, correct)
    assert [getattr(best, name) for name in MEASURES] == [1.0, 1.0, np.inf]
    assert [getattr(worst, name) for name in MEASURES] == [0.0, 0.0, 0.0]
    for name in MEASURES:
        value = getattr(point, name)
        assert np.isnan(value) or getattr(worst, name) <= value <= getattr(best, name)
    assert (point.classification_quality == 1) == (drawn[1] == ~correct).all()
    assert (point.classification_quality == 0) == (drawn[1] == correct).all()


@given(samples(), st.data())
def test_pairs_of_rejectors_of_one_classifier(drawn: Samples, data: st.DataObject) -> None:
    """Where two rejectors reach the same fraction all three measures rank them alike."""
    correct, confidence = drawn
    other = np.array(data.draw(st.permutations(confidence.tolist())))
    first, second = hr.rejection_curve(correct, confidence), hr.rejection_curve(correct, other)
    assert first.rejected_fraction.equals(second.rejected_fraction)  # the same ties, moved
    signs = [np.sign(first[name].values - second[name].values) for name in MEASURES[:2]]
    kept = ~np.isnan(signs[0])
    np.testing.assert_array_equal(signs[0][kept], signs[1][kept])
    higher = first.rejection_quality.values > second.rejection_quality.values
    defined = ~np.isnan(first.rejection_quality.values)
    np.testing.assert_array_equal(higher[defined], (signs[1] > 0)[defined])
