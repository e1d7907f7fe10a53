"""Confidence maps: how sure the classification is, pixel by pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.plot.grid import as_map, draw_raster, map_size, thinned
from hsreject.plot.style import print_style, shown_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

COLORBAR_WIDTH = 0.75  # inches


@dataclass(frozen=True, eq=False)
class ConfidenceMapDisplay:
    """A map of confidences with its colour bar: dark is unsure, bright is sure.

    Parameters
    ----------
    confidence : DataArray of float, dims (y, x)
        Larger is surer; NaN is no data and stays hatched.
    limits : tuple of two floats
        Confidences at the two ends of the colour bar; what lies outside takes the end's colour.
    name : str
        What the colour bar is labelled with.

    Examples
    --------
    >>> import numpy as np
    >>> ConfidenceMapDisplay.from_confidence(np.array([[0.4, 0.9, np.nan]])).limits
    (0.4, 0.9)
    """

    confidence: xr.DataArray
    limits: tuple[float, float]
    name: str = "confidence"

    @classmethod
    def from_confidence(
        cls,
        confidence: xr.DataArray | NDArray[np.floating[Any]],
        *,
        limits: tuple[float, float] | None = None,
        name: str = "confidence",
    ) -> ConfidenceMapDisplay:
        """Return the display of a confidence map; the limits are its smallest and largest value."""
        confidence = thinned(as_map(confidence, name="confidence")).load()
        finite = confidence.values[np.isfinite(confidence.values)]
        if limits is None and finite.size == 0:
            raise InputError("confidence has no finite value: there is nothing to draw.")
        if limits is None:
            limits = float(finite.min()), float(finite.max())
        return cls(confidence, limits, name)

    def plot(self, ax: Axes | None = None, *, colorbar: bool = True) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        values = np.ma.masked_invalid(self.confidence.values)
        low, high = self.limits
        below, above = bool((values < low).any()), bool((values > high).any())
        extend = {(False, False): "neither", (True, False): "min", (False, True): "max"}
        with print_style():
            if ax is None:
                ax = shown_axes(*map_size(self.confidence, beside=COLORBAR_WIDTH))
            image = draw_raster(ax, values, self.confidence, cmap="cividis", limits=self.limits)
            if colorbar:
                beside = ax.inset_axes((1.03, 0.0, 0.05, 1.0))  # exactly as high as the map
                ends = extend.get((below, above), "both")
                bar = ax.figure.colorbar(image, cax=beside, extend=ends)
                bar.set_label(self.name)
                bar.outline.set_linewidth(0.5)
        return ax
