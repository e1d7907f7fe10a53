"""Systems of an explorer: the operating points of a map, and what it shows and counts at each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.measures.cost import cost_envelope
from hsreject.measures.curve import nearest_points, rejection_curve
from hsreject.measures.point import COUNTS
from hsreject.measures.uncertainty import Clumps, square_blocks, usual_side
from hsreject.schema import (
    MAP_DIMS,
    OPERATING_POINT,
    REJECTED,
    as_map,
    check_dims,
    check_label_type,
    fill_value,
    nodata_label,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_LEVELS = 65_535
"""Thresholds of a system at most: ranks of pixels are numbers of 16 bits."""

FINE_PIXELS = 1 << 20
"""Maps of more pixels show 256 ranks, so that a pixel takes one byte; numbers stay exact."""

MOST_SAMPLES = 200_000
"""Reference pixels behind the table of classes; of more every n-th is taken."""


@dataclass(frozen=True, eq=False)
class MapStack:
    """Labels and what rejects them, on the full grid: one plane, or one per operating point."""

    label: NDArray[Any]  # (plane, y, x)
    has_data: NDArray[np.bool_]  # (y, x)
    confidence: NDArray[Any] | None  # (y, x), for one plane
    rejected: NDArray[np.bool_] | None  # (plane, y, x), where each plane is an operating point


@dataclass(frozen=True, eq=False)
class ExplorerSystem:
    """A map that rejects more or less: its operating points, r ascending, and its pixels.

    A threshold gives one plane of labels and ranks: point k rejects the ranks below k. Maps that
    differ from point to point give a plane per point, with rank 0 where it rejects, else 1.
    """

    name: str
    codes: NDArray[np.uint8]  # (plane, y, x) as shown: 1 + place in the class table, 0 is no data
    ranks: NDArray[np.uint16]  # (plane, y, x) as shown
    table: NDArray[np.int64]  # (column, point): rejected pixels, the four counts, sums of squares
    thresholds: NDArray[np.floating] | None  # of each point but the last, which rejects everything
    truth: NDArray[np.uint8]  # codes of the reference at the samples
    sample_codes: NDArray[np.uint8]  # (plane, sample)
    sample_ranks: NDArray[np.uint16]  # (plane, sample)
    clumps: tuple[Clumps, ...]  # of all test pixels, one per plane; none without a reference
    sample_blocks: NDArray[np.intp]  # the block or group of each sample
    certified: int | None = None  # point of the certified threshold

    @property
    def n_cells(self) -> int:
        """How many ranks the planes tell apart: all of them, or 256 on a large map."""
        if self.thresholds is None:
            return 1
        fine = self.codes[0].size <= FINE_PIXELS
        return self.thresholds.size if fine else min(self.thresholds.size, 256)


def map_stack(maps: xr.Dataset, *, name: str, nodata: int | None) -> MapStack:
    """Return the maps of one system, checked, or say what is wrong with them."""
    by_point = OPERATING_POINT in maps["label"].dims
    needed = "rejected" if by_point else "confidence"
    if needed not in maps:
        raise InputError(
            f"{name} has no variable '{needed}' beside 'label' (it has "
            f"{', '.join(map(str, maps))}). One label map needs a confidence, larger is more "
            f"certain; a label map for each '{OPERATING_POINT}' needs a map of what it rejects."
        )
    dims = (OPERATING_POINT, *MAP_DIMS) if by_point else MAP_DIMS
    label = check_dims(maps["label"], dims, name="label")
    check_label_type(label.dtype, name="label")
    values = label.values.reshape(-1, *label.shape[-2:])
    has_data: Any = ~np.isin(values, _nodata_values(label, nodata)).any(axis=0)
    if by_point:
        rejected = check_dims(maps["rejected"], dims, name="rejected").values.astype(bool)
        _check_labels(values, has_data, name)
        return MapStack(values, has_data, None, rejected)
    confidence = as_map(maps["confidence"], name="confidence").values
    has_data &= ~np.isnan(confidence)
    _check_labels(values, has_data, name)
    _check_confidence(confidence[has_data], name)
    return MapStack(values, has_data, confidence, None)


def _nodata_values(label: xr.DataArray, nodata: int | None) -> list[int]:
    """Return the labels that mean no data: the given one, that of the file, that of the type."""
    unsigned = label.dtype.kind == "u"
    marks = (nodata, fill_value(label), nodata_label(label.dtype) if unsigned else None)
    return [int(mark) for mark in marks if mark is not None]


def _check_labels(values: NDArray[Any], has_data: NDArray[np.bool_], name: str) -> None:
    if not has_data.any():
        raise InputError(f"{name} has no pixel with data: there is nothing to show.")
    lowest = values[:, has_data].min()
    if lowest < 0:
        raise InputError(
            f"The labels of {name} must not be negative (found {lowest}). If that means no data, "
            f"say nodata={lowest}."
        )
    n_zero = np.count_nonzero(values[:, has_data] == REJECTED)
    if n_zero:
        raise InputError(
            f"The label of {name} is 0 at {n_zero} pixels that have a confidence. If 0 means "
            "rejected, give the labels before rejection; if it means no data, say nodata=0."
        )


def _check_confidence(confidence: NDArray[Any], name: str) -> None:
    if np.isinf(confidence).any():
        raise InputError(
            f"The confidence of {name} is infinite at {np.isinf(confidence).sum()} pixels, and no "
            "threshold lies above that. Clip it at a largest number."
        )
    low, high = confidence.min(), confidence.max()
    if low == high:
        raise InputError(
            f"The confidence of {name} is {low:g} everywhere, so it cannot say which pixels to "
            "reject first. Give a map that is larger where the label is more certain."
        )


def system_of(
    name: str,
    stack: MapStack,
    codes: NDArray[np.uint8],
    truth: NDArray[np.uint8],
    *,
    step: int,
    group: NDArray[np.integer] | None,
    relation: NDArray[np.bool_],
    certified: float | None,
) -> ExplorerSystem:
    """Return a system: what lies below a threshold is rejected, or each point has its own map.

    A label is right where the class of the reference lies below it: `relation`, of codes.
    """
    used = (truth > 0) & stack.has_data
    reference, decision = truth[used], codes[:, used]
    right = relation[decision, reference]
    shown_data, levels = stack.has_data[::step, ::step], None
    if stack.confidence is None:
        kept_pixels: Any = ~np.asarray(stack.rejected)
        gone = (~kept_pixels[:, ::step, ::step] & shown_data).sum(axis=(1, 2))
        order = np.argsort(gone, kind="stable")
        codes, decision, right, gone = codes[order], decision[order], right[order], gone[order]
        ranks, sample_ranks = kept_pixels[order][:, ::step, ::step], kept_pixels[order][:, used]
    else:
        confidence = stack.confidence
        if confidence.dtype != np.float32:
            confidence = confidence.astype(np.float64)
        shown, of_samples = confidence[::step, ::step], confidence[used]
        levels = _levels(shown[shown_data], of_samples, right[0], certified)
        ranks = np.where(shown_data, _rank(levels, shown), 0)[np.newaxis]
        sample_ranks = _rank(levels, of_samples)[np.newaxis]
        gone = _below(ranks[0][shown_data], levels.size)
    clumps = _clumps(used, group, right)
    every_nth = slice(None, None, -(-reference.size // MOST_SAMPLES) or 1)
    return ExplorerSystem(
        name,
        codes=codes[:, ::step, ::step],
        ranks=ranks.astype(np.uint16),
        table=np.stack([gone, *_sample_counts(right, sample_ranks, clumps, levels)]),
        thresholds=levels,
        truth=reference[every_nth],
        sample_codes=decision[:, every_nth],
        sample_ranks=sample_ranks[:, every_nth].astype(np.uint16),
        clumps=clumps,
        sample_blocks=clumps[0].block[every_nth] if clumps else np.zeros(0, dtype=np.intp),
        certified=None
        if certified is None or levels is None
        else int(np.searchsorted(levels, certified)),
    )


def _sample_counts(
    right: NDArray[np.bool_],
    ranks: NDArray[Any],
    clumps: tuple[Clumps, ...],
    levels: NDArray[np.floating] | None,
) -> tuple[NDArray[np.int64], ...]:
    """Return the four counts of every point, and the sums of squares that its interval needs."""
    if levels is None:
        keep = ranks > 0
        parts = (right & keep, ~right & keep, right & ~keep, ~right & ~keep)
        of_planes = [one.squares(plane) for one, plane in zip(clumps, keep, strict=False)]
        return *(part.sum(axis=1) for part in parts), np.array(of_planes or [0] * len(keep))
    accurate, misclassified = (
        _below(ranks[0][part], levels.size) for part in (right[0], ~right[0])
    )
    squares = np.zeros_like(accurate)
    if clumps:
        squares = clumps[0].squares_above(ranks[0], np.arange(squares.size))
    above = accurate[-1] - accurate, misclassified[-1] - misclassified
    return *above, accurate, misclassified, squares


def _below(ranks: NDArray[np.integer], n_levels: int) -> NDArray[np.int64]:
    """Return how many pixels each point rejects: those of a lower rank than its number."""
    return np.append(0, np.cumsum(np.bincount(ranks, minlength=n_levels)))


def _clumps(
    used: NDArray[np.bool_], group: NDArray[np.integer] | None, right: NDArray[np.bool_]
) -> tuple[Clumps, ...]:
    """Return the clumps of the test pixels, given which are right on each plane."""
    if not used.any():
        return ()
    row, column = np.nonzero(used)
    blocks = square_blocks(row, column, usual_side(used.shape))
    return tuple(Clumps.of(plane, blocks if group is None else group[used]) for plane in right)


def _rank(levels: NDArray[np.floating], confidence: NDArray[np.floating]) -> NDArray[np.intp]:
    """Return how many levels beyond the lowest each confidence reaches."""
    return np.searchsorted(levels, confidence, side="right") - 1


def _levels(
    shown: NDArray[np.floating],
    of_samples: NDArray[np.floating],
    correct: NDArray[np.bool_],
    certified: float | None,
) -> NDArray[np.floating]:
    """Return the thresholds on offer: those of the samples' curve, and others between them.

    All distinct confidences if they are few enough; else what moves the curve comes first, the
    corners of the cost envelope above all, and quantiles of the map fill up what is left.
    """
    marked = np.array([] if certified is None else [certified], dtype=shown.dtype)
    every = np.unique(np.concatenate([shown, of_samples, marked]))
    if every.size <= MOST_LEVELS:
        return every
    # Half of the levels at most for the curve, so that the map still changes smoothly where no test
    # pixel lies. Corners of the envelope stay: the page names them the cheapest points.
    of_curve = np.unique(of_samples)
    if of_curve.size > MOST_LEVELS // 2:
        curve = rejection_curve(correct, of_samples)
        spaced = nearest_points(curve["rejected_fraction"].values, MOST_LEVELS // 2)
        corners = cost_envelope(curve)["index"].values
        of_curve = curve["threshold"].values[np.union1d(spaced, corners)]
        of_curve = of_curve[np.isfinite(of_curve)].astype(shown.dtype)
    levels = np.union1d(of_curve, marked)
    ascending = np.sort(shown)
    places = np.linspace(0, shown.size - 1, MOST_LEVELS - levels.size).astype(np.intp)
    return np.union1d(levels, ascending[places])


def winners(system: ExplorerSystem) -> list[tuple[int, float]]:
    """Return the points that are cheapest at some cost, each with the lowest such cost."""
    if not system.truth.size:
        return []
    columns = zip(COUNTS, system.table[1:5], strict=True)
    envelope = cost_envelope(xr.Dataset({name: (OPERATING_POINT, c) for name, c in columns}))
    index = envelope["index"].values
    if system.thresholds is not None:
        # thresholds that reject the same test pixels are one operating point: that of the highest
        rejected = system.table[3] + system.table[4]
        index = np.searchsorted(rejected, rejected[index], side="right") - 1
    return list(zip(index.tolist(), envelope["lowest_cost"].values.tolist(), strict=True))
