"""Bootstrap bands for the measures of a rejector and for the difference of two.

The samples are sorted once; a resample is a vector of weights on that order, so that its whole
curve costs two running sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr

from hsreject import schema
from hsreject.measures import inputs
from hsreject.measures.counts import MEASURES, Counts
from hsreject.measures.ranking import last_of_each
from hsreject.measures.resampling import Resampling
from hsreject.progress import ProgressCallback, no_progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray


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
        Number of resamples, level, seed, spatial blocks; ``Resampling()`` when not given.
    progress : ProgressCallback
        Called as resamples are done.

    Returns
    -------
    Dataset over `rejected_fraction`
        `nonrejected_accuracy`, `classification_quality`, `rejection_quality` of the samples, each
        also with `_lower` and `_upper`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> confidence = rng.random(500)
    >>> bands = bootstrap_curve(rng.random(500) < confidence, confidence, rejected_fraction=[0.2],
    ...                         resampling=Resampling(n_resamples=200))
    >>> (bands.nonrejected_accuracy_lower < bands.nonrejected_accuracy).item()
    True
    """
    arrays = {"correct": correct, "confidence": confidence}
    plain = [np.asarray(array) for array in inputs.same_layout(arrays)]
    accurate = inputs.correct_values(plain[0]).ravel()
    values = inputs.confidence_values(plain[1])
    draw = resampling or Resampling()
    fraction = _fractions(rejected_fraction)
    blocks = draw.blocks(values.size)
    order = _canonical_order(blocks, accurate, values)
    blocks = None if blocks is None else blocks[order]
    rejector = _ranked(accurate[order], values[order])

    def measures(weights: NDArray[Any]) -> NDArray[np.float64]:
        return _measures(rejector, weights, fraction)

    return _bands(measures, fraction, (draw, blocks, values.size), progress)


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
    tells them apart at its level, at that fraction.

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

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> good, useless = rng.random(500), rng.random(500)
    >>> correct = rng.random(500) < good
    >>> gain = bootstrap_difference(correct, good, correct, useless, rejected_fraction=[0.5])
    >>> (gain.nonrejected_accuracy_lower > 0).item()
    True
    """
    arrays = {
        "correct_1": correct_1,
        "confidence_1": confidence_1,
        "correct_0": correct_0,
        "confidence_0": confidence_0,
    }
    plain = [np.asarray(array) for array in inputs.same_layout(arrays)]
    accurate = [
        inputs.correct_values(plain[i], name=f"correct_{1 - i // 2}").ravel() for i in (0, 2)
    ]
    values = [inputs.confidence_values(plain[i], name=f"confidence_{1 - i // 2}") for i in (1, 3)]
    draw = resampling or Resampling()
    fraction = _fractions(rejected_fraction)
    n = values[0].size
    blocks = draw.blocks(n)
    order = _canonical_order(blocks, accurate[1], values[1], accurate[0], values[0])
    blocks = None if blocks is None else blocks[order]
    ranked = [_ranked(a[order], v[order]) for a, v in zip(accurate, values, strict=True)]

    def difference(weights: NDArray[Any]) -> NDArray[np.float64]:
        first, second = (_measures(rejector, weights, fraction) for rejector in ranked)
        with np.errstate(invalid="ignore"):
            return first - second

    return _bands(difference, fraction, (draw, blocks, n), progress)


class _Ranked(NamedTuple):
    """A rejector's order of the samples, sorted by confidence, and where each tie ends."""

    order: NDArray[np.intp]
    accurate: NDArray[np.bool_]
    ends: NDArray[np.intp]


def _canonical_order(*keys: NDArray[Any] | None) -> NDArray[np.intp]:
    """Return an order that does not depend on that of the samples: last key first."""
    return np.lexsort([key for key in keys if key is not None])


def _ranked(accurate: NDArray[np.bool_], confidence: NDArray[np.float64]) -> _Ranked:
    order = np.argsort(confidence, kind="stable")
    return _Ranked(order, accurate[order], last_of_each(confidence[order]))


def _measures(
    rejector: _Ranked, weights: NDArray[Any], fraction: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return every measure of weighted samples at each fraction, shape (measures, fractions)."""
    ordered = weights[rejector.order]
    below = np.concatenate([[0], np.cumsum(ordered)[rejector.ends]])
    accurate_below = np.concatenate([[0], np.cumsum(ordered * rejector.accurate)[rejector.ends]])
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
    return np.stack([measure.kernel(at_fractions) for measure in MEASURES.values()])


def _fractions(rejected_fraction: ArrayLike | None) -> NDArray[np.float64]:
    if rejected_fraction is None:
        return np.linspace(0, 1, 101)
    return np.atleast_1d(inputs.fraction_values(rejected_fraction, name="rejected_fraction"))


def _bands(
    measures: Callable[[NDArray[Any]], NDArray[np.float64]],
    fraction: NDArray[np.float64],
    drawing: tuple[Resampling, NDArray[np.intp] | None, int],
    progress: ProgressCallback,
) -> xr.Dataset:
    draw, blocks, n = drawing
    resamples = np.empty((draw.n_resamples, len(MEASURES), fraction.size))
    for done, weights in enumerate(draw.weights(blocks, n)):
        resamples[done] = measures(weights)
        progress("bootstrap", done + 1, draw.n_resamples)
    resamples.sort(axis=0)  # NaN last
    tail = (1 - draw.level) / 2
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
            "level": draw.level,
            "n_resamples": draw.n_resamples,
            "seed": draw.seed,
            "n_blocks": n if blocks is None else int(blocks.max()) + 1,
        },
    )


def _percentile(ascending: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    """Return a percentile over axis 0 without the NaN at the end.

    The nearest rank, not an interpolation, which would make NaN of infinite values.
    """
    valid = np.count_nonzero(~np.isnan(ascending), axis=0)
    rank = np.clip(np.ceil(share * valid).astype(np.intp) - 1, 0, None)
    return np.asarray(np.take_along_axis(ascending, rank[None], axis=0)[0])
