"""A feature's reach: a window that is wider by it gives the features of the whole scene."""

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.classify.features import FEATURES, SceneTransformer

OPTIONS = {
    "mnf": {"n_components": 3},
    "pca": {"n_components": 3},
    "select_bands": {"exclude": [(400.0, 500.0)]},
}
REACHING = {**dict.fromkeys(FEATURES, 0), "smooth": 6, "coordinates": None}


@pytest.fixture(scope="module")
def cube() -> xr.DataArray:
    return hr.synthetic_scene(rows=40, columns=44, n_bands=6, seed=1)[0]


def feature(name: str) -> SceneTransformer:
    return FEATURES.create(name, **({"sigma": 1.5} if name == "smooth" else OPTIONS.get(name, {})))


@pytest.mark.parametrize("name", FEATURES)
def test_every_feature_states_its_reach(name: str) -> None:
    assert feature(name).reach == REACHING[name]


@pytest.mark.parametrize("name", [name for name, reach in REACHING.items() if reach is not None])
def test_a_window_wider_by_the_reach_has_the_features_of_the_whole_scene(
    name: str, cube: xr.DataArray
) -> None:
    fitted = feature(name).fit(cube)
    whole = fitted.transform(cube).values[:, 10:20, 12:24]
    reach = fitted.reach
    window = cube.isel(y=slice(10 - reach, 20 + reach), x=slice(12 - reach, 24 + reach))
    part = fitted.transform(window).isel(y=slice(reach, reach + 10), x=slice(reach, reach + 12))
    # products of matrices of another size round differently
    np.testing.assert_allclose(part.values, whole, rtol=1e-5, atol=1e-6 * np.nanmax(abs(whole)))


def test_a_narrower_window_has_other_features(cube: xr.DataArray) -> None:
    smooth = hr.Smooth(1.5).fit(cube)
    whole = smooth.transform(cube).values[:, 10:20, 12:24]
    narrow = smooth.transform(cube.isel(y=slice(10, 20), x=slice(12, 24))).values
    assert np.nanmax(abs(narrow - whole)) > 1e-3 * np.nanmax(abs(whole))


def test_the_reach_of_a_classifier_is_the_sum_of_its_features(cube: xr.DataArray) -> None:
    labels = hr.synthetic_scene(rows=40, columns=44, n_bands=6, seed=1)[1]
    model = hr.SceneClassifier("lda", features=[hr.Smooth(1.0), hr.PCA(3), hr.Smooth(2.0)])
    assert model.fit(cube, labels).reach == 4 + 8
    assert hr.SceneClassifier("lda", features=["coordinates"]).fit(cube, labels).reach is None
