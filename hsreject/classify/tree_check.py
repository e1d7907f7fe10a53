"""A check of decision trees from files: scikit-learn follows their indices without looking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.tree._tree import Tree

_LEAF = -1


def trees_are_sound(model: object) -> bool:
    """Return whether every decision tree inside `model` stays within its own arrays.

    A tree is a table of nodes that name their children and the feature they split. An index outside
    the table would make prediction read foreign memory, a child before its parent would make it run
    for ever. Trees grown by scikit-learn have neither.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[0.0], [1.0]], [0, 1])
    >>> trees_are_sound([tree])
    True
    """
    return all(_is_sound(tree) for tree in _trees_in(model, seen=set()))


def _is_sound(tree: Tree) -> bool:
    numbers = np.arange(tree.node_count)
    inner = tree.children_left != _LEAF
    children = np.stack([tree.children_left, tree.children_right])
    feature = tree.feature[inner]
    return bool(
        ((children == _LEAF) == ~inner).all()
        and (children[:, inner] > numbers[inner]).all()
        and (children[:, inner] < tree.node_count).all()
        and ((feature >= 0) & (feature < tree.n_features)).all()
    )


def _trees_in(part: object, *, seen: set[int]) -> Iterator[Tree]:
    if isinstance(part, Tree):
        yield part
    if id(part) in seen or isinstance(part, str | bytes | int | float | None):
        return
    seen.add(id(part))
    for inner in _inside(part):
        yield from _trees_in(inner, seen=seen)


def _inside(part: Any) -> list[object]:
    if isinstance(part, dict):
        return list(part.values())
    if isinstance(part, list | tuple | set):
        return list(part)
    if isinstance(part, np.ndarray):
        return list(part.ravel()) if part.dtype == object else []
    return list(getattr(part, "__dict__", {}).values())
