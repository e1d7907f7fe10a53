"""Class trees: what they are, how files keep them, and what cannot be one."""

import numpy as np
import pytest

import hsreject as hr
from hsreject.errors import InputError

CLASSES = hr.ClassTable.from_names(
    ["roof", "pavement", "grass", "tree", "soil", "water"],
    values=[3, 1, 4, 9, 5, 2],
    colors=["#ff0000", "#800000", "#00ff00", "#003000", "#aa8855", "#0000ff"],
)
GROUPS = {
    "unsealed": ["vegetation", "soil"],
    "sealed": {"members": ["roof", "pavement"], "color": "#777777"},
    "vegetation": ["grass", "tree"],
}


@pytest.fixture(scope="module")
def tree() -> hr.ClassTree:
    return hr.ClassTree.from_groups(CLASSES, GROUPS)


def test_classes_keep_their_codes_and_groups_follow(tree) -> None:
    assert tree.table.names == (*CLASSES.names, "unsealed", "sealed", "vegetation")
    assert tree.table.values == (3, 1, 4, 9, 5, 2, 10, 11, 12)
    assert tree.table.colors[:6] == CLASSES.colors


def test_colours_are_mixed_unless_given(tree) -> None:
    assert tree.table.colors[7] == "#777777"
    green = [int(tree.table.colors[8][at : at + 2], 16) for at in (1, 3, 5)]
    assert green[0] == green[2] == 0
    assert 0x30 < green[1] < 0xFF


def test_levels_depth_and_bits_by_hand(tree) -> None:
    assert tree.levels.tolist() == [0, 0, 0, 0, 0, 0, 2, 1, 1]
    assert tree.depth.tolist() == [2, 2, 3, 3, 2, 1, 1, 1, 2]
    np.testing.assert_allclose(tree.information[[0, 6, 7]], [np.log2(6), 1, np.log2(3)])
    names = [[tree.table.names[row] for row in level] for level in tree.over]
    assert names == [
        list(CLASSES.names),
        ["sealed", "sealed", "vegetation", "vegetation", "soil", "water"],
        ["sealed", "sealed", "unsealed", "unsealed", "unsealed", "water"],
    ]


def test_what_lies_below_what(tree) -> None:
    below = {"unsealed": {4, 9, 5}, "sealed": {3, 1}, "vegetation": {4, 9}}
    for value, name in zip(tree.table.values, tree.table.names, strict=True):
        truth = np.array([1, 2, 3, 4, 5, 9, 0, 77])
        expected = np.isin(truth, list(below.get(name, {value})))
        np.testing.assert_array_equal(tree.holds(value, truth), expected)
    assert not tree.holds([0, 255, 77], [3, 3, 3]).any()


def test_attributes_keep_it(tree) -> None:
    again = hr.ClassTree.from_attrs(tree.to_attrs())
    assert again is not None
    assert again.table == tree.table
    assert again.paths == tree.paths
    assert hr.ClassTree.from_attrs(again.to_attrs()) == again
    assert hr.ClassTable.from_attrs(tree.to_attrs()) == tree.table
    assert hr.ClassTree.from_attrs(CLASSES.to_attrs()) is None
    with pytest.raises(InputError, match="class_groups"):
        hr.ClassTree.from_attrs({**CLASSES.to_attrs(), "class_groups": "corn"})


def test_fewer_classes_leave_fewer_groups(tree) -> None:
    left = tree.subset([3, 4, 5, 2])
    assert [(group.name, group.members, group.value) for group in left.groups] == [
        ("unsealed", ("grass", "soil"), 10)
    ]
    assert left.table.colors[-1] == tree.table.colors[6]
    nested = tree.subset([4, 9, 5])  # unsealed would hold every class
    assert [(group.name, group.members) for group in nested.groups] == [
        ("vegetation", ("grass", "tree"))
    ]
    assert tree.subset([3, 4]) is None
    assert tree.subset(CLASSES.values).table == tree.table


@pytest.mark.parametrize(
    ("groups", "word"),
    [
        ({}, "at least one"),
        ({"green": ["grass"]}, "1 member"),
        ({"green": []}, "no member"),
        ({"green": ["grass", "tee"]}, "mean 'tree'"),
        ({"a": ["b", "grass"], "b": ["a", "tree"]}, "a in b in a"),
        ({"a": ["a", "grass"]}, "cycle"),
        ({"a": ["grass", "tree"], "b": ["tree", "soil"]}, "'tree' is in two"),
        ({"a": ["grass", "grass"]}, "in two groups"),
        ({"soil": ["grass", "tree"]}, "'soil' is given twice"),
        ({"all": ["roof", "pavement", "grass", "tree", "soil", "water"]}, "every class"),
        ({"a": "grass"}, "must list"),
        ({"a": [3, 4]}, "must list"),
        ({"a": {"members": ["grass", "tree"], "colour": "#00ff00"}}, "must list"),
        ({"a": {"members": ["grass", "tree"], "color": "green"}}, "'green'"),
        ({"a": {"members": ["grass", "tree"], "value": 9}}, "distinct"),
        ({"a": {"members": ["grass", "tree"], "value": "x"}}, "must list"),
        (None, "members by name"),
    ],
)
def test_what_is_no_tree_is_refused(groups, word) -> None:
    with pytest.raises(InputError, match=word):
        hr.ClassTree.from_groups(CLASSES, groups)
