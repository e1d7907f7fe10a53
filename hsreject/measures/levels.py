r"""Curves of maps that may answer coarser: classes, groups of classes, or nothing.

Along the path from a sample's class to the root of a :class:`hsreject.ClassTree` probabilities
grow, :math:`p_0 \le p_1 \le \ldots`, one per level. At the threshold :math:`\theta` the answer is
the node of the first level with :math:`p_h \ge \theta`; without one the sample is rejected. *Kept*
is every sample with an answer. *Accurate* is an answer that the true class lies below; a rejected
sample is accurate where its coarsest answer would have been. All measures then are those of
:mod:`hsreject.measures.point`, and fewer samples are wrong at every larger :math:`\theta`.
"Everything is land" is right, too, so a curve also has the mean depth of the answers and their mean
information in bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from hsreject import schema
from hsreject.class_tree import ClassTree, rows_of
from hsreject.classes import ClassTable
from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.curve import curve_columns
from hsreject.measures.point import Counts, share

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def level_curve(
    label: ArrayLike | xr.DataArray,
    confidence: ArrayLike | xr.DataArray,
    reference: ArrayLike | xr.DataArray,
    tree: ClassTree,
) -> xr.Dataset:
    """Return every operating point of a map that answers with classes, groups or nothing.

    There is one point for each distinct confidence of any level, and one that rejects everything;
    samples of equal confidence change together. One sort per level gives all of them.

    Parameters
    ----------
    label : array of int, any shape
        The class at the lower end of each sample's path.
    confidence : array of float (level, ...)
        The probability of the node over that class at each level of the tree, from class to
        coarsest group: it does not fall from level to level.
    reference : array of int, of the shape of `label`
        True classes.
    tree : ClassTree
        The groups.

    Returns
    -------
    Dataset over `operating_point`, rejected fraction ascending from 0 to 1
        The columns of :func:`hsreject.rejection_curve`, and `accurate_coarse` (right answers that
        are groups), `mean_depth` and `mean_information` (steps from the root and bits of an answer
        that is kept, NaN where none is), `information` (bits per sample, none for a rejected one)
        and `kept_at_level` (operating_point, level), the share of the samples answered there.

    See Also
    --------
    hsreject.rejection_curve : the same where an answer is a class or nothing.

    Examples
    --------
    Two samples; of the second only the group is clear:

    >>> from hsreject import ClassTree, level_curve
    >>> tree = ClassTree.from_groups(["oak", "pine", "lake"], {"forest": ["oak", "pine"]})
    >>> curve = level_curve([3, 1], [[0.9, 0.5], [0.9, 0.8]], [3, 2], tree)
    >>> curve.threshold.values, curve.nonrejected_accuracy.values
    (array([0.5, 0.8, 0.9, inf]), array([0.5, 1. , 1. , nan]))
    >>> curve.rejected_fraction.values, curve.information.values.round(2)
    (array([0. , 0. , 0.5, 1. ]), array([1.58, 1.08, 0.79, 0.  ]))
    """
    plain = inputs.same_layout({"label": label, "reference": reference})
    classes = tree.classes
    row, truth = (
        rows_of(classes, inputs.class_values(values, name=name)) for name, values in plain.items()
    )
    if (row == len(classes)).any():
        raise InputError(
            f"label holds classes that the tree lacks (it has {list(classes.values)}). "
            "Make the tree of the classes of the map."
        )
    levels = inputs.confidence_values(np.asarray(confidence)).reshape(tree.n_levels, -1)
    if levels.shape[1] != row.size or (levels[1:] < levels[:-1]).any():
        raise InputError(
            f"confidence must hold a number for each of {tree.n_levels} levels and {row.size} "
            "samples that does not fall from level to level (got the shape "
            f"{np.shape(confidence)}). Pass the level_confidence of HierarchicalRejector().rank."
        )
    return _curve(levels, row, truth, tree)


def propose_groups(
    label: ArrayLike | xr.DataArray,
    reference: ArrayLike | xr.DataArray,
    classes: ClassTable,
    *,
    least: float = 0.05,
) -> dict[str, list[str]]:
    r"""Propose groups of the classes that are taken for each other, to be edited by a person.

    The similarity of two classes is the mean share of each that is taken for the other,
    :math:`(C_{ab} / n_a + C_{ba} / n_b) / 2`; two sets of classes as the mean of all their pairs
    (average linkage). The nearest join first, as long as they are at least `least` near and a class
    is left outside.

    Parameters
    ----------
    label, reference : arrays of int, any shape
        Assigned and true classes of pixels that the classifier has not learned from.
    classes : ClassTable
        Their names.
    least : float in (0, 1)
        How near classes must be to be joined.

    Returns
    -------
    dict of str to list of str
        Members by the name of the group, as ``[groups]`` of a configuration has them. Empty where
        no classes are near.

    See Also
    --------
    hsreject.ClassTree : checks groups, and gives them codes and colours.

    Examples
    --------
    >>> from hsreject import ClassTable, propose_groups
    >>> classes = ClassTable.from_names(["oak", "pine", "lake"])
    >>> propose_groups([1, 2, 1, 2, 3, 3], [1, 1, 2, 2, 3, 3], classes)
    {'oak or pine': ['oak', 'pine']}
    """
    plain = inputs.same_layout({"label": label, "reference": reference})
    n_classes = len(classes)
    counts = np.zeros((n_classes + 1, n_classes + 1))
    np.add.at(counts, tuple(rows_of(classes, plain[name]) for name in ("reference", "label")), 1)
    rates = counts[:-1, :-1] / np.maximum(counts[:-1].sum(axis=1, keepdims=True), 1)
    if n_classes < 3:
        return {}
    apart = squareform(1 - (rates + rates.T) / 2, checks=False)
    links = linkage(apart, method="average")
    number = fcluster(links, 1 - least, criterion="distance")
    # all classes in one group would say no more than rejection: undo the last join
    if number.max() == 1:
        number = fcluster(links, 2, criterion="maxclust")
    sets = [np.flatnonzero(number == one) for one in np.unique(number)]
    joined = [[classes.names[row] for row in rows] for rows in sets if rows.size > 1]
    return {" or ".join(names): names for names in joined}


def _curve(
    confidence: NDArray[np.floating],
    row: NDArray[np.intp],
    truth: NDArray[np.intp],
    tree: ClassTree,
) -> xr.Dataset:
    """Return the columns; `row` and `truth` are the places of classes in the tree's table."""
    n_levels, n_samples = confidence.shape
    # One sort per level. A stable sort then only merges the levels, which are ascending already.
    order = np.argsort(confidence, axis=1)
    ranked = np.take_along_axis(confidence, order, axis=1)
    merged = np.argsort(ranked, axis=None, kind="stable")
    ascending = np.append(ranked.ravel()[merged], np.inf)
    first = np.append(True, ascending[1:] != ascending[:-1])
    points = slice(None) if first.all() else np.flatnonzero(first)  # ties change together

    # What an answer is worth depends on its level, on the assigned and on the true class. So the
    # tables below are small, and `place` says where in them a sample lies at a level.
    node = tree.over[:, :, None]
    right = np.append(tree.below, np.zeros((len(tree.table), 1), dtype=bool), axis=1)[tree.over]
    kinds = np.arange(right.size).reshape(right.shape)
    place = (kinds[0][row, truth][order] + kinds[:, :1, 0]).ravel()[merged]

    def kept_sum(worth: NDArray[Any]) -> NDArray[Any]:
        """Return what the answers are worth at each threshold; `worth` is (level, row, truth).

        A sample that reaches the threshold at a level reaches it at all coarser ones. So each level
        adds what its answer is worth beyond that of the next level, which adds its own.
        """
        worth = np.broadcast_to(worth, right.shape)
        beyond = worth - np.append(worth[1:], np.zeros_like(worth[:1]), axis=0)
        total = np.zeros(ascending.size, dtype=worth.dtype)
        np.cumsum(beyond.ravel()[place][::-1], out=total[-2::-1])  # from the most confident down
        return total[points]

    is_right, level = right.astype(np.int64), np.arange(n_levels)[:, None, None]
    at_level = [kept_sum((level == one).astype(np.int64)) for one in range(n_levels)]
    n_kept = sum(at_level)
    accurate_kept = kept_sum(is_right)
    # of the samples that are not kept, those whose coarsest answer is right
    coarsest_right = kept_sum(is_right[-1:])
    accurate_rejected = coarsest_right[0] - coarsest_right
    wrong_rejected = n_samples - n_kept - accurate_rejected
    counts = Counts(accurate_kept, n_kept - accurate_kept, accurate_rejected, wrong_rejected)
    accurate_coarse = kept_sum(is_right * (tree.levels[node] > 0))
    steps, bits = kept_sum(tree.depth[node]), kept_sum(tree.information[node])
    columns = {
        "accurate_coarse": (accurate_coarse, "accurate samples kept as a group"),
        "mean_depth": (share(steps, n_kept), "steps from the root to what is kept"),
        "mean_information": (share(bits, n_kept), "bits that an answer that is kept tells"),
        "information": (bits / n_samples, "bits per sample, rejected ones included"),
    }
    dim = schema.OPERATING_POINT
    curve = curve_columns(ascending[points] + 0.0, counts, weighted=False).assign(
        {name: (dim, values, {"long_name": words}) for name, (values, words) in columns.items()}
    )
    words = "share of samples answered at a level (0: class)"
    kept_at_level = np.array([n_answers / n_samples for n_answers in at_level]).T
    return curve.assign(kept_at_level=((dim, schema.LEVEL), kept_at_level, {"long_name": words}))
