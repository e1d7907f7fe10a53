"""The operating set of a reference point: what outperforms it whatever a rejection costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from hsreject.errors import InputError
from hsreject.measures.optimality import operating_set
from hsreject.plot.measure_axes import MEASURES, REJECTION_QUALITY, label_axes
from hsreject.plot.style import (
    BETTER,
    PAGE_WIDTH,
    REFERENCE,
    WORSE,
    legend_above,
    print_style,
    shown_row,
)
from hsreject.schema import BORDER, REJECTED_FRACTION

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr
    from matplotlib.axes import Axes

    from hsreject.measures.point import OperatingPoint

_OUT_OF_REACH = "0.87"


@dataclass(frozen=True, eq=False)
class OperatingSetDisplay:
    """The measures around a reference point, with the regions that need no cost: figure 2.

    Green: outperforms the reference for every rejection cost in [0, 1]; orange: is outperformed;
    white: depends on the cost. The black line has as many right decisions as the reference.

    Parameters
    ----------
    reference : OperatingPoint
        The reference point.
    borders : Dataset, dims (border, rejected_fraction)
        From :func:`hsreject.operating_set`.
    largest_rejection_quality : float
        Where the axis of rejection quality, which has no bound, ends.

    Examples
    --------
    >>> from hsreject import OperatingPoint
    >>> from hsreject.plot import new_row
    >>> figure, axes = new_row(3)
    >>> drawn = OperatingSetDisplay.from_point(OperatingPoint(50, 30, 5, 15)).plot(axes)
    >>> [ax.get_xlabel() for ax in drawn][0]
    'rejected fraction $r$'
    """

    reference: OperatingPoint
    borders: xr.Dataset
    largest_rejection_quality: float = 10.0

    @classmethod
    def from_point(cls, reference: OperatingPoint) -> OperatingSetDisplay:
        """Return the display of a reference point."""
        if not 0 < reference.overall_accuracy < 1:
            raise InputError(
                "An operating set needs a classifier with right and wrong labels "
                f"(got overall accuracy {reference.overall_accuracy:g})."
            )
        # not the two ends, where accuracy or rejection quality have no value
        fraction = np.union1d(np.linspace(1e-4, 1 - 1e-4, 1000), reference.rejected_fraction)
        return cls(reference, operating_set(reference, rejected_fraction=fraction))

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
        r = self.borders[REJECTED_FRACTION].values
        lowest, worst, middle, best, highest = (
            np.minimum(self.borders[measure].sel({BORDER: border}).values, top)
            for border in ("lowest", "worst", "middle", "best", "highest")
        )
        ax.fill_between(r, highest, top, color=_OUT_OF_REACH, linewidth=0)
        ax.fill_between(r, 0, lowest, color=_OUT_OF_REACH, linewidth=0)
        ax.fill_between(r, best, highest, color=BETTER, alpha=0.55, linewidth=0)
        ax.fill_between(r, lowest, worst, color=WORSE, alpha=0.6, linewidth=0)
        ax.plot(r, np.where(middle < top, middle, np.nan), color=REFERENCE, linewidth=1.0)
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
