"""The map that a goal asks for: its operating point is chosen on one half of the test pixels.

The other half measures the map. Where test pixels lie in polygons, each polygon is in one half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hsreject.certification.run_promise import certified_place
from hsreject.measures.choosing import MAX_ERROR, Goal
from hsreject.rejection.decision import Decision, decide
from hsreject.rejection.ranking import Ranking
from hsreject.schema import NO_REFERENCE, OPERATING_POINT
from hsreject.splits.draws import random_keys
from hsreject.splits.polygons import polygon_folds, polygon_numbers

if TYPE_CHECKING:
    from hsreject.certification.certificate import Certificate
    from hsreject.measures.point import OperatingPoint

_STREAM = 1 << 18  # of random numbers; samplings take those of the class values, which are smaller


@dataclass(frozen=True)
class Delivery:
    """The maps of a rejector at the operating point of a goal, and whether the goal was met."""

    maps: xr.Dataset  # as of `Ranking.at`, dims (y, x)
    decision: Decision
    certificate: Certificate | None = None  # where a promise was asked for, kept or not

    @property
    def threshold(self) -> float:
        """The smallest confidence kept; NaN where none makes the map."""
        return float(self.maps.attrs["threshold"])

    @property
    def reached(self) -> bool:
        """Whether the goal could be met."""
        return self.decision.reached

    @property
    def calibration_point(self) -> OperatingPoint | None:
        """How the map does on the pixels that chose; None where none did."""
        return self.decision.point

    @property
    def rejected_share(self) -> float:
        """The share of the pixels with data that is rejected."""
        return float(self.maps.attrs["rejected_fraction"])

    @property
    def unknown_share(self) -> float:
        """The share of the pixels with data that resembles no training pixel."""
        return float(self.maps.attrs.get("unknown_fraction", 0.0))


def calibration_half(test: xr.DataArray, *, seed: int, by_polygons: bool) -> xr.DataArray:
    """Return the half of the test pixels that chooses, as labels that are 0 elsewhere.

    A simple random half; or whole polygons, the only one of a class being cut across.
    """
    pixels = np.flatnonzero(test.values != NO_REFERENCE)
    if by_polygons:
        classes, polygons = (values.flat[pixels] for values in (test.values, polygon_numbers(test)))
        positions = np.stack(np.unravel_index(pixels, test.shape), axis=1)
        half = pixels[polygon_folds(classes, polygons, positions, 2, seed=seed) == 0]
    else:
        order = np.argsort(random_keys(pixels.size, seed, _STREAM), kind="stable")
        half = pixels[order[: pixels.size // 2]]
    labels = np.full(test.size, NO_REFERENCE, dtype=test.dtype)
    labels[half] = test.values.flat[half]
    return test.copy(data=labels.reshape(test.shape))


def deliver(
    ranking: Ranking,
    goal: Goal,
    *,
    test: xr.DataArray,
    calibration: xr.DataArray | None,
    certified: bool = False,
    seen: Ranking | None = None,
    coarse_cost: float = 0.0,
) -> Delivery:
    """Return the maps that a goal asks for, of all that a rejector offers (`decide`).

    The `calibration` pixels that choose are half of the `test` pixels. If they have a ranking that
    was made without them, this is `seen`. A largest error is promised if it may be `certified`:
    where test pixels are a random sample. A right answer that is a group costs `coarse_cost` of a
    rejection.
    """
    certificate, place = None, None
    if certified and goal.kind == MAX_ERROR and calibration is not None:
        certificate, place = certified_place(goal.value, ranking.to_dataset(), test, calibration)
    source = ranking if seen is None else seen
    decision = decide(source, goal, calibration, certified=place, coarse_cost=coarse_cost)
    maps = ranking.at(decision.threshold)
    of_places = [name for name, one in ranking.label.coords.items() if OPERATING_POINT in one.dims]
    return Delivery(maps.drop_vars(["flag", *of_places], errors="ignore"), decision, certificate)
