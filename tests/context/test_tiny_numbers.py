"""Numbers on their way to 0 are forgotten before they slow a processor down."""

from __future__ import annotations

import numpy as np
import pytest
from hsreject.context.solvers.base import starting_state
from hsreject.context.workers import Workers

from hsreject.context.preconditioned_admm import TINY_EVERY, GeneralIteration, Iteration
from hsreject.context.priors import VectorTV
from hsreject.context.problem import Problem
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import NotConvergedWarning
from tests.context.scenes import grid_of, regions

SCENE = regions((3, 18, 45), seed=1)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_only_what_is_far_below_rounding(dtype: str, *, fused: bool) -> None:
    grid = grid_of(np.ones((7, 9), bool), dtype=dtype)
    problem = Problem(np.ones(grid.shape, dtype), (VectorTV(1.0).bind(grid),))
    field, duals = starting_state(problem, None)
    rounding = np.finfo(dtype).eps
    for array in (field, *duals):
        array[:] = np.random.default_rng(0).choice([1, -rounding, -1e-4 * rounding, 0], array.shape)
    expected = [np.where(np.abs(array) < rounding / 2, 0, array) for array in (field, *duals)]
    iteration: Iteration | None = GeneralIteration(problem, field, duals)
    if fused:
        iteration = problem.terms[0].fuse(problem.probability, field, duals[0])
    assert iteration is not None
    with Workers(2) as workers:
        iteration.forget_tiny(workers)
    for found, wanted in zip(iteration.unknowns, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_long_solve_forgets_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(Iteration, "forget_tiny", lambda *_: calls.append(1))
    segsalsa = SegSALSA(VectorTV(2.0), tol=1e-15, max_iter=2 * TINY_EVERY + 1)
    with pytest.warns(NotConvergedWarning):
        segsalsa.solve(SCENE)
    assert len(calls) == 2
