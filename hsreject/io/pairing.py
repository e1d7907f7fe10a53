"""Which header belongs to which data file, whichever of the two is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hsreject.errors import FileError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

HEADER = ".hdr"
# Files that live beside a data file under the same name without being one.
_COMPANIONS = {
    ".aux", ".csv", ".enp", ".gif", ".jpeg", ".jpg", ".json", ".kml", ".md", ".ovr", ".pdf", ".png",
    ".prj", ".qml", ".sta", ".stx", ".tfw", ".tif", ".tiff", ".txt", ".xml", ".zip", HEADER,
}  # fmt: skip


def is_header(path: Path) -> bool:
    """Tell whether a path is named like a header."""
    return path.suffix.lower() == HEADER


def header_of(data: Path) -> Path | None:
    """Return the header beside a data file: `x.img.hdr` before `x.hdr`, as GDAL looks for it."""
    appended, replaced = data.name + HEADER, data.stem + HEADER
    siblings = sorted(data.parent.iterdir())
    for wanted in (appended, replaced):
        for exact in (True, False):
            for path in siblings:
                same = path.name == wanted if exact else path.name.lower() == wanted.lower()
                if same and path.is_file():
                    return path
    return None


def data_of(header: Path, *, length: int | None) -> Path:
    """Return the data file of a header.

    Parameters
    ----------
    header : Path
        `x.hdr` describes `x` or `x.anything`; `x.img.hdr` describes `x.img`.
    length : int or None
        Bytes the data file must have, which decides between several; None if not known.
    """
    stem = header.stem.lower()
    named = [path for path in _files_beside(header) if path.name.lower() == stem]
    if named:
        return named[0]
    found = [path for path in _files_beside(header) if path.stem.lower() == stem]
    if len(found) > 1 and length is not None:
        fitting = [path for path in found if path.stat().st_size == length]
        found = fitting if len(fitting) == 1 else found
    if not found:
        raise FileError(
            f"The data file of {header} is missing: looked for {header.stem} and "
            f"{header.stem}.* in the same folder. Put the two files side by side."
        )
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise FileError(f"Several files could belong to {header}: {names}. Give the data file.")
    return found[0]


def named_alike(header: Path, suffixes: Iterable[str]) -> Path:
    """Return the file beside a header that has its name and one of the suffixes."""
    wanted = {header.stem.lower() + suffix for suffix in suffixes} | {header.stem.lower()}
    found = [path for path in sorted(header.parent.iterdir()) if path.name.lower() in wanted]
    if not found:
        raise FileError(
            f"The TIFF that {header} describes is missing: looked for {header.stem}.tif in the "
            "same folder. Put the two files side by side."
        )
    return found[0]


def _files_beside(header: Path) -> list[Path]:
    return [
        path
        for path in sorted(header.parent.iterdir())
        if path.is_file() and path.suffix.lower() not in _COMPANIONS
    ]
