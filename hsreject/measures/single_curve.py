"""One curve or several: tables that list the points of several rejectors one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hsreject import schema
from hsreject.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

REJECTOR = "rejector"

ROUNDING = 1e-9
"""By how much shares of weighted samples, ratios of rounded sums, may differ and be the same."""


def check_not_empty(curve: xr.Dataset, *, needed_by: str) -> None:
    """Raise unless there is an operating point."""
    if not curve.sizes[schema.OPERATING_POINT]:
        raise InputError(f"{needed_by} needs a curve, but this one has no operating point.")


def check_single_curve(curve: xr.Dataset, *, needed_by: str) -> None:
    """Raise unless the points are those of one curve, rejected fraction ascending.

    Parameters
    ----------
    curve : Dataset over `operating_point`
    needed_by : str
        What cannot do without, as the message begins.

    Examples
    --------
    >>> from hsreject import rejection_curve
    >>> import xarray as xr
    >>> curve = rejection_curve([True, False], [0.9, 0.5])
    >>> check_single_curve(curve, needed_by="aurc")
    >>> check_single_curve(xr.concat([curve, curve], "operating_point"), needed_by="aurc")
    Traceback (most recent call last):
    hsreject.errors.InputError: aurc needs the points of one curve, rejected fraction ascending...
    """
    check_not_empty(curve, needed_by=needed_by)
    fraction = curve["rejected_fraction"].values
    names = _rejectors(curve)
    if len(names) > 1:
        raise InputError(
            f"{needed_by} needs the curve of one rejector, but this table holds those of "
            f"{len(names)} ({', '.join(names)}). Choose one: table.isel({schema.OPERATING_POINT}="
            f"table.{REJECTOR}.values == {names[0]!r})."
        )
    falls = np.flatnonzero(np.diff(fraction) < -ROUNDING)
    if falls.size:
        before, after = fraction[falls[0] : falls[0] + 2]
        raise InputError(
            f"{needed_by} needs the points of one curve, rejected fraction ascending (here it "
            f"falls from {before:g} to {after:g}). Select the points of one curve, or sort them "
            "with .sortby('rejected_fraction')."
        )


def _rejectors(curve: xr.Dataset) -> list[str]:
    if REJECTOR not in curve.coords:
        return []
    return list(dict.fromkeys(np.atleast_1d(curve[REJECTOR].values).astype(str).tolist()))
