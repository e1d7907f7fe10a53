r"""Operating points: the four counts, the measures that follow from them, and their one table.

The paper splits the samples into accurate and misclassified, kept and rejected. With the numbers
of accurate kept AN, misclassified kept MN, accurate rejected AR and misclassified rejected MR, and
:math:`n = AN + MN + AR + MR`:

rejected fraction
    :math:`r = (AR + MR) / n`
nonrejected accuracy
    :math:`A = AN / (AN + MN)`, NaN where everything is rejected
classification quality
    :math:`Q = (AN + MR) / n`
rejection quality
    :math:`\varphi = (MR / AR) / ((MN + MR) / (AN + AR))`
cost
    :math:`L = (MN + \rho (AR + MR)) / n`

:math:`\varphi` is 1 when nothing is rejected; else NaN when the classifier makes no error or only
errors, since the odds among all samples are then 0 or infinite and there is nothing to compare
with; else infinity when nothing accurate is rejected.

Three lines differ from the paper's text: the denominator of A is the number kept, k (the text of
section III-A says n - k); :math:`\varphi` needs its convention when no *accurate* sample is
rejected (the text of section III-C says misclassified); and of a classifier that is all right or
all wrong it is NaN (the text has infinity where anything is rejected).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from numbers import Real
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject import schema
from hsreject.errors import ConfigError, InputError
from hsreject.measures import inputs
from hsreject.notebook import Shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

NumberT = TypeVar("NumberT", float, NDArray[Any])


@dataclass(frozen=True)
class Counts(Generic[NumberT]):
    """The four counts and all that follows from them: numbers, or arrays that broadcast.

    Shares and weights of samples work as counts, too.
    """

    accurate_kept: NumberT
    misclassified_kept: NumberT
    accurate_rejected: NumberT
    misclassified_rejected: NumberT

    @property
    def kept(self) -> NumberT:
        """Number of samples kept."""
        return self.accurate_kept + self.misclassified_kept

    @property
    def rejected(self) -> NumberT:
        """Number of samples rejected."""
        return self.accurate_rejected + self.misclassified_rejected

    @property
    def accurate(self) -> NumberT:
        """Number of accurate samples, kept or rejected."""
        return self.accurate_kept + self.accurate_rejected

    @property
    def misclassified(self) -> NumberT:
        """Number of misclassified samples, kept or rejected."""
        return self.misclassified_kept + self.misclassified_rejected

    @property
    def n(self) -> NumberT:
        """Number of samples."""
        return self.kept + self.rejected

    @property
    def overall_accuracy(self) -> NumberT:
        """The accuracy of the classifier when nothing is rejected, A(0)."""
        return share(self.accurate, self.n)

    @property
    def rejected_fraction(self) -> NumberT:
        """The share of samples that are rejected, r."""
        return share(self.rejected, self.n)

    @property
    def nonrejected_accuracy(self) -> NumberT:
        """The share of accurate samples among those kept, A."""
        return share(self.accurate_kept, self.kept)

    @property
    def classification_quality(self) -> NumberT:
        """The share of right decisions, Q: accurate and kept, or misclassified and rejected."""
        return share(self.accurate_kept + self.misclassified_rejected, self.n)

    @property
    def rejection_quality(self) -> NumberT:
        """The odds of an error among the rejected over the odds among all samples, phi."""
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.true_divide(self.misclassified_rejected, self.accurate_rejected)
            quality = odds / np.true_divide(self.misclassified, self.accurate)
        return _plain(np.where(np.equal(self.rejected, 0), 1.0, quality))

    def cost(self, rejection_cost: Any) -> Any:
        """Compute the mean cost per sample: 1 per error kept, `rejection_cost` per rejection."""
        return _plain((self.misclassified_kept + rejection_cost * self.rejected) / self.n)


class Measure(NamedTuple):
    """What pictures and Datasets call a measure; its formula is the property of `Counts`."""

    label: str  # of an axis
    meaning: str  # the `long_name` of a column


COUNTS = tuple(count.name for count in fields(Counts))
FRACTION_AXIS = Measure("rejected fraction $r$", "share of samples rejected (r)")
# With a property of `Counts` and a line here, a measure is on operating points, curves, bootstrap
# bands, operating sets and pictures.
MEASURES = {
    "nonrejected_accuracy": Measure(
        "nonrejected accuracy $A$", "share of accurate samples among the kept (A)"
    ),
    "classification_quality": Measure("classification quality $Q$", "share of right decisions (Q)"),
    "rejection_quality": Measure(
        r"rejection quality $\varphi$",
        "odds of an error among the rejected over those among all (phi)",
    ),
}


def add_measure(label: str, meaning: str) -> Callable[[Callable[[Counts[Any]], Any]], None]:
    """Decorate a function of the four counts to make it a measure, by its name.

    Operating points have it as an attribute, curves, bands and operating sets as a column, tables
    of operating points list it, and pictures draw it. It must work for numbers and for arrays;
    `share` is NaN where the whole is 0. A plugin that defines one adds it again whenever it is
    loaded.

    Parameters
    ----------
    label : str
        What an axis is called.
    meaning : str
        What a column means.

    See Also
    --------
    hsreject.load_plugins : loads a file that adds measures.

    Examples
    --------
    >>> import hsreject as hr
    >>> from hsreject.measures.point import MEASURES, share
    >>> @hr.add_measure("caught errors", "share of the errors that are rejected")
    ... def caught_errors(counts):
    ...     return share(counts.misclassified_rejected, counts.misclassified)
    >>> hr.OperatingPoint(50, 30, 5, 15).caught_errors
    0.3333333333333333
    >>> del MEASURES["caught_errors"]  # only here: other examples list the columns
    """

    def add(function: Callable[[Counts[Any]], Any]) -> None:
        name = function.__name__
        if name in (*COUNTS, *dir(Counts)) and name not in _ADDED:
            raise ConfigError(f"There is already a measure or a count '{name}'. Choose another.")
        _ADDED.add(name)
        setattr(Counts, name, property(function))
        MEASURES[name] = Measure(label, meaning)

    return add


_ADDED: set[str] = set()  # which of the measures are not of this file


def added_measures() -> dict[str, Measure]:
    """List the measures that plugins have added, by name."""
    return {name: measure for name, measure in MEASURES.items() if name in _ADDED}


def measures_of(counts: Counts[Any]) -> dict[str, Any]:
    """Compute every measure in `MEASURES` by name."""
    return {name: getattr(counts, name) for name in MEASURES}


def share(part: Any, whole: Any) -> Any:
    """Divide part by whole, NaN where the whole is 0."""
    with np.errstate(invalid="ignore"):
        return _plain(np.true_divide(part, whole))


def _plain(value: Any) -> Any:
    """Make a single number a Python float, and leave arrays as they are."""
    return float(value) if np.ndim(value) == 0 else value


@dataclass(frozen=True)
class OperatingPoint(Shown, Counts[float]):
    r"""The four counts of one operating point, with every measure of the paper as an attribute.

    :mod:`hsreject.measures.point` lists the definitions and what they give in degenerate cases.
    Counts are integers, or floats when the samples were weighted.

    Read as a binary decision about each sample (paper, section IV-D), Q is the accuracy of the
    decision, A the precision of "kept" as a sign of "accurate", and :math:`\phi` the positive
    likelihood ratio of "rejected" as a sign of "misclassified".

    Parameters
    ----------
    accurate_kept, misclassified_kept, accurate_rejected, misclassified_rejected : int or float
        Numbers (or weights) of samples; not negative, not all 0.
    threshold : float
        Confidences below it are rejected; NaN where no threshold drives the rejection. Comparing
        points ignores it, and `index`.
    index : int
        Place in the curve that the point was taken from, -1 if from none:
        ``curve.isel(operating_point=point.index)`` has all other columns of the point.

    See Also
    --------
    hsreject.operating_point : counts it from samples.
    hsreject.rejection_curve : all points of a confidence.
    hsreject.compare : compares two of them.

    Examples
    --------
    The worked example of the paper's section IV:

    >>> from hsreject import OperatingPoint
    >>> point = OperatingPoint(50, 30, 5, 15)
    >>> point.rejected_fraction, point.nonrejected_accuracy, point.classification_quality
    (0.2, 0.625, 0.65)
    >>> round(point.rejection_quality, 2), point.cost(0.5)
    (3.67, 0.4)
    """

    threshold: float = field(default=math.nan, kw_only=True, compare=False, repr=False)
    index: int = field(default=-1, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, value in zip(COUNTS, self.counts, strict=True):
            number = value.item() if np.ndim(value) == 0 and hasattr(value, "item") else value
            if isinstance(number, bool) or not isinstance(number, Real):
                raise InputError(f"{name} must be a number of samples (got {value!r:.60}).")
            object.__setattr__(self, name, number)
        values = self.counts
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
        """Make the operating point that (A, Q, r) and the number of samples describe.

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
        >>> from hsreject import OperatingPoint
        >>> OperatingPoint.from_measures(nonrejected_accuracy=0.625, classification_quality=0.65,
        ...                              rejected_fraction=0.2, n=100)
        OperatingPoint(accurate_kept=50, misclassified_kept=30, accurate_rejected=5,
                       misclassified_rejected=15)
        """
        r, quality = rejected_fraction, classification_quality
        kept_share = 0.0 if r == 1 else nonrejected_accuracy * (1 - r)
        shares = (kept_share, 1 - r - kept_share, r - quality + kept_share, quality - kept_share)
        tolerance = 1e-9  # far above the rounding of four float64 operations, far below 1 / n
        if not n > 0 or not all(part >= -tolerance for part in shares):
            raise InputError(
                f"No operating point of {n:g} samples has nonrejected accuracy "
                f"{nonrejected_accuracy:g}, classification quality {quality:g} and rejected "
                f"fraction {r:g}: the shares of the four counts would be "
                f"{', '.join(f'{part:.3g}' for part in shares)}."
            )
        return cls(*(_whole(n * max(part, 0.0), within=n * tolerance) for part in shares))

    @classmethod
    def from_curve(cls, curve: xr.Dataset, index: int | None = None) -> OperatingPoint:
        """Read point number `index` of a curve.

        Parameters
        ----------
        curve : Dataset
            Of :func:`hsreject.rejection_curve` or :func:`hsreject.curve_of_points`; or one row of
            it, and then without `index`.
        index : int, optional
            Place of the point in the curve.

        Examples
        --------
        >>> from hsreject import OperatingPoint, rejection_curve
        >>> curve = rejection_curve([True, True, False], [0.9, 0.5, 0.1])
        >>> point = OperatingPoint.from_curve(curve, 1)
        >>> point.rejected, point.threshold
        (1, 0.5)
        """
        if not isinstance(curve, xr.Dataset) or not {*COUNTS, "threshold"} <= {*curve.variables}:
            raise InputError(
                "An operating point is a hsreject.OperatingPoint, or a row of a curve as "
                "hsreject.rejection_curve makes it, with the four counts "
                f"(got {inputs.described(curve)}). Count it with hsreject.operating_point."
            )
        row = curve if index is None else curve.isel({schema.OPERATING_POINT: index})
        counts, place = (row[name].item() for name in COUNTS), -1 if index is None else index
        return cls(*counts, threshold=row["threshold"].item(), index=place)

    def __getitem__(self, name: str) -> Any:
        """Look up an attribute by its name: a point reads like a row of a curve."""
        return getattr(self, name)

    def _facts(self) -> dict[str, str]:
        counts = dict(zip(COUNTS, self.counts, strict=True))
        measures = {"rejected_fraction": self.rejected_fraction, **measures_of(self)}
        facts = {name: f"{value:,.10g}" for name, value in counts.items()}
        facts |= {name: f"{value:.4g}" for name, value in measures.items()}
        if not math.isnan(self.threshold):
            facts["threshold"] = f"{self.threshold:.4g}"
        return {name.replace("_", " "): text for name, text in facts.items()}

    @property
    def counts(self) -> tuple[float, ...]:
        """The four counts, in the order of `COUNTS`."""
        return tuple(getattr(self, name) for name in COUNTS)

    @overload
    def cost(self, rejection_cost: float) -> float: ...
    @overload
    def cost(self, rejection_cost: ArrayLike) -> Any: ...
    def cost(self, rejection_cost: ArrayLike) -> Any:
        """Compute the mean cost per sample: 1 per error kept, `rejection_cost` per rejection.

        Parameters
        ----------
        rejection_cost : float or array of float
            The paper's rho, in [0, 1].

        Returns
        -------
        float or ndarray
            ``(1 - r) (1 - A) + rho r``, of the shape of `rejection_cost`.
        """
        return super().cost(inputs.cost_values(rejection_cost))


def operating_point(
    correct: ArrayLike | xr.DataArray,
    rejected: ArrayLike | xr.DataArray,
    *,
    sample_weight: ArrayLike | xr.DataArray | None = None,
) -> OperatingPoint:
    """Count the operating point of one rejection of classified samples.

    Parameters
    ----------
    correct : array of bool, any shape
        The paper's accuracy vector a: whether each sample was classified accurately.
    rejected : array of bool, same shape
        The paper's rejection vector r. Pixels without data or without reference must be left out
        of both; :func:`hsreject.evaluation_samples` does that for maps.
    sample_weight : array of float, same shape, optional
        What each sample stands for (area, inverse sampling probability); 1 when not given.

    Returns
    -------
    OperatingPoint
        The four counts, with all measures as attributes.

    See Also
    --------
    hsreject.OperatingPoint : what it returns.
    hsreject.rejection_curve : every threshold at once.

    Examples
    --------
    >>> from hsreject import operating_point
    >>> point = operating_point([True, True, False, False], [False, True, True, False])
    >>> point.rejected_fraction, point.nonrejected_accuracy, point.rejection_quality
    (0.5, 0.5, 1.0)
    """
    plain = inputs.same_layout(
        {"correct": correct, "rejected": rejected, "sample_weight": sample_weight}
    )
    right = inputs.correct_values(plain["correct"])
    is_rejected = inputs.rejected_values(plain["rejected"])
    groups = (
        right & ~is_rejected,
        ~right & ~is_rejected,
        right & is_rejected,
        ~right & is_rejected,
    )
    if sample_weight is None:
        return OperatingPoint(*(int(np.count_nonzero(group)) for group in groups))
    values = inputs.weight_values(plain["sample_weight"])
    return OperatingPoint(*(_weight_of(values[group]) for group in groups))


def _weight_of(weights: NDArray[Any]) -> float:
    """Sum weights; fsum is exact, hence the same for every order of the samples."""
    return int(weights.sum()) if weights.dtype.kind == "i" else math.fsum(weights)


def _whole(value: float, *, within: float) -> float:
    """Round to the nearest integer if it is near enough; else leave the value as it is."""
    nearest = round(value)
    return nearest if abs(value - nearest) <= min(max(within, 1e-9), 1e-3) else value
