"""The map that a goal asks for: its operating point is chosen on one half of the test pixels.

The other half measures the map. Where test pixels lie in polygons, each polygon is in one half.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hsreject.certification.run_promise import certified_place
from hsreject.measures.choosing import ACCURACY, FRACTION, MAX_ERROR, Goal, choose_point
from hsreject.measures.curve import curve_of_points
from hsreject.measures.point import OperatingPoint, operating_point
from hsreject.rejection.hierarchical import (
    answer_map,
    credited_label,
    finest_threshold,
)
from hsreject.rejection.ranked import RankedRejector
from hsreject.rejection.rejector import UNKNOWN
from hsreject.rejection.thresholds import threshold_for_fraction
from hsreject.schema import (
    LABEL_WITH_REJECTION,
    LEVEL_CONFIDENCE,
    NO_REFERENCE,
    OPERATING_POINT,
    REJECTED,
    nodata_label,
    reference_pixels,
)
from hsreject.splits.draws import random_keys
from hsreject.splits.polygons import polygon_folds, polygon_numbers

if TYPE_CHECKING:
    from hsreject.certification.certificate import Certificate

FEWEST_KEPT = 30  # calibration pixels: of fewer an accuracy says too little
_STREAM = 1 << 18  # of random numbers; samplings take those of the class values, which are smaller


@dataclass(frozen=True)
class Delivery:
    """The maps of a rejector at the operating point of a goal, and whether the goal was met."""

    maps: xr.Dataset  # label, confidence, rejected and label_with_rejection, dims (y, x)
    threshold: float  # the smallest confidence kept; NaN where none makes the map
    calibration_point: OperatingPoint | None  # None where no calibration pixel was asked
    reached: bool  # whether the goal could be met
    certificate: Certificate | None = None  # where a promise was asked for, kept or not

    @property
    def rejected_share(self) -> float:
        """The share of the pixels with data that is rejected."""
        return self._share("rejected")

    @property
    def unknown_share(self) -> float:
        """The share of the pixels with data that resembles no training pixel."""
        return self._share(UNKNOWN) if UNKNOWN in self.maps else 0.0

    def _share(self, name: str) -> float:
        has_data = self.maps["label"] != nodata_label(self.maps["label"].dtype)
        return float(self.maps[name].sum() / has_data.sum())


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
    swept: xr.Dataset,
    goal: Goal,
    *,
    test: xr.DataArray,
    calibration: xr.DataArray | None,
    certified: bool = False,
    seen: xr.Dataset | None = None,
    coarse_cost: float = 0.0,
) -> Delivery:
    """Return the maps that a goal asks for, of all that a rejector offers by its `sweep`.

    A fraction is one of the scene. An accuracy is that of the `calibration` pixels that are kept,
    at least 30 of them; where it is out of reach, the most that can be reached is taken. These
    pixels are half of the `test` pixels. If they have maps that were made without them, these are
    `seen`. A largest error is promised if it may be `certified`: where test pixels are a random
    sample. A right answer that is a group costs `coarse_cost` of a rejection.
    """
    if goal.kind == FRACTION:
        return Delivery(*_at(swept, _place_of_fraction(swept, goal.value)), None, reached=True)
    assert calibration is not None  # noqa: S101 (such a goal has some)
    certificate = None
    if certified and goal.kind == MAX_ERROR:
        certificate, place = certified_place(goal.value, swept, test, calibration)
        if place is not None:
            point = _point_at(swept, place, calibration)
            return Delivery(*_at(swept, place), point, reached=True, certificate=certificate)
    asked = Goal(accuracy=1 - goal.value) if goal.kind == MAX_ERROR else goal
    source = swept if seen is None else seen
    place, reached = _place_of_goal(source, asked, calibration, coarse_cost)
    reached &= goal.kind != MAX_ERROR  # without a promise it is not what was asked for
    point = _point_at(source, place, calibration)
    return Delivery(*_at(swept, place), point, reached=reached, certificate=certificate)


def _at(swept: xr.Dataset, place: float) -> tuple[xr.Dataset, float]:
    """Return the maps at a threshold, or of the operating point of that number; the threshold."""
    maps, threshold = swept[["label", "confidence"]], place
    if OPERATING_POINT in maps.dims:
        maps = swept[["label", "confidence", "rejected"]].isel({OPERATING_POINT: int(place)})
        threshold = np.nan
    else:
        maps = maps.assign(rejected=maps["confidence"] < place)
    if UNKNOWN in swept:  # rejected whatever the goal
        maps = maps.assign({UNKNOWN: swept[UNKNOWN], "rejected": maps["rejected"] | swept[UNKNOWN]})
    answer = maps["label"]
    if LEVEL_CONFIDENCE in swept:
        answer = answer_map(answer, swept[LEVEL_CONFIDENCE], place)
    with_rejection = answer.where(~maps["rejected"], answer.dtype.type(REJECTED))
    maps = maps.drop_vars([name for name, one in maps.coords.items() if not one.ndim])
    return maps.assign({LABEL_WITH_REJECTION: with_rejection.assign_attrs(answer.attrs)}), threshold


def _place_of_fraction(swept: xr.Dataset, fraction: float) -> float:
    if OPERATING_POINT not in swept["label"].dims:
        confidence = swept["confidence"].values
        if UNKNOWN in swept:  # these are rejected beside the fraction
            confidence = confidence[~swept[UNKNOWN].values]
        threshold = threshold_for_fraction(confidence, fraction).value
        return finest_threshold(swept, threshold) if LEVEL_CONFIDENCE in swept else threshold
    n_pixels = (swept["label"][0] != nodata_label(swept["label"].dtype)).values.sum()
    shares = swept["rejected"].values.sum(axis=(1, 2)) / n_pixels
    return float(np.abs(shares - fraction).argmin())


def _place_of_goal(
    swept: xr.Dataset, goal: Goal, calibration: xr.DataArray, coarse_cost: float
) -> tuple[float, bool]:
    """Return the threshold or number of the point that a goal asks for, and whether it is met.

    Unknown pixels choose nothing: they are rejected in any case.
    """
    if OPERATING_POINT in swept["label"].dims:
        points = [_point_at(swept, k, calibration) for k in range(swept.sizes[OPERATING_POINT])]
        key = [(point.rejected_fraction, point.accurate_kept) for point in points]
        places = np.array(sorted(range(len(points)), key=key.__getitem__), dtype=np.float64)
        curve = curve_of_points(points)
    else:
        can_choose = swept["confidence"].notnull()
        if UNKNOWN in swept:
            can_choose &= ~swept[UNKNOWN]
        labels = calibration.where(can_choose, NO_REFERENCE).astype(calibration.dtype)
        if not (labels != NO_REFERENCE).any():
            return -np.inf, False
        curve = RankedRejector.points(swept, labels)
        # rejecting none of these pixels means none at all, also of those that are less certain
        places = np.append(-np.inf, curve["threshold"].values[1:])
    n_kept = (curve["accurate_kept"] + curve["misclassified_kept"]).values
    if not n_kept[0]:
        return float(places[0]), False
    reached = True
    if goal.kind == ACCURACY:
        enough = np.flatnonzero(n_kept >= min(FEWEST_KEPT, n_kept[0]))
        curve, places = curve.isel({OPERATING_POINT: enough}), places[enough]
        highest = float(curve["nonrejected_accuracy"].max())
        reached = highest >= goal.value
        goal = goal if reached else Goal(accuracy=highest)
    point = choose_point(curve, **{goal.kind: goal.value}, coarse_cost=coarse_cost)
    return float(places[point.index]), reached


def _point_at(swept: xr.Dataset, place: float, labels: xr.DataArray) -> OperatingPoint:
    """Return how a map of the sweep does on labelled pixels."""
    maps, _ = _at(swept, place)
    used, correct = reference_pixels(credited_label(maps, labels), labels)
    return operating_point(correct, maps["rejected"].values[used])
