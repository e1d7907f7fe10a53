"""What every prior must satisfy. A prior is enrolled by its line in the registry.

One that needs options to be tried adds them to OPTIONS; the others are made with their defaults.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.ndimage import label
from scipy.optimize import minimize

import hsreject as hr
from hsreject.context.prior import Term
from hsreject.context.priors import PRIORS
from hsreject.errors import InputError
from hsreject.threads import Threads
from tests.context.scenes import example_image, grid_of, with_hole

# name -> option sets to try beside the defaults
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "vector_tv": [{"weight": 2.5}, {"edges": "image"}],
    "graph_tv": [{"weight": 2.5, "n_segments": 3}, {"n_segments": [2, 4, 9]}],
    "structure_tensor": [{"weight": 2.5}, {"patch": 5, "width": 1.5}, {"patch": 1}],
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
def test_it_passes_what_a_new_prior_must_pass(name: str, options: dict[str, Any]) -> None:
    prior = PRIORS.create(name, **options)
    hr.check_prior(prior)
    for footprint in ("two regions", "one pixel"):
        valid = FOOTPRINTS[footprint]
        image = np.where(valid, example_image((5, *valid.shape), seed=0), np.nan)
        hr.check_prior(prior, image)


@every_prior
def test_a_norm_bound_is_not_loose(name: str, options: dict[str, Any]) -> None:
    for footprint in FOOTPRINTS:
        term = bound(name, options, footprint)
        field = random_field(term, 3)
        largest = 0.0
        for _ in range(200):  # power iteration reaches the norm from below
            norm = np.linalg.norm(field)
            if norm == 0:
                break
            field = term.adjoint(term.forward(field / norm))
            largest = np.linalg.norm(field)
        assert term.squared_norm <= 3 * largest + 1e-12  # a loose bound would only be slow


@every_prior
def test_regions_apart_do_not_influence_each_other(name: str, options: dict[str, Any]) -> None:
    for footprint in ("with a hole", "two regions"):
        term = bound(name, options, footprint)
        regions, count = label(term.grid.valid)  # of neighbors that share a side
        field = random_field(term, 13)
        alone = [np.where((regions == n + 1)[:, None], field, 0.5) for n in range(count)]
        parts = sum(term.value(term.forward(one)) for one in alone)
        assert term.value(term.forward(field)) == pytest.approx(parts, rel=1e-10, abs=1e-10)


@every_prior
def test_a_constant_field_costs_nothing(name: str, options: dict[str, Any]) -> None:
    for footprint in FOOTPRINTS:
        term = bound(name, options, footprint)
        constant = np.zeros(term.grid.shape) + np.array([0.2, 0.3, 0.5])[:, None]
        assert term.value(term.forward(constant)) == pytest.approx(0, abs=1e-12)


@every_prior
def test_prox_minimises_its_definition(name: str, options: dict[str, Any]) -> None:
    term = PRIORS.create(name, **options).bind(grid_of(np.ones((2, 2), dtype=bool), n_classes=2))
    point, step = random_dual(term, 6, scale=2.0), 0.3

    def definition(flat: np.ndarray) -> float:
        coefficients = flat.reshape(point.shape)
        return term.value(coefficients) + np.sum((coefficients - point) ** 2) / (2 * step)

    ours = term.prox(point, step)
    found = minimize(definition, point.ravel(), method="Powell", options={"ftol": 1e-13})
    # brute force stops a little above the minimum; ours must not be above it
    assert definition(ours.ravel()) <= found.fun + 1e-9 * abs(found.fun)


@every_footprint
@pytest.mark.parametrize("name", ["vector_tv", "structure_tensor"])
def test_compiled_paths_equal_the_definition_in_single_precision(name: str, footprint: str) -> None:
    for options in ({}, *OPTIONS[name]):
        term = bound(name, options, footprint, dtype="float32")
        field = random_field(term, 9).astype("float32")
        dual = term.prox_conjugate(random_dual(term, 10).astype("float32"), 0.5)
        summed, moved = field.copy(), dual.copy()
        target = term.prox_conjugate(dual + 0.7 * term.forward(field), 0.7)
        with Threads(2) as threads:
            term.add_adjoint(dual, summed, threads)
            term.update_dual(moved, field, step=0.7, relaxation=1.6, threads=threads)
            value = term.value_of_field(field, threads)
        close = {"rtol": 1e-4, "atol": 1e-5}
        np.testing.assert_allclose(summed, field + term.adjoint(dual), **close)
        np.testing.assert_allclose(moved, dual + 1.6 * (target - dual), **close)
        assert value == pytest.approx(term.value(term.forward(field)), rel=1e-4)


@pytest.mark.parametrize("name", PRIORS)
def test_bad_weight_is_refused(name: str) -> None:
    for weight in (-1.0, np.nan, np.inf, "strong"):
        with pytest.raises(InputError, match="weight"):
            PRIORS.create(name, weight=weight)


@every_prior
def test_its_name_is_the_call_that_makes_it(name: str, options: dict[str, Any]) -> None:
    prior = PRIORS.create(name, **options)
    assert repr(prior).startswith(f"{type(prior).__name__}(weight=")
    assert " at 0x" not in repr(prior)  # results keep it, and must not differ from run to run


def test_priors_are_equal_when_their_parameters_are() -> None:
    edges = np.ones((3, 2, 4))
    assert hr.VectorTV(2) == hr.VectorTV(2.0)
    assert hr.VectorTV(2) != hr.VectorTV(3)
    assert hr.VectorTV(2) != 2
    assert hr.VectorTV(edges=edges) == hr.VectorTV(edges=edges.copy())
    assert hr.VectorTV(edges=edges) != hr.VectorTV(edges=2 * edges)
    assert len({hr.VectorTV(2), hr.VectorTV(2), hr.GraphTV(2, n_segments=4)}) == 2
    assert hr.SegSALSA(hr.VectorTV(2)) == hr.SegSALSA(hr.VectorTV(2))
