"""Evaluate maps with rejection against a reference, wherever the maps come from."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import HsrejectError, InputError, TrainingPixelsWarning
from hsreject.io.grid import PixelGrid
from hsreject.io.labels import open_labels
from hsreject.io.maps import open_maps
from hsreject.measures.choosing import cheapest_operating_point, choose_point
from hsreject.measures.confusion import Agreement, confusion_matrix, kept_agreement
from hsreject.measures.curve import counts_of, rejection_curve
from hsreject.measures.inputs import cost_values
from hsreject.measures.point import COUNTS, MEASURES, OperatingPoint, operating_point
from hsreject.measures.samples import EvaluationSamples, evaluation_samples
from hsreject.measures.summary import accuracy_at, aurc, excess_aurc
from hsreject.measures.uncertainty import Clusters, square_blocks, usual_side
from hsreject.notebook import Shown
from hsreject.progress import ProgressCallback, no_progress
from hsreject.registry import check_number
from hsreject.rejection.ranking import UNKNOWN, Ranking
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.io.maps import MapOrPath

GIVEN_MASK = "given mask"
TRAIN_FILE = "train.tif"  # beside the maps of a run: the pixels that it has learned from


@dataclass(frozen=True)
class NamedPoint:
    """An operating point of an evaluation and how it was chosen."""

    name: str  # "no rejection", "given mask", "largest Q" or "cheapest at cost ..."
    point: OperatingPoint
    rejection_cost: float = np.nan  # for which it is cheapest; NaN if it was chosen otherwise

    @property
    def cost(self) -> float:
        """Mean cost per sample at `rejection_cost`."""
        has_cost = np.isfinite(self.rejection_cost)
        return float(self.point.cost(self.rejection_cost)) if has_cost else np.nan


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Shown):
    """The evaluation of a map with rejection.

    Parameters
    ----------
    maps : Dataset, dims (y, x)
        `reference`, `label` and, as far as given, `confidence`, `rejected` and `group`.
    classes : ClassTable
        Names and colours of the classes.
    samples : EvaluationSamples
        The pixels with reference and data: all that the measures are computed from.
    points : tuple of NamedPoint
        No rejection, then the given mask, the largest Q and the cheapest points.
    curve : Dataset or None
        Every operating point that a threshold on the confidence reaches, with the 95 % interval of
        its accuracy, `nonrejected_accuracy_lower` and `_upper`.
    clusters : Clusters
        The samples in blocks, or groups, that err together: where intervals come from.
    block_size : float or None
        Side in pixels of the blocks; None where groups are given.
    warnings : tuple of str
        Why the accuracies may mislead.
    measured_on : str
        What a report calls the samples.

    See Also
    --------
    hsreject.evaluate : makes one.
    hsreject.write_explorer : the interactive page.

    Examples
    --------
    >>> import numpy as np
    >>> import hsreject as hr
    >>> reference, label = np.array([[1, 1, 2, 2]]), np.array([[1, 2, 2, 2]])
    >>> evaluation = hr.evaluate(reference, label, np.array([[0.9, 0.3, 0.8, 0.6]]))
    >>> evaluation
    <Evaluation> reference pixels: 4; no rejection: keeps 100 % at 75 % accuracy; largest Q: keeps
    75 % at 100 % accuracy
    >>> evaluation.rejected.values, evaluation.agreement.average_accuracy
    (array([[False,  True, False, False]]), 1.0)
    """

    maps: xr.Dataset
    classes: ClassTable
    samples: EvaluationSamples[NDArray[Any] | None]
    points: tuple[NamedPoint, ...]
    curve: xr.Dataset | None
    clusters: Clusters
    block_size: float | None = None
    warnings: tuple[str, ...] = ()
    measured_on: str = "reference pixels"

    def _facts(self) -> dict[str, str]:
        points = {
            named.name: f"keeps {100 * (1 - named.point.rejected_fraction):.3g} % at "
            f"{100 * named.point.nonrejected_accuracy:.3g} % accuracy"
            for named in self.points
        }
        return {self.measured_on: f"{self.samples.correct.size:,}", **points}

    def interval(self, named: NamedPoint) -> tuple[float, float]:
        """Return the 95 % interval of the accuracy of what a point keeps."""
        kept_samples = ~self.samples.at(self._rejected_at(named))
        return self.clusters.interval(self.samples.correct, kept_samples)

    @property
    def shown(self) -> NamedPoint:
        """The point that maps and matrix show: the mask, the first cost's, or the largest Q."""
        points = [p for p in self.points if p.name == GIVEN_MASK]
        points += [p for p in self.points if np.isfinite(p.rejection_cost)]
        return points[0] if points else self.points[-1]

    @cached_property
    def rejected(self) -> xr.DataArray:
        """The map of what the shown point rejects."""
        return self._rejected_at(self.shown)

    def _rejected_at(self, named: NamedPoint) -> xr.DataArray:
        if named.name == GIVEN_MASK:
            return self.maps["rejected"].astype(bool)
        if "confidence" not in self.maps:  # nothing is rejected
            return xr.zeros_like(self.maps["label"], dtype=bool)
        return (self.maps["confidence"] < named.point.threshold).rename("rejected")

    @cached_property
    def has_data(self) -> xr.DataArray:
        """Where the map has data, reference or not."""
        has_data = self.maps["label"] != schema.nodata_label(self.maps["label"].dtype)
        if "confidence" in self.maps:
            has_data &= self.maps["confidence"].notnull()
        return has_data

    @property
    def kept_share(self) -> float:
        """The share of the pixels with data that the shown point keeps, reference or not."""
        return 1 - float((self.rejected & self.has_data).sum() / self.has_data.sum())

    @cached_property
    def grid(self) -> PixelGrid:
        """Where the pixels of the maps lie."""
        return PixelGrid.of(self.maps["label"])

    @property
    def answers(self) -> xr.DataArray:
        """What the map says (y, x): labels, or groups where `maps` hold an `answer`."""
        return self.maps.get("answer", self.maps["label"])

    @cached_property
    def answer_classes(self) -> ClassTable:
        """The classes, and after them the groups of classes that the map may answer with."""
        if "answer" not in self.maps:
            return self.classes
        table = schema.class_table(self.maps["answer"])
        groups = table.subset(value for value in table.values if value not in self.classes.values)
        return ClassTable(
            (*self.classes.values, *groups.values),
            (*self.classes.names, *groups.names),
            (*self.classes.colors, *groups.colors),
        )

    def lost_classes(self, rejected: xr.DataArray | None = None) -> tuple[int, ...]:
        """Return the classes of which a rejection, that of the shown point, leaves no pixel."""
        kept = ~(self.rejected if rejected is None else rejected).values
        on_map, has_data = self.maps["label"].values, self.has_data.values
        lost = np.setdiff1d(on_map[has_data], on_map[has_data & kept])
        return tuple(value for value in self.classes.values if value in lost)

    def untested_classes(self) -> tuple[int, ...]:
        """Return the classes that the map keeps, but none of their reference pixels."""
        kept_samples = ~self.samples.at(self.rejected)
        untested = np.setdiff1d(self.samples.reference, self.samples.reference[kept_samples])
        lost = self.lost_classes()
        return tuple(v for v in self.classes.values if v in untested and v not in lost)

    @cached_property
    def confusion(self) -> xr.DataArray:
        """Confusion matrix at the shown point, with its rejected column."""
        return confusion_matrix(
            self.samples.reference,
            self.samples.label,
            rejected=self.samples.at(self.rejected),
            sample_weight=self.samples.sample_weight,
            classes=self.classes,
        )

    @property
    def agreement(self) -> Agreement:
        """Accuracy by class and kappa of what the shown point keeps."""
        return kept_agreement(self.confusion)

    def write(
        self,
        folder: str | PathLike[str],
        *,
        overwrite: bool = False,
        progress: ProgressCallback = no_progress,
    ) -> list[Path]:
        """Write report, tables and curve into a folder (:func:`hsreject.write_evaluation`)."""
        from hsreject import write_evaluation  # noqa: PLC0415 (the page is made a floor above)

        return write_evaluation(self, folder, overwrite=overwrite, progress=progress)

    def table(self) -> xr.Dataset:
        """Return the points as a Dataset over `operating_point`, one row per point."""
        of_point = ("rejected_fraction", *MEASURES, *COUNTS, "threshold")
        of_choice = (schema.REJECTION_COST, "cost")
        dim = schema.OPERATING_POINT
        return xr.Dataset(
            {name: (dim, [getattr(p.point, name) for p in self.points]) for name in of_point}
            | {name: (dim, [getattr(p, name) for p in self.points]) for name in of_choice},
            coords={dim: [p.name for p in self.points]},
        )


def evaluate(  # noqa: PLR0913 (one argument per thing that is judged, or known of it)
    reference: MapOrPath,
    label: MapOrPath | Ranking,
    confidence: MapOrPath | None = None,
    *,
    rejected: MapOrPath | None = None,
    rejection_cost: float | Sequence[float] = (),
    block_size: float | None = None,
    groups: xr.DataArray | NDArray[np.integer] | None = None,
    sample_weight: xr.DataArray | NDArray[Any] | None = None,
    nodata: int | None = None,
    attribute: str | None = None,
) -> Evaluation:
    """Evaluate a map with rejection against a reference, wherever the maps come from.

    Parameters
    ----------
    reference : map (y, x) of int, or path
        True classes, 0 where there is no reference: a raster, or a vector file with polygons or
        points.
    label : map (y, x) of int, path, or Ranking
        Assigned classes before rejection, on the same grid: a raster of one band, or a .mat or .npy
        array (y, x), as for the next two. What a file marks as nodata is ignored. A ranking has the
        confidence, too, and what is unknown.
    confidence : map (y, x) of float, or path, optional
        Larger is more certain, NaN where there is no data: gives the whole curve.
    rejected : map (y, x) of bool, or path, optional
        What a map rejects, in a file not 0: gives one operating point. One of the two is needed.
    rejection_cost : float or sequence of float
        Costs of a rejection, in [0, 1] with an error costing 1: gives the cheapest point of each.
    block_size : float, optional
        Side in pixels of the blocks whose pixels are taken to err together, at least the distance
        over which errors are correlated: intervals allow for it. 16 when not given, and on small
        maps an eighth of the longer side.
    groups : map (y, x) of int, optional
        What errs together instead, such as the polygon that each reference pixel belongs to.
    sample_weight : map (y, x) of float, optional
        What each reference pixel stands for, such as the size of its stratum over the number of
        pixels drawn from it: counts, accuracies, curve and confusion are then sums of weights, and
        numbers of reference pixels remain those of pixels.
    nodata : int, optional
        The label that means "no data", besides what a file says; the largest value of an unsigned
        label type when not given.
    attribute : str, optional
        Which attribute of polygons or points holds the class.

    Returns
    -------
    Evaluation

    See Also
    --------
    hsreject.run : makes the map, too.
    hsreject.rejection_curve : the measures behind it.
    hsreject.write_explorer : the interactive page.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import evaluate
    >>> reference, label = np.array([[1, 1, 2, 2]]), np.array([[1, 2, 2, 2]])
    >>> result = evaluate(reference, label, np.array([[0.9, 0.3, 0.8, 0.6]]), rejection_cost=[0.4])
    >>> [(p.name, p.point.rejected_fraction) for p in result.points]
    [('no rejection', 0.0), ('largest Q', 0.25), ('cheapest at cost 0.4', 0.25)]
    """
    unknown = None
    if isinstance(label, Ranking):  # unknown pixels come first, as at every threshold
        ranking, unknown = label, label.unknown
        scores = ranking.scores() if ranking.tree is None else ranking.scores()[-1]
        confidence, label = ranking.coarsest.copy(data=scores), ranking.label
    if confidence is None and rejected is None:
        raise InputError("Give a confidence map, a map of what is rejected, or both.")
    costs = np.atleast_1d(cost_values(rejection_cost)).tolist() if np.size(rejection_cost) else []
    if confidence is None and costs:
        raise InputError(
            "A rejection cost chooses a threshold, and that needs a confidence map. Give one, or "
            "leave the cost out."
        )
    optional = {"confidence": confidence, "rejected": rejected}
    rankings = {name: array for name, array in optional.items() if array is not None}
    maps = open_maps(
        {"reference": reference, "label": label, **rankings}, nodata=nodata, attribute=attribute
    )
    samples = evaluation_samples(
        maps["reference"],
        maps["label"],
        maps.get("confidence"),
        rejected=maps.get("rejected"),
        sample_weight=None
        if sample_weight is None
        else schema.as_map(sample_weight, name="sample_weight"),
        nodata=None if isinstance(label, str | PathLike) else nodata,
    )
    if unknown is not None:
        maps[UNKNOWN] = unknown
    shape = maps["label"].shape
    if groups is None:
        side = usual_side(shape) if block_size is None else block_size
        check_number("block_size", side, above=0)
        block = square_blocks(samples.row, samples.column, side)
    else:
        side = None
        maps["group"] = schema.as_map(groups, name="groups")
        schema.check_same_grid(maps["label"], maps["group"], names=("label", "groups"))
        block = samples.at(maps["group"])
    correct, weight = samples.correct, samples.sample_weight
    clusters = Clusters.of(correct, block, weight)
    unrejected = operating_point(correct, np.zeros_like(correct), sample_weight=weight)
    points = [NamedPoint("no rejection", unrejected)]
    if samples.rejected is not None:
        given = operating_point(correct, samples.rejected, sample_weight=weight)
        points.append(NamedPoint(GIVEN_MASK, given))
    curve = None
    if samples.confidence is not None:
        curve = rejection_curve(correct, samples.confidence, sample_weight=weight)
        counts, dim = counts_of(curve), schema.OPERATING_POINT
        ranks, threshold = samples.confidence, curve["threshold"].values
        squares = clusters.sums_of_squares_above(ranks, threshold)
        singles = clusters.singles_above(ranks, threshold)
        lower, upper = clusters.intervals(counts.accurate_kept, counts.kept, squares, singles)
        curve["nonrejected_accuracy_lower"] = dim, lower
        curve["nonrejected_accuracy_upper"] = dim, upper
        points.append(NamedPoint("largest Q", choose_point(curve)))
        for cost in costs:
            point = cheapest_operating_point(curve, cost)
            points.append(NamedPoint(f"cheapest at cost {cost:g}", point, cost))
    table = ClassTable.from_attrs(maps["reference"].attrs) or ClassTable.plain([])
    return Evaluation(
        maps=as_dataset(maps),
        classes=table.completed(np.union1d(samples.reference, samples.label).tolist()),
        samples=samples,
        points=tuple(points),
        curve=curve,
        clusters=clusters,
        block_size=side,
        warnings=training_warnings(label, maps["label"], (samples.row, samples.column)),
    )


def as_dataset(maps: Mapping[str, xr.DataArray]) -> xr.Dataset:
    """Return maps that were checked to lie on one grid, with the coordinates of the best placed."""
    grid = max(maps.values(), key=lambda array: (array.rio.crs is not None, len(array.coords)))
    return xr.Dataset(
        {name: (grid.dims, array.values, array.attrs) for name, array in maps.items()},
        coords=grid.coords,
    )


def training_warnings(
    source: MapOrPath, label: xr.DataArray, place: tuple[NDArray[np.intp], ...]
) -> tuple[str, ...]:
    """Warn if a map has learned from the pixels at `place` that it is measured on.

    That is so if a run has recorded them as training pixels beside the map. Returns the warning.
    """
    if not isinstance(source, str | PathLike):
        return ()
    path = Path(source).with_name(TRAIN_FILE)
    if not path.is_file() or path == Path(source):
        return ()
    try:
        train = open_labels(path).values
    except HsrejectError:  # another file of that name
        return ()
    n_learned = np.count_nonzero(train[place]) if train.shape == label.shape else 0
    if not n_learned:
        return ()
    warning = (
        f"{n_learned} of the {place[0].size} reference pixels are training pixels, recorded in "
        f"{path}: the map has learned them, and every accuracy is too high. Give test pixels, such "
        "as test.tif beside it, as reference."
    )
    warnings.warn(warning, TrainingPixelsWarning, stacklevel=3)
    return (warning,)


def summary_lines(evaluation: Evaluation) -> list[str]:
    """Return what people quote in words: pixels, area under the curve, agreement of the kept."""
    samples, agreement, curve = evaluation.samples, evaluation.agreement, evaluation.curve
    name_of, labels, references = evaluation.classes.name_of, samples.label, samples.reference
    lines = [
        f"{samples.correct.size} pixels with reference and data, "
        f"{samples.n_without_data} with reference only"
    ]
    for what, own, others in (
        ("labels that the reference does not have, all errors", labels, references),
        ("reference classes that were never assigned", references, labels),
    ):
        values, counts = np.unique(own[~np.isin(own, others)], return_counts=True)
        if values.size:
            pairs = zip(map(name_of, values.tolist()), counts, strict=True)
            lines.append(f"{what}: {', '.join(f'{name} ({n} pixels)' for name, n in pairs)}")
    if curve is not None:
        lines += [
            f"area under the risk-coverage curve {aurc(curve):.4f}, "
            f"excess {excess_aurc(curve):.4f} (smaller is better)",
            f"A with 10 % rejected: {float(accuracy_at(curve, 0.1)[0]):.4f}",
        ]
    lines.append(
        f"kept at '{evaluation.shown.name}': average accuracy {agreement.average_accuracy:.4f}, "
        f"kappa {agreement.kappa:.4f}"
    )
    if agreement.unkept_classes:
        lines.append(f"rejected completely: {', '.join(map(name_of, agreement.unkept_classes))}")
    return lines
