"""One operating point: what a classifier with rejection did to a set of samples."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures import counts, inputs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class OperatingPoint:
    r"""The four counts of one operating point, with every measure of the paper as an attribute.

    :mod:`hsreject.measures.counts` lists the definitions and what they give in degenerate cases.
    Counts are integers, or floats when the samples were weighted.

    Read as a binary decision about each sample (paper, section IV-D), the measures have other
    names: Q is the `accuracy` of the decision, A the `precision` of "kept" as a sign of "accurate",
    :math:`\phi` the `positive_likelihood_ratio` of "rejected" as a sign of "misclassified". The
    paper changes the positive class between the last two; with "rejected" as the positive class
    throughout, A would be called the negative predictive value.

    Parameters
    ----------
    accurate_kept, misclassified_kept, accurate_rejected, misclassified_rejected : int or float
        Numbers (or weights) of samples; not negative, not all 0.

    Examples
    --------
    The worked example of the paper's section IV:

    >>> point = OperatingPoint(50, 30, 5, 15)
    >>> point.rejected_fraction, point.nonrejected_accuracy, point.classification_quality
    (0.2, 0.625, 0.65)
    >>> round(point.rejection_quality, 2), point.cost(0.5)
    (3.67, 0.4)
    """

    accurate_kept: float
    misclassified_kept: float
    accurate_rejected: float
    misclassified_rejected: float

    def __post_init__(self) -> None:
        values = astuple(self)
        if not all(math.isfinite(value) and value >= 0 for value in values) or not any(values):
            raise InputError(
                f"The counts of an operating point must be finite, not negative and not all 0 "
                f"(got {', '.join(f'{value:g}' for value in values)})."
            )

    @classmethod
    def from_measures(
        cls,
        *,
        nonrejected_accuracy: float,
        classification_quality: float,
        rejected_fraction: float,
        n: float,
    ) -> OperatingPoint:
        """Return the operating point that (A, Q, r) and the number of samples describe.

        With a = A (1 - r) the counts are (paper, theorem 2)::

            AN = n a        MN = n (1 - r - a)
            AR = n (r - Q + a)        MR = n (Q - a)

        The last two rows differ from the printed matrix, whose counts do not even add up to n.
        Counts that are whole numbers up to rounding become integers; measures that were rounded
        for print give fractional counts.

        Parameters
        ----------
        nonrejected_accuracy : float
            A; not used (and may be NaN) when everything is rejected.
        classification_quality, rejected_fraction : float
            Q and r, both in [0, 1].
        n : float
            Number of samples.

        Examples
        --------
        >>> OperatingPoint.from_measures(nonrejected_accuracy=0.625, classification_quality=0.65,
        ...                              rejected_fraction=0.2, n=100)
        OperatingPoint(accurate_kept=50, misclassified_kept=30, accurate_rejected=5,
                       misclassified_rejected=15)
        """
        r, quality = rejected_fraction, classification_quality
        kept_share = 0.0 if r == 1 else nonrejected_accuracy * (1 - r)
        shares = (kept_share, 1 - r - kept_share, r - quality + kept_share, quality - kept_share)
        tolerance = 1e-9  # far above the rounding of four float64 operations, far below 1 / n
        if not n > 0 or not all(share >= -tolerance for share in shares):
            raise InputError(
                f"No operating point of {n:g} samples has nonrejected accuracy "
                f"{nonrejected_accuracy:g}, classification quality {quality:g} and rejected "
                f"fraction {r:g}: the shares of the four counts would be "
                f"{', '.join(f'{share:.3g}' for share in shares)}."
            )
        return cls(*(_whole(n * max(share, 0.0), within=n * tolerance) for share in shares))

    @classmethod
    def from_curve(cls, curve: xr.Dataset, index: int) -> OperatingPoint:
        """Return point number `index` of a curve of :func:`hsreject.rejection_curve`."""
        row = curve.isel({schema.OPERATING_POINT: index})
        return cls(
            row["accurate_kept"].item(),
            row["misclassified_kept"].item(),
            row["accurate_rejected"].item(),
            row["misclassified_rejected"].item(),
        )

    @property
    def _counts(self) -> counts.Counts:
        return counts.Counts(*astuple(self))

    @property
    def kept(self) -> float:
        """Number of samples kept."""
        return self.accurate_kept + self.misclassified_kept

    @property
    def rejected(self) -> float:
        """Number of samples rejected."""
        return self.accurate_rejected + self.misclassified_rejected

    @property
    def accurate(self) -> float:
        """Number of accurate samples, kept or rejected."""
        return self.accurate_kept + self.accurate_rejected

    @property
    def misclassified(self) -> float:
        """Number of misclassified samples, kept or rejected."""
        return self.misclassified_kept + self.misclassified_rejected

    @property
    def n(self) -> float:
        """Number of samples."""
        return self.kept + self.rejected

    @property
    def rejected_fraction(self) -> float:
        """The share of samples that are rejected, r."""
        return float(counts.rejected_fraction(self._counts))

    @property
    def nonrejected_accuracy(self) -> float:
        """The share of accurate samples among those kept, A."""
        return float(counts.nonrejected_accuracy(self._counts))

    @property
    def classification_quality(self) -> float:
        """The share of right decisions, Q: accurate and kept, or misclassified and rejected."""
        return float(counts.classification_quality(self._counts))

    @property
    def rejection_quality(self) -> float:
        """The odds of an error among the rejected over the odds among all samples, phi."""
        return float(counts.rejection_quality(self._counts))

    @property
    def overall_accuracy(self) -> float:
        """The accuracy of the classifier when nothing is rejected, A(0)."""
        return self.accurate / self.n

    @property
    def accuracy(self) -> float:
        """Q, read as the accuracy of the decision to keep or reject."""
        return self.classification_quality

    @property
    def precision(self) -> float:
        """A, read as the precision of "kept" as a sign of "accurate"."""
        return self.nonrejected_accuracy

    @property
    def positive_likelihood_ratio(self) -> float:
        """Phi, read as the likelihood ratio of "rejected" as a sign of "misclassified"."""
        return self.rejection_quality

    def cost(self, rejection_cost: ArrayLike) -> Any:
        """Return the mean cost of a sample: 0 accurate, 1 error, `rejection_cost` rejected.

        Parameters
        ----------
        rejection_cost : float or array of float
            The paper's rho, in [0, 1].

        Returns
        -------
        float or ndarray
            ``(1 - r) (1 - A) + rho r``, of the shape of `rejection_cost`.
        """
        rho = inputs.cost_values(rejection_cost)
        value = counts.cost(self._counts, rho)
        return float(value) if rho.ndim == 0 else value


def operating_point(
    correct: ArrayLike | xr.DataArray,
    rejected: ArrayLike | xr.DataArray,
    *,
    weights: ArrayLike | xr.DataArray | None = None,
) -> OperatingPoint:
    """Return the operating point of one rejection of classified samples.

    Parameters
    ----------
    correct : array of bool, any shape
        The paper's accuracy vector a: whether each sample was classified accurately.
    rejected : array of bool, same shape
        The paper's rejection vector r. Pixels without data or without reference must be left out
        of both; :func:`hsreject.evaluation_samples` does that for maps.
    weights : array of float, same shape, optional
        What each sample stands for (area, inverse sampling probability); 1 when not given.

    Returns
    -------
    OperatingPoint
        The four counts, with all measures as attributes.

    Examples
    --------
    >>> point = operating_point([True, True, False, False], [False, True, True, False])
    >>> point.rejected_fraction, point.nonrejected_accuracy, point.rejection_quality
    (0.5, 0.5, 1.0)
    """
    arrays = {"correct": correct, "rejected": rejected}
    if weights is not None:
        arrays["weights"] = weights
    accurate, gone, *weight = inputs.same_layout(arrays)
    inputs.correct_values(accurate)
    inputs.rejected_values(gone)
    groups = (accurate & ~gone, ~accurate & ~gone, accurate & gone, ~accurate & gone)
    if not weight:
        sums = np.stack([group.sum() for group in groups])  # lazy if they are: one computation
        return OperatingPoint(*(int(count) for count in np.asarray(sums)))
    values = inputs.weight_values(np.asarray(weight[0]))
    return OperatingPoint(*(_weight_of(values, np.asarray(group).ravel()) for group in groups))


def _weight_of(weights: NDArray[Any], group: NDArray[np.bool_]) -> float:
    chosen = weights[group]
    # fsum is exact, hence the same for every order of the samples
    return int(chosen.sum()) if chosen.dtype.kind == "i" else math.fsum(chosen)


def _whole(value: float, *, within: float) -> float:
    nearest = round(value)
    return nearest if abs(value - nearest) <= min(max(within, 1e-9), 1e-3) else value
