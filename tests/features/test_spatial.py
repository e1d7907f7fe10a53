import numpy as np
import pytest
import xarray as xr
from scipy.ndimage import gaussian_filter

import hsreject as hr
from hsreject import schema
from hsreject.errors import InputError


def cube(values) -> xr.DataArray:
    return xr.DataArray(values, dims=schema.CUBE_DIMS)


def test_smoothing_keeps_constants_at_borders_and_holes() -> None:
    values = np.full((1, 12, 14), 7.0)
    values[:, 3:6, 5:9] = np.nan
    values[:, 0, 0] = np.nan
    smoothed = hr.Smooth(2.0).fit_transform(cube(values)).values
    # only the rounding of the two sums is left
    np.testing.assert_allclose(smoothed, values, rtol=1e-14)


def test_smoothing_is_a_weighted_mean_of_the_pixels_with_data() -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(2, 9, 8))
    values[:, random.random((9, 8)) < 0.3] = np.nan
    smoothed = hr.Smooth(1.2).fit_transform(cube(values)).values
    rows, columns = np.indices((9, 8))
    valid = ~np.isnan(values[0])
    for row, column in zip(*np.nonzero(valid), strict=True):
        distance = np.stack([rows - row, columns - column])
        weight = np.exp(-(distance**2).sum(axis=0) / (2 * 1.2**2))
        weight *= valid & (np.abs(distance).max(axis=0) <= 5)  # the kernel ends at 4 sigma
        expected = (weight * np.nan_to_num(values)).sum(axis=(1, 2)) / weight.sum()
        np.testing.assert_allclose(smoothed[:, row, column], expected, rtol=1e-12)


def test_smoothing_far_from_borders_is_scipys() -> None:
    values = np.random.default_rng(0).normal(size=(1, 40, 40))
    smoothed = hr.Smooth(2.0).fit_transform(cube(values)).values
    inside = (slice(9, -9), slice(9, -9))
    np.testing.assert_allclose(
        smoothed[0][inside], gaussian_filter(values[0], 2.0)[inside], atol=1e-13
    )
    wide = hr.Smooth(12.0).fit(cube(values))  # the kernel is wider than the scene
    lazy = wide.transform(cube(values).chunk({"y": 7, "x": 11}))
    np.testing.assert_allclose(lazy.values, wide.transform(cube(values)).values, rtol=1e-12)
    for sigma in (-1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="sigma"):
            hr.Smooth(sigma).fit(cube(values))


def test_coordinates_are_rows_and_columns() -> None:
    located = hr.Coordinates().fit_transform(cube(np.ones((3, 30, 36))))
    assert list(located.band.values) == ["row", "column"]
    np.testing.assert_array_equal(located.values[:, 29, 35], [29, 35])
