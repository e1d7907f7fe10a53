"""Every picture once: what the report of a run and an evaluation show, as figures for saving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr
from matplotlib.figure import Figure

from hsreject.classes import ClassTable
from hsreject.measures.point import MEASURES, OperatingPoint
from hsreject.plot.confusion_display import RejectionConfusionDisplay
from hsreject.plot.cost_displays import BreakEvenCostDisplay, CostEnvelopeDisplay
from hsreject.plot.curve_displays import RejectionCurveDisplay
from hsreject.plot.image_displays import ConfidenceMapDisplay, FalseColorDisplay, map_size
from hsreject.plot.map_displays import (
    LEGEND_WIDTH,
    ClassMapDisplay,
    OutcomeMapDisplay,
    RejectMapDisplay,
)
from hsreject.plot.optimality_displays import OperatingSetDisplay, RelativeOptimalityDisplay
from hsreject.plot.reliability_display import ReliabilityDisplay
from hsreject.plot.style import COLUMN_WIDTH, PAGE_WIDTH, new_row, print_style
from hsreject.schema import LABEL_WITH_REJECTION, REJECTOR, reference_pixels

_CROWDED = 8  # classes; a confusion matrix of more needs the width of a page

Curves = Mapping[str, xr.Dataset]


def false_color(bands: xr.DataArray) -> Figure:
    """Draw three bands (band, y, x) as red, green and blue."""
    return _map(FalseColorDisplay.from_cube(bands, bands=(0, 1, 2)), bands)


def class_map(labels: xr.DataArray) -> Figure:
    """Draw a label map in the colours of its classes."""
    return _map(ClassMapDisplay.from_labels(labels), labels)


def reject_map(
    label: xr.DataArray, rejected: xr.DataArray, *, classes: ClassTable | None = None
) -> Figure:
    """Draw a label map whose rejected pixels are black."""
    display = RejectMapDisplay.from_maps(label, rejected, classes=classes)
    return _map(display, label)


def outcome_map(label: xr.DataArray, reference: xr.DataArray, rejected: xr.DataArray) -> Figure:
    """Draw what was kept and rejected, rightly and wrongly."""
    display = OutcomeMapDisplay.from_maps(label, reference, rejected)
    return _map(display, label)


def confidence_map(confidence: xr.DataArray) -> Figure:
    """Draw a confidence with its colour bar."""
    display = ConfidenceMapDisplay.from_confidence(confidence)
    return _map(display, confidence)


def _map(display: Any, place: xr.DataArray) -> Figure:
    """Draw a map with room beside it for a legend, used or not: all maps have one scale."""
    figure, axes = new_row(1, *map_size(place, beside=LEGEND_WIDTH))
    display.plot(axes[0])
    return figure


def measures(
    curves: Curves,
    *,
    isolated: Sequence[str] = (),
    points: Mapping[str, OperatingPoint] | None = None,
    bands: xr.Dataset | None = None,
) -> Figure:
    """Draw the measures; `points` and `bands` are those of a single curve."""
    figure, axes = new_row(len(MEASURES), PAGE_WIDTH, 2.2)
    (only, *_) = curves
    RejectionCurveDisplay.from_curves(
        curves,
        isolated=isolated,
        marked=None if points is None else {only: points},
        bands=None if bands is None else {only: bands},
    ).plot(axes)
    return figure


def relative_optimality(curves: Curves) -> Figure:
    """Draw the relative optimality of each curve, side by side."""
    size = (COLUMN_WIDTH + 0.4, 3.1) if len(curves) == 1 else (PAGE_WIDTH, 2.6)
    figure, axes = new_row(len(curves), *size)
    for ax, (name, curve) in zip(axes, curves.items(), strict=True):
        RelativeOptimalityDisplay.from_curve(curve).plot(ax, colorbar=ax is axes[-1])
        ax.set_title(name, size="medium")
    return figure


def costs(curves: Curves, *, isolated: Sequence[str] = ()) -> Figure:
    """Draw the cost from which on rejection no longer pays, and the cheapest point per cost."""
    figure, axes = new_row(3, PAGE_WIDTH, 2.3)
    BreakEvenCostDisplay.from_curves(curves, isolated=isolated).plot(axes[0])
    CostEnvelopeDisplay.from_curves(curves).plot(axes[1:])
    return figure


def reliability(
    said: Mapping[str, tuple[xr.DataArray, xr.DataArray]], reference: xr.DataArray
) -> Figure:
    """Draw systems by name, each a label map and how probable its labels are, on a reference."""
    samples = {}
    for name, (label, probability) in said.items():
        used, correct = reference_pixels(label, reference)
        samples[name] = correct, probability.values[used]
    figure, axes = new_row(1, COLUMN_WIDTH, COLUMN_WIDTH)
    ReliabilityDisplay.from_samples(samples).plot(axes[0])
    return figure


def operating_set(point: OperatingPoint) -> Figure:
    """Draw where other operating points are better or worse than `point`."""
    figure, axes = new_row(len(MEASURES), PAGE_WIDTH, 2.45)
    OperatingSetDisplay.from_point(point).plot(axes)
    return figure


def confusion(matrix: xr.DataArray, classes: ClassTable) -> Figure:
    """Draw a confusion matrix with its column of rejected pixels."""
    side = COLUMN_WIDTH + 1 if len(classes) <= _CROWDED else PAGE_WIDTH
    figure, axes = new_row(1, side, 0.9 * side)
    RejectionConfusionDisplay.from_matrix(matrix, classes=classes).plot(axes[0])
    return figure


def overview(dataset: xr.Dataset, curves: Curves, name: str, isolated: Sequence[str]) -> Figure:
    """Draw a run in one row: scene, reference, the reject map of `name`, and what it brings."""
    figure, axes = new_row(4, width=9.6, height=2.5)
    rejected = RejectMapDisplay.from_labels(dataset[LABEL_WITH_REJECTION].sel({REJECTOR: name}))
    FalseColorDisplay.from_cube(dataset["false_color"], bands=(0, 1, 2)).plot(axes[0])
    ClassMapDisplay.from_labels(dataset["reference"]).plot(axes[1], legend=False)
    rejected.plot(axes[2], legend=False)
    RejectionCurveDisplay.from_curves(curves, isolated=isolated).plot(
        axes[3:], measures=("nonrejected_accuracy",), legend=False
    )
    with print_style():
        axes[3].legend(
            loc="lower right", handlelength=2.4, title="filled: largest Q", title_fontsize="small"
        )
    share = f"{100 * rejected.rejected_fraction:.0f} %"
    titles = ("scene", "reference", f"{name}, {share} rejected (black)", "what is kept")
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, size="medium")
    return figure
