"""Class trees: groups of classes, with which a map may answer instead of rejecting."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.errors import InputError
from hsreject.registry import nearest
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import ArrayLike, NDArray

GROUPS_ATTRIBUTE = "class_groups"
"""Attribute of a map in which its groups are stored, as JSON."""


@dataclass(frozen=True)
class Group:
    """Some classes under one name: a node of a :class:`hsreject.ClassTree`."""

    name: str
    members: tuple[str, ...]  # names of classes or of other groups, at least two
    color: str | None = None  # as #rrggbb; mixed from the classes below it unless given
    value: int | None = None  # in maps; the next free one after all classes unless given

    @classmethod
    def from_table(cls, name: str, line: object) -> Group:
        """Read the group that a line of ``[groups]`` describes: its members, or a table."""
        table: dict[str, Any] = dict(line) if isinstance(line, Mapping) else {"members": line}
        members, color, value = (table.pop(key, None) for key in ("members", "color", "value"))
        listed = isinstance(members, list | tuple) and all(isinstance(one, str) for one in members)
        typed = isinstance(color, str | None) and type(value) in {int, type(None)}
        if table or not listed or not typed:
            raise InputError(
                f"The group '{name}' must list the names of its classes or groups, as in {name} = "
                f'["first", "second"], or {{members = [...], color = "#aabbcc"}} (got {line!r}).'
            )
        return cls(name, tuple(members), color, value)


def groups_of(tree_or_groups: ClassTree | Mapping[str, Any] | Iterable[Group]) -> tuple[Group, ...]:
    """List the groups of a tree or of a section ``[groups]``."""
    if isinstance(tree_or_groups, ClassTree):
        return tree_or_groups.groups
    groups: tuple[Any, ...] = ()
    if isinstance(tree_or_groups, Mapping):
        groups = tuple(Group.from_table(str(name), line) for name, line in tree_or_groups.items())
    elif isinstance(tree_or_groups, Iterable):
        groups = tuple(tree_or_groups)
    if not groups or not all(isinstance(group, Group) for group in groups):
        raise InputError(
            "groups must list members by name, of at least one group, as in "
            f'{{"corn": ["early", "late"]}} (got {tree_or_groups!r}).'
        )
    return groups


@dataclass(frozen=True)
class ClassTree:
    r"""Groups of classes, nested as you like: coarser answers of a map, instead of none.

    The leaves are the classes, the inner nodes the groups, and the root, which holds every class,
    is "rejected". The **level** of a node is its height: 0 for a class, 1 for a group of classes,
    2 for a group that holds such a group. At each level, every class lies below one node: the
    largest whose height does not exceed it.

    A node that holds :math:`m` of the :math:`K` classes tells :math:`\log_2(K / m)` bits, and its
    depth is the number of steps from the root.

    Parameters
    ----------
    classes : ClassTable
        The leaves.
    groups : tuple of Group
        Members are names of classes or of groups, each in one group at most.

    See Also
    --------
    hsreject.HierarchicalRejector : answers with its groups.
    hsreject.level_curve : how good groups are.
    hsreject.ClassTable : the leaves.

    Examples
    --------
    >>> from hsreject import ClassTable, ClassTree
    >>> classes = ClassTable.from_names(["roof", "pavement", "grass", "tree", "soil", "water"])
    >>> tree = ClassTree.from_groups(classes, {"sealed": ["roof", "pavement"],
    ...     "vegetation": ["grass", "tree"], "unsealed": ["vegetation", "soil"]})
    >>> tree.table.names[6:], tree.table.values[6:]
    (('sealed', 'vegetation', 'unsealed'), (7, 8, 9))
    >>> tree.n_levels, tree.information.round(2)[[0, 6, 8]]
    (3, array([2.58, 1.58, 1.  ]))
    >>> tree.holds([8, 8, 3, 0], [4, 5, 3, 1])  # grass or tree: a tree, but not soil
    array([ True, False,  True, False])
    """

    classes: ClassTable
    groups: tuple[Group, ...]

    @classmethod
    def from_groups(
        cls, classes: ClassTable | Sequence[str], groups: Mapping[str, Any] | Iterable[Group]
    ) -> ClassTree:
        """Read the tree of a section ``[groups]``: names and members, or members and color."""
        table = classes if isinstance(classes, ClassTable) else ClassTable.from_names(classes)
        return cls(table, groups_of(groups))

    @classmethod
    def from_attrs(cls, attrs: Mapping[Any, Any]) -> ClassTree | None:
        """Read the tree stored in an array's attributes, or None if there is none."""
        table = ClassTable.from_attrs(attrs)
        if table is None or GROUPS_ATTRIBUTE not in attrs:
            return None
        try:
            groups = groups_of(dict(json.loads(attrs[GROUPS_ATTRIBUTE])))
        except (ValueError, TypeError):
            raise InputError(
                f"The attribute '{GROUPS_ATTRIBUTE}' must hold groups as JSON, such as "
                f'{{"corn": ["early", "late"]}} (got {attrs[GROUPS_ATTRIBUTE]!r}).'
            ) from None
        names = {group.name for group in groups}
        rows = zip(table.values, table.names, strict=True)
        return cls(table.subset(value for value, name in rows if name not in names), groups)

    @classmethod
    def of(cls, array: xr.DataArray) -> ClassTree:
        """Read the tree that an array of levels or answers carries; raises without one."""
        tree = cls.from_attrs(array.attrs)
        if tree is None:
            name = "The array" if array.name is None else array.name
            raise InputError(
                f"{name} must carry the class tree of its levels in its "
                "attributes. Pass that of HierarchicalRejector.rank, or assign tree.to_attrs()."
            )
        return tree

    def to_attrs(self) -> dict[str, Any]:
        """Make the attributes that store this tree: the table of all nodes, and the groups."""
        groups = {
            group.name: {"members": group.members, "color": group.color, "value": group.value}
            for group in self._coded
        }
        return {**self.table.to_attrs(), GROUPS_ATTRIBUTE: json.dumps(groups, ensure_ascii=False)}

    def __post_init__(self) -> None:
        if not self.groups:
            raise InputError("A class tree needs a group. Give at least one, of two classes.")
        for group, below in zip(self.groups, self.below[len(self.classes) :], strict=True):
            if below.all():
                raise InputError(
                    f"The group '{group.name}' holds every class, which is what \"rejected\" says. "
                    "Leave a class or the group out."
                )
        self.table  # noqa: B018 (raises where a value or a colour cannot be)

    @cached_property
    def paths(self) -> tuple[tuple[int, ...], ...]:
        """Each node (row of `table`), followed by the groups around it from inside out."""
        names = [*self.classes.names, *(group.name for group in self.groups)]
        around: dict[int, int] = {}
        for row, group in enumerate(self.groups, start=len(self.classes)):
            _check_group(group, names)
            for member in map(names.index, group.members):
                if member in around:
                    raise InputError(
                        f"'{names[member]}' is in two groups, '{names[around[member]]}' and "
                        f"'{group.name}'. Leave it in one of them."
                    )
                around[member] = row
        # A node is in one group at most. So a path upwards either ends, or comes back to one of its
        # own nodes: groups that hold each other.
        paths = [[row] for row in range(len(names))]
        for path in paths:
            while path[-1] in around:
                path.append(around[path[-1]])
                if path[-1] in path[:-1]:
                    cycle = " in ".join(names[node] for node in path)
                    raise InputError(f"Groups hold each other in a cycle: {cycle}. Take one out.")
        return tuple(map(tuple, paths))

    @cached_property
    def below(self) -> NDArray[np.bool_]:
        """Which classes (column) lie below each node (row of `table`), a class below itself."""
        columns = range(len(self.classes))
        return np.array(
            [[row in self.paths[column] for column in columns] for row in range(len(self.paths))]
        )

    @cached_property
    def table(self) -> ClassTable:
        """Values, names and colours of all nodes: the classes, then the groups."""
        taken = {*self.classes.values, *(group.value for group in self.groups)}
        free = (v for v in range(max(self.classes.values) + 1, 1 << 16) if v not in taken)
        colors, below = np.array(self.classes.colors), self.below[len(self.classes) :]
        rows = zip(self.groups, (_mixed(colors[one]) for one in below), strict=True)
        return ClassTable(
            (*self.classes.values, *(group.value or next(free) for group in self.groups)),
            (*self.classes.names, *(group.name for group in self.groups)),
            (*self.classes.colors, *((group.color or color).lower() for group, color in rows)),
        )

    @property
    def _coded(self) -> tuple[Group, ...]:
        """The groups with the codes and colours of `table`."""
        n = len(self.classes)
        rows = zip(self.groups, self.table.values[n:], self.table.colors[n:], strict=True)
        return tuple(replace(group, value=value, color=color) for group, value, color in rows)

    @cached_property
    def levels(self) -> NDArray[np.intp]:
        """The level of each node: 0 for a class, for a group one more than its highest member."""
        level = np.zeros(len(self.paths), dtype=np.intp)
        for path in self.paths[: len(self.classes)]:
            np.maximum.at(level, list(path), np.arange(len(path)))
        return level

    @property
    def n_levels(self) -> int:
        """Number of levels below the root."""
        return int(self.levels.max()) + 1

    @property
    def level_names(self) -> tuple[str, ...]:
        """What the levels are called, and "rejected" last."""
        larger = [f"group of level {level}" for level in range(2, self.n_levels)]
        return ("class", "group", *larger, "rejected")

    @cached_property
    def over(self) -> NDArray[np.intp]:
        """The node (row of `table`) over each class (column) at each level (row)."""
        # The last node of a path that is not above the level: a group that holds groups is higher
        # than one of classes alone, and is entered at its own level only.
        classes = self.paths[: len(self.classes)]
        return np.array(
            [
                [[node for node in path if self.levels[node] <= level][-1] for path in classes]
                for level in range(self.n_levels)
            ]
        )

    @cached_property
    def information(self) -> NDArray[np.float64]:
        """What each node tells, in bits: log2 of all classes over those below it."""
        return np.asarray(np.log2(len(self.classes) / self.below.sum(axis=1)))

    @cached_property
    def depth(self) -> NDArray[np.intp]:
        """Steps from the root to each node."""
        return np.array([len(path) for path in self.paths])

    def holds(self, code: ArrayLike, label: ArrayLike) -> NDArray[np.bool_]:
        """Tell whether classes lie below nodes: whether an answer is right, given the truth.

        Parameters
        ----------
        code : array of int
            Codes of nodes, as in a map; nothing lies below other codes, such as that of "rejected".
        label : array of int, of a shape that broadcasts
            Classes; others than those of the tree lie below no node.
        """
        relation = np.zeros((len(self.table) + 1, len(self.classes) + 1), dtype=bool)
        relation[:-1, :-1] = self.below
        return np.asarray(relation[rows_of(self.table, code), rows_of(self.classes, label)])

    def subset(self, values: Iterable[int]) -> ClassTree | None:
        """Reduce the tree to some of the classes; None where no group is left.

        Groups with a single member left are replaced by it. The others keep codes and colours.
        """
        classes = self.classes.subset(values)
        below = self.below[:, np.isin(self.classes.values, classes.values)]
        held = {
            name: tuple(row) for name, row in zip(self.table.names, below.tolist(), strict=True)
        }
        # of nodes that hold the same classes now, the lowest one stands for all
        lowest: dict[tuple[bool, ...], str] = {}
        for row in np.argsort(self.levels, kind="stable"):
            lowest.setdefault(held[self.table.names[row]], self.table.names[row])
        groups = tuple(
            replace(group, members=tuple(lowest[held[m]] for m in group.members if any(held[m])))
            for group in self._coded
            if lowest[held[group.name]] == group.name and 1 < sum(held[group.name]) < len(classes)
        )
        return ClassTree(classes, groups) if groups else None


def _check_group(group: Group, names: Sequence[str]) -> None:
    """Raise unless a group has a name of its own and at least two members with a name."""
    if names.count(group.name) > 1:
        raise InputError(f"The name '{group.name}' is given twice. Rename the group.")
    if len(group.members) < 2:
        raise InputError(
            f"The group '{group.name}' has {len(group.members) or 'no'} member. A group needs two "
            "or more; a class alone needs no group."
        )
    for member in group.members:
        if member not in names:
            raise InputError(
                f"The group '{group.name}' holds '{member}', which is neither a class nor a group "
                f"of this map (there are: {', '.join(names)}).{nearest(member, names)}"
            )


def rows_of(table: ClassTable, values: ArrayLike) -> NDArray[np.intp]:
    """Find the rows of values in a table; the number of rows for values that it lacks."""
    low, high = min(table.values), max(table.values)
    rows = np.full(high - low + 3, len(table))  # of all values from low - 1 to high + 1
    rows[np.array(table.values) - low + 1] = np.arange(len(table))
    return rows[np.clip(np.asarray(values, dtype=np.int64), low - 1, high + 1) - low + 1]


def _mixed(colors: Iterable[str]) -> str:
    """Average colours by their light: the square root of the mean of squares."""
    channels = [[int(color[at : at + 2], 16) for at in (1, 3, 5)] for color in colors]
    mean = np.sqrt(np.mean(np.square(channels, dtype=np.float64), axis=0))
    return "#" + "".join(f"{round(channel):02x}" for channel in mean)
