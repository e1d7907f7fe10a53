"""Models with groups of classes: maps that answer coarser, in blocks, in files and certified."""

import json

import numpy as np
import pytest
import rasterio
import tomli_w
import xarray as xr

import hsreject as hr
from hsreject.errors import FileError, InputError
from hsreject.rejection.ranking import FLAGS, GROUP_FLAG
from tests.cli.calling import call
from tests.cli.test_map import write_scene
from tests.mapping.scenes import CONFIG, larger_scene

GROUPS = {"pair": ["cover 1", "cover 2"], "three": ["pair", "cover 3"]}
GROUPED = {**CONFIG, "scene": {**CONFIG["scene"], "noise": 0.8}, "groups": GROUPS}


@pytest.fixture(scope="module")
def model() -> hr.MapModel:
    return hr.train(GROUPED)


ANYWHERE = {"reading": hr.Reading(foreign="allow"), "resources": hr.Resources(block_size=50)}


@pytest.fixture(scope="module")
def scene() -> xr.DataArray:
    return larger_scene(100, 90, noise=0.3)


@pytest.fixture(scope="module")
def made(model, scene, tmp_path_factory):
    out = tmp_path_factory.mktemp("maps")
    options = {**ANYWHERE, "layers": hr.Layers(probabilities=True)}
    return out / "new", hr.map_scene(scene, model, {"fraction": 0.1}, out=out / "new", **options)


def test_answers_of_blocks_are_those_of_the_whole_scene(model, scene, made) -> None:
    _, result = made
    maps = result.maps.compute()
    probability = model.classifier.predict_proba(scene)
    ranking = model.rejector.rank(probability)
    answer = ranking.at(maps.attrs["threshold"])
    known = ~maps.unknown.values
    same = (maps.label_with_rejection == answer.label_with_rejection).values[known]
    assert same.mean() >= 0.999  # of blocks with context
    np.testing.assert_allclose(maps.probability, probability, atol=1e-6)
    np.testing.assert_array_equal(maps.confidence, maps.level_confidence[-1])
    n_known = known.sum() - maps.label.isin([255]).sum().item()
    asked = (maps.rejected.values & known).sum()
    assert asked / n_known == pytest.approx(0.1, abs=1 / n_known)


def test_the_summary_counts_what_is_known_at_which_level(model, made) -> None:
    _, result = made
    answer = result.maps.label_with_rejection.values
    tree = model.tree
    assert [group.name for group in result.summary.groups] == ["pair", "three"]
    for group in result.summary.groups:
        assert group.n_kept == (answer == group.value).sum() > 0
    levels = {"class": np.isin(answer, tree.classes.values).sum()}
    levels |= {"group": (answer == 6).sum(), "group of level 2": (answer == 7).sum()}
    shares = (*result.summary.classes, *result.summary.groups)
    for level, n_pixels in levels.items():
        assert sum(share.n_kept for share in shares if share.level == level) == n_pixels
        assert (
            f"{100 * n_pixels / result.summary.n_pixels:.1f} % as {level}"
            in (result.summary.notes[0])
        )
    assert result.summary.n_rejected == (answer == 0).sum()
    assert result.summary.n_pixels == (answer != 255).sum()
    label = result.maps.label.values
    for share in result.summary.classes:
        of_group = (label == share.value) & (answer > 5) & (answer != 255)
        assert share.n_as_group == of_group.sum()


def test_files_name_the_groups(made) -> None:
    folder, result = made
    back = hr.open_map(folder / "label_with_rejection.tif")
    assert hr.schema.class_table(back).names[-2:] == ("pair", "three")
    assert hr.ClassTree.from_attrs(back.attrs).table.values == (1, 2, 3, 4, 5, 6, 7)
    style = (folder / "label_with_rejection.qml").read_text("utf-8")
    assert 'label="three"' in style
    classes = json.loads((folder / "item.json").read_text("utf-8"))["assets"]["map"]["bands"][0]
    last = classes["classification:classes"][-1]
    assert (last["title"], last["description"]) == ("three", "One of pair, cover 3")
    assert FLAGS.name_of(GROUP_FLAG) == "group"
    is_group = np.isin(result.maps.label_with_rejection, (6, 7))
    np.testing.assert_array_equal(result.maps.flag == GROUP_FLAG, is_group)
    with rasterio.open(folder / "map_filled.tif") as file:
        assert file.descriptions[:3] == ("label", "flag", "second")
        label, flag, second = file.read((1, 2, 3))
    np.testing.assert_array_equal(flag == GROUP_FLAG, is_group)
    has_data = label != 255
    assert (second[has_data] != label[has_data]).all()
    order = np.argsort(result.maps.probability.values[:, has_data], axis=0)[::-1] + 1
    likeliest = np.where(order[0] == label[has_data], order[1], order[0])
    np.testing.assert_array_equal(second[has_data], likeliest)


def test_a_flat_map_rejects_what_is_no_class(model, scene, made) -> None:
    _, grouped = made
    flat = hr.map_scene(
        scene,
        model,
        hr.Goal(fraction=0.1),
        reading=hr.Reading(foreign="allow"),
        layers=hr.Layers(flat=True),
        resources=hr.Resources(block_size=50),
    )
    answer = grouped.maps.label_with_rejection.values
    expected = np.where(np.isin(answer, (6, 7)), 0, answer)
    np.testing.assert_array_equal(flat.maps.label_with_rejection, expected)
    np.testing.assert_array_equal(flat.maps.rejected, expected == 0)
    assert hr.schema.class_table(flat.maps.label_with_rejection).names == model.classes.names
    assert not flat.summary.groups
    assert flat.summary.n_rejected == (expected == 0).sum()
    threshold = flat.summary.rejection.threshold
    below = (flat.maps.confidence < threshold) | flat.maps.unknown
    np.testing.assert_array_equal(flat.maps.rejected, below)
    assert "level_confidence" not in flat.maps


def test_a_certificate_of_the_levels_sets_the_map(model, scene, made) -> None:
    folder, _ = made
    truth = hr.map_scene(
        larger_scene(100, 90), model, hr.Goal(fraction=0.0), reading=hr.Reading(foreign="allow")
    ).maps.label
    label, levels = (hr.open_map(folder / f"{n}.tif") for n in ("label", "level_confidence"))
    sample = hr.draw_sample(label, 800, seed=2).with_reference(truth)
    certificate = hr.certify(label, levels, sample, max_error=0.2)
    assert certificate.threshold is not None
    maps = hr.map_scene(scene, model, certificate, **ANYWHERE).maps
    expected = certificate.apply(label, levels).label_with_rejection
    np.testing.assert_array_equal(maps.label_with_rejection, expected)
    with pytest.raises(InputError, match=r"certificate.*flat"):
        hr.map_scene(scene, model, certificate, **ANYWHERE, layers=hr.Layers(flat=True))
    by_sample = hr.map_scene(scene, model, hr.Goal(accuracy=0.9), sample=sample, **ANYWHERE).maps
    answer = by_sample.label_with_rejection.values[sample.row, sample.column]
    right = model.tree.holds(answer, truth.values[sample.row, sample.column])
    assert right[answer != 0].mean() >= 0.9


def test_a_model_file_keeps_its_groups_and_a_damaged_one_is_refused(model, tmp_path) -> None:
    path = hr.save_model(model, tmp_path / "model.skops")
    assert hr.load_model(path).tree == model.tree
    other = hr.HierarchicalRejector({"pair": ["cover 1", "nothing like it"]})
    hr.save_model(hr.MapModel(model.classifier, other), tmp_path / "other.skops")
    with pytest.raises(FileError, match="damaged"):
        hr.load_model(tmp_path / "other.skops")


def test_the_commands_say_how_much_is_known(tmp_path, capsys) -> None:
    (tmp_path / "config.toml").write_text(tomli_w.dumps(GROUPED), "utf-8")
    scene = write_scene(larger_scene(64, 64), tmp_path / "scene.img", "ENVI")
    assert call("train", tmp_path / "config.toml", "--model", tmp_path / "m.skops") == 0
    assert "kept as class" in capsys.readouterr().out
    options = ("--model", tmp_path / "m.skops", "--fraction", 0.2, "--foreign", "allow")
    assert call("map", scene, "--out", tmp_path / "out", *options) == 0
    printed = capsys.readouterr().out
    assert "% as group" in printed
    page = (tmp_path / "out" / "explorer.html").read_text("utf-8")
    assert '"three"' in page
