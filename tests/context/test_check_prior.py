"""check_prior names what is wrong: a right prior, broken in one place at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import InputError


class Columns(hr.Prior):
    """Absolute differences down the columns, one pixel and class at a time.

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


def test_a_right_prior_passes() -> None:
    hr.check_prior(Columns())


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
