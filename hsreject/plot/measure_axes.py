"""The three measures as axes: names, symbols, limits and the lines that give them meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject.measures import point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

ACCURACY = "nonrejected_accuracy"
QUALITY = "classification_quality"
REJECTION_QUALITY = "rejection_quality"
FRACTION = "rejected_fraction"
MEASURES = tuple(point.MEASURES)

_ROOM_FOR_TEXT = 0.09  # share of the axis
_SETTLED = 0.02


def label_axes(ax: Axes, measure: str) -> None:
    """Write the names of the rejected fraction and of a measure on axes."""
    label_fraction(ax)
    ax.set_ylabel(point.MEASURES[measure].label)


def label_fraction(ax: Axes) -> None:
    """Make the horizontal axis that of the rejected fraction."""
    ax.set_xlabel(point.FRACTION_AXIS.label)
    from_zero_to_one(ax)


def from_zero_to_one(ax: Axes) -> None:
    """Let the horizontal axis run from 0 to 1, with ticks that never collide."""
    ax.set_xlim(0, 1)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])


def guide(ax: Axes, height: float, text: str) -> None:
    """Draw the thin level line that a measure is read against, named at its left end.

    The name stands below the line, or above it where the axis ends too soon for that.
    """
    ax.axhline(height, color="0.55", linewidth=0.6, linestyle=(0, (2, 2)), zorder=0)
    bottom, top = ax.get_ylim()
    below = height - bottom > _ROOM_FOR_TEXT * (top - bottom)
    ax.annotate(
        text,
        (0, height),
        xycoords=("axes fraction", "data"),
        xytext=(4, -2 if below else 1.5),
        textcoords="offset points",
        ha="left",
        va="top" if below else "bottom",
        fontsize=6,
        color="0.35",
    )


def settled_limit(fraction: NDArray[np.floating], quality: NDArray[np.floating]) -> float:
    """Return the upper limit for rejection quality once enough samples are rejected.

    With a handful of samples rejected the quality jumps between 0 and infinity; those points
    must not flatten the rest of the curve.
    """
    settled = quality[(fraction >= _SETTLED) & np.isfinite(quality)]
    return 1.12 * float(settled.max(initial=1.0))
