"""The three measure curves of one or several rejectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.measures.choosing import choose_point
from hsreject.measures.point import OperatingPoint
from hsreject.plot.measure_axes import (
    FRACTION,
    MEASURES,
    QUALITY,
    REJECTION_QUALITY,
    guide,
    label_axes,
    settled_limit,
)
from hsreject.plot.series import draw_series, named_curves, thinned_index
from hsreject.plot.style import (
    PAGE_WIDTH,
    LineLook,
    legend_above,
    line_looks,
    print_style,
    shown_row,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

Marks = Sequence[OperatingPoint] | Mapping[str, OperatingPoint]


@dataclass(frozen=True, eq=False)
class RejectionCurveDisplay:
    """Nonrejected accuracy, classification quality and rejection quality over rejected fraction.

    Figures 4 and 7 of the paper. Marked operating points are filled symbols; a rejector that has
    isolated operating points (joint rejection: one solve each) is drawn as open symbols joined by
    a thin line, because nothing is known between them.

    Parameters
    ----------
    curves : mapping of str to Dataset
        Names of the rejectors and their curves from :func:`hsreject.rejection_curve`.
    marked : mapping of str to sequence (or mapping of str) of OperatingPoint
        Operating points to mark, for any of the names. Points that are given by name get symbols
        of their own and are named in the legend.
    bands : mapping of str to Dataset
        Confidence bands, for any of the names: for each measure the variables ``<measure>_lower``
        and ``<measure>_upper`` over ``rejected_fraction``.
    isolated : frozenset of str
        Names whose curves have isolated points.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject.measures.curve import rejection_curve
    >>> from hsreject.plot.style import new_figure
    >>> curve = rejection_curve(np.array([True, False, True]), np.array([0.9, 0.2, 0.6]))
    >>> display = RejectionCurveDisplay.from_curves({"maximum": curve})
    >>> axes = display.plot(new_figure().subplots(1, 3))
    >>> [ax.get_ylabel() for ax in axes][0]
    'nonrejected accuracy $A$'
    """

    curves: Mapping[str, xr.Dataset]
    marked: Mapping[str, Marks] = field(default_factory=dict)
    bands: Mapping[str, xr.Dataset] = field(default_factory=dict)
    isolated: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        named_curves(self.curves, mentioned=(*self.marked, *self.bands, *self.isolated))

    @classmethod
    def from_curves(
        cls,
        curves: Mapping[str, xr.Dataset] | xr.Dataset,
        *,
        marked: Mapping[str, Marks] | None = None,
        bands: Mapping[str, xr.Dataset] | None = None,
        isolated: Sequence[str] = (),
    ) -> RejectionCurveDisplay:
        """Return the display of curves; unless told otherwise the largest Q of each is marked."""
        named = named_curves(curves)
        if marked is None:
            marked = {name: [_largest_quality(curve)] for name, curve in named.items()}
        return cls(named, dict(marked), dict(bands or {}), frozenset(isolated))

    def plot(
        self,
        axes: Sequence[Axes] | None = None,
        *,
        measures: Sequence[str] = MEASURES,
        legend: bool = True,
    ) -> list[Axes]:
        """Draw one panel a measure, on `axes` (new pyplot axes unless given); return the axes.

        Parameters
        ----------
        axes : sequence of Axes, optional
            One for each of `measures`.
        measures : sequence of str
            Which measures, in which order.
        legend : bool
            Whether to draw the legend.
        """
        looks = dict(zip(self.curves, line_looks(len(self.curves)), strict=True))
        with print_style():
            panels = shown_row(len(measures), PAGE_WIDTH, 2.3) if axes is None else list(axes)
            if len(panels) != len(measures):
                raise InputError(
                    f"{len(measures)} measures need {len(measures)} axes (got {len(panels)})."
                )
            for ax, measure in zip(panels, measures, strict=True):
                self._panel(ax, measure, looks)
            if legend:
                _draw_legend(panels[0])
        return panels

    def _panel(self, ax: Axes, measure: str, looks: Mapping[str, LineLook]) -> None:
        label_axes(ax, measure)
        highest = 1.0
        for name, curve in self.curves.items():
            fraction, values = _line(curve, measure)
            if name in self.bands:
                _draw_band(ax, self.bands[name], measure, looks[name].color)
            draw_series(
                ax, fraction, values, looks[name], name=name, isolated=name in self.isolated
            )
            for label, marker, point in _marks(self.marked.get(name, ()), looks[name]):
                _draw_mark(ax, point, measure, looks[name].color, marker=marker, label=label)
            highest = max(highest, settled_limit(fraction, values))
        if measure == QUALITY and len(self.curves) == 1:
            (curve,) = self.curves.values()
            guide(ax, float(curve[QUALITY][0]), "no rejection")
        if measure == REJECTION_QUALITY:
            ax.set_ylim(0, highest)
            guide(ax, 1.0, "chance")


def _line(curve: xr.Dataset, measure: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what is drawn of a curve: only finite values, and not phi where it is a convention."""
    drawn = thinned_index(curve[FRACTION].values)
    fraction, values = curve[FRACTION].values[drawn], curve[measure].values[drawn]
    values = np.where(np.isfinite(values), values, np.nan)
    if measure == REJECTION_QUALITY:
        values = np.where(fraction == 0, np.nan, values)
    return fraction, values


def _draw_band(ax: Axes, band: xr.Dataset, measure: str, color: str) -> None:
    fraction = band[FRACTION].values
    lower, upper = band[f"{measure}_lower"].values, band[f"{measure}_upper"].values
    # an infinite upper limit of phi is drawn as far above the axis; at r = 0 phi is a convention
    upper = np.where(np.isposinf(upper), 1e6, upper)
    drawn = (fraction > 0) if measure == REJECTION_QUALITY else np.ones(fraction.size, dtype=bool)
    ax.fill_between(fraction[drawn], lower[drawn], upper[drawn], color=color, alpha=0.2, lw=0)


def _draw_legend(ax: Axes) -> None:
    """Write the legend into the panel, or above all panels when it would cover the curves."""
    named = [
        (handle, label)
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
        if label
    ]
    if len(named) > 2:
        legend_above(ax, [handle for handle, _ in named])
    elif named:
        ax.legend(loc="best", handlelength=2.6)


def _marks(points: Marks, look: LineLook) -> list[tuple[str, str, OperatingPoint]]:
    """Return label, symbol and point of each mark; an underscore keeps it out of the legend."""
    if isinstance(points, Mapping):
        symbols = [other.marker for other in line_looks(len(points))]
        return [(name, m, p) for (name, p), m in zip(points.items(), symbols, strict=True)]
    return [("_marked", look.marker, point) for point in points]


def _draw_mark(
    ax: Axes, point: OperatingPoint, measure: str, color: str, *, marker: str, label: str
) -> None:
    height = getattr(point, measure)
    if np.isfinite(height):
        ax.plot(
            [point.rejected_fraction],
            [height],
            color=color,
            marker=marker,
            markersize=5.5,
            markeredgecolor="black",
            markeredgewidth=0.6,
            linestyle="none",
            zorder=5,
            label=label,
        )


def _largest_quality(curve: xr.Dataset) -> OperatingPoint:
    return OperatingPoint.from_curve(choose_point(curve))
