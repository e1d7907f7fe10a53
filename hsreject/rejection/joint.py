"""Joint rejection (SegSALSA-JCR): rejection is one more class of the hidden field."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.base import Rejector
from hsreject.rejection.choice import calibrated_index, needed_calibration
from hsreject.rejection.evidence import Evidence
from hsreject.rejection.given_maps import failure_probabilities, pixels_within
from hsreject.rejection.goal import FRACTION, Goal
from hsreject.rejection.joint_points import (
    FAILURE_PROBABILITY,
    SCENE_FRACTION,
    joint_points,
    known_probes,
)
from hsreject.rejection.joint_problem import JointProblem
from hsreject.rejection.joint_solution import SolutionStore
from hsreject.rejection.joint_sweep import Found, search_fraction, sweep_fractions
from hsreject.rejection.maps import rejection_maps
from hsreject.rejection.novelty_weight import DEFAULT_EXPONENT, check_exponent
from hsreject.rejection.reference import reference_pixels
from hsreject.rejection.sequential import check_context, default_context
from hsreject.schema import MAP_DIMS, OPERATING_POINT
from hsreject.threads import usable_cores

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from hsreject.rejection.calibration import Calibration


@dataclass(frozen=True)
class JointRejector(Rejector):
    """Rejects where failure of the classifier explains a region best: the paper's SegSALSA-JCR.

    The context gets one more class, whose likelihood is the probability q of classifier failure,
    the same in every pixel (paper, section V-B)::

        p~_i = [(1 - q) p_i, q]

    A pixel is rejected where that class has the largest value of the hidden field; its label is the
    largest of the other classes of the same field, so labels and their accuracy change with q. The
    `confidence` is the difference of these two values, negative where the pixel is rejected.

    q is no dial for users: nothing is rejected up to some value, and half the scene soon after. So
    a fraction, an accuracy or a cost is asked for, and q is searched. Each q is a solve of its own,
    to a relative gap of 1e-4, that depends on nothing but q: results are the same in any order and
    for any number of workers. The fraction grows with q up to what that gap leaves open.

    Sequential rejection ranks pixels; here whole regions fall (on Indian Pines, at a fraction of
    0.25, over 90 % of the rejected pixels lie in regions of a hundred and more), right labels
    included, and the more so the stronger the context. Dividing rejection into several classes
    (`rejection_classes`) ties it less: vector TV counts n equal classes as one whose differences
    are 1 / sqrt(n) as large. Accuracy kept above that of sequential rejection at equal fractions,
    in points (Indian Pines, ten training pixels a class, mean of five draws; ``make bench
    ONLY=rejection``):

    ====== ======= ====== ====== ====== ======
    weight classes r=0.1  r=0.2  r=0.3  r=0.4
    ====== ======= ====== ====== ====== ======
    1      1       +0.17  +0.91  +1.14  +1.87
    1      4       +0.54  +1.32  +1.89  +1.94
    2      1       -0.26  -0.76  -1.37  -0.76
    2      4       +0.25  -0.10  -0.26  +0.47
    ====== ======= ====== ====== ====== ======

    Parameters
    ----------
    context : SegSALSA
        The context; by default vector TV of weight 1.
    tolerance : float
        How near the rejected fraction must come to a wanted one. The fraction is a step function
        of q: where it jumps across the wanted value, the nearer side is taken and both sides are
        reported as `reachable_fractions`. The attribute `search` says why a search ended: "near
        enough", "jump" or "out of solves".
    n_points : int
        Solves of a sweep.
    rejection_classes : int
        Into how many equal classes rejection is divided; 1 is the paper's rule. On Indian Pines a
        solve with 4 takes a quarter fewer iterations and keeps more accuracy.
    novelty_exponent : float
        The odds of failure are divided by ``novelty_p_value ** novelty_exponent`` when the maps
        hold novelty p-values: 0 ignores them.
    workers : int, optional
        Solves that run at the same time in a sweep; by default one a core.
    store : str or Path, optional
        Folder in which finished solves are kept. An interrupted sweep goes on from there; solves of
        other inputs or settings are never mistaken for it.

    Examples
    --------
    The right half looks like nothing that the classifier knows:

    >>> probability = np.full((4, 8, 8), 0.02)
    >>> probability[0] = 0.94
    >>> probability[:, :, 4:] = 0.25
    >>> from hsreject.context.priors import VectorTV
    >>> maps = JointRejector(SegSALSA(VectorTV(weight=0.5))).reject(probability, fraction=0.5)
    >>> maps.label_with_rejection.values[0]
    array([1, 1, 1, 1, 0, 0, 0, 0], dtype=uint8)
    >>> maps.attrs["reachable_fractions"], maps.attrs["n_solves"] <= 12
    ([0.5, 0.5], True)
    """

    context: SegSALSA = field(default_factory=default_context)
    _: KW_ONLY
    tolerance: float = 0.005
    n_points: int = 20
    rejection_classes: int = 1
    novelty_exponent: float = DEFAULT_EXPONENT
    workers: int | None = field(default=None, repr=False)  # these two change nothing of the result
    store: str | Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_context(self.context)
        check_exponent(self.novelty_exponent)
        _check_types(self.tolerance, self.store)
        counts = {"n_points": 2, "rejection_classes": 1, "workers": 1}
        for name, least in counts.items():
            value = getattr(self, name)
            whole = isinstance(value, Integral) or (name == "workers" and value is None)
            if not whole or (value is not None and value < least):
                raise InputError(
                    f"{name} must be a whole number, at least {least} (got {value!r})."
                )

    def reject(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        *,
        fraction: float | None = None,
        failure_probability: float | xr.DataArray | NDArray[Any] | None = None,
        accuracy: float | None = None,
        rejection_cost: float | None = None,
        calibration: Calibration | None = None,
        points: xr.Dataset | None = None,
        progress: ProgressCallback = no_progress,
    ) -> xr.Dataset:
        """Return the maps of one rejection (see :meth:`hsreject.rejection.Rejector.reject`).

        `failure_probability` is the paper's parameter itself, in [0, 1): a number, or a map (y, x).
        """
        goal = Goal.one_of(
            {
                FRACTION: fraction,
                FAILURE_PROBABILITY: None if failure_probability is None else 0.0,
                "accuracy": accuracy,
                "rejection_cost": rejection_cost,
            }
        )
        problem = self._problem(maps)
        attrs: dict[str, Any] = {"rejector": repr(self)}
        if failure_probability is not None:
            given = failure_probabilities(failure_probability, problem.evidence.probability)
            return _maps(problem, Found(given, problem.solve(given, progress=progress)), attrs)
        attrs[goal.name] = goal.value
        if goal.name == FRACTION:
            known = [] if points is None else known_probes(points, problem)
            found = search_fraction(
                problem, goal.value, known, tolerance=self.tolerance, progress=progress
            )
            return _maps(problem, found, attrs)
        pixels = needed_calibration(calibration, goal.name)
        used, _ = pixels.pixels(problem.label(problem.solve(0.0)))
        sweep = self._sweep(problem, used, progress)
        points, founds = joint_points(problem, sweep, pixels.labels)
        return _maps(problem, founds[calibrated_index(points, goal)], attrs)

    def sweep(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        *,
        within: xr.DataArray | NDArray[np.bool_] | None = None,
        progress: ProgressCallback = no_progress,
    ) -> xr.Dataset:
        """Return the maps of `n_points` failure probabilities, placed where the fraction changes.

        Parameters
        ----------
        maps : Dataset, DataArray or array
            As for :meth:`reject`.
        within : DataArray or array of bool (y, x), optional
            The pixels whose rejected fraction decides where points are placed; by default all that
            have data.
        progress : callable
            Called with ("joint sweep", solves done, solves in all).

        Returns
        -------
        Dataset
            `label`, `confidence` and `rejected` (operating_point, y, x), and over `operating_point`
            `failure_probability` (ascending), `rejected_fraction` (of the pixels `within`),
            `scene_fraction` (of all pixels with data), `n_iterations` and `gap`.
        """
        problem = self._problem(maps)
        mask = problem.has_data
        if within is not None:
            mask = mask & pixels_within(within, problem.evidence.probability)
        if not mask.any():
            raise InputError("There is no pixel with data within which to count rejections.")
        sweep = self._sweep(problem, mask, progress)
        like = problem.label(sweep[0].solution)
        stacked = (OPERATING_POINT, *MAP_DIMS)
        label = problem.labels([found.solution for found in sweep])
        fraction = [float(found.solution.rejected[mask].mean()) for found in sweep]
        return xr.Dataset(
            {
                "label": (stacked, label, like.attrs),
                "confidence": (stacked, np.stack([f.solution.confidence for f in sweep])),
                "rejected": (stacked, np.stack([f.solution.rejected for f in sweep])),
                FAILURE_PROBABILITY: (
                    OPERATING_POINT,
                    [float(f.failure_probability) for f in sweep],
                ),
                "rejected_fraction": (OPERATING_POINT, fraction),
                SCENE_FRACTION: (
                    OPERATING_POINT,
                    [problem.rejected_fraction(f.solution) for f in sweep],
                ),
                "n_iterations": (OPERATING_POINT, [f.solution.n_iterations for f in sweep]),
                "gap": (OPERATING_POINT, [f.solution.gap for f in sweep]),
            },
            coords=like.coords,
            attrs={"rejector": repr(self)},
        )

    def operating_points(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        reference: xr.DataArray | NDArray[Any],
        *,
        calibration: Calibration | None = None,
        progress: ProgressCallback = no_progress,
    ) -> xr.Dataset:
        """Return the operating points of a sweep on reference pixels; it learns from no others.

        Points are placed where the rejected fraction of the reference pixels changes. The first has
        nothing rejected, the last everything. Beside the variables of every rejector there are
        `failure_probability` and `scene_fraction`, the rejected share of all pixels with data, from
        which :meth:`reject` can start a search; `overall_accuracy` differs from point to point.
        """
        problem = self._problem(maps)
        used, _ = reference_pixels(problem.label(problem.solve(0.0)), reference)
        points, _ = joint_points(problem, self._sweep(problem, used, progress), reference)
        return points

    def _problem(self, maps: xr.Dataset | xr.DataArray | NDArray[Any]) -> JointProblem:
        return JointProblem(
            Evidence.of(maps),
            context=self.context,
            novelty_exponent=self.novelty_exponent,
            rejection_classes=self.rejection_classes,
            store=None if self.store is None else SolutionStore(self.store),
        )

    def _sweep(
        self, problem: JointProblem, within: NDArray[np.bool_], progress: ProgressCallback
    ) -> list[Found]:
        return sweep_fractions(
            problem,
            within,
            n_points=self.n_points,
            workers=self.workers or usable_cores(),
            progress=progress,
        )


def _check_types(tolerance: object, store: object) -> None:
    """Raise unless the tolerance is a number between 0 and 1, and the store a path or None."""
    if not isinstance(tolerance, Real) or not 0 < float(tolerance) < 1:
        raise InputError(f"tolerance must be a number between 0 and 1 (got {tolerance!r}).")
    if store is not None and not isinstance(store, str | PathLike):
        raise InputError(f"store must be the path of a folder (got {store!r}).")


def _maps(problem: JointProblem, found: Found, attrs: dict[str, Any]) -> xr.Dataset:
    label = problem.label(found.solution)
    confidence = xr.DataArray(
        found.solution.confidence, dims=MAP_DIMS, coords=label.coords, name="confidence"
    )
    if found.reachable is not None:
        attrs |= {"reachable_fractions": list(found.reachable), "search": found.ended}
    if np.ndim(found.failure_probability) == 0:
        attrs[FAILURE_PROBABILITY] = float(found.failure_probability)
    attrs["n_solves"] = problem.n_solves
    return rejection_maps(label, confidence, threshold=found.threshold, attrs=attrs)
