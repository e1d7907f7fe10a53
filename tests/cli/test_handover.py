"""``hsreject polygons``, as a user calls it."""

import numpy as np
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
