"""Relative optimality between all pairs of operating points of a curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hsreject.errors import InputError
from hsreject.measures.choosing import choose_point
from hsreject.measures.curve import nearest_points
from hsreject.measures.optimality import relative_optimality_pairs
from hsreject.plot.measure_axes import FRACTION
from hsreject.plot.style import COLUMN_WIDTH, print_style, shown_axes
from hsreject.schema import OPERATING_POINT

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_MAP = "PuOr_r"  # diverging, and purple against orange is safe for every common colour blindness


@dataclass(frozen=True, eq=False)
class RelativeOptimalityDisplay:
    """Heat map of relative optimality: figures 5 and 8 (a, b) of the paper.

    Each column is a reference point, each row a point compared with it. Orange: the point makes
    more right decisions than the reference; purple: fewer. The row of the largest
    classification quality is marked; it is nowhere purple.

    Parameters
    ----------
    fraction : array (point,)
        Rejected fractions of the points, ascending.
    optimality : array (point, point)
        Relative optimality of the row's point with respect to the column's point.
    best : float
        Rejected fraction of the point of largest classification quality.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject.measures.curve import rejection_curve
    >>> curve = rejection_curve(np.array([True, False, True]), np.array([0.9, 0.2, 0.6]))
    >>> display = RelativeOptimalityDisplay.from_curve(curve)
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
            spaced = nearest_points(curve[FRACTION].values, size)
            curve = curve.isel({OPERATING_POINT: np.union1d(spaced, int(best["index"]))})
        pairs = relative_optimality_pairs(curve)
        return cls(pairs[FRACTION].values, pairs.values, float(best[FRACTION]))

    def plot(self, ax: Axes | None = None, *, colorbar: bool = True) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        beyond = np.nanmax(np.abs(self.optimality)) > 1 + 1e-9
        with print_style():
            ax = shown_axes(COLUMN_WIDTH, 0.86 * COLUMN_WIDTH) if ax is None else ax
            mesh = ax.pcolormesh(
                self.fraction,
                self.fraction,
                self.optimality,
                cmap=_MAP,
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
                beside = ax.inset_axes((1.04, 0.0, 0.05, 1.0))
                extend = "both" if beyond else "neither"
                bar = ax.figure.colorbar(mesh, cax=beside, extend=extend)
                bar.set_label(r"relative optimality $\beta(r_1 | r_0)$")
                bar.set_ticks([-1, -0.5, 0, 0.5, 1])
                bar.outline.set_linewidth(0.5)
        return ax

    def _mark_best(self, ax: Axes) -> None:
        ax.axhline(self.best, color="black", linewidth=0.8, linestyle=(0, (4, 2)))
        low = self.best > 0.85
        ax.annotate(
            f"largest $Q$, at $r$ = {self.best:.2f}",
            (0.98, self.best),
            xycoords=("axes fraction", "data"),
            xytext=(0, -3 if low else 2.5),
            textcoords="offset points",
            ha="right",
            va="top" if low else "bottom",
            fontsize=7,
        )
