"""What the tests of pictures share: a curve to draw, and what axes carry."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

import hsreject as hr


def example(n: int = 300, seed: int = 0) -> xr.Dataset:
    generator = np.random.default_rng(seed)
    confidence = generator.uniform(0, 1, n)
    return hr.rejection_curve(generator.uniform(0, 1, n) < 0.4 + 0.5 * confidence, confidence)


def row(count: int) -> list[Axes]:
    return hr.plot.new_row(count)[1]


def line(ax: Axes, label: str) -> np.ndarray:
    (found,) = [artist for artist in ax.get_lines() if artist.get_label() == label]
    return np.asarray(found.get_xydata())


def markers(ax: Axes) -> dict[str, str]:
    return {artist.get_label(): artist.get_marker() for artist in ax.get_lines()}


def legend(ax: Axes) -> list[str]:
    """Return the names in the legend of the axes, or in that of their figure."""
    found = ax.get_legend() or ax.figure.legends[0]
    return [text.get_text() for text in found.get_texts()]
