r"""Relative optimality and operating sets: how other points compare with a reference point.

For a reference point (A_0, r_0) and another point (A_1, r_1) the paper (section IV-B) defines

.. math:: \beta = 2 \frac{A_1 (1-r_1) - A_0 (1-r_0)}{r_1 - r_0} + 1 \quad (r_1 > r_0)

and the negative of that for :math:`r_1 < r_0`. For two points of one classifier this is
:math:`(Q_1 - Q_0) / |r_1 - r_0|` in both cases, because Q and 2 A (1 - r) + r differ by a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.curve import counts_of, nearest_points
from hsreject.measures.point import Counts, OperatingPoint, measures_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def relative_optimality(
    accuracy_1: ArrayLike | xr.DataArray,
    fraction_1: ArrayLike | xr.DataArray,
    accuracy_0: ArrayLike | xr.DataArray,
    fraction_0: ArrayLike | xr.DataArray,
) -> Any:
    r"""Compute the paper's beta of point 1 with respect to the reference point 0.

    1 means that going from the reference to point 1 decided every sample correctly (only errors
    newly rejected, only accurate samples newly kept), -1 that it decided every sample wrongly.
    Above 1 point 1 outperforms the reference whatever the rejection cost, below -1 it is
    outperformed. ``beta(1|0) = -beta(0|1)``.

    At equal rejected fractions, where the paper's formula has no value, the point that keeps more
    accurate samples is better whatever the cost: infinity or minus infinity; 0 for equal points.

    Parameters
    ----------
    accuracy_1, fraction_1 : float or array
        Nonrejected accuracy and rejected fraction of the point. Where the fraction is 1 the
        accuracy does not matter and may be NaN.
    accuracy_0, fraction_0 : float or array
        The same of the reference point. All four broadcast against each other.

    Returns
    -------
    float, ndarray or DataArray
        Of the broadcast shape; a DataArray named `relative_optimality` when an argument is one.

    See Also
    --------
    hsreject.relative_optimality_pairs : for all points of a curve.
    hsreject.break_even_cost : the same as a cost.

    Examples
    --------
    The worked example of the paper against no rejection at all:

    >>> from hsreject import relative_optimality
    >>> round(relative_optimality(0.625, 0.2, 0.55, 0.0), 3)
    0.5
    """
    return of_two_points(
        _relative_optimality,
        (accuracy_1, fraction_1, accuracy_0, fraction_0),
        name="relative_optimality",
        meaning="relative optimality with respect to the reference point (beta)",
    )


def of_two_points(
    kernel: Callable[..., Any],
    arguments: tuple[ArrayLike | xr.DataArray, ...],
    *,
    name: str,
    meaning: str,
) -> Any:
    """Compute `kernel(A_1, r_1, A_0, r_0)`, a named DataArray when an argument is one."""
    plain = [a if isinstance(a, xr.DataArray) else np.asarray(a, np.float64) for a in arguments]
    try:
        values = xr.apply_ufunc(kernel, *plain, dask="parallelized")
    except ValueError as error:  # of xarray and of NumPy, when shapes or coordinates differ
        names = ("accuracy_1", "fraction_1", "accuracy_0", "fraction_0")
        shapes = ", ".join(f"{n} {a.shape}" for n, a in zip(names, plain, strict=True))
        raise InputError(
            f"{name} compares point by point, but the numbers of points differ (got {shapes}). "
            "Give as many reference points as points, or one; for all pairs of DataArrays rename "
            f"the dimension: .rename({schema.OPERATING_POINT}='{schema.REFERENCE_POINT}')."
        ) from error
    if not isinstance(values, xr.DataArray):
        return float(values) if values.ndim == 0 else values
    values.attrs = {"long_name": meaning}  # those of the accuracy came along
    return values.rename(name)


def relative_optimality_pairs(curve: xr.Dataset, *, n_points: int | None = None) -> xr.DataArray:
    """Compute beta of every point of a curve with respect to every other (paper, figures 5 and 8).

    Computed from the counts row by row: signs are exact, and nothing larger than the answer is
    allocated.

    Parameters
    ----------
    curve : Dataset
        Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`.
    n_points : int, optional
        Use the points nearest to this many equally spaced rejected fractions (fewer when two of
        them have the same nearest point) instead of all.

    Returns
    -------
    DataArray, dims (operating_point, reference_point)
        With the rejected fractions of both as coordinates. The diagonal is 0.

    See Also
    --------
    hsreject.relative_optimality : for two points.
    hsreject.plot.RelativeOptimalityDisplay : draws it.

    Examples
    --------
    >>> from hsreject import rejection_curve, relative_optimality_pairs
    >>> curve = rejection_curve([True, True, False], [0.9, 0.8, 0.1])
    >>> relative_optimality_pairs(curve).values[1]
    array([1., 0., 1., 1.])
    """
    inputs.check_curve(curve)
    index = np.arange(curve.sizes[schema.OPERATING_POINT])
    if n_points is not None:
        inputs.check_single_curve(curve, needed_by="relative_optimality_pairs with n_points")
        index = nearest_points(curve["rejected_fraction"].values, n_points)
    counts = counts_of(curve.isel({schema.OPERATING_POINT: index}))
    accurate, rejected, n = counts.accurate_kept, counts.rejected, counts.n
    if (n != n[0]).any():  # points of different samples: compare shares
        accurate, rejected = accurate / n, rejected / n
    fraction = curve["rejected_fraction"].values[index]
    beta = np.empty((index.size, index.size))
    for row, own_accurate, own_rejected in zip(beta, accurate, rejected, strict=True):
        row[:] = _beta(own_accurate - accurate, own_rejected - rejected)
    return xr.DataArray(
        beta,
        dims=(schema.OPERATING_POINT, schema.REFERENCE_POINT),
        coords={
            "rejected_fraction": (schema.OPERATING_POINT, fraction),
            "reference_fraction": (schema.REFERENCE_POINT, fraction),
        },
        name="relative_optimality",
    )


def gain_and_step(accuracy_1: Any, fraction_1: Any, accuracy_0: Any, fraction_0: Any) -> Any:
    """Compute the change of A (1 - r), the accurate samples kept, and of r, from point 0 to 1."""
    gain = _accurate_kept(accuracy_1, fraction_1) - _accurate_kept(accuracy_0, fraction_0)
    return gain, np.subtract(fraction_1, fraction_0)


def _accurate_kept(accuracy: Any, fraction: Any) -> Any:
    """Compute A (1 - r): 0 where everything is rejected and A is NaN."""
    return np.where(np.equal(fraction, 1), 0.0, np.multiply(accuracy, np.subtract(1, fraction)))


def _relative_optimality(*points: Any) -> Any:
    return _beta(*gain_and_step(*points))


def _beta(gain: Any, step: Any) -> Any:
    """Compute beta of a change in accurate kept and in rejected samples, both in one unit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # If both reject equally many, the one that keeps more accurate samples is better whatever
        # the cost: beta is then plus or minus infinity. Only 0 / 0, no difference at all, is put in
        # by hand.
        beta = (2 * gain + step) / np.abs(step)
    return np.where((step == 0) & (gain == 0), 0.0, beta)


BORDERS = ("lowest", "worst", "middle", "best", "highest")


def operating_set(
    reference: OperatingPoint, *, rejected_fraction: ArrayLike | None = None
) -> xr.Dataset:
    r"""Find where the rejection cost decides against a reference point (paper, figure 2).

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

    The appendix of the paper says in words that the best case for r > r_0 adds (r - r_0)/(1 - r)
    to the accuracy and that the worst case is A_0 (1 - r_0)/(1 - r); the formula below those words,
    and the table above, have the latter as the best case.

    At each rejected fraction, points from `best` to `highest` outperform the reference whatever the
    rejection cost, points from `lowest` to `worst` are outperformed, and what lies between `worst`
    and `best` (the operating set) depends on the cost. `worst` and `best` are clipped to what can
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

    See Also
    --------
    hsreject.compare : the verdict for one point.
    hsreject.plot.OperatingSetDisplay : draws it.

    Examples
    --------
    >>> from hsreject import OperatingPoint, operating_set
    >>> borders = operating_set(OperatingPoint(50, 30, 5, 15), rejected_fraction=[0.4])
    >>> borders.nonrejected_accuracy.values.ravel().round(3)
    array([0.25 , 0.5  , 0.667, 0.833, 0.917])
    """
    if rejected_fraction is None:
        rejected_fraction = np.union1d(np.linspace(0, 1, 201), reference.rejected_fraction)
    fraction = inputs.fraction_values(rejected_fraction)
    accurate_kept = _borders(reference, fraction)
    accurate_rejected = _clean(reference.overall_accuracy - accurate_kept)
    shares = Counts(
        accurate_kept=accurate_kept,
        misclassified_kept=_clean(1 - fraction - accurate_kept),
        accurate_rejected=accurate_rejected,
        misclassified_rejected=_clean(fraction - accurate_rejected),
    )
    dims = (schema.BORDER, schema.REJECTED_FRACTION)
    return xr.Dataset(
        {
            name: (dims, np.where(np.isnan(accurate_kept), np.nan, values))
            for name, values in measures_of(shares).items()
        },
        coords={schema.BORDER: list(BORDERS), schema.REJECTED_FRACTION: fraction},
    )


def _borders(reference: OperatingPoint, fraction: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the accurate kept share of each border, in the order of `BORDERS`."""
    overall, accurate = reference.overall_accuracy, reference.accurate_kept / reference.n
    step = fraction - reference.rejected_fraction
    lowest = np.maximum(0.0, overall - fraction)
    highest = np.minimum(overall, 1 - fraction)
    best = np.clip(accurate - np.minimum(step, 0), lowest, highest)
    worst = np.clip(accurate - np.maximum(step, 0), lowest, highest)
    middle = accurate - step / 2
    reached = (middle > lowest - 1e-12) & (middle < highest + 1e-12)
    middle = np.where(reached, np.clip(middle, lowest, highest), np.nan)
    return np.stack([lowest, worst, middle, best, highest])


def _clean(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Set shares to 0 that are rounding: 1e-16 accurate rejected would give a huge phi."""
    return np.where(np.abs(share) < 1e-12, 0.0, share)
