"""The operating set of a reference point: what outperforms it whatever a rejection costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from hsreject.errors import InputError
from hsreject.measures import counts
from hsreject.plot.measure_axes import ACCURACY, MEASURES, QUALITY, REJECTION_QUALITY, label_axes
from hsreject.plot.style import (
    BETTER,
    PAGE_WIDTH,
    REFERENCE,
    WORSE,
    legend_above,
    print_style,
    shown_row,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from hsreject.measures.point import OperatingPoint

_OUT_OF_REACH = "0.87"
_COLUMNS = 1000


@dataclass(frozen=True, eq=False)
class OperatingSetDisplay:
    r"""The measures around a reference point, with the regions that need no cost: figure 2.

    At every rejected fraction :math:`r_1` the relative optimality with respect to the reference
    fixes the accurate samples kept, :math:`A_1(1-r_1) = A_0(1-r_0) + (\pm\beta - 1)(r_1-r_0)/2`
    (plus for :math:`r_1 > r_0`). Above :math:`\beta = 1` a point outperforms the reference for
    every rejection cost in [0, 1], below :math:`\beta = -1` it is outperformed; between, it
    depends on the cost.

    Parameters
    ----------
    reference : OperatingPoint
        The reference point.
    largest_rejection_quality : float
        Where the axis of rejection quality, which has no bound, ends.

    Examples
    --------
    >>> from hsreject.measures.point import OperatingPoint
    >>> from hsreject.plot.style import new_figure
    >>> display = OperatingSetDisplay(OperatingPoint(50, 30, 5, 15))
    >>> axes = display.plot(new_figure().subplots(1, 3))
    >>> display.border("nonrejected_accuracy", 1.0, 0.5)  # only errors newly rejected
    array(1.)
    """

    reference: OperatingPoint
    largest_rejection_quality: float = 10.0

    def __post_init__(self) -> None:
        if not 0 < self.reference.overall_accuracy < 1:
            raise InputError(
                "An operating set needs a classifier with right and wrong labels "
                f"(got overall accuracy {self.reference.overall_accuracy:g})."
            )

    def border(
        self, measure: str, optimality: float, fraction: float | NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return a measure at rejected fractions where the relative optimality is given.

        Infinite optimality gives the limits of what this classifier can reach: it has only so many
        accurate and misclassified samples to keep. Borders beyond those limits lie on them.
        """
        r = np.asarray(fraction, dtype=float)
        accurate = self.reference.overall_accuracy
        lowest, highest = np.maximum(0, accurate - r), np.minimum(accurate, 1 - r)
        if np.isinf(optimality):
            kept = highest if optimality > 0 else lowest
        else:
            step = r - self.reference.rejected_fraction
            kept = self.reference.accurate_kept / self.reference.n
            kept = np.clip(kept + (optimality * np.abs(step) - step) / 2, lowest, highest)
        rejected = accurate - kept, r - (accurate - kept)
        if measure == ACCURACY:
            return np.asarray(counts.nonrejected_accuracy(kept, 1 - r))
        if measure == QUALITY:
            return np.asarray(counts.classification_quality(kept, rejected[1], 1.0))
        return np.asarray(counts.rejection_quality(*rejected, accurate, 1 - accurate))

    def plot(
        self,
        axes: Sequence[Axes] | None = None,
        *,
        measures: Sequence[str] = MEASURES,
        legend: bool = True,
    ) -> list[Axes]:
        """Draw one panel a measure, on `axes` (new pyplot axes unless given); return the axes."""
        with print_style():
            panels = shown_row(len(measures), PAGE_WIDTH, 2.4) if axes is None else list(axes)
            for ax, measure in zip(panels, measures, strict=True):
                self._panel(ax, measure)
            if legend:
                legend_above(panels[0], _legend_handles())
        return panels

    def _panel(self, ax: Axes, measure: str) -> None:
        top = self.largest_rejection_quality if measure == REJECTION_QUALITY else 1.0
        r = np.linspace(1e-4, 1 - 1e-4, _COLUMNS)
        best, worst, middle, highest, lowest = (
            np.minimum(self.border(measure, optimality, r), top)
            for optimality in (1.0, -1.0, 0.0, np.inf, -np.inf)
        )
        ax.fill_between(r, highest, top, color=_OUT_OF_REACH, linewidth=0)
        ax.fill_between(r, 0, lowest, color=_OUT_OF_REACH, linewidth=0)
        ax.fill_between(r, best, highest, color=BETTER, alpha=0.55, linewidth=0)
        ax.fill_between(r, lowest, worst, color=WORSE, alpha=0.6, linewidth=0)
        inside = (middle > lowest) & (middle < highest) & (middle < top)
        ax.plot(r, np.where(inside, middle, np.nan), color=REFERENCE, linewidth=1.0)
        ax.plot(
            [self.reference.rejected_fraction],
            [getattr(self.reference, measure)],
            marker="o",
            color=REFERENCE,
            linestyle="none",
            markersize=5.5,
            clip_on=False,
        )
        label_axes(ax, measure)
        ax.set_ylim(0, top)


def _legend_handles() -> list[Patch | Line2D]:
    return [
        Line2D([], [], color=REFERENCE, marker="o", linestyle="none", label="reference point"),
        Patch(facecolor=BETTER, alpha=0.55, label="outperforms it at any cost"),
        Patch(facecolor=WORSE, alpha=0.6, label="outperformed at any cost"),
        Line2D([], [], color=REFERENCE, linewidth=1.0, label=r"$\beta = 0$"),
        Patch(facecolor=_OUT_OF_REACH, label="out of reach"),
    ]
