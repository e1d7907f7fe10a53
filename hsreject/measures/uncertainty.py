"""How sure a measure is: intervals for shares of samples that err together, bootstrap bands.

In a bootstrap the samples are sorted once; a resample is a vector of weights on that order, so that
its whole curve costs two running sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.curve import distinct
from hsreject.measures.point import MEASURES, Counts, measures_of
from hsreject.progress import ProgressCallback, no_progress
from hsreject.registry import check_count

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_USUAL_SIDE = 16  # pixels: about as far as errors are alike where fields are of that size
_FEWEST_BLOCKS = 8  # along the longer side of a small map


@dataclass(kw_only=True, frozen=True)
class Resampling:
    """How a bootstrap draws its resamples.

    Neighbouring pixels are not independent: their errors come in clumps. Resampling single pixels
    then gives bands that are too narrow. With `groups` whole groups are drawn instead.

    Parameters
    ----------
    n_resamples : int
        Number of resamples.
    confidence_level : float
        Coverage of the bands, in (0, 1); they are percentiles of the resamples.
    seed : int
        Decides every draw. Resample i has its own stream, so the result does not depend on how many
        others there are before it, on threads or on the order of the samples.
    groups : array, or tuple of arrays, optional
        The group of each sample, such as its polygon. Several arrays make groups of the samples
        that agree in all of them: ``(row // 16, column // 16)`` are square blocks. Take at least
        the distance at which errors stop being alike.

    See Also
    --------
    hsreject.bootstrap_curve : draws with it.
    hsreject.bootstrap_difference : draws with it.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import Resampling
    >>> row, column = np.array([0, 0, 9]), np.array([0, 1, 9])
    >>> Resampling(groups=(row // 5, column // 5)).blocks(3)
    array([0, 0, 1])
    """

    n_resamples: int = 1000
    confidence_level: float = 0.95
    seed: int = 0
    groups: ArrayLike | tuple[ArrayLike, ...] | None = None

    def __post_init__(self) -> None:
        check_count("n_resamples", self.n_resamples, least=1)
        if not 0 < self.confidence_level < 1:
            raise InputError(
                "confidence_level must lie between 0 and 1, like 0.95 "
                f"(got {self.confidence_level:g})."
            )

    def blocks(self, n: int) -> NDArray[np.intp] | None:
        """Return the group of each of `n` samples, numbered from 0; None without any."""
        if self.groups is None:
            return None
        parts = self.groups if isinstance(self.groups, tuple) else (self.groups,)
        keys = [np.asarray(part).ravel() for part in parts]
        if any(key.size != n for key in keys):
            raise InputError(
                f"groups must hold one group for each of the {n} samples (got "
                f"{' and '.join(str(key.size) for key in keys)})."
            )
        group = np.unique(np.stack(keys), axis=1, return_inverse=True)[1].ravel()
        if group.max() == 0:
            raise InputError(
                "All samples are in one group, which leaves nothing to resample. Make groups "
                "smaller."
            )
        return np.asarray(group, dtype=np.intp)

    def weights(self, blocks: NDArray[np.intp] | None, n: int) -> Iterator[NDArray[Any]]:
        """Yield how often each sample occurs in each resample."""
        n_units = n if blocks is None else int(blocks.max()) + 1
        for stream in np.random.SeedSequence(self.seed).spawn(self.n_resamples):
            drawn = np.random.default_rng(stream).integers(n_units, size=n_units)
            times = np.bincount(drawn, minlength=n_units)
            yield times if blocks is None else times[blocks]


def bootstrap_curve(
    correct: ArrayLike | xr.DataArray,
    confidence: ArrayLike | xr.DataArray,
    *,
    rejected_fraction: ArrayLike | None = None,
    resampling: Resampling | None = None,
    progress: ProgressCallback = no_progress,
) -> xr.Dataset:
    """Return A, Q and phi at given rejected fractions with bootstrap confidence bands.

    Bands are percentiles of the resamples, each at its own fraction alone (pointwise). Where a
    fraction falls among tied confidences the counts are interpolated as in
    :func:`hsreject.accuracy_at`. Resamples in which a measure is undefined, such as phi when no
    error was drawn, are left out of its percentiles.

    Parameters
    ----------
    correct, confidence : arrays, same shape
        As in :func:`hsreject.rejection_curve`.
    rejected_fraction : sequence of float, optional
        Where to give the bands, in [0, 1]; 0, 0.01, ..., 1 when not given.
    resampling : Resampling, optional
        Number of resamples, level, seed, groups; ``Resampling()`` when not given.
    progress : ProgressCallback
        Called as resamples are done.

    Returns
    -------
    Dataset over `rejected_fraction`
        `nonrejected_accuracy`, `classification_quality`, `rejection_quality` of the samples, each
        also with `_lower` and `_upper`.

    See Also
    --------
    hsreject.Resampling : how it draws.
    hsreject.rejection_curve : without bands.
    hsreject.bootstrap_difference : of two rejectors.

    Examples
    --------
    >>> from hsreject import Resampling, bootstrap_curve
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(500)
    >>> bands = bootstrap_curve(rng.random(500) < confidence, confidence, rejected_fraction=[0.2],
    ...                         resampling=Resampling(n_resamples=200))
    >>> (bands.nonrejected_accuracy_lower < bands.nonrejected_accuracy).item()
    True
    """
    plain = inputs.same_layout({"correct": correct, "confidence": confidence})
    return _bootstrap([_samples(plain, "")], rejected_fraction, resampling, progress)


@dataclass(frozen=True, eq=False)
class Clumps:
    r"""Samples in blocks, or polygons, whose errors are alike, and the intervals that follow.

    A share A of n samples has the interval of Wilson (1927), in which n is what the samples are
    worth and c is the quantile of Student's t with one degree of freedom less than there are
    blocks:

    .. math:: \frac{A + c^2/2n' \pm c \sqrt{A (1 - A)/n' + c^2/4n'^2}}{1 + c^2/n'}, \qquad
        n' = \frac{n}{1 + \rho (\sum_b m_b^2 / n - 1)}

    Block b holds :math:`m_b` of the n samples. The correlation :math:`\rho` of the errors within a
    block (Kish 1965, section 5.4) is estimated once, from all samples: it makes the variance of the
    overall accuracy that of a cluster sample, :math:`\frac{B}{B - 1} \sum_b (a_b - A m_b)^2 / n^2`
    with :math:`a_b` right ones in block b. So it serves shares without a single error, too, whose
    resamples would all be alike. Without any error, blocks count as single samples (rho = 1).
    Wilson's interval with what samples are worth holds up well among those for clustered samples
    (Franco et al. 2019, doi:10.1093/jssam/smy019).

    Parameters
    ----------
    block : ndarray of int, shape (n,)
        The block of each sample, numbered from 0.
    correlation : float
        In [0, 1]: 0 if errors in a block are independent, 1 if a block is all right or all wrong.
    critical : float
        The quantile c; NaN for a single block, which cannot tell how sure anything is.

    Examples
    --------
    >>> from hsreject.measures.uncertainty import Clumps
    >>> import numpy as np
    >>> block = np.repeat(np.arange(20), 50)
    >>> correct = block % 5 > 0  # whole blocks are wrong: 1000 samples are worth 20
    >>> low, high = Clumps.of(correct, block).interval(correct, np.ones(1000, dtype=bool))
    >>> round(low, 2), round(high, 2)
    (0.57, 0.92)
    """

    block: NDArray[np.intp]
    correlation: float
    critical: float

    @classmethod
    def of(cls, correct: NDArray[np.bool_], block: NDArray[np.integer]) -> Clumps:
        """Return the clumps of samples, whose `block` may have any numbers."""
        place = np.unique(block, return_inverse=True)[1].ravel().astype(np.intp)
        sizes = np.bincount(place)
        n, n_blocks, accuracy = correct.size, sizes.size, correct.mean()
        if n_blocks == 1:
            return cls(place, 1.0, np.nan)
        # The effect is the variance of the accuracy among blocks over that of as many independent
        # samples. Kish has 1 + rho (mean_size - 1) for it, which is solved for rho. Where all
        # blocks hold one sample rho does not matter, as it is multiplied by 0 wherever it is used.
        mean_size = (sizes**2).sum() / n
        correlation = 1.0
        if 0 < accuracy < 1:
            residual = np.bincount(place, weights=correct) - accuracy * sizes
            effect = n_blocks / (n_blocks - 1) * (residual**2).sum() / n
            effect /= accuracy * (1 - accuracy)
            correlation = float(np.clip((effect - 1) / max(mean_size - 1, 1e-9), 0, 1))
        return cls(place, correlation, float(stdtrit(n_blocks - 1, 0.975)))

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return int(self.block.max()) + 1

    def squares(self, chosen: NDArray[np.bool_]) -> int:
        """Return the sum over the blocks of the squared number of chosen samples."""
        return int((np.bincount(self.block[chosen]) ** 2).sum())

    def squares_above(self, confidence: NDArray[Any], threshold: NDArray[Any]) -> NDArray[np.int64]:
        """Return :meth:`squares` of the samples that each threshold keeps, all at once.

        A sample adds twice the number of surer ones in its block, plus one.
        """
        # k^2 is the sum of the first k odd numbers. So each sample gets its odd number once, and a
        # sum over the kept ones gives all squares, for every threshold by one cumulative sum.
        order = np.lexsort((-confidence, self.block))
        first = np.append(0, np.cumsum(np.bincount(self.block)))[:-1]
        added = np.empty(order.size, dtype=np.int64)
        added[order] = 2 * (np.arange(order.size) - first[self.block[order]]) + 1
        ascending = np.argsort(confidence, kind="stable")
        below = np.append(0, np.cumsum(added[ascending]))
        return np.asarray(below[-1] - below[np.searchsorted(confidence[ascending], threshold)])

    def interval(self, part: NDArray[np.bool_], whole: NDArray[np.bool_]) -> tuple[float, float]:
        """Return the 95 % interval of the share of `whole` samples that are `part` of it, too."""
        low, high = self.intervals(
            np.count_nonzero(part & whole), np.count_nonzero(whole), self.squares(whole)
        )
        return float(low), float(high)

    def intervals(self, right: Any, n: Any, squares: Any) -> tuple[Any, Any]:
        """Return the ends of the intervals of shares, given their counts and :meth:`squares`.

        Of nothing they are NaN. `explorer.js` evaluates the same formula.
        """
        n = np.where(np.equal(n, 0), np.nan, n)
        worth = n / (1 + self.correlation * (squares / n - 1))
        share, unsure = right / n, self.critical**2 / worth
        middle = share + unsure / 2
        half = np.sqrt(unsure * (share * (1 - share) + unsure / 4))
        return (middle - half) / (1 + unsure), (middle + half) / (1 + unsure)


def square_blocks(
    row: NDArray[np.integer], column: NDArray[np.integer], side: float
) -> NDArray[np.intp]:
    """Return the square block that each pixel lies in, numbered in any way."""
    down, across = (np.asarray(axis // side, dtype=np.intp) for axis in (row, column))
    return np.asarray(down * (across.max() + 1) + across)


def usual_side(shape: tuple[int, ...]) -> int:
    """Return the side of blocks, in pixels: 16, and on small maps an eighth of the longer side."""
    return min(_USUAL_SIDE, max(max(shape) // _FEWEST_BLOCKS, 1))


def bootstrap_difference(
    correct_1: ArrayLike | xr.DataArray,
    confidence_1: ArrayLike | xr.DataArray,
    correct_0: ArrayLike | xr.DataArray,
    confidence_0: ArrayLike | xr.DataArray,
    *,
    rejected_fraction: ArrayLike | None = None,
    resampling: Resampling | None = None,
    progress: ProgressCallback = no_progress,
) -> xr.Dataset:
    """Return how much rejector 1 is above rejector 0 on the same pixels, with bootstrap bands.

    Both are measured on the same resamples, so that what they have in common cancels: the band of
    the difference is usually much narrower than the two bands suggest. A band that leaves out 0
    tells them apart at that fraction, at its confidence level.

    Parameters
    ----------
    correct_1, confidence_1, correct_0, confidence_0 : arrays, same shape
        As in :func:`hsreject.rejection_curve`, the same pixels in the same order. Give the same
        `correct` twice for two rejectors of one classifier. For a rejector that only gives a mask,
        use ``~rejected`` as its confidence and compare at the fraction that it rejects.
    rejected_fraction, resampling, progress
        As in :func:`bootstrap_curve`.

    Returns
    -------
    Dataset over `rejected_fraction`
        Differences (1 minus 0) of `nonrejected_accuracy`, `classification_quality` and
        `rejection_quality`, each also with `_lower` and `_upper`. Differences of two infinite
        rejection qualities are undefined and left out.

    See Also
    --------
    hsreject.Resampling : how it draws.
    hsreject.compare : one verdict without bands.

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
    plain = inputs.same_layout(
        {
            "correct_1": correct_1,
            "confidence_1": confidence_1,
            "correct_0": correct_0,
            "confidence_0": confidence_0,
        }
    )
    rejectors = [_samples(plain, "_1"), _samples(plain, "_0")]
    return _bootstrap(rejectors, rejected_fraction, resampling, progress)


def _samples(
    plain: dict[str, NDArray[Any]], ending: str
) -> tuple[NDArray[np.bool_], NDArray[np.floating]]:
    """Return accuracies and confidences of the rejector whose arguments have this ending."""
    correct, confidence = "correct" + ending, "confidence" + ending
    return (
        inputs.correct_values(plain[correct], name=correct),
        inputs.confidence_values(plain[confidence], name=confidence),
    )


def _bootstrap(
    rejectors: list[tuple[NDArray[np.bool_], NDArray[np.floating]]],
    rejected_fraction: ArrayLike | None,
    resampling: Resampling | None,
    progress: ProgressCallback,
) -> xr.Dataset:
    """Return the bands of one rejector, or of the first minus the second."""
    draw = resampling or Resampling()
    if rejected_fraction is None:
        rejected_fraction = np.linspace(0, 1, 101)
    fraction = inputs.fraction_values(rejected_fraction)
    n = rejectors[0][0].size
    blocks = draw.blocks(n)
    # draws refer to an order that does not depend on the one in which the samples were given
    keys = [key for samples in reversed(rejectors) for key in samples]
    order = np.lexsort(keys if blocks is None else [blocks, *keys])
    blocks = None if blocks is None else blocks[order]
    ranked = [_ranked(correct[order], confidence[order]) for correct, confidence in rejectors]

    def measures(weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return what is measured on one resample, shape (measures, fractions)."""
        first, *other = (_measures(rejector, weights, fraction) for rejector in ranked)
        with np.errstate(invalid="ignore"):  # infinite rejection qualities of both
            return first - other[0] if other else first

    resamples = np.empty((draw.n_resamples, len(MEASURES), fraction.size))
    for done, weights in enumerate(draw.weights(blocks, n)):
        resamples[done] = measures(weights)
        progress("bootstrap", done + 1, draw.n_resamples)
    resamples.sort(axis=0)  # NaN last
    tail = (1 - draw.confidence_level) / 2
    values = {
        "": measures(np.ones(n, dtype=np.int64)),
        "_lower": _percentile(resamples, tail),
        "_upper": _percentile(resamples, 1 - tail),
    }
    return xr.Dataset(
        {
            name + ending: (schema.REJECTED_FRACTION, values[ending][place])
            for place, name in enumerate(MEASURES)
            for ending in values
        },
        coords={schema.REJECTED_FRACTION: fraction},
        attrs={
            "confidence_level": draw.confidence_level,
            "n_resamples": draw.n_resamples,
            "seed": draw.seed,
            "n_blocks": n if blocks is None else int(blocks.max()) + 1,
        },
    )


class _Ranked(NamedTuple):
    """A rejector's samples by ascending confidence: their order, and the last one of each tie."""

    order: NDArray[np.intp]
    accurate: NDArray[np.bool_]
    ends: NDArray[np.intp]


def _ranked(correct: NDArray[np.bool_], confidence: NDArray[np.floating]) -> _Ranked:
    order = np.argsort(confidence, kind="stable")
    _, starts = distinct(confidence[order])
    return _Ranked(order, correct[order], np.append(starts[1:], correct.size) - 1)


def _measures(
    rejector: _Ranked, weights: NDArray[Any], fraction: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return every measure of weighted samples at each fraction, shape (measures, fractions)."""
    ordered = weights[rejector.order]
    below = np.append(0, np.cumsum(ordered)[rejector.ends])
    accurate_below = np.append(0, np.cumsum(ordered * rejector.accurate)[rejector.ends])
    n, accurate = below[-1], accurate_below[-1]
    rejected = fraction * n
    accurate_rejected = np.interp(rejected, below, accurate_below)
    misclassified_rejected = np.maximum(rejected - accurate_rejected, 0)
    at_fractions = Counts(
        accurate_kept=accurate - accurate_rejected,
        misclassified_kept=np.maximum(n - accurate - misclassified_rejected, 0),
        accurate_rejected=accurate_rejected,
        misclassified_rejected=misclassified_rejected,
    )
    return np.stack(list(measures_of(at_fractions).values()))


def _percentile(ascending: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return a percentile over axis 0 without the NaN at the end.

    The nearest rank, not an interpolation, which would make NaN of infinite values.
    """
    valid = np.count_nonzero(~np.isnan(ascending), axis=0)
    rank = np.clip(np.ceil(share * valid).astype(np.intp) - 1, 0, None)
    return np.asarray(np.take_along_axis(ascending, rank[None], axis=0)[0])
