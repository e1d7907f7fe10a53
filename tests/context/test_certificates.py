"""Certificates at any weight: finite, of the field that is returned, and never below the truth."""

from __future__ import annotations

import warnings
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import hsreject as hr
from hsreject.context.prior import Grid
from hsreject.context.segsalsa import SOLVERS
from hsreject.errors import NotConvergedWarning
from tests.context import nuclear_oracle, oracle
from tests.context.scenes import example_image, random_probability, regions
from tests.context.test_check_prior import Columns
from tools import certificate_drill

SHAPE = (3, 6, 8)
PROBABILITY = regions(SHAPE, seed=1)
IMAGE = example_image((5, 6, 8), seed=2)
PRIORS = {
    "vector_tv": hr.VectorTV,
    "graph_tv": hr.GraphTV,
    "structure_tensor": hr.StructureTensor,
    "columns": Columns,
}
every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_precision = pytest.mark.parametrize("dtype", ["float32", "float64"])


def solved(prior: Any, probability: Any = PROBABILITY, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        return hr.SegSALSA(prior, **options).solve(probability, image=IMAGE)


def objective(prior: Any, field: np.ndarray, probability: np.ndarray = PROBABILITY) -> float:
    """Return F of a field (category, y, x), each pixel divided by its sum, straight from its terms.

    In double precision: at large weights even the rounding of the division shows.
    """
    grid = Grid(np.ones(field.shape[1:], bool), len(field), np.dtype(float), IMAGE)
    term = prior.bind(grid)
    exact = field.astype(float) / field.sum(axis=0, dtype=float)
    data = -np.log((probability * exact).sum(axis=0)).sum()
    return data + term.value(term.forward(exact.transpose(1, 0, 2)))


def constant_optimum() -> float:
    """Return the least objective of fields that are the same everywhere."""

    def data(scores: np.ndarray) -> float:
        share = np.exp(scores - scores.max())
        return -np.log(np.tensordot(share / share.sum(), PROBABILITY, axes=1)).sum()

    return float(minimize(data, np.zeros(3), tol=1e-12).fun)


@every_precision
@every_solver
@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("weight", [1e-6, 1e-4, 0.003, 0.5, 1e3, 1e6])
def test_every_weight_has_a_certificate(name: str, weight: float, solver: str, dtype: str) -> None:
    prior = PRIORS[name](weight)
    result = solved(prior, solver=solver, dtype=dtype, tol=1e-4, max_iter=200)
    given = PROBABILITY.astype(dtype).astype(float)
    assert 0 <= result.gap < np.inf
    recomputed = objective(prior, result.hidden_field, given)
    assert result.objective == pytest.approx(recomputed, rel=1e-9 if dtype == "float64" else 1e-6)
    if weight <= 0.5:
        assert result.converged
    # the optimum lies between that of the data and that of all fields where the prior costs nothing
    least = -np.log(PROBABILITY.max(axis=0)).sum()
    most = min(
        constant_optimum(), objective(prior, np.eye(3)[PROBABILITY.argmax(axis=0)].T.swapaxes(1, 2))
    )
    rounding = 1e-5 if dtype == "float32" else 1e-8
    assert result.objective >= least - rounding
    assert result.objective - result.gap <= most + rounding


BLOCKS = np.arange(6)[:, None] // 3 * 2 + np.arange(8) // 4
WRITTEN_OUT = {  # priors that a conic solver knows, too
    "vector_tv": hr.VectorTV,
    "graph_tv": partial(hr.GraphTV, partitions=BLOCKS),
    "structure_tensor": hr.StructureTensor,
}


@cache
def conic_optimum(name: str, weight: float) -> float:
    if name == "structure_tensor" and weight == 1e3:
        # no field but a constant is worth its price, and the conic solver is off by 2e-6
        return constant_optimum()
    if name == "structure_tensor":
        return nuclear_oracle.optimum(PROBABILITY, weight, patch=3, width=1.0)
    vector_tv, graph_tv = oracle.vector_tv(SHAPE[1:], weight), oracle.graph_tv([BLOCKS], weight)
    return oracle.optimum(PROBABILITY, [vector_tv if name == "vector_tv" else graph_tv])


@every_precision
@every_solver
@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_no_gap_is_below_that_to_a_conic_optimum(name: str, solver: str, dtype: str) -> None:
    """From a thousandth to a thousand, in the beginning and near the end: 493 certificates."""
    for weight in (1e-3, 0.03, 1.0, 30.0, 1e3):
        prior, optimum = WRITTEN_OUT[name](weight), conic_optimum(name, weight)
        for n_iterations in (1, 3, 10, 300):
            result = solved(prior, solver=solver, dtype=dtype, tol=1e-12, max_iter=n_iterations)
            for checkpoint in result.history:  # 1e-8: the tolerance of the conic solver
                true_gap = checkpoint.objective - optimum
                assert checkpoint.gap >= true_gap - 1e-8 * (1 + optimum)


@pytest.mark.parametrize("seed", range(5))
def test_certificates_of_random_problems_are_not_below_the_true_gap(seed: int) -> None:
    """One of each kind of prior; `python -m tools.certificate_drill` draws 200 of them."""
    least = certificate_drill.margins(certificate_drill.draw(seed))
    assert min(least.values()) >= -certificate_drill.CONIC


LARGE = regions((3, 24, 30), seed=4, noise=1.0)
LARGE_BLOCKS = np.arange(24)[:, None] // 6 * 5 + np.arange(30) // 6


@pytest.mark.parametrize(
    "prior",
    [
        hr.VectorTV(30.0),
        hr.VectorTV(364.0),
        hr.GraphTV(364.0, partitions=LARGE_BLOCKS),
        hr.StructureTensor(30.0),
        Columns(200.0),
    ],
    ids=["vector_tv 30", "vector_tv 364", "graph_tv", "structure_tensor", "columns"],
)
def test_a_certificate_of_single_precision_bounds_the_true_gap(prior: Any) -> None:
    """H Z and H'Y of strong priors, formed in single precision, made it up to 16 % too small."""
    options = {"tol": 1e-12, "n_threads": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        better = hr.SegSALSA(prior, dtype="float64", max_iter=1000, **options).solve(LARGE)
        results = [hr.SegSALSA(prior, max_iter=n, **options).solve(LARGE) for n in (30, 100, 300)]
    least = objective(prior, better.hidden_field, LARGE)
    for result in results:
        assert result.gap >= objective(prior, result.hidden_field, LARGE) - least


def test_what_is_not_finite_has_no_relative_gap() -> None:
    for value in (np.inf, np.nan):
        broken = Columns(broken={"value_of_field": lambda t, z, threads, v=value: v})
        with pytest.warns(NotConvergedWarning, match="without a certificate"):
            result = hr.SegSALSA(broken, max_iter=20).solve(PROBABILITY)
        assert result.relative_gap == result.gap == np.inf


@every_solver
def test_sure_pixels_have_no_negative_objective_or_gap(solver: str) -> None:
    for seed in range(5):
        sure = random_probability(SHAPE, seed=seed, sharpness=40.0)
        sure[:, 0, 0] = np.nan
        result = solved(hr.VectorTV(0.2), sure, solver=solver)
        assert result.objective >= 0
        assert result.gap >= 0
        assert not result.converged or result.gap <= max(1e-3 * result.objective, 48e-6)


@every_solver
def test_nothing_infinite_has_converged(solver: str) -> None:
    endless = Columns(broken={"value_of_field": lambda t, z, threads: np.inf})
    undefined = Columns(broken={"value_of_field": lambda t, z, threads: np.nan})
    boundless = Columns(broken={"conjugate": lambda t, y: np.inf})
    for prior in (endless, undefined, boundless):
        assert not solved(prior, solver=solver, max_iter=50).converged


class Scribbles(hr.Prior):
    """What a class costs at a place: a linear g, weight times 1 where another class was drawn."""

    def __init__(self, drawn: Any, weight: float = 1.0) -> None:
        self.drawn, self.weight = drawn, weight

    def bind(self, grid: Any) -> Any:
        return ScribblesTerm(grid, self.drawn, self.weight)


class ScribblesTerm(hr.Term):
    squared_norm = 1.0

    def __init__(self, grid: Any, drawn: Any, weight: float) -> None:
        super().__init__(grid)
        numbers = np.arange(1, grid.n_classes + 1)[:, None]
        others = (drawn[:, None] != numbers) & (drawn > 0)[:, None] & grid.valid[:, None]
        self.cost = weight * others.astype(grid.dtype)

    def forward(self, field: Any) -> Any:
        return field * self.grid.valid[:, None]

    adjoint = forward

    def value(self, coefficients: Any) -> float:
        return float(np.sum(self.cost * coefficients, dtype=float))

    def prox(self, coefficients: Any, step: float) -> Any:
        return coefficients - coefficients.dtype.type(step) * self.cost

    def conjugate(self, dual: Any) -> float:
        scale = 1e3 * np.finfo(dual.dtype).eps * (self.cost.max() + 1e-30)
        return 0.0 if np.abs(dual - self.cost).max() <= scale else np.inf

    def prox_conjugate(self, dual: Any, step: float) -> Any:
        return self.cost.astype(dual.dtype)


class Known(hr.Prior):
    """Pixels whose class is known: a constraint, met exactly by what is returned."""

    def __init__(self, drawn: Any) -> None:
        self.drawn = drawn

    def bind(self, grid: Any) -> Any:
        return KnownTerm(grid, self.drawn)


class KnownTerm(hr.Term):
    squared_norm = 1.0

    def __init__(self, grid: Any, drawn: Any) -> None:
        super().__init__(grid)
        self.fixed = ((drawn > 0) & grid.valid)[:, None]
        self.wanted = (np.arange(1, grid.n_classes + 1)[:, None] == drawn[:, None]) * self.fixed

    def forward(self, field: Any) -> Any:
        return field * self.fixed

    adjoint = forward

    def value(self, coefficients: Any) -> float:
        gap = np.abs((coefficients - self.wanted) * self.fixed).max(initial=0.0)
        return 0.0 if gap <= 1e-6 else np.inf

    def prox(self, coefficients: Any, step: float) -> Any:
        return np.where(self.fixed, self.wanted.astype(coefficients.dtype), coefficients)

    def conjugate(self, dual: Any) -> float:
        outside = np.abs(dual * ~self.fixed).max(initial=0.0)
        small = 1e2 * np.finfo(dual.dtype).eps * np.abs(dual).max(initial=0.0)
        return float(np.sum(dual * self.wanted, dtype=float)) if outside <= small else np.inf

    def feasible(self, field: Any) -> Any:
        return np.where(self.fixed, self.wanted.astype(field.dtype), field)


DRAWN = np.zeros(SHAPE[1:], int)
DRAWN[0, :3], DRAWN[4, 5:] = 3, 2


@every_precision
@every_solver
def test_a_linear_prior_is_a_change_of_the_data(solver: str, dtype: str) -> None:
    result = solved(Scribbles(DRAWN, 400.0), solver=solver, dtype=dtype, tol=2e-4)
    assert result.converged
    # without neighbors each pixel is on its own, and 400 outweighs every ratio of probabilities
    drawn = np.take_along_axis(PROBABILITY, np.maximum(DRAWN - 1, 0)[None], axis=0)[0]
    wanted = -np.log(np.where(DRAWN > 0, drawn, PROBABILITY.max(axis=0))).sum()
    assert result.objective == pytest.approx(wanted, rel=2e-4)


@every_precision
@every_solver
def test_a_constraint_holds_where_it_is_returned(solver: str, dtype: str) -> None:
    prior = [Known(DRAWN), hr.VectorTV(0.4)]
    result = solved(prior, solver=solver, dtype=dtype, tol=1e-4, max_iter=4000)
    assert result.converged
    assert (result.hidden_field.argmax(axis=0)[DRAWN > 0] + 1 == DRAWN[DRAWN > 0]).all()
    assert (result.hidden_field.max(axis=0)[DRAWN > 0] == 1).all()
    # the same by a cost that no field would pay
    other = solved([Scribbles(DRAWN, 400.0), hr.VectorTV(0.4)], tol=2e-4)
    assert result.objective == pytest.approx(other.objective, rel=3e-4)


def test_what_the_contract_allows_passes_the_check() -> None:
    image = np.random.default_rng(3).standard_normal((2, *SHAPE[1:]))
    hr.check_prior(Scribbles(DRAWN), image)
    hr.check_prior(Known(DRAWN), image)
