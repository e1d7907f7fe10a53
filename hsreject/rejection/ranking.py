"""The ranking: everything a rejection can be taken from, and the maps that it gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from dask.base import compute

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures.curve import counts_of, curve_of_points, rejection_curve
from hsreject.measures.levels import level_curve
from hsreject.measures.point import OperatingPoint, operating_point
from hsreject.schema import (
    LABEL_WITH_REJECTION,
    LEVEL,
    LEVEL_CONFIDENCE,
    MAP_DIMS,
    OPERATING_POINT,
    REJECTED,
)
from hsreject.schema.class_tree import GROUPS_ATTRIBUTE, ClassTree, rows_of
from hsreject.schema.classes import ClassTable
from hsreject.schema.label_maps import map_id

if TYPE_CHECKING:
    from numpy.typing import NDArray

RANK = "confidence (a rank)"
LABEL_PROBABILITY = "probability of the label"
ANSWER_PROBABILITY = "probability of the answer"
"""What a confidence is, as `long_name`: most only rank pixels, that of levels is of each answer."""

UNKNOWN = "unknown"
"""Map of the pixels that are like no training pixel, all of them rejected."""

KEPT_FLAG, REJECTED_FLAG, UNKNOWN_FLAG, GROUP_FLAG = 1, 2, 3, 4
FLAGS = ClassTable.from_names(
    ("kept", "rejected", "unknown", "group"), colors=("#4d9221", "#bdbdbd", "#762a83", "#b8e186")
)
"""Why a pixel has a label or none: kept, rejected for its confidence, like no training pixel, or
answered with a group of classes."""

UNIT = "unit"
NO_ATTRS: Mapping[str, Any] = MappingProxyType({})
_OPTIONAL = (UNKNOWN, "second", "probability")


@dataclass(frozen=True, eq=False)
class Ranking:
    """Labels, and the order in which a rejection gives them up: all that it can be taken from.

    A threshold keeps the units (pixels, or objects such as parcels) whose confidence reaches it,
    equal confidences together. With groups of classes there is a confidence per level of the tree,
    and the answer is the finest node that reaches the threshold. Nothing is computed before it is
    asked for, and maps of lazy arrays are lazy.

    Parameters
    ----------
    label : DataArray or array of int (y, x), or (unit,)
        The best class, `schema.nodata_label` where there is no data, 0 where a unit is rejected
        already and stays so.
    confidence : DataArray or array of float, of that shape, or (level, ...)
        Larger is more certain, NaN without data. Of a map that may answer coarser, one per level
        of its class tree, the coarsest last, which decides what is rejected.
    unknown : DataArray or array of bool, optional
        Units like no training pixel: every threshold rejects them.
    tree : ClassTree, optional
        The groups of classes; by default those in the attributes of a confidence with levels.
    meaning : str
        What a confidence is, such as "probability of the label"; by default its `long_name`.
    second : DataArray, optional
        The second choice of each unit.
    probability : DataArray, optional
        Class probabilities, dims (category, ...).

    See Also
    --------
    hsreject.decide : from a goal to a threshold.
    hsreject.RankedRejector : makes one.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import Ranking
    >>> label, confidence = np.array([[1, 2, 2]], np.uint8), np.array([[0.9, 0.4, 0.8]])
    >>> ranking = Ranking(label, confidence, unknown=np.array([[False, False, True]]))
    >>> maps = ranking.at(0.5)
    >>> maps.label_with_rejection.values, maps.flag.values  # kept, rejected, unknown
    (array([[1, 0, 0]], dtype=uint8), array([[1, 2, 3]], dtype=uint8))
    >>> ranking.points(np.array([[1, 1, 2]])).rejected_fraction.values
    array([0.        , 0.33333333, 0.66666667, 1.        ])
    """

    label: xr.DataArray
    confidence: xr.DataArray
    unknown: xr.DataArray | None = None
    _: KW_ONLY
    tree: ClassTree | None = None
    meaning: str = ""
    second: xr.DataArray | None = None
    probability: xr.DataArray | None = None

    def __post_init__(self) -> None:
        label = _as_units(self.label, name="label")
        schema.check_label_type(label.dtype, name="label")
        if label.dtype.kind == "i" or schema.fill_value(label) not in {None, _missing(label)}:
            missing = schema.nodata_values(label)
            values = schema.canonical_labels(np.asarray(label.values), nodata=missing)
            label = label.copy(data=values)
            label = label.assign_attrs({**label.attrs, "_FillValue": _missing(label)})
        levels = _as_units(self.confidence, name="confidence", dims=label.dims)
        _check_same_units(label, levels, name="confidence")
        if levels.dtype.kind not in "iuf":
            raise InputError(f"confidence must hold numbers (got {levels.dtype}).")
        if levels.dtype not in {np.dtype(np.float32), np.dtype(np.float64)}:
            levels = levels.astype(np.float64)
        tree, meaning = self.tree, self.meaning or str(levels.attrs.get("long_name", RANK))
        if tree is None and levels.sizes.get(LEVEL, 1) == 1:
            levels = levels.isel({LEVEL: 0}, drop=True) if LEVEL in levels.dims else levels
        else:
            tree = tree or ClassTree.of(levels)
            if levels.sizes.get(LEVEL, 1) != tree.n_levels:
                raise InputError(
                    f"{LEVEL_CONFIDENCE} has {levels.sizes.get(LEVEL, 1)} levels, and the class "
                    f"tree that it carries has {tree.n_levels}. Pass the confidence of "
                    "HierarchicalRejector.rank."
                )
        attrs = {"long_name": meaning, **({} if tree is None else tree.to_attrs())}
        levels = levels.drop_attrs(deep=False).assign_attrs(attrs)
        levels = levels.rename("confidence" if tree is None else LEVEL_CONFIDENCE)
        unknown = self.unknown
        if unknown is not None:
            unknown = _as_units(unknown, name=UNKNOWN, dims=label.dims).astype(bool)
            _check_same_units(label, unknown, name=UNKNOWN)
            unknown = (unknown & (label != _missing(label))).rename(UNKNOWN).drop_attrs(deep=False)
        fields = {"label": label, "confidence": levels, UNKNOWN: unknown}
        for name, value in {**fields, "tree": tree, "meaning": meaning}.items():
            object.__setattr__(self, name, value)
        if label.chunks is None and levels.chunks is None:
            self._check_finite()

    def _check_finite(self) -> None:
        labelled = (self.label.values != _missing(self.label)) & (self.label.values != REJECTED)
        without = labelled & ~np.isfinite(self.coarsest.values)
        if without.any():
            what = "infinite" if np.isinf(self.coarsest.values[without]).all() else "NaN"
            raise InputError(
                f"confidence is {what} in {without.sum()} pixels that have a label, which no "
                "threshold can rank. Give these pixels the label of no data, or a confidence."
            )

    # To and from a Dataset: the only place that looks which variables are there.

    @classmethod
    def of(cls, maps: xr.Dataset) -> Ranking:
        """Return the ranking in a Dataset: a ``Stack`` where labels are maps by place."""
        parts: dict[str, Any] = {name: maps[name] for name in _OPTIONAL if name in maps}
        if OPERATING_POINT in maps["label"].dims:
            return Stack(maps["label"], maps["confidence"], rejected=maps["rejected"], **parts)
        confidence = maps.get(LEVEL_CONFIDENCE, maps["confidence"])
        meaning = str(maps["confidence"].attrs.get("long_name", ""))
        return cls(maps["label"], confidence, meaning=meaning, **parts)

    def to_dataset(self) -> xr.Dataset:
        """Return `label`, `confidence` (that of the coarsest answer) and what else there is.

        With a tree that is `level_confidence` (level, ...); then `unknown`, `second`,
        `probability`.
        """
        maps = {"label": self.label, "confidence": self.coarsest}
        if self.tree is not None:
            maps[LEVEL_CONFIDENCE] = self.confidence
        return xr.Dataset(maps | self._more)

    @property
    def _more(self) -> dict[str, xr.DataArray]:
        there = ((name, getattr(self, name)) for name in _OPTIONAL)
        return {name: one for name, one in there if one is not None}

    def isel(self, **indexers: Any) -> Ranking:
        """Return the ranking of some of the units, by their places along dimensions."""
        maps = self.to_dataset()
        return Ranking.of(maps.drop_vars(MAP_DIMS, errors="ignore").isel(indexers))

    def load(self, **options: Any) -> Ranking:
        """Return the ranking in memory; options are those of ``dask.compute``."""
        arrays = {"label": self.label, "confidence": self.confidence, **self._more}
        return replace(self, **dict(zip(arrays, compute(*arrays.values(), **options), strict=True)))

    def flat(self) -> Ranking:
        """Return the ranking of classes alone: what would be answered with a group is rejected."""
        label = self.label.copy()
        label.attrs.pop(GROUPS_ATTRIBUTE, None)
        confidence = self.confidence.isel({LEVEL: 0}, drop=True).drop_attrs(deep=False)
        return replace(self, label=label, confidence=confidence, tree=None)

    # What it says of its units.

    @property
    def coarsest(self) -> xr.DataArray:
        """The confidence of the coarsest answer of each unit, below which it is rejected."""
        if self.tree is None:
            return self.confidence
        one = self.confidence.isel({LEVEL: -1}, drop=True).drop_attrs(deep=False)
        return one.assign_attrs({"long_name": self.meaning}).rename("confidence")

    @property
    def has_data(self) -> xr.DataArray:
        """Where there is a label, kept or rejected."""
        return self.label != _missing(self.label)

    @cached_property
    def id(self) -> str:
        """Identifies labels and confidences of what can be kept, read some rows at a time."""
        label = self.label
        if self.unknown is not None:
            label = label.where(~self.unknown, label.dtype.type(REJECTED)).assign_attrs(label.attrs)
        return map_id(label, self.confidence)

    def scores(self) -> NDArray[np.floating[Any]]:
        """Return the confidences for a sort: those of unknown units below all others."""
        values = np.asarray(self.confidence.values)
        return values if self.unknown is None else unknown_first(values, self.unknown.values)

    # What a threshold makes of it.

    def answers(self, threshold: float | NDArray[np.float64]) -> xr.DataArray:
        """Return the codes of classes and groups that reach a threshold, 0 where none does.

        Each unit, and each of its levels, may have its own threshold: (..., ) or (level, ...). With
        a tree the map carries the table of all nodes, and the groups.
        """
        label, unknown = self.label, self.unknown
        if self.tree is not None:
            answer = _finest_answers(label, self.confidence, threshold, self.tree)
        else:
            limit: Any = threshold
            if np.ndim(threshold):
                limit = np.reshape(threshold, label.shape).astype(self.confidence.dtype)
            answer = _without(label, self.coarsest < limit)
        if unknown is not None:
            answer = answer.where(~unknown, answer.dtype.type(REJECTED)).assign_attrs(answer.attrs)
        return answer.rename(LABEL_WITH_REJECTION)

    def at(
        self, threshold: float | NDArray[np.float64], *, attrs: Mapping[str, Any] = NO_ATTRS
    ) -> xr.Dataset:
        """Return the maps at a threshold.

        They are `label`, `confidence`, `rejected`, `label_with_rejection`, `unknown`, where that is
        known, and `flag`: the code in `FLAGS` of why a unit has a label or none. The attributes are
        those given, `threshold`, `n_pixels` with data, and of these `rejected_fraction` and
        `unknown_fraction`.
        """
        attrs = {**attrs, "threshold": float(np.min(threshold))}
        return self._maps(self.label, self.coarsest, self.answers(threshold), attrs)

    def _maps(
        self,
        label: xr.DataArray,
        confidence: xr.DataArray,
        answer: xr.DataArray,
        attrs: Mapping[str, Any],
    ) -> xr.Dataset:
        rejected = (answer == REJECTED).drop_attrs(deep=False)
        maps = {"label": label, "confidence": confidence, "rejected": rejected}
        maps |= {LABEL_WITH_REJECTION: answer}
        counted = [label != _missing(label), rejected]
        if self.unknown is not None:
            maps[UNKNOWN] = self.unknown
            counted.append(self.unknown)
        maps["flag"] = _flags(maps, self.tree)
        n_pixels, *counts = map(int, compute(*(one.data.sum() for one in counted)))
        names = ("rejected_fraction", "unknown_fraction")
        shares = {name: n / max(n_pixels, 1) for name, n in zip(names, counts, strict=False)}
        return xr.Dataset(maps, attrs={**attrs, "n_pixels": n_pixels, **shares})

    def finest(self, threshold: float) -> float:
        """Return the lowest threshold that rejects the same units: its answers are the finest."""
        if self.tree is None or not np.isfinite(threshold):
            return threshold
        # Thresholds above the most confident rejected unit and up to this one reject the same.
        # Answers change only at confidences, so the least one in that range gives the finest.
        coarsest = self.coarsest
        rejected_up_to = coarsest.where(coarsest < threshold).max().fillna(-np.inf).item()
        above = self.confidence.where(self.confidence > rejected_up_to)
        return float(above.min().fillna(np.inf).item())

    # What it is worth on units of known class.

    def points(
        self, reference: xr.DataArray | NDArray[Any], *, name: str = "reference"
    ) -> xr.Dataset:
        """Return its operating points on reference units, 0 where the class is not known.

        The first rejects nothing. No threshold does that where some of them are unknown: it is
        then minus infinity, and the second point rejects these.
        """
        used, correct = _reference_units(self.label, reference, name=name)
        scores = self.scores()[..., used]
        if self.tree is None:
            curve = rejection_curve(correct, scores)
        else:
            truth = schema.reference_labels(reference, name=name)[used]
            curve = level_curve(self.label.values[used], scores, truth, self.tree)
        if self.unknown is not None and self.unknown.values[used].any():
            curve["threshold"].values[0] = -np.inf
        return with_overall_accuracy(curve)

    def point(self, threshold: float, reference: xr.DataArray | NDArray[Any]) -> OperatingPoint:
        """Return the operating point of a threshold on reference units."""
        return _point_of(self.label, self.answers(threshold), reference, self.tree)


@dataclass(frozen=True, eq=False)
class Stack(Ranking):
    """Maps whose labels change with what is rejected, such as those of joint rejection.

    The place of a map takes the part of a threshold. Nothing orders the pixels within a map, so
    there are no answers but those of the maps.

    Parameters
    ----------
    label, confidence, rejected : DataArray (operating_point, y, x)
        The maps.
    unknown : DataArray of bool (y, x), optional
        Rejected in all of them.
    facts : sequence of mappings
        What is known of each map: attributes of :meth:`at`.

    See Also
    --------
    hsreject.JointRejector : makes one.
    """

    _: KW_ONLY
    rejected: xr.DataArray
    facts: Sequence[Mapping[str, Any]] = ()

    def __post_init__(self) -> None:
        for name in ("label", "confidence", "rejected"):
            planes = schema.check_dims(getattr(self, name), _PLANES, name=name)
            object.__setattr__(self, name, planes)

    @classmethod
    def of_maps(cls, maps: Sequence[xr.Dataset]) -> Stack:
        """Return the stack of maps that are made as those of :meth:`hsreject.Ranking.at`."""
        first = maps[0]
        planes = [one[["label", "confidence", "rejected"]].drop_attrs(deep=False) for one in maps]
        stack = xr.concat(planes, dim=OPERATING_POINT, combine_attrs="override")
        facts, meaning = [one.attrs for one in maps], first["confidence"].attrs.get("long_name", "")
        return cls(
            stack["label"],
            stack["confidence"],
            first.get(UNKNOWN),
            rejected=stack["rejected"],
            meaning=meaning,
            facts=facts,
        )

    def to_dataset(self) -> xr.Dataset:
        """Return `label`, `confidence` and `rejected` (operating_point, y, x), and `unknown`."""
        confidence = self.confidence.assign_attrs({"long_name": self.meaning or RANK})
        maps = {"label": self.label, "confidence": confidence, "rejected": self.rejected}
        return xr.Dataset(maps | self._more)

    @property
    def has_data(self) -> xr.DataArray:
        """Where there is a label (y, x)."""
        return self._plane("label", 0) != _missing(self.label)

    def _plane(self, name: str, place: int) -> xr.DataArray:
        planes: xr.DataArray = getattr(self, name)
        return planes.isel({OPERATING_POINT: place}, drop=True)

    def answers(self, threshold: float | NDArray[np.float64]) -> xr.DataArray:
        """Return the labels of the map at a place, 0 where it rejects."""
        label, rejected = (self._plane(name, int(threshold)) for name in ("label", "rejected"))
        if self.unknown is not None:
            rejected = rejected | self.unknown
        return _without(label, rejected).rename(LABEL_WITH_REJECTION)

    def at(
        self, threshold: float | NDArray[np.float64], *, attrs: Mapping[str, Any] = NO_ATTRS
    ) -> xr.Dataset:
        """Return the map at a place, as :meth:`hsreject.Ranking.at` does."""
        place = int(threshold)
        label, confidence = (self._plane(name, place) for name in ("label", "confidence"))
        confidence = confidence.assign_attrs({"long_name": self.meaning or RANK})
        facts = dict(self.facts[place]) if self.facts else {"threshold": np.nan}
        return self._maps(label, confidence, self.answers(threshold), {**facts, **attrs})

    def points(
        self, reference: xr.DataArray | NDArray[Any], *, name: str = "reference"
    ) -> xr.Dataset:
        """Return the operating point of each map on reference pixels, as if none were unknown.

        The column `threshold` holds the places of the maps.
        """
        points = []
        for place in range(self.label.sizes[OPERATING_POINT]):
            label, rejected = (self._plane(one, place) for one in ("label", "rejected"))
            used, correct = _reference_units(label, reference, name=name)
            point = operating_point(correct, rejected.values[used])
            points.append(replace(point, threshold=float(place)))
        return with_overall_accuracy(curve_of_points(points))

    def point(self, threshold: float, reference: xr.DataArray | NDArray[Any]) -> OperatingPoint:
        """Return the operating point of the map at a place on reference pixels."""
        answer = self.answers(threshold)
        return _point_of(self._plane("label", int(threshold)), answer, reference, None)


_PLANES = (OPERATING_POINT, *MAP_DIMS)


def unknown_first(
    confidence: NDArray[np.floating[Any]], unknown: NDArray[np.bool_]
) -> NDArray[np.floating[Any]]:
    """Return confidences (..., unit) in which unknown units come just below all others."""
    if not unknown.any():
        return confidence
    known = confidence[..., ~unknown]
    least = known[~np.isnan(known)].min(initial=np.finfo(confidence.dtype).max)
    return np.where(unknown, np.nextafter(least, -np.inf, dtype=confidence.dtype), confidence)


def _missing(label: xr.DataArray) -> int:
    return schema.nodata_label(label.dtype)


def _as_units(values: Any, *, name: str, dims: tuple[Any, ...] = ()) -> xr.DataArray:
    """Return an array over units; plain ones are maps (y, x), or a list of units."""
    if not isinstance(values, xr.DataArray):
        plain = schema.plain_array(values, name=name, fill="0") if _in_memory(values) else values
        own = dims or {2: MAP_DIMS, 1: (UNIT,)}.get(plain.ndim, ())
        if plain.ndim == len(own) + 1 and name == "confidence":
            own = (LEVEL, *own)
        if plain.ndim != len(own) or not own:
            raise InputError(
                f"{name} must be a map (y, x) or a list of units (got the shape {plain.shape})."
            )
        return xr.DataArray(plain, dims=own, name=name)
    wanted = dims or (MAP_DIMS if set(values.dims) == set(MAP_DIMS) else values.dims)
    return schema.check_dims(
        values, (LEVEL, *wanted) if LEVEL in values.dims else wanted, name=name
    )


def _in_memory(values: Any) -> bool:
    return not hasattr(values, "__dask_graph__")


def _check_same_units(label: xr.DataArray, other: xr.DataArray, *, name: str) -> None:
    if label.dims == MAP_DIMS:
        schema.check_same_grid(label, other, names=("label", name))
    elif label.sizes[label.dims[0]] != other.sizes[label.dims[0]]:
        raise InputError(f"label has {label.size} units but {name} has {other.shape[-1]}.")


def _without(label: xr.DataArray, rejected: xr.DataArray) -> xr.DataArray:
    """Return labels with 0 where they are rejected."""
    has_data = label != _missing(label)
    return label.where(~(rejected & has_data), label.dtype.type(REJECTED)).assign_attrs(label.attrs)


def _flags(maps: Mapping[str, xr.DataArray], tree: ClassTree | None) -> xr.DataArray:
    """Return the codes of `FLAGS` of the maps of a rejection, 255 where there is no data."""
    label, answer, rejected = maps["label"], maps[LABEL_WITH_REJECTION], maps["rejected"]
    flag = rejected.astype(np.uint8) + np.uint8(KEPT_FLAG)
    if UNKNOWN in maps:
        flag = flag.where(~maps[UNKNOWN], np.uint8(UNKNOWN_FLAG))
    table = FLAGS.subset((KEPT_FLAG, REJECTED_FLAG, UNKNOWN_FLAG))
    if tree is not None:
        flag, table = flag.where(rejected | (answer == label), np.uint8(GROUP_FLAG)), FLAGS
    missing = np.uint8(schema.nodata_label(np.uint8))
    flag = flag.where(label != _missing(label), missing).rename("flag").drop_attrs(deep=False)
    attrs = {"long_name": "why a pixel has a label or none", "_FillValue": int(missing)}
    return schema.attach_classes(flag.assign_attrs(attrs), table)


def _reference_units(
    label: xr.DataArray, reference: xr.DataArray | NDArray[Any], *, name: str
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which units have a label and a reference, and which of those are right."""
    if label.dims != MAP_DIMS:  # as a map of one row
        label, reference = (
            label.expand_dims(schema.Y).rename({label.dims[0]: schema.X}),
            np.asarray(reference)[None],
        )
        used, correct = schema.reference_pixels(label, reference, name=name)
        return used[0], correct
    return schema.reference_pixels(label, reference, name=name)


def _point_of(
    label: xr.DataArray,
    answer: xr.DataArray,
    reference: xr.DataArray | NDArray[Any],
    tree: ClassTree | None,
) -> OperatingPoint:
    used, correct = _reference_units(label, reference, name="reference")
    codes = answer.values[used]
    rejected = codes == REJECTED
    if tree is not None:  # of what is rejected, the coarsest answer counts
        codes = np.where(rejected, node_codes(label.values[used], tree), codes)
        correct = tree.holds(codes, schema.reference_labels(reference)[used])
    return operating_point(correct, rejected)


def with_overall_accuracy(curve: xr.Dataset) -> xr.Dataset:
    """Return a curve with a column `overall_accuracy`, which may differ from point to point."""
    accuracy = counts_of(curve).overall_accuracy
    attrs = {"long_name": "accuracy with nothing rejected"}
    return curve.assign(overall_accuracy=(OPERATING_POINT, accuracy, attrs))


# Answers of a class tree.


def _finest_answers(
    label: xr.DataArray,
    confidence: xr.DataArray,
    threshold: float | NDArray[np.float64],
    tree: ClassTree,
) -> xr.DataArray:
    """Return the codes of the finest nodes that reach a threshold, 0 where nothing does."""
    dtype = schema.label_dtype(max(tree.table.values))

    def answers(label: NDArray[Any], levels: NDArray[Any], limit: NDArray[Any]) -> NDArray[Any]:
        # how many levels come before the first that reaches its limit; where limits differ by
        # level, a coarser one may fail its own again, which must not count
        below = np.logical_and.accumulate(levels < limit, axis=-1)
        return node_codes(label, tree, below.sum(axis=-1))

    # as precise as the confidences, as where these are compared with a plain number
    limits = np.asarray(threshold, dtype=confidence.dtype)
    limits = limits.reshape(-1, *limits.shape[-label.ndim :])  # one for all levels, or one for each
    limit = xr.Variable(("limit", *label.dims[: limits.ndim - 1]), limits)
    answer: xr.DataArray = xr.apply_ufunc(
        answers,
        label.variable,
        confidence.variable,
        limit,
        input_core_dims=[[], [LEVEL], ["limit"]],
        dask="parallelized",
        output_dtypes=[dtype],
        dask_gufunc_kwargs={"allow_rechunk": True},
    )
    attrs = {**label.attrs, **tree.to_attrs(), "_FillValue": schema.nodata_label(dtype)}
    return label.copy(data=answer.data).assign_attrs(attrs)


def node_codes(
    label: NDArray[Any], tree: ClassTree, level: int | NDArray[Any] | None = None
) -> NDArray[Any]:
    """Return the codes of the nodes over labels at a level, the coarsest unless it is given.

    Beyond the coarsest level lies "rejected"; of labels that the tree lacks it is that of no data.
    """
    dtype = schema.label_dtype(max(tree.table.values))
    codes = np.full((tree.n_levels + 1, len(tree.classes) + 1), REJECTED, dtype=dtype)
    codes[:-1, :-1] = np.array(tree.table.values)[tree.over]
    codes[:, -1] = schema.nodata_label(dtype)
    return np.asarray(codes[-2 if level is None else level, rows_of(tree.classes, label)])


def flat_map(answer: xr.DataArray) -> xr.DataArray:
    """Return a map of answers in which groups are rejected: for readers that know no groups."""
    tree = ClassTree.of(answer)
    groups = tree.table.values[len(tree.classes) :]
    flat = answer.where(~answer.isin(groups), answer.dtype.type(REJECTED))
    flat.attrs = {**answer.attrs, **tree.classes.to_attrs()}
    del flat.attrs[GROUPS_ATTRIBUTE]
    return flat


def credited_label(maps: xr.Dataset, reference: xr.DataArray) -> xr.DataArray:
    """Return labels that are right exactly where the answers are, for measures of classes.

    Where the reference lies below the answer it takes the place of the label; of a rejected pixel
    the coarsest answer counts. Of maps without groups these are the labels themselves.
    """
    label, answer = maps["label"], maps[LABEL_WITH_REJECTION]
    tree = ClassTree.from_attrs(answer.attrs)
    if tree is None:
        return label
    coarsest = node_codes(label.values, tree)
    code = np.where(answer.values == REJECTED, coarsest, answer.values)
    right = tree.holds(code, reference.values)
    return label.copy(data=np.where(right, reference.values, label.values).astype(label.dtype))


def levels_as_field(levels: xr.DataArray) -> xr.DataArray:
    """Return confidences (level, y, x) as a field that files take: one band per level."""
    names = ClassTable.from_names(ClassTree.of(levels).level_names[:-1])
    field = levels.drop_attrs(deep=False).rename({LEVEL: schema.CATEGORY})
    return schema.attach_classes(field.assign_coords({schema.CATEGORY: list(names.values)}), names)
