"""The goal of a run, its one delivered map, and what judges it."""

import re

import numpy as np
import pandas as pd
import pytest
import rasterio
import xarray as xr

import hsreject as hr
from hsreject.rejection.joint_problem import JointProblem
from hsreject.rejection.ranked import RankedRejector
from hsreject.splits.polygons import polygon_numbers

SCENE = {"name": "synthetic", "rows": 48, "columns": 48, "n_classes": 4, "n_bands": 12}
CONFIG = {
    "scene": {**SCENE, "noise": 1.2},
    "features": [{"name": "pca", "n_components": 4}],
    "classifier": "lda",
    "context": {"prior": "vector_tv", "weight": 0.5},
    "rejectors": ["sequential", {"name": "joint", "n_points": 5}],
}


def scene_with_polygons(noise=0.8, side=5, step=12):
    """Return a scene and the labels of square polygons on it."""
    cube, labels = hr.synthetic_scene(rows=72, columns=72, n_classes=3, n_bands=12, noise=noise)
    inside = np.zeros(labels.shape, dtype=bool)
    for row in range(2, 72, step):
        for column in range(2, 72, step):
            inside[row : row + side, column : column + side] = True
    return cube, labels, labels.where(inside, 0).astype(labels.dtype)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("goal") / "out"
    return hr.run(CONFIG, out=folder, goal={"accuracy": 0.9}), folder


def figures(delivered, test):
    """Return the kept share and the kept accuracy of a map on labelled pixels."""
    used = (test > 0) & (delivered != 255)
    kept = used & (delivered != 0)
    return kept.sum() / used.sum(), (delivered == test)[kept].mean()


def test_an_accuracy_is_chosen_on_one_half_and_judged_on_the_other(finished) -> None:
    result, folder = finished
    with rasterio.open(folder / "maps" / "map.tif") as file:
        delivered = file.read(1)
    test, chose = result["test"].values, result["calibration"].values
    _, chosen = figures(delivered, chose)
    assert chosen >= 0.9
    kept, judged = figures(delivered, np.where(chose > 0, 0, test))
    one = result["delivered"]
    assert float(one["nonrejected_accuracy"]) == pytest.approx(judged)
    assert 1 - float(one["rejected_fraction"]) == pytest.approx(kept)
    shown = (delivered == 0).sum() / (delivered != 255).sum()
    assert float(one["rejected_share_of_scene"]) == pytest.approx(shown)
    low, high = (100 * float(one[f"nonrejected_accuracy_{end}"]) for end in ("lower", "upper"))
    assert f"95 % interval {low:.0f} to {high:.0f}" in one.attrs["statement"]
    for number in (kept, judged):
        assert f"{100 * number:.1f} %" in one.attrs["statement"]
    notes = " ".join(one.attrs["notes"])
    assert f"{100 * chosen:.1f} %" in notes
    assert "other half" in notes


def test_confidence_classes_are_thirds_and_their_accuracy_is_that_of_the_judging_half(
    finished,
) -> None:
    result, folder = finished
    files = {}
    for name in ("confidence_classes", "confidence_sequential", "label_sequential"):
        with rasterio.open(folder / "maps" / f"{name}.tif") as file:
            files[name] = file.read(1)
            assert file.crs.to_epsg() == 32633
    level, confidence, label = files.values()
    unknown = result["unknown"].sel(rejector="sequential").values.astype(bool)
    has_data = label != 255
    np.testing.assert_array_equal(level != 255, has_data)
    assert (level[unknown] == 1).all()
    known = has_data & ~unknown
    for value in (1, 2):  # no pixel of a class is surer than one of the next
        assert (
            confidence[known & (level == value)].max() < confidence[known & (level > value)].min()
        )
    table = pd.read_csv(folder / "confidence_classes.csv")
    assert list(table["confidence_class"]) == ["low", "medium", "high"]
    np.testing.assert_allclose(table["share_of_scene"], 1 / 3, atol=0.01)  # few ties
    judging = np.where(result["calibration"].values > 0, 0, result["test"].values)
    page = (folder / "report.html").read_text("utf-8")
    for value, row in enumerate(table.itertuples(), start=1):
        used = (judging > 0) & (level == value)
        accuracy = (label == judging)[used].mean()
        assert (row.pixels, row.reference_pixels) == ((level == value).sum(), used.sum())
        assert row.accuracy == pytest.approx(accuracy)
        assert row.accuracy_lower < accuracy < row.accuracy_upper
        assert f"{100 * row.accuracy:.1f} ({100 * row.accuracy_lower:.1f} to" in page
    assert table["accuracy"].is_monotonic_increasing
    stored = hr.open_tree(folder / "result.nc")
    np.testing.assert_array_equal(stored["delivered/confidence_class"], level)
    np.testing.assert_allclose(stored["confidence_classes/accuracy"], table["accuracy"])
    style = (folder / "maps" / "confidence_classes.qml").read_text("utf-8")
    assert all(f'label="{name}"' in style for name in ("low", "medium", "high"))
    assert hr.open_labels(folder / "maps" / "confidence_classes.tif").class_names


def unknown_first(maps: xr.Dataset) -> np.ndarray:
    return np.where(maps["unknown"].values, -9.0, maps["confidence"].values)


def test_the_least_rejection_that_reaches_the_accuracy_is_taken(finished) -> None:
    result, _ = finished
    maps = result.to_dataset().sel(rejector="sequential")
    used = (result["calibration"].values > 0) & (maps["label"].values != 255)
    right = (maps["label"] == result["calibration"]).values[used]
    curve = hr.rejection_curve(right, unknown_first(maps)[used])
    wanted = hr.choose_point(curve, accuracy=0.9)
    assert maps["rejected"].values[used].mean() == pytest.approx(wanted.rejected_fraction)


def test_the_map_of_joint_rejection_meets_the_goal_among_its_points(finished) -> None:
    result, _ = finished
    joint = result["label_with_rejection"].sel(rejector="joint").values
    assert figures(joint, result["calibration"].values)[1] >= 0.9


def test_a_cost_and_an_accuracy_out_of_reach_are_answered(tmp_path) -> None:
    small = {**CONFIG, "rejectors": ["sequential"]}
    cheap = hr.run(small, goal={"rejection_cost": 0.3})
    maps = cheap.to_dataset().sel(rejector="sequential")
    used = (cheap["calibration"].values > 0) & (maps["label"].values != 255)
    right = (maps["label"] == cheap["calibration"]).values[used]
    curve = hr.rejection_curve(right, unknown_first(maps)[used])
    best = hr.cheapest_operating_point(curve, 0.3)
    assert maps["rejected"].values[used].mean() == pytest.approx(best.rejected_fraction)
    noisy = {**small, "scene": {**SCENE, "noise": 6.0}}
    result = hr.run(noisy, goal=hr.Goal(accuracy=0.999), out=tmp_path / "out")
    assert result["delivered"].attrs["goal_reached"] == 0
    assert "out of reach" in " ".join(np.atleast_1d(result["delivered"].attrs["warnings"]))
    top, _, below = (tmp_path / "out" / "report.html").read_text("utf-8").partition("<section")
    assert "What an accuracy costs" in top
    assert "What an accuracy costs" not in below  # it is there once
    kept = (result["calibration"].values > 0) & (result["delivered/label_with_rejection"] != 0)
    assert int(kept.sum()) >= 30


def test_nothing_is_ranked_or_solved_twice(monkeypatch, tmp_path) -> None:
    counts = {"ranked": 0, "problems": 0, "novelties": 0}
    rank, make, look = RankedRejector.rank, JointProblem.__init__, hr.Novelty.fit_p_value

    def ranked(self, *given, **options):
        counts["ranked"] += 1
        return rank(self, *given, **options)

    def made(self, *given, **options):
        counts["problems"] += 1
        make(self, *given, **options)

    def looked(self, *given):
        counts["novelties"] += 1
        return look(self, *given)

    monkeypatch.setattr(hr.Novelty, "fit_p_value", looked)
    monkeypatch.setattr(RankedRejector, "rank", ranked)
    monkeypatch.setattr(JointProblem, "__init__", made)
    names = ["pixelwise", *CONFIG["rejectors"]]
    config = {**CONFIG, "rejectors": names, "goal": {"max_error": 0.3}}
    hr.run(config, out=tmp_path / "out")
    # ranked are pixelwise, sequential and coordinates
    assert counts == {"ranked": 3, "problems": 1, "novelties": 1}


def test_a_goal_that_only_unknown_pixels_could_choose_is_out_of_reach(tmp_path) -> None:
    cube, labels = hr.synthetic_scene(rows=48, columns=48, n_classes=3, n_bands=12, noise=0.2)
    training, _ = hr.sample_per_class(labels, 15, seed=1)
    other_sensor = cube.where(training > 0, 3 - cube)  # nothing is like the training pixels
    config = {**CONFIG, "scene": (other_sensor, labels)}
    config["sampling"] = lambda labels, *, seed: (training, labels.where(training == 0, 0))
    result = hr.run(config, goal={"accuracy": 0.9}, out=tmp_path / "out")
    assert float(result["unknown"].mean()) > 0.9
    assert result["delivered"].attrs["goal_reached"] == 0
    assert "out of reach" in " ".join(np.atleast_1d(result["delivered"].attrs["warnings"]))


def test_what_is_unknown_is_named_and_counts_in_what_an_accuracy_costs(finished) -> None:
    result, folder = finished
    unknown = result["unknown"].sel(rejector="sequential").values
    share = unknown.sum() / (result["label"].sel(rejector="sequential").values != 255).sum()
    assert share > 0
    assert f"{100 * share:.1f} % of the scene resembles no" in str(result["delivered"].attrs)
    page = (folder / "report.html").read_text("utf-8")
    table = page.partition("What an accuracy costs")[2].partition("</table>")[0]
    cheapest = re.findall(r"<td>([\d.]+) %</td>", table)[1]
    assert float(cheapest) == pytest.approx(100 * share, abs=0.05)


def test_a_map_of_coordinates_that_does_as_well_is_in_the_headline(tmp_path) -> None:
    cube, _, labels = scene_with_polygons(noise=4.0)
    config = {**CONFIG, "rejectors": ["sequential"], "scene": (cube, labels)}
    beside = hr.run(
        config | {"sampling": {"name": "per_class", "n_per_class": 40}}, out=tmp_path / "o"
    )
    row = beside["judged"].to_dataset(inherit=False).sel(system="coordinates").isel(seed=0)
    ours = float(beside["delivered/overall_accuracy"])
    assert float(row["gain"]) == pytest.approx(ours - float(row["overall_accuracy"]))
    assert float(row["gain_lower"]) <= 0
    said = " ".join(np.atleast_1d(beside["delivered"].attrs["warnings"]))
    assert "coordinates alone" in said
    assert '"polygons"' in said
    top = (tmp_path / "o" / "report.html").read_text("utf-8").partition("<section")[0]
    assert "coordinates alone does as well" in top
    clear = hr.run(CONFIG | {"scene": {**SCENE, "noise": 0.2}, "rejectors": ["sequential"]})
    assert "coordinates" not in " ".join(np.atleast_1d(clear["delivered"].attrs["warnings"]))


def test_a_paired_gain_is_that_of_the_same_pixels(finished) -> None:
    result, _ = finished
    test = np.where(result["calibration"].values > 0, 0, result["test"].values)
    one, other = (result["label"].sel(rejector=name).values for name in ("sequential", "joint"))
    used = (test > 0) & (one != 255)
    gain = (one == test)[used].mean() - (other == test)[used].mean()
    assert float(result["judged/gain"].sel(system="joint")[0]) == pytest.approx(gain)
    assert float(result["judged/gain"].sel(system="sequential")[0]) == 0


def test_where_all_polygons_train_leaving_them_out_tells_the_accuracy(tmp_path) -> None:
    cube, truth, labels = scene_with_polygons()
    config = {**CONFIG, "rejectors": ["sequential"], "scene": (cube, labels)}
    every = {"sampling": {"name": "polygons", "fraction": 1.0}}
    result = hr.run(config | every, goal={"accuracy": 0.9}, out=tmp_path / "out")
    estimate = float(result["delivered/left_out_accuracy"])
    label = result["label"].sel(rejector="sequential").values
    known = label != 255
    assert estimate == pytest.approx((label == truth.values)[known].mean(), abs=0.15)
    one = result["delivered"]
    assert "Accuracy on polygons left out whole" in one.attrs["statement"]
    assert one.attrs["goal_reached"] == 1  # polygons that were left out have chosen
    delivered = one["label_with_rejection"].values
    assert 0 < (delivered == 0).mean() < 0.9
    assert "summary" not in result
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "left out whole" in page
    assert "hsreject certify" in page
    assert (tmp_path / "out" / "explorer.html").exists()
    areas = pd.read_csv(tmp_path / "out" / "areas.csv")
    counts = [(delivered == value).sum() for value in areas["value"]]
    np.testing.assert_array_equal(areas["kept_pixels"], counts)
    thirds = pd.read_csv(tmp_path / "out" / "confidence_classes.csv")
    assert list(thirds) == ["confidence_class", "pixels", "share_of_scene"]  # nothing judges
    assert (tmp_path / "out" / "maps" / "confidence_classes.tif").exists()
    single = labels.where(hr.schema.class_table(labels).values[0] == labels, 0)
    for value in hr.schema.class_table(labels).values[1:]:
        numbers = polygon_numbers(labels.where(labels == value, 0).astype(labels.dtype))
        single = single.where(numbers != numbers[numbers > 0][0], value)
    first = polygon_numbers(single.astype(labels.dtype))
    only = {int(value): first[single.values == value][0] for value in np.unique(single) if value}
    single = single.where(np.isin(first, list(only.values())), 0).astype(labels.dtype)
    stages = []
    alone = hr.run(
        config | every | {"scene": (cube, single)},
        goal={"accuracy": 0.9},
        progress=lambda stage, *_: stages.append(stage),
    )
    assert "cannot be estimated" in alone["delivered"].attrs["statement"]
    assert alone["delivered"].attrs["goal_reached"] == 0
    assert "classifier" in stages
    assert "polygons-left-out" not in stages  # it would tell nothing


def test_a_gain_on_few_polygons_apart_is_noted_and_no_warning() -> None:
    cube, _, labels = scene_with_polygons(noise=2.5, step=24)
    config = {**CONFIG, "rejectors": ["sequential"], "scene": (cube, labels)}
    result = hr.run(config | {"sampling": {"name": "polygons", "n_per_class": 10}})
    row = result["judged"].to_dataset(inherit=False).sel(system="coordinates").isel(seed=0)
    assert float(row["gain"]) > 0 >= float(row["gain_lower"])
    one = result["delivered"].attrs
    assert "coordinates" not in " ".join(np.atleast_1d(one["warnings"]))
    assert "not shown" in " ".join(np.atleast_1d(one["notes"]))
