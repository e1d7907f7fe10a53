"""Random walkers against scikit-image, and against walkers that never had a seed left out."""

import numpy as np
import pytest
import xarray as xr
from skimage.segmentation import random_walker

import hsreject as hr
from hsreject import schema
from hsreject.classify.random_walker import LEAK, walk
from hsreject.errors import InputError
from hsreject.features.diffusion import EdgeGraph


@pytest.fixture(scope="module")
def scene():
    cube, labels = hr.synthetic_scene(rows=30, columns=34, n_classes=4, n_bands=8, seed=2)
    return cube, hr.sample_per_class(labels, 5, seed=0)[0]


def test_one_graph_is_scikit_images_random_walker() -> None:
    image = np.random.default_rng(0).random((15, 12))
    seeds = np.zeros(image.shape, dtype=int)
    seeds[2, 3], seeds[11, 9], seeds[7, 1] = 1, 2, 3
    steps = [np.diff(image, axis=axis).ravel() ** 2 for axis in (0, 1)]
    mean = np.concatenate(steps).mean()
    # its weight is exp(-beta d^2 / (10 std)) + 1e-10
    beta = 10 * image.std() / mean
    expected = random_walker(image, seeds, beta=beta, mode="bf", return_full_prob=True)
    graph = EdgeGraph.of(image[None], contrast=1.0)
    found = walk(graph, seeds, 3, leak=1e-9)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def laplacian_of(graph: EdgeGraph) -> np.ndarray:
    """The dense Laplacian over all pixels, edge by edge."""
    pixels = np.arange(graph.valid.size).reshape(graph.valid.shape)
    laplacian = np.zeros((pixels.size, pixels.size))
    for weights, first, second in (
        (graph.across, pixels[:, :-1], pixels[:, 1:]),
        (graph.down, pixels[:-1], pixels[1:]),
    ):
        for i, j, weight in zip(first.ravel(), second.ravel(), weights.ravel(), strict=True):
            laplacian[[i, j], [i, j]] += weight
            laplacian[[i, j], [j, i]] -= weight
    return laplacian


def seeds_at(shape: tuple[int, int], places: np.ndarray, codes: np.ndarray) -> np.ndarray:
    seeds = np.zeros(shape, dtype=int)
    seeds.flat[places] = codes + 1
    return seeds


def test_walkers_that_give_up_are_shared_by_all_classes() -> None:
    graph = EdgeGraph.of(np.random.default_rng(1).normal(size=(2, 5, 6)), contrast=3.0)
    seeds, leak = np.array([3, 20, 11]), 0.01
    codes = np.array([0, 1, 1])
    target = np.eye(2)[codes]
    found = walk(graph, seeds_at((5, 6), seeds, codes), 2, leak=leak).reshape(2, -1).T
    # the absorbing Markov chain itself: steps between free pixels, to seeds, or out of the game
    weight = -laplacian_of(graph)
    np.fill_diagonal(weight, 0)
    step = weight / (weight.sum(axis=1, keepdims=True) + leak)
    free = np.setdiff1d(np.arange(30), seeds)
    visits = np.linalg.inv(np.eye(len(free)) - step[np.ix_(free, free)])
    met = visits @ step[np.ix_(free, seeds)] @ target
    given_up = visits @ (1 - step[free].sum(axis=1))
    np.testing.assert_allclose(found[free], met + given_up[:, None] / 2, atol=1e-6)
    np.testing.assert_array_equal(found[seeds], target)


def test_single_precision_will_do() -> None:
    """It errs most where walkers hardly give up and edges are sharp."""
    rng = np.random.default_rng(4)
    graph = EdgeGraph.of(rng.normal(size=(1, 30, 30)), contrast=10.0)
    seeds = rng.choice(900, 12, replace=False)
    codes = np.arange(12) % 3
    system = laplacian_of(graph) + LEAK * np.eye(900)
    free = np.setdiff1d(np.arange(900), seeds)
    sides = system[np.ix_(free, seeds)] @ np.eye(3)[codes]
    met = np.linalg.solve(system[np.ix_(free, free)], -sides)
    met += (1 - met.sum(axis=1, keepdims=True)) / 3
    found = walk(graph, seeds_at((30, 30), seeds, codes), 3).reshape(3, -1).T
    np.testing.assert_allclose(found[free], met, atol=1e-4)


def test_regions_without_a_seed_do_not_know() -> None:
    values = np.ones((2, 6, 9)) * np.arange(9)
    values[:, :, 4] = np.nan
    cube = xr.DataArray(values, dims=schema.CUBE_DIMS)
    labels = xr.zeros_like(cube[0], dtype=int)
    labels[1, 1], labels[4, 2] = 1, 7
    probability = hr.RandomWalker("raw").fit_predict_proba(cube, labels)
    assert list(probability.category) == [1, 7]
    assert np.isnan(probability.values[:, :, 4]).all()
    np.testing.assert_allclose(probability.values[:, :, 5:], 0.5)
    np.testing.assert_allclose(
        probability.sum("category", skipna=False).values[:, :4], 1, atol=1e-6
    )
    assert probability.sel(category=7)[4, 2] == 1


def test_held_out_maps_have_not_seen_their_fold(scene) -> None:
    cube, train = scene
    walker = hr.RandomWalker()
    probability, left_out = next(iter(walker.held_out_proba(cube, train, n_folds=3)))
    rest = train.where(~left_out, 0).astype(train.dtype)
    expected = hr.RandomWalker().fit_predict_proba(cube, rest)
    np.testing.assert_allclose(probability.values, expected.values, atol=1e-4)


def test_walkers_are_not_carried(scene) -> None:
    cube, train = scene
    walker = hr.RandomWalker().fit(cube, train)
    with pytest.raises(InputError, match="fit_predict_proba"):
        walker.predict_proba(cube)
    with pytest.raises(InputError, match="chain"):
        hr.RandomWalker("pca").fit(cube, train)
