"""Thresholds on a confidence: equal confidences are rejected together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Threshold:
    """A threshold and the fractions that thresholds can reach around the wanted one.

    Parameters
    ----------
    value : float
        Pixels with a confidence below it are rejected; infinity rejects everything.
    rejected_fraction : float
        The share of pixels below it.
    reachable_below, reachable_above : float
        The nearest fractions that some threshold rejects, at most and at least the wanted one.
        They are equal where the wanted fraction itself can be reached.
    """

    value: float
    rejected_fraction: float
    reachable_below: float
    reachable_above: float


def threshold_for_fraction(confidence: NDArray[np.floating], fraction: float) -> Threshold:
    """Return the threshold whose rejected fraction is nearest to the wanted one.

    A threshold cannot separate equal confidences, so the fractions that can be reached are those
    of the distinct confidences. Halfway between two of them, fewer pixels are rejected. The
    fractions 0 and 1 can always be reached.

    Parameters
    ----------
    confidence : array (pixel), finite, not empty
        In any order.
    fraction : float in [0, 1]

    Examples
    --------
    Two of four pixels are equally unsure, so a quarter cannot be rejected:

    >>> threshold_for_fraction(np.array([0.2, 0.2, 0.8, 0.9]), 0.25)
    Threshold(value=0.2, rejected_fraction=0.0, reachable_below=0.0, reachable_above=0.5)
    >>> threshold_for_fraction(np.array([0.2, 0.2, 0.8, 0.9]), 0.5).value
    0.8
    """
    wanted = fraction * confidence.size
    # A selection instead of a sort: only the confidence at the wanted rank matters.
    rank = min(int(wanted), confidence.size - 1)
    pivot = np.partition(confidence, rank)[rank]
    below = int(np.count_nonzero(confidence < pivot))
    above = int(np.count_nonzero(confidence <= pivot))
    return nearer_threshold(
        wanted,
        confidence.size,
        at=(float(pivot), below),
        after=lambda: (float(confidence[confidence > pivot].min(initial=np.inf)), above),
        above=above,
    )


def nearer_threshold(
    wanted: float,
    n_pixels: int,
    *,
    at: tuple[float, int],
    after: Callable[[], tuple[float, int]],
    above: int,
) -> Threshold:
    """Return the nearer of the two thresholds around a wanted number of rejected pixels.

    Parameters
    ----------
    wanted : float
        How many pixels should be rejected.
    n_pixels : int
        How many there are.
    at : (float, int)
        The confidence at the wanted rank, and how many pixels lie below it.
    after : callable
        Returns the next larger confidence (infinity if there is none) and `above`; called only
        when that is the nearer one.
    above : int
        How many pixels do not lie above the confidence at the wanted rank.
    """
    below = at[1]
    value, count = at if wanted - below <= above - wanted else after()
    exact = [number for number in (below, above) if abs(number - wanted) < 1e-6]
    return Threshold(
        value,
        count / n_pixels,
        (exact[0] if exact else below) / n_pixels,
        (exact[0] if exact else above) / n_pixels,
    )
