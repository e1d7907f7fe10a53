"""Class names and colours of a label raster: from category names, attribute and colour tables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from hsreject import schema
from hsreject.io.raster_file import virtual_raster

if TYPE_CHECKING:
    from pathlib import Path

# Usage codes of GDAL's raster attribute table.
_NAME, _MIN_MAX, _RED, _GREEN, _BLUE = "2", "5", "6", "7", "8"
_VALUE_COLUMNS = {"value", "values", "class_value"}
_NAME_COLUMNS = {"class_name", "classname", "class", "name", "names", "category", "label"}


@dataclass(frozen=True)
class StatedClasses:
    """What a file says about its classes.

    Parameters
    ----------
    names : dict
        Name of each value; empty if the file names none.
    colors : dict
        Colour of each value, as ``#rrggbb``; empty if the file colours none.
    """

    names: dict[int, str] = field(default_factory=dict)
    colors: dict[int, str] = field(default_factory=dict)


def stated_classes(path: Path, *, nodata: float | None = None) -> StatedClasses:
    """Return the class names and colours of a raster's first band; `nodata` is no class.

    GDAL describes every format's names in the same words when it writes a virtual raster, so
    that is what is read: ENVI `class names`, GeoTIFF category names, attribute tables.
    """
    root = ET.fromstring(virtual_raster(path))  # noqa: S314  written by GDAL
    band = root.find("VRTRasterBand")
    if band is None:
        return StatedClasses()
    names = {
        value: (element.text or "").strip()
        for value, element in enumerate(band.iterfind("CategoryNames/Category"))
    }
    entries = enumerate(band.iterfind("ColorTable/Entry"))
    colors = {
        value: _hex(*(entry.get(c, "0") for c in ("c1", "c2", "c3"))) for value, entry in entries
    }
    table = band.find("GDALRasterAttributeTable")
    if table is not None:
        listed = _attribute_table(table)
        names, colors = names or listed.names, colors or listed.colors
    names = names or _tagged_names(band)
    named = {
        value: name
        for value, name in names.items()
        if name and value != nodata and name != unused_name(value)
    }
    return StatedClasses(named, colors)


def unused_name(value: int) -> str:
    """Return what a list of names without gaps calls a value that is no class."""
    return f"unused {value}"


def _tagged_names(band: ET.Element) -> dict[int, str]:
    """Return the names that hsreject keeps inside a GeoTIFF, for when its side file got lost."""
    tags = {tag.get("key"): tag.text or "" for tag in band.iterfind("Metadata/MDI")}
    try:
        values = [int(value) for value in tags["flag_values"].split()]
        named = dict(zip(values, json.loads(tags["class_names"]), strict=True))
    except (KeyError, ValueError):  # not a tag of ours
        return {}
    return {schema.NO_REFERENCE: tags.get(schema.ZERO_MEANING, "")} | named


def _attribute_table(table: ET.Element) -> StatedClasses:
    usages = [column.findtext("Usage", "0") for column in table.iterfind("FieldDefn")]
    titles = [column.findtext("Name", "").lower() for column in table.iterfind("FieldDefn")]
    value_at = _column(usages, _MIN_MAX, titles, _VALUE_COLUMNS)
    name_at = _column(usages, _NAME, titles, _NAME_COLUMNS)
    color_at = [usages.index(code) for code in (_RED, _GREEN, _BLUE) if code in usages]
    rows = {}
    for row in table.iterfind("Row"):
        cells = [(cell.text or "").strip() for cell in row.iterfind("F")]
        value = _value(row.get("index", "0") if value_at is None else cells[value_at])
        if value is not None:
            rows[value] = cells
    names = {} if name_at is None else {value: cells[name_at] for value, cells in rows.items()}
    if len(color_at) < 3:
        return StatedClasses(names)
    colors = {value: _hex(*(cells[column] for column in color_at)) for value, cells in rows.items()}
    return StatedClasses(names, colors)


def _value(text: str) -> int | None:
    """Return the label that a cell means, or None if it means none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def _column(usages: list[str], usage: str, titles: list[str], known: set[str]) -> int | None:
    if usage in usages:
        return usages.index(usage)
    return next((place for place, title in enumerate(titles) if title in known), None)


def _hex(red: str, green: str, blue: str) -> str:
    return "#" + "".join(f"{min(max(int(float(c)), 0), 255):02x}" for c in (red, green, blue))
