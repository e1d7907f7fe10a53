"""STAC items and tags, checked without a network.

STAC 1.1.0 itself by the published schema, which pystac carries; its extensions by `stac_rules`.
"""

import json

import jsonschema
import numpy as np
import pystac
import pytest
import rasterio
from pystac.validation.stac_validator import JsonSchemaSTACValidator

import hsreject as hr
from hsreject.handover.filled_map import filled_raster
from hsreject.handover.provenance import Provenance, write_map_item
from hsreject.io.maps import write_maps
from tests.cli.calling import call
from tests.handover import stac_rules
from tests.handover.test_polygons_and_sieve import place, random_map


def opened(path) -> dict:
    """Return an item that STAC's own schema and the rules of its extensions accept."""
    item = json.loads(path.read_text("utf-8"))
    JsonSchemaSTACValidator().validate_core(item, pystac.STACObjectType.ITEM, "1.1.0")
    stac_rules.check(item)
    return item


SOURCE = Provenance("scene.tif", "first run", "accuracy = 0.95", "keeps 80 %")


def named_map():
    table = hr.ClassTable.from_names(["corn, no till", "Grünland", "c"])
    return hr.schema.attach_classes(place(random_map(0)), table)


def test_the_item_of_a_map(tmp_path) -> None:
    label = named_map()
    hr.write_map(label, tmp_path / "map.tif")
    filled = hr.filled_map(label.where(label > 0, 1), label == 0)
    write_maps({tmp_path / "filled.tif": filled_raster(filled)})
    files = {"map": "map.tif", "filled": "filled.tif", "report": "report.html"}
    write_map_item(tmp_path, label, SOURCE, files)
    item = opened(tmp_path / "item.json")
    assert list(item["assets"]) == ["map", "filled"]  # there is no report
    bands = item["assets"]["filled"]["bands"]
    assert [band["name"] for band in bands] == ["label", "flag"]
    assert bands[1]["classification:classes"][2]["name"] == "rejected"
    assert item["properties"]["proj:code"] == "EPSG:32633"
    west, south, east, north = item["bbox"]
    assert west < east
    assert south < north
    with rasterio.open(tmp_path / "map.tif") as file:
        wanted = rasterio.warp.transform_bounds(file.crs, "EPSG:4326", *file.bounds)
    np.testing.assert_allclose(item["bbox"], wanted)
    names = [one["name"] for one in item["assets"]["map"]["bands"][0]["classification:classes"]]
    assert names[:2] == ["rejected", "corn_no_till"]


def test_the_item_of_a_map_without_a_place(tmp_path) -> None:
    label = hr.sieve(random_map(0), 2)
    hr.write_map(label, tmp_path / "map.tif")
    write_map_item(tmp_path, label, SOURCE, {"map": "map.tif"})
    assert opened(tmp_path / "item.json")["geometry"] is None


def test_the_item_of_a_map_whose_reference_system_has_no_number(tmp_path) -> None:
    system, south_up = "+proj=laea +lat_0=52 +lon_0=13 +ellps=GRS80", (30, 0, 0, 0, 30, 0)
    hr.write_map(random_map(0), tmp_path / "map.tif", crs=system, transform=south_up)
    label = hr.open_map(tmp_path / "map.tif")
    write_map_item(tmp_path, label, SOURCE, {"map": "map.tif"})
    item = opened(tmp_path / "item.json")
    assert item["properties"]["proj:code"] is None
    assert rasterio.crs.CRS.from_wkt(item["properties"]["proj:wkt2"]) == label.rio.crs
    west, south, east, north = item["bbox"]
    assert (west < east, south < north) == (True, True)


def changed(item: dict, place: str, value: object) -> dict:
    """Return an item with another value at a place such as properties/datetime; None drops it."""
    item = json.loads(json.dumps(item))
    *parts, last = place.split("/")
    part = item
    for name in parts:
        part = part[int(name) if name.isdigit() else name]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return item


WRONG_MAPS = {
    "properties/datetime": None,
    "properties/proj:epsg": 32633,
    "properties/proj:shape": [12],
    "properties/proj:transform": [30, 0, 0],
    "properties/processing:software": {"hsreject": 3},
    "properties/processing:date": "today",
    "assets/map/bands": [{"name": "label"}],  # nothing of the raster extension is left
    "assets/map/bands/0/raster:sampling": "pixel",
    "assets/map/bands/0/raster:bands": [],
    "assets/map/bands/0/classification:classes": [],
    "assets/map/bands/0/classification:classes/0/value": "rejected",
    "assets/map/bands/0/classification:classes/1/name": "corn, no till",
    "assets/map/bands/0/classification:classes/1/color_hint": "#e69f00",
}


def test_the_rules_refuse_what_is_wrong(tmp_path) -> None:
    label, path = named_map(), tmp_path / "item.json"
    hr.write_map(label, tmp_path / "map.tif")
    write_map_item(tmp_path, label, SOURCE, {"map": "map.tif"})
    item = opened(path)
    for place_of_fault, value in WRONG_MAPS.items():
        path.write_text(json.dumps(changed(item, place_of_fault, value)), "utf-8")
        with pytest.raises((pystac.STACValidationError, jsonschema.ValidationError)):
            opened(path)


@pytest.mark.filterwarnings("ignore::hsreject.errors.GuessWarning")
def test_a_run_and_a_map_say_where_they_come_from(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    cube, _ = hr.synthetic_scene(rows=32, columns=32, n_bands=8)
    cube.rio.to_raster("scene.tif")
    (tmp_path / "config.toml").write_text(
        'title = "first"\nfeatures = []\nclassifier = "lda"\n'
        '[scene]\nname = "synthetic"\nrows = 32\ncolumns = 32\nn_bands = 8\n'
    )
    assert call("run", "config.toml", "--out", "run") == 0
    with rasterio.open("run/maps/map.tif") as file, rasterio.open("scene.tif") as scene:
        tags = file.tags()
        assert (file.crs, file.transform) == (scene.crs, scene.transform)
    assert tags["HSREJECT_SCENE"] == "synthetic"
    assert tags["HSREJECT_GOAL"] == "fraction = 0.1"
    assert tags["HSREJECT_STATEMENT"]
    item = opened(tmp_path / "run/item.json")
    assert item["id"] == tags["HSREJECT_DIGEST"]
    assert {"map", "filled", "report", "configuration"} <= set(item["assets"])
    (level,) = item["assets"]["confidence_classes"]["bands"]
    assert [one["name"] for one in level["classification:classes"]] == ["low", "medium", "high"]
    assert call("train", "config.toml", "--model", "model.skops") == 0
    assert call("map", "scene.tif", "--model", "model.skops", "--out", "maps", "--fraction", 0.1,
                "--foreign", "allow") == 0  # fmt: skip
    opened(tmp_path / "maps/item.json")
    with rasterio.open("maps/map_filled.tif") as file:
        assert file.descriptions == ("label", "flag", "second")
        assert file.tags()["HSREJECT_MADE_BY"] == "model.skops"
        label, flag = file.read((1, 2))
    kept = hr.open_map("maps/label_with_rejection.tif").values
    np.testing.assert_array_equal(np.where(flag == 1, label, np.where(flag == 0, 255, 0)), kept)
