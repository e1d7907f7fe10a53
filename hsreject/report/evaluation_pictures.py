"""The pictures of an evaluation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hsreject.plot.confusion_display import RejectionConfusionDisplay
from hsreject.plot.cost_displays import BreakEvenCostDisplay, CostEnvelopeDisplay
from hsreject.plot.curve_displays import RejectionCurveDisplay
from hsreject.plot.image_displays import COLORBAR_WIDTH, ConfidenceMapDisplay, map_size
from hsreject.plot.map_displays import LEGEND_WIDTH, OutcomeMapDisplay, RejectMapDisplay
from hsreject.plot.optimality_displays import OperatingSetDisplay, RelativeOptimalityDisplay
from hsreject.plot.style import COLUMN_WIDTH, PAGE_WIDTH, new_row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hsreject.report.evaluation import Evaluation

_CROWDED = 8


def evaluation_pictures(evaluation: Evaluation) -> Iterator[tuple[str, Figure]]:
    """Yield the name and the figure of each picture that the given maps allow.

    With a confidence: measure curves, costs and relative optimality. Always: the operating set,
    the confusion matrix, the reject map and the outcome map of the shown point.
    """
    if evaluation.curve is not None:
        yield from _curve_pictures(evaluation)
    if 0 < evaluation.shown.point.overall_accuracy < 1:
        figure, axes = new_row(3, PAGE_WIDTH, 2.45)
        OperatingSetDisplay.from_point(evaluation.shown.point).plot(axes)
        yield "operating-set", figure
    side = COLUMN_WIDTH + 1 if len(evaluation.classes) <= _CROWDED else PAGE_WIDTH
    figure, axes = new_row(1, side, 0.9 * side)
    RejectionConfusionDisplay.from_matrix(evaluation.confusion, classes=evaluation.classes).plot(
        axes[0]
    )
    yield "confusion-matrix", figure
    yield from _map_pictures(evaluation)


def _curve_pictures(evaluation: Evaluation) -> Iterator[tuple[str, Figure]]:
    curve = evaluation.curve
    assert curve is not None  # noqa: S101 (the caller has looked)
    figure, axes = new_row(3, PAGE_WIDTH, 2.2)
    points = {named.name: named.point for named in evaluation.points[1:]}
    bands = {} if evaluation.bands is None else {"": evaluation.bands}
    RejectionCurveDisplay.from_curves(curve, marked={"": points}, bands=bands).plot(axes)
    yield "measures", figure
    figure, axes = new_row(3, PAGE_WIDTH, 2.3)
    BreakEvenCostDisplay.from_curves(curve).plot(axes[0])
    CostEnvelopeDisplay.from_curves(curve).plot(axes[1:])
    yield "costs", figure
    figure, axes = new_row(1, COLUMN_WIDTH + 0.4, 3.1)
    RelativeOptimalityDisplay.from_curve(curve).plot(axes[0])
    yield "relative-optimality", figure


def _map_pictures(evaluation: Evaluation) -> Iterator[tuple[str, Figure]]:
    label, rejected = evaluation.maps["label"], evaluation.rejected
    figure, ax = _map_axes(evaluation, LEGEND_WIDTH)
    RejectMapDisplay.from_maps(label, rejected, classes=evaluation.classes).plot(ax)
    yield "reject-map", figure
    figure, ax = _map_axes(evaluation, LEGEND_WIDTH)
    OutcomeMapDisplay.from_maps(label, evaluation.maps["reference"], rejected).plot(ax)
    yield "outcome-map", figure
    if "confidence" in evaluation.maps:
        figure, ax = _map_axes(evaluation, COLORBAR_WIDTH)
        ConfidenceMapDisplay.from_confidence(evaluation.maps["confidence"]).plot(ax)
        yield "confidence-map", figure


def _map_axes(evaluation: Evaluation, beside: float) -> tuple[Figure, Axes]:
    """Return axes with room for a map of this shape and for what stands beside it."""
    figure, axes = new_row(1, *map_size(evaluation.maps["label"], beside=beside))
    return figure, axes[0]
