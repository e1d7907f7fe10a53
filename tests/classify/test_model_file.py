import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops.io
import xarray as xr
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from hsreject import __version__
from hsreject.classify.classifiers import CLASSIFIERS
from hsreject.classify.model_file import load_model, save_model
from hsreject.classify.scene_classifier import SceneClassifier
from hsreject.datasets.synthetic import synthetic_scene
from hsreject.errors import FileError, InputError
from hsreject.features.components import MNF
from hsreject.features.spatial import Smooth
from hsreject.features.spectra import SelectBands
from hsreject.sampling import sample_per_class


class OwnClassifier(GaussianNB):
    """A classifier that hsreject has never heard of."""


@pytest.fixture(scope="module")
def cube() -> xr.DataArray:
    return synthetic_scene(rows=24, columns=26, n_classes=3, n_bands=10, seed=6)[0]


@pytest.fixture(scope="module")
def train() -> xr.DataArray:
    labels = synthetic_scene(rows=24, columns=26, n_classes=3, n_bands=10, seed=6)[1]
    return sample_per_class(labels, 8, seed=0)[0]


@pytest.fixture(scope="module")
def model(cube, train) -> SceneClassifier:
    features = [SelectBands(), MNF(4), Smooth(1.0)]
    return SceneClassifier("lda", features=features).fit(cube, train)


@pytest.fixture
def path(model, tmp_path) -> Path:
    return save_model(model, tmp_path / "model.skops")


@pytest.mark.parametrize("name", list(CLASSIFIERS))
def test_predictions_survive_to_the_last_bit(cube, train, tmp_path, name) -> None:
    features = ["select_bands", MNF(4), "smooth", "scale", "normalize", "pca"]
    model = SceneClassifier(name, features=features).fit(cube, train)
    again = load_model(save_model(model, tmp_path / "model.skops"))
    xr.testing.assert_identical(again.predict_proba(cube), model.predict_proba(cube))


def test_everything_else_survives_too(model, path, cube) -> None:
    again = load_model(str(path))
    assert again.class_table_ == model.class_table_
    assert again.hsreject_version_ == __version__
    assert again.n_training_pixels_ == model.n_training_pixels_
    assert again.band_requirements_.count == 10
    np.testing.assert_array_equal(again.band_requirements_.wavelength, cube.wavelength.values)
    assert [type(step) for step in again.features_] == [SelectBands, MNF, Smooth]
    refitted = again.fit(cube, xr.zeros_like(cube[0], dtype=int) + np.arange(26) % 2 + 1)
    assert len(refitted.classes_) == 2


def test_files_are_never_half_written_nor_replaced_by_accident(model, path, tmp_path) -> None:
    before = path.read_bytes()
    with pytest.raises(FileError, match=r"already there. Pass overwrite=True"):
        save_model(model, path)
    assert path.read_bytes() == before
    save_model(model, path, overwrite=True)
    with pytest.raises(FileError, match=r"cannot be written .*No such file or directory"):
        save_model(model, tmp_path / "missing" / "model.skops")
    assert [file.name for file in tmp_path.iterdir()] == ["model.skops"]


def test_only_fitted_models_are_saved(tmp_path) -> None:
    with pytest.raises(InputError, match="Only a fitted SceneClassifier"):
        save_model(SceneClassifier("lda"), tmp_path / "model.skops")
    with pytest.raises(InputError, match=r"Only a fitted SceneClassifier .* \(got GaussianNB\)"):
        save_model(GaussianNB(), tmp_path / "model.skops")


def test_unknown_types_are_refused_until_named(cube, train, tmp_path) -> None:
    model = SceneClassifier(OwnClassifier()).fit(cube, train)
    path = save_model(model, tmp_path / "model.skops")
    name = f"{OwnClassifier.__module__}.OwnClassifier"
    with pytest.raises(FileError, match=f"not trusted: {name}. Nothing was loaded"):
        load_model(path)
    again = load_model(path, trusted=[name])
    xr.testing.assert_identical(again.predict_proba(cube), model.predict_proba(cube))


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
        load_model(rewritten(path, ask_for_code))
    assert not marker.exists()


def test_pickles_are_not_opened(tmp_path) -> None:
    marker = tmp_path / "marker"

    class Bomb:
        def __reduce__(self):
            return Path.touch, (marker,)

    (tmp_path / "model.skops").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(FileError, match="is no model file of hsreject, or it is damaged"):
        load_model(tmp_path / "model.skops")
    assert not marker.exists()


def zipped(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no model file of hsreject, or it is damaged"),
        (b"GIF89a and so on", "no model file of hsreject, or it is damaged"),
        (zipped(readme=b"hello"), "no model file of hsreject, or it is damaged"),
        (zipped(**{"schema.json": b"{"}), "no model file of hsreject, or it is damaged"),
        (zipped(**{"schema.json": b"[]"}), "no model file of hsreject, or it is damaged"),
        (skops.io.dumps(LogisticRegression()), "holds a LogisticRegression, not a model"),
        (skops.io.dumps({"format": "hsreject model"}), "format version None"),
        (
            skops.io.dumps({"format": "hsreject model", "format_version": 1, "model": 3}),
            "no fitted model",
        ),
    ],
    # named by hand: archives hold times and addresses, and every worker must collect the same names
    ids=["empty", "picture", "archive", "broken", "list", "estimator", "version", "no model"],
)
def test_foreign_files_are_refused(tmp_path, content, message) -> None:
    path = tmp_path / "model.skops"
    path.write_bytes(content)
    with pytest.raises(FileError, match=message):
        load_model(path)


def test_missing_files_and_folders_are_named(tmp_path) -> None:
    with pytest.raises(FileError, match=r"cannot be read: No such file or directory"):
        load_model(tmp_path / "nowhere.skops")
    with pytest.raises(FileError, match=r"cannot be read: Is a directory"):
        load_model(tmp_path)


def test_damage_is_noticed(path, cube, model) -> None:
    whole = path.read_bytes()
    expected = model.predict_proba(cube)
    for length in np.linspace(0, len(whole) - 1, 12, dtype=int):
        path.write_bytes(whole[:length])
        with pytest.raises(FileError):
            load_model(path)
    random = np.random.default_rng(0)
    for position in random.integers(0, len(whole), 60):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << int(random.integers(8))
        path.write_bytes(flipped)
        try:
            again = load_model(path)
        except FileError:
            continue
        # a byte that means nothing, such as the time stamp of a member of the archive
        xr.testing.assert_identical(again.predict_proba(cube), expected)


@pytest.mark.parametrize(
    ("column", "value"),
    [("left_child", 10_000), ("right_child", 0), ("feature", 99), ("left_child", -1)],
)
def test_trees_that_point_outside_themselves_are_refused(
    cube, train, tmp_path, column, value
) -> None:
    forest = RandomForestClassifier(2, random_state=0)
    model = SceneClassifier(forest).fit(cube, train)
    tree = model.classifier_.estimators_[1].tree_
    state = tree.__getstate__()
    state["nodes"][column][0] = value
    tree.__setstate__(state)
    path = save_model(model, tmp_path / "model.skops")
    with pytest.raises(FileError, match="a decision tree in it points outside itself"):
        load_model(path)
