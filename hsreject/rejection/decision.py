"""From a goal to a threshold: the one rule of the library, of runs, maps and evaluations."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.measures.choosing import (
    ACCURACY,
    FRACTION,
    MAX_ERROR,
    THRESHOLD,
    Goal,
    choose_point,
)
from hsreject.measures.curve import counts_of
from hsreject.measures.point import OperatingPoint
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.ranking import Ranking, Stack
from hsreject.rejection.thresholds import threshold_for_fraction
from hsreject.schema import NO_REFERENCE, OPERATING_POINT

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
