"""Every picture once, at the size that a page shows: maps as plain pixels, curves as figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imsave
from numpy.typing import NDArray

from hsreject.measures.point import MEASURES, OperatingPoint
from hsreject.plot.cost_displays import BreakEvenCostDisplay, CostEnvelopeDisplay
from hsreject.plot.curve_displays import RejectionCurveDisplay
from hsreject.plot.image_displays import ConfidenceMapDisplay, thinned
from hsreject.plot.optimality_displays import RelativeOptimalityDisplay
from hsreject.plot.reliability_display import ReliabilityDisplay
from hsreject.plot.style import COLUMN_WIDTH, PAGE_WIDTH, new_row, save_figure
from hsreject.report.page import Picture, Swatch
from hsreject.schema import reference_pixels

Curves = Mapping[str, xr.Dataset]

_WIDTH_OF_MAP = 1060  # dots, two per pixel of a screen; smaller maps are enlarged
_HATCH, _INK = 12, 90  # dots from line to line, and how gray a line is
_DPI = 150
_RAMP = 5  # colors in the legend of a confidence


class Pictures:
    """The folder of a page's pictures: each is drawn once, saved, and shown from there."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder

    def map(
        self,
        name: str,
        pixels: NDArray[np.uint8],
        title: str,
        caption: str = "",
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
            gone = thinned(rejected).values.astype(bool)
            rows, columns = np.nonzero(gone.repeat(times, axis=0).repeat(times, axis=1))
            dots[rows, columns, :3] = 255 - (255 - dots[rows, columns, :3]) // 4
            on_line = (rows + columns) % _HATCH < 2
            dots[rows[on_line], columns[on_line], :3] = _INK
        file = self._folder / f"{name}.png"
        imsave(file, dots)
        return Picture(file, title, caption, tuple(legend), is_map=True)

    def curves(self, name: str, figure: Figure, title: str, caption: str = "") -> Picture:
        """Return the picture of a figure."""
        return Picture(save_figure(figure, self._folder / name, dpi=_DPI)[0], title, caption)


def paint_confidence(confidence: xr.DataArray) -> tuple[NDArray[np.uint8], list[Swatch]]:
    """Return the colors of a confidence map, and what some of them stand for."""
    display = ConfidenceMapDisplay.from_confidence(confidence)
    low, high = display.limits
    colors = mpl.colormaps["cividis"]
    values = display.confidence.values
    pixels: Any = colors((values - low) / ((high - low) or 1), bytes=True)
    pixels[np.isnan(values)] = 0
    steps = np.linspace(0, 1, _RAMP)
    ramp = [Swatch(to_hex(colors(step)), f"{low + step * (high - low):.2g}") for step in steps]
    return pixels, ramp


def measures(
    curves: Curves,
    *,
    isolated: Sequence[str] = (),
    points: Mapping[str, OperatingPoint] | None = None,
    bands: xr.Dataset | None = None,
) -> Figure:
    """Draw the measures; `points` and `bands` are those of the first curve."""
    figure, axes = new_row(len(MEASURES), PAGE_WIDTH, 2.2)
    (first, *_) = curves
    RejectionCurveDisplay.from_curves(
        curves,
        isolated=isolated,
        marked=None if points is None else {first: points},
        bands=None if bands is None else {first: bands},
    ).plot(axes)
    return figure


def relative_optimality(curves: Curves) -> Figure:
    """Draw the relative optimality of each curve, side by side."""
    size = (COLUMN_WIDTH + 0.4, 3.1)
    if len(curves) > 1:
        size = (PAGE_WIDTH, 0.45 + 0.75 * PAGE_WIDTH / len(curves))  # the panels are squares
    figure, axes = new_row(len(curves), *size)
    for ax, (name, curve) in zip(axes, curves.items(), strict=True):
        RelativeOptimalityDisplay.from_curve(curve).plot(ax, colorbar=ax is axes[-1])
        ax.set_title(name, size="medium")
    return figure


def costs(curves: Curves, *, isolated: Sequence[str] = ()) -> Figure:
    """Draw the cost from which on rejection no longer pays, and the cheapest point per cost."""
    figure, axes = new_row(3, PAGE_WIDTH, 2.3)
    BreakEvenCostDisplay.from_curves(curves, isolated=isolated).plot(axes[0])
    CostEnvelopeDisplay.from_curves(curves).plot(axes[1:])
    return figure


def reliability(
    said: Mapping[str, tuple[xr.DataArray, xr.DataArray]], reference: xr.DataArray
) -> Figure:
    """Draw systems by name, each a label map and how probable its labels are, on a reference."""
    samples = {}
    for name, (label, probability) in said.items():
        used, correct = reference_pixels(label, reference)
        samples[name] = correct, probability.values[used]
    figure, axes = new_row(1, COLUMN_WIDTH, COLUMN_WIDTH)
    ReliabilityDisplay.from_samples(samples).plot(axes[0])
    return figure
