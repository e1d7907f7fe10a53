"""Series over the rejected fraction: curves drawn as lines, isolated points as symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.measures.curve import nearest_points

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from hsreject.plot.style import LineLook

DRAWN_POINTS = 1000


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
    if fraction.size <= DRAWN_POINTS:
        return np.arange(fraction.size)
    return nearest_points(fraction, DRAWN_POINTS)


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
