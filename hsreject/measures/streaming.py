"""Rejection curves of more samples than fit into memory.

A histogram of the confidences, counted exactly between edges that are confidences themselves, gives
exact operating points at its edges. The edges are found first, by looking at every so many-th
confidence of each block, so that no bin is heavy whatever the distribution; a tied confidence has
a bin of its own. Bins that turn out too heavy are divided once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import dask.array as da
import numpy as np
import xarray as xr
from dask.delayed import delayed

from hsreject.errors import InputError
from hsreject.measures import inputs
from hsreject.measures.curve_table import curve_of_groups
from hsreject.measures.ranking import Groups, group_ties, group_weighted_ties
from hsreject.progress import ProgressCallback, no_progress

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")

RESOLUTION = 1e-4
_PICKS_PER_BIN = 16  # edges found per bin that is needed: they fall unevenly
_FEWEST_PICKS = 64
_BLOCKS_AT_A_TIME = 32  # bounds what waits to be added up; a multiple of usual thread counts


def streamed_rejection_curve(
    correct: ArrayLike | xr.DataArray,
    confidence: ArrayLike | xr.DataArray,
    *,
    weights: ArrayLike | xr.DataArray | None = None,
    resolution: float = RESOLUTION,
    progress: ProgressCallback = no_progress,
) -> xr.Dataset:
    """Return the rejection curve of dask-backed arrays, block by block.

    **Every point is exact**: an operating point of :func:`hsreject.rejection_curve`, with its exact
    counts. What is lost are points between. Two neighbours differ by at most `resolution` in
    rejected fraction, unless all samples between them have the same confidence, which no threshold
    can divide. So at any threshold the nearest point below is within `resolution` in r, AN/n, MN/n
    and Q. With fewer than about ``16 / resolution`` samples nothing is lost.

    The data are read twice (at most four times). Memory holds a few blocks and the histogram.

    Parameters
    ----------
    correct, confidence, weights : arrays, same shape
        As in :func:`hsreject.rejection_curve`; at least one dask-backed. Blocks are those of the
        first dask-backed array.
    resolution : float
        Largest wanted step of the rejected fraction, in (0, 1).
    progress : ProgressCallback
        Called as blocks are done.

    Returns
    -------
    Dataset over `operating_point`
        As of :func:`hsreject.rejection_curve`; the attribute `largest_step` is the largest step of
        the rejected fraction that a finer histogram could divide (0 when the curve is complete).

    Examples
    --------
    >>> import dask.array as da
    >>> confidence = da.linspace(0, 1, 1_000_000, chunks=250_000)
    >>> curve = streamed_rejection_curve(confidence > 0.3, confidence, resolution=0.01)
    >>> curve.attrs["largest_step"] <= 0.01, curve.nonrejected_accuracy[0].item()
    (True, 0.7)
    """
    if not 0 < resolution < 1:
        raise InputError(f"resolution must lie between 0 and 1, like 1e-4 (got {resolution:g}).")
    arrays = {"correct": correct, "confidence": confidence}
    if weights is not None:
        arrays["weights"] = weights
    plain = inputs.same_layout(arrays)
    inputs.correct_values(plain[0])
    blocks = _blocks(plain)
    n_picks = max(_FEWEST_PICKS, int(np.ceil(_PICKS_PER_BIN / (resolution * len(blocks)))))
    edges = _edges(_each(partial(_pick, n_picks=n_picks), blocks, "curve: edges", progress))
    if not edges.size:
        raise InputError("There are no samples: every block is empty or has weight 0.")
    histogram = _histogram(blocks, edges, progress)
    heavy = histogram.sum(axis=0) > resolution * histogram.sum()
    heavy &= ~_single(edges)
    if heavy.any():
        step = resolution * histogram.sum() / (2 * len(blocks))
        pick = partial(_pick_heavy, edges=edges, heavy=heavy, step=step)
        more = _edges(_each(pick, blocks, "curve: more edges", progress))
        edges = np.union1d(edges, more)
        histogram = _histogram(blocks, edges, progress)
    return _curve(histogram, edges, weighted=weights is not None)


def _blocks(arrays: list[Any]) -> list[tuple[Any, ...]]:
    """Return the blocks of the arrays, those of one place together, not yet computed."""
    chunks = next((array.chunks for array in arrays if inputs.is_lazy(array)), "auto")
    aligned = [da.asanyarray(array) for array in arrays]  # type: ignore[no-untyped-call]
    if not any(np.isnan(array.size) for array in aligned):  # else sizes are not known beforehand
        aligned = [array.rechunk(chunks) for array in aligned]
    if len({array.numblocks for array in aligned}) > 1:
        raise InputError(
            "The arrays have blocks of unknown size and not the same number of them. Select the "
            "samples of all arrays with one mask, or call .compute_chunk_sizes() first."
        )
    return list(zip(*(array.to_delayed().ravel() for array in aligned), strict=True))


def _each(
    function: Callable[..., T],
    blocks: list[tuple[Any, ...]],
    stage: str,
    progress: ProgressCallback,
) -> Iterator[T]:
    """Yield `function(*block)` for each block in order, several computed at a time."""
    for start in range(0, len(blocks), _BLOCKS_AT_A_TIME):
        some = blocks[start : start + _BLOCKS_AT_A_TIME]
        yield from delayed(list)([delayed(function)(*block) for block in some]).compute()
        progress(stage, start + len(some), len(blocks))


def _groups(
    correct: NDArray[np.bool_], confidence: NDArray[Any], weights: NDArray[Any] | None = None
) -> Groups:
    values = inputs.confidence_values(np.asarray(confidence))
    accurate = np.asarray(correct).ravel()
    if accurate.size != values.size:
        raise InputError(
            f"A block of correct has {accurate.size} samples but that of confidence {values.size}. "
            "Select the samples of both with one mask."
        )
    if weights is None:
        return group_ties(accurate, values)
    weight = inputs.weight_values(np.asarray(weights), may_be_zero=True)
    return group_weighted_ties(accurate, values, weight)


def _pick(*block: NDArray[Any], n_picks: int) -> NDArray[np.float64]:
    """Return the lowest confidence and about `n_picks` others with equal mass between them."""
    groups = _groups(*block)
    mass = np.cumsum(groups.accurate + groups.misclassified)
    if not mass.size:
        return groups.confidence
    place = np.searchsorted(mass, np.arange(n_picks + 1) * (mass[-1] / n_picks))
    return np.asarray(groups.confidence[np.unique(np.minimum(place, mass.size - 1))])


def _pick_heavy(
    *block: NDArray[Any], edges: NDArray[np.float64], heavy: NDArray[np.bool_], step: float
) -> NDArray[np.float64]:
    """Return confidences in heavy bins with less than `step` of mass between them."""
    groups = _groups(*block)
    inside = heavy[_bins(groups.confidence, edges)]
    mass = np.cumsum((groups.accurate + groups.misclassified)[inside])
    if not mass.size:
        return groups.confidence[:0]
    place = np.searchsorted(mass, np.arange(step, mass[-1], step))
    return np.asarray(groups.confidence[inside][np.unique(place)])


def _edges(picks: Iterator[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return picked confidences and their successors, which give each pick a bin of its own."""
    values = np.unique(np.concatenate(list(picks)))
    edges = np.union1d(values, np.nextafter(values, np.inf)) + 0.0
    return np.asarray(edges[np.isfinite(edges)])


def _single(edges: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which bins can hold only one confidence."""
    return np.asarray(np.append(edges[1:], np.inf) == np.nextafter(edges, np.inf))


def _bins(confidence: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.searchsorted(edges, confidence, side="right") - 1


def _histogram(
    blocks: list[tuple[Any, ...]], edges: NDArray[np.float64], progress: ProgressCallback
) -> NDArray[Any]:
    """Return accurate and misclassified mass of each bin, shape (2, bins)."""
    parts = _each(partial(_count, edges=edges), blocks, "curve: counts", progress)
    total = next(parts)
    for part in parts:
        total = total + part
    return total


def _count(*block: NDArray[Any], edges: NDArray[np.float64]) -> NDArray[Any]:
    groups = _groups(*block)
    start = np.searchsorted(groups.confidence, edges)
    empty = start == np.append(start[1:], groups.confidence.size)
    mass = np.zeros((2, groups.confidence.size + 1), dtype=groups.accurate.dtype)
    mass[:, :-1] = groups.accurate, groups.misclassified
    sums = np.add.reduceat(mass, start, axis=1)
    sums[:, empty] = 0  # there reduceat returns the next element instead of no sum
    return np.asarray(sums)


def _curve(histogram: NDArray[Any], edges: NDArray[np.float64], *, weighted: bool) -> xr.Dataset:
    mass = histogram.sum(axis=0)
    filled = mass > 0
    curve = curve_of_groups(Groups(edges[filled], *histogram[:, filled]), weighted=weighted)
    divisible = mass[~_single(edges)] / mass.sum()
    return curve.assign_attrs(largest_step=float(divisible.max(initial=0.0)))
