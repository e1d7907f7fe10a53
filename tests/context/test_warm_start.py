"""Starts from a previous solution."""

from __future__ import annotations

import numpy as np
import pytest

from hsreject.context.priors import VectorTV
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from tests.context.scenes import regions

SCENE = regions((3, 18, 45), seed=1)


@pytest.mark.parametrize("solver", ["admm", "preconditioned_admm"])
def test_warm_start_is_quick_and_right(solver: str) -> None:
    segsalsa = SegSALSA(VectorTV(2.0), solver=solver, tol=1e-5, dtype="float64")
    cold = segsalsa.solve(SCENE)
    again = segsalsa.solve(SCENE, start=cold)
    assert again.n_iterations < cold.n_iterations / 2
    assert again.objective == pytest.approx(cold.objective, rel=1e-5)
    other = SCENE[[1, 0, 2]]
    np.testing.assert_allclose(
        segsalsa.solve(other, start=cold).objective, segsalsa.solve(other).objective, rtol=2e-5
    )


def test_a_result_is_not_changed_by_a_start_from_it() -> None:
    segsalsa = SegSALSA(VectorTV(2.0))
    first = segsalsa.solve(SCENE)
    before = first.hidden_field.copy()
    segsalsa.solve(SCENE[[1, 0, 2]], start=first)
    np.testing.assert_array_equal(first.hidden_field, before)


def test_start_of_another_shape_is_refused() -> None:
    segsalsa = SegSALSA(VectorTV(2.0))
    first = segsalsa.solve(SCENE)
    with pytest.raises(InputError, match="start does not fit"):
        segsalsa.solve(SCENE[:, :-1], start=first)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_solution_goes_on_where_it_stopped(n_classes: int) -> None:
    """The early, inexact steps of a cold solve would blur a good start."""
    probability = regions((n_classes, 20, 37), seed=3)
    segsalsa = SegSALSA(VectorTV(1.0), tol=1e-4)
    first = segsalsa.solve(probability)
    second = segsalsa.solve(probability, start=first)
    assert second.n_iterations <= 3 < first.n_iterations
    assert second.objective <= first.objective
