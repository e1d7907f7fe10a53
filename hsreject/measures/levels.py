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

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from hsreject import schema
from hsreject.compilation import compiled
from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.curve import curve_columns
from hsreject.measures.point import Counts
from hsreject.schema.class_tree import ClassTree, rows_of
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def level_curve(
    label: ArrayLike | xr.DataArray,
    confidence: ArrayLike | xr.DataArray,
    reference: ArrayLike | xr.DataArray,
    tree: ClassTree,
) -> xr.Dataset:
    """Compute every operating point of a map that answers with classes, groups or nothing.

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
    """Compute the columns; `row` and `truth` are the places of classes in the tree's table."""
    n_levels, n_samples = confidence.shape
    # An answer is right from some level on, or never: for a class that the tree lacks. So its part
    # depends on its level, on the assigned class and on that first level: a small table.
    first_right = (~tree.below[tree.over]).sum(axis=0)
    first_right = np.pad(first_right, ((0, 0), (0, 1)), constant_values=n_levels)[row, truth]
    kind = (row * (n_levels + 1) + first_right).astype(np.int32)
    level, node = np.arange(n_levels)[:, None, None], tree.over[:, :, None]
    right = (level >= np.arange(n_levels + 1)).astype(np.float64)
    # the four counts (a rejected sample counts as its coarsest answer) and groups among the first
    counted = (right, 1 - right, -right[-1:], right[-1:] - 1, right * (tree.levels[node] > 0))
    at_level = (level == one for one in range(n_levels))
    parts = np.broadcast_arrays(*counted, tree.depth[node], tree.information[node], *at_level)
    table = np.stack(parts, axis=-1).reshape(n_levels, -1, len(parts))
    # A sample that reaches a threshold at a level reaches it at all coarser ones. So a level adds
    # the part of its answer beyond that of the next level, which adds its own.
    table[:-1] -= table[1:]

    ranked, kinds = np.empty_like(confidence), np.empty(confidence.shape, dtype=np.int32)
    for one in range(n_levels):
        order = np.argsort(confidence[one])
        ranked[one], kinds[one] = confidence[one][order], kind[order]
    threshold, sums = np.empty(ranked.size + 1), np.zeros((len(parts), ranked.size + 1))
    sums[2:4, -1] = np.bincount(first_right == n_levels, minlength=2)
    first = _walk(ranked, kinds, table, threshold, sums)

    counts, sums = sums[:5, first:].astype(np.int64), sums[5:, first:]
    *four, accurate_coarse = counts
    information = sums[1] / n_samples
    with np.errstate(invalid="ignore"):  # NaN where nothing is kept
        sums[:2] /= four[0] + four[1]
    sums[2:] /= n_samples
    columns = {
        "accurate_coarse": (accurate_coarse, "accurate samples kept as a group"),
        "mean_depth": (sums[0], "steps from the root to what is kept"),
        "mean_information": (sums[1], "bits that an answer that is kept tells"),
        "information": (information, "bits per sample, rejected ones included"),
    }
    dim = schema.OPERATING_POINT
    curve = curve_columns(threshold[first:], Counts(*four), weighted=False).assign(
        {name: (dim, values, {"long_name": words}) for name, (values, words) in columns.items()}
    )
    words = "share of samples answered at a level (0: class)"
    return curve.assign(kept_at_level=((dim, schema.LEVEL), sums[2:].T, {"long_name": words}))


@compiled
def _walk(
    ranked: NDArray[np.floating],
    kinds: NDArray[np.int32],
    table: NDArray[np.float64],
    threshold: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> int:
    """Fill the columns from the last point, which keeps nothing, and return where the first lies.

    The sorted levels are merged on the way: the next answer is the most confident at their ends.
    """
    n_levels, n_samples = ranked.shape
    left = np.full(n_levels, n_samples - 1)
    total = sums[:, -1].copy()
    point = threshold.size - 1
    threshold[point] = np.inf
    for _ in range(ranked.size):
        level, best = 0, -np.inf
        for one in range(n_levels):
            if left[one] >= 0 and ranked[one, left[one]] > best:
                level, best = one, ranked[one, left[one]]
        if best != threshold[point]:  # ties change together
            point -= 1
            threshold[point] = best + 0.0  # 0 without a sign
        kind = kinds[level, left[level]]
        left[level] -= 1
        for column in range(total.size):
            total[column] += table[level, kind, column]
            sums[column, point] = total[column]
    return point
