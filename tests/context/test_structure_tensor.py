"""The structure tensor: its window, its norms and its duals in single precision."""

from __future__ import annotations

import numpy as np
import pytest

import hsreject as hr
from hsreject.context.prior import Grid, Term
from hsreject.context.priors.structure_tensor import gaussian_window, patch_coupling
from hsreject.errors import InputError
from hsreject.threads import Threads
from tests.context.scenes import grid_of, random_probability, with_hole


def random_jacobians(term: Term, *, seed: int, flat: bool = False) -> np.ndarray:
    """Return coefficients; `flat` ones have two nearly parallel columns."""
    point = np.random.default_rng(seed).standard_normal(term.new_dual().shape)
    if flat:
        point[:, :, 1] = 0.7 * point[:, :, 0] + 1e-5 * point[:, :, 1]
    return point


def pixelwise_svd(coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n_rows, _, _, _, n_columns = coefficients.shape
    matrices = coefficients.transpose(0, 4, 1, 3, 2).reshape(n_rows, n_columns, -1, 2)
    return np.linalg.svd(matrices, full_matrices=False)


def test_the_window_is_the_root_of_a_gaussian_with_sum_one() -> None:
    squared = (gaussian_window(5, 1.3) ** 2).reshape(5, 5)
    assert squared.sum() == pytest.approx(1)
    # one pixel down and two across: exp(-(1 + 4) / (2 * 1.3^2)) of the middle
    assert squared[3, 0] / squared[2, 2] == pytest.approx(np.exp(-5 / (2 * 1.3**2)))


def test_a_pixel_sees_its_own_region_only() -> None:
    valid = np.array([[True, True, False, True, True]])
    coupling = patch_coupling(Grid(valid, 2, np.dtype(float)), np.ones(25))
    middle = coupling[0, 10:15]  # the row of the patch that is not outside the scene
    assert middle[:, 0].tolist() == [0, 0, 1, 1, 0]
    assert middle[:, 1].tolist() == [0, 1, 1, 0, 0]
    assert not coupling[:, :, 2].any()
    assert not np.delete(coupling, range(10, 15), axis=1).any()


@pytest.mark.parametrize("flat", [False, True])
def test_norm_prox_and_projection_are_those_of_the_singular_values(*, flat: bool) -> None:
    term = hr.StructureTensor(1.7).bind(grid_of(with_hole()))
    point = 0.3 * random_jacobians(term, seed=1, flat=flat)
    left, singular, right = pixelwise_svd(point)
    assert term.value(point) == pytest.approx(1.7 * singular.sum(), rel=1e-9)

    def rebuilt(factors: np.ndarray) -> np.ndarray:
        scaled = left * (singular * factors)[..., np.newaxis, :] @ right
        n_rows, n_columns = scaled.shape[:2]
        patches = scaled.reshape(n_rows, n_columns, 9, 3, 2)
        return patches.transpose(0, 2, 4, 3, 1)

    shrunk = rebuilt(np.maximum(1 - 0.4 * 1.7 / singular, 0))
    np.testing.assert_allclose(term.prox(point, 0.4), shrunk, atol=1e-9)
    cut = rebuilt(np.minimum(1.7 / singular, 1))
    np.testing.assert_allclose(term.prox_conjugate(point, 0.4), cut, atol=1e-9)


def test_on_a_line_a_patch_of_one_pixel_is_vector_tv() -> None:
    # a Jacobian with one column has one singular value, which is its norm
    probability = random_probability((3, 1, 40), seed=2)
    probability[:, :, 15:17] = np.nan
    results = [
        hr.SegSALSA(prior, tol=1e-7, dtype="float64", max_iter=20_000).solve(probability)
        for prior in (hr.StructureTensor(0.7, patch=1), hr.VectorTV(0.7))
    ]
    assert results[0].objective == pytest.approx(results[1].objective, rel=1e-7)


def test_the_nuclear_norm_prefers_straight_borders_to_corners() -> None:
    first = np.zeros((2, 9, 9))
    first[0, :4] = 1.0  # nine edges in a row
    first[1, :4, :5] = 1.0  # nine edges around a corner
    straight, corner = np.stack([first, 1 - first], axis=2)
    grid = grid_of(np.ones((9, 9), dtype=bool), n_classes=2)
    term = hr.StructureTensor().bind(grid)
    # the second singular value costs only where borders of both directions meet in a patch
    cost, frobenius = (
        [np.sum(norm(pixelwise_svd(term.forward(z))[1])) for z in (straight, corner)]
        for norm in (np.asarray, lambda singular: np.linalg.norm(singular, axis=-1))
    )
    assert [term.value(term.forward(z)) for z in (straight, corner)] == pytest.approx(cost)
    assert cost[0] == pytest.approx(frobenius[0])
    assert cost[1] > 1.01 * frobenius[1]


def test_duals_are_feasible_before_a_certificate() -> None:
    # a strong prior beside a weak one dictates steps far outside the small ball of the weak one;
    # along a diagonal border, rounding of the large singular value then spoils the small one
    term = hr.StructureTensor(1e-3).bind(grid_of(with_hole(), dtype="float32"))
    n_rows, n_classes, n_columns = term.grid.shape
    random = np.random.default_rng(3)
    along = random.standard_normal((n_classes, n_rows + n_columns))
    diagonal = np.stack([along[:, row : row + n_columns] for row in range(n_rows)])
    field = (diagonal + 0.01 * random.standard_normal(diagonal.shape)).astype(np.float32)
    dual = term.new_dual()
    with Threads(1) as threads:
        term.update_dual(dual, field, step=2.0, relaxation=1.0, threads=threads)
    assert term.conjugate(dual) == 0
    assert term.conjugate(1.001 * dual) == np.inf


def test_a_weak_one_converges_beside_a_strong_prior() -> None:
    probability = random_probability((3, 9, 10), seed=5)
    priors = [hr.StructureTensor(0.005), hr.VectorTV(3.0)]
    assert hr.SegSALSA(priors, tol=1e-4).solve(probability).converged


def test_bad_options_are_refused() -> None:
    for options in ({"patch": 2}, {"patch": -1}, {"patch": 3.0}, {"width": 0.0}):
        with pytest.raises(InputError, match=next(iter(options))):
            hr.StructureTensor(**options)
