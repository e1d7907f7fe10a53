"""Scenes of another kind than the training scene: refused, mapped with a warning, or mapped."""

import io
import re
import tomllib
import zipfile

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject import schema
from hsreject.errors import DriftWarning, FileError, InputError
from hsreject.mapping.map_inputs import open_inputs
from hsreject.mapping.map_model import Similarity, look_at, window_chunks
from hsreject.schema import REJECTED
from tests.mapping.scenes import CONFIG, larger_scene


@pytest.fixture(scope="module")
def scene() -> xr.DataArray:
    return larger_scene(110, 100)


@pytest.fixture(scope="module")
def model() -> hr.MapModel:
    return hr.train(CONFIG)


def far_cover(scene: xr.DataArray) -> xr.DataArray:
    """The scene with the left half of another land cover, as bright but of another shape."""
    odd = 0.3 + 0.15 * np.cos(np.linspace(0, 9, 12))[:, None, None]
    noise = scene.values - scene.mean("band").values
    return scene.where(scene.x > scene.x[50], (odd + 0.1 * noise).astype("f4"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda cube: cube * np.float32(10_000), "10,000 times larger: divide"),
        (lambda cube: cube / np.float32(10_000), "10,000 times smaller: multiply"),
        (lambda cube: cube + np.float32(1.5), "sensor.*season.*land cover"),
        (lambda cube: cube.assign_coords(wavelength=cube.wavelength + 20), "differ, by up to 20.0"),
        (lambda cube: (900 * cube).assign_attrs(units="DN"), "1,000 times"),
        (lambda cube: far_cover(cube).where(cube.x <= cube.x[50]), "season.*land cover"),
    ],
    ids=["scaled up", "scaled down", "offset", "20 nm", "no units", "land cover"],
)
def test_foreign_scenes_are_refused_before_any_work(model, scene, change, words, tmp_path) -> None:
    other, out = change(scene), tmp_path / "maps"
    with pytest.raises(InputError, match=words):
        hr.map_scene(other, model, hr.Goal(fraction=0.1), out=out)
    assert not out.exists()


def test_units_that_both_scenes_state_are_compared(scene) -> None:
    labels = hr.synthetic_scene(rows=64, columns=64, n_bands=12, noise=0.4)
    stated = (labels[0].assign_attrs(units="reflectance"), labels[1])
    model = hr.train({**CONFIG, "scene": stated})
    other = (900 * scene).assign_attrs(units="W m-2 sr-1 um-1")
    with pytest.raises(InputError, match="It is in W m-2 sr-1 um-1, and the training scene in ref"):
        hr.map_scene(other, model, hr.Goal(fraction=0.1))


def test_whoever_insists_gets_a_map(model, scene) -> None:
    made = hr.map_scene(
        scene * np.float32(10_000),
        model,
        hr.Goal(fraction=0.1),
        reading=hr.Reading(foreign="allow"),
    )
    assert made.summary.similarity.novel_share > 0.5
    with pytest.raises(InputError, match="refuse, allow"):
        hr.map_scene(scene, model, hr.Goal(fraction=0.1), reading=hr.Reading(foreign="forbid"))


def test_the_same_scene_with_noise_is_mapped_quietly(model, scene) -> None:
    noise = np.random.default_rng(0).normal(0, 0.005, scene.shape).astype(np.float32)
    made = hr.map_scene(scene + noise, model, hr.Goal(fraction=0.1))  # warnings are errors
    assert made.summary.similarity.novel_share < 0.08
    assert not made.summary.similarity.is_training_scene
    assert "novel_share" in made.summary.to_toml()


def test_unknown_land_cover_is_rejected_beside_the_asked_fraction(model, scene, tmp_path) -> None:
    mixed = far_cover(scene).copy()
    mixed[:, :, :40] = scene[:, :, :40]  # a tenth is of another land cover
    novel = np.zeros(scene.shape[1:], bool)
    novel[:, 40:50] = True
    novel &= scene.notnull().all("band").values
    made = hr.map_scene(
        mixed,
        model,
        hr.Goal(fraction=0.05),
        out=tmp_path / "maps",
        resources=hr.Resources(block_size=60),
    )
    maps, summary = made.maps.load(), made.summary
    unknown = maps.unknown.values
    assert unknown[novel].mean() > 0.95
    assert unknown[~novel].mean() < 0.08
    assert (maps.label_with_rejection.values[unknown] == REJECTED).all()
    confidence = maps.confidence.values
    assert confidence[unknown].max() > np.nanmedian(confidence)  # it is what it is
    known = ~unknown & ~np.isnan(confidence)
    assert maps.rejected.values[known].mean() == pytest.approx(0.05, abs=1 / known.sum())
    assert summary.n_unknown == unknown.sum()
    assert tomllib.loads(summary.to_toml())["unknown"]["pixels"] == unknown.sum()
    flag = hr.open_map(tmp_path / "maps" / "flag.tif")
    np.testing.assert_array_equal(flag == 3, unknown)
    np.testing.assert_array_equal(flag == 1, known & ~maps.rejected.values)
    assert schema.class_table(flag).names == ("kept", "rejected", "unknown")
    assert "unknown" in (tmp_path / "maps" / "flag.qml").read_text()


def test_a_threshold_leaves_the_unknown_rejected(model, scene) -> None:
    mixed = far_cover(scene).copy()
    mixed[:, :, :40] = scene[:, :, :40]
    made = hr.map_scene(mixed, model, hr.Goal(threshold=-5.0))
    np.testing.assert_array_equal(made.maps.rejected, made.maps.unknown)
    deaf = hr.train({**CONFIG, "rejectors": [{"name": "sequential", "novelty": False}]})
    plain = hr.map_scene(mixed, deaf, hr.Goal(threshold=-5.0))
    assert plain.summary.n_unknown is None
    assert not plain.maps.rejected.any()
    assert set(np.unique(plain.maps.flag)) <= {1, 255}


def test_a_scene_that_is_novel_on_average_is_a_warning(model, scene) -> None:
    for change in ({"mean_score": 1.2}, {"agreement": 0.7}):
        with pytest.warns(DriftWarning, match="sample of this scene"):
            Similarity(100, **change).check("refuse")
        Similarity(100, **change).check("allow")
        Similarity(100, **change, is_training_scene=True).check("refuse")
    Similarity(100, mean_score=0.9, agreement=0.85).check("refuse")


def test_experts_that_never_agreed_much_are_no_reason_to_warn() -> None:
    Similarity(100, agreement=0.7, usual_agreement=0.72).check("refuse")
    with pytest.warns(DriftWarning, match="70 %"):
        Similarity(100, agreement=0.7, usual_agreement=0.85).check("refuse")


def test_a_pool_whose_experts_disagree_is_a_warning_and_in_the_summary() -> None:
    cube, labels = hr.synthetic_scene(rows=48, columns=48, n_bands=12, noise=0.4)
    model = hr.train({"scene": (cube, labels)})
    model.classifier.agreement = lambda windows: 0.5
    noisy = cube + np.random.default_rng(0).normal(0, 1e-3, cube.shape).astype("f4")
    with pytest.warns(DriftWarning, match="50 %"):
        made = hr.map_scene(noisy, model, hr.Goal(fraction=0.1))
    assert "agreement = 0.5" in made.summary.to_toml()


def test_the_thresholds_of_a_model_are_those_of_its_carried_map() -> None:
    """Not those of the stronger map of the training scene, which no other scene will have."""
    cube, labels = hr.synthetic_scene(rows=48, columns=48, n_bands=12, noise=0.4)
    model = hr.train({"scene": (cube, labels), "rejectors": [hr.PixelwiseRejector(novelty=False)]})
    _, test = hr.sample_per_class(labels, 10, seed=0)
    carried = hr.PixelwiseRejector(novelty=False).rank(model.classifier.predict_proba(cube))
    confidence = carried.confidence.values[test.values > 0]
    wanted = np.unique(confidence[np.isfinite(confidence)])
    given = model.calibration["threshold"]
    np.testing.assert_array_equal(given[np.isfinite(given)], wanted)


def test_bands_in_another_order_are_found_by_their_wavelengths(model, scene) -> None:
    order = np.random.default_rng(3).permutation(12)
    whole = hr.map_scene(scene, model, hr.Goal(fraction=0.1))
    more = xr.concat([scene[order], scene[:1] + 9], "band")
    more = more.assign_coords(wavelength=("band", [*scene.wavelength.values[order], 9e3]))
    for other in (scene[order], scene[::-1], more):
        made = hr.map_scene(other, model, hr.Goal(fraction=0.1))
        np.testing.assert_array_equal(made.maps.label, whole.maps.label)
        np.testing.assert_array_equal(made.maps.confidence, whole.maps.confidence)


@pytest.mark.filterwarnings("ignore:The scene does not say its wavelengths")
def test_bands_in_another_order_that_no_wavelength_tells() -> None:
    """To three components a shuffled spectrum is an ordinary one."""
    cube, labels = hr.synthetic_scene(rows=64, columns=64)
    features = [{"name": "pca", "n_components": 3}]
    model = hr.train({**CONFIG, "scene": (cube, labels), "features": features, "context": None})
    nameless = cube.drop_vars("wavelength")
    brighter = np.float32(1.05) * nameless
    hr.map_scene(brighter, model, hr.Goal(fraction=0.1))  # warnings are errors
    places = np.arange(60)
    shuffled = [np.random.default_rng(seed).permutation(60) for seed in range(4)]
    for order in (np.roll(places, 30), places[::-1], *shuffled):
        with pytest.raises(InputError, match=r"unlike the training pixels.*--foreign allow"):
            hr.map_scene(brighter[order], model, hr.Goal(fraction=0.1))


@pytest.mark.filterwarnings("ignore:The scene does not say its wavelengths")
def test_other_land_cover_is_not_taken_for_another_order(model, scene) -> None:
    far = far_cover(scene).where(scene.x <= scene.x[50]).drop_vars("wavelength")
    with pytest.raises(InputError, match=r"100 % of .* are unlike the training pixels"):
        hr.map_scene(far, model, hr.Goal(fraction=0.1))


def test_novelty_of_blocks_is_that_of_the_whole_scene(scene) -> None:
    model = hr.train({**CONFIG, "context": None})
    shift = hr.map_scene(scene, model, hr.Goal(fraction=0.1)).summary.similarity.shift
    p_value = model.novelty.p_value(scene, shift=shift)
    whole = hr.PixelwiseRejector(novelty=False).rank(model.classifier.predict_proba(scene))
    for options in ({}, {"block_size": 60, "n_workers": 1}, {"block_size": 41, "n_workers": 3}):
        resources = hr.Resources(**options)
        maps = hr.map_scene(scene, model, hr.Goal(fraction=0.1), resources=resources).maps
        np.testing.assert_array_equal(maps.unknown, p_value < 0.025)
        known = ~maps.unknown.values
        np.testing.assert_allclose(
            maps.confidence.values[known], whole.confidence.values[known], rtol=2e-5, atol=1e-5
        )


def test_a_model_with_novelty_survives_its_file(model, scene, tmp_path) -> None:
    again = hr.load_model(hr.save_model(model, tmp_path / "model.skops"))
    assert again.rejector == model.rejector
    one, two = (hr.map_scene(scene, each, hr.Goal(fraction=0.1)) for each in (model, again))
    assert one.maps.equals(two.maps)
    assert one.summary.similarity == two.summary.similarity
    old = hr.save_model(model, tmp_path / "old.skops")
    old.write_bytes(of_version(old.read_bytes(), 3))
    with pytest.raises(FileError, match=r"unknown land cover.*Train it again"):
        hr.load_model(old)


def of_version(archive: bytes, version: int) -> bytes:
    """The archive as another version would have written it."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        files = {name: opened.read(name) for name in opened.namelist()}
    text = files["schema.json"].decode()
    number = re.search(r'"format_version": (\{[^{}]*\})', text)
    files["schema.json"] = text.replace(
        number[1], number[1].replace('"5"', f'"{version}"')
    ).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as written:
        for name, data in files.items():
            written.writestr(name, data)
    return buffer.getvalue()


@pytest.mark.parametrize("shape", [(3, 5), (8, 8), (9, 70), (150, 130)])
def test_windows_lie_in_the_scene_and_in_their_chunks(model, shape) -> None:
    chunks = window_chunks(shape)
    assert tuple(sum(sizes) for sizes in chunks.values()) == shape
    scene = larger_scene(*shape)
    looked_at = look_at(scene, model.classifier, match_bands="exact")
    lazy = look_at(scene.chunk(chunks), model.classifier, match_bands="exact")
    np.testing.assert_array_equal(lazy, looked_at)
    assert looked_at.sizes["band"] == 12
    inside = larger_scene(*shape).notnull().all("band").values
    in_windows = np.ix_(
        *(
            np.unique(
                np.linspace(0, max(n - 21, 0), min(3, max(n // 21, 1))).round()[:, None]
                + np.arange(min(n, 21))
            ).astype(int)
            for n in shape
        )
    )
    np.testing.assert_array_equal(looked_at.notnull().all("band"), inside[in_windows])


def test_data_between_the_windows_is_enough_to_train_on() -> None:
    cube, labels = hr.synthetic_scene(rows=96, columns=96, n_bands=12)
    starts = np.array([0, 38, 75])  # windows of 21 rows
    inside = ((np.arange(96)[:, None] - starts) // 21 == 0).any(axis=1)
    holed = cube.where(xr.DataArray(~inside, dims="y"))
    model = hr.train({**CONFIG, "scene": (holed, labels)})
    assert np.isfinite(model.training_scene.values).all()
    made = hr.map_scene(holed, model, hr.Goal(fraction=0.1))
    assert made.summary.similarity.n_sampled == 0


def test_only_the_windows_are_read(model) -> None:
    """Of a scene that fails wherever nobody looks."""
    scene = larger_scene(400, 300)
    chunks = window_chunks((400, 300))
    read = []

    def reading(block: np.ndarray) -> np.ndarray:
        read.append(block.shape[1] * block.shape[2])
        return block

    lazy = scene.chunk({"band": -1, **chunks})
    lazy = lazy.copy(data=lazy.data.map_blocks(reading, dtype=lazy.dtype, meta=np.empty((0, 0, 0))))
    look_at(lazy, model.classifier, match_bands="exact")
    assert sum(read) == 63 * 63


def test_a_certificate_of_a_map_with_unknown_pixels_sets_it(model, scene, tmp_path) -> None:
    """Its files say what is unknown, and a certificate of them keeps none of it."""
    mixed = far_cover(scene).copy()
    mixed[:, :, :40] = scene[:, :, :40]
    made = hr.map_scene(mixed, model, hr.Goal(fraction=0.0), out=tmp_path / "map")
    unknown = made.maps.unknown.values
    inputs = open_inputs(
        tmp_path / "map" / "label.tif", None, tmp_path / "map" / "confidence.tif", None, None, None
    )
    label = made.maps.label.values
    np.testing.assert_array_equal(inputs.label, np.where(unknown, REJECTED, label))
    sample = hr.draw_sample(inputs.label, 300, seed=2).with_reference(label)
    certificate = hr.certify(inputs.label, inputs.confidence, sample, max_error=0.1)
    maps = hr.map_scene(mixed, model, certificate).maps.load()
    np.testing.assert_array_equal(maps.flag.values == 3, unknown)
    assert (maps.label_with_rejection.values[unknown] == REJECTED).all()
    kept = certificate.apply(inputs.label, inputs.confidence).label_with_rejection
    np.testing.assert_array_equal(maps.label_with_rejection, kept)
    # one that ranked unknown pixels, too, keeps those that it promised something of
    sample = hr.draw_sample(made.maps.label, 300, seed=2).with_reference(label)
    of_all = hr.certify(made.maps.label, made.maps.confidence, sample, max_error=0.1)
    kept = of_all.apply(made.maps.label, made.maps.confidence).label_with_rejection
    maps = hr.map_scene(mixed, model, of_all).maps.load()
    np.testing.assert_array_equal(maps.label_with_rejection, kept)
