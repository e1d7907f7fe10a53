"""``hsreject next`` and ``polygons``, as a user calls them."""

import numpy as np
import pandas as pd
import pyogrio
import pytest

import hsreject as hr
from tests.cli.calling import call
from tests.handover.test_polygons_and_sieve import place, random_map


@pytest.fixture
def maps(tmp_path):
    label = hr.schema.attach_classes(place(random_map(0)), hr.ClassTable.from_names("abc"))
    hr.write_map(label, tmp_path / "map.tif")
    hr.write_map(label.astype(np.float32).drop_attrs(), tmp_path / "confidence.tif")
    return tmp_path


def test_polygons_and_the_sieved_map(maps, capsys) -> None:
    assert call("polygons", maps / "map.tif", "--confidence", maps / "confidence.tif",
                "--minimum-area", "2ha", "--out", maps / "map.gpkg",
                "--sieved", maps / "sieved.tif") == 0  # fmt: skip
    said = capsys.readouterr().out
    assert "another map" in said
    label = hr.open_map(maps / "map.tif")
    expected = hr.polygonize(label, hr.open_map(maps / "confidence.tif"), minimum_area="2ha")
    table = pyogrio.read_dataframe(maps / "map.gpkg")
    np.testing.assert_array_equal(table["class"], expected.value)
    np.testing.assert_allclose(table["area_ha"], expected.area)
    np.testing.assert_array_equal(
        hr.open_map(maps / "sieved.tif").values, hr.sieve(label, "2ha").values
    )


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--out", "map.shp"], "gpkg"),
        (["--out", "map.gpkg", "--minimum-area", "2 acres"], "0.25ha"),
        (["--out", "map.gpkg", "--sieved", "sieved.tif"], "--minimum-area"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(maps, capsys, options, word, monkeypatch):
    monkeypatch.chdir(maps)
    before = sorted(maps.iterdir())
    assert call("polygons", "map.tif", *options) == 2
    assert word in capsys.readouterr().err
    assert sorted(maps.iterdir()) == before


def test_from_a_run_to_points_to_the_next_run(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    cube, labels = hr.synthetic_scene(rows=32, columns=32, n_bands=8, noise=1.0)
    cube.rio.to_raster("scene.tif")
    (tmp_path / "config.toml").write_text(
        'features = []\nclassifier = "lda"\n'
        '[scene]\nname = "synthetic"\nrows = 32\ncolumns = 32\nn_bands = 8\nnoise = 1.0\n'
        '[sampling]\nname = "per_class"\nn_per_class = 5\n'
    )
    assert call("run", "config.toml", "--out", "first", "--probabilities") == 0
    chances = hr.open_map("first/maps/probabilities.tif")
    assert list(chances.class_name.values) == [f"cover {value}" for value in range(1, 6)]
    total = chances.sum("category", min_count=5).values
    np.testing.assert_allclose(total[~np.isnan(total)], 1, atol=1e-5)
    assert call("next", "first", "--n", 6, "--out", "points.csv", "--scene", "scene.tif") == 0
    said = capsys.readouterr().out
    assert "between cover" in said
    assert "--add points.csv" in said
    assert "points.csv" in (tmp_path / "points.html").read_text()
    asked = pd.read_csv("points.csv")
    assert len(asked) == 6
    # what is excluded is not asked about, and training pixels are not either
    left_half = labels.copy(data=np.broadcast_to(np.arange(32) < 16, (32, 32)).astype(np.uint8))
    hr.write_map(left_half, "closed.tif")
    assert call("next", "first", "--out", "right.csv", "--exclude", "closed.tif") == 0
    hr.write_map(left_half.values[:20], "cut.tif")
    assert call("next", "first", "--out", "cut.csv", "--exclude", "cut.tif") == 2
    assert "--exclude" in capsys.readouterr().err
    right = pd.read_csv("right.csv")
    assert (right.column >= 16).all()
    assert not hr.open_labels("first/maps/train.tif").values[right.row, right.column].any()
    capsys.readouterr()
    train = hr.open_labels("first/maps/train.tif").values
    rejected = hr.open_map("first/maps/map.tif").values == 0
    assert rejected[asked.row, asked.column].all()
    assert not train[asked.row, asked.column].any()
    truth = np.where(labels.values == 0, 1, labels.values)[asked.row, asked.column]
    asked.assign(reference=[f"cover {value}" for value in truth]).to_csv("points.csv", index=False)
    assert call("run", "config.toml", "--add", "points.csv", "--out", "second") == 0
    second = hr.open_labels("second/maps/train.tif").values
    np.testing.assert_array_equal(second[asked.row, asked.column], truth)
    assert call("run", "config.toml", "--add", "none.csv", "--out", "third") == 2
    assert "none.csv" in capsys.readouterr().err
