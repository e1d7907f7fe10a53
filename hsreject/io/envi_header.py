"""The ENVI header: its fields as text, for what GDAL does not hand over.

GDAL reads the pixels and never looks at units, so the header is read here as well.

Reference: "ENVI Header Files", NV5 Geospatial documentation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hsreject.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# A header of a scene with thousands of bands is a few hundred kilobytes.
_LARGEST_HEADER = 64 * 2**20
_LISTS = ("wavelength", "fwhm", "bbl")
_SINGLE = ("wavelength units", "reflectance scale factor")
_SYNONYMS = {"wavelengths": "wavelength", "wavelength unit": "wavelength units"}
# What GDAL reads by itself, and only where it stands on one line under its plain name.
_READ_BY_GDAL = {
    "samples", "lines", "bands", "header offset", "file type", "data type", "interleave",
    "byte order", "data ignore value", "map info", "coordinate system string", "projection info",
    "data gain values", "data offset values", "class names", "class lookup",
}  # fmt: skip
# A list may start on the line below its name.
_FIELD = re.compile(
    r"^ *([^={}\n;]+?)[ \t]*=[ \t]*((?:\n\s*)?\{[^}]*(?:\}|\Z)|[^\n]*)", re.MULTILINE
)


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
        written, value = match.groups()
        name = field_name(written)
        if value.lstrip().startswith("{") and not value.endswith("}"):
            raise FileError(
                f"{path}: the list '{name}' is opened with a brace and never closed. "
                "Add the missing '}'."
            )
        _check_spelling(name, written, value, path=path)
        fields[name] = plain_value(value)
    return fields


def _check_spelling(name: str, written: str, value: str, *, path: Path) -> None:
    """Raise if GDAL would pass over a field that it has to read."""
    plain = written.lower().replace("_", " ") == name and not value.startswith("\n")
    in_braces = name == "data ignore value" and value.startswith("{")
    if name in _READ_BY_GDAL and (not plain or in_braces):
        raise FileError(
            f"{path}: GDAL, which reads the pixels, does not understand '{name}' as it is written. "
            f"Write '{name} = ' with single blanks and no tab, then its value on the same line"
            f"{', without a brace' if in_braces else ''}."
        )


def field_name(text: str) -> str:
    """Return the name of a field in lower case with single blanks."""
    return " ".join(text.replace("_", " ").lower().split())


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
        words = re.split(r"[,;\s]+", plain_value(value).strip(",;[]() "))
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


def band_numbers(
    fields: Mapping[str, str], name: str, *, n_bands: int, where: str
) -> list[float] | None:
    """Return the numbers of a list field, which must be one a band; None if it is not there."""
    words = items(fields, name)
    if not words:
        return None
    if len(words) != n_bands:
        raise FileError(
            f"{where}: '{name}' has {len(words)} values for {n_bands} bands. "
            "Give one value a band, separated by commas, or remove the field."
        )
    return [number(word, name=name, where=where) for word in words]


def number(word: str, *, name: str, where: str) -> float:
    """Return a word as a number, or say where it stands."""
    try:
        return float(word)
    except ValueError:
        raise FileError(f"{where}: '{word[:40]}' in '{name}' is not a number.") from None
