import numpy as np
import pytest
import scipy.linalg
import spectral
import xarray as xr

from hsreject import schema
from hsreject.classify.features import MNF
from hsreject.classify.features.mnf import NEIGHBOURS, noise_adjusted_components
from hsreject.classify.moments import Moments, pixel_and_difference_moments
from hsreject.datasets.synthetic import synthetic_scene
from hsreject.errors import InputError


@pytest.fixture(scope="module")
def scene() -> xr.DataArray:
    cube, _ = synthetic_scene(rows=40, columns=30, n_classes=4, n_bands=12, seed=1, hole=False)
    return cube.astype(np.float64)


def with_holes(scene: xr.DataArray) -> xr.DataArray:
    kept = np.random.default_rng(5).random((40, 30)) > 0.1
    return scene.where(xr.DataArray(kept, dims=schema.MAP_DIMS))


def direct_solution(values: np.ndarray, offset: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs collected one by one, then the generalised eigenproblem by LAPACK."""
    _, height, width = values.shape
    pixels, differences = [], []
    for row in range(height):
        for column in range(width):
            here = values[:, row, column]
            if np.isnan(here).any():
                continue
            pixels.append(here)
            below, right = row + offset[0], column + offset[1]
            if below < height and 0 <= right < width:
                there = values[:, below, right]
                if not np.isnan(there).any():
                    differences.append(here - there)
    signal, noise = np.cov(np.array(pixels).T), np.cov(np.array(differences).T) / 2
    eigenvalues, vectors = scipy.linalg.eigh(signal, noise)
    return eigenvalues[::-1], vectors.T[::-1]


@pytest.mark.parametrize("neighbour", list(NEIGHBOURS))
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("chunks", [None, {"band": 5, "y": 7, "x": 13}, {"y": 1, "x": 15}])
def test_agrees_with_a_direct_solution(scene, neighbour, holes, chunks) -> None:
    cube = with_holes(scene) if holes else scene
    eigenvalues, vectors = direct_solution(cube.values, NEIGHBOURS[neighbour])
    mnf = MNF(5, neighbour=neighbour).fit(cube.chunk(chunks) if chunks else cube)
    np.testing.assert_allclose(mnf.snr_, eigenvalues - 1, rtol=1e-6, atol=1e-6)
    signs = np.sign((mnf.components_ * vectors[:5]).sum(axis=1, keepdims=True))
    scale = np.abs(vectors[:5]).max()
    np.testing.assert_allclose(mnf.components_, signs * vectors[:5], atol=1e-6 * scale)


def test_agrees_with_spectral_on_a_scene_without_holes(scene) -> None:
    image = scene.values.transpose(1, 2, 0)
    reference = spectral.mnf(spectral.calc_stats(image), spectral.noise_from_diffs(image))
    expected = reference.reduce(image, num=6).transpose(2, 0, 1)
    found = MNF(6).fit_transform(scene).values
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-7 * np.abs(expected).max())


def test_features_have_unit_noise_and_are_uncorrelated(scene) -> None:
    cube = with_holes(scene)
    mnf = MNF(6).fit(cube)
    features = mnf.transform(cube)
    signal, differences = pixel_and_difference_moments(features, (1, 1))
    np.testing.assert_allclose(differences.covariance / 2, np.eye(6), atol=1e-8)
    np.testing.assert_allclose(signal.mean, 0, atol=1e-8)
    np.testing.assert_allclose(signal.covariance, np.diag(mnf.snr_[:6] + 1), atol=1e-6)


def test_the_unit_of_a_band_does_not_matter(scene) -> None:
    unit = xr.DataArray(10.0 ** np.linspace(-6, 6, 12), dims=schema.BAND)
    expected = MNF(5).fit_transform(scene).values
    found = MNF(5).fit_transform(scene * unit).values
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-6)


def test_signs_do_not_depend_on_the_solver(scene) -> None:
    components = MNF(12).fit(scene).components_
    largest = np.abs(components).argmax(axis=1)
    assert (components[np.arange(12), largest] > 0).all()


def test_constant_and_copied_bands_are_no_trouble(scene) -> None:
    constant = xr.full_like(scene.isel(band=[0]), 3.0)
    wider = xr.concat([scene, constant, scene.isel(band=[4])], dim="band")
    mnf = MNF(12).fit(wider)
    assert mnf.snr_.size == 12
    np.testing.assert_allclose(mnf.snr_, MNF(12).fit(scene).snr_, rtol=1e-6, atol=1e-6)
    with pytest.raises(InputError, match=r"between 1 and 12, .* \(got 13\)"):
        MNF(13).fit(wider)


def test_the_rule_keeps_components_with_more_signal_than_noise(scene) -> None:
    mnf = MNF(None, min_snr=2.0).fit(scene)
    assert len(mnf.components_) == (mnf.snr_ >= 2.0).sum() > 1
    assert len(MNF(None, min_snr=1e9).fit(scene).components_) == 1


def test_equal_eigenvalues_give_real_components() -> None:
    moments = Moments.of(np.random.default_rng(0).normal(size=(60, 20)))
    doubled = Moments(moments.count, moments.mean, 2 * moments.scatter)
    eigenvalues, components = noise_adjusted_components(moments, doubled)
    np.testing.assert_allclose(eigenvalues, 1.0, rtol=1e-9)
    noise = components @ moments.covariance @ components.T
    np.testing.assert_allclose(noise, np.eye(20), atol=1e-6)


def test_more_bands_than_pairs_still_works() -> None:
    values = np.random.default_rng(0).normal(size=(50, 5, 6))
    cube = xr.DataArray(values, dims=schema.CUBE_DIMS)
    mnf = MNF(3).fit(cube)
    assert mnf.snr_.size == 19  # 20 pairs, less their mean
    assert np.isfinite(mnf.transform(cube).values).all()


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.ones((3, 4, 4)), {}, "all neighbouring pixels are equal"),
        (np.arange(12.0).reshape(3, 1, 4), {}, r"at least two pairs .* \(found 0\)"),
        (np.eye(4)[None].repeat(3, 0), {"neighbour": "left"}, "neighbour must be one of"),
        (np.arange(16.0).reshape(1, 4, 4) ** 2, {"n_components": 0}, "between 1 and 1"),
    ],
)
def test_impossible_scenes_and_options_are_refused(values, options, message) -> None:
    with pytest.raises(InputError, match=message):
        MNF(**options).fit(xr.DataArray(values, dims=schema.CUBE_DIMS))


def test_moments_merge_without_loss() -> None:
    samples = 1e6 + np.random.default_rng(0).normal(size=(101, 3))
    parts = [Moments.of(part) for part in np.split(samples, [0, 1, 40])]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    np.testing.assert_allclose(merged.mean, samples.mean(axis=0), rtol=1e-14)
    # the offset of 1e6 costs six of sixteen digits
    np.testing.assert_allclose(merged.covariance, np.cov(samples.T), rtol=1e-8, atol=1e-9)
