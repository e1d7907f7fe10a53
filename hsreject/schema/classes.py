"""Class tables: which label value means what, and in which colour it is drawn."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_IN_NO_FILE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")  # nor in XML
_HEX_COLOR = re.compile(r"#[0-9a-f]{6}")

# Distinct under the common colour-vision deficiencies (Okabe and Ito 2008, then Tol 2021).
_FIRST_COLORS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#332288",
    "#88ccee", "#44aa99", "#117733", "#999933", "#ddcc77", "#cc6677", "#882255", "#aa4499",
)  # fmt: skip


def _palette() -> Iterator[str]:
    yield from _FIRST_COLORS
    for step in count():  # steps of the golden angle spread hues evenly
        rgb = colorsys.hsv_to_rgb((step * 0.381966) % 1.0, 0.45 + 0.4 * (step % 2), 0.9)
        yield "#" + "".join(f"{round(255 * channel):02x}" for channel in rgb)


@dataclass(frozen=True)
class ClassTable:
    """The classes of a label map: values, names and colours, in one order.

    In the attributes of an array it is stored the CF way (`flag_values`, `flag_meanings`), with the
    names as they are (`class_names`, because CF meanings have no blanks) and `flag_colors`.

    Parameters
    ----------
    values : tuple of int
        Label values, distinct and positive: 0 is reserved (no reference, rejected).
    names : tuple of str
        One name per value, distinct.
    colors : tuple of str
        One colour per value, as ``#rrggbb``.

    See Also
    --------
    hsreject.open_labels : gives a label map the classes of its file.
    hsreject.write_map : keeps the classes in the file of a map.

    Examples
    --------
    >>> from hsreject import ClassTable
    >>> table = ClassTable.from_names(["bare soil", "water"])
    >>> table.values, table.to_attrs()["flag_meanings"]
    ((1, 2), 'bare_soil water')
    >>> ClassTable.from_attrs(table.to_attrs()) == table
    True
    """

    values: tuple[int, ...]
    names: tuple[str, ...]
    colors: tuple[str, ...]

    def __post_init__(self) -> None:
        if not len(self.values) == len(self.names) == len(self.colors):
            raise InputError(
                f"A class table needs a name and a colour for each value (got {len(self.values)} "
                f"values, {len(self.names)} names, {len(self.colors)} colours)."
            )
        if any(value <= 0 for value in self.values) or len(set(self.values)) < len(self.values):
            raise InputError(
                f"Class values must be positive and distinct (got {list(self.values)}); "
                "0 is reserved for pixels without reference."
            )
        if len(set(self.names)) < len(self.names):
            twice = sorted({name for name in self.names if self.names.count(name) > 1})
            raise InputError(f"Class names must be distinct (given twice: {', '.join(twice)}).")
        for name in self.names:
            if _IN_NO_FILE.search(name) or not name.strip():
                raise InputError(
                    f"The class name {name!a} is blank, or has a character that files cannot hold. "
                    "Rename it."
                )
        for color in self.colors:
            if not _HEX_COLOR.fullmatch(color):
                raise InputError(f"A class colour must look like '#1f77b4' (got '{color}').")

    @classmethod
    def from_names(
        cls,
        names: Sequence[str] | Mapping[int, str],
        *,
        values: Sequence[int] | None = None,
        colors: Sequence[str] | None = None,
    ) -> ClassTable:
        """Make the table of `names`, numbered from 1 and coloured by the palette unless given.

        Examples
        --------
        >>> from hsreject import ClassTable
        >>> ClassTable.from_names({3: "soil", 7: "water"}).values
        (3, 7)
        """
        if isinstance(names, Mapping):
            values, names = list(names), list(names.values())
            if not all(isinstance(value, Integral) for value in values):
                raise InputError(
                    f"Classes are given as {{value: name}}, like {{1: 'soil'}} (got {values[0]!r} "
                    "as a value)."
                )
        palette = tuple(islice(_palette(), len(names))) if colors is None else tuple(colors)
        numbers = range(1, len(names) + 1) if values is None else values
        return cls(tuple(int(v) for v in numbers), tuple(names), tuple(c.lower() for c in palette))

    @classmethod
    def plain(cls, values: Sequence[int]) -> ClassTable:
        """Make the table of classes that have no name but their value."""
        return cls.from_names([f"class {value}" for value in values], values=values)

    @classmethod
    def from_attrs(cls, attrs: Mapping[Any, Any]) -> ClassTable | None:
        """Read the table stored in an array's attributes, or None if there is none."""
        if "flag_values" not in attrs:
            return None
        values = [int(value) for value in np.atleast_1d(attrs["flag_values"])]
        names = attrs.get("class_names")
        if names is None and "flag_meanings" in attrs:
            names = str(attrs["flag_meanings"]).split()
        if names is None:
            return cls.plain(values)
        colors = str(attrs["flag_colors"]).split() if "flag_colors" in attrs else None
        return cls.from_names([str(n) for n in np.atleast_1d(names)], values=values, colors=colors)

    def to_attrs(self) -> dict[str, Any]:
        """Make the attributes that store this table."""
        return {
            "flag_values": list(self.values),
            "flag_meanings": " ".join(
                re.sub(r"[^0-9A-Za-z_.+-]+", "_", name) for name in self.names
            ),
            "flag_colors": " ".join(self.colors),
            "class_names": list(self.names),
        }

    def completed(self, values: Iterable[int]) -> ClassTable:
        """Extend this table by a plain name and a new colour for each of `values` it lacks.

        Examples
        --------
        >>> from hsreject import ClassTable
        >>> ClassTable.from_names(["soil"], values=[2]).completed([2, 5]).names
        ('soil', 'class 5')
        """
        # plain rows are made for all, so that new colors continue the palette after the old ones
        missing = sorted({int(value) for value in values} - set(self.values))
        every = ClassTable.plain([*self.values, *missing])
        return ClassTable(
            every.values,
            (*self.names, *every.names[len(self) :]),
            (*self.colors, *every.colors[len(self) :]),
        )

    def subset(self, values: Iterable[int]) -> ClassTable:
        """Find the rows of `values`, in their order; all of them must be in the table.

        Examples
        --------
        >>> from hsreject import ClassTable
        >>> ClassTable.from_names(["soil", "water", "ice"]).subset([3, 1]).names
        ('ice', 'soil')
        """
        subset_values = [int(value) for value in values]
        unknown = sorted(set(subset_values) - set(self.values))
        if unknown:
            raise InputError(
                f"The class table does not list {unknown} (it has {list(self.values)}). "
                "Add them to flag_values, or set these pixels to 0."
            )
        rows = [self.values.index(value) for value in subset_values]
        return ClassTable(
            tuple(subset_values),
            tuple(self.names[row] for row in rows),
            tuple(self.colors[row] for row in rows),
        )

    def name_of(self, value: int) -> str:
        """Look up the name of a value; values outside the table are called by their number."""
        return self.names[self.values.index(value)] if value in self.values else f"class {value}"

    def __len__(self) -> int:
        return len(self.values)
