"""The three measures over the rejected fraction: curves, isolated points, bands and their axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from matplotlib.ticker import FuncFormatter, NullFormatter

from hsreject.errors import InputError
from hsreject.measures.choosing import choose_point
from hsreject.measures.curve import nearest_points
from hsreject.measures.point import FRACTION_AXIS, MEASURES, OperatingPoint
from hsreject.plot.style import (
    PAGE_WIDTH,
    LineLook,
    legend_above,
    line_looks,
    print_style,
    row_of,
)
from hsreject.schema import REJECTED_FRACTION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

QUALITY = "classification_quality"
REJECTION_QUALITY = "rejection_quality"
LINEAR_ODDS = 8.0  # the largest rejection quality that a linear axis shows well

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
        Names of the rejectors and their curves from :func:`hsreject.rejection_curve`. Bands are
        drawn where a curve has ``<measure>_lower`` and ``<measure>_upper``.
    marked : mapping of str to sequence (or mapping of str) of OperatingPoint
        Operating points to mark, for any of the names. Points that are given by name get symbols
        of their own and are named in the legend.
    isolated : frozenset of str
        Names whose curves have isolated points.

    See Also
    --------
    hsreject.rejection_curve : the numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import hsreject as hr
    >>> curve = hr.rejection_curve(np.array([True, False, True]), np.array([0.9, 0.2, 0.6]))
    >>> figure, axes = hr.plot.new_row(3)
    >>> drawn = hr.plot.RejectionCurveDisplay.from_curves({"maximum": curve}).plot(axes)
    >>> drawn[0].get_ylabel()
    'nonrejected accuracy $A$'
    """

    curves: Mapping[str, xr.Dataset]
    marked: Mapping[str, Marks] = field(default_factory=dict)
    isolated: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        named_curves(self.curves, mentioned=(*self.marked, *self.isolated))

    @classmethod
    def from_curves(
        cls,
        curves: Mapping[str, xr.Dataset] | xr.Dataset,
        *,
        marked: Mapping[str, Marks] | None = None,
        isolated: Sequence[str] = (),
    ) -> RejectionCurveDisplay:
        """Return the display of curves, with the choice of :func:`hsreject.choose_point` marked."""
        named = named_curves(curves)
        if marked is None:
            marked = {name: [choose_point(curve)] for name, curve in named.items()}
        return cls(named, dict(marked), frozenset(isolated))

    def plot(
        self,
        axes: Sequence[Axes] | None = None,
        *,
        measures: Sequence[str] | None = None,
        legend: bool = True,
    ) -> list[Axes]:
        """Draw one panel per measure, on `axes` (new pyplot axes unless given); return the axes.

        Parameters
        ----------
        axes : sequence of Axes, optional
            One for each of `measures`.
        measures : sequence of str, optional
            Which measures, in which order; by default all, those of plugins included.
        legend : bool
            Whether to draw the legend.
        """
        looks = dict(zip(self.curves, line_looks(len(self.curves)), strict=True))
        measures = tuple(MEASURES) if measures is None else measures
        with print_style():
            panels = row_of(len(measures), axes, PAGE_WIDTH, 2.3)
            for ax, measure in zip(panels, measures, strict=True):
                self._panel(ax, measure, looks)
            if legend:
                _draw_legend(panels[0])
        return panels

    def _panel(self, ax: Axes, measure: str, looks: Mapping[str, LineLook]) -> None:
        label_axes(ax, MEASURES[measure].label)
        settled: list[NDArray[Any]] = [np.ones(1)]
        for name, curve in self.curves.items():
            fraction, values = _line(curve, measure)
            if f"{measure}_lower" in curve:
                _draw_band(ax, curve, measure, looks[name].color)
            draw_series(
                ax, fraction, values, looks[name], name=name, isolated=name in self.isolated
            )
            for label, marker, point in _marks(self.marked.get(name, ()), looks[name]):
                _draw_mark(ax, point, measure, looks[name].color, marker=marker, label=label)
            settled.append(_settled(fraction, values))
        if measure == QUALITY and len(self.curves) == 1:
            (curve,) = self.curves.values()
            _guide(ax, float(curve[QUALITY][0]), "no rejection")
        if measure == REJECTION_QUALITY:
            _scale_odds(ax, np.concatenate(settled))
            _guide(ax, 1.0, "chance")


def _line(curve: xr.Dataset, measure: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what is drawn of a curve: only finite values, and not phi where it is a convention."""
    drawn = thinned_index(curve[REJECTED_FRACTION].values)
    fraction, values = curve[REJECTED_FRACTION].values[drawn], curve[measure].values[drawn]
    values = np.where(np.isfinite(values), values, np.nan)
    if measure == REJECTION_QUALITY:
        values = np.where(fraction == 0, np.nan, values)
    return fraction, values


def _draw_band(ax: Axes, curve: xr.Dataset, measure: str, color: str) -> None:
    places = thinned_index(curve[REJECTED_FRACTION].values)
    fraction, lower, upper = (
        curve[name].values[places]
        for name in (REJECTED_FRACTION, f"{measure}_lower", f"{measure}_upper")
    )
    # an infinite upper limit of phi is drawn as far above the axis; at r = 0 phi is a convention
    upper = np.where(np.isposinf(upper), 1e6, upper)
    drawn = (fraction > 0) if measure == REJECTION_QUALITY else np.ones(fraction.size, dtype=bool)
    ax.fill_between(fraction[drawn], lower[drawn], upper[drawn], color=color, alpha=0.2, lw=0)


def _draw_legend(ax: Axes) -> None:
    """Write the legend into the panel, or above all panels when it would cover the curves."""
    handles, names = ax.get_legend_handles_labels()
    handles = [handle for handle, name in zip(handles, names, strict=True) if name]
    if len(handles) > 2:
        legend_above(ax, handles)
    elif handles:
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


def named_curves(
    curves: Mapping[str, xr.Dataset] | xr.Dataset, *, mentioned: Iterable[str] = ()
) -> dict[str, xr.Dataset]:
    """Return curves by name; a single curve has the empty name. Names `mentioned` must be there."""
    named = {"": curves} if isinstance(curves, xr.Dataset) else dict(curves)
    if not named:
        raise InputError("There is no curve to draw: give at least one, as {name: curve}.")
    for name in mentioned:
        if name not in named:
            raise InputError(f"There is no curve named '{name}'. There are: {', '.join(named)}.")
    return named


def thinned_index(fraction: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return which points of a curve to draw: all, or a thousand evenly spaced in r."""
    return np.arange(fraction.size) if fraction.size <= 1000 else nearest_points(fraction, 1000)


def draw_series(
    ax: Axes,
    fraction: NDArray[np.float64],
    values: NDArray[np.float64],
    look: LineLook,
    *,
    name: str,
    isolated: bool = False,
) -> None:
    """Draw a curve, or isolated points as open symbols joined by a thin line."""
    ax.plot(
        fraction,
        values,
        color=look.color,
        linestyle=look.dashes,
        linewidth=0.7 if isolated else None,
        marker=look.marker if isolated else None,
        markerfacecolor="white",
        label=name,
    )


def label_axes(ax: Axes, ylabel: str, *, xlabel: str = FRACTION_AXIS.label) -> None:
    """Let the horizontal axis run from 0 to 1, with ticks that never collide; name both axes."""
    ax.set(xlim=(0, 1), xlabel=xlabel, ylabel=ylabel)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])


def _guide(ax: Axes, height: float, text: str) -> None:
    """Draw the level that a measure is read against; its name stands where the axis has room."""
    ax.axhline(height, color="0.55", linewidth=0.6, linestyle=(0, (2, 2)), zorder=0)
    to_axes = ax.transData + ax.transAxes.inverted()  # whatever the scale
    below = to_axes.transform((0, height))[1] > 0.09
    ax.annotate(
        text,
        (0, height),
        xycoords=("axes fraction", "data"),
        xytext=(4, -2 if below else 1.5),
        textcoords="offset points",
        ha="left",
        va="top" if below else "bottom",
        fontsize=6,
        color="0.35",
    )


def _settled(fraction: NDArray[Any], quality: NDArray[Any]) -> NDArray[Any]:
    """Return the values of a rejection quality that decide how far its axis reaches.

    With less than 2 % rejected the quality jumps between 0 and infinity; those points must not
    flatten the rest of the curve.
    """
    return np.asarray(quality[(fraction >= 0.02) & np.isfinite(quality)])


def _scale_odds(ax: Axes, settled: NDArray[Any]) -> None:
    """Let the axis of rejection quality, a ratio of odds, reach over values; 1 is among them.

    Where they would crowd at the bottom, because some are far above, it is logarithmic.
    """
    highest = float(settled.max())
    if highest <= LINEAR_ODDS:
        ax.set_ylim(0, 1.12 * highest)
        return
    lowest = max(float(settled[settled > 0].min()), highest / 1e4)
    ax.set_yscale("log")
    ax.set_ylim(lowest / 1.2, highest * 1.3)
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
