"""The solvers against a general conic solver: the same optimum, and a gap that never lies."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import hsreject as hr
from hsreject.context.segsalsa import SOLVERS
from hsreject.errors import NotConvergedWarning
from tests.context import nuclear_oracle, oracle
from tests.context.scenes import random_probability

if TYPE_CHECKING:
    from numpy.typing import NDArray

GRID = (12, 12)
SHAPE = (4, *GRID)
EDGES = np.random.default_rng(5).uniform(0.1, 1.5, size=(12, 2, 12))
EDGES[:, 0, -1] = EDGES[-1, 1] = 0
BLOCKS = np.arange(12)[:, None] // 4 * 3 + np.arange(12) // 4
SCATTERED = np.random.default_rng(6).integers(20, size=GRID)


def written_out(*priors: Callable[[Any], Any]) -> Callable[[NDArray[np.float64]], float]:
    return partial(oracle.optimum, priors=list(priors))


# name -> (our priors, the optimum of the same for given likelihoods)
PROBLEMS = (
    {
        f"vector_tv weight {weight}": (
            [hr.VectorTV(weight)],
            written_out(oracle.vector_tv(GRID, weight)),
        )
        for weight in (0.1, 1.0, 4.0)
    }
    | {
        f"graph_tv weight {weight}": (
            [hr.GraphTV(weight, partitions=BLOCKS)],
            written_out(oracle.graph_tv([BLOCKS], weight)),
        )
        for weight in (0.1, 1.0, 10.0)
    }
    | {
        f"structure_tensor weight {weight}": (
            [hr.StructureTensor(weight, width=0.5)],
            partial(nuclear_oracle.optimum, weight=weight, patch=3, width=0.5),
        )
        for weight in (0.1, 1.0, 4.0)
    }
    | {
        "vector_tv with edges": (
            [hr.VectorTV(1.5, edges=EDGES)],
            written_out(oracle.vector_tv(GRID, 1.5, EDGES)),
        ),
        "two of vector_tv": (
            [hr.VectorTV(0.7), hr.VectorTV(0.8, edges=EDGES)],
            written_out(oracle.vector_tv(GRID, 0.7), oracle.vector_tv(GRID, 0.8, EDGES)),
        ),
        "graph_tv of two partitions": (
            [hr.GraphTV(1.2, partitions=[BLOCKS, SCATTERED])],
            written_out(oracle.graph_tv([BLOCKS, SCATTERED], 1.2)),
        ),
        "graph_tv and vector_tv": (
            [hr.GraphTV(0.6, partitions=SCATTERED), hr.VectorTV(0.3)],
            written_out(oracle.graph_tv([SCATTERED], 0.6), oracle.vector_tv(GRID, 0.3)),
        ),
    }
)


@cache
def reference(name: str) -> float:
    return PROBLEMS[name][1](random_probability(SHAPE, seed=1))


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_agrees_with_a_conic_solver(name: str, solver: str) -> None:
    # the conic solver's own tolerance is 1e-9
    segsalsa = hr.SegSALSA(
        PROBLEMS[name][0], solver=solver, tol=1e-7, dtype="float64", max_iter=20_000
    )
    result = segsalsa.solve(random_probability(SHAPE, seed=1))
    assert result.converged
    assert result.objective == pytest.approx(reference(name), rel=1e-6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_certificate_never_lies(name: str, solver: str) -> None:
    for n_iterations in (1, 2, 5, 20, 100):
        segsalsa = hr.SegSALSA(
            PROBLEMS[name][0], solver=solver, tol=1e-14, dtype="float64", max_iter=n_iterations
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)
            result = segsalsa.solve(random_probability(SHAPE, seed=1))
        rounding = 1e-8 * result.objective
        assert result.objective - reference(name) > -rounding
        for checkpoint in result.history:
            assert checkpoint.gap >= checkpoint.objective - reference(name) - rounding
