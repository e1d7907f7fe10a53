"""The Esri header of a .bil, .bip or .bsq file: its size is checked before GDAL opens it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hsreject.errors import FileError

if TYPE_CHECKING:
    from pathlib import Path

_NEEDED = ("NROWS", "NCOLS")


def is_esri_header(text: str) -> bool:
    """Tell whether the text has the words an Esri header must have."""
    return all(word in _fields(text) for word in _NEEDED)


def check_length(text: str, *, header: Path, data: Path) -> None:
    """Raise if the data file is shorter than the Esri header says."""
    fields = _fields(text)
    try:
        rows, columns = (int(fields[word]) for word in _NEEDED)
        bands, bits = int(fields.get("NBANDS", 1)), int(fields.get("NBITS", 8))
        wanted = int(fields.get("SKIPBYTES", 0)) + -(-rows * columns * bands * bits // 8)
    except ValueError as error:
        raise FileError(f"{header} is an Esri header with a broken number: {error}.") from None
    if min(rows, columns, bands, bits) < 1:
        raise FileError(f"{header} is an Esri header without pixels: every size must be above 0.")
    found = data.stat().st_size
    if found < wanted:
        raise FileError(
            f"{data} is shorter than its header says: the Esri header {header.name} describes "
            f"{rows} rows x {columns} columns x {bands} bands of {bits} bits, {wanted} bytes, "
            f"but the file has {found}. Copy it again or correct the header."
        )


def _fields(text: str) -> dict[str, str]:
    pairs = (line.split(None, 1) for line in text.splitlines())
    return {pair[0].upper(): pair[1].split()[0] for pair in pairs if len(pair) == 2}
