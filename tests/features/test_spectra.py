"""Features of spectra, the choice of bands, and bands matched by wavelength."""

import numpy as np
import pytest
import xarray as xr
from sklearn.preprocessing import normalize

import hsreject as hr
from hsreject import schema
from hsreject.errors import GuessWarning, InputError
from hsreject.features.spectra import BandRequirements

SCENE = {"rows": 20, "columns": 24, "n_classes": 3, "n_bands": 20, "seed": 6}


@pytest.fixture(scope="module")
def cube() -> xr.DataArray:
    cube = hr.synthetic_scene(**SCENE)[0]
    return cube.assign_coords(wavelength=("band", np.linspace(400.0, 970.0, 20)))  # every 30 nm


@pytest.fixture(scope="module")
def model(cube) -> hr.SceneClassifier:
    labels = hr.synthetic_scene(**SCENE)[1]
    return hr.SceneClassifier("lda", features=[hr.MNF(4)]).fit(cube, labels)


def spectra(wavelength) -> xr.DataArray:
    """A smooth function of wavelength in every pixel."""
    wavelength = np.asarray(wavelength, dtype=float)
    phase = np.arange(6.0).reshape(1, 2, 3)
    values = np.sin(wavelength[:, None, None] / 300.0 + phase)
    return xr.DataArray(values, dims=schema.CUBE_DIMS, coords={"wavelength": ("band", wavelength)})


def test_scaling_gives_unit_variance_and_zeroes_constant_bands() -> None:
    values = np.random.default_rng(0).normal(5.0, 3.0, size=(3, 10, 20))
    values[1] = 0.1
    scaled = hr.Scale().fit_transform(xr.DataArray(values, dims=schema.CUBE_DIMS)).values
    np.testing.assert_allclose(scaled.std(axis=(1, 2), ddof=1), [1, 0, 1], atol=1e-12)
    np.testing.assert_allclose(scaled.mean(axis=(1, 2)), 0, atol=1e-12)


def test_normalizing_is_scikit_learns_even_for_tiny_values() -> None:
    samples = np.random.default_rng(0).normal(size=(50, 6)) * 1e-200
    expected = normalize(samples * 1e200)
    cube = xr.DataArray(samples.T[:, None], dims=schema.CUBE_DIMS)
    found = hr.Normalize().fit_transform(cube).values[:, 0].T
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_bands_are_selected_by_wavelength(cube) -> None:
    chosen = hr.SelectBands(wavelengths=(460, 550)).fit(cube)
    assert list(chosen.bands_used_) == [2, 3, 4, 5]
    expected = cube.isel(band=slice(2, 6)).drop_vars("good_band")
    xr.testing.assert_identical(chosen.transform(cube), expected)
    rest = hr.SelectBands(exclude=[(0, 460), (550, 1e6)]).fit(cube)
    assert list(rest.bands_used_) == [3, 4]


@pytest.mark.parametrize(
    ("wavelengths", "message"),
    [((1, 2), "No good band"), ((700, 400), "pair"), ((700, 400, 300), "pair")],
)
def test_impossible_selections_are_refused(cube, wavelengths, message) -> None:
    select = hr.SelectBands(wavelengths=wavelengths)
    with pytest.raises(InputError, match=message):
        select.fit(cube)
    with pytest.raises(InputError, match="'wavelength'"):
        select.fit(cube.drop_vars("wavelength"))


def test_differences_of_bands_are_named(model, cube) -> None:
    moved = cube.wavelength.values + np.where(np.arange(20) < 3, 0.0, 2.5)
    for scene, message in [
        (cube.isel(band=slice(12)), r"20 bands \(400 to 970 nm\) .* 12 \(400 to 730 nm\)"),
        (
            cube.assign_coords(wavelength=("band", moved)),
            r"17 of 20 bands .* 2.5 nm: 490.0 nm \(scene: 492.5\)",
        ),
        (cube.assign_coords(good_band=("band", np.arange(20) != 7)), "model needs: 8 "),
    ]:
        with pytest.raises(InputError, match=message):
            model.predict_proba(scene)


def test_rounded_wavelengths_are_the_same_and_missing_ones_are_guessed_aloud(model, cube) -> None:
    expected = model.predict_proba(cube).values
    rounded = cube.assign_coords(wavelength=("band", cube.wavelength.values + 0.04))
    np.testing.assert_array_equal(model.predict_proba(rounded).values, expected)
    with pytest.warns(GuessWarning, match="wavelengths"):
        found = model.predict_proba(cube.drop_vars("wavelength"))
    np.testing.assert_array_equal(found.values, expected)


def test_the_same_bands_in_another_order_match_exactly(model, cube) -> None:
    shuffled = cube.isel(band=np.random.default_rng(0).permutation(20))
    expected = model.predict_proba(cube).values  # with a hole
    for how in ("nearest", "interpolate"):
        for scene in (shuffled, shuffled.chunk({"band": 3, "y": 7})):
            found = model.predict_proba(scene, match_bands=how)
            np.testing.assert_allclose(found.values, expected, atol=1e-6)


def test_impossible_matches_are_refused(model, cube) -> None:
    short = cube.isel(band=slice(12))
    for scene, how, message in [
        (cube.drop_vars("wavelength"), "nearest", "'wavelength'"),
        (cube, "cubic", "match_bands must be one of exact, nearest, interpolate"),
        (short, "nearest", "within 30 nm of 7 of the 20"),
    ]:
        with pytest.raises(InputError, match=message):
            model.predict_proba(scene, match_bands=how)


def matched(scene, wanted, how) -> xr.DataArray:
    return BandRequirements.of(spectra(wanted), np.arange(len(wanted))).match(scene, how=how)


def test_unsorted_overlapping_wavelengths_are_interpolated_like_numpy() -> None:
    found = np.array([400.0, 450.0, 440.0, 520.0, 600.0, 590.0])  # spectrometers overlap
    scene = spectra(found)
    wanted = np.array([400.0, 445.0, 447.0, 560.0, 595.0])
    result = matched(scene, wanted, "interpolate")
    order = np.argsort(found)
    for row, column in np.ndindex(2, 3):
        expected = np.interp(wanted, found[order], scene.values[order, row, column])
        np.testing.assert_allclose(result.values[:, row, column], expected, rtol=1e-12)
    np.testing.assert_array_equal(result.wavelength.values, wanted)


@pytest.mark.parametrize(
    ("how", "found", "wanted", "taken"),
    [
        ("nearest", [600.0, 400.0, 500.0], [410.0, 495.0], [1, 2]),
        ("interpolate", [500.0, 600.0], [490.0, 610.0], [0, 1]),  # never beyond the ends
        ("nearest", [500.0], [500.05], [0]),
        ("interpolate", [500.0], [500.05], [0]),
    ],
)
def test_bands_are_taken_as_they_are(how, found, wanted, taken) -> None:
    scene = spectra(found)
    unused = sorted(set(range(len(found))) - set(taken))
    scene.values[unused, 0, 0] = np.nan
    np.testing.assert_array_equal(matched(scene, wanted, how).values, scene.values[taken])


def test_only_the_bands_in_use_are_required(cube) -> None:
    labels = hr.synthetic_scene(**SCENE)[1]
    select = hr.SelectBands(wavelengths=(400, 700))
    visible = hr.SceneClassifier("lda", features=[select, "scale"]).fit(cube, labels)
    expected = visible.predict_proba(cube)
    short = cube.isel(band=slice(12))  # 400 to 730 nm
    dark = cube.where(cube.wavelength < 740)  # no data in bands that nobody needs
    for scene, how in (
        (short, "nearest"),
        (short, "interpolate"),
        (dark, "interpolate"),
        (cube, "exact"),
    ):
        found = visible.predict_proba(scene, match_bands=how)
        np.testing.assert_allclose(found.values, expected.values, atol=1e-6)
    infrared_is_bad = cube.assign_coords(good_band=("band", np.arange(20) < 12))
    infrared_is_bad.values[12:] = np.nan
    np.testing.assert_array_equal(visible.predict_proba(infrared_is_bad).values, expected.values)


def test_a_scene_with_fewer_bands_counts_each_of_them_once(cube) -> None:
    """Positions of bands that nobody needs are filled with one that is marked bad there."""
    labels = hr.synthetic_scene(**SCENE)[1]
    select = hr.SelectBands(wavelengths=(400, 700))
    visible = hr.SceneClassifier("lda", features=[select, "scale"]).fit(cube, labels)
    ordered = visible.band_requirements_.ordered(cube.isel(band=slice(12)))
    assert ordered.sizes["band"] == 20
    good = ordered.wavelength.values[ordered.good_band.values]
    np.testing.assert_array_equal(good, cube.wavelength.values[visible.band_requirements_.needed])
