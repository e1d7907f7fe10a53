"""Hierarchical rejection: a coarser answer where the class is unclear, before none at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.confidence import TieBrokenMaximum, label_map_of_positions
from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from hsreject.registry import check_number
from hsreject.rejection.ranked import FieldRanking
from hsreject.rejection.ranking import ANSWER_PROBABILITY, RANK
from hsreject.rejection.rejector import check_context, check_novelty
from hsreject.schema.class_tree import GROUPS_ATTRIBUTE, ClassTree, Group, groups_of, rows_of
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.progress import ProgressCallback
    from hsreject.rejection.evidence import Evidence


@dataclass(frozen=True)
class HierarchicalRejector(FieldRanking):
    r"""Answers with the finest node of a class tree whose probability reaches a threshold.

    The probability of a node is the sum of those of the classes below it. Of all nodes with more
    than one half, which lie on one path, take the finest; the likeliest class below it is the
    label, and the nodes from the label to the root are the **path** of the pixel. Along it the
    probability grows, :math:`p_0 \le p_1 \le \ldots \le 1`. The answer at the threshold
    :math:`\theta` is the finest node of the path with :math:`p_h \ge \theta`, and the root is
    "rejected".

    For :math:`\theta > 1/2` this is the finest of all nodes that reach :math:`\theta`, since only
    nodes of one path can. Below, several nodes might, and the path decides between them: so answers
    can only get coarser as :math:`\theta` grows, and one threshold is one operating point. The
    confidence of a pixel is the probability of its coarsest answer, below which it is rejected.

    Parameters
    ----------
    groups : mapping, or ClassTree
        Members by the name of the group, classes or other groups: ``{"corn": ["early", "late"]}``.
    context : SegSALSA, optional
        Probabilities are then those of the hidden field, and a little of the pixel's own, as in
        the confidence "tie_broken_maximum" of :class:`hsreject.SequentialRejector`. Without one
        they are the pixel's own.
    coarse_cost : float in [0, 1]
        Where a rejection cost is asked for: what a right answer costs if it is a group instead of a
        class, as a share of a rejection.
    novelty : bool
        Whether pixels with a `p_value` (:class:`hsreject.Novelty`) below 0.025 are `unknown` and
        rejected in any case, in addition to what is asked for.

    See Also
    --------
    hsreject.ClassTree : the groups, with codes and colours.
    hsreject.level_curve : its operating points.

    Examples
    --------
    The second pixel is some corn, the third is unclear:

    >>> import numpy as np
    >>> from hsreject import ClassTable, HierarchicalRejector, schema
    >>> import xarray as xr
    >>> values = np.array([[[0.9, 0.5, 0.4]], [[0.1, 0.4, 0.1]], [[0.0, 0.1, 0.5]]])
    >>> probability = schema.attach_classes(xr.DataArray(values, dims=("category", "y", "x")),
    ...                                     ClassTable.from_names(["early", "late", "wood"]))
    >>> rejector = HierarchicalRejector({"corn": ["early", "late"]})
    >>> maps = rejector.reject(probability, threshold=0.8)
    >>> maps.label_with_rejection.values, schema.class_table(maps.label_with_rejection).names
    (array([[1, 4, 0]], dtype=uint8), ('early', 'late', 'wood', 'corn'))
    """

    answers_coarser: ClassVar[bool] = True

    groups: ClassTree | Mapping[str, Any] | Iterable[Group]
    context: SegSALSA | None = None
    _: KW_ONLY
    coarse_cost: float = 0.0
    novelty: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", groups_of(self.groups))
        if self.context is not None:
            check_context(self.context)
        check_number("coarse_cost", self.coarse_cost, least=0, most=1)
        check_novelty(self.novelty)

    def tree(self, classes: ClassTable) -> ClassTree:
        """Return the tree of these classes; raises where the groups are of others."""
        return ClassTree.from_groups(classes, groups_of(self.groups))

    def label_and_confidence(
        self, evidence: Evidence, progress: ProgressCallback
    ) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the label, and the probability of the answer at each level (level, y, x)."""
        tree = self.tree(schema.class_table(evidence.probability))
        columns = rows_of(tree.classes, schema.category_labels(evidence.probability))
        if (columns == len(tree.classes)).any():
            raise InputError(
                f"The class table of probability lists {list(tree.classes.values)}, but its "
                f"categories are {schema.category_labels(evidence.probability).tolist()}. Attach a "
                "complete table with hsreject.schema.attach_classes."
            )
        field = self.field_of(evidence, progress)
        values = np.asarray(field.values)
        if self.context is not None:
            weight = TieBrokenMaximum().weight
            values = (values + weight * evidence.probability.values) / (1 + weight)
        position, sums = path_sums(values, tree.over[:, columns])
        label = label_map_of_positions(position, field)
        attrs = tree.to_attrs()
        label.attrs[GROUPS_ATTRIBUTE] = attrs[GROUPS_ATTRIBUTE]  # files of labels keep the groups
        return label, xr.DataArray(sums, dims=schema.LEVEL_DIMS, coords=label.coords, attrs=attrs)

    def meaning(self, evidence: Evidence) -> str:
        """Return that calibrated probabilities are those of the answers."""
        calibrated = self.context is None and evidence.probability.attrs.get(schema.CALIBRATED)
        return ANSWER_PROBABILITY if calibrated else RANK


def path_sums(
    field: NDArray[Any], over: NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.floating[Any]]]:
    """Return the label of each pixel (y, x) and the probabilities along its path (level, y, x).

    `field` is (category, y, x), NaN without data; `over` (level, category) is the node over each
    category. Labels are places along `category`, their number where there is no data.
    """
    has_data = np.isfinite(field).all(axis=0)
    position = field.argmax(axis=0)
    levels = [list(field)]  # sums of the nodes of each level, and the place of each over a category
    places = [np.arange(len(field))]
    for coarser in over[1:]:
        nodes, place = np.unique(coarser, return_inverse=True)
        # sums of sums: rounding then never makes a part larger than the whole
        parts = [np.unique(places[-1][coarser == node]) for node in nodes]
        levels.append([sum(levels[-1][part] for part in some) for some in parts])
        places.append(place)
    # Only one node of a level can have more than one half, and it lies below the one of the next
    # coarser level. Going down, the finest of them has the last word on where the label lies.
    for sums, place in zip(levels[:0:-1], places[:0:-1], strict=True):  # from coarse to fine
        for node, total in enumerate(sums):
            strays = (total > 0.5) & (place[position] != node)
            if strays.any():
                members = np.flatnonzero(place == node)
                position[strays] = members[field[members][:, strays].argmax(axis=0)]
    along = [
        np.take_along_axis(np.stack(sums), place[position][None], axis=0)[0]
        for sums, place in zip(levels, places, strict=True)
    ]
    return np.where(has_data, position, len(field)), np.where(has_data, along, np.nan)
