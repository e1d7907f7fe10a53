"""Principal components and minimum noise fraction against independent solutions."""

import numpy as np
import pytest
import scipy.linalg
import sklearn.decomposition
import spectral
import xarray as xr

import hsreject as hr
from hsreject import schema
from hsreject.errors import InputError


@pytest.fixture(scope="module")
def scene() -> xr.DataArray:
    """More pixels than are worked on at a time."""
    cube, _ = hr.synthetic_scene(rows=90, columns=50, n_classes=4, n_bands=12, seed=1, hole=False)
    return cube.astype(np.float64)


def with_holes(scene: xr.DataArray) -> xr.DataArray:
    kept = np.random.default_rng(5).random((90, 50)) > 0.1
    holed = scene.where(xr.DataArray(kept, dims=schema.MAP_DIMS))
    holed.values[1, 5, 5] = np.inf
    return holed


def pairs(values: np.ndarray, offset: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return the pixels with data, and their differences to neighbours, collected one by one."""
    _, height, width = values.shape
    valid = np.isfinite(values).all(axis=0)
    pixels, differences = [], []
    for row, column in zip(*np.nonzero(valid), strict=True):
        pixels.append(values[:, row, column])
        below, right = row + offset[0], column + offset[1]
        if below < height and 0 <= right < width and valid[below, right]:
            differences.append(values[:, row, column] - values[:, below, right])
    return np.array(pixels).T, np.array(differences).T


def test_mnf_agrees_with_a_direct_solution(scene) -> None:
    """The generalised eigenproblem by LAPACK."""
    for cube in (scene, with_holes(scene)):
        pixels, differences = pairs(cube.values, (1, 1))
        eigenvalues, vectors = scipy.linalg.eigh(np.cov(pixels), np.cov(differences) / 2)
        expected = vectors.T[:-6:-1]
        scale = np.abs(expected).max()
        for chunks in (None, {"band": 5, "y": 7, "x": 13}, {"y": 1, "x": 15}):
            mnf = hr.MNF(5).fit(cube.chunk(chunks) if chunks else cube)
            np.testing.assert_allclose(mnf.snr_, eigenvalues[::-1] - 1, rtol=1e-6, atol=1e-6)
            signs = np.sign((mnf.components_ * expected).sum(axis=1, keepdims=True))
            np.testing.assert_allclose(mnf.components_, signs * expected, atol=1e-6 * scale)
            np.testing.assert_allclose(mnf.mean_, pixels.mean(axis=1), rtol=1e-12)


def test_mnf_agrees_with_spectral_on_a_scene_without_holes(scene) -> None:
    image = scene.values.transpose(1, 2, 0)
    reference = spectral.mnf(spectral.calc_stats(image), spectral.noise_from_diffs(image))
    expected = reference.reduce(image, num=6).transpose(2, 0, 1)
    found = hr.MNF(6).fit_transform(scene).values
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-7 * np.abs(expected).max())


def test_features_have_unit_noise_and_are_uncorrelated(scene) -> None:
    cube = with_holes(scene)
    mnf = hr.MNF(6).fit(cube)
    features = mnf.transform(cube)
    pixels, differences = pairs(features.values, (1, 1))
    np.testing.assert_allclose(np.cov(differences) / 2, np.eye(6), atol=1e-8)
    np.testing.assert_allclose(pixels.mean(axis=1), 0, atol=1e-8)
    np.testing.assert_allclose(np.cov(pixels), np.diag(mnf.snr_[:6] + 1), atol=1e-6)
    valid = np.isfinite(cube.values).all(axis=0)
    np.testing.assert_array_equal(np.isfinite(features.values).all(axis=0), valid)


def test_units_integers_and_signs_do_not_matter(scene) -> None:
    unit = xr.DataArray(10.0 ** np.linspace(-6, 6, 12), dims=schema.BAND)
    expected = hr.MNF(5).fit_transform(scene).values
    found = hr.MNF(5).fit_transform(scene * unit).values
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)
    values = np.random.default_rng(0).integers(0, 65535, size=(4, 20, 20)).astype(np.uint16)
    cube = xr.DataArray(values, dims=schema.CUBE_DIMS)  # differences must not wrap around
    whole = hr.MNF(2).fit(cube.astype(np.float64))
    np.testing.assert_array_equal(hr.MNF(2).fit(cube).components_, whole.components_)
    for model in (hr.MNF(12), hr.PCA(12)):  # signs do not depend on the solver
        components = model.fit(scene).components_
        assert (components.max(axis=1) == np.abs(components).max(axis=1)).all()


def test_constant_and_copied_bands_are_no_trouble(scene) -> None:
    constant = xr.full_like(scene.isel(band=[0]), 3.0)
    wider = xr.concat([scene, constant, scene.isel(band=[4])], dim="band")
    mnf = hr.MNF(12).fit(wider)
    assert mnf.snr_.size == 12
    np.testing.assert_allclose(mnf.snr_, hr.MNF(12).fit(scene).snr_, rtol=1e-6, atol=1e-6)
    with pytest.raises(InputError, match=r"between 1 and 12"):
        hr.MNF(13).fit(wider)


def test_the_rule_keeps_components_with_more_signal_than_noise(scene) -> None:
    mnf = hr.MNF(None, min_snr=2.0).fit(scene)
    assert len(mnf.components_) == (mnf.snr_ >= 2.0).sum() > 1
    assert len(hr.MNF(None, min_snr=1e9).fit(scene).components_) == 1


def test_pure_noise_and_few_pairs_still_work() -> None:
    random = np.random.default_rng(0)
    noise = xr.DataArray(random.normal(size=(20, 30, 30)), dims=schema.CUBE_DIMS)
    mnf = hr.MNF(20).fit(noise)  # eigenvalues that nearly agree
    _, differences = pairs(mnf.transform(noise).values, (1, 1))
    np.testing.assert_allclose(np.cov(differences) / 2, np.eye(20), atol=1e-6)
    cube = xr.DataArray(random.normal(size=(50, 5, 6)), dims=schema.CUBE_DIMS)
    mnf = hr.MNF(3).fit(cube)
    assert mnf.snr_.size == 19  # 20 pairs, less their mean
    assert np.isfinite(mnf.transform(cube).values).all()


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.ones((3, 4, 4)), {}, "neighbouring pixels are equal"),
        (np.arange(12.0).reshape(3, 1, 4), {}, r"two pairs .* \(found 0\)"),
        (np.arange(16.0).reshape(1, 4, 4) ** 2, {"n_components": 0}, "between 1 and 1"),
    ],
)
def test_impossible_scenes_and_options_are_refused(values, options, message) -> None:
    with pytest.raises(InputError, match=message):
        hr.MNF(**options).fit(xr.DataArray(values, dims=schema.CUBE_DIMS))


def test_pca_is_scikit_learns(scene) -> None:
    offset = 1e6 + scene  # that costs a careless sum its digits
    samples = offset.values.reshape(12, -1).T
    reference = sklearn.decomposition.PCA(4, svd_solver="full").fit(samples)
    ours = hr.PCA(4).fit(offset.chunk({"y": 7, "x": 11}))
    # the offset costs six of sixteen digits
    np.testing.assert_allclose(ours.explained_variance_, reference.explained_variance_, rtol=1e-8)
    found = ours.transform(offset).values.reshape(4, -1).T
    np.testing.assert_allclose(np.abs(found), np.abs(reference.transform(samples)), atol=1e-6)
    share = ours.explained_variance_ratio_[:2].sum() - 1e-9
    assert len(hr.PCA(float(share)).fit(samples).components_) == 2
    assert len(hr.PCA(99).fit(offset).components_) == 12
    for n_components in (0, -1, 2.5):
        with pytest.raises(InputError, match="n_components"):
            hr.PCA(n_components).fit(scene)
