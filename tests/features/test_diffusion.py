"""Diffusion on the edge graph, against dense algebra on small scenes."""

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.errors import InputError
from hsreject.features import windows
from hsreject.features.diffusion import EdgeGraph


def dense_laplacian(guides, contrast) -> np.ndarray:
    """The Laplacian over all pixels, written as its definition; rows without data are zero."""
    valid = np.isfinite(guides).all(axis=0)
    n_rows, n_columns = valid.shape
    pairs = {}
    for pixel in zip(*np.nonzero(valid), strict=True):
        for other in ((pixel[0], pixel[1] + 1), (pixel[0] + 1, pixel[1])):
            if other[0] < n_rows and other[1] < n_columns and valid[other]:
                step = guides[:, *pixel] - guides[:, *other]
                pairs[pixel[0] * n_columns + pixel[1], other[0] * n_columns + other[1]] = (
                    step @ step
                )
    mean = np.mean(list(pairs.values()))
    laplacian = np.zeros((valid.size, valid.size))
    for (first, second), squared in pairs.items():
        weight = np.exp(-contrast * squared / mean) + 1e-6
        laplacian[[first, second], [first, second]] += weight
        laplacian[[first, second], [second, first]] -= weight
    return laplacian


@pytest.fixture
def cube() -> xr.DataArray:
    values = np.random.default_rng(1).normal(size=(12, 9, 7))
    values[:, 3, 2:5] = np.nan
    values[1, 0, 0] = np.nan  # no data in one band is no data
    values[:, 8] = np.nan  # a whole row
    return xr.DataArray(values, dims=("band", "y", "x"))


@pytest.mark.parametrize("t", [0.0, 3.0, 300.0])
def test_it_solves_the_system_of_its_definition(cube, t) -> None:
    found = hr.Diffuse(t).fit_transform(cube)
    valid = np.isfinite(cube.values).all(axis=0)
    guides = np.where(valid, cube.values[:10], np.nan)
    system = np.eye(valid.size) + t * dense_laplacian(guides, 3.0)
    features = np.where(valid, cube.values, 0).reshape(12, -1).T
    expected = np.where(valid.ravel()[:, None], np.linalg.solve(system, features), np.nan)
    np.testing.assert_allclose(found.values.reshape(12, -1).T, expected, atol=1e-10)


def test_sums_are_kept_and_long_times_level_out(cube) -> None:
    filled = cube.fillna(0.5)
    found = hr.Diffuse(1e9).fit_transform(filled)
    np.testing.assert_allclose(
        found.values,
        np.broadcast_to(filled.mean(("y", "x")).values[:, None, None], found.shape),
        atol=1e-6,
    )


def test_several_sets_of_guides_share_the_edges() -> None:
    first, second = np.random.default_rng(2).normal(size=(2, 3, 6, 5))
    second[0, 2, 2] = np.nan
    first[:, 2, 2] = np.nan
    alone = [EdgeGraph.of(one, contrast=2.0) for one in (first, second)]
    both = EdgeGraph.of(first, 1000 * second, contrast=2.0)
    assert both.valid.sum() == 29
    for edges in ("across", "down"):
        mean = (getattr(alone[0], edges) + getattr(alone[1], edges)) / 2
        np.testing.assert_allclose(getattr(both, edges), mean, atol=1e-12)
    assert (both.across[2, 1:3] == 0).all()


def test_windows_of_a_large_scene_leave_no_seams(monkeypatch) -> None:
    """Two windows that overlap by 32 pixels say what the whole scene says."""
    rng = np.random.default_rng(0)
    cube = xr.DataArray(rng.normal(size=(3, 70, 90)), dims=("band", "y", "x"))
    transformer = hr.Diffuse(300.0).fit(cube)
    whole = transformer.transform(cube)
    monkeypatch.setattr(windows, "_LARGEST_WHOLE", 1000)
    monkeypatch.setattr(windows, "_SIDE", 45)
    cut = transformer.transform(cube)
    assert cut.chunks is None
    np.testing.assert_allclose(cut.values, whole.values, atol=2e-3 * float(whole.std()))
    assert not np.array_equal(cut.values, whole.values)
    lazy = transformer.transform(cube.chunk(y=13, x=50))
    assert lazy.chunks is not None
    np.testing.assert_allclose(lazy.values, whole.values, atol=2e-3 * float(whole.std()))


def test_a_negative_time_is_named(cube) -> None:
    with pytest.raises(InputError, match="t must"):
        hr.Diffuse(-1.0).fit(cube)
