"""Where a map or a model comes from: tags of its files, and a STAC item beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import rasterio
import xarray as xr
from rasterio.transform import array_bounds
from rasterio.warp import transform_bounds

from hsreject import __version__
from hsreject.class_tree import ClassTree
from hsreject.classes import ClassTable
from hsreject.files import replacing
from hsreject.handover.confidence_classes import CONFIDENCE_CLASSES
from hsreject.io.grid import Grid, quiet_without_place
from hsreject.promise.frame import map_id
from hsreject.rejection.rejector import FLAGS
from hsreject.schema import CONFIDENCE_CLASS, NO_REFERENCE_MEANING, class_table

if TYPE_CHECKING:
    from pathlib import Path

ITEM = "item.json"
_EXTENSION = "https://stac-extensions.github.io/{}/schema.json"
OF_MAPS = ("projection/v2.0.0", "raster/v2.0.0", "classification/v2.0.0", "processing/v1.2.0")
OF_MODELS = ("mlm/v1.4.0", "classification/v2.0.0", "processing/v1.2.0")
_MEDIA = {
    ".tif": "image/tiff; application=geotiff; profile=cloud-optimized",
    ".json": "application/json",
    ".html": "text/html",
    ".toml": "application/toml",
    ".gpkg": "application/geopackage+sqlite3",
}
_ROLES = {".tif": ["data"], ".html": ["overview"]}


@dataclass(frozen=True)
class Provenance:
    """What a map was made from and for, in words that fit into a tag."""

    scene: str
    made_by: str  # the model or the configuration
    goal: str  # such as "accuracy = 0.95"
    statement: str  # what is promised or reported of the map

    def tags(self, label: xr.DataArray) -> dict[str, str]:
        """Return the tags of the GeoTIFF of a label map; the digest tells it from any other.

        That of a lazy map, which would have to be computed twice, is the name of its STAC item. Of
        the time only the day is said, so that the same work makes the same file.
        """
        stated = {
            "HSREJECT_VERSION": __version__,
            "HSREJECT_DATE": f"{datetime.now(tz=UTC):%Y-%m-%d}",
            "HSREJECT_SCENE": self.scene,
            "HSREJECT_MADE_BY": self.made_by,
            "HSREJECT_GOAL": self.goal,
            "HSREJECT_STATEMENT": self.statement,
            "HSREJECT_DIGEST": map_id(label) if label.chunks is None else "",
        }
        return {name: text for name, text in stated.items() if text}

    def properties(self) -> dict[str, Any]:
        """Return what STAC's common fields and its processing extension say of it."""
        now = f"{datetime.now(tz=UTC):%Y-%m-%dT00:00:00Z}"
        return {
            "datetime": now,
            "created": now,
            "description": self.statement or "Land cover with rejection.",
            "processing:software": {"hsreject": __version__},
            "processing:lineage": f"{self.made_by} on {self.scene}, goal {self.goal}",
        }


def write_map_item(
    folder: Path, label: xr.DataArray, source: Provenance, files: Mapping[str, str]
) -> None:
    """Write a STAC item (1.1) for a map into its folder.

    Parameters
    ----------
    folder : path
        Where the files lie, and ``item.json`` is written.
    label : DataArray (y, x) of int
        The delivered map: its classes and its place. A map without a reference system has no
        geometry.
    source : Provenance
        Where it comes from.
    files : mapping
        The asset names and the paths of the files, relative to the folder; missing ones are left
        out.
    """
    grid = Grid.of(label)
    classes = ClassTree.from_attrs(label.attrs) or class_table(label)
    assets: dict[str, dict[str, Any]] = {}
    for name, path in files.items():
        if not (folder / path).is_file():
            continue
        suffix = path[path.rfind(".") :]
        assets[name] = {
            "href": f"./{path}",
            "type": _MEDIA.get(suffix, "application/octet-stream"),
            "roles": _ROLES.get(suffix, ["metadata"]),
        }
        if suffix == ".tif":
            assets[name]["bands"] = _bands(folder / path, classes)
    bbox = None
    place: dict[str, Any] = {"proj:shape": [grid.height, grid.width]}
    if grid.crs is not None:
        west, south, east, north = array_bounds(grid.height, grid.width, grid.transform)
        corners = (min(west, east), min(north, south), max(west, east), max(north, south))
        bbox = list(transform_bounds(grid.crs, "EPSG:4326", *corners))
        code = grid.crs.to_epsg()
        place["proj:code"] = None if code is None else f"EPSG:{code}"
        if code is None:
            place["proj:wkt2"] = grid.crs.to_wkt(version="WKT2_2019")
        place["proj:transform"] = list(grid.transform)[:6]
    properties = {**source.properties(), **place}
    _write(folder, map_id(label), OF_MAPS, properties, assets, bbox)


def _bands(path: Path, classes: ClassTable | ClassTree) -> list[dict[str, Any]]:
    """Return the bands of a raster of whole numbers as STAC has them, with what values mean."""
    with quiet_without_place(), rasterio.open(path) as file:
        names = [name or "label" for name in file.descriptions]
        stored = {"data_type": file.dtypes[0], "nodata": file.nodata, "raster:sampling": "area"}
    zero = NO_REFERENCE_MEANING if len(names) > 1 else "rejected"  # a filled map rejects nothing
    meanings: dict[str, dict[str, Any]] = {
        "flag": {"classification:classes": classes_of(FLAGS, zero="no data")},
        CONFIDENCE_CLASS: {"classification:classes": classes_of(CONFIDENCE_CLASSES)},
        "probability_percent": {"unit": "%"},
    }
    labels = {"classification:classes": classes_of(classes, zero=zero)}
    return [{"name": name, **stored, **meanings.get(name, labels)} for name in names]


def write_model_item(
    folder: Path,
    model: str,
    classes: ClassTable | ClassTree,
    n_bands: int,
    source: Provenance,
    *,
    architecture: str,
    name: str = ITEM,
) -> None:
    """Write a STAC item with the machine-learning-model extension beside a model file."""
    tasks = ["segmentation"]
    dims = ["height", "width"]
    properties = {
        **source.properties(),
        "mlm:name": f"hsreject_{_word(model)}",
        "mlm:architecture": architecture,
        "mlm:tasks": tasks,
        "mlm:framework": "scikit-learn",
        "mlm:input": [
            {
                "name": "scene",
                "bands": [],
                "input": {
                    "shape": [n_bands, -1, -1],
                    "dim_order": ["channel", *dims],
                    "data_type": "float32",
                },
            }
        ],
        "mlm:output": [
            {
                "name": "label with rejection",
                "tasks": tasks,
                "result": {"shape": [-1, -1], "dim_order": dims, "data_type": "uint8"},
                "classification:classes": classes_of(classes, zero="rejected"),
            }
        ],
    }
    asset = {
        "href": f"./{model}",
        "type": "application/zip",
        "roles": ["mlm:model"],
        "mlm:artifact_type": "skops",
    }
    _write(folder, model, OF_MODELS, properties, {"model": asset}, None, name)


def classes_of(classes: ClassTable | ClassTree, *, zero: str | None = None) -> list[dict[str, Any]]:
    """Return classes as the classification extension has them; a group lists its members."""
    tree = classes if isinstance(classes, ClassTree) else None
    table = classes if isinstance(classes, ClassTable) else classes.table
    members = {} if tree is None else {group.name: group.members for group in tree.groups}
    entries = [] if zero is None else [(0, zero, "#000000")]
    entries += zip(table.values, table.names, table.colors, strict=True)
    return [
        {
            "value": value,
            "name": _word(name) or f"class_{value}",
            "title": name,
            "color_hint": color[1:].upper(),
            **({"description": f"One of {', '.join(members[name])}"} if name in members else {}),
        }
        for value, name, color in entries
    ]


def _word(text: str) -> str:
    """Return a name of letters, digits, - and _, which the extensions ask for."""
    return re.sub(r"[^0-9A-Za-z_-]+", "_", text).strip("_-")


def _write(
    folder: Path,
    identity: str,
    extensions: Sequence[str],
    properties: Mapping[str, Any],
    assets: Mapping[str, Any],
    bbox: Sequence[float] | None,
    name: str = ITEM,
) -> None:
    item: dict[str, Any] = {
        "type": "Feature",
        "stac_version": "1.1.0",
        "stac_extensions": [_EXTENSION.format(one) for one in extensions],
        "id": identity,
        "geometry": None,
        "properties": properties,
        "links": [],
        "assets": assets,
    }
    if bbox is not None:
        west, south, east, north = bbox
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        item |= {"bbox": list(bbox), "geometry": {"type": "Polygon", "coordinates": [ring]}}
    with replacing(folder / name, overwrite=True) as work:
        work.write_text(json.dumps(item, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
