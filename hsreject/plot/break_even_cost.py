"""Break-even cost: what a rejection may cost before it stops paying."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import xarray as xr

from hsreject.measures.cost import break_even_cost, minimum_cost_without_rejection
from hsreject.plot.measure_axes import ACCURACY, FRACTION, label_fraction
from hsreject.plot.series import draw_series, named_curves, thinned_index
from hsreject.plot.style import COLUMN_WIDTH, line_looks, print_style, shown_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hsreject.measures.point import OperatingPoint


@dataclass(frozen=True, eq=False)
class BreakEvenCostDisplay:
    """The rejection cost at which each operating point and a reference cost the same.

    With no rejection as the reference these are figures 8 c and d of the paper: below the line
    rejecting pays, above it classifying everything does.

    Parameters
    ----------
    costs : mapping of str to DataArray over `operating_point`
        Names of the rejectors and their break-even costs, with the coordinate `rejected_fraction`.
    reference : OperatingPoint or None
        What the points are compared with; None is no rejection.
    isolated : frozenset of str
        Names whose curves have isolated points, drawn as symbols.

    Examples
    --------
    >>> from hsreject import rejection_curve
    >>> curve = rejection_curve([True, True, False], [0.9, 0.5, 0.1])
    >>> BreakEvenCostDisplay.from_curves({"maximum": curve}).costs["maximum"].values
    array([ nan, 1. , 0.5 , 0.33333333])
    """

    costs: Mapping[str, xr.DataArray]
    reference: OperatingPoint | None = None
    isolated: frozenset[str] = frozenset()

    @classmethod
    def from_curves(
        cls,
        curves: Mapping[str, xr.Dataset] | xr.Dataset,
        *,
        reference: OperatingPoint | None = None,
        isolated: Sequence[str] = (),
    ) -> BreakEvenCostDisplay:
        """Return the display of curves against no rejection, or against a reference point."""
        named = named_curves(curves, mentioned=isolated)
        costs = {name: _costs(curve, reference) for name, curve in named.items()}
        return cls(costs, reference, frozenset(isolated))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        with print_style():
            ax = shown_axes(COLUMN_WIDTH, 2.4) if ax is None else ax
            looks = line_looks(len(self.costs))
            for look, (name, cost) in zip(looks, self.costs.items(), strict=True):
                fraction = cost[FRACTION].values
                drawn = thinned_index(fraction)
                draw_series(
                    ax,
                    fraction[drawn],
                    cost.values[drawn],
                    look,
                    name=name,
                    isolated=name in self.isolated,
                )
            label_fraction(ax)
            largest = max((float(cost.max()) for cost in self.costs.values()), default=0.0)
            ax.set(ylim=(0, 1.03 * largest if largest > 1 else 1))
            ax.set(ylabel=r"break-even rejection cost $\rho$")
            ax.text(
                0.03,
                0.03,
                "below a line: rejecting\nthis much is cheaper",
                transform=ax.transAxes,
                fontsize=6.5,
                color="0.35",
            )
            if any(self.costs):
                ax.legend(loc="best", handlelength=2.6)
        return ax


def _costs(curve: xr.Dataset, reference: OperatingPoint | None) -> xr.DataArray:
    if reference is None:
        costs = minimum_cost_without_rejection(curve)
    else:
        costs = break_even_cost(
            curve[ACCURACY],
            curve[FRACTION],
            reference.nonrejected_accuracy,
            reference.rejected_fraction,
        )
    return costs.assign_coords({FRACTION: curve[FRACTION].variable})
