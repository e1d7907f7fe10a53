"""What every prior must satisfy. A prior is enrolled by its line in the registry.

One that needs options to be tried adds them to OPTIONS; the others are made with their defaults.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hsreject.context.kernels.compilation import are_loaded
from hsreject.context.workers import Workers
from scipy.ndimage import label
from scipy.optimize import minimize

from hsreject.context.preconditioned_admm import GeneralIteration
from hsreject.context.prior import Term
from hsreject.context.priors import PRIORS, GraphTV, VectorTV
from hsreject.context.problem import Problem
from hsreject.context.segsalsa import SegSALSA
from hsreject.context.site_kernels import Steps
from hsreject.errors import InputError
from tests.context.scenes import example_image, grid_of, regions, with_hole

# name -> option sets to try beside the defaults
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "vector_tv": [{"weight": 2.5}, {"edges": "image"}, {"edges": [0, 3]}],
    "graph_tv": [{"weight": 2.5, "n_segments": 3}, {"n_segments": [2, 4, 9], "compactness": 0.3}],
    "structure_tensor": [{"weight": 2.5, "schatten": 2}, {"patch": 5, "width": 1.5}, {"patch": 1}],
}
CASES = [(name, options) for name in PRIORS for options in ({}, *OPTIONS.get(name, []))]
FOOTPRINTS = {
    "whole": np.ones((6, 8), dtype=bool),
    "with a hole": with_hole(),
    "two regions": np.abs(np.subtract.outer(np.arange(7), np.arange(8))) > 0,
    "one row": np.ones((1, 7), dtype=bool),
    "one column": np.ones((7, 1), dtype=bool),
    "one pixel": np.ones((1, 1), dtype=bool),
}

every_prior = pytest.mark.parametrize(
    ("name", "options"), CASES, ids=[f"{name}-{options}" for name, options in CASES]
)
every_footprint = pytest.mark.parametrize("footprint", FOOTPRINTS)


def bound(name: str, options: dict[str, Any], footprint: str, **grid: Any) -> Term:
    return PRIORS.create(name, **options).bind(grid_of(FOOTPRINTS[footprint], **grid))


def random_field(term: Term, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(term.grid.shape)


def random_dual(term: Term, seed: int, scale: float = 1.0) -> np.ndarray:
    shape = term.new_dual().shape
    return scale * np.random.default_rng(seed).standard_normal(shape)


@every_prior
@every_footprint
def test_adjoint(name: str, options: dict[str, Any], footprint: str) -> None:
    term = bound(name, options, footprint)
    field, dual = random_field(term, 1), random_dual(term, 2)
    forth, back = np.vdot(term.forward(field), dual), np.vdot(field, term.adjoint(dual))
    assert forth == pytest.approx(back, rel=1e-12, abs=1e-12)


@every_prior
@every_footprint
def test_norm_bound(name: str, options: dict[str, Any], footprint: str) -> None:
    term = bound(name, options, footprint)
    field = random_field(term, 3)
    largest = 0.0
    for _ in range(200):  # power iteration reaches the norm from below
        norm = np.linalg.norm(field)
        if norm == 0:
            break
        field = term.adjoint(term.forward(field / norm))
        largest = np.linalg.norm(field)
    assert largest <= term.squared_norm * (1 + 1e-12)
    assert term.squared_norm <= 3 * largest + 1e-12  # a loose bound would only be slow


@every_prior
@every_footprint
def test_pixels_without_data_are_not_coupled(
    name: str, options: dict[str, Any], footprint: str
) -> None:
    term = bound(name, options, footprint)
    invalid = np.broadcast_to(~term.grid.valid[:, None], term.grid.shape)
    field = random_field(term, 4)
    other = np.where(invalid, 9.0, field)
    np.testing.assert_array_equal(term.forward(field), term.forward(other))
    assert not term.adjoint(random_dual(term, 5))[invalid].any()


@every_prior
@every_footprint
def test_regions_apart_do_not_influence_each_other(
    name: str, options: dict[str, Any], footprint: str
) -> None:
    term = bound(name, options, footprint)
    regions, count = label(term.grid.valid)  # of neighbours that share a side
    field = random_field(term, 13)
    alone = [np.where((regions == n + 1)[:, None], field, 0.5) for n in range(count)]
    parts = sum(term.value(term.forward(one)) for one in alone)
    assert term.value(term.forward(field)) == pytest.approx(parts, rel=1e-10, abs=1e-10)


@every_prior
@every_footprint
def test_zero_and_constant(name: str, options: dict[str, Any], footprint: str) -> None:
    term = bound(name, options, footprint)
    constant = np.zeros(term.grid.shape) + np.array([0.2, 0.3, 0.5])[:, None]
    for field in (np.zeros(term.grid.shape), constant):
        assert term.value(term.forward(field)) == pytest.approx(0, abs=1e-12)
    assert term.conjugate(term.new_dual()) == 0


@every_prior
@pytest.mark.parametrize("step", [0.3, 2.0])
def test_prox_minimises_its_definition(name: str, options: dict[str, Any], step: float) -> None:
    term = PRIORS.create(name, **options).bind(grid_of(np.ones((2, 2), dtype=bool), n_classes=2))
    point = random_dual(term, 6, scale=2.0)

    def definition(flat: np.ndarray) -> float:
        coefficients = flat.reshape(point.shape)
        return term.value(coefficients) + np.sum((coefficients - point) ** 2) / (2 * step)

    ours = term.prox(point, step)
    found = minimize(definition, point.ravel(), method="Powell", options={"ftol": 1e-13})
    # brute force stops a little above the minimum; ours must not be above it
    assert definition(ours.ravel()) <= found.fun + 1e-9 * abs(found.fun)
    for seed in range(20):  # and no small step from ours goes down
        away = 1e-4 * np.random.default_rng(seed).standard_normal(point.size)
        assert definition(ours.ravel() + away) >= definition(ours.ravel()) - 1e-12


@every_prior
@every_footprint
@pytest.mark.parametrize("step", [0.3, 2.0])
def test_moreau_and_fenchel_young(
    name: str, options: dict[str, Any], footprint: str, step: float
) -> None:
    term = bound(name, options, footprint)
    point = random_dual(term, 7, scale=2.0)
    dual = term.prox_conjugate(point, step)
    primal = term.prox(point / step, 1 / step)
    np.testing.assert_allclose(dual + step * primal, point, atol=1e-12)
    # equality in Fenchel-Young: the dual is a subgradient of g at the primal point
    product = np.vdot(primal, dual)
    assert term.value(primal) + term.conjugate(dual) == pytest.approx(product, rel=1e-9, abs=1e-9)
    for seed in range(5):  # the inequality everywhere else
        other = random_dual(term, 8 + seed)
        assert term.value(other) + term.conjugate(dual) >= np.vdot(other, dual) - 1e-9


@every_prior
@every_footprint
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fast_paths_equal_the_definition(
    name: str, options: dict[str, Any], footprint: str, dtype: str
) -> None:
    term = bound(name, options, footprint, dtype=dtype)
    field = random_field(term, 9).astype(dtype)
    dual = term.prox_conjugate(random_dual(term, 10).astype(dtype), 0.5)
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-11}
    with Workers(2) as workers:
        summed = field.copy()
        term.add_adjoint(dual, summed, workers)
        np.testing.assert_allclose(summed, field + term.adjoint(dual), **close)
        moved = dual.copy()
        term.update_dual(moved, field, step=0.7, relaxation=1.6, workers=workers)
        target = term.prox_conjugate(dual + 0.7 * term.forward(field), 0.7)
        np.testing.assert_allclose(moved, dual + 1.6 * (target - dual), **close)
        assert term.value_of_field(field, workers) == pytest.approx(
            term.value(term.forward(field)), rel=close["rtol"]
        )


@every_prior
@pytest.mark.parametrize("footprint", ["whole", "with a hole"])
def test_compiling_changes_nothing(name: str, options: dict[str, Any], footprint: str) -> None:
    term = bound(name, options, footprint)
    dual = term.prox_conjugate(random_dual(term, 14), 0.5)
    field = np.full(term.grid.shape, 1 / 3)
    problem = Problem(np.ones(term.grid.shape), (term,))
    iteration = GeneralIteration(problem, field.copy(), (dual.copy(),))
    with Workers(1) as workers:
        iteration.compile(Steps(0.5, 0.5, 1.0, 1e-12), workers)
    np.testing.assert_array_equal(iteration.duals[0], dual)
    np.testing.assert_array_equal(iteration.field, field)
    assert are_loaded(iteration.kernels, field.dtype)


@every_prior
def test_gram_spectrum_if_given_is_right(name: str, options: dict[str, Any]) -> None:
    term = bound(name, options, "whole")
    spectrum = term.gram_spectrum()
    if spectrum is None:
        return
    n_rows, _, n_columns = term.grid.shape
    for i, j in [(0, 0), (1, 0), (0, 1), (3, 5), (n_rows - 1, n_columns - 1)]:
        row = np.cos(np.pi * i * (np.arange(n_rows) + 0.5) / n_rows)
        column = np.cos(np.pi * j * (np.arange(n_columns) + 0.5) / n_columns)
        field = np.repeat((row[:, None] * column)[:, None], 3, axis=1)
        image = term.adjoint(term.forward(field))
        np.testing.assert_allclose(image, spectrum[i, j] * field, atol=1e-12)


@every_prior
def test_converges_on_a_toy_scene(name: str, options: dict[str, Any]) -> None:
    probability = regions((3, 9, 12), seed=11)
    image = example_image((5, 9, 12), seed=12)
    fields = []
    for solver in ("preconditioned_admm", "admm"):
        segsalsa = SegSALSA(PRIORS.create(name, **options), solver=solver, tol=1e-4)
        result = segsalsa.solve(probability, image=image)
        assert result.converged
        assert result.gap <= 1e-4 * result.objective
        fields.append(result)
    # both are within 1e-4 of the same optimum
    assert fields[0].objective == pytest.approx(fields[1].objective, rel=1e-4)


@every_prior
@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, "strong"])
def test_bad_weight_is_refused(name: str, options: dict[str, Any], weight: Any) -> None:
    with pytest.raises(InputError, match="weight must be"):
        PRIORS.create(name, **{**options, "weight": weight})


@every_prior
def test_its_name_is_the_call_that_makes_it(name: str, options: dict[str, Any]) -> None:
    prior = PRIORS.create(name, **options)
    assert repr(prior).startswith(f"{type(prior).__name__}(weight=")
    assert " at 0x" not in repr(prior)  # results keep it, and must not differ from run to run


def test_priors_are_equal_when_their_parameters_are() -> None:
    edges = np.ones((3, 2, 4))
    assert VectorTV(2) == VectorTV(2.0)
    assert VectorTV(2) != VectorTV(3)
    assert VectorTV(2) != 2
    assert VectorTV(edges=edges) == VectorTV(edges=edges.copy())
    assert VectorTV(edges=edges) != VectorTV(edges=2 * edges)
    assert len({VectorTV(2), VectorTV(2), GraphTV(2, n_segments=4)}) == 2
    assert SegSALSA(VectorTV(2)) == SegSALSA(VectorTV(2))
