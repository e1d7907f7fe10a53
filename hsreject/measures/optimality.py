r"""Relative optimality: how near an operating point is to the best and worst the reference allows.

For a reference point (A_0, r_0) and another point (A_1, r_1) the paper (section IV-B) defines

.. math:: \beta = 2 \frac{A_1 (1-r_1) - A_0 (1-r_0)}{r_1 - r_0} + 1 \quad (r_1 > r_0)

and minus that for :math:`r_1 < r_0`. Of one classifier the numerator and denominator are
differences of Q and r, so that :math:`\beta = (Q_1 - Q_0) / |r_1 - r_0|` in both cases.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures.single_curve import check_not_empty, check_single_curve

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def relative_optimality(
    accuracy_1: ArrayLike | xr.DataArray,
    fraction_1: ArrayLike | xr.DataArray,
    accuracy_0: ArrayLike | xr.DataArray,
    fraction_0: ArrayLike | xr.DataArray,
) -> Any:
    r"""Return the paper's beta of point 1 with respect to the reference point 0.

    1 means that going from the reference to point 1 decided every sample rightly (only errors newly
    rejected, only accurate samples newly kept), -1 that it decided every sample wrongly. Above 1
    point 1 outperforms the reference whatever the rejection cost, below -1 it is outperformed.
    ``beta(1|0) = -beta(0|1)``.

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

    Examples
    --------
    The worked example of the paper against no rejection at all:

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
    """Return a measure of two operating points, a DataArray when an argument is one.

    Parameters
    ----------
    kernel : callable
        Takes accuracy and rejected fraction of the point, then of the reference.
    arguments : tuple
        Those four, which broadcast against each other.
    name, meaning : str
        Name and `long_name` of a DataArray.
    """
    plain = [a if isinstance(a, xr.DataArray) else np.asarray(a, np.float64) for a in arguments]
    try:
        values = xr.apply_ufunc(kernel, *plain, dask="parallelized")
    except ValueError as error:  # of xarray and of NumPy, when shapes or coordinates differ
        names = ("accuracy_1", "fraction_1", "accuracy_0", "fraction_0")
        shapes = ", ".join(f"{n} {a.shape}" for n, a in zip(names, plain, strict=True))
        raise InputError(
            f"{name} goes point by point, but the points of the two do not match (got {shapes}). "
            "Give as many reference points as points, or one; for all pairs of DataArrays rename "
            f"the dimension: .rename({schema.OPERATING_POINT}='{schema.REFERENCE_POINT}')."
        ) from error
    if not isinstance(values, xr.DataArray):
        return float(values) if values.ndim == 0 else values
    values.attrs = {"long_name": meaning}  # those of the accuracy came along
    return values.rename(name)


def relative_optimality_pairs(curve: xr.Dataset, *, n_points: int | None = None) -> xr.DataArray:
    """Return beta of every point of a curve with respect to every other (paper, figures 5 and 8).

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

    Examples
    --------
    >>> from hsreject import rejection_curve
    >>> curve = rejection_curve([True, True, False], [0.9, 0.8, 0.1])
    >>> relative_optimality_pairs(curve).values[1]
    array([1., 0., 1., 1.])
    """
    check_not_empty(curve, needed_by="relative_optimality_pairs")
    index = np.arange(curve.sizes[schema.OPERATING_POINT])
    if n_points is not None:
        check_single_curve(curve, needed_by="relative_optimality_pairs with n_points")
        index = nearest_points(curve["rejected_fraction"].values, n_points)
    fraction = curve["rejected_fraction"].values[index]
    kept = curve["accurate_kept"].values[index]
    rejected = (
        curve["accurate_rejected"].values[index] + curve["misclassified_rejected"].values[index]
    )
    n = kept + curve["misclassified_kept"].values[index] + rejected
    if (n != n[0]).any():  # points of different samples: compare shares
        kept, rejected = kept / n, rejected / n
    beta = np.empty((index.size, index.size))
    for row, (own_kept, own_rejected) in zip(beta, zip(kept, rejected, strict=True), strict=True):
        step = own_rejected - rejected
        np.copyto(row, _beta(own_kept - kept, step))
    return xr.DataArray(
        beta,
        dims=(schema.OPERATING_POINT, schema.REFERENCE_POINT),
        coords={
            "rejected_fraction": (schema.OPERATING_POINT, fraction),
            "reference_fraction": (schema.REFERENCE_POINT, fraction),
        },
        name="relative_optimality",
    )


def nearest_points(fraction: NDArray[np.float64], n_points: int) -> NDArray[np.intp]:
    """Return the points of an ascending `fraction` nearest to equally spaced fractions."""
    if n_points < 2:
        raise InputError(f"n_points must be at least 2, for the two ends (got {n_points}).")
    wanted = np.linspace(fraction[0], fraction[-1], n_points)
    above = np.clip(np.searchsorted(fraction, wanted), 1, max(fraction.size - 1, 1))
    above = np.minimum(above, fraction.size - 1)
    below = np.maximum(above - 1, 0)
    nearer_below = wanted - fraction[below] <= fraction[above] - wanted
    return np.unique(np.where(nearer_below, below, above))


def kept_accurate_share(accuracy: Any, fraction: Any) -> Any:
    """Return A (1 - r), the accurate kept samples per sample: 0 where everything is rejected."""
    return np.where(np.equal(fraction, 1), 0.0, np.multiply(accuracy, np.subtract(1, fraction)))


def _relative_optimality(accuracy_1: Any, fraction_1: Any, accuracy_0: Any, fraction_0: Any) -> Any:
    share = kept_accurate_share(accuracy_1, fraction_1)
    gain = share - kept_accurate_share(accuracy_0, fraction_0)
    return _beta(gain, np.subtract(fraction_1, fraction_0))


def _beta(gain: Any, step: Any) -> Any:
    """Return beta of a change in accurate kept and in rejected samples, both in one unit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        beta = (2 * gain + step) / np.abs(step)
    return np.where((step == 0) & (gain == 0), 0.0, beta)
