"""ENVI files: what their headers say, and which data belong to them.

GDAL reads the pixels, but no units; it reads an unknown interleave as bsq, the missing end of a
short file as zeros, and a nodata value that is not a number as 0. So the header is read here, too,
and what GDAL relies on is checked before it opens a file.

Reference: "ENVI Header Files", NV5 Geospatial documentation.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from hsreject.errors import FileError
from hsreject.files import starts_with
from hsreject.io.remote import RemotePath

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

# Bytes of a value of each ENVI data type but the complex ones.
_ITEM_SIZES = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 12: 2, 13: 4, 14: 8, 15: 8}
_LARGEST_SIDE = 2**31 - 1
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?inf|nan", re.IGNORECASE)
# A list may start on the line below its name.
_FIELD = re.compile(
    r"^ *([^={}\n;]+?)[ \t]*=[ \t]*((?:\n\s*)?\{[^}]*(?:\}|\Z)|[^\n]*)", re.MULTILINE
)
# What GDAL reads itself, and only if name and value stand on one line, plainly spelled.
_READ_BY_GDAL = {
    "samples", "lines", "bands", "header offset", "file type", "data type", "interleave",
    "byte order", "data ignore value", "map info", "coordinate system string", "projection info",
    "data gain values", "data offset values", "class names", "class lookup",
}  # fmt: skip
# Fields that other formats carry in their tags.
_LISTS = ("wavelength", "fwhm", "bbl")
_SINGLE = ("wavelength units", "reflectance scale factor")
_SYNONYMS = {"wavelengths": "wavelength", "wavelength unit": "wavelength units"}

HEADER = ".hdr"
# Files that live beside a data file under the same name without being one.
_COMPANIONS = {
    ".aux", ".blw", ".clr", ".csv", ".dbf", ".enp", ".geojson", ".gif", ".gpkg", ".h5", ".hdf",
    ".he5", ".html", ".j2k", ".jp2", ".jpeg", ".jpg", ".json", ".kml", ".log", ".mat", ".md",
    ".msk", ".nc", ".npy", ".npz", ".ovr", ".pdf", ".png", ".prj", ".qml", ".rrd", ".shp", ".shx",
    ".sta", ".stx", ".svg", ".tfw", ".tif", ".tiff", ".toml", ".txt", ".vrt", ".wld", ".xml",
    ".zip", HEADER,
}  # fmt: skip
# How files begin that say themselves what they are: raw pixels do so by chance only.
_OWN_MARKS = (
    *(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+", b"EHFA_HEADER_TAG", b"\0\0\0\x0cjP  ", b"\xffO\xffQ"),
    *(b"\x89HDF", b"CDF\1", b"CDF\2", b"CDF\5", b"\x93NUMPY", b"MATLAB 5.0", b"SQLite format 3"),
    *(b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"PK\3\4", b"<?xml", b"<VRTDataset"),
)


# The text of a header and its fields.


def _read_text(path: Path) -> str:
    """Return the text of a header file, UTF-8 or Latin-1, with plain line ends."""
    if path.stat().st_size > 64 * 2**20:  # that of thousands of bands has a few hundred kilobytes
        raise FileError(
            f"{path} is not a header: it has {path.stat().st_size} bytes. "
            "Give the data file, or the small text file that describes it."
        )
    raw = path.read_bytes()
    if b"\0" in raw or raw.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        raise FileError(
            f"{path} holds binary data or a byte-order mark (UTF-16, or UTF-8 with a mark). Save a "
            "header as plain UTF-8, so that it starts with the letters ENVI."
        )
    return decoded(raw).replace("\r\n", "\n").replace("\r", "\n")


def decoded(raw: bytes) -> str:
    """Return bytes as text: UTF-8, or else Latin-1, which takes anything."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def read_fields(path: Path) -> dict[str, str]:
    """Return the fields of an ENVI header file."""
    return parse_fields(_read_text(path), path=path)


def parse_fields(text: str, *, path: Path) -> dict[str, str]:
    """Return the fields of an ENVI header: lower-case names, lists without their braces."""
    first, _, body = text.partition("\n")
    if not first.startswith("ENVI"):
        raise FileError(
            f"{path} is not an ENVI header: its first line must be 'ENVI' "
            f"(found '{first.strip()[:40]}')."
        )
    fields = {}
    for match in _FIELD.finditer(body):
        written, value = match.groups()
        name = _field_name(written)
        if value.lstrip().startswith("{") and not value.endswith("}"):
            raise FileError(
                f"{path}: the list '{name}' is opened with a brace and never closed. "
                "Add the missing '}'."
            )
        _check_spelling(name, written, value, path=path)
        fields[name] = _plain_value(value)
    return fields


def _check_spelling(name: str, written: str, value: str, *, path: Path) -> None:
    """Raise if GDAL would overlook a field that it has to read."""
    plain = written.lower().replace("_", " ") == name and not value.startswith("\n")
    in_braces = name == "data ignore value" and value.startswith("{")
    if name in _READ_BY_GDAL and (not plain or in_braces):
        raise FileError(
            f"{path}: GDAL, which reads the pixels, does not understand '{name}' as it is written. "
            f"Write '{name} = ' with single blanks and no tab, then its value on the same line"
            f"{', without a brace' if in_braces else ''}."
        )


def check_same(
    fields: Mapping[str, str], read_by_gdal: Mapping[str, str], *, path: str | Path
) -> None:
    """Raise where GDAL read another layout, place or nodata out of the header than stands there."""
    theirs = {_field_name(name): _plain_value(value) for name, value in read_by_gdal.items()}
    for name in sorted(_READ_BY_GDAL & fields.keys()):
        # rasterio loses values with an equals sign inside, such as a rotation
        if theirs.get(name) != fields[name] and "=" not in fields[name]:
            raise FileError(
                f"{path} says '{name} = {fields[name][:40]}', but GDAL, which reads the pixels, "
                f"reads '{theirs.get(name, 'nothing')[:40]}' there. Look for a stray brace in the "
                "lines above it, or for a field that occurs twice."
            )


def _field_name(text: str) -> str:
    return " ".join(text.replace("_", " ").lower().split())


def _plain_value(text: str) -> str:
    return " ".join(text.strip().removeprefix("{").removesuffix("}").split())


def fields_from_tags(
    envi: Mapping[str, str], tags: Mapping[str, str], n_bands: int
) -> dict[str, str]:
    """Return the ENVI fields that another format carries in its tags.

    Some software copies them into a metadata domain named ENVI, some into the tags of the file. A
    list in those counts only if it has one item per band: tags stay when bands are left out.
    """
    fields = {_field_name(name): _plain_value(value) for name, value in envi.items()}
    for name, value in tags.items():
        key = _SYNONYMS.get(_field_name(name), _field_name(name))
        words = re.split(r"[,;\s]+", _plain_value(value).strip(",;[]() "))
        if key in _LISTS and key not in fields and len(words) == n_bands > 1:
            fields[key] = ", ".join(words)
        elif key in _SINGLE and key not in fields:
            fields[key] = _plain_value(value)
    return fields


def items(fields: Mapping[str, str], name: str) -> list[str]:
    """Return the items of a list field; an empty list if it is not there."""
    text = fields.get(name, "").strip().removesuffix(",")
    return [item.strip() for item in text.split(",")] if text else []


def band_numbers(
    fields: Mapping[str, str], name: str, *, n_bands: int, where: str
) -> NDArray[np.float64] | None:
    """Return the numbers of a list field, which must be one per band; None if it is not there."""
    words = items(fields, name)
    if not words:
        return None
    _check_count(len(words), str(n_bands), name=name, where=where)
    return np.array([number(word, name=name, where=where) for word in words])


def _check_count(count: int, n_bands: str, *, name: str, where: object) -> None:
    if str(count) != n_bands:
        raise FileError(
            f"{where}: '{name}' has {count} values for {n_bands} bands. "
            "Give one value per band, separated by commas, or remove the field."
        )


def number(word: str, *, name: str, where: str) -> float:
    """Return a word as a number; the error says where it stands."""
    try:
        return float(word)
    except ValueError:
        raise FileError(
            f"{where}: '{word[:40]}' in '{name}' is not a number. Write numbers only; the unit of "
            "wavelengths stands in 'wavelength units'."
        ) from None


# The layout that a header claims.


def _whole_number(
    fields: Mapping[str, str], name: str, path: Path, *, default: str = "nothing", least: int = 0
) -> int:
    text = fields.get(name, default)
    if not re.fullmatch(r"[+-]?\d{1,18}", text) or not least <= int(text) <= _LARGEST_SIDE:
        raise FileError(
            f"{path}: '{name} = {text[:40]}' must be a whole number "
            f"from {least} to {_LARGEST_SIDE}."
        )
    return int(text)


def _data_length(fields: Mapping[str, str], *, path: Path) -> int:
    """Return how many bytes the data file must have, after checking what GDAL relies on."""
    sides = [_whole_number(fields, n, path, least=1) for n in ("samples", "lines", "bands")]
    offset = _whole_number(fields, "header offset", path, default="0")
    item_size = _ITEM_SIZES.get(_whole_number(fields, "data type", path), 0)
    nodata = fields.get("data ignore value", "0").rstrip(", ")
    codes = ", ".join(map(str, _ITEM_SIZES))
    frames = ("major frame offsets", "minor frame offsets")
    expected = {
        "data type": (item_size, f"one of {codes} (complex numbers are not read)"),
        "interleave": (
            fields.get("interleave", "").lower() in {"bil", "bip", "bsq"},
            "bil, bip or bsq",
        ),
        "byte order": (fields.get("byte order", "0") in {"0", "1"}, "0 (little endian) or 1 (big)"),
        "data ignore value": (_NUMBER.fullmatch(nodata), "a number, without braces"),
        "file type": ("library" not in fields.get("file type", "").lower(), "that of an image"),
        **{
            name: (not fields.get(name, "").strip("0., "), "0 for GDAL to read it")
            for name in frames
        },
    }
    for name, (fits, words) in expected.items():
        if not fits:
            text = fields.get(name, "nothing")[:40]
            raise FileError(
                f"{path}: '{name} = {text}' must be {words}. Correct it, or export again."
            )
    for word in items(fields, "map info")[1:7]:
        number(word, name="map info", where=str(path))
    for name in ("data gain values", "data offset values"):
        if listed := items(fields, name):
            _check_count(len(listed), fields["bands"], name=name, where=path)
    return offset + math.prod(sides) * item_size


def check_length(fields: Mapping[str, str], *, header: Path, data: Path) -> list[str]:
    """Raise if the data file is shorter than its header says; note if it is longer."""
    expected = _data_length(fields, path=header)
    length = data.stat().st_size
    compressed = _whole_number(fields, "file compression", header, default="0") != 0
    most = 1032 if compressed else 1  # no deflate stream shrinks by more than 1032 to 1
    if length * most < expected:
        raise FileError(
            f"{data} is shorter than its header says: {header.name} describes "
            f"{fields['lines']} lines x {fields['samples']} samples x {fields['bands']} bands, "
            f"{expected} bytes, but the file has {length}. Copy it again or correct the header."
        )
    if length > expected and not compressed:
        return [
            f"{data.name} is longer than its header says by {length - expected} bytes: not read."
        ]
    return []


def is_exact(data: Path) -> bool:
    """Tell whether a file is raw pixels: it has the length that its header says, and no mark."""
    header = header_of(data)
    if header is None or not starts_with(header, b"ENVI") or starts_with(data, *_OWN_MARKS):
        return False
    return data.stat().st_size == _data_length(read_fields(header), path=header)


# Which header belongs to which data file.


def header_of(data: Path) -> Path | None:
    """Return the header beside a data file: `x.img.hdr` before `x.hdr`, as GDAL looks for it."""
    for name in (data.name + HEADER, data.stem + HEADER):
        alike = _named(data, {name})
        if alike:
            return next((path for path in alike if path.name == name), alike[0])
    return None


def belongs(data: Path, header: Path) -> bool:
    """Tell whether a data file holds the pixels that a header of its name describes.

    What has a mark or an ending of its own does not, nor does a file of another length where one
    beside it has the length that the header claims.
    """
    own_header = header.stem.lower() == data.name.lower()
    if data.suffix.lower() in _COMPANIONS and not own_header:
        return False
    marked = starts_with(data, *_OWN_MARKS)
    others = [] if isinstance(data, RemotePath) else data_beside(header)
    if not marked and others in ([], [data]):
        return True  # the only one: a length that differs is said of it
    if not starts_with(header, b"ENVI"):
        return not marked
    length = _data_length(read_fields(header), path=header)
    if data.stat().st_size == length:
        return True
    return not marked and not any(other.stat().st_size == length for other in others)


def data_of(header: Path, suffixes: Collection[str] | None = None) -> Path:
    """Return the data file of a header: `x.hdr` has `x` or `x.anything`, `x.img.hdr` has `x.img`.

    Of several files, the one with as many bytes as the header describes is taken. A header that
    describes a file of another format has one of `suffixes`.
    """
    if isinstance(header, RemotePath):
        raise FileError(f"{header} is the header of a scene. Give the URL of its data file.")
    if suffixes is None:
        fitting = [path for path in data_beside(header) if belongs(path, header)]
    else:
        fitting = _named(header, {header.stem, *(header.stem + suffix for suffix in suffixes)})
    named = [path for path in fitting if path.name.lower() == header.stem.lower()]
    if not fitting:
        raise FileError(
            f"The data file of {header} is missing: looked for {header.stem} and "
            f"{header.stem}.* in the same folder. Put the two files side by side."
        )
    if len(fitting) > 1 and not named:
        names = ", ".join(path.name for path in fitting)
        raise FileError(f"Several files could belong to {header}: {names}. Give the data file.")
    return (named or fitting)[0]


def data_beside(header: Path) -> list[Path]:
    """Return the data files that a header could belong to: those of its name."""
    beside = [path for path in sorted(header.parent.iterdir()) if path.is_file()]
    stem = header.stem.lower()
    return [
        path
        for path in beside
        if path.name.lower() == stem
        or (path.stem.lower() == stem and path.suffix.lower() not in _COMPANIONS)
    ]


def _named(beside: Path, names: set[str]) -> list[Path]:
    """Return the files in the folder of `beside` that have one of the names, in any case."""
    if isinstance(beside, RemotePath):  # servers do not list what they have
        asked = [beside.with_name(name) for name in sorted(names)]
        return [path for path in asked if path.is_file()]
    lowered = {name.lower() for name in names}
    there = sorted(beside.parent.iterdir())
    return [path for path in there if path.name.lower() in lowered and path.is_file()]
