"""The cost envelope: the cheapest operating point for every rejection cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.measures.cost import cost_envelope
from hsreject.plot.measure_axes import FRACTION, from_zero_to_one
from hsreject.plot.series import named_curves
from hsreject.plot.style import PAGE_WIDTH, LineLook, line_looks, print_style, shown_row
from hsreject.schema import OPERATING_POINT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_COST_LABEL = r"rejection cost $\rho$ (an error costs 1)"


@dataclass(frozen=True, eq=False)
class CostEnvelopeDisplay:
    """What a sample costs at best, and how much is then rejected, for every rejection cost.

    The least cost of rejectors is drawn between its two limits: classifying everything costs
    1 - A(0) whatever a rejection costs, rejecting everything costs a rejection each.

    Parameters
    ----------
    envelopes : mapping of str to Dataset
        Names of the rejectors and their envelopes from :func:`hsreject.cost_envelope`.
    overall_accuracy : mapping of str to float
        Accuracy without rejection, A(0), by name.

    Examples
    --------
    >>> from hsreject import rejection_curve
    >>> curve = rejection_curve([True, True, False, True], [0.9, 0.5, 0.3, 0.1])
    >>> display = CostEnvelopeDisplay.from_curves({"maximum": curve})
    >>> display.least_cost("maximum")
    (array([0. , 0.5, 0.5, 1. ]), array([0. , 0.25, 0.25, 0.25]))
    """

    envelopes: Mapping[str, xr.Dataset]
    overall_accuracy: Mapping[str, float]

    @classmethod
    def from_curves(cls, curves: Mapping[str, xr.Dataset] | xr.Dataset) -> CostEnvelopeDisplay:
        """Return the display of one curve or of several by name."""
        named = named_curves(curves)
        accuracy = {
            name: float((curve["accurate_kept"] + curve["accurate_rejected"])[0])
            / float(_n(curve)[0])
            for name, curve in named.items()
        }
        return cls({name: cost_envelope(curve) for name, curve in named.items()}, accuracy)

    def least_cost(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return rejection costs, ascending, and the least cost of a sample: corners of a line."""
        envelope = self.envelopes[name].isel({OPERATING_POINT: slice(None, None, -1)})
        rho = np.stack([envelope["lowest_cost"].values, envelope["highest_cost"].values], axis=1)
        errors = (envelope["misclassified_kept"] / _n(envelope)).values
        cost = errors[:, np.newaxis] + rho * envelope[FRACTION].values[:, np.newaxis]
        return rho.ravel(), cost.ravel()

    def plot(self, axes: Sequence[Axes] | None = None) -> list[Axes]:
        """Draw cost and rejected fraction on two `axes` (new unless given); return the axes."""
        with print_style():
            panels = shown_row(2, 0.75 * PAGE_WIDTH, 2.3) if axes is None else list(axes)
            if len(panels) != 2:
                raise InputError(f"A cost envelope needs 2 axes (got {len(panels)}).")
            looks = dict(zip(self.envelopes, line_looks(len(self.envelopes)), strict=True))
            for name, look in looks.items():
                self._draw(panels, name, look)
            for ax in panels:
                ax.set_xlabel(_COST_LABEL)
                from_zero_to_one(ax)
            _draw_limits(panels[0], max(1 - a for a in self.overall_accuracy.values()))
            panels[0].set(ylabel="least cost of a sample")
            panels[1].set(ylabel="cheapest rejected fraction $r$", ylim=(0, 1))
            if any(self.envelopes):
                panels[1].legend(loc="upper right", handlelength=2.6)
        return panels

    def _draw(self, panels: Sequence[Axes], name: str, look: LineLook) -> None:
        rho, cost = self.least_cost(name)
        fraction = np.repeat(self.envelopes[name][FRACTION].values[::-1], 2)
        panels[0].plot(rho, cost, color=look.color, linestyle=look.dashes, label=name)
        panels[1].plot(rho, fraction, color=look.color, linestyle=look.dashes, label=name)


def _n(curve: xr.Dataset) -> xr.DataArray:
    kept = curve["accurate_kept"] + curve["misclassified_kept"]
    return kept + curve["accurate_rejected"] + curve["misclassified_rejected"]


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
