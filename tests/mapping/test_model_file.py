"""Models on disk: the same model again, and nothing else comes out of the file."""

import copy
import io
import json
import pickle
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import skops.io
import xarray as xr
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

import hsreject as hr
from hsreject.classify.classifiers import CLASSIFIERS
from hsreject.errors import FileError, InputError
from hsreject.mapping.model_file import FORMAT, FORMAT_VERSION
from tests.mapping.scenes import CONFIG, larger_scene


class OwnClassifier(GaussianNB):
    """A classifier that hsreject has never heard of."""


class OwnPrior(hr.Prior):
    def bind(self, grid):
        raise AssertionError("never called")


@pytest.fixture(scope="module")
def scene() -> tuple[xr.DataArray, xr.DataArray]:
    cube, labels = hr.synthetic_scene(rows=24, columns=26, n_classes=3, n_bands=10, seed=6)
    return cube, hr.sample_per_class(labels, 8, seed=0)[0]


@pytest.fixture(scope="module")
def cube(scene) -> xr.DataArray:
    return scene[0]


@pytest.fixture(scope="module")
def classifier(scene) -> hr.SceneClassifier:
    features = [hr.SelectBands(), hr.MNF(4), hr.Smooth(1.0)]
    return hr.SceneClassifier("lda", features=features).fit(*scene)


@pytest.fixture
def path(classifier, tmp_path) -> Path:
    return hr.save_model(classifier, tmp_path / "model.skops")


OF_SCENES = ("auto", "random_walker")  # they stand alone; tests/classify has the file of "auto"


@pytest.fixture(scope="module")
def map_model() -> hr.MapModel:
    return hr.train(CONFIG)


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name not in OF_SCENES])
def test_a_classifier_survives_to_the_last_bit(scene, cube, tmp_path, name) -> None:
    features = ["select_bands", hr.MNF(4), "smooth", "scale", "normalize", "pca"]
    model = hr.SceneClassifier(name, features=features).fit(*scene)
    again = hr.load_model(str(hr.save_model(model, tmp_path / "model.skops")))
    xr.testing.assert_identical(again.predict_proba(cube), model.predict_proba(cube))
    assert again.class_table_ == model.class_table_
    assert again.hsreject_version_ == hr.__version__
    assert again.n_training_pixels_ == model.n_training_pixels_
    np.testing.assert_array_equal(again.band_requirements_.wavelength, cube.wavelength.values)
    assert len(again.fit(cube, scene[1] % 2 + 1).classes_) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"context": None, "rejectors": [{"name": "pixelwise", "confidence": "margin"}]},
        {"context": {"priors": [{"name": "vector_tv", "edges": "image"}, "graph_tv"]}},
        {
            "context": hr.SegSALSA(hr.VectorTV(0.5, edges="image"), solver="admm"),
            "features": [{"name": "smooth", "sigma": 0.5}, {"name": "mnf", "n_components": 3}],
        },
    ],
    ids=["pixelwise", "two priors", "spatial features"],
)
def test_a_map_model_maps_the_same_after_a_journey_through_a_file(changes, tmp_path: Path) -> None:
    model = hr.train({**CONFIG, **changes})
    again = hr.load_model(hr.save_model(model, tmp_path / "model.skops"))
    scene = larger_scene(40, 30)
    for goal in (hr.Goal(fraction=0.2), hr.Goal(rejection_cost=0.3)):
        reading = hr.Reading(assume_alike=goal.needs_reference)
        here = hr.map_scene(scene, model, goal, reading=reading)
        there = hr.map_scene(scene, again, goal, reading=reading)
        assert there.maps.equals(here.maps)
        assert there.summary.rejection == here.summary.rejection
    assert (again.title, again.configuration) == (model.title, model.configuration)
    assert again.halo == model.halo
    assert again.rejector == model.rejector


def test_files_are_never_half_written_nor_replaced_by_accident(classifier, path, tmp_path) -> None:
    before = path.read_bytes()
    with pytest.raises(FileError, match="already there"):
        hr.save_model(classifier, path)
    assert path.read_bytes() == before
    hr.save_model(classifier, path, overwrite=True)
    with pytest.raises(FileError, match="no folder"):
        hr.save_model(classifier, tmp_path / "missing" / "model.skops")
    assert [file.name for file in tmp_path.iterdir()] == ["model.skops"]


def test_what_is_not_a_model_is_neither_saved_nor_mapped_with(path, cube, tmp_path) -> None:
    for model in (hr.SceneClassifier("lda"), GaussianNB()):
        with pytest.raises(InputError, match="fitted"):
            hr.save_model(model, tmp_path / "new.skops")
    with pytest.raises(InputError, match="without a rejector"):
        hr.map_scene(cube, path, hr.Goal(fraction=0.1))


def test_unknown_types_are_refused(scene, map_model, tmp_path) -> None:
    rejector = hr.SequentialRejector(hr.SegSALSA(OwnPrior()))
    models = {
        "OwnClassifier": hr.SceneClassifier(OwnClassifier()).fit(*scene),
        "OwnPrior": hr.MapModel(map_model.classifier, rejector),
    }
    for name, model in models.items():
        path = hr.save_model(model, tmp_path / "model.skops", overwrite=True)
        with pytest.raises(FileError, match=f"not trusted: {__name__}.{name}"):
            hr.load_model(path)


def rewritten(path: Path, change) -> Path:
    """The archive with its schema changed, everything else as it was."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(content["schema.json"])
    change(schema)
    content["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize(
    "loader",
    ["ObjectNode", "FunctionNode", "TypeNode", "PartialNode", "MethodNode", "OperatorFuncNode"],
)
def test_files_that_ask_for_code_run_none_of_it(path, tmp_path, loader) -> None:
    marker = tmp_path / "marker"

    def ask_for_code(schema) -> None:
        schema.update(
            __class__="system",
            __module__="os",
            __loader__=loader,
            content={"function": "system", "module_path": "os", "args": [f"touch {marker}"]},
            attrs={},
        )

    with pytest.raises(FileError):
        hr.load_model(rewritten(path, ask_for_code))
    assert not marker.exists()


def test_pickles_are_not_opened(tmp_path) -> None:
    marker = tmp_path / "marker"

    class Bomb:
        def __reduce__(self):
            return Path.touch, (marker,)

    (tmp_path / "model.skops").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(FileError, match="damaged"):
        hr.load_model(tmp_path / "model.skops")
    assert not marker.exists()


def zipped(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def dumped(**content: object) -> bytes:
    return skops.io.dumps({"format": FORMAT, "format_version": FORMAT_VERSION, **content})


def test_foreign_files_are_refused(tmp_path) -> None:
    path = tmp_path / "model.skops"
    for content, message in [
        (b"", "damaged"),
        (b"GIF89a and so on", "damaged"),
        (zipped(readme=b"hello"), "damaged"),
        (zipped(**{"schema.json": b"{"}), "damaged"),
        (zipped(**{"schema.json": b"[]"}), "damaged"),
        (skops.io.dumps(LogisticRegression()), "not a model"),
        (dumped(format="hsreject map model"), "not a model"),
        (dumped(format_version=3), "older.*format is 3.*unknown land cover.*Train it again"),
        (dumped(format_version=99), "newer.*format is 99.*Upgrade"),
        (dumped(), "parts of the model are missing"),
        (dumped(model=3), "parts of the model are missing"),
    ]:
        path.write_bytes(content)
        with pytest.raises(FileError, match=message):
            hr.load_model(path)
    with pytest.raises(FileError, match="does not exist"):
        hr.load_model(tmp_path / "nowhere.skops")
    with pytest.raises(FileError, match="is a folder"):
        hr.load_model(tmp_path)


@pytest.mark.parametrize(
    "damage",
    [
        {"rejector": None},
        {"calibration": {"threshold": np.zeros(3), "rejected_fraction": np.zeros(2)}},
        {"calibration": [1.0]},
        {"training_scene": 3},
    ],
)
def test_a_damaged_map_model_is_named(map_model, damage, tmp_path: Path) -> None:
    state = {**vars(map_model), **damage}
    broken = hr.MapModel(state.pop("classifier"), state.pop("rejector"), **state)
    path = hr.save_model(broken, tmp_path / "model.skops")
    with pytest.raises(FileError, match="damaged"):
        hr.load_model(path)


@pytest.mark.parametrize(
    "damage",
    [
        {"values": ("1", "2", "3", "4", "5")},
        {"values": (1, 2, 3, 4, 10**6)},
        {"values": (1, 2, 3, 4)},
        {"names": (1, 2, 3, 4, 5)},
        {"names": ["a", "b", "c", "d", "e"]},
        {"colors": (None,) * 5},
        {"colors": ("red",) * 5},
    ],
    ids=repr,
)
def test_class_tables_of_other_types_are_damage(map_model, damage, tmp_path: Path) -> None:
    broken = copy.deepcopy(map_model)
    for name, value in damage.items():
        object.__setattr__(broken.classifier.class_table_, name, value)
    path = hr.save_model(broken, tmp_path / "model.skops")
    with pytest.raises(FileError, match="damaged"):
        hr.load_model(path)


def test_damage_is_noticed(path, cube, classifier) -> None:
    whole = path.read_bytes()
    expected = classifier.predict_proba(cube)
    for length in np.linspace(0, len(whole) - 1, 12, dtype=int):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError):
            hr.load_model(path)
    random = np.random.default_rng(0)
    for position in random.integers(0, len(whole), 60):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << int(random.integers(8))
        path.write_bytes(flipped)
        try:
            again = hr.load_model(path)
        except FileError:
            continue
        # a byte that means nothing, such as the time stamp of a member of the archive
        xr.testing.assert_identical(again.predict_proba(cube), expected)


def test_trees_that_point_outside_themselves_are_refused(scene, tmp_path) -> None:
    for column, value in [
        ("left_child", 10_000),
        ("right_child", 0),
        ("feature", 99),
        ("left_child", -1),
    ]:
        model = hr.SceneClassifier(RandomForestClassifier(2, random_state=0)).fit(*scene)
        tree = model.classifier_.estimators_[1].tree_
        state = tree.__getstate__()
        state["nodes"][column][0] = value
        tree.__setstate__(state)
        path = hr.save_model(model, tmp_path / "model.skops", overwrite=True)
        with pytest.raises(FileError, match="Tree"):
            hr.load_model(path)


def test_support_vectors_that_do_not_fit_each_other_are_refused(scene, tmp_path) -> None:
    for damage in (
        lambda svc: svc._n_support.__iadd__(1000),
        lambda svc: svc._n_support.__imul__(-1),
        lambda svc: setattr(svc, "support_vectors_", svc.support_vectors_[:2]),
        lambda svc: setattr(svc, "_dual_coef_", svc._dual_coef_[:, :3]),
        lambda svc: setattr(svc, "_intercept_", svc._intercept_[:1]),
    ):
        model = hr.SceneClassifier("svm").fit(*scene)
        (machine,) = (part for part in vars(model.classifier_).values() if isinstance(part, SVC))
        damage(machine)
        path = hr.save_model(model, tmp_path / "model.skops", overwrite=True)
        with pytest.raises(FileError, match="damaged"):
            hr.load_model(path)


def test_boosted_trees_that_point_outside_themselves_are_refused(scene, tmp_path) -> None:
    for column, value in (("left", 10_000), ("right", 0), ("feature_idx", 99)):
        boosted = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2, random_state=0)
        model = hr.SceneClassifier(boosted).fit(*scene)
        path = hr.save_model(model, tmp_path / "model.skops", overwrite=True)
        hr.load_model(path)
        model.classifier_._predictors[1][0].nodes[column][0] = value
        hr.save_model(model, path, overwrite=True)
        with pytest.raises(FileError, match="damaged"):
            hr.load_model(path)


def with_members(path: Path, members: dict[str, bytes], *, claim: int | None = None) -> None:
    """Put members into an archive; the directory then claims that each has `claim` bytes."""
    with zipfile.ZipFile(path) as archive:
        there = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**there, **members}.items():
            archive.writestr(name, content)
            if claim is not None and name in members:
                archive.getinfo(name).CRC = zlib.crc32(content[:claim])
                archive.getinfo(name).file_size = claim


@pytest.mark.parametrize("claim", [None, 1000])
def test_an_archive_that_unpacks_without_end_is_refused(path, claim) -> None:
    """Whether its directory tells the size or not; under a limit that 300 MB would break."""
    with zipfile.ZipFile(path) as archive:
        arrays = [name for name in archive.namelist() if name.endswith(".npy")]
    with_members(path, {arrays[0]: bytes(300_000_000)}, claim=claim)
    assert path.stat().st_size < 1_000_000
    tracemalloc.start()
    with pytest.raises(FileError, match="damaged" if claim else "300 MB"):
        hr.load_model(path)
    assert tracemalloc.get_traced_memory()[1] < 100_000_000
    tracemalloc.stop()


def test_arrays_of_another_shape_are_damage(path) -> None:
    with zipfile.ZipFile(path) as archive:
        arrays = {n: archive.read(n) for n in archive.namelist() if n.endswith(".npy")}
    whole = path.read_bytes()
    told = 0
    for name, content in arrays.items():
        array = np.load(io.BytesIO(content))
        if array.dtype.kind != "f" or array.ndim == 0:
            continue
        altered = io.BytesIO()
        np.save(altered, np.concatenate([array, array]))
        with_members(path, {name: altered.getvalue()})
        try:
            hr.load_model(path)
        except FileError as error:
            told += "damaged" in str(error)
        path.write_bytes(whole)
    assert told >= 4
