"""Choosing an operating point by what it does to calibration pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hsreject.errors import InputError
from hsreject.measures.choosing import choose_point
from hsreject.rejection.calibration import Calibration
from hsreject.rejection.goal import ACCURACY, Goal

if TYPE_CHECKING:
    import xarray as xr


def needed_calibration(calibration: Calibration | None, goal: str) -> Calibration:
    """Return the calibration, or say that `goal` cannot do without."""
    if calibration is None:
        raise InputError(
            f"{goal} needs calibration pixels: pass calibration=hsreject.Calibration(labels, "
            "training=...) with reference labels of pixels that were not used for training."
        )
    if not isinstance(calibration, Calibration):
        raise InputError(
            f"calibration must be a hsreject.Calibration (got {type(calibration).__name__}). "
            "Pass calibration=hsreject.Calibration(labels, training=...), which checks that no "
            "training pixel is among the labels."
        )
    return calibration


def calibrated_index(points: xr.Dataset, goal: Goal) -> int:
    """Return the number of the operating point that meets an accuracy or a cost.

    Parameters
    ----------
    points : Dataset over `operating_point`
        Measured on calibration pixels, with the variables of :func:`hsreject.rejection_curve`.
    goal : Goal
        `accuracy`: the smallest rejected fraction that reaches it. `rejection_cost`: the smallest
        mean cost; of equally cheap points the one that rejects least.
    """
    if goal.name == ACCURACY:
        return int(choose_point(points, accuracy=goal.value)["index"])
    return int(choose_point(points, rejection_cost=goal.value)["index"])
