"""Properties that every feature must have, over the registry, and one oracle for each."""

import dask
import numpy as np
import pytest
import sklearn.decomposition
import xarray as xr
from scipy.ndimage import gaussian_filter
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.utils.estimator_checks import check_estimator

from hsreject import schema
from hsreject.classify.features import (
    FEATURES,
    MNF,
    PCA,
    Coordinates,
    Normalize,
    ResampleBands,
    Scale,
    SelectBands,
    Smooth,
)
from hsreject.datasets.synthetic import synthetic_scene
from hsreject.errors import ConfigError, InputError

OPTIONS = {"mnf": {"n_components": 4}, "pca": {"n_components": 4}, "smooth": {"sigma": 1.5}}
SAMPLE_WISE = [PCA(), Scale(), Normalize(), SelectBands()]


@pytest.fixture(scope="module")
def scene() -> xr.DataArray:
    cube, _ = synthetic_scene(rows=30, columns=36, n_classes=3, n_bands=8, seed=3)
    return cube.copy()


@pytest.fixture(params=[*FEATURES, "resample_bands"])
def feature(request):
    if request.param == "resample_bands":  # no part of a configuration, but of the contract
        return ResampleBands()
    return FEATURES.create(request.param, **OPTIONS.get(request.param, {}))


def test_nothing_enters_from_pixels_without_data(feature, scene) -> None:
    garbage = scene.copy()
    hole = ~schema.valid_pixels(scene).values
    assert hole.any()
    garbage.values[1:, hole] = 1e9
    expected = feature.fit_transform(scene)
    found = clone(feature).fit_transform(garbage)
    np.testing.assert_array_equal(found.values[:, ~hole], expected.values[:, ~hole])
    assert np.isnan(found.values).all(axis=0)[hole].all() or isinstance(feature, SelectBands)
    np.testing.assert_array_equal(schema.valid_pixels(found).values, ~hole)


def test_bad_bands_are_left_out(feature, scene) -> None:
    bad = np.zeros(10, dtype=bool)
    bad[[2, 7]] = True
    wider = xr.full_like(scene.isel(band=[0] * 10), np.nan)
    wider.values[~bad] = scene.values
    coords = np.full(10, 3000.0)
    coords[~bad] = scene.wavelength.values
    wider = wider.assign_coords(wavelength=("band", coords), good_band=("band", ~bad))
    np.testing.assert_array_equal(
        feature.fit_transform(wider).values, clone(feature).fit_transform(scene).values
    )


@pytest.mark.parametrize("chunks", [{"band": 3, "y": 7, "x": 11}, {"y": 1}, {"x": 36}])
def test_chunks_change_nothing_but_rounding(feature, scene, chunks) -> None:
    expected = feature.fit_transform(scene)
    lazy = scene.chunk(chunks)
    found = clone(feature).fit_transform(lazy)
    assert found.chunks is not None
    assert found.dtype == expected.dtype
    # the statistics agree to 1e-12 or so; what is left is float32 rounding of the features
    tolerance = 1e-5 * float(np.nanmax(np.abs(expected.values)))
    xr.testing.assert_allclose(found.compute(), expected, rtol=0, atol=tolerance)


def test_transforming_computes_nothing(feature, scene) -> None:
    def refuse(dsk, keys, **options):
        raise AssertionError("computed too early")

    feature.fit(scene)
    with dask.config.set(scheduler=refuse):
        feature.transform(scene.copy(data=scene.chunk({"y": 10}).data))


def test_fitted_on_one_scene_applied_to_another(feature, scene) -> None:
    other, _ = synthetic_scene(rows=20, columns=25, n_classes=3, n_bands=8, seed=4)
    alone = feature.fit(scene).transform(scene)
    assert feature.transform(other).shape == (alone.sizes["band"], 20, 25)
    np.testing.assert_array_equal(feature.transform(scene).values, alone.values)


def test_the_grid_stays_and_dims_may_come_in_any_order(feature, scene) -> None:
    result = feature.fit_transform(scene.transpose("y", "x", "band"))
    assert result.dims == schema.CUBE_DIMS
    for name in ("y", "x", "spatial_ref"):
        assert result.coords[name].variable.identical(scene.coords[name].variable)
    assert result.rio.crs == scene.rio.crs


def test_another_number_of_bands_is_refused(scene) -> None:
    with pytest.raises(InputError, match="PCA was fitted on 8 bands but the cube has 5"):
        PCA(3).fit(scene).transform(scene.isel(band=slice(5)))


def test_a_scene_without_data_is_refused(scene) -> None:
    with pytest.raises(InputError, match=r"needs at least two pixels with data .* \(found 0\)"):
        Scale().fit(xr.full_like(scene, np.nan))
    with pytest.raises(InputError, match="at least one good band"):
        Scale().fit(scene.assign_coords(good_band=("band", [False] * 8)))


def test_integer_scenes_are_not_wrapped() -> None:
    values = np.random.default_rng(0).integers(0, 65535, size=(4, 20, 20)).astype(np.uint16)
    cube = xr.DataArray(values, dims=schema.CUBE_DIMS)
    whole = MNF(2).fit(cube.astype(np.float64))
    np.testing.assert_array_equal(MNF(2).fit(cube).components_, whole.components_)


@pytest.mark.parametrize("transformer", SAMPLE_WISE, ids=lambda t: type(t).__name__)
def test_sample_wise_features_are_honest_transformers(transformer) -> None:
    check_estimator(transformer, on_skip=None)


@pytest.mark.parametrize("transformer", SAMPLE_WISE, ids=lambda t: type(t).__name__)
def test_cubes_and_samples_agree(transformer, scene) -> None:
    valid = schema.valid_pixels(scene).values
    samples = scene.values[:, valid].T.astype(np.float64)
    from_samples = clone(transformer).fit_transform(samples)
    from_cube = clone(transformer).fit_transform(scene.astype(np.float64)).values[:, valid].T
    np.testing.assert_allclose(from_cube, from_samples, rtol=1e-9, atol=1e-9)
    in_pipeline = make_pipeline(clone(transformer), Normalize()).fit(samples)
    assert in_pipeline.transform(samples).shape == from_samples.shape


@pytest.mark.parametrize("whiten", [False, True])
def test_pca_is_scikit_learns(scene, whiten) -> None:
    valid = schema.valid_pixels(scene).values
    samples = scene.values[:, valid].T.astype(np.float64)
    reference = sklearn.decomposition.PCA(4, whiten=whiten, svd_solver="full").fit(samples)
    ours = PCA(4, whiten=whiten).fit(samples)
    np.testing.assert_allclose(ours.explained_variance_, reference.explained_variance_, rtol=1e-9)
    np.testing.assert_allclose(
        np.abs(ours.transform(samples)), np.abs(reference.transform(samples)), atol=1e-8
    )
    share = ours.explained_variance_ratio_[:2].sum() - 1e-9
    assert len(PCA(float(share)).fit(samples).components_) == 2


@pytest.mark.parametrize("n_components", [0, -1, 2.5])
def test_impossible_numbers_of_components_are_refused(scene, n_components) -> None:
    with pytest.raises(InputError, match="n_components must"):
        PCA(n_components).fit(scene)


def test_scaling_gives_unit_variance_and_zeroes_constant_bands() -> None:
    samples = np.random.default_rng(0).normal(5.0, 3.0, size=(200, 3))
    samples[:, 1] = 0.1
    scaled = Scale().fit_transform(samples)
    np.testing.assert_allclose(scaled.std(axis=0, ddof=1), [1, 0, 1], atol=1e-12)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)


def test_normalizing_is_scikit_learns_even_for_tiny_values() -> None:
    samples = np.random.default_rng(0).normal(size=(50, 6)) * 1e-200
    expected = normalize(samples * 1e200)
    np.testing.assert_allclose(Normalize().fit_transform(samples), expected, rtol=1e-12)


def test_bands_are_selected_by_wavelength(scene) -> None:
    wavelength = scene.wavelength.values
    low, high = wavelength[2], wavelength[5]
    chosen = SelectBands(wavelengths=(low, high)).fit(scene)
    assert list(chosen.bands_used_) == [2, 3, 4, 5]
    expected = scene.isel(band=slice(2, 6)).drop_vars("good_band")
    xr.testing.assert_identical(chosen.transform(scene), expected)
    rest = SelectBands(exclude=[(0, low), (high, 1e6)]).fit(scene)
    assert list(rest.bands_used_) == [3, 4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wavelengths": (1, 2)}, "No good band is left"),
        ({"wavelengths": (700, 400)}, "must be a pair"),
        ({"wavelengths": (700, 400, 300)}, "must be a pair"),
    ],
)
def test_impossible_selections_are_refused(scene, options, message) -> None:
    with pytest.raises(InputError, match=message):
        SelectBands(**options).fit(scene)
    with pytest.raises(InputError, match="Samples have no wavelengths"):
        SelectBands(**options).fit(np.ones((3, 2)))
    with pytest.raises(InputError, match="only in a cube with the coordinate 'wavelength'"):
        SelectBands(**options).fit(scene.drop_vars("wavelength"))


def test_smoothing_keeps_constants_at_borders_and_holes() -> None:
    values = np.full((1, 12, 14), 7.0)
    values[:, 3:6, 5:9] = np.nan
    values[:, 0, 0] = np.nan
    smoothed = Smooth(2.0).fit_transform(xr.DataArray(values, dims=schema.CUBE_DIMS)).values
    # only the rounding of the two sums is left
    np.testing.assert_allclose(smoothed, values, rtol=1e-14)


def test_smoothing_is_a_weighted_mean_of_the_pixels_with_data() -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(2, 9, 8))
    values[:, random.random((9, 8)) < 0.3] = np.nan
    smoothed = Smooth(1.2).fit_transform(xr.DataArray(values, dims=schema.CUBE_DIMS)).values
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
    smoothed = Smooth(2.0).fit_transform(xr.DataArray(values, dims=schema.CUBE_DIMS)).values
    inside = (slice(9, -9), slice(9, -9))
    np.testing.assert_allclose(
        smoothed[0][inside], gaussian_filter(values[0], 2.0)[inside], atol=1e-13
    )


@pytest.mark.parametrize("sigma", [-1.0, np.nan, np.inf])
def test_impossible_widths_are_refused(scene, sigma) -> None:
    with pytest.raises(InputError, match="sigma must be"):
        Smooth(sigma).fit(scene)


def test_coordinates_are_rows_and_columns(scene) -> None:
    located = Coordinates().fit_transform(scene)
    assert list(located.band.values) == ["row", "column"]
    np.testing.assert_array_equal(located.values[:, 29, 35], [29, 35])


def test_names_and_options_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"Unknown feature 'mfn'.*Did you mean 'mnf'"):
        FEATURES.create("mfn")
    with pytest.raises(ConfigError, match="Unknown option 'components' for feature 'mnf'"):
        FEATURES.create("mnf", components=3)
