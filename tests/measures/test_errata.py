"""Where the paper's text and its mathematics disagree: the printed formula fails, ours holds.

Each test states the printed formula, shows a case in which it contradicts the definitions, and
checks ours on the same case.
"""

import numpy as np
import pytest

import hsreject as hr

WORKED = hr.OperatingPoint(50, 30, 5, 15)  # the paper's example, with n = 100


def test_1_accuracy_is_divided_by_the_number_kept() -> None:
    """Section III-A prints ||a_N|| / (n - k), with k samples kept."""
    n, k = 100, 80
    printed = WORKED.accurate_kept / (n - k)
    assert printed > 1  # no accuracy at all
    assert WORKED.nonrejected_accuracy == WORKED.accurate_kept / k == 0.625


def test_2_reconstruction_matrix() -> None:
    """Theorem 2 prints AR = n (Q + A(1-r)) and MR = n (r - Q + A(1-r))."""
    printed = np.array([[0, 0, 0, 1], [1, -1, 0, -1], [0, 0, 1, 1], [0, 1, -1, 1]])
    corrected = np.array([[0, 0, 0, 1], [1, -1, 0, -1], [0, 1, -1, 1], [0, 0, 1, -1]])
    measures = np.array([1, 0.2, 0.65, 0.625 * 0.8])
    counts = np.array([50, 30, 5, 15])
    assert 100 * (printed @ measures).sum() == pytest.approx(200)  # 200 samples out of 100
    np.testing.assert_allclose(100 * corrected @ measures, counts)
    assert np.linalg.matrix_rank(corrected) == 4  # what the theorem needs
    rebuilt = hr.OperatingPoint.from_measures(
        nonrejected_accuracy=0.625, classification_quality=0.65, rejected_fraction=0.2, n=100
    )
    assert rebuilt == WORKED


def test_3_rejection_quality_fails_without_accurate_rejected_samples() -> None:
    """Section III-C says it is undefined without *misclassified* rejected samples."""
    no_misclassified = hr.OperatingPoint(50, 45, 5, 0)
    assert no_misclassified.rejection_quality == 0  # perfectly well defined: the minimum
    no_accurate = hr.OperatingPoint(55, 30, 0, 15)
    with pytest.raises(ZeroDivisionError):
        _ = (15 / no_accurate.accurate_rejected) / (45 / 55)
    assert no_accurate.rejection_quality == np.inf


def test_4_best_and_worst_accuracy_at_a_larger_fraction() -> None:
    """The appendix says in words: best A0 (1-r0)/(1-r1) + (r1-r0)/(1-r1), worst without the sum."""
    r0, r1, a0 = 0.2, 0.4, 0.625
    ratio, step = (1 - r0) / (1 - r1), (r1 - r0) / (1 - r1)
    printed_best, printed_worst = a0 * ratio + step, a0 * ratio
    assert printed_best > 1  # cannot be
    # reject 20 more, all of them errors: nothing can do better, and the words call it the worst
    best = hr.OperatingPoint(50, 10, 5, 35)
    worst = hr.OperatingPoint(30, 30, 25, 15)
    assert best.nonrejected_accuracy == pytest.approx(printed_worst)
    assert hr.compare(best, WORKED).relative_optimality == pytest.approx(1)
    assert hr.compare(worst, WORKED).relative_optimality == pytest.approx(-1)
    borders = hr.operating_set(WORKED, rejected_fraction=[r1]).nonrejected_accuracy
    assert borders.sel(border="best").item() == pytest.approx(best.nonrejected_accuracy)
    assert borders.sel(border="worst").item() == pytest.approx(worst.nonrejected_accuracy)
    for beta in (-1.0, 0.0, 0.5, 1.0):  # the formula below the words is right
        accuracy = a0 * ratio + (beta - 1) / 2 * step
        assert hr.relative_optimality(accuracy, r1, a0, r0) == pytest.approx(beta)


def test_5_smaller_confidences_are_rejected_first() -> None:
    """Section II-A: "all the samples j with smaller confidence c_i < c_j are also rejected"."""
    correct = np.ones(3, dtype=bool)
    confidence = np.array([0.2, 0.5, 0.8])
    curve = hr.rejection_curve(correct, confidence)
    rejected = confidence < curve.threshold.values[2]  # two of three
    i = 1  # a rejected sample
    printed = confidence > confidence[i]  # the j with c_i < c_j
    assert not rejected[printed].any()
    assert rejected[confidence < confidence[i]].all()


def test_6_the_third_case_of_outperformance() -> None:
    """Case 3 prints "R1 outperforms R1"; property IV, "a_N = 0 and a_R = 1 are empty", is right."""
    one, two = hr.OperatingPoint(53, 30, 2, 15), hr.OperatingPoint(50, 30, 5, 15)
    assert hr.compare(one, one).verdict == "is equal"
    assert hr.compare(one, two).verdict == "outperforms"
    correct = np.array([True, True, False])
    perfect = hr.operating_point(correct, ~correct)
    assert (perfect.accurate_rejected, perfect.misclassified_kept) == (0, 0)  # both are empty
    assert perfect.classification_quality == 1


def test_7_quality_from_the_number_of_accurate_samples() -> None:
    """The appendix prints n Q = n - A(0) + |N| - 2 ||1 - a_N||, with A(0) for ||a||."""
    n, kept, misclassified_kept = WORKED.n, WORKED.kept, WORKED.misclassified_kept
    printed = n - WORKED.overall_accuracy + kept - 2 * misclassified_kept
    ours = n - WORKED.accurate + kept - 2 * misclassified_kept
    assert printed / n > 1
    assert ours / n == WORKED.classification_quality


def test_3_rejection_quality_compares_nothing_where_all_labels_are_right_or_all_wrong() -> None:
    """The convention, infinity if anything is rejected, has no meaning where all odds are 0/0."""
    for all_alike in (hr.OperatingPoint(0, 60, 0, 40), hr.OperatingPoint(60, 0, 40, 0)):
        assert np.isnan(all_alike.rejection_quality)


def test_8_the_same_classifier_has_as_many_right_labels() -> None:
    """Case 1 of section II-B compares "accurately classified samples": of those kept."""
    better, worse = hr.OperatingPoint(55, 25, 0, 20), WORKED
    assert better.rejected_fraction == worse.rejected_fraction
    assert hr.compare(better, worse).verdict == "outperforms"
    assert better.accurate == worse.accurate  # what is printed cannot be "larger"
    assert better.accurate_kept > worse.accurate_kept


def test_8_the_rule_after_theorem_1_needs_the_larger_fraction() -> None:
    """It prints L1 < L0 exactly for rho < (beta + 1) / 2, without r1 > r0."""
    one, zero = hr.OperatingPoint(54, 40, 1, 5), WORKED  # r1 < r0
    beta = hr.compare(one, zero).relative_optimality
    assert one.rejected_fraction < zero.rejected_fraction
    rules = {"printed": [], "ours": []}
    for rho in np.linspace(0.02, 0.98, 49):
        cheaper = one.cost(rho) < zero.cost(rho)
        rules["printed"].append((rho < (beta + 1) / 2) == cheaper)
        rules["ours"].append((rho > (1 - beta) / 2) == cheaper)
    assert all(rules["ours"])
    assert not all(rules["printed"])


def test_8_quality_needs_its_rejected_fraction() -> None:
    """Appendix Q II prints 2 A (1 - r) - A(0) for Q, without + r."""
    r = WORKED.rejected_fraction
    printed = 2 * WORKED.nonrejected_accuracy * (1 - r) - WORKED.overall_accuracy
    assert printed + r == pytest.approx(WORKED.classification_quality)
    assert printed != pytest.approx(WORKED.classification_quality)


def test_8_equal_costs_at_the_two_ends() -> None:
    """Section II-B says that its three cases decide for all 0 <= rho <= 1."""
    same_errors = hr.OperatingPoint(53, 30, 2, 15), WORKED
    same_right = hr.OperatingPoint(50, 20, 5, 25), WORKED
    for (better, worse), end in ((same_errors, 0.0), (same_right, 1.0)):
        assert hr.compare(better, worse).verdict == "outperforms"
        assert better.cost(end) == pytest.approx(worse.cost(end))
        for rho in (0.1, 0.5, 0.9, 1 - end):
            assert better.cost(rho) < worse.cost(rho)


def test_8_theorem_2_speaks_of_shares() -> None:
    """Theorem 2 calls |A n N| / n a number of samples; its matrix, times n, gives |A n N|."""
    share = WORKED.accurate_kept / WORKED.n
    assert share == pytest.approx(WORKED.nonrejected_accuracy * (1 - WORKED.rejected_fraction))
    assert share < 1 < WORKED.accurate_kept


def test_8_what_is_positive_differs_between_precision_and_likelihood_ratio() -> None:
    """Section IV-D reads A and phi off one binary classifier."""
    an, mn, ar, mr = 50, 30, 5, 15
    assert WORKED.nonrejected_accuracy == an / (an + mn)  # of those called "kept", how many should
    rejected = (mr / (mr + mn)) / (ar / (ar + an))  # true over false positive rate of "rejected"
    kept = (an / (an + ar)) / (mn / (mn + mr))
    assert WORKED.rejection_quality == pytest.approx(rejected)
    assert WORKED.rejection_quality != pytest.approx(kept)


def test_8_the_test_point_is_cheaper_up_to_a_maximum_cost() -> None:
    """Section V-B calls rho_0 the minimum for which the point that rejects more is cheaper."""
    nothing = hr.OperatingPoint(55, 45, 0, 0)
    border = hr.compare(WORKED, nothing).break_even_cost
    assert WORKED.cost(border - 0.01) < nothing.cost(border - 0.01)
    assert WORKED.cost(border + 0.01) > nothing.cost(border + 0.01)


def test_8_slips_in_the_chains_of_the_appendix() -> None:
    """A III lacks a factor n, Q II compares R1 with itself, the first chain of Q III ends in r1."""
    n, accurate = WORKED.n, WORKED.accurate
    fewer = hr.OperatingPoint(53, 30, 2, 15)  # as many errors kept, fewer rejected: outperforms
    r1, r2 = fewer.rejected_fraction, WORKED.rejected_fraction
    scale = (1 - r2) / (1 - r1)
    printed = scale - (1 - r2) * WORKED.accurate_kept / ((1 - r1) * (1 - r2))
    ours = scale - (1 - r2) * WORKED.accurate_kept / ((1 - r1) * (1 - r2) * n)
    assert ours == pytest.approx(1 - fewer.nonrejected_accuracy)
    assert printed < 0
    more = hr.OperatingPoint(50, 20, 5, 25)  # as many right kept, more rejected
    assert more.classification_quality > WORKED.classification_quality
    assert not more.nonrejected_accuracy > more.nonrejected_accuracy
    r1 = more.rejected_fraction
    printed, ours = (2 * WORKED.accurate_kept + r * n - accurate for r in (r1, r2))
    assert ours == pytest.approx(n * WORKED.classification_quality)
    assert printed == pytest.approx(n * more.classification_quality)  # that of the other rejector


def test_8_extremes_need_something_kept_or_rejected() -> None:
    """Property IV: any N within A has A = 1, any R within M has phi = inf; 0 is phi's minimum."""
    assert hr.OperatingPoint(20, 0, 35, 45).nonrejected_accuracy == 1
    assert np.isnan(hr.OperatingPoint(0, 0, 55, 45).nonrejected_accuracy)
    assert hr.OperatingPoint(55, 40, 0, 5).rejection_quality == np.inf
    assert hr.OperatingPoint(55, 45, 0, 0).rejection_quality == 1
    for accurate_rejected in (5, 20, 55):  # any R within A: the minimum, and not a unique one
        point = hr.OperatingPoint(55 - accurate_rejected, 45, accurate_rejected, 0)
        assert point.rejection_quality == 0


def test_8_property_iii_is_not_strict_for_accuracy_and_rejection_quality() -> None:
    """The property says that whoever outperforms has the larger A and phi."""
    one, two = hr.OperatingPoint(55, 0, 0, 45), hr.OperatingPoint(50, 0, 5, 45)
    assert hr.compare(one, two).verdict == "outperforms"
    assert one.nonrejected_accuracy == two.nonrejected_accuracy == 1
    more, less = hr.OperatingPoint(55, 10, 0, 35), hr.OperatingPoint(55, 30, 0, 15)
    assert hr.compare(more, less).verdict == "outperforms"
    assert more.rejection_quality == less.rejection_quality == np.inf


def test_section_iv_e_conditions_by_cost() -> None:
    """For r1 > r0: L1 < L0 exactly if A1 > ..., exactly if Q1 > Q0 + (2 rho - 1)(r1 - r0)."""
    random = np.random.default_rng(0)
    for _ in range(300):
        n_accurate, n_wrong = random.integers(1, 40, 2)
        kept = random.integers(0, [n_accurate + 1, n_wrong + 1], (2, 2))
        points = [hr.OperatingPoint(a, m, n_accurate - a, n_wrong - m) for a, m in kept]
        zero, one = sorted(points, key=lambda point: point.rejected_fraction)
        r0, r1 = zero.rejected_fraction, one.rejected_fraction
        if r1 in {r0, 1}:
            continue
        for rho in random.uniform(0, 1, 3):
            cost = [
                (1 - p.rejected_fraction) * (1 - p.nonrejected_accuracy) + rho * p.rejected_fraction
                for p in (zero, one)
            ]
            accuracy = zero.nonrejected_accuracy * (1 - r0) / (1 - r1) + (rho - 1) * (r1 - r0) / (
                1 - r1
            )
            quality = zero.classification_quality + (2 * rho - 1) * (r1 - r0)
            better = cost[1] < cost[0]
            assert (one.nonrejected_accuracy > accuracy) == better
            assert (one.classification_quality > quality) == better
