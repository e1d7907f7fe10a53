"""Scans in several slabs, and over chunks, see every pixel once."""

import numpy as np
import pytest
import xarray as xr

from hsreject import schema
from hsreject.classify.moments import pixel_and_difference_moments
from hsreject.classify.pixels import PIXELS_AT_ONCE, map_pixels, row_slabs, samples_of


@pytest.fixture(scope="module")
def cube() -> xr.DataArray:
    random = np.random.default_rng(0)
    values = random.normal(size=(3, 90, 101)) + np.arange(90.0)[:, None]
    values[:, random.random((90, 101)) < 0.2] = np.nan
    values[1, 5, 5] = np.inf
    assert values[0].size > 2 * PIXELS_AT_ONCE
    return xr.DataArray(values, dims=schema.CUBE_DIMS)


@pytest.mark.parametrize(("height", "width"), [(0, 5), (1, 10**7), (1000, 7), (90, 101)])
def test_slabs_cover_every_row_once(height, width) -> None:
    rows = [row for slab in row_slabs(height, width) for row in range(slab.start, slab.stop)]
    assert rows == list(range(height))


@pytest.mark.parametrize("chunks", [None, {"y": 90, "x": 101}, {"band": 2, "y": 64, "x": 50}])
def test_moments_are_numpys(cube, chunks) -> None:
    values = np.where(np.isinf(cube.values).any(axis=0), np.nan, cube.values)
    scanned = cube if chunks is None else cube.chunk(chunks)
    pixels, differences = pixel_and_difference_moments(scanned, (1, -1))
    samples = values.reshape(3, -1).T
    samples = samples[~np.isnan(samples).any(axis=1)]
    steps = (values[:, :-1, 1:] - values[:, 1:, :-1]).reshape(3, -1).T
    steps = steps[~np.isnan(steps).any(axis=1)]
    for found, expected in ((pixels, samples), (differences, steps)):
        assert found.count == len(expected)
        np.testing.assert_allclose(found.mean, expected.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(found.covariance, np.cov(expected.T), rtol=1e-10)
        np.testing.assert_allclose(found.variance, expected.var(axis=0, ddof=1), rtol=1e-10)


@pytest.mark.parametrize("chunks", [None, {"band": 2, "y": 64, "x": 50}])
def test_functions_are_mapped_over_every_pixel_with_data(cube, chunks) -> None:
    scanned = cube if chunks is None else cube.chunk(chunks)
    mapped = np.asarray(
        map_pixels(
            scanned,
            lambda samples: np.stack([samples.sum(axis=1), samples[:, 2]], axis=1),
            n_outputs=2,
            dtype=np.float64,
        )
    )
    valid = np.isfinite(cube.values).all(axis=0)
    np.testing.assert_allclose(mapped[0][valid], cube.values[:, valid].sum(axis=0), rtol=1e-12)
    np.testing.assert_array_equal(mapped[1][valid], cube.values[2][valid])
    assert np.isnan(mapped[:, ~valid]).all()


def test_samples_are_a_copy(cube) -> None:
    for values in (cube.values[:, :4, :4], np.ones((3, 2, 2))):
        before = values.copy()
        samples, _ = samples_of(values)
        samples[:] = -1.0
        np.testing.assert_array_equal(values, before)
