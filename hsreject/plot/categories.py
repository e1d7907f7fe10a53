"""Pictures of categories: colours that stay apart, the image and its legend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.patches import Patch
from skimage.color import rgb2lab

from hsreject.plot.grid import draw_raster

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend
    from numpy.typing import NDArray

# Tried in this order. Black is what the paper draws rejected pixels in.
_REJECTED_CANDIDATES = ("#000000", "#ff00ff", "#ffffff", "#ff0000", "#00ffff", "#7f7f7f")
_NO_REFERENCE_CANDIDATES = ("#ffffff", "#e0e0e0", "#bfbfbf", "#7f7f7f")
_CLEARLY_APART = 25.0
OUTSIDE_TABLE = "#7f7f7f"
LEGEND_WIDTH = 2.1  # inches, for the longest entries that are usual


@dataclass(frozen=True)
class Category:
    """One kind of pixel: its code in the image, its name in the legend and its colour."""

    code: int
    name: str
    color: str


def color_distance(first: str, second: str) -> float:
    """Return how far two colours lie apart for the eye (CIE 1976, 100 is black against white).

    Examples
    --------
    >>> round(color_distance("#000000", "#ffffff"))
    100
    """
    lab = rgb2lab(np.array([[to_rgb(first), to_rgb(second)]]))[0]
    return float(np.linalg.norm(lab[0] - lab[1]))


def rejected_color(taken: Sequence[str]) -> str:
    """Return the colour of rejected pixels: black, unless a taken colour is near to it.

    Examples
    --------
    >>> rejected_color(["#0072b2"]), rejected_color(["#101010"])
    ('#000000', '#ff00ff')
    """
    return _apart(_REJECTED_CANDIDATES, taken)


def no_reference_color(taken: Sequence[str]) -> str:
    """Return the colour of pixels without reference: white, unless a taken colour is near to it."""
    return _apart(_NO_REFERENCE_CANDIDATES, taken)


def _apart(candidates: Sequence[str], taken: Sequence[str]) -> str:
    room = [min((color_distance(c, t) for t in taken), default=np.inf) for c in candidates]
    for candidate, distance in zip(candidates, room, strict=True):
        if distance >= _CLEARLY_APART:
            return candidate
    return candidates[int(np.argmax(room))]


def present(categories: Sequence[Category], codes: NDArray[Any]) -> list[Category]:
    """Return the categories that occur among `codes`, in their order."""
    found = set(np.unique(codes).tolist())
    return [category for category in categories if category.code in found]


def draw_categories(
    ax: Axes, codes: NDArray[Any], categories: Sequence[Category], place: xr.DataArray
) -> None:
    """Draw a map of codes; a pixel whose code is in no category stays transparent (no data)."""
    pixels = np.zeros((*codes.shape, 4), dtype=np.uint8)
    for category in categories:
        rgba = [round(255 * channel) for channel in to_rgba(category.color)]
        pixels[codes == category.code] = rgba
    draw_raster(ax, pixels, place)


def category_legend(ax: Axes, categories: Sequence[Category], *, nodata: bool) -> Legend:
    """Write the legend to the right of a map; `nodata` adds what the hatching means."""
    handles = [
        Patch(facecolor=category.color, edgecolor="0.4", linewidth=0.4, label=category.name)
        for category in categories
    ]
    if nodata:
        handles.append(
            Patch(
                facecolor="white", edgecolor="0.6", hatch="//////", linewidth=0.4, label="no data"
            )
        )
    return ax.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        borderaxespad=0.2,
        handlelength=1.3,
        handleheight=1.0,
        labelspacing=0.35,
        frameon=False,
        fontsize=7,
    )
