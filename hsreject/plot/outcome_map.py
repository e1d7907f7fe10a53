"""Outcome maps: where the classifier and the rejector were right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.plot.categories import (
    LEGEND_WIDTH,
    Category,
    category_legend,
    draw_categories,
    present,
)
from hsreject.plot.grid import as_map, map_size, thinned
from hsreject.plot.style import print_style, shown_axes
from hsreject.schema import NO_REFERENCE, check_labels, check_same_grid, nodata_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

ACCURATE_KEPT, MISCLASSIFIED_KEPT, ACCURATE_REJECTED, MISCLASSIFIED_REJECTED = 1, 2, 3, 4
WITHOUT_REFERENCE, WITHOUT_DATA = 0, -1

# They differ in lightness too, so that the map survives a grey printer.
OUTCOMES = (
    Category(ACCURATE_KEPT, "accurate, kept", "#8ccfb5"),
    Category(MISCLASSIFIED_KEPT, "misclassified, kept", "#d55e00"),
    Category(ACCURATE_REJECTED, "accurate, rejected", "#2f5fb3"),
    Category(MISCLASSIFIED_REJECTED, "misclassified, rejected", "#14142b"),
    Category(WITHOUT_REFERENCE, "no reference", "#ffffff"),
)


@dataclass(frozen=True, eq=False)
class OutcomeMapDisplay:
    """A map of the four outcomes: accurate or misclassified, kept or rejected.

    The four counts of an operating point, laid out on the ground. The best rejector leaves only
    "accurate, kept" and "misclassified, rejected".

    Parameters
    ----------
    outcome : DataArray of int, dims (y, x)
        1 accurate and kept, 2 misclassified and kept, 3 accurate and rejected, 4 misclassified and
        rejected, 0 no reference, -1 no data.

    Examples
    --------
    >>> import numpy as np
    >>> display = OutcomeMapDisplay.from_maps(
    ...     np.array([[1, 2]]), np.array([[1, 1]]), np.array([[False, True]])
    ... )
    >>> display.outcome.values.tolist()
    [[1, 4]]
    """

    outcome: xr.DataArray

    @classmethod
    def from_maps(
        cls,
        label: xr.DataArray | NDArray[Any],
        reference: xr.DataArray | NDArray[Any],
        rejected: xr.DataArray | NDArray[np.bool_],
    ) -> OutcomeMapDisplay:
        """Return the display of a classification, its reference and what it rejects."""
        label = check_labels(as_map(label, name="label"), name="label")
        reference = check_labels(as_map(reference, name="reference"), name="reference")
        rejected = as_map(rejected, name="rejected")
        check_same_grid(label, reference, names=("label", "reference"))
        check_same_grid(label, rejected, names=("label", "rejected"))
        label, reference, rejected = thinned(label), thinned(reference), thinned(rejected)
        accurate = label.values == reference.values
        gone = rejected.values.astype(bool)
        codes = np.select(
            [accurate & ~gone, ~accurate & ~gone, accurate & gone],
            [ACCURATE_KEPT, MISCLASSIFIED_KEPT, ACCURATE_REJECTED],
            MISCLASSIFIED_REJECTED,
        ).astype(np.int8)
        unknown = np.isin(reference.values, [NO_REFERENCE, nodata_label(reference.dtype)])
        codes[unknown] = WITHOUT_REFERENCE
        codes[label.values == nodata_label(label.dtype)] = WITHOUT_DATA
        return cls(xr.DataArray(codes, dims=label.dims, coords=label.coords, name="outcome"))

    def plot(self, ax: Axes | None = None, *, legend: bool = True) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        codes = self.outcome.values
        judged = max(int((codes > 0).sum()), 1)
        shown = present(OUTCOMES, codes)
        named = [
            Category(c.code, f"{c.name} ({100 * (codes == c.code).sum() / judged:.1f} %)", c.color)
            if c.code > 0
            else c
            for c in shown
        ]
        with print_style():
            if ax is None:
                ax = shown_axes(*map_size(self.outcome, beside=LEGEND_WIDTH))
            draw_categories(ax, codes, named, self.outcome)
            if legend:
                category_legend(ax, named, nodata=bool((codes == WITHOUT_DATA).any()))
        return ax
