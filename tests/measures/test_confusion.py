"""Confusion matrices with a rejected column, agreement of the kept, curves by class."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics

import hsreject as hr
from hsreject.errors import InputError

RNG = np.random.default_rng(11)
REFERENCE = RNG.integers(1, 5, 400)
LABEL = np.where(RNG.random(400) < 0.7, REFERENCE, RNG.integers(1, 5, 400))
CONFIDENCE = np.round(RNG.random(400) + 0.3 * (LABEL == REFERENCE), 2)
REJECTED = CONFIDENCE < 0.4


def test_matrix_counts_every_cell() -> None:
    matrix = hr.confusion_matrix(REFERENCE, LABEL, rejected=REJECTED)
    assert matrix.dims == ("reference", "decision")
    assert matrix.decision.values.tolist() == [1, 2, 3, 4, 0]
    for truth in range(1, 5):
        for decision in range(1, 5):
            cell = (truth == REFERENCE) & (decision == LABEL) & ~REJECTED
            assert matrix.sel(reference=truth, decision=decision) == cell.sum()
        gone = (truth == REFERENCE) & REJECTED
        assert matrix.sel(reference=truth, decision=0) == gone.sum()
    assert matrix.dtype.kind == "i"


def test_without_rejection_the_matrix_is_that_of_scikit_learn() -> None:
    matrix = hr.confusion_matrix(REFERENCE, LABEL)
    np.testing.assert_array_equal(matrix[:, :-1], metrics.confusion_matrix(REFERENCE, LABEL))
    assert (matrix[:, -1] == 0).all()


def test_kept_agreement_is_that_of_scikit_learn_on_the_kept_samples() -> None:
    agreement = hr.kept_agreement(hr.confusion_matrix(REFERENCE, LABEL, rejected=REJECTED))
    kept = REFERENCE[~REJECTED], LABEL[~REJECTED]
    assert agreement.n_kept == (~REJECTED).sum()
    assert agreement.overall_accuracy == pytest.approx(metrics.accuracy_score(*kept))
    assert agreement.average_accuracy == pytest.approx(metrics.balanced_accuracy_score(*kept))
    assert agreement.kappa == pytest.approx(metrics.cohen_kappa_score(*kept))
    assert agreement.unkept_classes == ()


def test_agreement_where_classes_or_everything_are_rejected() -> None:
    partly = hr.confusion_matrix([1, 1, 2], [1, 1, 2], rejected=[False, False, True])
    agreement = hr.kept_agreement(partly)
    assert agreement.unkept_classes == (2,)
    assert agreement.average_accuracy == 1
    assert np.isnan(agreement.kappa)  # one class only: chance agrees completely
    nothing = hr.kept_agreement(hr.confusion_matrix([1, 2], [1, 2], rejected=[True, True]))
    assert nothing.n_kept == 0
    assert np.isnan([nothing.overall_accuracy, nothing.average_accuracy, nothing.kappa]).all()


def test_class_table_fixes_order_and_names() -> None:
    table = hr.ClassTable.from_names(["water", "soil", "wood"], values=[3, 1, 7])
    matrix = hr.confusion_matrix([1, 3, 3], [3, 3, 1], classes=table)
    assert matrix.reference.values.tolist() == [3, 1, 7]
    assert matrix.class_name.values.tolist() == ["water", "soil", "wood"]
    np.testing.assert_array_equal(matrix, [[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]])
    with pytest.raises(InputError, match=r"not in the class table: \[2\]"):
        hr.confusion_matrix([1, 2], [1, 1], classes=table)


def test_weighted_matrix() -> None:
    matrix = hr.confusion_matrix([1, 1], [1, 2], weights=[0.5, 2.0])
    np.testing.assert_array_equal(matrix, [[0.5, 2.0, 0], [0, 0, 0]])


def test_what_is_not_a_class_is_refused() -> None:
    for measure, more in ((hr.confusion_matrix, ()), (hr.rejection_curve_by_class, ([0.1, 0.2],))):
        for value in (0, -3):
            with pytest.raises(InputError, match=f"reference holds {value}"):
                measure([value, 1], [1, 1], *more)
            with pytest.raises(InputError, match=f"label holds {value}"):
                measure([1, 1], [value, 1], *more)
        with pytest.raises(InputError, match="reference must hold integer"):
            measure([1.0, 2.0], [1, 2], *more)


@pytest.mark.parametrize("n_points", [None, 7])
def test_curves_by_class_agree_with_the_matrix_at_each_threshold(n_points: int | None) -> None:
    curves = hr.rejection_curve_by_class(REFERENCE, LABEL, CONFIDENCE, n_points=n_points)
    assert curves.category.values.tolist() == [1, 2, 3, 4]
    n_distinct = np.unique(CONFIDENCE).size
    assert curves.sizes["operating_point"] == (n_points or n_distinct + 1)
    for _, row in curves.groupby("operating_point", squeeze=False):
        row = row.isel(operating_point=0)  # noqa: PLW2901 - the group without its dimension
        rejected = float(row.threshold) > CONFIDENCE
        assert float(row.rejected_fraction) == rejected.mean()
        for value in range(1, 5):
            one = row.sel(category=value)
            truth, correct = value == REFERENCE, LABEL == REFERENCE
            point = hr.operating_point(correct[truth], rejected[truth])
            assert hr.OperatingPoint.from_curve(one) == point
            assert float(one.rejected_fraction_of_class) == point.rejected_fraction
            np.testing.assert_equal(float(one.producer_accuracy), point.nonrejected_accuracy)
            assigned = (value == LABEL) & ~rejected
            assert int(one.wrongly_assigned_kept) == (assigned & ~correct).sum()
            if assigned.any():
                assert float(one.user_accuracy) == correct[assigned].mean()
            else:
                assert np.isnan(one.user_accuracy)


def test_agreement_finds_rejected_by_name() -> None:
    matrix = hr.confusion_matrix([1, 1, 2, 2], [1, 2, 2, 2], rejected=[False, True, False, False])
    assert hr.kept_agreement(matrix.sortby("decision")) == hr.kept_agreement(matrix)
