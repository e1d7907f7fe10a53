"""What priors take from the image of a whole scene: lazy, and then the same in every block."""

import tracemalloc

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.context.prior import Grid
from hsreject.context.priors import PRIORS
from hsreject.context.segsalsa import SOLVERS
from hsreject.errors import InputError, NotConvergedWarning


@pytest.fixture(scope="module")
def cube() -> xr.DataArray:
    """Return a scene with a hole and a band that is bad and has no data."""
    scene, _ = hr.synthetic_scene(rows=40, columns=50, n_bands=8, seed=2)
    scene[3] = np.nan
    return scene.assign_coords(good_band=("band", np.arange(8) != 3))


def edge_weights(prior: hr.Prior, valid: np.ndarray, image: np.ndarray | None) -> np.ndarray:
    return prior.bind(Grid(valid, 2, np.dtype(float), image)).edge_weight


@pytest.mark.parametrize("chunks", [None, {"y": 11, "x": 17}])
def test_blocks_have_the_edge_weights_of_the_whole_scene(cube, chunks) -> None:
    good = cube.values[cube.good_band.values]
    valid = np.isfinite(good).all(axis=0)
    prior = hr.VectorTV(2.0, edges="image")
    whole = edge_weights(prior, valid, good)
    guide = prior.guide(cube if chunks is None else cube.chunk(chunks))
    assert (guide.chunks is None) == (chunks is None)
    assert guide.sizes["layer"] == prior.n_guide_layers == 2
    block = guide.isel(y=slice(5, 30), x=slice(12, 41)).values
    weights = edge_weights(prior.in_block(block), valid[5:30, 12:41], None)
    # the edges that leave the block are not in it; a guide has single precision
    np.testing.assert_allclose(weights[:, 0, :-1], whole[5:30, 0, 12:40], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(weights[:-1, 1], whole[5:29, 1, 12:41], rtol=1e-6, atol=1e-9)
    assert not weights[:, 0, -1].any()


@pytest.mark.parametrize("prior", [hr.VectorTV(edges="image"), PRIORS.create("graph_tv")])
def test_bad_bands_of_a_solved_image_take_no_part(cube, prior) -> None:
    good = cube.isel(band=np.flatnonzero(cube.good_band))
    valid = np.isfinite(good.values).all(axis=0)
    field = np.random.default_rng(4).dirichlet(np.ones(3), valid.shape).transpose(2, 0, 1)
    probability = np.where(valid, field, np.nan)
    ours, expected = (hr.SegSALSA(prior).solve(probability, image=image) for image in (cube, good))
    np.testing.assert_array_equal(ours.hidden_field, expected.hidden_field)


def test_several_priors_share_one_guide(cube) -> None:
    edges = hr.VectorTV(1.0, edges="image")
    context = hr.SegSALSA([edges, hr.VectorTV(1.0), edges])
    guide = context.guide(cube).values
    guide[2:] += 1  # so that the layers of the third are not those of the first
    first, plain, last = context.in_block(guide).priors
    np.testing.assert_array_equal(first.edges, guide[:2].swapaxes(0, 1))
    assert plain.edges is None
    np.testing.assert_array_equal(last.edges, guide[2:].swapaxes(0, 1))
    assert context.halo == 48
    assert hr.SegSALSA(hr.VectorTV(1.0)).guide(cube) is None


def test_edge_weights_fall_with_the_squared_difference() -> None:
    # differences of 1 and 3, and one to a pixel without data; squared 1 and 9, 5 on the mean
    image = np.array([[[0.0, 1.0, 4.0, 9.0]]])
    weights = edge_weights(hr.VectorTV(edges="image"), np.array([[True, True, True, False]]), image)
    np.testing.assert_allclose(weights[0, 0], [np.exp(-0.1), np.exp(-0.9), 0, 0])
    assert not weights[0, 1].any()


def test_an_image_without_any_difference_has_edges_of_weight_one() -> None:
    flat = xr.DataArray(np.ones((3, 4, 5)), dims=("band", "y", "x"))
    prior = hr.VectorTV(1.0, edges="image")
    weights = edge_weights(prior.in_block(prior.guide(flat).values), np.ones((4, 5), bool), None)
    assert set(np.unique(weights)) == {0.0, 1.0}


def test_edges_of_one_scene_are_refused_on_another(cube) -> None:
    with pytest.raises(InputError, match="belongs to one scene"):
        hr.VectorTV(1.0, edges=np.ones((40, 2, 50))).guide(cube)


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_solving_takes_no_more_numbers_than_stated(name: str, solver: str) -> None:
    """The peak of what NumPy allocates while a scene is solved, without what was given."""
    cube, labels = hr.synthetic_scene(rows=48, columns=48, n_bands=4, noise=1.0)
    probability = hr.SceneClassifier("lda").fit(cube, labels).predict_proba(cube)
    context = hr.SegSALSA(PRIORS.create(name), solver=solver, n_threads=1, max_iter=2)
    with pytest.warns(NotConvergedWarning):  # two iterations allocate all there is
        context.solve(probability, image=cube)  # compiles
    tracemalloc.start()
    with pytest.warns(NotConvergedWarning):
        context.solve(probability, image=cube)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    numbers = peak / (probability.size * 4)
    assert numbers < context.working_size + 16  # maps and masks, of which there are a few per pixel


def test_a_prior_says_nothing_of_its_halo_by_itself() -> None:
    class Silent(hr.Prior):
        def bind(self, grid: Grid):
            raise NotImplementedError

    assert Silent().halo is None
    assert hr.SegSALSA([hr.VectorTV(1.0), Silent()]).halo is None
