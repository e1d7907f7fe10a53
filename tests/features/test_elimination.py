"""Elimination on an image against dense algebra and SciPy's LU, whatever the mask."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import splu

from hsreject.features.elimination import fronts_of, solve_on_image
from hsreject.features.front_kernels import LANES, ImageSystem


def system_of(shape: tuple[int, int], seed: int) -> ImageSystem:
    """Some edges and, as diagonal, a bit more than the sum of those of a pixel."""
    rng = np.random.default_rng(seed)
    across = -rng.uniform(0, 1, (shape[0], shape[1] - 1))
    down = -rng.uniform(0, 1, (shape[0] - 1, shape[1]))
    diagonal = rng.uniform(0.01, 1, shape)
    for edges, first, second in (
        (across, np.s_[:, :-1], np.s_[:, 1:]),
        (down, np.s_[:-1], np.s_[1:]),
    ):
        diagonal[first] -= edges
        diagonal[second] -= edges
    return ImageSystem(diagonal, across, down)


def matrix_of(system: ImageSystem, mask: np.ndarray) -> sparse.csc_array:
    """The same system over the pixels of a mask, in row order."""
    pixels = np.arange(mask.size).reshape(mask.shape)
    ends = [(pixels[:, :-1], pixels[:, 1:]), (pixels[:-1], pixels[1:])]
    start = np.concatenate([one.ravel() for one, _ in ends])
    stop = np.concatenate([other.ravel() for _, other in ends])
    weights = np.concatenate([system.across.ravel(), system.down.ravel()])
    upper = sparse.coo_array((weights, (start, stop)), shape=(mask.size, mask.size))
    whole = (upper + upper.T + sparse.diags_array(system.diagonal.ravel())).tocsr()
    inside = np.flatnonzero(mask)
    return whole[inside][:, inside].tocsc()


@pytest.mark.parametrize(
    ("shape", "missing"),
    [((1, 1), 0), ((1, 50), 0), ((50, 1), 0.1), ((6, 5), 0.5), ((13, 8), 0), ((41, 30), 0.3)],
)
@pytest.mark.parametrize("n_sides", [1, LANES + 3])
def test_solutions_are_those_of_dense_algebra(shape, missing, n_sides) -> None:
    rng = np.random.default_rng(5)
    mask = rng.random(shape) >= missing
    system = system_of(shape, seed=1)
    sides = rng.normal(size=(n_sides, *shape))
    expected = np.linalg.solve(matrix_of(system, mask).toarray(), sides[:, mask].T).T
    found = solve_on_image(system, mask, sides)
    np.testing.assert_allclose(found[:, mask], expected, atol=1e-11)
    assert not found[:, ~mask].any()
    single = solve_on_image(system, mask, sides.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single[:, mask], expected, atol=1e-5 * np.abs(expected).max())


def test_large_fronts_are_those_of_lu() -> None:
    """Blocks of columns, groups, and what is left of both, on islands and a lake."""
    shape = (150, 170)
    mask = np.ones(shape, dtype=bool)
    mask[40:60, 30:90] = mask[:, 120] = False
    system, sides = system_of(shape, seed=2), np.random.default_rng(6).normal(size=(3, *shape))
    found = solve_on_image(system, mask, sides)
    expected = splu(matrix_of(system, mask)).solve(sides[:, mask].T).T
    np.testing.assert_allclose(found[:, mask], expected, atol=1e-10)


def test_every_pixel_of_a_mask_is_eliminated_once() -> None:
    mask = np.random.default_rng(7).random((30, 41)) > 0.2
    fronts = fronts_of(mask)
    np.testing.assert_array_equal(np.sort(fronts.pixels), np.flatnonzero(mask))
    assert fronts.n_pivots.sum() == mask.sum()


def test_dissection_keeps_the_factor_sparse() -> None:
    """Row by row the factor of a square of side n has n^3 entries, in this order n^2 log n."""
    assert fronts_of(np.ones((60, 60), dtype=bool)).columns[-1] < 0.75 * 60**3
    assert fronts_of(np.ones((240, 240), dtype=bool)).columns[-1] < 0.25 * 240**3


def test_nothing_to_solve() -> None:
    mask = np.zeros((4, 5), dtype=bool)
    assert not solve_on_image(system_of(mask.shape, 3), mask, np.ones((2, 4, 5))).any()
