"""The layout that an ENVI header claims, checked before GDAL opens the file.

GDAL takes an unknown interleave for bsq, a short file for one full of zeros and a word that is no
number for the nodata value 0: what it reads must be right before it reads it.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from hsreject.errors import FileError
from hsreject.io.envi_header import items

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Bytes a value of each ENVI data type; 6 and 9 are complex.
ITEM_SIZES = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 6: 8, 9: 16, 12: 2, 13: 4, 14: 8, 15: 8}
COMPLEX_TYPES = (6, 9)
INTERLEAVES = ("bil", "bip", "bsq")

# No deflate stream shrinks by more than 1032 to 1.
_LARGEST_COMPRESSION = 1032
_LARGEST_SIDE = 2**31 - 1
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?inf|nan", re.IGNORECASE)


def whole_number(
    fields: Mapping[str, str],
    name: str,
    *,
    path: Path,
    default: int | None = None,
    smallest: int = 0,
) -> int:
    """Return a field that must be a whole number."""
    text = fields.get(name)
    if text is None:
        if default is None:
            raise FileError(
                f"{path} has no '{name}': an ENVI header needs samples, lines, bands, "
                "data type and interleave."
            )
        return default
    if not re.fullmatch(r"[+-]?\d{1,18}", text) or not smallest <= int(text) <= _LARGEST_SIDE:
        raise FileError(
            f"{path}: '{name} = {text[:40]}' must be a whole number "
            f"from {smallest} to {_LARGEST_SIDE}."
        )
    return int(text)


def data_length(fields: Mapping[str, str], *, path: Path) -> int:
    """Return how many bytes the data file must have, after checking the fields that say so."""
    sides = [whole_number(fields, n, path=path, smallest=1) for n in ("samples", "lines", "bands")]
    offset = whole_number(fields, "header offset", path=path, default=0)
    data_type = whole_number(fields, "data type", path=path)
    if data_type not in ITEM_SIZES:
        raise FileError(
            f"{path}: unknown data type {data_type}. "
            f"ENVI knows {', '.join(str(known) for known in ITEM_SIZES)}."
        )
    if data_type in COMPLEX_TYPES:
        raise FileError(
            f"{path} describes complex numbers (data type {data_type}). "
            "Write their amplitude (data type 4) and open that."
        )
    _check_layout(fields, path=path)
    _check_values(fields, path=path)
    return offset + math.prod(sides) * ITEM_SIZES[data_type]


def _check_layout(fields: Mapping[str, str], *, path: Path) -> None:
    if (interleave := fields.get("interleave", "nothing").lower()) not in INTERLEAVES:
        raise FileError(
            f"{path}: unknown interleave '{interleave[:40]}'. It must be bil, bip or bsq."
        )
    if whole_number(fields, "byte order", path=path, default=0) > 1:
        raise FileError(
            f"{path}: 'byte order = {fields['byte order']}' must be 0 (little endian) or 1 (big)."
        )
    for name in ("major frame offsets", "minor frame offsets"):
        if any(item.strip("0.") for item in items(fields, name)):
            raise FileError(
                f"{path} has {name}, which GDAL would read as pixels. "
                "Export the scene without them."
            )
    if "spectral library" in fields.get("file type", "").lower():
        raise FileError(f"{path} describes a spectral library, not an image.")


def _check_values(fields: Mapping[str, str], *, path: Path) -> None:
    """Raise where GDAL would read another nodata value or other gains than the header means."""
    nodata = fields.get("data ignore value")
    if nodata is not None and not _NUMBER.fullmatch(nodata.rstrip(", ")):
        raise FileError(
            f"{path}: 'data ignore value = {nodata[:40]}' must be a number, without braces. "
            "Correct it, or remove the field."
        )
    for name in ("data gain values", "data offset values"):
        count = len(items(fields, name))
        if count and str(count) != fields["bands"]:
            raise FileError(
                f"{path}: '{name}' has {count} values for {fields['bands']} bands. "
                "Give one value a band, separated by commas, or remove the field."
            )


def check_length(fields: Mapping[str, str], *, header: Path, data: Path) -> list[str]:
    """Raise if the data file is shorter than its header says; return what was noted."""
    wanted = data_length(fields, path=header)
    found = data.stat().st_size
    compressed = whole_number(fields, "file compression", path=header, default=0) != 0
    if found * (_LARGEST_COMPRESSION if compressed else 1) < wanted:
        raise FileError(
            f"{data} is shorter than its header says: {header.name} describes "
            f"{fields['lines']} lines x {fields['samples']} samples x {fields['bands']} bands, "
            f"{wanted} bytes, but the file has {found}. Copy it again or correct the header."
        )
    if found > wanted and not compressed:
        return [f"{data.name} is longer than its header says by {found - wanted} bytes: not read."]
    return []
