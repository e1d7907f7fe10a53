"""Curves of an explorer: the paths of a picture, and the points that win at some cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from hsreject.measures.cost import cost_envelope
from hsreject.measures.curve import nearest_points
from hsreject.measures.point import COUNTS, Counts
from hsreject.report.explorer_systems import System
from hsreject.schema import OPERATING_POINT

_DRAWN_POINTS = 240  # of a curve; every number on the page is taken from all of them
_Z = 1.959963984540054  # of 95 %, as in explorer.js


def winners(system: System) -> list[tuple[int, float]]:
    """Return the points that are cheapest at some cost, each with the lowest such cost."""
    if not system.truth.size:
        return []
    columns = zip(COUNTS, system.table[1:], strict=True)
    envelope = cost_envelope(xr.Dataset({name: (OPERATING_POINT, c) for name, c in columns}))
    index = envelope["index"].values
    if system.thresholds is not None:
        # thresholds that reject the same test pixels are one operating point: that of the highest
        rejected = system.table[3] + system.table[4]
        index = np.searchsorted(rejected, rejected[index], side="right") - 1
    return list(zip(index.tolist(), envelope["lowest_cost"].values.tolist(), strict=True))


@dataclass(frozen=True)
class CurveDrawing:
    """The curves of all systems as paths, in a box whose lowest accuracy is `floor`."""

    floor: float
    width: float = 420
    left: float = 44
    right: float = 412
    top: float = 10
    bottom: float = 196

    @classmethod
    def of(cls, systems: list[System]) -> CurveDrawing:
        """Return a drawing in which all curves have room, up to nine tenths rejected."""
        lowest = 1.0
        for system in systems:
            counts = Counts(*system.table[1:])
            used = (counts.rejected < 0.9 * counts.n) & (counts.kept > 0)
            lowest = min(lowest, counts.nonrejected_accuracy[used].min(initial=1.0))
        return cls(min(math.floor(10 * lowest) / 10, 0.9))

    @property
    def grid(self) -> list[tuple[float, str]]:
        """Heights and names of the lines across."""
        step = next(step for step in (0.02, 0.05, 0.1, 0.2) if (1 - self.floor) / step < 6)
        shares = np.arange(1, self.floor - step / 2, -step)
        return [(float(self._y(share)), f"{100 * share:.0f} %") for share in shares]

    def paths(self, system: System) -> dict[str, Any]:
        """Return line, interval (Wilson) and, where points stand alone, dots of a system."""
        counts = Counts(*system.table[1:])
        if not counts.n[0]:
            return {"line": "", "band": "", "dots": []}
        kept = np.flatnonzero(counts.kept > 0)
        chosen = kept[nearest_points(counts.rejected_fraction[kept], _DRAWN_POINTS)]
        n, accuracy = counts.kept[chosen], counts.nonrejected_accuracy[chosen]
        middle = accuracy + _Z**2 / (2 * n)
        half = _Z * np.sqrt(accuracy * (1 - accuracy) / n + (_Z / n) ** 2 / 4)
        x = self.left + counts.rejected_fraction[chosen] * (self.right - self.left)
        points, upper, lower = (
            [f"{place:.1f} {height:.1f}" for place, height in zip(x, self._y(share), strict=True)]
            for share in (
                accuracy,
                (middle + half) / (1 + _Z**2 / n),
                (middle - half) / (1 + _Z**2 / n),
            )
        )
        return {
            "line": "M" + "L".join(points),
            "band": "M" + "L".join(upper + lower[::-1]) + "Z",
            "dots": [] if system.thresholds is not None else [point.split() for point in points],
        }

    def _y(self, accuracy: Any) -> Any:
        share = np.clip((accuracy - self.floor) / (1 - self.floor), 0, 1)
        return self.bottom - share * (self.bottom - self.top)
