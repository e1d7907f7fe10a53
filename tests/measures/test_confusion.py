"""Confusion matrices with a rejected column, agreement of the kept, curves by class."""

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
    kept = ~REJECTED
    expected = metrics.confusion_matrix(REFERENCE[kept], LABEL[kept])
    np.testing.assert_array_equal(matrix[:, :-1], expected)
    np.testing.assert_array_equal(matrix[:, -1], np.bincount(REFERENCE[REJECTED])[1:])
    assert matrix.dtype.kind == "i"
    without = hr.confusion_matrix(REFERENCE, LABEL)
    np.testing.assert_array_equal(without[:, :-1], metrics.confusion_matrix(REFERENCE, LABEL))
    assert (without[:, -1] == 0).all()
    weighted = hr.confusion_matrix([1, 1], [1, 2], sample_weight=[0.5, 2.0])
    np.testing.assert_array_equal(weighted, [[0.5, 2.0, 0], [0, 0, 0]])


def test_kept_agreement_is_that_of_scikit_learn_on_the_kept_samples() -> None:
    matrix = hr.confusion_matrix(REFERENCE, LABEL, rejected=REJECTED)
    agreement = hr.kept_agreement(matrix)
    kept = REFERENCE[~REJECTED], LABEL[~REJECTED]
    assert agreement.n_kept == (~REJECTED).sum()
    assert agreement.overall_accuracy == pytest.approx(metrics.accuracy_score(*kept))
    assert agreement.average_accuracy == pytest.approx(metrics.balanced_accuracy_score(*kept))
    assert agreement.kappa == pytest.approx(metrics.cohen_kappa_score(*kept))
    assert agreement.unkept_classes == ()
    assert hr.kept_agreement(matrix.sortby("decision")) == agreement, "rejected goes by its name"


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


def test_what_is_not_a_class_is_refused() -> None:
    for reference, label, words in (
        ([0, 1], [1, 1], "reference holds 0"),
        ([1, 1], [-3, 1], "label holds -3"),
        ([1.0, 2.0], [1, 2], "reference must hold integer"),
    ):
        with pytest.raises(InputError, match=words):
            hr.confusion_matrix(reference, label)
