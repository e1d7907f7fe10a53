"""Relative optimality: formula, symmetry, cost relation, edges."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import xarray as xr
from hypothesis import assume, given
from hypothesis import strategies as st

import hsreject as hr
from hsreject.errors import InputError
from tests.measures import slow
from tests.measures.strategies import Rejections, Samples, rejections, samples


def exact_beta(one: slow.Counts, zero: slow.Counts) -> Fraction:
    """The paper's equation, case by case, over exact fractions."""
    gain = Fraction(one.accurate_kept, sum(one)) - Fraction(zero.accurate_kept, sum(zero))
    r1, r0 = slow.fraction(one), slow.fraction(zero)
    if r1 > r0:
        return 2 * gain / (r1 - r0) + 1
    return -2 * gain / (r1 - r0) - 1


def beta_of(one: hr.OperatingPoint, zero: hr.OperatingPoint) -> float:
    value = hr.relative_optimality(
        one.nonrejected_accuracy,
        one.rejected_fraction,
        zero.nonrejected_accuracy,
        zero.rejected_fraction,
    )
    assert isinstance(value, float)
    return value


@given(rejections(), st.fractions(0, 1, max_denominator=50))
def test_equation_symmetry_sign_and_theorem_1(drawn: Rejections, rho: Fraction) -> None:
    """Theorem 1 gives the sign of the difference of costs, for r1 > r0 and for r1 < r0."""
    one, zero = (slow.count(drawn[0], rejected) for rejected in drawn[1:])
    r1, r0 = slow.fraction(one), slow.fraction(zero)
    assume(r1 != r0)
    beta = exact_beta(one, zero)
    points = hr.OperatingPoint(*one), hr.OperatingPoint(*zero)
    # inputs are rounded to 1e-16 and divided by a step of at least 1/16
    assert beta_of(*points) == pytest.approx(float(beta), abs=1e-13)
    assert beta_of(*points) == -beta_of(*reversed(points))
    assert (beta >= 0) == (slow.quality(one) >= slow.quality(zero))
    saving = slow.cost(zero, rho) - slow.cost(one, rho)
    relation = (beta + 1) / 2 - rho if r1 > r0 else rho - (1 - beta) / 2
    assert np.sign(saving) == np.sign(relation)


def test_equal_fractions_and_everything_rejected() -> None:
    for arguments, expected in {
        (0.8, 0.3, 0.7, 0.3): np.inf,
        (0.7, 0.3, 0.8, 0.3): -np.inf,
        (0.7, 0.3, 0.7, 0.3): 0,
        (np.nan, 1.0, np.nan, 1.0): 0,
        (np.nan, 1.0, 0.75, 0.0): 1 - 2 * 0.75,  # needs no accuracy
        (np.nan, 0.5, 0.75, 0.0): np.nan,
    }.items():
        assert hr.relative_optimality(*arguments) == pytest.approx(expected, nan_ok=True)


def test_broadcasts_over_numpy_and_xarray() -> None:
    accuracy, fraction = np.array([0.55, 0.625, 0.7]), np.array([0.0, 0.2, 0.4])
    table = hr.relative_optimality(
        accuracy[:, None], fraction[:, None], accuracy[None, :], fraction[None, :]
    )
    assert table.shape == (3, 3)
    np.testing.assert_array_equal(table, -table.T)
    labelled = xr.DataArray(accuracy, dims="operating_point", coords={"operating_point": [4, 5, 6]})
    row = hr.relative_optimality(labelled, fraction, 0.55, 0.0)
    assert isinstance(row, xr.DataArray)
    np.testing.assert_array_equal(row, table[:, 0])
    assert row.operating_point.values.tolist() == [4, 5, 6]


def points_of(curve: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    return curve.nonrejected_accuracy, curve.rejected_fraction


def test_labelled_results_say_what_they_are() -> None:
    curve = hr.rejection_curve([True, False, True], [0.9, 0.5, 0.1])
    meanings = {values.attrs["long_name"] for values in curve.values()}
    for name in ("relative_optimality", "break_even_cost"):
        found = getattr(hr, name)(*points_of(curve), 0.6, 0.0)
        assert found.name == name
        assert found.attrs["long_name"] not in meanings
    assert hr.minimum_cost_without_rejection(curve).attrs["long_name"] not in meanings
    assert curve.nonrejected_accuracy.attrs["long_name"].endswith("(A)"), "the curve is as it was"


def test_curves_of_two_lengths_are_refused() -> None:
    long = points_of(hr.rejection_curve([True, False, True], [0.9, 0.5, 0.1]))
    short = points_of(hr.rejection_curve([True, False], [0.9, 0.5]))
    plain = [values.values for values in short]
    for measure in (hr.relative_optimality, hr.break_even_cost):
        for reference in (short, plain):
            with pytest.raises(InputError, match=r"accuracy_1 \(4,\), .*fraction_0 \(3,\)"):
                measure(*long, *reference)
        pairs = measure(*long, *(a.rename(operating_point="reference_point") for a in short))
        assert pairs.dims == ("operating_point", "reference_point")


@given(samples())
def test_all_pairs_of_a_curve(drawn: Samples) -> None:
    """The exact value; the largest quality is never relatively worse."""
    curve = hr.rejection_curve(*drawn)
    table = hr.relative_optimality_pairs(curve)
    assert table.dims == ("operating_point", "reference_point")
    values = table.values.tolist()
    points = slow.curve(*drawn)
    for i, one in enumerate(points):
        for j, zero in enumerate(points):
            expected = Fraction(0) if i == j else exact_beta(one, zero)
            assert values[i][j] == float(expected)  # integers divided once: exact rounding
    assert (table[hr.choose_point(curve).index] >= 0).all()


def long_curve(n: int) -> xr.Dataset:
    rng = np.random.default_rng(8)
    confidence = rng.random(n)
    return hr.rejection_curve(rng.random(n) < confidence, confidence)


def test_pairs_on_a_grid_use_the_nearest_points() -> None:
    curve = long_curve(1000)
    grid = hr.relative_optimality_pairs(curve, n_points=11)
    assert grid.shape == (11, 11)
    np.testing.assert_allclose(grid.rejected_fraction, np.linspace(0, 1, 11), atol=5e-4)
    whole = hr.relative_optimality_pairs(curve)
    index = np.searchsorted(whole.rejected_fraction, grid.rejected_fraction)
    np.testing.assert_array_equal(grid, whole.values[np.ix_(index, index)])
    few = hr.rejection_curve([True, False], [0.5, 0.5])
    assert hr.relative_optimality_pairs(few, n_points=50).shape == (2, 2)
    with pytest.raises(InputError, match="n_points"):
        hr.relative_optimality_pairs(few, n_points=1)


def test_pairs_allocate_little_more_than_the_answer() -> None:
    curve = long_curve(2000)
    tracemalloc.start()
    answer = hr.relative_optimality_pairs(curve)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.05 * answer.nbytes
