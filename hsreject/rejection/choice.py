"""Choosing an operating point by what it does to calibration pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject.errors import InputError
from hsreject.rejection.goal import ACCURACY, REJECTION_COST, Goal

if TYPE_CHECKING:
    import xarray as xr

    from hsreject.rejection.calibration import Calibration


def needed_calibration(calibration: Calibration | None, goal: str) -> Calibration:
    """Return the calibration, or say that `goal` cannot do without."""
    if calibration is None:
        raise InputError(
            f"{goal} needs calibration pixels: pass calibration=hsreject.Calibration(labels, "
            "training=...) with reference labels of pixels that were not used for training."
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
    fraction = points["rejected_fraction"].values
    if goal.name == REJECTION_COST:
        n = points["accurate_kept"].values + points["misclassified_kept"].values
        n = n + points["accurate_rejected"].values + points["misclassified_rejected"].values
        cost = points["misclassified_kept"].values / n + goal.value * fraction
        return int(np.lexsort((fraction, cost))[0])
    if goal.name != ACCURACY:
        raise InputError(f"{goal.name} is not reached through calibration.")
    accuracy = points["nonrejected_accuracy"].values
    reached = np.flatnonzero(accuracy >= goal.value)
    if reached.size == 0:
        best = int(np.nanargmax(accuracy))
        raise InputError(
            f"No operating point keeps an accuracy of {goal.value:g} on the calibration pixels. "
            f"The best reachable is {accuracy[best]:.4f}, with {fraction[best]:.1%} rejected."
        )
    return int(reached[np.argmin(fraction[reached])])
