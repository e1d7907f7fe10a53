"""From a goal to a threshold: the one rule of the library, of runs, maps and evaluations.

Thresholds keep equal confidences together, and calibration pixels say what a threshold is worth.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import dask.array as da
import numpy as np
import xarray as xr
from dask.base import compute

from hsreject.errors import InputError
from hsreject.measures.choosing import ACCURACY, FRACTION, MAX_ERROR, THRESHOLD, Goal, choose_point
from hsreject.measures.curve import counts_of
from hsreject.measures.point import OperatingPoint
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.ranking import Ranking, Stack
from hsreject.schema import NO_REFERENCE, OPERATING_POINT, as_label_map, check_same_grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST_KEPT = 30
"""Reference units that an accuracy is measured on at least: of fewer it says too little."""


@dataclass(frozen=True)
class Decision:
    """The threshold that a goal asks for, and whether it meets the goal.

    Attributes
    ----------
    threshold : float
        The smallest confidence that is kept; minus infinity keeps all that is not unknown,
        infinity nothing. Of a :class:`~hsreject.rejection.ranking.Stack` the place of a map.
    reached : bool
        Whether the goal is met; if not, this is the most that can be reached.
    source : str
        What it was chosen by: "given", "units" (the confidences themselves), "reference" or
        "certificate".
    point : OperatingPoint or None
        On the reference units that it was chosen on.
    reachable : tuple of float
        Of a fraction, the nearest ones below and above it that thresholds reach.
    """

    threshold: float
    _: KW_ONLY
    reached: bool = True
    source: str = "given"
    point: OperatingPoint | None = None
    reachable: tuple[float, float] | None = None


def decide(
    ranking: Ranking,
    goal: Goal,
    reference: xr.DataArray | NDArray[Any] | None = None,
    *,
    certified: float | None = None,
    coarse_cost: float = 0.0,
    progress: ProgressCallback = no_progress,
) -> Decision:
    """Return the threshold of a ranking that a goal asks for.

    - *fraction*: the nearest that a threshold reaches, of the units that have data and are not
      unknown; with groups of classes the lowest of the thresholds that reject the same.
    - *accuracy*: of the operating points that keep at least 30 reference units, or all there are,
      the one that rejects least among those that reach it; where none does, the most accurate.
    - *rejection cost*: the operating point of least cost.
    - *largest error*: what is `certified`. Without that it is taken for an accuracy, and never
      reached: an accuracy that was measured promises nothing.
    - *threshold*: itself.

    Unknown units choose nothing, because every threshold rejects them. Where no reference unit is
    to be rejected, nothing is, whatever the confidence of the others.

    Parameters
    ----------
    ranking : Ranking
        Of the units that the threshold is for.
    goal : Goal
        What is asked for.
    reference : DataArray or array of int, optional
        Classes of some units, 0 elsewhere, that were not used for training. Goals that depend on
        the truth need one.
    certified : float, optional
        The threshold that a certificate of this ranking gives for the largest error.
    coarse_cost : float in [0, 1]
        What a right answer costs if it is a group of classes, as a share of a rejection.
    progress : callable
        Called with (stage, done, total) while a large scene is passed over.

    Returns
    -------
    Decision
        Its `threshold`, and whether the goal is `reached`.

    See Also
    --------
    hsreject.Ranking : `at` gives the maps at a threshold.
    hsreject.Goal : what can be asked for.
    hsreject.choose_point : the point of a curve alone.

    Examples
    --------
    Two of three labels are right, and the wrong one is the least certain:

    >>> import numpy as np
    >>> from hsreject import Goal, Ranking, decide
    >>> ranking = Ranking(np.array([[1, 2, 2]]), np.array([[0.9, 0.4, 0.8]]))
    >>> decide(ranking, Goal(fraction=1 / 3)).threshold
    0.8
    >>> decision = decide(ranking, Goal(rejection_cost=0.2), np.array([[1, 1, 2]]))
    >>> decision.threshold, decision.reached, decision.point.nonrejected_accuracy
    (0.8, True, 1.0)
    """
    if goal.kind == THRESHOLD:
        return Decision(goal.value)
    if goal.kind == FRACTION:
        return _of_fraction(ranking, goal.value, progress)
    if goal.kind == MAX_ERROR and certified is not None:
        point = None if reference is None else ranking.point(certified, reference)
        return Decision(certified, source="certificate", point=point)
    if reference is None:
        raise InputError(
            f"A goal of {goal.kind}={goal.value:g} needs a reference: classes of some units that "
            "were not used for training. Give one, or ask for a fraction or a threshold."
        )
    known = _known(ranking, reference)
    decision = Decision(0.0 if isinstance(ranking, Stack) else -np.inf, reached=False)
    if (known != NO_REFERENCE).any():
        decision = decide_by_points(ranking.points(known), goal, coarse_cost=coarse_cost)
    point = ranking.point(decision.threshold, reference)
    return replace(decision, source="reference", point=point)


def _of_fraction(ranking: Ranking, fraction: float, progress: ProgressCallback) -> Decision:
    if isinstance(ranking, Stack):
        asked = ranking.has_data if ranking.unknown is None else ranking.has_data & ~ranking.unknown
        shares = (ranking.rejected & asked).values.sum(axis=(1, 2)) / max(int(asked.sum()), 1)
        return Decision(float(np.abs(shares - fraction).argmin()), source="units")
    confidence = ranking.coarsest
    if ranking.unknown is not None:
        confidence = confidence.where(~ranking.unknown)
    nearest = threshold_for_fraction(confidence, fraction, progress=progress)
    reachable = nearest.reachable_below, nearest.reachable_above
    return Decision(ranking.finest(nearest.value), source="units", reachable=reachable)


def _known(ranking: Ranking, reference: Any) -> Any:
    """Return the reference of the units that have a label and are not unknown."""
    known = ranking.has_data.values
    if ranking.unknown is not None:
        known = known & ~ranking.unknown.values
    labels = np.asarray(reference)
    if labels.shape != known.shape:
        return reference  # what measures it will say how they differ
    kept = np.where(known, labels, labels.dtype.type(NO_REFERENCE))
    return reference.copy(data=kept) if isinstance(reference, xr.DataArray) else kept


def decide_by_points(curve: xr.Dataset, goal: Goal, *, coarse_cost: float = 0.0) -> Decision:
    """Return what an accuracy, a cost or a largest error asks for on points measured already.

    They are those of :meth:`Ranking.points`, such as a trained model keeps.
    """
    thresholds = curve["threshold"].values
    if thresholds[0] == -np.inf and thresholds.size > 1:  # what no threshold keeps
        curve = curve.isel({OPERATING_POINT: slice(1, None)})
    places = curve["threshold"].values.copy()
    if np.isinf(places[-1]):
        # rejecting none of these units means none at all, also of those that are less certain
        places[0] = -np.inf
    asked = Goal(accuracy=1 - goal.value) if goal.kind == MAX_ERROR else goal
    reached, kept = goal.kind != MAX_ERROR, counts_of(curve).kept
    if not kept.any():
        point = OperatingPoint.from_curve(curve, 0)
        return Decision(float(places[0]), reached=False, source="reference", point=point)
    if asked.kind == ACCURACY:
        enough = np.flatnonzero(kept >= min(FEWEST_KEPT, kept.max()))
        curve, places = curve.isel({OPERATING_POINT: enough}), places[enough]
        highest = float(np.fmax.reduce(curve["nonrejected_accuracy"].values))
        if not highest >= asked.value:
            asked, reached = Goal(accuracy=highest), False
    point = choose_point(curve, **{asked.kind: asked.value}, coarse_cost=coarse_cost)
    return Decision(float(places[point.index]), reached=reached, source="reference", point=point)


def check_reached(decision: Decision, goal: Goal) -> None:
    """Raise where a goal is not met, for callers that cannot go on with the most there is."""
    point = decision.point
    if decision.reached or point is None:
        return
    n_kept, why = point.accurate_kept + point.misclassified_kept, "none keeps anything"
    if n_kept:
        highest = math.floor(1e8 * point.nonrejected_accuracy) / 1e8  # asking for it succeeds
        least = f"{FEWEST_KEPT} at least, or all there are"
        why = f"the highest is {highest:.8g}, on {n_kept} kept pixels ({least})"
    raise InputError(
        f"No operating point keeps an accuracy of {goal.value:g}: {why}. Ask for less, or improve "
        "the classifier or confidence."
    )


# Calibration pixels.


@dataclass(frozen=True, eq=False)
class Calibration:
    """Reference labels from which a rejector learns where to stop rejecting.

    Confidences alone do not tell which threshold reaches an accuracy or is cheapest: that takes
    pixels whose class is known. Training pixels are refused, because a classifier is more certain
    of them than of others.

    Parameters
    ----------
    labels : DataArray or array of int (y, x)
        Reference labels of the calibration pixels, 0 elsewhere.
    training : DataArray or array of int (y, x), or None
        Labels of the training pixels, 0 elsewhere. None if the classifier was trained on another
        scene.

    See Also
    --------
    hsreject.Goal : what is to be met.
    hsreject.Rejector : learns from it.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import Calibration
    >>> Calibration(np.array([[1, 0, 2]]), training=np.array([[0, 1, 0]])).n_pixels
    2
    >>> Calibration(np.array([[1, 1, 2]]), training=np.array([[0, 1, 0]]))
    Traceback (most recent call last):
    hsreject.errors.InputError: 1 of 3 calibration pixels is also a training pixel...
    """

    labels: xr.DataArray | NDArray[Any]
    _: KW_ONLY
    training: xr.DataArray | NDArray[Any] | None

    def __post_init__(self) -> None:
        labels = as_label_map(self.labels, name="calibration labels")
        object.__setattr__(self, "labels", labels)
        if self.n_pixels == 0:
            raise InputError(
                "There are no calibration pixels: the calibration labels are 0 everywhere. "
                "Give reference labels of pixels that were not used for training."
            )
        if self.training is None:
            return
        training = as_label_map(self.training, name="training labels")
        check_same_grid(labels, training, names=("calibration labels", "training labels"))
        twice = int(((labels.values > 0) & (training.values > 0)).sum())
        if twice:
            raise InputError(
                f"{twice} of {self.n_pixels} calibration pixels "
                f"{'is also a training pixel' if twice == 1 else 'are also training pixels'}, "
                "for which the classifier is overconfident. "
                "Leave them out: labels.where(training == 0, 0)."
            )

    @property
    def n_pixels(self) -> int:
        """Number of calibration pixels."""
        return int((np.asarray(self.labels) > 0).sum())


def needed_calibration(calibration: Calibration | None, goal: str) -> Calibration:
    """Return the calibration, or say that `goal` needs one."""
    if not isinstance(calibration, Calibration):
        raise InputError(
            f"{goal} needs calibration pixels (got {type(calibration).__name__}): pass "
            "calibration=hsreject.Calibration(labels, training=...) with reference labels of "
            "pixels that were not used for training."
        )
    return calibration


# Thresholds of a fraction.

N_BINS = 1 << 16
"""Of each histogram over all blocks of a large scene."""

FEW = 1 << 22
"""So many confidences are fetched into memory; among more, a histogram is made first."""


@dataclass(frozen=True)
class Threshold:
    """A threshold and the fractions that thresholds can reach around the wanted one.

    Pixels with a confidence below `value` are rejected, the share `rejected_fraction`; infinity
    rejects everything. `reachable_below` and `reachable_above` are the nearest fractions that some
    threshold rejects, both equal to the wanted one where that can be reached.
    """

    value: float
    rejected_fraction: float
    reachable_below: float
    reachable_above: float


def threshold_for_fraction(
    confidence: xr.DataArray | NDArray[np.floating],
    fraction: float,
    *,
    progress: ProgressCallback = no_progress,
) -> Threshold:
    """Return the threshold whose rejected fraction is nearest to the wanted one.

    A threshold cannot separate equal confidences, so the fractions that can be reached are those
    of the distinct confidences. Halfway between two of them, fewer pixels are rejected. The
    fractions 0 and 1 can always be reached. Confidences come in any order and shape, NaN without
    data. A dask array is passed over a few times, block by block, and the answer is the same.
    """
    values: Any = confidence.data if isinstance(confidence, xr.DataArray) else confidence
    if values.dtype.kind != "f":
        raise InputError(f"confidence must be float32 or float64 (got {values.dtype}).")
    if isinstance(values, da.Array):
        place, n_pixels = _lazy_place(values, fraction, progress)
    else:
        values = values[~np.isnan(values)]
        n_pixels = values.size
        place = _place(values, _rank(fraction, n_pixels))
    # The nearest thresholds are this confidence, which rejects what lies below it, and the next
    # larger one, which rejects this one and its equals, too.
    target, below, above = fraction * n_pixels, place.below, place.not_above
    nearer_below = target - below <= above - target
    value, n_rejected = (place.value, below) if nearer_below else (place.next_larger, above)
    for count in (above, below):
        if abs(count - target) < 1e-6:  # 0.29 * 100 is 28.999999999999996
            below = above = count
    return Threshold(value, n_rejected / n_pixels, below / n_pixels, above / n_pixels)


class _Place(NamedTuple):
    """A confidence, how many lie below it and how many not above it, and the next larger one."""

    value: float
    below: int
    not_above: int
    next_larger: float  # infinity if there is none


def _rank(fraction: float, n_pixels: int) -> int:
    """Return how many of the ascending confidences lie before the one that the fraction hits."""
    if not n_pixels:
        raise InputError("No pixel of the scene has data, so there is nothing to reject or keep.")
    return min(int(fraction * n_pixels), n_pixels - 1)


def _place(values: NDArray[np.floating], rank: int) -> _Place:
    """Return the place of the value at a rank, by a selection instead of a sort."""
    value = np.partition(values, rank)[rank]
    below, not_above = (int(np.count_nonzero(which)) for which in (values < value, values <= value))
    next_larger = values[values > value].min(initial=np.inf)
    return _Place(float(value), below, not_above, float(next_larger))


def _lazy_place(
    values: da.Array, fraction: float, progress: ProgressCallback
) -> tuple[_Place, int]:
    """Return the same of a dask array, and how many numbers it has.

    Histograms narrow the range [low, high] that holds the rank until few enough confidences are
    in it to be fetched, or until they are all equal.
    """
    n_passes = 0

    def passed_over(*lazy: Any) -> list[Any]:
        nonlocal n_passes
        numbers: list[Any] = list(compute(*lazy))
        n_passes += 1
        progress("threshold", n_passes, None)
        return numbers

    def extremes(which: da.Array) -> tuple[Any, Any]:
        return da.where(which, values, np.inf).min(), da.where(which, values, -np.inf).max()

    number = ~da.isnan(values)
    n_pixels, low, high = passed_over(number.sum(), *extremes(number))
    rank = _rank(fraction, int(n_pixels))
    # Invariant: n_below confidences are smaller than `low`, and n_inside lie in [low, high], that
    # of the rank among them. Both ends are confidences, the one in the first bin and the other in
    # the last, so every pass narrows the range.
    n_below, n_inside = 0, int(n_pixels)
    while n_inside > FEW and low < high:
        edges = np.linspace(low, high, N_BINS + 1)
        (counts,) = passed_over(da.histogram(values, bins=edges)[0])
        ends = n_below + np.cumsum(counts)
        k = int(np.searchsorted(ends, rank, side="right"))
        n_below, n_inside = int(ends[k] - counts[k]), int(counts[k])
        last = k == N_BINS - 1  # the only bin that its upper edge belongs to
        below_end = values <= high if last else values < edges[k + 1]
        low, high = passed_over(*extremes((values >= edges[k]) & below_end))
    if low == high:
        place = _Place(float(low), n_below, n_below + n_inside, np.inf)
    else:
        (few,) = passed_over(values[(values >= low) & (values <= high)])
        place = _place(few, rank - n_below)
        place = place._replace(below=n_below + place.below, not_above=n_below + place.not_above)
    if np.isinf(place.next_larger):  # none in the range: it lies beyond, or there is none
        (next_larger,) = passed_over(da.where(values > place.value, values, np.inf).min())
        place = place._replace(next_larger=float(next_larger))
    progress("threshold", n_passes, n_passes)
    return place, int(n_pixels)
