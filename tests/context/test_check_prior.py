"""A researcher's new prior: it works by its name, and check_prior says what is wrong with it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import hsreject as hr
from hsreject.context.priors import PRIORS
from hsreject.context.priors.graph_tv import GraphTVTerm
from hsreject.context.segsalsa import SOLVERS
from hsreject.errors import ConfigError, InputError, UncheckedWarning
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
        padded = np.pad(coefficients * self.has_edge, ((1, 1), (0, 0), (0, 0)))
        return -np.diff(padded, axis=0)

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


def clipped(v: Any, limit: float) -> Any:
    return v - np.clip(v, -limit, limit)


DRAWS = map(float, itertools.count(1))


def in_place(v: Any, *_: Any) -> Any:
    v *= 0.5
    return v


def raising(*_: Any, **__: Any) -> Any:
    raise ValueError("operands could not be broadcast together")


def ball(t: Any, y: Any, radius: float) -> float:
    return 0.0 if np.abs(y).max(initial=0.0) <= radius * t.weight else np.inf


# fault -> (what replaces a method of the term, the method that must be named and the word)
WRONG_TERMS: dict[str, tuple[dict[str, Any], str]] = {
    "not linear": ({"forward": lambda t, z: ColumnsTerm.forward(t, z) ** 2}, "forward .* linear"),
    "with an offset": ({"forward": lambda t, z: ColumnsTerm.forward(t, z) + 1}, "forward .*linear"),
    "another at each call": (
        {"forward": lambda t, z: ColumnsTerm.forward(t, z) * next(DRAWS)},
        "forward .* linear",
    ),
    "couples nodata": (
        {
            "forward": lambda t, z: np.diff(z, axis=0),
            "adjoint": lambda t, v: -np.diff(np.pad(v, ((1, 1), (0, 0), (0, 0))), axis=0),
        },
        "forward .* without data",
    ),
    "forward changes the field": (
        {"forward": lambda t, z: ColumnsTerm.forward(t, in_place(z))},
        "forward .* changes",
    ),
    "forward fails": ({"forward": raising}, "forward .* fails: ValueError"),
    "forward in double precision": (
        {"forward": lambda t, z: ColumnsTerm.forward(t, z.astype(float))},
        "forward .* float64 for float32",
    ),
    "sign of the adjoint": (
        {"adjoint": lambda t, v: -ColumnsTerm.adjoint(t, v)},
        "adjoint of Columns .*Transpose",
    ),
    "scale of the adjoint": (
        {"adjoint": lambda t, v: 0.5 * ColumnsTerm.adjoint(t, v)},
        "adjoint of Columns .*Transpose",
    ),
    "shape of the adjoint": ({"adjoint": lambda t, v: v}, "adjoint .* shape"),
    "adjoint fails": ({"adjoint": raising}, "adjoint .* fails"),
    "adjoint changes the dual": (
        {"adjoint": lambda t, v: 2 * ColumnsTerm.adjoint(t, in_place(v))},
        "adjoint .* changes",
    ),
    "adjoint in double precision": (
        {"adjoint": lambda t, v: ColumnsTerm.adjoint(t, v) * np.ones(1)},
        "adjoint .* float64 for float32",
    ),
    "dual of another shape": (
        {"new_dual": lambda t: np.zeros(t.grid.shape, t.grid.dtype)},
        "new_dual",
    ),
    "dual that is not zero": (
        {"new_dual": lambda t: 1 + ColumnsTerm.forward(t, np.zeros(t.grid.shape, t.grid.dtype))},
        "new_dual",
    ),
    "norm half of it": ({"squared_norm": 2.0}, "squared_norm of Columns is 2"),
    "norm a fifth too small": ({"squared_norm": 3.2}, "squared_norm of Columns is 3.2"),
    "norm of a small scene": ({"squared_norm": 3.85}, "squared_norm of Columns is 3.85"),
    "infinite norm": ({"squared_norm": np.inf}, "squared_norm"),
    "norm that is a word": ({"squared_norm": "4"}, "squared_norm .* number"),
    "norm that is a method": ({"squared_norm": lambda t: 4.0}, "squared_norm"),
    "norm fails": ({"squared_norm": property(raising)}, "squared_norm .* fails"),
    "value at zero": ({"value": lambda t, v: 1 + ColumnsTerm.value(t, v)}, "value .* 1 at 0"),
    "value is not a number": ({"value": lambda t, v: np.nan}, "value .* number"),
    "value per pixel": ({"value": lambda t, v: np.abs(v)}, "value .* number"),
    "value fails": ({"value": raising}, "value .* fails"),
    "value changes what it is given": (
        {"value": lambda t, v: 2 * ColumnsTerm.value(t, in_place(v))},
        "value .* changes",
    ),
    "not convex": (
        {"value": lambda t, v: float(np.sqrt(np.abs(v)).sum())},
        "value .* not convex",
    ),
    "negative": ({"value": lambda t, v: -ColumnsTerm.value(t, v)}, "value .* not convex"),
    "prox without the weight": ({"prox": lambda t, v, step: clipped(v, step)}, "prox of Columns"),
    "prox without the step": (
        {"prox": lambda t, v, step: clipped(v, t.weight)},
        "prox of Columns",
    ),
    "prox of twice the step": (
        {"prox": lambda t, v, step: clipped(v, 2 * step * t.weight)},
        "prox of Columns",
    ),
    "prox does nothing": ({"prox": lambda t, v, step: v.copy()}, "prox of Columns"),
    "prox is a projection": (
        {"prox": lambda t, v, step: np.clip(v, -step * t.weight, step * t.weight)},
        "prox of Columns",
    ),
    "prox of a square": ({"prox": lambda t, v, step: v / (1 + step)}, "prox of Columns"),
    "prox changes what it is given": (
        {"prox": lambda t, v, step: np.subtract(v, np.clip(v, -step, step) * t.weight, out=v)},
        "prox .* changes",
    ),
    "prox of another shape": ({"prox": lambda t, v, step: v[:1]}, "prox .* shape"),
    "prox fails": ({"prox": raising}, "prox .* fails"),
    "prox in double precision": (
        {"prox": lambda t, v, step: ColumnsTerm.prox(t, v.astype(float), step)},
        "prox .* float64 for float32",
    ),
    "conjugate at zero": ({"conjugate": lambda t, y: 3.0}, "conjugate .* 3 at 0"),
    "conjugate always 0": ({"conjugate": lambda t, y: 0.0}, "conjugate .* would be wrong"),
    "ball too large": ({"conjugate": lambda t, y: ball(t, y, 1.2)}, "conjugate .* would be wrong"),
    "ball a little too large": (
        {"conjugate": lambda t, y: ball(t, y, 1.009)},
        "conjugate .* would be wrong",
    ),
    "ball without the weight": (
        {"conjugate": lambda t, y: ball(t, y, 1 / t.weight)},
        "conjugate of Columns is inf",
    ),
    "ball too small": ({"conjugate": lambda t, y: ball(t, y, 0.9)}, "conjugate of Columns is inf"),
    "conjugate of another norm": (
        {"conjugate": lambda t, y: 0.0 if np.abs(y).sum() <= t.weight else np.inf},
        "conjugate of Columns is inf",
    ),
    "conjugate of a square": (
        {"conjugate": lambda t, y: float((y**2).sum()) / (4 * t.weight)},
        "conjugate of Columns",
    ),
    "conjugate is not a number": ({"conjugate": lambda t, y: None}, "conjugate .* number"),
    "conjugate fails": ({"conjugate": raising}, "conjugate .* fails"),
    "conjugate changes the dual": (
        {"conjugate": lambda t, y: ball(t, in_place(y), 0.5)},
        "conjugate .* changes",
    ),
    "prox of the conjugate": ({"prox_conjugate": lambda t, y, step: 0.9 * y}, "prox_conjugate"),
    "infeasible": ({"feasible": lambda t, z: 2 * z}, "feasible .* distributions"),
    "fast adjoint": ({"add_adjoint": lambda t, y, z, threads: None}, "add_adjoint"),
    "fast adjoint changes the dual": (
        {"add_adjoint": lambda t, y, z, threads: in_place(y)},
        "add_adjoint .* changes",
    ),
    "fast dual": ({"update_dual": lambda t, y, z, **options: None}, "update_dual"),
    "fast dual fails": ({"update_dual": raising}, "update_dual .* fails"),
    "fast value": ({"value_of_field": lambda t, z, threads: 1.0}, "value_of_field"),
    "strength is not a number": ({"strength": np.nan}, "strength .* number"),
    "strength fails": ({"strength": property(raising)}, "strength .* fails"),
    "spectrum": ({"gram_spectrum": lambda t: np.ones(t.grid.valid.shape)}, "gram_spectrum"),
    "shape of the spectrum": ({"gram_spectrum": lambda t: np.ones(3)}, "gram_spectrum"),
    "prox of long steps": (
        {"prox": lambda t, v, step: ColumnsTerm.prox(t, v, min(step, 3.0))},
        "prox of Columns",
    ),
    "prox of short steps": (
        {"prox": lambda t, v, step: ColumnsTerm.prox(t, v, max(step, 0.01))},
        "prox of Columns",
    ),
    "value in single precision": (
        {"value": lambda t, v: ColumnsTerm.value(t, v) * (1.0 if v.dtype == float else 0.97)},
        "value .* float32",
    ),
    "ball in single precision": (
        {"conjugate": lambda t, y: ball(t, y, 1.00001 if y.dtype == float else 1.05)},
        "conjugate .* smaller in float32",
    ),
    "prox of a column per class": (
        {"prox": lambda t, v, step: ColumnsTerm.prox(t, v * np.ones((3, 1), v.dtype), step)},
        "rejection.* prox .* fails",
    ),
    "conjugate of a column per class": (
        {"conjugate": lambda t, y: ColumnsTerm.conjugate(t, y * np.ones((3, 1), y.dtype))},
        "rejection.* conjugate .* fails",
    ),
    "adjoint of a column per class": (
        {"adjoint": lambda t, v: ColumnsTerm.adjoint(t, v * np.ones((3, 1), v.dtype))},
        "rejection.* adjoint .* fails",
    ),
    "a column per class": (
        {"value": lambda t, v: ColumnsTerm.value(t, v * np.ones((3, 1), v.dtype))},
        "rejection.* value .* fails",
    ),
}

WRONG_PRIORS: dict[str, tuple[dict[str, Any], str]] = {
    "no term": ({"bind": lambda p, grid: None}, "bind .* Term"),
    "bind fails": ({"bind": raising}, "bind .* fails"),
    "bind changes the footprint": (
        {"bind": lambda p, grid: Columns.bind(p, grid) if in_place_bool(grid.valid) else None},
        "bind .* changes",
    ),
    "halo that is not a number": ({"halo": "wide"}, "halo .* whole number"),
    "halo that is a fraction": ({"halo": 1.5}, "halo .* whole number"),
    "negative halo": ({"halo": -1}, "halo .* at least 0"),
    "halo too small": ({"halo": 0}, "halo .* too small"),
    "working size of nothing": ({"working_size": 0}, "working_size"),
    "guide that is not there": ({"halo": 16, "n_guide_layers": 2}, "guide .* fails"),
    "guide of fewer layers": (
        {"halo": 16, "n_guide_layers": 2, "guide": lambda p, image: image[:1]},
        "guide .* n_guide_layers",
    ),
    "no prior in a block": ({"halo": 16, "in_block": lambda p, layers: None}, "in_block|prior"),
    "image in a block": (
        {
            "halo": 16,
            "bind": lambda p, g: (g.required_image(wanted_by="It"), Columns.bind(p, g))[1],
        },
        "in_block .* image",
    ),
}


def in_place_bool(valid: Any) -> bool:
    valid[0, 0] = not valid[0, 0]
    return True


@pytest.mark.parametrize("fault", WRONG_TERMS)
def test_the_method_at_fault_is_named(fault: str) -> None:
    methods, words = WRONG_TERMS[fault]
    with pytest.raises(InputError, match=words):
        hr.check_prior(Columns(2.0, broken=methods))


@pytest.mark.parametrize("fault", WRONG_PRIORS)
def test_what_a_prior_says_of_itself_is_checked(fault: str) -> None:
    members, words = WRONG_PRIORS[fault]
    with pytest.raises(InputError, match=words):
        hr.check_prior(type("Wrong", (Columns,), members)(2.0))


def test_scenes_of_one_row_and_of_one_column_are_tried() -> None:
    unready = {"conjugate": lambda t, y: 0.0 if np.abs(y).max() <= t.weight else np.inf}
    with pytest.raises(InputError, match=r"1 rows and 9 columns: conjugate .* fails"):
        hr.check_prior(Columns(broken=unready))


@pytest.mark.parametrize("given", [hr.VectorTV, "vector_tv"])
def test_a_prior_needs_its_parameters(given: Any) -> None:
    with pytest.raises(InputError, match="not its class"):
        hr.check_prior(given)


class NarrowTV(hr.VectorTV):
    """Vector TV with the same halo at every weight."""

    halo = 16  # type: ignore[assignment]


@pytest.mark.parametrize(("weight", "halo"), [(2.0, 1), (2.4, 4), (8.0, 8)])
def test_a_halo_that_is_too_small_for_the_weight_is_found(weight: float, halo: int) -> None:
    with pytest.raises(InputError, match=r"halo .* too small: .* % of the labels"):
        hr.check_prior(type("Narrow", (NarrowTV,), {"halo": halo})(weight))


def test_a_halo_is_tried_as_a_function_of_the_weight() -> None:
    with pytest.raises(InputError, match=r"halo .* is 16 pixels at weight 8, too small"):
        hr.check_prior(NarrowTV(1.0))


def test_a_halo_that_is_too_wide_to_try_is_said_to_be_unchecked() -> None:
    with pytest.warns(UncheckedWarning, match=r"VectorTV\(weight=64.* 512 pixels, was not checked"):
        hr.check_prior(hr.VectorTV(64.0))


def test_a_conjugate_is_infinite_where_the_prior_says_nothing() -> None:
    """Graph TV leaves the means free, so that only duals of mean 0 bound anything."""

    class Term(GraphTVTerm):
        def conjugate(self, dual: Any) -> float:
            return float(np.sum(dual**2)) / (4 * self.weight)

    class Wrong(hr.GraphTV):
        def bind(self, grid: Any) -> Any:
            right = super().bind(grid)
            return Term(grid, right.weight, right.partitions)

    with pytest.raises(InputError, match=r"conjugate .* would be wrong"):
        hr.check_prior(Wrong(2.0))


@pytest.mark.parametrize("weight", [50.0, 1e4])
def test_a_strong_prior_with_uneven_edges_may_be_slow(weight: float) -> None:
    with pytest.warns(UncheckedWarning, match="halo"):
        hr.check_prior(hr.VectorTV(weight, edges="image"))


def test_a_conjugate_needs_no_room_for_rounding() -> None:
    hr.check_prior(Columns(broken={"conjugate": lambda t, y: ball(t, y, 1.0)}))


def test_a_prior_of_one_size_is_tried_on_a_scene_of_that_size() -> None:
    prior = hr.GraphTV(partitions=np.repeat([[1, 1, 2, 2]], 3, axis=0))
    hr.check_prior(prior, np.zeros((1, 3, 4)))
    with pytest.raises(InputError, match="partition"):
        hr.check_prior(prior)
