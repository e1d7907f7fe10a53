"""Uncertainty: intervals for shares of samples that err together, bootstrap bands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.curve import tie_bounds
from hsreject.measures.point import MEASURES, Counts, measures_of
from hsreject.registry import check_count

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

_USUAL_SIDE = 16  # pixels: about as far as errors are alike where fields are of that size
_FEWEST_BLOCKS = 8  # along the longer side of a small map


@dataclass(frozen=True, eq=False)
class Clusters:
    r"""Samples in blocks, or polygons, whose errors are alike, and the intervals that follow.

    A share A of n samples has the interval of Wilson (1927), in which n' is the effective number of
    samples and c is the quantile of Student's t with one degree of freedom less than there are
    blocks:

    .. math:: \frac{A + c^2/2n' \pm c \sqrt{A (1 - A)/n' + c^2/4n'^2}}{1 + c^2/n'}, \qquad
        n' = \frac{n}{1 + \rho (\sum_b m_b^2 / n - 1)}

    With sample weights w, n and :math:`m_b` are their sums, and :math:`\sum_i w_i^2 / n` stands in
    place of the two 1: weights of any unit give the same interval.

    Block b holds :math:`m_b` of the n samples. The correlation :math:`\rho` of the errors within a
    block (Kish 1965, section 5.4) is estimated once, from all samples: it makes the variance of the
    overall accuracy that of a cluster sample, :math:`\frac{B}{B - 1} \sum_b (a_b - A m_b)^2 / n^2`
    with :math:`a_b` right ones in block b. So it also works for shares without a single error, all
    of whose resamples would be equal. Without any error, blocks count as single samples (rho = 1).
    Wilson's interval with an effective number of samples compares well with others for clustered
    samples (Franco et al. 2019, doi:10.1093/jssam/smy019).

    Parameters
    ----------
    block : ndarray of int, shape (n,)
        The block of each sample, numbered from 0.
    correlation : float
        In [0, 1]: 0 if errors in a block are independent, 1 if a block is all right or all wrong.
    critical : float
        The quantile c; NaN for a single block, which says nothing about uncertainty.
    weight : ndarray, shape (n,), optional
        What each sample stands for.

    Examples
    --------
    >>> from hsreject.measures.uncertainty import Clusters
    >>> import numpy as np
    >>> block = np.repeat(np.arange(20), 50)
    >>> correct = block % 5 > 0  # whole blocks are wrong: 1000 samples are worth 20
    >>> low, high = Clusters.of(correct, block).interval(correct, np.ones(1000, dtype=bool))
    >>> round(low, 2), round(high, 2)
    (0.57, 0.92)
    """

    block: NDArray[np.intp]
    correlation: float
    critical: float
    weight: NDArray[Any] | None = None

    @classmethod
    def of(
        cls,
        correct: NDArray[np.bool_],
        block: NDArray[np.integer],
        weight: NDArray[Any] | None = None,
    ) -> Clusters:
        """Form the clusters of samples, whose `block` may have any numbers."""
        place = np.unique(block, return_inverse=True)[1].ravel().astype(np.intp)
        amount = np.ones(correct.size) if weight is None else np.asarray(weight, dtype=float)
        sizes = np.bincount(place, amount)
        n, n_blocks = amount.sum(), sizes.size
        accuracy = float(amount @ correct) / n
        if n_blocks == 1:
            return cls(place, 1.0, np.nan, weight)
        # The effect is the variance of the accuracy among blocks over that of as many independent
        # samples. Kish has 1 + rho (mean_size - 1) for it, which is solved for rho. Where all
        # blocks hold one sample rho does not matter, as it is multiplied by 0 wherever it is used.
        mean_size, alone = (sizes**2).sum() / n, (amount**2).sum() / n
        correlation = 1.0
        if 0 < accuracy < 1:
            residual = np.bincount(place, weights=amount * correct) - accuracy * sizes
            effect = n_blocks / (n_blocks - 1) * (residual**2).sum() / n
            effect /= accuracy * (1 - accuracy)
            together = max(mean_size - alone, 1e-9 * alone)
            correlation = float(np.clip((effect - alone) / together, 0, 1))
        return cls(place, correlation, float(stdtrit(n_blocks - 1, 0.975)), weight)

    @property
    def n_blocks(self) -> int:
        """How many blocks there are, for the report."""
        return int(self.block.max()) + 1

    def sum_of_squares(self, subset: NDArray[np.bool_]) -> float:
        """Sum the squared number, or weight, of chosen samples over the blocks."""
        if self.weight is None:
            return int((np.bincount(self.block[subset]) ** 2).sum())
        return float((np.bincount(self.block[subset], self.weight[subset]) ** 2).sum())

    def sums_of_squares_above(
        self, confidence: NDArray[Any], threshold: NDArray[Any]
    ) -> NDArray[Any]:
        """Compute :meth:`sum_of_squares` of the samples that each threshold keeps, all at once.

        A sample of weight w adds w (2 s + w), with s the weight of more confident ones in its
        block.
        """
        # (s + w)^2 is s^2 plus that. So each sample gets its number once, and a sum over the kept
        # ones gives all squares, for every threshold by one cumulative sum.
        weight = np.ones(confidence.size, np.int64) if self.weight is None else self.weight
        order = np.lexsort((-confidence, self.block))
        above = np.cumsum(weight[order]) - weight[order]
        first = np.append(0, np.cumsum(np.bincount(self.block)))[:-1]
        above = above - above[first][self.block[order]]
        added = np.empty(order.size, dtype=weight.dtype)
        added[order] = weight[order] * (2 * above + weight[order])
        return _kept_above(added, confidence, threshold)

    def singles_above(self, confidence: NDArray[Any], threshold: NDArray[Any]) -> Any:
        """Sum the squared weights of the samples that each threshold keeps."""
        if self.weight is None:
            return None
        return _kept_above(self.weight**2, confidence, threshold)

    def interval(self, part: NDArray[np.bool_], whole: NDArray[np.bool_]) -> tuple[float, float]:
        """Compute the 95 % interval of the share of `whole` samples that are `part` of it, too."""
        weight = self.weight
        right, n, singles = np.count_nonzero(part & whole), np.count_nonzero(whole), None
        if weight is not None:
            right, n = weight[part & whole].sum(), weight[whole].sum()
            singles = float((weight[whole] ** 2).sum())
        low, high = self.intervals(right, n, self.sum_of_squares(whole), singles)
        return float(low), float(high)

    def intervals(
        self, right: Any, n: Any, sum_of_squares: Any, singles: Any = None
    ) -> tuple[Any, Any]:
        """Compute the intervals of shares, given their counts and :meth:`sum_of_squares`.

        `singles` is the sum of squared weights, n itself where there are none. Of nothing they are
        NaN. `explorer.js` evaluates the same formula.
        """
        n = np.where(np.equal(n, 0), np.nan, n)
        alone = 1.0 if singles is None else singles / n
        n_effective = n / (alone + self.correlation * (sum_of_squares / n - alone))
        share, z2_over_n = right / n, self.critical**2 / n_effective
        middle = share + z2_over_n / 2
        half = np.sqrt(z2_over_n * (share * (1 - share) + z2_over_n / 4))
        return (middle - half) / (1 + z2_over_n), (middle + half) / (1 + z2_over_n)


def _kept_above(
    number: NDArray[Any], confidence: NDArray[Any], threshold: NDArray[Any]
) -> NDArray[Any]:
    """Sum a number of each sample over those that each threshold keeps."""
    ascending = np.argsort(confidence, kind="stable")
    # added up from the kept end: weights are no whole numbers, and few samples must not get lost
    kept = np.append(np.cumsum(number[ascending][::-1])[::-1], 0)
    return np.asarray(kept[np.searchsorted(confidence[ascending], threshold)])


def square_blocks(
    row: NDArray[np.integer], column: NDArray[np.integer], side: float
) -> NDArray[np.intp]:
    """Find the square block that each pixel lies in, numbered in any way."""
    down, across = (np.asarray(axis // side, dtype=np.intp) for axis in (row, column))
    return np.asarray(down * (across.max() + 1) + across)


def usual_side(shape: tuple[int, ...]) -> int:
    """Choose the side of blocks, in pixels: 16, and on small maps an eighth of the longer side."""
    return min(_USUAL_SIDE, max(max(shape) // _FEWEST_BLOCKS, 1))


def bootstrap_difference(  # noqa: PLR0913 (two rejectors, and how to draw)
    correct_1: ArrayLike | xr.DataArray,
    confidence_1: ArrayLike | xr.DataArray,
    correct_0: ArrayLike | xr.DataArray,
    confidence_0: ArrayLike | xr.DataArray,
    *,
    rejected_fraction: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
) -> xr.Dataset:
    """Estimate how much rejector 1 is above rejector 0 on the same pixels, with bootstrap bands.

    Both are measured on the same resamples, so that what they have in common cancels: the band of
    the difference is usually much narrower than two bands would suggest. A band that leaves out 0
    tells them apart at that fraction, with 95 % confidence. Where a fraction falls among tied
    confidences the counts are interpolated as in :func:`hsreject.accuracy_at`.

    Parameters
    ----------
    correct_1, confidence_1, correct_0, confidence_0 : arrays, same shape
        As in :func:`hsreject.rejection_curve`, the same pixels in the same order. Give the same
        `correct` twice for two rejectors of one classifier. For a rejector that only gives a mask,
        use ``~rejected`` as its confidence and compare at the fraction that it rejects.
    rejected_fraction : sequence of float, optional
        Where to compare, in [0, 1]; 0, 0.01, ..., 1 when not given.
    groups : array of int, same shape, optional
        The group of each sample, such as its polygon or block: whole groups are drawn. Errors of
        neighbouring pixels come in clusters, and bands of single pixels are then too narrow.
    sample_weight : array of float, same shape, optional
        What each sample stands for, as in :func:`hsreject.rejection_curve`; 1 when not given. Its
        share in a resample is its weight times how often it was drawn.
    n_resamples : int
        Number of resamples. The bands are their 2.5th and 97.5th percentile.
    seed : int
        Decides every draw. The order of the samples does not matter.

    Returns
    -------
    Dataset over `rejected_fraction`
        Differences (1 minus 0) of `nonrejected_accuracy`, `classification_quality` and
        `rejection_quality`, each also with `_lower` and `_upper`. Undefined differences, such as
        those of two infinite rejection qualities, are left out of the percentiles.

    See Also
    --------
    hsreject.compare : one verdict without bands.
    hsreject.evaluate : intervals for the points of one curve.

    Examples
    --------
    >>> from hsreject import bootstrap_difference
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> good, useless = rng.random(500), rng.random(500)
    >>> correct = rng.random(500) < good
    >>> gain = bootstrap_difference(correct, good, correct, useless, rejected_fraction=[0.5])
    >>> (gain.nonrejected_accuracy_lower > 0).item()
    True
    """
    check_count("n_resamples", n_resamples, least=1)
    plain = inputs.same_layout(
        {
            "correct_1": correct_1,
            "confidence_1": confidence_1,
            "correct_0": correct_0,
            "confidence_0": confidence_0,
            "groups": groups,
            "sample_weight": sample_weight,
        }
    )
    rejectors = [
        (
            inputs.correct_values(plain["correct" + one], name="correct" + one),
            inputs.confidence_values(plain["confidence" + one], name="confidence" + one),
        )
        for one in ("_1", "_0")
    ]
    group = None if groups is None else plain["groups"].ravel()
    weight = np.ones(rejectors[0][0].size, dtype=np.int64)
    if sample_weight is not None:
        weight = inputs.weight_values(plain["sample_weight"])
        counts = weight > 0  # the others are as if they were not there
        weight = weight[counts]
        rejectors = [(correct[counts], rank[counts]) for correct, rank in rejectors]
        group = None if group is None else group[counts]
    unit = np.arange(weight.size)
    if group is not None:
        unit = np.unique(group, return_inverse=True)[1].ravel()
    n_units = int(unit.max()) + 1
    if n_units == 1:
        raise InputError(
            "All samples are in one group, which leaves nothing to resample. Make groups smaller."
        )
    # draws refer to an order that does not depend on the one in which the samples were given
    keys = [weight, *(key for samples in rejectors for key in samples)]
    order = np.lexsort(keys if groups is None else [unit, *keys])
    weight = weight[order]
    unit = unit if groups is None else unit[order]
    if rejected_fraction is None:
        rejected_fraction = np.linspace(0, 1, 101)
    fraction = inputs.fraction_values(rejected_fraction)
    first, second = (
        _measures_of_resamples(correct[order], confidence[order])
        for correct, confidence in rejectors
    )

    def difference(times: NDArray[Any]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):  # infinite rejection qualities of both
            return first(times, fraction) - second(times, fraction)

    resamples = np.empty((n_resamples, len(MEASURES), fraction.size))
    for resample, stream in zip(
        resamples, np.random.SeedSequence(seed).spawn(n_resamples), strict=True
    ):
        drawn = np.random.default_rng(stream).integers(n_units, size=n_units)
        resample[:] = difference(np.bincount(drawn, minlength=n_units)[unit] * weight)
    resamples.sort(axis=0)  # NaN last
    values = {
        "": difference(weight),
        "_lower": _percentile(resamples, 0.025),
        "_upper": _percentile(resamples, 0.975),
    }
    return xr.Dataset(
        {
            name + ending: (schema.REJECTED_FRACTION, values[ending][place])
            for place, name in enumerate(MEASURES)
            for ending in values
        },
        coords={schema.REJECTED_FRACTION: fraction},
    )


def _measures_of_resamples(
    correct: NDArray[np.bool_], confidence: NDArray[np.floating]
) -> Callable[[NDArray[Any], NDArray[np.float64]], NDArray[np.float64]]:
    """Make the function (times, fractions) -> measures (measure, fraction).

    The samples are sorted once. A resample is how many times each of them occurs, so that its whole
    curve costs two running sums.
    """
    order = np.argsort(confidence, kind="stable")
    accurate = correct[order]
    ends = tie_bounds(confidence[order])[1:] - 1  # the last sample of each tie

    def measures(times: NDArray[Any], fraction: NDArray[np.float64]) -> NDArray[np.float64]:
        below = np.append(0, np.cumsum(times[order])[ends])
        accurate_below = np.append(0, np.cumsum(times[order] * accurate)[ends])
        n, n_accurate = below[-1], accurate_below[-1]
        rejected = fraction * n
        accurate_rejected = np.interp(rejected, below, accurate_below)
        misclassified_rejected = np.maximum(rejected - accurate_rejected, 0)
        counts = Counts(
            n_accurate - accurate_rejected,
            np.maximum(n - n_accurate - misclassified_rejected, 0),
            accurate_rejected,
            misclassified_rejected,
        )
        return np.stack(list(measures_of(counts).values()))

    return measures


def _percentile(ascending: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Compute a percentile over axis 0 without the NaN at the end.

    The nearest rank, not an interpolation, which would make NaN of infinite values.
    """
    valid = np.count_nonzero(~np.isnan(ascending), axis=0)
    rank = np.clip(np.ceil(share * valid).astype(np.intp) - 1, 0, None)
    return np.asarray(np.take_along_axis(ascending, rank[None], axis=0)[0])
