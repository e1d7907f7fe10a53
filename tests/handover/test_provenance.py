"""STAC items and tags, checked without a network.

STAC 1.1.0 itself by the published schema, which pystac carries. Of the extensions (projection
2.0.0, raster 2.0.0, classification 2.0.0, processing 1.2.0, machine-learning-model 1.4.0) no
package carries the schemas: below are the fields that they have and require, with types and
patterns.
"""

import json

import jsonschema
import numpy as np
import pystac
import pytest
import rasterio
from pystac.validation.stac_validator import JsonSchemaSTACValidator

import hsreject as hr
from hsreject.handover.filled_map import write_filled_map
from hsreject.handover.provenance import Provenance, write_map_item, write_model_item
from tests.cli.calling import call
from tests.handover.test_polygons_and_sieve import place, random_map

# All of a prefix that the extensions know; they refuse others.
FIELDS = {
    *(f"proj:{name}" for name in (
        "bbox", "centroid", "code", "geometry", "projjson", "shape", "transform")),
    *(f"raster:{name}" for name in (
        "bits_per_sample", "histogram", "offset", "sampling", "scale", "spatial_resolution")),
    *(f"processing:{name}" for name in (
        "expression", "facility", "level", "lineage", "software", "version", "datetime")),
    "classification:bitfields", "classification:classes",
    *(f"mlm:{name}" for name in (
        "architecture", "artifact_type", "framework", "input", "name", "output", "tasks")),
}  # fmt: skip
CLASSES = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "required": ["value", "name"],
        "properties": {
            "value": {"type": "integer"},
            "name": {"type": "string", "pattern": "^[0-9A-Za-z-_]+$"},
            "title": {"type": "string"},
            "color_hint": {"type": "string", "pattern": "^([0-9A-F]{6})$"},
            "nodata": {"type": "boolean"},
        },
    },
}
BAND = {
    "properties": {
        "raster:sampling": {"enum": ["area", "point"]},
        "classification:classes": CLASSES,
    }
}
ASSETS = {"additionalProperties": {"properties": {"bands": {"items": BAND}}}}
MAP = {
    "properties": {
        "assets": ASSETS,
        "properties": {
            "required": ["proj:shape"],
            "properties": {
                "proj:code": {"type": ["string", "null"], "pattern": "^[A-Z]+:[0-9]+$"},
                "proj:shape": {"items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
                "proj:transform": {"items": {"type": "number"}, "minItems": 6, "maxItems": 9},
            },
        },
    }
}
ARRAY = {
    "type": "object",
    "required": ["shape", "dim_order", "data_type"],
    "properties": {"shape": {"items": {"type": "integer", "minimum": -1}, "minItems": 1}},
}
MODEL = {
    "properties": {
        "properties": {
            "required": ["mlm:name", "mlm:architecture", "mlm:tasks", "mlm:input", "mlm:output"],
            "properties": {
                "mlm:tasks": {"items": {"enum": ["classification", "segmentation"]}},
                "mlm:input": {"items": {"required": ["name", "bands", "input"],
                                        "properties": {"input": ARRAY}}},
                "mlm:output": {"items": {"required": ["name", "tasks", "result"],
                                         "properties": {"result": ARRAY,
                                                        "classification:classes": CLASSES}}},
            },
        },
        "assets": {
            "required": ["model"],
            "properties": {
                "model": {
                    "required": ["mlm:artifact_type"],
                    "properties": {"roles": {"contains": {"const": "mlm:model"}}},
                }
            },
        },
    }
}  # fmt: skip


def opened(path) -> dict:
    """Return an item that STAC's own schema accepts, and whose fields the extensions know."""
    text = path.read_text("utf-8")

    def known(pairs: list) -> dict:
        prefixed = {name for name, _ in pairs if ":" in name}
        assert prefixed <= FIELDS
        return dict(pairs)

    item = json.loads(text, object_pairs_hook=known)
    JsonSchemaSTACValidator().validate_core(item, pystac.STACObjectType.ITEM, "1.1.0")
    return item


SOURCE = Provenance("scene.tif", "first run", "accuracy = 0.95", "keeps 80 %")


def named_map():
    table = hr.ClassTable.from_names(["corn, no till", "Grünland", "c"])
    return hr.schema.attach_classes(place(random_map(0)), table)


def test_the_item_of_a_map(tmp_path) -> None:
    label = named_map()
    hr.write_map(label, tmp_path / "map.tif")
    write_filled_map(hr.filled_map(label.where(label > 0, 1), label == 0), tmp_path / "filled.tif")
    files = {"map": "map.tif", "filled": "filled.tif", "report": "report.html"}
    write_map_item(tmp_path, label, SOURCE, files)
    item = opened(tmp_path / "item.json")
    jsonschema.validate(item, MAP)
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
    write_map_item(tmp_path, hr.sieve(random_map(0), 2), SOURCE, {})
    item = opened(tmp_path / "item.json")
    assert item["geometry"] is None


def test_the_item_of_a_model(tmp_path) -> None:
    table = hr.schema.class_table(named_map())
    write_model_item(tmp_path, "model.skops", table, 200, SOURCE, architecture="AutoClassifier")
    item = opened(tmp_path / "item.json")
    jsonschema.validate(item, MODEL)


def test_the_schema_of_stac_refuses_an_item_without_a_date(tmp_path) -> None:
    write_map_item(tmp_path, hr.sieve(random_map(0), 2), SOURCE, {})
    text = (tmp_path / "item.json").read_text("utf-8")
    (tmp_path / "item.json").write_text(text.replace('"datetime"', '"date"'), "utf-8")
    with pytest.raises(pystac.STACValidationError):
        opened(tmp_path / "item.json")


@pytest.mark.parametrize("schema", [MAP, MODEL])
def test_the_schemas_refuse_an_item_that_lacks_its_fields(schema) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"properties": {}, "assets": {}}, schema)


@pytest.mark.filterwarnings("ignore::hsreject.errors.GuessWarning")
def test_a_run_a_model_and_a_map_say_where_they_come_from(tmp_path, monkeypatch) -> None:
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
    assert call("train", "config.toml", "--model", "model.skops") == 0
    jsonschema.validate(opened(tmp_path / "model.item.json"), MODEL)
    assert call("map", "scene.tif", "--model", "model.skops", "--out", "maps", "--fraction", 0.1,
                "--foreign", "allow") == 0  # fmt: skip
    jsonschema.validate(opened(tmp_path / "maps/item.json"), MAP)
    with rasterio.open("maps/map_filled.tif") as file:
        assert file.descriptions == ("label", "flag", "second")
        assert file.tags()["HSREJECT_MADE_BY"] == "model.skops"
        label, flag = file.read((1, 2))
    kept = hr.open_map("maps/label_with_rejection.tif").values
    np.testing.assert_array_equal(np.where(flag == 1, label, np.where(flag == 0, 255, 0)), kept)
