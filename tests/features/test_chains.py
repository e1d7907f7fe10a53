"""Chains as products: the features of their steps, with the same bits whatever the block."""

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject.features.chains import CHAINS, Projection, fit_chain
from hsreject.features.pixel_kernels import product


@pytest.fixture(scope="module")
def cube() -> xr.DataArray:
    return hr.synthetic_scene(rows=37, columns=41, n_bands=24, noise=0.1, seed=5)[0] * 3000


def test_a_projection_gives_the_features_of_its_chains(cube) -> None:
    fitted = {name: fit_chain(name, cube, 12) for name in CHAINS}
    projections = Projection.of({name: chain.steps for name, (chain, _) in fitted.items()})
    assert [p.names for p in projections] == [("mnf", "raw"), ("normalized",)]
    valid = cube.notnull().all("band").values
    samples = cube.values[:, valid].T
    for project in projections:
        for name, found in project(samples).items():
            wanted = fitted[name][1].values[:, valid]
            np.testing.assert_allclose(found, wanted, atol=1e-5 * np.abs(wanted).max())


def test_the_bits_of_a_pixel_do_not_depend_on_its_neighbours(cube) -> None:
    chains = {name: fit_chain(name, cube, 12)[0].steps for name in CHAINS}
    samples = cube.values.reshape(len(cube), -1).T
    samples = np.ascontiguousarray(samples[np.isfinite(samples).all(axis=1)])
    for project in Projection.of(chains):
        whole = project(samples)
        for start, stop in ((0, 1), (3, 515), (700, 717), (1, 1400)):
            for name, part in project(samples[start:stop]).items():
                np.testing.assert_array_equal(part, whole[name][:, start:stop])


def test_products_are_those_of_double_precision() -> None:
    rng = np.random.default_rng(1)
    for n_features, n_bands, n_pixels in ((1, 1, 1), (3, 5, 256), (60, 200, 700)):
        weights = rng.normal(size=(n_features, n_bands))
        spectra = rng.normal(size=(n_bands, n_pixels)).astype(np.float32)
        np.testing.assert_allclose(
            product(weights, spectra), weights @ spectra.astype(np.float64), atol=1e-6 * n_bands
        )


def test_spectra_of_any_size_have_unit_length(cube) -> None:
    chains = {"normalized": fit_chain("normalized", cube, 12)[0].steps}
    (project,) = Projection.of(chains)
    samples = cube.values.reshape(len(cube), -1).T[:50].astype(np.float32)
    wanted = project(samples)["normalized"]
    for factor in (2.0**-80, 2.0**40):
        found = project(samples * np.float32(factor))["normalized"]
        np.testing.assert_array_equal(found, wanted)
    assert np.isfinite(project(0 * samples)["normalized"]).all()
