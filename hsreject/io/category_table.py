"""What each value of a written map means, in the forms in which GDAL and QGIS look for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from hsreject import schema
from hsreject.classes import ClassTable
from hsreject.errors import InputError

if TYPE_CHECKING:
    import numpy as np

_REJECTED_COLOR = "#000000"
_NO_REFERENCE_COLOR = "#ffffff"

# Column name, GDAL field type (0 integer, 2 string) and usage of a thematic attribute table.
_COLUMNS = (
    ("Value", 0, 5),
    ("Class", 2, 2),
    ("Red", 0, 6),
    ("Green", 0, 7),
    ("Blue", 0, 8),
    ("Alpha", 0, 9),
)


@dataclass(frozen=True)
class CategoryTable:
    """The values of a label map on disk: the classes, what 0 means, and the type.

    Parameters
    ----------
    classes : ClassTable
        The classes, without 0.
    zero : str
        What 0 means ("rejected", "no reference").
    dtype : numpy dtype
        The type on disk; its largest value is no data.
    """

    classes: ClassTable
    zero: str
    dtype: np.dtype[np.unsignedinteger]

    def __post_init__(self) -> None:
        if max(self.classes.values, default=0) >= self.nodata:
            raise InputError(
                f"Class values must be below {self.nodata} to be written as {self.dtype} "
                f"(found {max(self.classes.values)}). Number the classes from 1."
            )

    @property
    def nodata(self) -> int:
        """The value that means no data."""
        return schema.nodata_label(self.dtype)

    @property
    def names(self) -> dict[int, str]:
        """The name of each value, ascending, 0 included, no data not."""
        named = {0: self.zero, **dict(zip(self.classes.values, self.classes.names, strict=True))}
        return dict(sorted(named.items()))

    @property
    def colors(self) -> dict[int, tuple[int, int, int]]:
        """The colour of each value, ascending, 0 included, no data not."""
        zero = _REJECTED_COLOR if self.zero == "rejected" else _NO_REFERENCE_COLOR
        chosen = {0: zero, **dict(zip(self.classes.values, self.classes.colors, strict=True))}
        return {value: _rgb(color) for value, color in sorted(chosen.items())}

    def tags(self) -> dict[str, str]:
        """Return band tags that hold the table inside the file, should the side file get lost."""
        attrs = self.classes.to_attrs()
        return {
            "flag_values": " ".join(str(value) for value in self.classes.values),
            "flag_meanings": attrs["flag_meanings"],
            "flag_colors": attrs["flag_colors"],
            "class_names": json.dumps(list(self.classes.names), ensure_ascii=False),
            schema.ZERO_MEANING: self.zero,
        }

    def to_pam(self) -> bytes:
        """Return the text of GDAL's side file (.aux.xml).

        GDAL keeps names of categories nowhere else for a GeoTIFF. The list of category names is
        what every QGIS shows in the legend; the attribute table lets newer ones (3.30 and up) list
        only the classes instead of all 256 entries of the palette.
        """
        root = ET.Element("PAMDataset")
        band = ET.SubElement(root, "PAMRasterBand", band="1")
        listed = ET.SubElement(band, "CategoryNames")
        for value in range(max(self.names) + 1):
            ET.SubElement(listed, "Category").text = self.names.get(value, "")
        table = ET.SubElement(band, "GDALRasterAttributeTable", tableType="thematic")
        for index, (name, kind, usage) in enumerate(_COLUMNS):
            column = ET.SubElement(table, "FieldDefn", index=str(index))
            ET.SubElement(column, "Name").text = name
            ET.SubElement(column, "Type").text = str(kind)
            ET.SubElement(column, "Usage").text = str(usage)
        for index, (value, name) in enumerate(self.names.items()):
            row = ET.SubElement(table, "Row", index=str(index))
            for cell in (value, name, *self.colors[value], 255):
                ET.SubElement(row, "F").text = str(cell)
        ET.indent(root)
        # No XML declaration: GDAL passes over a side file whose first node is not PAMDataset.
        return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=False))


def _rgb(color: str) -> tuple[int, int, int]:
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return red, green, blue
