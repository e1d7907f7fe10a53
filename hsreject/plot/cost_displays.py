"""What rejection costs: break-even costs, and the cheapest operating point for every cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hsreject.measures.cost import cost_envelope, minimum_cost_without_rejection
from hsreject.measures.curve import counts_of
from hsreject.plot.curve_displays import (
    draw_series,
    label_axes,
    named_curves,
    thinned_index,
)
from hsreject.plot.style import (
    COLUMN_WIDTH,
    PAGE_WIDTH,
    line_looks,
    print_style,
    row_of,
    shown_axes,
)
from hsreject.schema import OPERATING_POINT, REJECTED_FRACTION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class BreakEvenCostDisplay:
    """The rejection cost at which an operating point and no rejection cost the same.

    Figures 8 c and d of the paper: below the line rejecting pays, above it classifying everything
    does.

    Parameters
    ----------
    costs : mapping of str to DataArray over `operating_point`
        Names of the rejectors and their break-even costs, with the coordinate `rejected_fraction`.
    isolated : frozenset of str
        Names whose curves have isolated points, drawn as symbols.

    See Also
    --------
    hsreject.minimum_cost_without_rejection : the numbers.

    Examples
    --------
    >>> import hsreject as hr
    >>> curve = hr.rejection_curve([True, True, False], [0.9, 0.5, 0.1])
    >>> hr.plot.BreakEvenCostDisplay.from_curves({"maximum": curve}).costs["maximum"].values
    array([ nan, 1. , 0.5 , 0.33333333])
    """

    costs: Mapping[str, xr.DataArray]
    isolated: frozenset[str] = frozenset()

    @classmethod
    def from_curves(
        cls,
        curves: Mapping[str, xr.Dataset] | xr.Dataset,
        *,
        isolated: Sequence[str] = (),
    ) -> BreakEvenCostDisplay:
        """Return the display of one curve or of several by name."""
        named = named_curves(curves, mentioned=isolated)
        costs = {
            name: minimum_cost_without_rejection(curve).assign_coords(
                {REJECTED_FRACTION: curve[REJECTED_FRACTION].variable}
            )
            for name, curve in named.items()
        }
        return cls(costs, frozenset(isolated))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        with print_style():
            ax = shown_axes(COLUMN_WIDTH, 2.4) if ax is None else ax
            looks = line_looks(len(self.costs))
            for look, (name, cost) in zip(looks, self.costs.items(), strict=True):
                fraction = cost[REJECTED_FRACTION].values
                drawn = thinned_index(fraction)
                points = fraction[drawn], cost.values[drawn]
                draw_series(ax, *points, look, name=name, isolated=name in self.isolated)
            label_axes(ax, r"break-even rejection cost $\rho$")
            largest = max((float(cost.max()) for cost in self.costs.values()), default=0.0)
            ax.set_ylim(0, 1.03 * largest if largest > 1 else 1)
            if any(self.costs):
                ax.legend(loc="best", handlelength=2.6)
        return ax


@dataclass(frozen=True, eq=False)
class CostEnvelopeDisplay:
    """What a sample costs at best, and how much is then rejected, for every rejection cost.

    The least cost is drawn together with its two limits: classifying everything costs 1 - A(0)
    whatever a rejection costs, and rejecting everything costs one rejection per sample.

    Parameters
    ----------
    envelopes : mapping of str to Dataset
        Names of the rejectors and their envelopes from :func:`hsreject.cost_envelope`.
    overall_accuracy : mapping of str to float
        Accuracy without rejection, A(0), by name.

    See Also
    --------
    hsreject.cost_envelope : the numbers.

    Examples
    --------
    >>> import hsreject as hr
    >>> curve = hr.rejection_curve([True, True, False, True], [0.9, 0.5, 0.3, 0.1])
    >>> display = hr.plot.CostEnvelopeDisplay.from_curves({"maximum": curve})
    >>> display.least_cost("maximum")
    (array([0. , 0.5, 0.5, 1. ]), array([0. , 0.25, 0.25, 0.25]))
    """

    envelopes: Mapping[str, xr.Dataset]
    overall_accuracy: Mapping[str, float]

    @classmethod
    def from_curves(cls, curves: Mapping[str, xr.Dataset] | xr.Dataset) -> CostEnvelopeDisplay:
        """Return the display of one curve or of several by name."""
        named = named_curves(curves)
        envelopes = {name: cost_envelope(curve) for name, curve in named.items()}
        accuracy = {n: float(counts_of(c).overall_accuracy[0]) for n, c in named.items()}
        return cls(envelopes, accuracy)

    def least_cost(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return rejection costs, ascending, and the least cost per sample: corners of a line."""
        envelope = self.envelopes[name].isel({OPERATING_POINT: slice(None, None, -1)})
        rho = np.stack([envelope["lowest_cost"].values, envelope["highest_cost"].values], axis=1)
        counts = counts_of(envelope)
        errors, rejected = counts.misclassified_kept / counts.n, counts.rejected_fraction
        return rho.ravel(), (errors[:, np.newaxis] + rho * rejected[:, np.newaxis]).ravel()

    def plot(self, axes: Sequence[Axes] | None = None) -> list[Axes]:
        """Draw cost and rejected fraction on two `axes` (new unless given); return the axes."""
        with print_style():
            panels = row_of(2, axes, 0.75 * PAGE_WIDTH, 2.3)
            looks = line_looks(len(self.envelopes))
            for look, (name, envelope) in zip(looks, self.envelopes.items(), strict=True):
                rho, cost = self.least_cost(name)
                fraction = np.repeat(envelope[REJECTED_FRACTION].values[::-1], 2)
                for ax, values in zip(panels, (cost, fraction), strict=True):
                    ax.plot(rho, values, color=look.color, linestyle=look.dashes, label=name)
            names = "least cost of a sample", "cheapest rejected fraction $r$"
            for ax, name in zip(panels, names, strict=True):
                label_axes(ax, name, xlabel=r"rejection cost $\rho$ (an error costs 1)")
            panels[1].set_ylim(0, 1)
            _draw_limits(panels[0], max(1 - a for a in self.overall_accuracy.values()))
            if any(self.envelopes):
                panels[1].legend(loc="upper right", handlelength=2.6)
        return panels


def _draw_limits(ax: Axes, highest: float) -> None:
    """Draw what rejecting everything and classifying everything cost."""
    top = max(1.3 * highest, 0.05)  # a classifier without errors still has axes
    for ends in ([0.0, 1.0], [highest, highest]):
        ax.plot([0, 1], ends, color="0.5", linewidth=0.7, linestyle=(0, (2, 2)), zorder=0)
    ax.set_ylim(0, top)
    for text, place, shift in (
        ("classify everything", (1.0, highest), (-1, 2)),
        ("reject everything", (top, top), (2, -6)),
    ):
        ax.annotate(
            text,
            place,
            xytext=shift,
            textcoords="offset points",
            ha="right" if shift[0] < 0 else "left",
            va="bottom",
            fontsize=6.5,
            color="0.35",
        )
