"""Scenes of another kind than the training scene: refused, mapped with a warning, or mapped."""

import io
import re
import zipfile

import numpy as np
import pytest
import xarray as xr
from scipy.spatial import cKDTree

import hsreject as hr
from hsreject.errors import DriftWarning, FileError, InputError
from hsreject.mapping.foreign import sample_scene, window_chunks
from hsreject.schema import REJECTED
from tests.mapping.scenes import CONFIG, larger_scene

NOVEL = [{"name": "sequential", "novelty": True}]


@pytest.fixture(scope="module")
def scene() -> xr.DataArray:
    return larger_scene(110, 100)


@pytest.fixture(scope="module")
def model() -> hr.MapModel:
    return hr.train(CONFIG)


@pytest.fixture(scope="module")
def aware() -> hr.MapModel:
    return hr.train({**CONFIG, "rejectors": NOVEL})


def sunlight(scene: xr.DataArray) -> xr.DataArray:
    """Planck's law at 5772 K, largest value 1, as a spectrum."""
    wavelength = scene.wavelength * 1e-9
    light = wavelength**-5 / np.expm1(0.0143878 / (wavelength * 5772))
    return (light / light.max()).astype("f4").drop_vars("wavelength")


def far_cover(scene: xr.DataArray) -> xr.DataArray:
    """The scene with the left half of another land cover, as bright but of another shape."""
    odd = 0.3 + 0.15 * np.cos(np.linspace(0, 9, 12))[:, None, None]
    noise = scene.values - scene.mean("band").values
    return scene.where(scene.x > scene.x[50], (odd + 0.1 * noise).astype("f4"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda cube: cube * np.float32(10_000), "10,000 times larger: divide"),
        (lambda cube: cube / np.float32(10_000), "all alike.*10,000 times smaller: multiply"),
        (lambda cube: 400 * cube * sunlight(cube), "follow sunlight: is it radiance"),
        (lambda cube: cube + np.float32(1.5), "sensor.*season.*land cover"),
        (lambda cube: cube.assign_coords(wavelength=cube.wavelength + 20), "differ, by up to 20.0"),
        (lambda cube: (900 * cube).assign_attrs(units="DN"), "1,000 times"),
        (lambda cube: far_cover(cube).where(cube.x <= cube.x[50]), "season.*land cover"),
    ],
    ids=["scaled up", "scaled down", "radiance", "offset", "20 nm", "no units", "land cover"],
)
def test_foreign_scenes_are_refused_before_any_work(model, scene, change, words, tmp_path) -> None:
    other, out = change(scene), tmp_path / "maps"
    with pytest.raises(InputError, match=words):
        hr.map_scene(other, model, fraction=0.1, out=out)
    assert not out.exists()


def test_units_that_both_scenes_state_are_compared(scene) -> None:
    labels = hr.synthetic_scene(rows=64, columns=64, n_bands=12, noise=0.4)
    stated = (labels[0].assign_attrs(units="reflectance"), labels[1])
    model = hr.train({**CONFIG, "scene": stated})
    other = (900 * scene).assign_attrs(units="W m-2 sr-1 um-1")
    with pytest.raises(InputError, match="It is in W m-2 sr-1 um-1, and the training scene in ref"):
        hr.map_scene(other, model, fraction=0.1)


def test_whoever_insists_gets_a_map(model, scene) -> None:
    made = hr.map_scene(scene * np.float32(10_000), model, fraction=0.1, foreign="allow")
    assert made.summary.kinship.novel_share > 0.5
    assert made.summary.n_novel is None
    with pytest.raises(InputError, match="refuse, allow"):
        hr.map_scene(scene, model, fraction=0.1, foreign="forbid")


def test_the_same_scene_with_noise_is_mapped_quietly(model, scene) -> None:
    noise = np.random.default_rng(0).normal(0, 0.005, scene.shape).astype(np.float32)
    made = hr.map_scene(scene + noise, model, fraction=0.1)  # warnings are errors
    assert made.summary.kinship.novel_share < 0.03
    assert "novel_share_of_these" in made.summary.to_toml()


@pytest.mark.parametrize("name", ["model", "aware"])
def test_a_drifted_scene_is_mapped_and_its_novel_pixels_rejected(
    request, name, scene, tmp_path
) -> None:
    trained = request.getfixturevalue(name)
    drifted = far_cover(scene).copy()
    drifted[:, :50, :40] = np.nan  # so that less than half is foreign
    drifted[:, 50:, :20] = scene[:, 50:, :20]
    options = {"block_size": 60, "out": tmp_path / "maps"}
    with pytest.warns(DriftWarning, match="land cover.*are rejected"):
        made = hr.map_scene(drifted, trained, threshold=0.01, **options)
    rarity = trained.novelty.rarity(trained.classifier.transform(drifted))
    novel = (rarity <= 0.01).values
    assert 0.1 < novel.mean() < 0.5
    assert (made.maps.label_with_rejection.values[novel] == REJECTED).all()
    assert made.summary.n_novel == novel.sum()
    assert made.maps.confidence.values[novel].max() < np.nanmin(made.maps.confidence.values[~novel])
    assert f"pixels_novel = {novel.sum()}" in made.summary.to_toml()
    with pytest.warns(DriftWarning):
        few = hr.map_scene(drifted, trained, fraction=0.05)
    assert few.summary.n_rejected == novel.sum()  # more than the wanted fraction
    assert "more than the wanted fraction" in few.summary.rejection.source


def test_bands_in_another_order_are_found_by_their_wavelengths(model, scene) -> None:
    order = np.random.default_rng(3).permutation(12)
    whole = hr.map_scene(scene, model, fraction=0.1)
    more = xr.concat([scene[order], scene[:1] + 9], "band")
    more = more.assign_coords(wavelength=("band", [*scene.wavelength.values[order], 9e3]))
    for other in (scene[order], scene[::-1], more):
        made = hr.map_scene(other, model, fraction=0.1)
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
    hr.map_scene(brighter, model, fraction=0.1)  # warnings are errors
    places = np.arange(60)
    shuffled = [np.random.default_rng(seed).permutation(60) for seed in range(4)]
    orders = {"another order": [np.roll(places, 30), *shuffled], "reverse order": [places[::-1]]}
    for words, some in orders.items():
        for order in some:
            with pytest.raises(InputError, match=f"{words}.*wavelengths.*--foreign allow"):
                hr.map_scene(brighter[order], model, fraction=0.1)


@pytest.mark.filterwarnings("ignore:The scene does not say its wavelengths")
def test_other_land_cover_is_not_taken_for_another_order(model, scene) -> None:
    far = far_cover(scene).where(scene.x <= scene.x[50]).drop_vars("wavelength")
    with pytest.raises(InputError, match=r"100% of .* are unlike the training pixels"):
        hr.map_scene(far, model, fraction=0.1)


def test_novelty_of_blocks_is_that_of_the_whole_scene(aware, scene) -> None:
    matched = aware.classifier.transform(scene)
    maps = xr.Dataset(
        {
            "probability": aware.classifier.predict_proba(scene),
            "class_p_value": aware.novelty.p_value(matched),
            "image": scene,
        }
    )
    wanted = aware.rejector.rank(maps)
    for options in ({}, {"block_size": 60, "n_workers": 1}, {"block_size": 60, "n_workers": 3}):
        made = hr.map_scene(scene, aware, fraction=0.1, **options)
        assert (made.maps.label.values == wanted.label.values).mean() > 0.999
        apart = np.abs(made.maps.confidence - wanted.confidence).values
        assert np.nanquantile(apart, 0.99) < 0.01  # solved to a gap of 1e-3, and not further
    pixelwise = hr.train(
        {**CONFIG, "context": None, "rejectors": [{**NOVEL[0], "name": "pixelwise"}]}
    )
    exact = pixelwise.rejector.rank(maps)
    made = hr.map_scene(scene, pixelwise, fraction=0.1, block_size=60)
    np.testing.assert_allclose(made.maps.confidence, exact.confidence, rtol=2e-5, atol=1e-5)


def test_a_model_with_novelty_survives_its_file(aware, scene, tmp_path) -> None:
    again = hr.load_model(hr.save_model(aware, tmp_path / "model.skops"))
    assert again.rejector == aware.rejector
    one, two = (hr.map_scene(scene, each, rejection_cost=0.3) for each in (aware, again))
    assert one.maps.equals(two.maps)
    assert one.summary.kinship == two.summary.kinship
    old = hr.save_model(aware, tmp_path / "old.skops")
    old.write_bytes(of_version_2(old.read_bytes()))
    with pytest.raises(FileError, match="Train it again"):
        hr.load_model(old)


def of_version_2(archive: bytes) -> bytes:
    """The archive as it was before models remembered their training scene."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        files = {name: opened.read(name) for name in opened.namelist()}
    text = files["schema.json"].decode()
    number = re.search(r'"format_version": (\{[^{}]*\})', text)
    files["schema.json"] = text.replace(number[1], number[1].replace('"3"', '"2"')).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as written:
        for name, data in files.items():
            written.writestr(name, data)
    return buffer.getvalue()


@pytest.mark.parametrize("shape", [(3, 5), (8, 8), (9, 70), (150, 130)])
@pytest.mark.parametrize("halo", [0, 6])
def test_windows_lie_in_the_scene_and_in_their_chunks(model, shape, halo) -> None:
    chunks = window_chunks(shape, halo)
    assert tuple(sum(sizes) for sizes in chunks.values()) == shape
    scene = larger_scene(*shape)
    features, values = sample_scene(scene, model.classifier, match_bands="exact")
    lazy = sample_scene(scene.chunk(chunks), model.classifier, match_bands="exact")
    np.testing.assert_allclose(lazy[0], features, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(lazy[1], values)
    assert values.shape[1] == 12
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
    assert len(values) == inside[in_windows].sum()


def test_data_between_the_windows_is_enough_to_train_on() -> None:
    cube, labels = hr.synthetic_scene(rows=96, columns=96, n_bands=12)
    starts = np.array([0, 38, 75])  # windows of 21 rows
    inside = ((np.arange(96)[:, None] - starts) // 21 == 0).any(axis=1)
    holed = cube.where(xr.DataArray(~inside, dims="y"))
    model = hr.train({**CONFIG, "scene": (holed, labels)})
    assert np.isfinite(model.training_scene.values).all()
    made = hr.map_scene(holed, model, fraction=0.1)
    assert made.summary.kinship.n_sampled == 0


def test_only_the_windows_are_read(model) -> None:
    """Of a scene that fails wherever nobody looks."""
    scene = larger_scene(400, 300)
    chunks = window_chunks((400, 300), 0)
    read = []

    def reading(block: np.ndarray) -> np.ndarray:
        read.append(block.shape[1] * block.shape[2])
        return block

    lazy = scene.chunk({"band": -1, **chunks})
    lazy = lazy.copy(data=lazy.data.map_blocks(reading, dtype=lazy.dtype, meta=np.empty((0, 0, 0))))
    sample_scene(lazy, model.classifier, match_bands="exact")
    assert sum(read) == 63 * 63


@pytest.mark.parametrize(
    "features", [["coordinates"], ["smooth", {"name": "pca", "n_components": 3}]]
)
def test_features_that_look_around(features, scene) -> None:
    model = hr.train({**CONFIG, "features": features, "context": None})
    found, _ = sample_scene(scene, model.classifier, match_bands="exact")
    whole = model.classifier.transform(scene).values.reshape(found.shape[1], -1).T
    apart, _ = cKDTree(whole[np.isfinite(whole).all(axis=1)]).query(found)
    assert apart.max() < 1e-4
