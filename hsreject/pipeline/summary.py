"""The table that people quote: one row a system, one column a figure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from hsreject.measures.choosing import choose_point
from hsreject.measures.summary import accuracy_at, aurc

SYSTEM = "system"
SEED = "seed"
AT_FRACTION = "at_fraction"
QUOTED_FRACTIONS = (0.1, 0.2)


def summarise(curves: Mapping[str, xr.Dataset], seconds: Mapping[str, float]) -> xr.Dataset:
    """Return the figures of each system, dims (system,) and (system, at_fraction).

    Parameters
    ----------
    curves : mapping of str to Dataset
        Operating points of each system on the test pixels. A curve with one point (nothing
        rejected) has an overall accuracy and no more.
    seconds : mapping of str to float
        What each system took, everything it needs included.
    """
    rows = [_row(curves[name]).assign(seconds=seconds[name]) for name in curves]
    return xr.concat(rows, dim=xr.Variable(SYSTEM, list(curves)))


def _row(curve: xr.Dataset) -> xr.Dataset:
    nothing = {
        "overall_accuracy": _overall_accuracy(curve),
        "accuracy_at": (AT_FRACTION, np.full(len(QUOTED_FRACTIONS), np.nan)),
        "largest_quality": np.nan,
        "fraction_of_largest_quality": np.nan,
        "aurc": np.nan,
    }
    row = xr.Dataset(nothing, coords={AT_FRACTION: list(QUOTED_FRACTIONS)})
    if curve["rejected_fraction"].size == 1:
        return row
    best = choose_point(curve)
    fractions = curve["rejected_fraction"].values
    whole = fractions.min() == 0 and fractions.max() == 1
    return row.assign(
        accuracy_at=(AT_FRACTION, accuracy_at(curve, QUOTED_FRACTIONS).values),
        largest_quality=float(best["classification_quality"]),
        fraction_of_largest_quality=float(best["rejected_fraction"]),
        aurc=aurc(curve) if whole else np.nan,
    )


def _overall_accuracy(curve: xr.Dataset) -> float:
    """Return the accuracy of the same labels with nothing rejected, at the first point."""
    if "overall_accuracy" in curve:
        return float(curve["overall_accuracy"][0])
    return float(curve["nonrejected_accuracy"][0])
