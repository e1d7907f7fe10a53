"""[groups] of a configuration: a run whose map may answer with a group of classes."""

import base64
import csv
import json
import re
import tomllib
import zlib

import numpy as np
import pytest
import xarray as xr

import hsreject as hr
from hsreject import schema
from hsreject.errors import HsrejectError
from hsreject.io.grid import PixelGrid
from tests.cli.calling import call

GROUPS = {"ab": ["cover 1", "cover 2"], "abc": ["ab", "cover 3"]}
CONFIG = {
    "scene": {"name": "synthetic", "rows": 40, "columns": 40},
    "features": [{"name": "pca", "n_components": 5}],
    "classifier": "lda",
    "groups": GROUPS,
}


def counted(answer: xr.DataArray, truth: xr.DataArray) -> tuple[float, float]:
    """Return which share of the reference pixels is kept, and how many of these are right."""
    members = {name: {name} for name in (f"cover {number}" for number in range(1, 6))}
    members |= {"ab": {"cover 1", "cover 2"}, "abc": {"cover 1", "cover 2", "cover 3"}}
    table = schema.class_table(answer)
    used = (truth.values > 0) & (answer.values != 255)
    pairs = zip(answer.values[used].tolist(), truth.values[used].tolist(), strict=True)
    right = [f"cover {true}" in members[table.name_of(code)] for code, true in pairs if code]
    return len(right) / used.sum(), float(np.mean(right))


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[xr.DataTree, object]:
    folder = tmp_path_factory.mktemp("groups") / "run"
    return hr.run(CONFIG, goal={"accuracy": 0.9}, out=folder), folder


def test_the_delivered_map_answers_with_groups(finished) -> None:
    result, folder = finished
    delivered = result["delivered"]
    assert delivered.attrs["rejector"] == "hierarchical"
    answer = hr.open_map(folder / "maps" / "map.tif")
    np.testing.assert_array_equal(answer, delivered["label_with_rejection"])
    tree = hr.ClassTree.from_attrs(answer.attrs)
    assert [group.name for group in tree.groups] == ["ab", "abc"]
    assert schema.class_table(answer).names[5:] == ("ab", "abc")
    assert {6, 7} & set(np.unique(answer))
    assert PixelGrid.of(answer) == PixelGrid.of(hr.open_map(folder / "maps" / "reference.tif"))
    style = (folder / "maps" / "map.qml").read_text("utf-8")
    assert 'label="abc"' in style
    item = json.loads((folder / "item.json").read_text("utf-8"))
    classes = item["assets"]["map"]["bands"][0]["classification:classes"]
    assert [one["name"] for one in classes][-2:] == ["ab", "abc"]
    polygons = hr.polygonize(answer)
    assert {"ab", "abc"} & set(polygons.name)
    assert polygons.in_hectares


def test_the_numbers_count_truth_below_the_answer(finished) -> None:
    result, _ = finished
    answer = result["delivered/label_with_rejection"]
    test = result["test"].where(result["calibration"] == 0, 0)
    kept, accuracy = counted(answer, test)
    judged = result["judged"].to_dataset(inherit=False).isel(seed=0).sel(system="hierarchical")
    assert float(judged["nonrejected_accuracy"]) == pytest.approx(accuracy)
    assert float(judged["rejected_fraction"]) == pytest.approx(1 - kept)
    chose = counted(answer, result["calibration"])
    assert chose[1] >= 0.9
    flat = result["judged"].to_dataset(inherit=False).isel(seed=0).sel(system="pixelwise")
    assert kept > 1 - float(flat["rejected_fraction"])


def test_the_report_says_how_much_is_known_at_which_level(finished) -> None:
    _, folder = finished
    page = (folder / "report.html").read_text("utf-8")
    assert "How much is known at which level" in page
    assert "ab: cover 1, cover 2" in page


def test_areas_are_those_of_the_answers(finished) -> None:
    result, folder = finished
    answer = result["delivered/label_with_rejection"].values
    rows = list(csv.DictReader((folder / "areas.csv").read_text("utf-8").splitlines()))
    assert [row["class"] for row in rows][5:] == ["ab", "abc"]
    for row in rows:
        assert int(row["kept_pixels"]) == (answer == int(row["value"])).sum()


def unpacked(entry: dict) -> np.ndarray:
    steps = np.frombuffer(zlib.decompress(base64.b64decode(entry["packed"])), "<i4")
    return np.cumsum(steps)


def test_the_explorer_counts_truth_below_the_answer(finished) -> None:
    result, folder = finished
    page = (folder / "explorer.html").read_text("utf-8")
    payload = json.loads(
        re.search(r"<script[^>]*application/json[^>]*>(.*?)</script>", page, re.DOTALL)[1]
    )
    assert payload["classes"][5:] == ["ab", "abc"]
    assert payload["below"] == {"6": [1, 2, 6], "7": [1, 2, 3, 7]}
    system = payload["systems"][0]
    n_rejected, right, wrong = (unpacked(system[name]) for name in ("nRejected", "an", "mn"))
    delivered = result["delivered"]
    share = float(delivered["rejected_share_of_scene"])
    at = np.abs(n_rejected / system["pixels"] - share).argmin()
    accuracy = right[at] / (right[at] + wrong[at])
    assert accuracy == pytest.approx(float(delivered["nonrejected_accuracy"]))


def test_flat_maps_hold_classes_alone(finished, tmp_path) -> None:
    result, _ = finished
    hr.run(CONFIG, goal={"accuracy": 0.9}, out=tmp_path / "flat", flat=True)
    flat = hr.open_map(tmp_path / "flat" / "maps" / "map.tif")
    answer = result["delivered/label_with_rejection"].values
    np.testing.assert_array_equal(flat, np.where(np.isin(answer, [6, 7]), 0, answer))
    assert schema.class_table(flat).names == tuple(f"cover {number}" for number in range(1, 6))
    assert hr.ClassTree.from_attrs(flat.attrs) is None


def test_files_of_a_run_can_be_sampled_and_certified(finished, tmp_path) -> None:
    result, folder = finished
    maps = folder / "maps"
    label, levels = maps / "label_hierarchical.tif", maps / "level_confidence_hierarchical.tif"
    points = tmp_path / "points.csv"
    exclude = ("--exclude", maps / "train.tif")
    drawing = ("--n", 300, "--for-promise", 0.2, "--confidence", levels, *exclude)
    assert call("sample", label, *drawing, "--out", points) == 0
    sample = hr.open_sample(points, hr.open_map(label)).with_reference(result["reference"])
    sample.write(points, overwrite=True)
    certifying = ("--labels", label, "--confidence", levels, "--sample", points, *exclude)
    assert call("certify", *certifying, "--out", tmp_path / "promise") == 0
    certified = tmp_path / "promise" / "label_with_rejection.tif"
    if certified.exists():
        assert hr.ClassTree.from_attrs(hr.open_map(certified).attrs) is not None
    made = json.loads((tmp_path / "promise" / "certificate.json").read_text("utf-8"))
    assert made["max_error"] == 0.2


def test_a_promise_is_about_the_answers() -> None:
    result = hr.run(CONFIG, goal={"max_error": 0.2})
    assert result["delivered"].attrs["goal_reached"]
    _, accuracy = counted(result["delivered/label_with_rejection"], result["test"])
    promise = result["promise"].to_dataset(inherit=False).isel(seed=0)
    assert float(promise["error_of_all"]) == pytest.approx(1 - accuracy)


def test_groups_of_classes_without_training_pixels_shrink() -> None:
    cube, labels = hr.synthetic_scene(rows=40, columns=40)
    without = labels.where(labels != 1, 0).astype(labels.dtype)
    result = hr.run({**CONFIG, "scene": (cube, without)}, goal={"fraction": 0.1})
    tree = hr.ClassTree.from_attrs(result["delivered/label_with_rejection"].attrs)
    assert [(group.name, set(group.members)) for group in tree.groups] == [
        ("abc", {"cover 2", "cover 3"})
    ]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"groups": {"ab": ["cover 1", "cover 22"]}}, "Did you mean 'cover 2'"),
        ({"groups": {"ab": ["cover 1"]}}, "1 member"),
        ({"groups": ["cover 1", "cover 2"]}, "table"),
        ({"groups": None, "rejectors": ["hierarchical"]}, "hsreject groups"),
    ],
)
def test_bad_groups_are_refused_before_the_work(changes, word, tmp_path) -> None:
    with pytest.raises(HsrejectError, match=word):
        hr.run({**CONFIG, **changes}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_models_carry_the_groups_unless_another_rejector_is_named() -> None:
    model = hr.train(CONFIG)
    assert model.tree.table.names[-2:] == ("ab", "abc")
    assert tomllib.loads(model.configuration)["groups"] == CONFIG["groups"]
    assert hr.train(CONFIG, rejector="pixelwise").tree is None
