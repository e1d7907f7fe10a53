"""A researcher's new prior: one file, one line in the registry, and everything works with it."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import numpy as np
import pytest

import hsreject as hr
from hsreject.context.priors import PRIORS
from hsreject.errors import ConfigError
from hsreject.registry import Registry
from tests.context.scenes import regions

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = '''
"""Squared differences between a pixel and the one below it."""

import numpy as np

import hsreject as hr


class ColumnSmoothness(hr.Prior):
    """Squared differences down the columns."""

    def __init__(self, weight=1.0):
        self.weight = weight

    def bind(self, grid):
        return ColumnSmoothnessTerm(grid, self.weight)


class ColumnSmoothnessTerm(hr.Term):
    squared_norm = 4.0

    def __init__(self, grid, weight):
        super().__init__(grid)
        self.weight = weight
        self.has_edge = (grid.valid[:-1] & grid.valid[1:])[:, None]

    def forward(self, field):
        return np.diff(field, axis=0) * self.has_edge

    def adjoint(self, coefficients):
        return -np.diff(coefficients * self.has_edge, axis=0, prepend=0, append=0)

    def value(self, coefficients):
        return self.weight * float(np.sum(coefficients**2, dtype=float))

    def prox(self, coefficients, step):
        return coefficients / (1 + 2 * step * self.weight)

    def conjugate(self, dual):
        squared = float(np.sum(dual**2, dtype=float))
        return squared / (4 * self.weight) if squared > 0 else 0.0
'''


@pytest.fixture
def priors(tmp_path: Path) -> Registry:
    """A copy of the registry with the prior of a file that was written just now."""
    path = tmp_path / "column_smoothness.py"
    path.write_text(SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("column_smoothness", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    registry: Registry = Registry("prior", PRIORS)
    registry.register("column_smoothness", module.ColumnSmoothness)
    return registry


def test_it_is_configured_by_name(priors: Registry) -> None:
    assert priors.create("column_smoothness", weight=3.0).weight == 3.0
    assert priors.summary("column_smoothness") == "Squared differences down the columns."
    with pytest.raises(ConfigError, match="Did you mean 'weight'"):
        priors.create("column_smoothness", wieght=3.0)


@pytest.mark.parametrize("solver", ["preconditioned_admm", "admm"])
def test_both_solvers_find_its_optimum(priors: Registry, solver: str) -> None:
    probability = regions((3, 12, 9), seed=2)
    prior = priors.create("column_smoothness", weight=3.0)
    result = hr.SegSALSA(prior, solver=solver, tol=1e-7, dtype="float64").solve(probability)
    assert result.converged
    # columns are independent problems: one alone has the same answer
    column = hr.SegSALSA(prior, tol=1e-7, dtype="float64").solve(probability[:, :, 4:5])
    np.testing.assert_allclose(column.hidden_field[..., 0], result.hidden_field[..., 4], atol=1e-3)


def test_it_adds_up_with_others(priors: Registry) -> None:
    probability = regions((3, 12, 9), seed=2)
    both = [priors.create("column_smoothness", weight=3.0), PRIORS.create("vector_tv", weight=0.5)]
    results = [
        hr.SegSALSA(both, solver=s, tol=1e-5).solve(probability)
        for s in ("preconditioned_admm", "admm")
    ]
    assert results[0].objective == pytest.approx(results[1].objective, rel=2e-5)
