"""Every picture once, at the size that a page shows: maps as plain pixels, curves as figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imsave
from numpy.typing import NDArray
from rasterio.warp import transform

from hsreject.io.grid import PixelGrid, transformed
from hsreject.measures.point import MEASURES, OperatingPoint
from hsreject.plot.cost_displays import BreakEvenCostDisplay, CostEnvelopeDisplay
from hsreject.plot.curve_displays import RejectionCurveDisplay
from hsreject.plot.image_displays import thinned
from hsreject.plot.optimality_displays import RelativeOptimalityDisplay
from hsreject.plot.style import COLUMN_WIDTH, PAGE_WIDTH, new_row, save_figure
from hsreject.report.page import Picture, Swatch

Curves = Mapping[str, xr.Dataset]

_WIDTH_OF_MAP = 1060  # dots, two per pixel of a screen; smaller maps are enlarged
_HATCH, _INK = 12, 90  # dots from line to line, and how gray a line is
_DPI = 150
_RAMP = 5  # colors in the legend of a confidence
_DEGREE = 111_195.0  # metres of a degree on a sphere, close enough to draw a scale
_LONGEST_BAR = 0.3  # of the width of a map


class Pictures:
    """The folder of a page's pictures: each is drawn once, saved, and shown from there."""

    def __init__(self, folder: Path, grid: PixelGrid | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._ground = None if grid is None else ground(grid)

    def map(
        self,
        name: str,
        pixels: NDArray[np.uint8],
        *,
        legend: Sequence[Swatch] = (),
        rejected: xr.DataArray | None = None,
    ) -> Picture:
        """Return the picture of a map, given its colors (y, x, channel); a pixel is a square.

        What is `rejected` is faded and hatched, as in the explorer: no class looks like that.
        """
        times = max(1, _WIDTH_OF_MAP // max(pixels.shape[:2]))
        dots = pixels.repeat(times, axis=0).repeat(times, axis=1)
        if rejected is not None:
            faded = thinned(rejected).values.astype(bool)
            rows, columns = np.nonzero(faded.repeat(times, axis=0).repeat(times, axis=1))
            dots[rows, columns, :3] = 255 - (255 - dots[rows, columns, :3]) // 4
            on_line = (rows + columns) % _HATCH < 2
            dots[rows[on_line], columns[on_line], :3] = _INK
        file = self._folder / f"{name}.png"
        imsave(file, dots)
        picture = Picture(file, tuple(legend))
        if self._ground is None:
            return picture
        width, north = self._ground
        length = _round_length(_LONGEST_BAR * width)
        name = f"{length / 1000:,g} km" if length >= 1000 else f"{length:g} m"
        return replace(picture, scale=(length / width, name), north=north)

    def figure(self, name: str, figure: Figure) -> Picture:
        """Return the picture of a figure."""
        return Picture(save_figure(figure, self._folder / name, dpi=_DPI)[0])


def ground(grid: PixelGrid) -> tuple[float, float] | None:
    """Return metres across a map, in its middle, and degrees from up to north, clockwise."""
    if grid.crs is None or not grid.georeferenced:
        return None
    column, row = grid.width / 2, grid.height / 2
    pixels = ((column, row), (column + 1, row), (column, row - 1))
    x, y = zip(*(transformed(grid.transform, pixel) for pixel in pixels), strict=True)
    longitude, latitude = map(np.array, transform(grid.crs, "EPSG:4326", x, y))
    east = _DEGREE * np.cos(np.radians(latitude[0])) * (longitude - longitude[0])
    north = _DEGREE * (latitude - latitude[0])
    width = grid.width * float(np.hypot(east[1], north[1]))
    return width, -float(np.degrees(np.arctan2(east[2], north[2])))


def _round_length(longest: float) -> float:
    """Return the longest of 1, 2, 5, 10, 20, ... metres that is not longer."""
    power = 10.0 ** np.floor(np.log10(longest))
    return float(power * max(step for step in (1, 2, 5) if step * power <= longest))


def paint_confidence(confidence: xr.DataArray) -> tuple[NDArray[np.uint8], list[Swatch]]:
    """Return the colors of a confidence map, by rank, and what some of them stand for."""
    values = thinned(confidence).values
    ascending = np.sort(values[~np.isnan(values)])
    colors = mpl.colormaps["cividis"]
    rank = np.searchsorted(ascending, values, side="right") / ascending.size
    pixels: Any = colors(rank, bytes=True)
    pixels[np.isnan(values)] = 0
    steps = np.linspace(0, 1, _RAMP)
    at_steps = zip(steps, np.quantile(ascending, steps, method="nearest"), strict=True)
    return pixels, [Swatch(to_hex(colors(step)), f"{value:.3g}") for step, value in at_steps]


def draw_curves(
    drawn: Pictures,
    curves: Curves,
    points: Mapping[str, OperatingPoint],
    pixels: str,
    isolated: Sequence[str],
) -> dict[str, Picture]:
    """Return the accuracy over the rejected fraction, and the measures of the paper, by name.

    `points` are marked on the first curve, whose first is that of the map itself; bands are those
    that curves carry. Of a curve that is `isolated` there is nothing between its points.
    """
    first = next(iter(curves))
    pictures = {}
    figure, axes = new_row(1, 1.3 * COLUMN_WIDTH, 3.1)
    this_map = dict(islice(points.items(), 1))
    RejectionCurveDisplay.from_curves(curves, isolated=isolated, marked={first: this_map}).plot(
        axes, measures=("nonrejected_accuracy",)
    )
    axes[0].set(
        xlabel=f"rejected share of the {pixels}", ylabel=f"share right of the {pixels} kept"
    )
    pictures["accuracy"] = drawn.figure("accuracy", figure)
    figure, axes = new_row(len(MEASURES), PAGE_WIDTH, 2.2)
    RejectionCurveDisplay.from_curves(curves, isolated=isolated, marked={first: points}).plot(axes)
    pictures["measures"] = drawn.figure("measures", figure)
    figure, axes = new_row(3, PAGE_WIDTH, 2.3)
    BreakEvenCostDisplay.from_curves(curves, isolated=isolated).plot(axes[0])
    CostEnvelopeDisplay.from_curves(curves).plot(axes[1:])
    pictures["costs"] = drawn.figure("costs", figure)
    size = (COLUMN_WIDTH + 0.4, 3.1)
    if len(curves) > 1:
        size = (PAGE_WIDTH, 0.45 + 0.75 * PAGE_WIDTH / len(curves))  # the panels are squares
    figure, axes = new_row(len(curves), *size)
    for ax, (name, curve) in zip(axes, curves.items(), strict=True):
        RelativeOptimalityDisplay.from_curve(curve).plot(ax, colorbar=ax is axes[-1])
        ax.set_title(name, size="medium")
    pictures["relative_optimality"] = drawn.figure("relative_optimality", figure)
    return pictures
