"""A researcher's new prior: it works by its name, and check_prior says what is wrong with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hsreject as hr
from hsreject.context.priors import PRIORS
from hsreject.context.segsalsa import SOLVERS
from hsreject.errors import ConfigError, InputError
from hsreject.registry import Registry
from tests.context.scenes import regions


class Columns(hr.Prior):
    """Absolute differences down the columns.

    `broken` replaces methods of its term.
    """

    def __init__(self, weight: float = 0.7, broken: dict[str, Any] | None = None) -> None:
        self.weight = weight
        self.broken = broken or {}

    def bind(self, grid: Any) -> Any:
        return type("BrokenTerm", (ColumnsTerm,), self.broken)(grid, self.weight)


class ColumnsTerm(hr.Term):
    squared_norm = 4.0

    def __init__(self, grid: Any, weight: float) -> None:
        super().__init__(grid)
        self.weight = weight
        self.has_edge = (grid.valid[:-1] & grid.valid[1:])[:, None]

    def forward(self, field: Any) -> Any:
        return np.diff(field, axis=0) * self.has_edge

    def adjoint(self, coefficients: Any) -> Any:
        return -np.diff(coefficients * self.has_edge, axis=0, prepend=0, append=0)

    def value(self, coefficients: Any) -> float:
        return self.weight * float(np.abs(coefficients).sum(dtype=float))

    def prox(self, coefficients: Any, step: float) -> Any:
        return coefficients - np.clip(coefficients, -step * self.weight, step * self.weight)

    def conjugate(self, dual: Any) -> float:
        return 0.0 if np.abs(dual).max(initial=0.0) <= self.weight * (1 + 1e-5) else np.inf


def test_a_right_prior_passes_and_is_configured_by_name() -> None:
    hr.check_prior(Columns())
    priors: Registry[hr.Prior] = Registry("prior", PRIORS)
    priors.register("columns", Columns)
    assert priors.create("columns", weight=3.0) == Columns(3.0)
    assert priors.summary("columns") == "Absolute differences down the columns."
    with pytest.raises(ConfigError, match="Did you mean 'weight'"):
        priors.create("columns", wieght=3.0)


@pytest.mark.parametrize("solver", SOLVERS)
def test_both_solvers_find_its_optimum(solver: str) -> None:
    probability = regions((3, 12, 9), seed=2)
    options = {"tol": 1e-7, "dtype": "float64", "max_iter": 20_000}
    result = hr.SegSALSA(Columns(), solver=solver, **options).solve(probability)
    # columns are independent problems: the optimum is the sum of theirs
    columns = [hr.SegSALSA(Columns(), **options).solve(probability[:, :, [x]]) for x in range(9)]
    optimum = sum(column.objective for column in columns)
    assert result.converged
    assert result.objective == pytest.approx(optimum, rel=3e-7)


def test_it_adds_up_with_others() -> None:
    both = [Columns(), hr.VectorTV(0.5)]
    one, other = (
        hr.SegSALSA(both, solver=solver, tol=1e-5).solve(regions((3, 12, 9), seed=2))
        for solver in SOLVERS
    )
    assert one.objective == pytest.approx(other.objective, rel=2e-5)


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "not linear": ({"forward": lambda t, z: ColumnsTerm.forward(t, z) ** 2}, "forward .* linear"),
    "couples nodata": (
        {
            "forward": lambda t, z: np.diff(z, axis=0),
            "adjoint": lambda t, v: -np.diff(v, axis=0, prepend=0, append=0),
        },
        "forward .* without data",
    ),
    "sign of the adjoint": (
        {"adjoint": lambda t, v: -ColumnsTerm.adjoint(t, v)},
        "adjoint of Columns .*Transpose",
    ),
    "shape of the adjoint": ({"adjoint": lambda t, v: v}, "adjoint .* shape"),
    "norm too small": ({"squared_norm": 2.0}, "squared_norm of Columns is 2"),
    "infinite norm": ({"squared_norm": np.inf}, "squared_norm"),
    "value at zero": ({"value": lambda t, v: 1 + ColumnsTerm.value(t, v)}, "value .* 1 at 0"),
    "conjugate at zero": ({"conjugate": lambda t, y: 3.0}, "conjugate .* 3 at 0"),
    "not convex": (
        {"value": lambda t, v: float(np.sqrt(np.abs(v)).sum())},
        "value .* not convex",
    ),
    "prox without the weight": (
        {"prox": lambda t, v, step: v - np.clip(v, -step, step)},
        "prox of Columns",
    ),
    "prox without the step": (
        {"prox": lambda t, v, step: v - np.clip(v, -t.weight, t.weight)},
        "prox of Columns",
    ),
    "conjugate of another norm": (
        {"conjugate": lambda t, y: 0.0 if np.abs(y).sum() <= t.weight else np.inf},
        "conjugate of Columns is inf",
    ),
    "conjugate of a square": (
        {"conjugate": lambda t, y: float((y**2).sum()) / (4 * t.weight)},
        "conjugate of Columns",
    ),
    "prox of the conjugate": ({"prox_conjugate": lambda t, y, step: 0.9 * y}, "prox_conjugate"),
    "fast adjoint": ({"add_adjoint": lambda t, y, z, threads: None}, "add_adjoint"),
    "fast dual": ({"update_dual": lambda t, y, z, **options: None}, "update_dual"),
    "fast value": ({"value_of_field": lambda t, z, threads: 1.0}, "value_of_field"),
    "spectrum": ({"gram_spectrum": lambda t: np.ones(t.grid.valid.shape)}, "gram_spectrum"),
    "conjugate without room for rounding": (
        {"conjugate": lambda t, y: 0.0 if np.abs(y).max() <= t.weight + 1e-15 else np.inf},
        "float32",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_the_method_at_fault_is_named(fault: str) -> None:
    methods, words = BROKEN[fault]
    with pytest.raises(InputError, match=words):
        hr.check_prior(Columns(broken=methods))


def test_bind_must_return_a_term() -> None:
    class Nothing(hr.Prior):
        def bind(self, grid: Any) -> Any:
            return None

    with pytest.raises(InputError, match="bind of Nothing"):
        hr.check_prior(Nothing())


def test_a_prior_of_one_size_is_tried_on_a_scene_of_that_size() -> None:
    prior = hr.GraphTV(partitions=np.repeat([[1, 1, 2, 2]], 3, axis=0))
    hr.check_prior(prior, np.zeros((1, 3, 4)))
    with pytest.raises(InputError, match="partition"):
        hr.check_prior(prior)
