import numpy as np
import pytest
import xarray as xr

from hsreject import schema
from hsreject.classify.features import MNF, ResampleBands, SelectBands
from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.datasets.synthetic import synthetic_scene
from hsreject.errors import GuessWarning, InputError


@pytest.fixture(scope="module")
def cube() -> xr.DataArray:
    cube = synthetic_scene(rows=20, columns=24, n_classes=3, n_bands=20, seed=6)[0]
    return cube.assign_coords(wavelength=("band", np.linspace(400.0, 970.0, 20)))  # every 30 nm


@pytest.fixture(scope="module")
def model(cube) -> SceneClassifier:
    labels = synthetic_scene(rows=20, columns=24, n_classes=3, n_bands=20, seed=6)[1]
    return SceneClassifier("lda", features=[MNF(4)]).fit(cube, labels)


def spectra(wavelength, *, dims=schema.CUBE_DIMS) -> xr.DataArray:
    """A smooth function of wavelength in every pixel."""
    wavelength = np.asarray(wavelength, dtype=float)
    phase = np.arange(6.0).reshape(1, 2, 3)
    values = np.sin(wavelength[:, None, None] / 300.0 + phase)
    return xr.DataArray(values, dims=dims, coords={"wavelength": ("band", wavelength)})


def test_differences_are_named(model, cube) -> None:
    with pytest.raises(
        InputError,
        match=r"trained on 20 bands \(400 to 970 nm\) but the scene has 12 \(400 to 730 nm\). "
        r"Pass match_bands=",
    ):
        model.predict_proba(cube.isel(band=slice(12)))
    moved = cube.wavelength.values + np.where(np.arange(20) < 3, 0.0, 2.5)
    with pytest.raises(
        InputError,
        match=r"17 of 20 bands differ, by up to 2.5 nm: 490.0 nm \(scene: 492.5\), .* and 14 more",
    ):
        model.predict_proba(cube.assign_coords(wavelength=("band", moved)))
    good = np.arange(20) != 7
    with pytest.raises(InputError, match="marks bands as bad that the model needs: 8 "):
        model.predict_proba(cube.assign_coords(good_band=("band", good)))


def test_rounded_wavelengths_are_the_same(model, cube) -> None:
    rounded = cube.assign_coords(wavelength=("band", cube.wavelength.values + 0.04))
    np.testing.assert_array_equal(
        model.predict_proba(rounded).values, model.predict_proba(cube).values
    )


def test_missing_wavelengths_are_guessed_aloud(model, cube) -> None:
    expected = model.predict_proba(cube)
    with pytest.warns(GuessWarning, match="does not say its wavelengths; its 20 bands were taken"):
        found = model.predict_proba(cube.drop_vars("wavelength"))
    np.testing.assert_array_equal(found.values, expected.values)


@pytest.mark.parametrize("how", ["nearest", "interpolate"])
def test_the_same_bands_in_another_order_match_exactly(model, cube, how) -> None:
    shuffled = cube.isel(band=np.random.default_rng(0).permutation(20))
    np.testing.assert_allclose(
        model.predict_proba(shuffled, match_bands=how).values,
        model.predict_proba(cube).values,
        atol=1e-6,
    )


def test_matching_needs_wavelengths(model, cube) -> None:
    with pytest.raises(InputError, match="only in a scene with the coordinate 'wavelength'"):
        model.predict_proba(cube.drop_vars("wavelength"), match_bands="nearest")
    with pytest.raises(InputError, match="match_bands must be one of exact, nearest, interpolate"):
        model.predict_proba(cube, match_bands="cubic")
    with pytest.raises(InputError, match="method must be one of nearest, interpolate"):
        ResampleBands(method="cubic").fit(cube)
    with pytest.raises(InputError, match=r"no band within 30 nm of 7 of the 20 wanted"):
        model.predict_proba(cube.isel(band=slice(12)), match_bands="nearest")


def test_unsorted_overlapping_wavelengths_are_interpolated_like_numpy() -> None:
    found = np.array([400.0, 450.0, 440.0, 520.0, 600.0, 590.0])  # spectrometers overlap
    scene = spectra(found)
    wanted = np.array([400.0, 445.0, 447.0, 560.0, 595.0])
    resampled = ResampleBands(method="interpolate", tolerance=60).fit(spectra(wanted))
    result = resampled.transform(scene)
    order = np.argsort(found)
    for row, column in np.ndindex(2, 3):
        expected = np.interp(wanted, found[order], scene.values[order, row, column])
        np.testing.assert_allclose(result.values[:, row, column], expected, rtol=1e-12)
    np.testing.assert_array_equal(result.wavelength.values, wanted)


def test_the_nearest_band_is_taken_as_it_is() -> None:
    found = np.array([600.0, 400.0, 500.0])
    scene = spectra(found)
    result = ResampleBands(tolerance=20).fit(spectra([410.0, 495.0])).transform(scene)
    np.testing.assert_array_equal(result.values, scene.values[[1, 2]])


def test_interpolation_is_never_beyond_the_ends() -> None:
    scene = spectra([500.0, 600.0])
    resample = ResampleBands(method="interpolate", tolerance=20).fit(spectra([490.0, 610.0]))
    np.testing.assert_array_equal(resample.transform(scene).values, scene.values)


def test_bands_that_are_not_used_may_lack_data() -> None:
    scene = spectra([400.0, 500.0, 600.0])
    scene.values[2, 0, 0] = np.nan
    result = ResampleBands(tolerance=20).fit(spectra([410.0, 495.0])).transform(scene)
    assert np.isfinite(result.values).all()


def test_one_band_is_enough() -> None:
    scene = spectra([500.0])
    for method in ("nearest", "interpolate"):
        resample = ResampleBands(method=method, tolerance=5).fit(spectra([498.0]))
        np.testing.assert_array_equal(resample.transform(scene).values, scene.values)
    with pytest.raises(InputError, match="no band within 0 nm of 1 of the 1 wanted"):
        ResampleBands().fit(spectra([498.0])).transform(scene)


def test_only_the_bands_in_use_are_required(cube) -> None:
    labels = synthetic_scene(rows=20, columns=24, n_classes=3, n_bands=20, seed=6)[1]
    visible = SceneClassifier("lda", features=[SelectBands(wavelengths=(400, 700)), "scale"])
    visible.fit(cube, labels)
    expected = visible.predict_proba(cube)
    short = cube.isel(band=slice(12))  # 400 to 730 nm
    for scene, how in ((short, "nearest"), (short, "interpolate"), (cube, "exact")):
        found = visible.predict_proba(scene, match_bands=how)
        np.testing.assert_allclose(found.values, expected.values, atol=1e-6)
    infrared_is_bad = cube.assign_coords(good_band=("band", np.arange(20) < 12))
    infrared_is_bad.values[12:] = np.nan
    np.testing.assert_array_equal(visible.predict_proba(infrared_is_bad).values, expected.values)
