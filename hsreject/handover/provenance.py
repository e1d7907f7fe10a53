"""Where a map comes from: tags of its files, and a STAC item beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import rasterio
import xarray as xr
from rasterio.warp import transform_bounds
from shapely.geometry import box, mapping

from hsreject import __version__
from hsreject.evaluation.confidence_classes import CONFIDENCE_CLASSES
from hsreject.files import replacing
from hsreject.handover.filled_map import PERCENT
from hsreject.io.grid import PixelGrid, quiet_without_place
from hsreject.rejection.ranking import FLAGS
from hsreject.schema import CONFIDENCE_CLASS, NO_REFERENCE_MEANING, class_table
from hsreject.schema.class_tree import ClassTree
from hsreject.schema.classes import ClassTable
from hsreject.schema.label_maps import map_id

if TYPE_CHECKING:
    from pathlib import Path

ITEM = "item.json"
_EXTENSION = "https://stac-extensions.github.io/{}/schema.json"
OF_MAPS = ("projection/v2.0.0", "raster/v2.0.0", "classification/v2.0.0", "processing/v1.2.0")
_KINDS = {  # media type and role of an asset
    ".tif": ("image/tiff; application=geotiff; profile=cloud-optimized", "data"),
    ".json": ("application/json", "metadata"),
    ".html": ("text/html", "overview"),
    ".toml": ("application/toml", "metadata"),
}


@dataclass(frozen=True)
class Provenance:
    """What a map was made from and for, in words that fit into a tag."""

    scene: str
    made_by: str  # the model or the configuration
    goal: str  # such as "accuracy = 0.95"
    statement: str  # what is promised or reported of the map

    def tags(self, label: xr.DataArray) -> dict[str, str]:
        """Return the tags of the GeoTIFF of a label map; the digest identifies it.

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
    grid = PixelGrid.of(label)
    classes = ClassTree.from_attrs(label.attrs) or class_table(label)
    assets: dict[str, dict[str, Any]] = {}
    for name, path in files.items():
        if not (folder / path).is_file():
            continue
        media, role = _KINDS.get(path[path.rfind(".") :], ("application/octet-stream", "metadata"))
        assets[name] = {"href": f"./{path}", "type": media, "roles": [role]}
        if role == "data":
            assets[name]["bands"] = _bands(folder / path, classes)
    properties = {**source.properties(), "proj:shape": [grid.height, grid.width]}
    place: dict[str, Any] = {}
    if grid.crs is not None:
        bbox = transform_bounds(grid.crs, "EPSG:4326", *grid.bounds)
        place = {"bbox": bbox, "geometry": mapping(box(*bbox))}
        code = grid.crs.to_epsg()
        properties["proj:code"] = None if code is None else f"EPSG:{code}"
        if code is None:
            properties["proj:wkt2"] = grid.crs.to_wkt(version="WKT2_2019")
        properties["proj:transform"] = list(grid.transform)[:6]
    _write(folder / ITEM, map_id(label), OF_MAPS, properties, assets, place)


def _bands(path: Path, classes: ClassTable | ClassTree) -> list[dict[str, Any]]:
    """Return the bands of a raster of whole numbers as STAC has them, with what values mean."""
    with quiet_without_place(), rasterio.open(path) as file:
        names = [name or "label" for name in file.descriptions]
        stored = {"data_type": file.dtypes[0], "nodata": file.nodata, "raster:sampling": "area"}
    zero = NO_REFERENCE_MEANING if len(names) > 1 else "rejected"  # a filled map rejects nothing
    meanings: dict[str, dict[str, Any]] = {
        "flag": {"classification:classes": classes_of(FLAGS, zero="no data")},
        CONFIDENCE_CLASS: {"classification:classes": classes_of(CONFIDENCE_CLASSES)},
        PERCENT: {"unit": "%"},
    }
    labels = {"classification:classes": classes_of(classes, zero=zero)}
    return [{"name": name, **stored, **meanings.get(name, labels)} for name in names]


def classes_of(classes: ClassTable | ClassTree, *, zero: str | None = None) -> list[dict[str, Any]]:
    """Return classes as the classification extension has them; a group lists its members."""
    table = classes if isinstance(classes, ClassTable) else classes.table
    groups = () if isinstance(classes, ClassTable) else classes.groups
    members = {group.name: group.members for group in groups}
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
    path: Path,
    identity: str,
    extensions: Sequence[str],
    properties: Mapping[str, Any],
    assets: Mapping[str, Any],
    place: Mapping[str, Any],
) -> None:
    item = {
        "type": "Feature",
        "stac_version": "1.1.0",
        "stac_extensions": [_EXTENSION.format(one) for one in extensions],
        "id": identity,
        "geometry": None,
        "properties": properties,
        "links": [],
        "assets": assets,
        **place,
    }
    with replacing(path, overwrite=True) as work:
        work.write_text(json.dumps(item, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
