"""The ENVI header: the fields that GDAL does not hand over, and the checks before GDAL opens.

GDAL reads the pixels. It takes an unknown interleave for bsq, a short file for one full of zeros
and never looks at units, so the header is read here as well, as text.

Reference: "ENVI Header Files", NV5 Geospatial documentation.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from hsreject.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Bytes a value of each ENVI data type; 6 and 9 are complex.
ITEM_SIZES = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 6: 8, 9: 16, 12: 2, 13: 4, 14: 8, 15: 8}
COMPLEX_TYPES = (6, 9)
INTERLEAVES = ("bil", "bip", "bsq")

# A header of a scene with thousands of bands is a few hundred kilobytes.
_LARGEST_HEADER = 64 * 2**20
# No deflate stream shrinks by more than 1032 to 1.
_LARGEST_COMPRESSION = 1032
_LARGEST_SIDE = 2**31 - 1
_LISTS = ("wavelength", "fwhm", "bbl")
_SINGLE = ("wavelength units", "reflectance scale factor")
_SYNONYMS = {"wavelengths": "wavelength", "wavelength unit": "wavelength units"}
_FIELD = re.compile(r"^[ \t]*([^={}\n;]+?)[ \t]*=[ \t]*(\{[^}]*\}|[^\n]*)", re.MULTILINE)


def read_text(path: Path) -> str:
    """Return the text of a header file, UTF-8 or Latin-1, with plain line ends."""
    if path.stat().st_size > _LARGEST_HEADER:
        raise FileError(
            f"{path} is not a header: it has {path.stat().st_size} bytes. "
            "Give the data file, or the small text file that describes it."
        )
    raw = path.read_bytes()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        raise FileError(
            f"{path} starts with a byte-order mark (UTF-16, or UTF-8 with a mark). "
            "Save it as plain UTF-8, so that it starts with the letters ENVI."
        )
    if b"\0" in raw:
        raise FileError(f"{path} is not a header: it holds binary data, not text.")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_fields(text: str, *, path: Path) -> dict[str, str]:
    r"""Return the fields of an ENVI header: lower-case names, lists without their braces.

    Examples
    --------
    >>> from pathlib import Path
    >>> parse_fields("ENVI\nSamples = 3\nbbl = {1,\n 0}", path=Path("scene.hdr"))
    {'samples': '3', 'bbl': '1, 0'}
    """
    first, _, body = text.partition("\n")
    if not first.startswith("ENVI"):
        raise FileError(
            f"{path} is not an ENVI header: its first line must be 'ENVI' "
            f"(found '{first.strip()[:40]}')."
        )
    fields = {}
    for match in _FIELD.finditer(body):
        name, value = match.groups()
        if value.startswith("{") and not value.endswith("}"):
            raise FileError(
                f"{path}: the list '{name.strip()}' is opened with a brace and never closed. "
                "Add the missing '}'."
            )
        fields[field_name(name)] = plain_value(value)
    return fields


def field_name(text: str) -> str:
    """Return the name of a field in lower case with blanks.

    Inner blanks are kept as they are: to GDAL, too, "data  type" with two blanks is another field.
    """
    return text.strip().replace("_", " ").lower()


def plain_value(text: str) -> str:
    """Return the value of a field on one line and without braces."""
    return " ".join(text.strip().removeprefix("{").removesuffix("}").split())


def fields_from_tags(
    envi: Mapping[str, str], tags: Mapping[str, str], n_bands: int
) -> dict[str, str]:
    """Return the ENVI fields that another format carries in its tags.

    Some software copies them into a metadata domain named ENVI, some into the tags of the file. A
    list among the latter counts only if it has one item a band: tags survive a choice of bands.
    """
    fields = {field_name(name): plain_value(value) for name, value in envi.items()}
    for name, value in tags.items():
        key = _SYNONYMS.get(field_name(name), field_name(name))
        words = re.split(r"[,;\s]+", plain_value(value).strip(",; "))
        if key in _LISTS and key not in fields and len(words) == n_bands > 1:
            fields[key] = ", ".join(words)
        elif key in _SINGLE and key not in fields:
            fields[key] = plain_value(value)
    return fields


def items(fields: Mapping[str, str], name: str) -> list[str]:
    """Return the items of a list field; an empty list if it is not there.

    Examples
    --------
    >>> items({"bbl": "1, 0,"}, "bbl")
    ['1', '0']
    """
    text = fields.get(name, "").strip().removesuffix(",")
    return [item.strip() for item in text.split(",")] if text else []


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
