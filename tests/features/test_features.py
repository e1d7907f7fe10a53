"""Properties that every feature must have, over the registry."""

import dask
import numpy as np
import pytest
import xarray as xr
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import hsreject as hr
from hsreject import schema
from hsreject.errors import ConfigError, InputError
from hsreject.features import FEATURES

OPTIONS = {"mnf": {"n_components": 4}, "pca": {"n_components": 4}, "smooth": {"sigma": 1.5}}
SAMPLE_WISE = [hr.PCA(), hr.Scale(), hr.Normalize()]
HALO = {**dict.fromkeys(FEATURES, 0), "smooth": 6, "diffuse": None, "coordinates": None}


@pytest.fixture(scope="module")
def scene() -> xr.DataArray:
    cube, _ = hr.synthetic_scene(rows=40, columns=44, n_classes=3, n_bands=8, seed=3)
    return cube.copy()


@pytest.fixture(params=FEATURES)
def feature(request):
    return FEATURES.create(request.param, **OPTIONS.get(request.param, {}))


def test_nothing_enters_from_pixels_without_data(feature, scene) -> None:
    garbage = scene.copy()
    hole = ~schema.valid_pixels(scene).values
    assert hole.any()
    garbage.values[1:, hole] = 1e9
    expected = feature.fit_transform(scene)
    found = clone(feature).fit_transform(garbage)
    np.testing.assert_array_equal(found.values[:, ~hole], expected.values[:, ~hole])
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


def test_chunks_change_nothing_but_rounding_and_wait_to_be_computed(feature, scene) -> None:
    def refuse(dsk, keys, **options):
        raise AssertionError("computed too early")

    expected = feature.fit_transform(scene)
    # the statistics agree to 1e-12 or so; what is left is float32 rounding of the features
    tolerance = 1e-5 * float(np.nanmax(np.abs(expected.values)))
    for chunks in ({"band": 3, "y": 7, "x": 11}, {"y": 1}, {"x": 44}):
        lazy = scene.chunk(chunks)
        fitted = clone(feature).fit(lazy)
        # coordinates along the bands stay loaded: those are looked at
        with dask.config.set(scheduler=refuse):
            found = fitted.transform(scene.copy(data=lazy.data))
        assert found.chunks is not None
        assert found.dtype == expected.dtype
        xr.testing.assert_allclose(found.compute(), expected, rtol=0, atol=tolerance)


def test_the_grid_is_that_of_any_transformed_scene(feature, scene) -> None:
    other, _ = hr.synthetic_scene(rows=20, columns=25, n_classes=3, n_bands=8, seed=4)
    alone = feature.fit(scene).transform(scene)
    result = feature.transform(other.transpose("y", "x", "band"))
    assert result.dims == schema.CUBE_DIMS
    assert result.shape == (alone.sizes["band"], 20, 25)
    for name in ("y", "x", "spatial_ref"):
        assert result.coords[name].variable.identical(other.coords[name].variable)
    assert result.rio.crs == other.rio.crs
    np.testing.assert_array_equal(feature.transform(scene).values, alone.values)


@pytest.mark.parametrize("name", FEATURES)
def test_a_window_wider_by_the_halo_has_the_features_of_the_whole_scene(name, scene) -> None:
    fitted = FEATURES.create(name, **OPTIONS.get(name, {})).fit(scene)
    halo = fitted.halo
    assert halo == HALO[name]
    if halo is None:
        return
    whole = fitted.transform(scene).values[:, 10:20, 12:24]
    window = scene.isel(y=slice(10 - halo, 20 + halo), x=slice(12 - halo, 24 + halo))
    part = fitted.transform(window).isel(y=slice(halo, halo + 10), x=slice(halo, halo + 12))
    # products of matrices of another size round differently
    scale = np.nanmax(abs(whole))
    np.testing.assert_allclose(part.values, whole, rtol=1e-5, atol=1e-6 * scale)
    if halo:
        narrow = fitted.transform(scene.isel(y=slice(10, 20), x=slice(12, 24))).values
        assert np.nanmax(abs(narrow - whole)) > 1e-3 * scale


@pytest.mark.parametrize("transformer", SAMPLE_WISE, ids=lambda t: type(t).__name__)
def test_features_of_samples_are_honest_transformers(transformer, scene) -> None:
    check_estimator(transformer, on_skip=None)
    valid = schema.valid_pixels(scene).values
    samples = scene.values[:, valid].T.astype(np.float64)
    from_samples = clone(transformer).fit_transform(samples)
    from_cube = clone(transformer).fit_transform(scene.astype(np.float64)).values[:, valid].T
    np.testing.assert_allclose(from_cube, from_samples, rtol=1e-9, atol=1e-9)
    in_pipeline = make_pipeline(clone(transformer), hr.Normalize()).fit(samples)
    assert in_pipeline.transform(samples).shape == from_samples.shape


def test_impossible_scenes_and_names_are_refused(scene) -> None:
    with pytest.raises(InputError, match="PCA was fitted on 8 bands but the cube has 5"):
        hr.PCA(3).fit(scene).transform(scene.isel(band=slice(5)))
    with pytest.raises(InputError, match="at least two pixels"):
        hr.Scale().fit(xr.full_like(scene, np.nan))
    with pytest.raises(InputError, match="at least one good band"):
        hr.Scale().fit(scene.assign_coords(good_band=("band", [False] * 8)))
    with pytest.raises(ConfigError, match=r"'mfn'.*Did you mean 'mnf'"):
        FEATURES.create("mfn")
    with pytest.raises(ConfigError, match="'components'"):
        FEATURES.create("mnf", components=3)
