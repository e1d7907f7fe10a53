r"""The operating set of a reference point: where the rejection cost decides (paper, figure 2).

Of one classifier with accuracy A(0), a point at rejected fraction r is given by its share of
accurate kept samples a = A (1 - r). Against the reference (a_0, r_0), with the step
:math:`d = r - r_0`:

======== ============================ ==================================================
border   a                            meaning
======== ============================ ==================================================
highest  min(A(0), 1 - r)             nothing better can be reached at r
best     a_0 - min(d, 0)              at or above it the reference is outperformed (beta 1)
middle   a_0 - d / 2                  as many right decisions as the reference (beta 0)
worst    a_0 - max(d, 0)              at or below it the reference outperforms (beta -1)
lowest   max(0, A(0) - r)             nothing worse can be reached at r
======== ============================ ==================================================

The appendix of the paper says in words that the best case for r > r_0 adds (r - r_0)/(1 - r) to the
accuracy and that the worst case is A_0 (1 - r_0)/(1 - r); the formula below those words, and the
table above, have the latter as the best case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.measures import inputs
from hsreject.measures.counts import MEASURES, Counts
from hsreject.measures.point import OperatingPoint

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

BORDERS = ("lowest", "worst", "middle", "best", "highest")


def operating_set(
    reference: OperatingPoint, *, rejected_fraction: ArrayLike | None = None
) -> xr.Dataset:
    """Return the borders of the operating set of a reference point, for all three measures.

    At each rejected fraction, points from `best` to `highest` outperform the reference whatever the
    rejection cost, points from `lowest` to `worst` are outperformed, and what lies between `worst`
    and `best` (the operating set) depends on the cost. `worst` and `best` are drawn in to what can
    be reached; where a region cannot be reached at all its two borders coincide. `middle` is NaN
    where it cannot be reached.

    Parameters
    ----------
    reference : OperatingPoint
        Any point of the same classifier.
    rejected_fraction : sequence of float, optional
        Where to give the borders, in [0, 1]; 201 equally spaced fractions and that of the
        reference when not given.

    Returns
    -------
    Dataset, dims (border, rejected_fraction)
        `nonrejected_accuracy`, `classification_quality`, `rejection_quality`.

    Examples
    --------
    >>> borders = operating_set(OperatingPoint(50, 30, 5, 15), rejected_fraction=[0.4])
    >>> borders.nonrejected_accuracy.values.ravel().round(3)
    array([0.25 , 0.5  , 0.667, 0.833, 0.917])
    """
    if rejected_fraction is None:
        fraction = np.union1d(np.linspace(0, 1, 201), reference.rejected_fraction)
    else:
        fraction = np.atleast_1d(
            inputs.fraction_values(rejected_fraction, name="rejected_fraction")
        )
    kept = _borders(reference, fraction)
    # rounding of 1e-16 in a difference must not turn "nothing accurate rejected" into a huge phi
    accurate_rejected = _clean(reference.overall_accuracy - kept)
    shares = Counts(
        accurate_kept=kept,
        misclassified_kept=_clean(1 - fraction - kept),
        accurate_rejected=accurate_rejected,
        misclassified_rejected=_clean(fraction - accurate_rejected),
    )
    variables = {name: measure.kernel(shares) for name, measure in MEASURES.items()}
    dims = (schema.BORDER, schema.REJECTED_FRACTION)
    return xr.Dataset(
        {name: (dims, np.where(np.isnan(kept), np.nan, v)) for name, v in variables.items()},
        coords={schema.BORDER: list(BORDERS), schema.REJECTED_FRACTION: fraction},
    )


def _borders(reference: OperatingPoint, fraction: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the accurate kept share of each border, in the order of `BORDERS`."""
    overall, kept = reference.overall_accuracy, reference.accurate_kept / reference.n
    step = fraction - reference.rejected_fraction
    lowest = np.maximum(0.0, overall - fraction)
    highest = np.minimum(overall, 1 - fraction)
    best = np.clip(kept - np.minimum(step, 0), lowest, highest)
    worst = np.clip(kept - np.maximum(step, 0), lowest, highest)
    middle = kept - step / 2
    reached = (middle > lowest - 1e-12) & (middle < highest + 1e-12)
    middle = np.where(reached, np.clip(middle, lowest, highest), np.nan)
    return np.stack([lowest, worst, middle, best, highest])


def _clean(share: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.abs(share) < 1e-12, 0.0, share)
