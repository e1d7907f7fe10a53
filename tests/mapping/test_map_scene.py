"""Mapping in blocks: the map of the whole scene, whatever the blocks, workers and memory."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import rasterio
import xarray as xr
from scipy.ndimage import correlate1d

import hsreject as hr
from hsreject.errors import ConfigError, FileError, GuessWarning, InputError
from hsreject.schema import REJECTED, nodata_label
from tests.io.written_maps import ROTATED, TURNED
from tests.mapping.scenes import CONFIG, larger_scene


@pytest.fixture(scope="module")
def scene() -> xr.DataArray:
    return larger_scene(230, 210)


@pytest.fixture(scope="module")
def model() -> hr.MapModel:
    return hr.train(CONFIG)


def solved_at_once(model: hr.MapModel, scene: xr.DataArray) -> hr.Ranking:
    probability = model.classifier.predict_proba(scene)
    return model.rejector.rank(xr.Dataset({"probability": probability, "image": scene}))


@pytest.mark.parametrize(
    "context",
    [
        {"prior": "vector_tv", "weight": 0.5},
        {"prior": "vector_tv", "weight": 1.0},
        {"prior": "vector_tv", "weight": 2.0},
        {"prior": "vector_tv", "weight": 3.0, "edges": "image"},
        {"priors": [{"name": "vector_tv", "weight": 0.5}, {"name": "vector_tv", "edges": "image"}]},
        {"prior": "structure_tensor", "weight": 0.5},
    ],
    ids=["weight 0.5", "weight 1", "weight 2", "weight 3, edges", "two priors", "tensor"],
)
def test_labels_of_blocks_are_those_of_the_whole_scene(context) -> None:
    scene = larger_scene(230, 210, noise=0.1)  # so much that the context decides
    model = hr.train({**CONFIG, "context": context})
    whole = solved_at_once(model, scene)
    made = hr.map_scene(
        scene,
        model,
        hr.Goal(fraction=0.1),
        reading=hr.Reading(foreign="allow"),
        resources=hr.Resources(block_size=80),
    )
    assert len(made.summary.blocks) == 9
    agreement = (made.maps["label"].values == whole.label.values).mean()
    assert agreement >= 0.999
    apart = np.abs(made.maps["confidence"] - whole.confidence).where(~made.maps.unknown).values
    assert np.nanquantile(apart, 0.99) < 0.01  # solved to a gap of 1e-3, and not further


def test_spatial_features_and_pixelwise_maps_are_exact_in_blocks(scene) -> None:
    features = [{"name": "smooth", "sigma": 1.5}, {"name": "pca", "n_components": 4}]
    model = hr.train({**CONFIG, "features": features, "context": None})
    whole = solved_at_once(model, scene)
    made = hr.map_scene(scene, model, hr.Goal(fraction=0.1), resources=hr.Resources(block_size=50))
    assert (model.halo, made.summary.blocks.halo) == (
        6,
        0,
    )  # probabilities are overlapped, not features
    # a probability may round differently in a product of another size
    assert (made.maps["label"].values == whole.label.values).mean() > 0.9999
    known = ~made.maps["unknown"].values
    np.testing.assert_allclose(
        made.maps["confidence"].values[known],
        whole.confidence.values[known],
        rtol=2e-5,
        atol=1e-6,
    )


class LocalMean(hr.SceneClassifier):
    """Averages probabilities over a window, as a model that looks around does: block by block."""

    reach = 9

    @property
    def halo(self) -> int:
        return self.reach

    def predict_proba(self, cube, **options):
        probability = super().predict_proba(cube, **options)
        assert probability.chunks is None  # a piece with what is around it
        total = probability.fillna(0).values.astype(np.float64)
        for axis in (1, 2):
            total = correlate1d(total, np.ones(2 * self.reach + 1), axis=axis, mode="constant")
        with np.errstate(invalid="ignore"):  # where a window holds no data
            mean = probability.copy(data=total / total.sum(axis=0))
        return mean.where(probability.notnull()).astype("f4")


# Probabilities averaged over windows of 19 pixels are near ties far around borders. There the
# tolerance of the solver decides 0.4 % of the labels, and exact solutions need a halo of 32 pixels.
# A window of 7 pixels is smoother than what carried models give (99.97 % on Indian Pines).
@pytest.mark.parametrize(
    ("reach", "context", "least"), [(9, None, 1.0), (3, hr.SegSALSA(hr.VectorTV(1.0)), 0.999)]
)
def test_a_classifier_gets_the_pixels_around_a_piece(reach, context, least, model, scene) -> None:
    scene = scene.isel(y=slice(130), x=slice(110))
    cube, labels = hr.synthetic_scene(rows=64, columns=64, n_bands=12, noise=0.4)
    training, _ = hr.sample_per_class(labels, 15)
    mean = LocalMean("lda", features=[hr.PCA(4)]).fit(cube, training)
    mean.reach = reach
    rejector = hr.PixelwiseRejector() if context is None else hr.SequentialRejector(context)
    looking = hr.MapModel(mean, rejector, training_scene=model.training_scene)
    assert looking.halo == reach + (0 if context is None else 16)
    whole = rejector.rank(xr.Dataset({"probability": mean.predict_proba(scene), "image": scene}))
    labels = []
    for options in (
        {},
        {"block_size": 40, "n_workers": 1},
        {"block_size": 40, "n_workers": 3},
        {"memory": "455MB", "n_workers": 2},  # in smaller pieces
    ):
        chunked, resources = scene.chunk({"y": 37, "x": 50}), hr.Resources(**options)
        made = hr.map_scene(chunked, looking, {"fraction": 0.1}, resources=resources)
        labels.append(made.maps.label.values)
        assert (labels[-1] == whole.label.values).mean() >= least
    np.testing.assert_array_equal(labels[1], labels[2])


def test_one_block_gives_what_the_rejector_gives(model) -> None:
    scene = larger_scene(60, 50)
    maps = xr.Dataset({"probability": model.classifier.predict_proba(scene), "image": scene})
    wanted = model.rejector.reject(maps, fraction=0.15)
    deaf = replace(model, rejector=replace(model.rejector, novelty=False))
    made = hr.map_scene(scene, deaf, hr.Goal(fraction=0.15))
    assert len(made.summary.blocks) == 1
    for name in ("label", "rejected", "label_with_rejection", "confidence"):
        np.testing.assert_array_equal(made.maps[name].values, wanted[name].values)
        assert made.maps[name].dims == wanted[name].dims
    assert made.maps.attrs["threshold"] == wanted.attrs["threshold"]


def test_the_map_does_not_depend_on_workers_or_chunks(model, scene) -> None:
    first = hr.map_scene(
        scene, model, hr.Goal(fraction=0.1), resources=hr.Resources(block_size=80, n_workers=1)
    )
    for same in (scene.chunk({"band": 5, "y": 61, "x": 33}), scene.transpose("y", "x", "band")):
        made = hr.map_scene(
            same, model, hr.Goal(fraction=0.1), resources=hr.Resources(block_size=80, n_workers=3)
        )
        assert made.maps.equals(first.maps)


@pytest.mark.parametrize(("shape", "n_blocks"), [((7, 9), 1), ((7, 100), 6), ((50, 41), 6)])
def test_scenes_and_blocks_smaller_than_the_halo(model, shape, n_blocks) -> None:
    scene = larger_scene(*shape)
    made = hr.map_scene(scene, model, hr.Goal(fraction=0.1), resources=hr.Resources(block_size=5))
    assert (made.summary.blocks.halo, len(made.summary.blocks)) == (16, n_blocks)
    whole = solved_at_once(model, scene)
    assert (made.maps["label"].values == whole.label.values).mean() >= 0.999


def test_pixels_without_data_are_not_mapped_and_not_counted(model, scene) -> None:
    holed = scene.copy()
    holed[:, :90, :90] = np.nan  # a block and more
    made = hr.map_scene(holed, model, hr.Goal(fraction=0.1), resources=hr.Resources(block_size=60))
    label = made.maps["label_with_rejection"].values
    missing = holed.isnull().any("band").values
    np.testing.assert_array_equal(label == nodata_label(label.dtype), missing)
    np.testing.assert_array_equal(made.maps["confidence"].isnull().values, missing)
    assert made.summary.n_without_data == missing.sum()
    assert made.summary.n_pixels == (~missing).sum()
    assert made.summary.n_rejected == (label == REJECTED).sum()
    n_known = made.summary.n_pixels - made.summary.n_unknown
    unsure = made.summary.n_rejected - made.summary.n_unknown
    assert unsure / n_known == pytest.approx(0.1, abs=1 / n_known)
    empty = xr.full_like(scene, np.nan)
    with pytest.raises(InputError, match="No pixel of the scene has data"):
        hr.map_scene(empty, model, hr.Goal(fraction=0.1))
    with pytest.raises(InputError, match="nothing to map"):
        hr.map_scene(empty, model, hr.Goal(threshold=0.5))


def test_numbers_of_classes_and_areas_are_those_of_the_maps(model, scene) -> None:
    made = hr.map_scene(
        scene,
        model,
        hr.Goal(rejection_cost=0.3),
        reading=hr.Reading(assume_alike=True),
        resources=hr.Resources(block_size=80),
    )
    label, rejected = made.maps["label"].values, made.maps["rejected"].values
    for share in made.summary.classes:
        assert share.n_kept == ((label == share.value) & ~rejected).sum()
        assert share.n_rejected == ((label == share.value) & rejected).sum()
    assert [share.name for share in made.summary.classes] == list(model.classes.names)
    assert made.summary.pixel_hectares == pytest.approx(30 * 30 / 10_000)
    assert made.summary.rejection.threshold == made.maps.attrs["threshold"]
    assert "test pixels of the training scene ('Small')" in made.summary.rejection.source
    lost = scene.drop_vars(["spatial_ref", "x", "y"])
    assert hr.map_scene(lost, model, hr.Goal(fraction=0.1)).summary.pixel_hectares is None


@pytest.mark.parametrize("goal", [{"threshold": 0.7}, {"accuracy": 0.9}, {"rejection_cost": 0.4}])
def test_pixels_below_the_threshold_are_rejected(goal, model) -> None:
    made = hr.map_scene(larger_scene(50, 40), model, goal, reading=hr.Reading(assume_alike=True))
    below = made.maps["confidence"].values < made.summary.rejection.threshold
    rejected = below | made.maps["unknown"].values
    np.testing.assert_array_equal(made.maps["rejected"].values, rejected)


class Blurred(hr.Prior):
    """Says nothing of its halo."""

    def __init__(self) -> None:
        self.inside = hr.VectorTV(1.0, edges="image")

    def bind(self, grid):
        return self.inside.bind(grid)


def test_a_prior_without_halo_maps_a_scene_that_fits_and_refuses_a_larger_one(model) -> None:
    scene = larger_scene(50, 40)
    whole, known = (
        hr.MapModel(model.classifier, hr.SequentialRejector(hr.SegSALSA(prior)))
        for prior in (Blurred(), hr.VectorTV(1.0, edges="image"))
    )
    made, wanted = (hr.map_scene(scene, made, hr.Goal(fraction=0.1)) for made in (whole, known))
    np.testing.assert_array_equal(made.maps["label"].values, wanted.maps["label"].values)
    large = scene.pad(y=1000, x=1000, mode="edge").drop_vars(["y", "x"])
    with pytest.raises(InputError, match="cannot map it in blocks"):
        hr.map_scene(large, whole, hr.Goal(fraction=0.1), resources=hr.Resources(memory="700MB"))


def test_bands_of_another_instrument_are_refused_or_matched(model) -> None:
    scene = larger_scene(40, 30)
    shifted = scene.assign_coords(wavelength=scene.wavelength + 4.0)
    nearest = hr.map_scene(
        shifted, model, hr.Goal(fraction=0.1), reading=hr.Reading(match_bands="nearest")
    )
    exact = hr.map_scene(scene, model, hr.Goal(fraction=0.1))
    assert nearest.maps["label"].equals(exact.maps["label"])
    with pytest.raises(InputError, match="wavelengths of the scene are not those"):
        hr.map_scene(shifted, model, hr.Goal(fraction=0.1))
    with pytest.raises(InputError, match="one of exact, nearest, interpolate"):
        hr.map_scene(
            shifted, model, hr.Goal(fraction=0.1), reading=hr.Reading(match_bands="nearst")
        )


def test_a_scene_that_does_not_say_its_wavelengths_is_a_guess_told_once(model) -> None:
    scene = larger_scene(100, 90)
    with pytest.warns(GuessWarning, match="does not say its wavelengths") as told:
        made = hr.map_scene(
            scene.drop_vars("wavelength"),
            model,
            hr.Goal(fraction=0.1),
            resources=hr.Resources(block_size=50),
        )
    assert [warning.category for warning in told].count(GuessWarning) == 1
    known = hr.map_scene(scene, model, hr.Goal(fraction=0.1), resources=hr.Resources(block_size=50))
    assert made.maps["label"].equals(known.maps["label"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"goal": {}}, "exactly one of accuracy, .*threshold"),
        ({"goal": {"fraction": 0.1, "threshold": 0.2}}, "got fraction and threshold"),
        ({"goal": {"fraction": 10}}, "Write 10 % as 0.1"),
        ({"goal": {"fractoin": 0.1}}, "Did you mean 'fraction'"),
        ({"goal": 0.1}, "hr.Goal.fraction=0.1.*got 0.1"),
        ({"goal": {"max_error": 0.05}}, "only a certificate tells"),
        ({"resources": {"block_size": 0}}, "block_size .* at least 1"),
        ({"resources": {"n_workers": 2.5}}, "n_workers .* 2.5"),
        ({"resources": {"memory": "100MB"}}, "100 MB are not enough"),
        ({"goal": {"accuracy": 1.0}}, "No operating point keeps an accuracy"),
        (
            {"goal": {"accuracy": 0.9}},
            "accuracy=0.9 on this scene.*--sample.*--assume-alike.*Reading",
        ),
        ({"sample": "points.csv"}, "Leave the sample out"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_work(options, message, model, scene) -> None:
    goal = options.get("goal", hr.Goal(fraction=0.1))
    best = np.minimum(model.calibration["nonrejected_accuracy"], 0.99)
    calibration = {**model.calibration, "nonrejected_accuracy": best}
    imperfect = hr.MapModel(model.classifier, model.rejector, calibration=calibration)
    sample = options.get("sample")

    def work() -> None:
        resources = hr.Resources(**options.get("resources", {}))
        hr.map_scene(scene, imperfect, goal, sample=sample, resources=resources)

    with pytest.raises((InputError, ConfigError), match=message):
        work()


def test_a_dial_holds_where_it_was_set_or_says_that_it_is_assumed(model, tmp_path) -> None:
    own, _ = hr.synthetic_scene(rows=64, columns=64, n_bands=12, noise=0.4)
    here = hr.map_scene(own, model, hr.Goal(accuracy=0.97))
    assert here.summary.similarity.is_training_scene
    assert (here.summary.rejection.assumption, "assumption" in here.maps.attrs) == ("", False)
    other = larger_scene(70, 60)
    for goal in ({"accuracy": 0.97}, {"rejection_cost": 0.3}):
        with pytest.raises(InputError, match="tested on its training scene"):
            hr.map_scene(other, model, goal, out=tmp_path / "maps")
    assert not (tmp_path / "maps").exists()
    made = hr.map_scene(
        other,
        model,
        hr.Goal(accuracy=0.97),
        out=tmp_path / "maps",
        reading=hr.Reading(assume_alike=True),
    )
    assert made.summary.rejection.threshold == here.summary.rejection.threshold
    assert "Assumed, not measured" in made.summary.to_toml()
    for name in ("label", "label_with_rejection", "confidence", "flag"):
        with rasterio.open(tmp_path / "maps" / f"{name}.tif") as file:
            assert "Assumed, not measured" in file.tags()["comment"]


def test_a_sample_of_the_scene_sets_the_dial(model, tmp_path) -> None:
    other = larger_scene(120, 110, noise=0.3)
    first = hr.map_scene(other, model, hr.Goal(fraction=0.0), reading=hr.Reading(foreign="allow"))
    truth = hr.map_scene(larger_scene(120, 110), model, hr.Goal(fraction=0.0)).maps.label
    sample = hr.draw_sample(first.maps.label, 400, seed=1).with_reference(truth)
    made = hr.map_scene(
        other, model, hr.Goal(accuracy=0.9), sample=sample, reading=hr.Reading(foreign="allow")
    )
    assert "400 sampled pixels of this scene" in made.summary.rejection.source
    rows, columns = sample.row, sample.column
    kept = ~made.maps.rejected.values[rows, columns]
    correct = (made.maps.label.values == truth.values)[rows, columns]
    assert correct[kept].mean() >= 0.9 > correct.mean()
    strata = hr.draw_sample(first.maps.label, 300, design="stratified", seed=1)
    with pytest.raises(InputError, match="simple random sample"):
        hr.map_scene(
            other,
            model,
            hr.Goal(accuracy=0.9),
            sample=strata.with_reference(truth),
            reading=hr.Reading(foreign="allow"),
        )
    elsewhere = hr.draw_sample(np.ones((500, 500), int), 50).with_reference(
        np.ones((500, 500), int)
    )
    out = tmp_path / "maps"
    with pytest.raises(InputError, match="another grid"):
        hr.map_scene(
            other,
            model,
            hr.Goal(accuracy=0.9),
            sample=elsewhere,
            out=out,
            reading=hr.Reading(foreign="allow"),
        )
    assert not out.exists()  # it was said before the work


@pytest.fixture(scope="module")
def straight_label(model) -> np.ndarray:
    return hr.map_scene(larger_scene(32, 24), model, hr.Goal(fraction=0.1)).maps["label"].values


@pytest.mark.parametrize("transform", [ROTATED, *TURNED.values()], ids=["askew", *TURNED])
def test_a_turned_scene_is_mapped_where_it_lies(transform, model, straight_label, tmp_path) -> None:
    cube = larger_scene(32, 24)
    shape = dict(zip(("count", "height", "width"), cube.shape, strict=True))
    place = {"crs": "EPSG:32633", "transform": transform, "dtype": "float32"}
    with rasterio.open(tmp_path / "turned.tif", "w", **shape, **place) as file:
        file.write(cube.values)
    wavelength = ("band", cube.wavelength.values)
    scene = hr.open_scene(tmp_path / "turned.tif").assign_coords(wavelength=wavelength)
    hr.map_scene(scene, model, hr.Goal(fraction=0.1), out=tmp_path / "out")
    with rasterio.open(tmp_path / "out" / "label.tif") as file:
        assert file.transform == transform
        np.testing.assert_array_equal(file.read(1), straight_label)


def test_a_failing_block_leaves_nothing_behind(model, scene, tmp_path: Path) -> None:
    def fail(block: np.ndarray) -> np.ndarray:
        if block.size and not block[0, 0, 0]:
            raise OSError("the disk went away")
        return block

    broken = scene.where(scene.x > scene.x[100], 0.0).chunk({"y": 50, "x": 50})
    lazy = broken.copy(data=broken.data.map_blocks(fail, dtype=broken.dtype))
    out = tmp_path / "new" / "maps"
    with pytest.raises(FileError, match="the disk went away"):
        hr.map_scene(
            lazy, model, hr.Goal(fraction=0.1), out=out, resources=hr.Resources(block_size=80)
        )
    assert not out.exists()
