"""Evaluate maps with rejection against a reference, wherever the maps come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.classes import ClassTable
from hsreject.errors import InputError
from hsreject.measures.choosing import cheapest_operating_point, choose_point
from hsreject.measures.confusion import Agreement, confusion_matrix, kept_agreement
from hsreject.measures.curve import rejection_curve
from hsreject.measures.inputs import cost_values
from hsreject.measures.point import COUNTS, MEASURES, OperatingPoint, operating_point
from hsreject.measures.samples import EvaluationSamples, evaluation_samples
from hsreject.measures.summary import accuracy_at, aurc, excess_aurc
from hsreject.measures.uncertainty import Resampling, bootstrap_curve, share_interval
from hsreject.progress import ProgressCallback, no_progress
from hsreject.report.evaluation_files import (
    MapOrPath,
    as_dataset,
    open_maps,
    training_warnings,
    write_evaluation,
)

GIVEN_MASK = "given mask"
_USUAL_SIDE = 16  # pixels: about as far as errors are alike where fields are of that size
_FEWEST_BLOCKS = 8  # along the longer side of a small scene


@dataclass(frozen=True)
class NamedPoint:
    """An operating point of an evaluation and how it came about."""

    name: str  # "no rejection", "given mask", "largest Q" or "cheapest at cost ..."
    point: OperatingPoint
    rejection_cost: float = np.nan  # for which it is cheapest; NaN if it was chosen otherwise

    @property
    def cost(self) -> float:
        """Mean cost per sample at `rejection_cost`."""
        known = np.isfinite(self.rejection_cost)
        return float(self.point.cost(self.rejection_cost)) if known else np.nan


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Everything that is said about a map with rejection.

    Parameters
    ----------
    maps : Dataset, dims (y, x)
        `reference`, `label` and, as far as given, `confidence` and `rejected`.
    classes : ClassTable
        Names and colours of the classes.
    samples : EvaluationSamples
        The pixels with reference and data: all that the measures are computed from.
    points : tuple of NamedPoint
        No rejection, then the given mask, the largest Q and the cheapest points.
    curve : Dataset or None
        Every operating point that a threshold on the confidence reaches.
    bands : Dataset or None
        The measures over `rejected_fraction` with confidence bands, from :meth:`with_bands`.
    block_size : float or None
        Side in pixels of the blocks that are resampled, as for :meth:`with_bands`.
    warnings : tuple of str
        Why the accuracies may mislead.
    measured_on : str
        What a report calls the samples.
    """

    maps: xr.Dataset
    classes: ClassTable
    samples: EvaluationSamples
    points: tuple[NamedPoint, ...]
    curve: xr.Dataset | None
    bands: xr.Dataset | None = None
    block_size: float | None = None
    warnings: tuple[str, ...] = ()
    measured_on: str = "reference pixels"

    def with_bands(
        self,
        block_size: float | None = None,
        *,
        n_resamples: int = 1000,
        seed: int = 0,
        progress: ProgressCallback = no_progress,
    ) -> Evaluation:
        """Return the same evaluation with 95 % bands from a spatial bootstrap.

        Parameters
        ----------
        block_size : float, optional
            Side of the resampled blocks in pixels: at least the distance at which errors stop
            being alike. 16 when not given, and on small scenes an eighth of the longer side.
        n_resamples : int
            Number of resamples.
        seed : int
            Of the resamples.
        progress : ProgressCallback
            Called as resamples are done.
        """
        if self.samples.confidence is None:
            raise InputError("Confidence bands are those of a curve: give a confidence map.")
        known = replace(self, block_size=block_size)
        bands = bootstrap_curve(
            self.samples.correct,
            self.samples.confidence,
            resampling=known.resampling(n_resamples, seed),
            progress=progress,
        )
        return replace(known, bands=bands)

    def resampling(self, n_resamples: int = 1000, seed: int = 0) -> Resampling:
        """Return how blocks of the map are resampled."""
        side = max(self.maps.sizes[schema.Y], self.maps.sizes[schema.X]) // _FEWEST_BLOCKS
        size = self.block_size or min(_USUAL_SIDE, max(side, 1))
        place = self.samples.row, self.samples.column
        return Resampling(n_resamples, seed=seed, coordinates=place, block_size=size)

    def interval(self, named: NamedPoint) -> tuple[float, float]:
        """Return the 95 % interval of the accuracy of what a point keeps, from resampled blocks."""
        kept = ~self.samples.at(self._rejected_at(named))
        return share_interval(self.samples.correct, kept, self.resampling())

    @property
    def shown(self) -> NamedPoint:
        """The point that maps and matrix show: the mask, the first cost's, or the largest Q."""
        asked = [p for p in self.points if p.name == GIVEN_MASK]
        asked += [p for p in self.points if np.isfinite(p.rejection_cost)]
        return asked[0] if asked else self.points[-1]

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

    @property
    def kept_share(self) -> float:
        """The share of the pixels with data that the shown point keeps, reference or not."""
        has_data = self.maps["label"] != schema.nodata_label(self.maps["label"].dtype)
        if "confidence" in self.maps:
            has_data &= self.maps["confidence"].notnull()
        return 1 - float((self.rejected & has_data).sum() / has_data.sum())

    @cached_property
    def confusion(self) -> xr.DataArray:
        """Confusion matrix at the shown point, with its rejected column."""
        return confusion_matrix(
            self.samples.reference,
            self.samples.label,
            rejected=self.samples.at(self.rejected),
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
        """Write report, tables and curve into a folder, all or nothing, and return the files.

        Parameters
        ----------
        folder : path
            A new or empty folder.
        overwrite : bool
            Write into a folder that is not empty, replacing files of the same names.
        progress : ProgressCallback
            Called after each picture.

        Returns
        -------
        list of Path
            ``report.html`` with its pictures in ``figures``, ``points.csv`` (the chosen operating
            points) and ``confusion-matrix.csv``; with a confidence ``curve.nc`` (every operating
            point) and ``curve.csv`` (the same, or of a longer curve 10,001 points evenly spaced in
            rejected fraction); with bands ``bands.csv`` and ``bands.nc``.
        """
        return write_evaluation(self, Path(folder), overwrite=overwrite, progress=progress)

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


def evaluate(
    reference: MapOrPath,
    label: MapOrPath,
    confidence: MapOrPath | None = None,
    *,
    rejected: MapOrPath | None = None,
    rejection_cost: float | Sequence[float] = (),
    nodata: int | None = None,
    attribute: str | None = None,
    classes: ClassTable | None = None,
) -> Evaluation:
    """Evaluate a map with rejection against a reference, wherever the maps come from.

    Parameters
    ----------
    reference : map (y, x) of int, or path
        True classes, 0 where there is no reference: a raster, or a vector file with polygons or
        points.
    label : map (y, x) of int, or path
        Assigned classes before rejection, on the same grid: a raster of one band, or a .mat or .npy
        array (y, x), as for the next two. What a file marks as nodata takes no part.
    confidence : map (y, x) of float, or path, optional
        Larger is surer, NaN where there is no data: gives the whole curve.
    rejected : map (y, x) of bool, or path, optional
        What a map rejects, in a file not 0: gives one operating point. One of the two is needed.
    rejection_cost : float or sequence of float
        Costs of a rejection, in [0, 1] with an error costing 1: gives the cheapest point of each.
    nodata : int, optional
        The label that means "no data", besides what a file says; the largest value of an unsigned
        label type when not given.
    attribute : str, optional
        Which attribute of polygons or points holds the class.
    classes : ClassTable, optional
        Names and colours; those that the reference carries when not given.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import evaluate
    >>> reference, label = np.array([[1, 1, 2, 2]]), np.array([[1, 2, 2, 2]])
    >>> result = evaluate(reference, label, np.array([[0.9, 0.3, 0.8, 0.6]]), rejection_cost=[0.4])
    >>> [(p.name, p.point.rejected_fraction) for p in result.points]
    [('no rejection', 0.0), ('largest Q', 0.25), ('cheapest at cost 0.4', 0.25)]
    """
    if confidence is None and rejected is None:
        raise InputError("Give a confidence map, a map of what is rejected, or both.")
    costs = np.atleast_1d(cost_values(rejection_cost)).tolist() if np.size(rejection_cost) else []
    if confidence is None and costs:
        raise InputError(
            "A rejection cost chooses a threshold, and that needs a confidence map. Give one, or "
            "leave the cost out."
        )
    optional = {"confidence": confidence, "rejected": rejected}
    given = {name: found for name, found in optional.items() if found is not None}
    maps = open_maps(
        {"reference": reference, "label": label, **given}, nodata=nodata, attribute=attribute
    )
    samples = evaluation_samples(
        maps["reference"],
        maps["label"],
        maps.get("confidence"),
        rejected=maps.get("rejected"),
        nodata=None if isinstance(label, str | PathLike) else nodata,
    )
    curve = None
    if samples.confidence is not None:
        curve = rejection_curve(samples.correct, samples.confidence)
    return Evaluation(
        maps=as_dataset(maps),
        classes=_classes_of(maps["reference"], samples) if classes is None else classes,
        samples=samples,
        points=tuple(_points(samples, curve, costs)),
        curve=curve,
        warnings=training_warnings(label, maps["label"], (samples.row, samples.column)),
    )


def _points(
    samples: EvaluationSamples, curve: xr.Dataset | None, costs: Sequence[float]
) -> list[NamedPoint]:
    correct = samples.correct
    points = [NamedPoint("no rejection", operating_point(correct, np.zeros_like(correct)))]
    if samples.rejected is not None:
        points.append(NamedPoint(GIVEN_MASK, operating_point(correct, samples.rejected)))
    if curve is not None:
        points.append(NamedPoint("largest Q", choose_point(curve)))
        for cost in costs:
            chosen = cheapest_operating_point(curve, cost)
            points.append(NamedPoint(f"cheapest at cost {cost:g}", chosen, cost))
    return points


def _classes_of(reference: xr.DataArray, samples: EvaluationSamples) -> ClassTable:
    """Return the reference's class table, completed by what only the labels hold."""
    table = ClassTable.from_attrs(reference.attrs) or ClassTable.plain([])
    return table.completed(np.union1d(samples.reference, samples.label).tolist())


def summary_lines(evaluation: Evaluation) -> list[str]:
    """Return what people quote in words: pixels, area under the curve, agreement of the kept."""
    samples, kept, curve = evaluation.samples, evaluation.agreement, evaluation.curve
    lines = [
        f"{samples.correct.size} pixels with reference and data, "
        f"{samples.n_without_data} with reference only"
    ]
    lines += _strangers(evaluation)
    if curve is not None:
        lines += [
            f"area under the risk-coverage curve {aurc(curve):.4f}, "
            f"excess {excess_aurc(curve):.4f} (smaller is better)",
            f"A with 10 % rejected: {float(accuracy_at(curve, 0.1)[0]):.4f}{_band(evaluation)}",
        ]
    lines.append(
        f"kept at '{evaluation.shown.name}': average accuracy {kept.average_accuracy:.4f}, "
        f"kappa {kept.kappa:.4f}"
    )
    if kept.unkept_classes:
        gone = ", ".join(evaluation.classes.name_of(value) for value in kept.unkept_classes)
        lines.append(f"rejected completely: {gone}")
    return lines


def _strangers(evaluation: Evaluation) -> list[str]:
    """Return one line about classes that only the labels, or only the reference, have."""
    samples, classes = evaluation.samples, evaluation.classes
    lines = []
    for own, others, what in (
        (samples.label, samples.reference, "labels that the reference does not have, all errors"),
        (samples.reference, samples.label, "reference classes that were never assigned"),
    ):
        values, counts = np.unique(own[~np.isin(own, others)], return_counts=True)
        if values.size:
            named = ", ".join(
                f"{classes.name_of(int(value))} ({count} pixels)"
                for value, count in zip(values, counts, strict=True)
            )
            lines.append(f"{what}: {named}")
    return lines


def _band(evaluation: Evaluation) -> str:
    if evaluation.bands is None:
        return ""
    at = evaluation.bands.sel(rejected_fraction=0.1, method="nearest")
    lower, upper = (float(at[f"nonrejected_accuracy_{end}"]) for end in ("lower", "upper"))
    return f" ({100 * evaluation.bands.attrs['confidence_level']:g} %: {lower:.4f} to {upper:.4f})"
