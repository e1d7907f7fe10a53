"""Which operating points are better: relative optimality and the operating set of a point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from hsreject.errors import InputError
from hsreject.measures.choosing import choose_point
from hsreject.measures.curve import nearest_points
from hsreject.measures.optimality import BORDERS, operating_set, relative_optimality_pairs
from hsreject.measures.point import MEASURES
from hsreject.plot.curve_displays import REJECTION_QUALITY, label_axes
from hsreject.plot.style import (
    BETTER,
    COLUMN_WIDTH,
    PAGE_WIDTH,
    REFERENCE,
    WORSE,
    color_bar,
    legend_above,
    print_style,
    row_of,
    shown_axes,
)
from hsreject.schema import BORDER, OPERATING_POINT, REJECTED_FRACTION

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from hsreject.measures.point import OperatingPoint

_OUT_OF_REACH = "0.87"
_HIGHEST_QUALITY = 10.0  # rejection quality has no bound, its axis has


@dataclass(frozen=True, eq=False)
class RelativeOptimalityDisplay:
    """Heat map of relative optimality: figures 5 and 8 (a, b) of the paper.

    Each column is a reference point, each row a point compared with it. Orange: the point makes
    a cheaper map than the reference, if a rejection costs half an error; purple: a costlier one.
    The row of the cheapest point is marked; it is nowhere purple.

    Parameters
    ----------
    fraction : array (point,)
        Rejected fractions of the points, ascending.
    optimality : array (point, point)
        Relative optimality of the row's point with respect to the column's point.
    best : float
        Rejected fraction of the choice of :func:`hsreject.choose_point`.

    See Also
    --------
    hsreject.relative_optimality_pairs : the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import hsreject as hr
    >>> curve = hr.rejection_curve(np.array([True, False, True]), np.array([0.9, 0.2, 0.6]))
    >>> display = hr.plot.RelativeOptimalityDisplay.from_curve(curve)
    >>> bool(np.allclose(display.optimality, -display.optimality.T))
    True
    >>> round(display.best, 3)
    0.333
    """

    fraction: NDArray[np.float64]
    optimality: NDArray[np.float64]
    best: float

    @classmethod
    def from_curve(cls, curve: xr.Dataset, *, size: int = 250) -> RelativeOptimalityDisplay:
        """Return the display of a curve, with about `size` of its points, evenly spaced in r."""
        if curve.sizes[OPERATING_POINT] < 2:
            raise InputError("A curve of one operating point has no pair to compare.")
        best = choose_point(curve)
        if curve.sizes[OPERATING_POINT] > size:
            spaced = nearest_points(curve[REJECTED_FRACTION].values, size)
            curve = curve.isel({OPERATING_POINT: np.union1d(spaced, best.index)})
        pairs = relative_optimality_pairs(curve)
        return cls(pairs[REJECTED_FRACTION].values, pairs.values, best.rejected_fraction)

    def plot(self, ax: Axes | None = None, *, colorbar: bool = True) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        beyond = np.nanmax(np.abs(self.optimality)) > 1 + 1e-9
        with print_style():
            ax = shown_axes(COLUMN_WIDTH, 0.86 * COLUMN_WIDTH) if ax is None else ax
            mesh = ax.pcolormesh(
                self.fraction,
                self.fraction,
                self.optimality,
                cmap="PuOr_r",  # purple against orange is safe for every common color blindness
                vmin=-1,
                vmax=1,
                shading="nearest",
                rasterized=True,
            )
            self._mark_best(ax)
            ax.set(
                xlim=(0, 1),
                ylim=(0, 1),
                aspect="equal",
                xlabel="reference rejected fraction $r_0$",
                ylabel="rejected fraction $r_1$",
            )
            if colorbar:
                label = r"relative optimality $\beta(r_1 | r_0)$"
                bar = color_bar(ax, mesh, label, extend="both" if beyond else "neither", gap=0.04)
                bar.set_ticks([-1, -0.5, 0, 0.5, 1])
        return ax

    def _mark_best(self, ax: Axes) -> None:
        ax.axhline(self.best, color="black", linewidth=0.8, linestyle=(0, (4, 2)))
        low = self.best > 0.85
        ax.annotate(
            f"nowhere worse: $r$ = {self.best:.2f}",
            (0.98, self.best),
            xycoords=("axes fraction", "data"),
            xytext=(0, -3 if low else 2.5),
            textcoords="offset points",
            ha="right",
            va="top" if low else "bottom",
            fontsize=7,
        )


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

    See Also
    --------
    hsreject.operating_set : the numbers.

    Examples
    --------
    >>> import hsreject as hr
    >>> figure, axes = hr.plot.new_row(3)
    >>> point = hr.OperatingPoint(50, 30, 5, 15)
    >>> hr.plot.OperatingSetDisplay.from_point(point).plot(axes)[0].get_xlabel()
    'rejected fraction $r$'
    """

    reference: OperatingPoint
    borders: xr.Dataset

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
        measures: Sequence[str] | None = None,
        legend: bool = True,
    ) -> list[Axes]:
        """Draw one panel per measure, on `axes` (new pyplot axes unless given); return the axes."""
        measures = tuple(MEASURES) if measures is None else measures
        with print_style():
            panels = row_of(len(measures), axes, PAGE_WIDTH, 2.4)
            for ax, measure in zip(panels, measures, strict=True):
                self._panel(ax, measure)
            if legend:
                legend_above(panels[0], _legend_handles())
        return panels

    def _panel(self, ax: Axes, measure: str) -> None:
        top = _HIGHEST_QUALITY if measure == REJECTION_QUALITY else 1.0
        r = self.borders[REJECTED_FRACTION].values
        lowest, worst, middle, best, highest = (
            np.minimum(self.borders[measure].sel({BORDER: border}).values, top)
            for border in BORDERS
        )
        # five borders, from the worst to the best that a rejector could do at r: outside of them
        # nothing can lie, between the outer two pairs the verdict needs no cost
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
        label_axes(ax, MEASURES[measure].label)
        ax.set_ylim(0, top)


def _legend_handles() -> list[Patch | Line2D]:
    return [
        Line2D([], [], color=REFERENCE, marker="o", linestyle="none", label="reference point"),
        Patch(facecolor=BETTER, alpha=0.55, label="outperforms it at any cost"),
        Patch(facecolor=WORSE, alpha=0.6, label="outperformed at any cost"),
        Line2D([], [], color=REFERENCE, linewidth=1.0, label=r"$\beta = 0$"),
        Patch(facecolor=_OUT_OF_REACH, label="out of reach"),
    ]
