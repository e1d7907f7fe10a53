"""Tables for spreadsheets: CSV files, in whatever dialect a program has saved them."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.errors import FileError
from hsreject.files import reading

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what makes a spreadsheet compute a cell
_MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


@dataclass(frozen=True)
class Table:
    """The columns of a CSV file as text, and how it is written."""

    columns: dict[str, NDArray[Any]]
    text: str
    encoding: str
    separator: str

    @classmethod
    def read(cls, path: Path) -> Table:
        """Read the table in a file."""
        with reading(path):
            raw = path.read_bytes()
            stated = (name for mark, name in _MARKS.items() if raw.startswith(mark))
            encoding = next(stated, "utf-8")
            try:
                text = raw.decode(encoding)
            except UnicodeDecodeError:
                encoding = "cp1252"
                text = raw.decode(encoding, errors="replace")
            separator = max(",;\t", key=text.partition("\n")[0].count)
            reader = csv.DictReader(StringIO(text, newline=""), delimiter=separator, restval="")
            rows = [row for row in reader if any(row.values())]
            if any(None in row for row in rows):
                raise FileError(
                    f"{path} has a row with more cells than columns named in the first."
                )

        def as_written(cell: str) -> str:  # without the apostrophe that marks it as text
            return cell[1:] if cell[:1] == "'" and cell[1:].startswith(_FORMULA) else cell

        columns = {
            name.strip(): np.array([as_written(row[name].strip()) for row in rows], dtype=object)
            for name in reader.fieldnames or ()
        }
        return cls(columns, text, encoding, separator)

    def append(self, path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
        """Write the table with further rows; columns that these do not have stay empty in them."""
        n_rows = len(next(iter(columns.values())))
        cells = [columns.get(name.lower(), [""] * n_rows) for name in self.columns]
        end = "\r\n" if "\r\n" in self.text else "\n"
        added = StringIO(newline="")
        writer = csv.writer(added, delimiter=self.separator, lineterminator=end)
        writer.writerows(map(_as_text, row) for row in zip(*cells, strict=True))
        text = self.text + ("" if self.text.endswith("\n") else end) + added.getvalue()
        path.write_bytes(text.encode(self.encoding, errors="replace"))


def write_csv(path: Path, names: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table; text that a spreadsheet would compute begins with an apostrophe."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)  # which writes None as nothing
        writer.writerows(map(_as_text, row) for row in (names, *rows))


def _as_text(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def number_in(cell: Any) -> float:
    """Read the number in a cell, with a point or a comma before its decimals."""
    return float(str(cell).replace(",", "."))
