"""The class table of a label map: from what the file says, what the user says and what occurs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject import schema
from hsreject.classes import ClassTable
from hsreject.errors import FileError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from hsreject.io.class_names import StatedClasses

Names = Mapping[int, str] | Sequence[str]


def names_by_value(names: Names | None) -> dict[int, str]:
    """Return the names that a user gave by value; a sequence names the values 1, 2, 3, ..."""
    if names is None:
        return {}
    return dict(names) if isinstance(names, Mapping) else dict(enumerate(names, start=1))


def class_table_of(
    values: NDArray[Any],
    stated: StatedClasses,
    names: Mapping[int, str],
    *,
    path: Path,
    guesses: list[str],
) -> ClassTable:
    """Return the table of the classes that are named, or of those that occur if none is."""
    there = [int(value) for value in np.unique(values) if value != schema.NO_REFERENCE]
    named = dict(names) or dict(stated.names)
    unnamed = [value for value in there if value not in named]
    if named and unnamed:
        raise FileError(
            f"{path} has label values without a name: {_listed(unnamed)} "
            f"(named are {_listed(sorted(named))}). Pass names= with a name for every value."
        )
    zero = named.pop(schema.NO_REFERENCE, "")
    if zero and not _means_nothing(zero):
        guesses.append(f"Value 0 is named '{zero}' but was read as no reference.")
    if not named:
        if there:
            guesses.append("The classes have no names: they are called by their value.")
        named = {value: f"class {value}" for value in there}
    wanted = sorted(named)
    plain = ClassTable.plain(wanted)
    colors = [stated.colors.get(v, c) for v, c in zip(wanted, plain.colors, strict=True)]
    return ClassTable.from_names(_distinct(named, guesses), values=wanted, colors=colors)


def _means_nothing(name: str) -> bool:
    words = "".join(letter for letter in name.lower() if letter.isalpha())
    return words in {
        "unclassified", "unlabeled", "unlabelled", "background", "nodata", "none", "noreference",
        "undefined", "masked", "void", "na", "unknown", "rejected",
    }  # fmt: skip


def _distinct(named: Mapping[int, str], guesses: list[str]) -> list[str]:
    texts = [named[value] for value in sorted(named)]
    if len(set(texts)) == len(texts):
        return texts
    guesses.append("Some classes have the same name: their value was added to it.")
    return [f"{named[v]} ({v})" if texts.count(named[v]) > 1 else named[v] for v in sorted(named)]


def _listed(values: list[int]) -> str:
    shown = ", ".join(map(str, values[:20]))
    return shown if len(values) <= 20 else f"{shown}, ... {values[-1]}"
