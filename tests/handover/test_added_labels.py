"""Answers to the points that were asked for: further training pixels, never test pixels."""

import csv
from pathlib import Path

import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import ConfigError, InputError


def answered(folder: Path, names: list[str]) -> Path:
    """Return a file of points on the synthetic scene with these answers."""
    _, labels = hr.synthetic_scene(rows=32, columns=32, n_bands=8)
    label = np.where(labels.values > 0, labels.values, 1).astype(np.uint8)
    label[4:9, 4:9] = label[20:24, 20:24] = 0
    label = labels.copy(data=label)
    asked = hr.next_labels(label, len(names))
    path = folder / "points.csv"
    asked.write(path)
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows({**row, "reference": name} for row, name in zip(rows, names, strict=True))
    return path


def places(path: Path) -> list[tuple[int, int]]:
    """Return the pixels of a file of points."""
    with path.open(newline="") as stream:
        return [(int(row["row"]), int(row["column"])) for row in csv.DictReader(stream)]


def config(add: object) -> dict:
    return {
        "scene": {"name": "synthetic", "rows": 32, "columns": 32, "n_bands": 8},
        "sampling": {"name": "per_class", "n_per_class": 5},
        "classifier": "lda",
        "features": [],
        "add": add,
    }


def test_answers_train_and_never_test(tmp_path) -> None:
    path = answered(tmp_path, ["cover 2", "cover 3", "cannot tell", "none of these", ""])
    result = hr.run(config(str(path)))
    assert [int(result["train"].values[place]) for place in places(path)[:2]] == [2, 3]
    assert [int(result["test"].values[place]) for place in places(path)[:2]] == [0, 0]
    plain = hr.run({name: part for name, part in config("").items() if name != "add"})
    added = result["train"].values != plain["train"].values
    assert added.sum() <= 2


def test_answers_join_labels_that_were_digitised_as_polygons(tmp_path) -> None:
    cube, labels = hr.synthetic_scene(rows=32, columns=32, n_bands=8)
    cube.rio.to_raster(tmp_path / "scene.tif")
    polygons = hr.polygonize(labels.where(labels > 0, 255).assign_attrs(labels.attrs))
    polygons.write(tmp_path / "polygons.gpkg")
    files = {
        "name": "files",
        "path": str(tmp_path / "scene.tif"),
        "labels": str(tmp_path / "polygons.gpkg"),
        "attribute": "name",
    }
    path = answered(tmp_path, ["cover 2", "cover 3"])
    plan = {**config(str(path)), "scene": files, "sampling": {"name": "polygons", "fraction": 1}}
    result = hr.run(plan)
    assert [int(result["train"].values[place]) for place in places(path)] == [2, 3]
    numbers = [int(result["train"]["polygon"].values[place]) for place in places(path)]
    assert len({*numbers}) == 2


def test_a_new_class_is_one_after_it_was_named(tmp_path) -> None:
    path = answered(tmp_path, ["asphalt"] * 4)
    with pytest.raises(InputError, match="--new-class 'asphalt'"):
        hr.run(config(str(path)))
    (tmp_path / "again").mkdir()  # a second round, of the same class and another one
    again = answered(tmp_path / "again", ["asphalt", "cover 3"])
    paths = [str(path), str(again)]
    result = hr.run(config({"path": paths, "new_classes": ["asphalt"]}))
    assert int(result["train"].values[places(again)[-1]]) == 3
    assert "asphalt" in hr.schema.class_table(result["train"]).names
    assert result["probability"].sizes["category"] == 6


def test_a_sample_is_not_trained_on(tmp_path) -> None:
    _, labels = hr.synthetic_scene(rows=32, columns=32, n_bands=8)
    sample = hr.draw_sample(labels, 10).with_reference(labels)
    sample.write(tmp_path / "sample.csv")
    with pytest.raises(InputError, match="random sample"):
        hr.run(config(str(tmp_path / "sample.csv")))


def test_answers_off_the_scene_or_without_a_file_are_refused(tmp_path) -> None:
    path = answered(tmp_path, ["cover 1"])
    with path.open(newline="") as stream:
        moved = {**next(csv.DictReader(stream)), "longitude": "0", "latitude": "0"}
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, moved)
        writer.writeheader()
        writer.writerow(moved)
    with pytest.raises(InputError, match="off the map"):
        hr.run(config(str(path)))
    with pytest.raises(ConfigError, match="path"):
        hr.run(config({"new_classes": []}))


def test_unanswered_points_say_what_to_fill_in(tmp_path) -> None:
    with pytest.raises(InputError, match="reference"):
        hr.run(config(str(answered(tmp_path, ["", "cannot tell"]))))
