"""Joint rejection (SegSALSA-JCR): rejection is one more class of the hidden field."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.context.segsalsa import SegSALSA
from hsreject.errors import InputError
from hsreject.measures.choosing import ACCURACY, FRACTION, Goal
from hsreject.progress import ProgressCallback, no_progress
from hsreject.registry import check_count, check_number
from hsreject.rejection.evidence import Evidence
from hsreject.rejection.joint_problem import JointProblem
from hsreject.rejection.joint_search import (
    JointPoint,
    everything_rejected,
    search_fraction,
    sweep_fractions,
)
from hsreject.rejection.ranking import Stack
from hsreject.rejection.rejector import (
    FAILURE_PROBABILITY,
    Rejector,
    check_context,
    check_novelty,
    default_context,
)
from hsreject.schema import OPERATING_POINT, REJECTION_COST, reference_pixels
from hsreject.threads import usable_cores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.rejection.decision import Calibration


@dataclass(frozen=True)
class JointRejector(Rejector):
    """Rejects where failure of the classifier explains a region best: the paper's SegSALSA-JCR.

    The context gets one more class, whose likelihood is the probability q of classifier failure,
    the same in every pixel (paper, section V-B)::

        p~_i = [(1 - q) p_i, q]

    A pixel is rejected where that class has the largest value of the hidden field; its label is the
    largest of the other classes of the same field, so labels and their accuracy change with q. The
    `confidence` is the difference of these two values, negative where the pixel is rejected; of
    several rejection classes the values are added up.

    Users do not choose q: nothing is rejected up to some value, and half the scene soon after. They
    ask for a fraction, an accuracy or a cost, and q is searched for. Each q is a solve of its own,
    to a relative gap of 1e-4, that depends on nothing but q: results are the same in any order and
    for any number of workers. The fraction grows with q, as far as that gap decides it.

    Sequential rejection ranks pixels; here whole regions are rejected, right labels included, and
    larger ones the stronger the context is (on Indian Pines, at a fraction of 0.25, over 90 % of
    the rejected pixels lie in regions of a hundred and more). Dividing rejection into several
    classes (`rejection_classes`) lets smaller regions be rejected: vector TV counts n equal classes
    as one whose differences are 1 / sqrt(n) as large. Accuracy of the kept pixels minus that of
    sequential rejection at equal fractions, in points (Indian Pines, ten training pixels per class,
    mean of five draws; ``make bench ONLY=rejection``):

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
    fraction_tol : float
        How near the rejected fraction must come to the one asked for. The fraction is a step
        function of q: where it jumps across that value, the nearer side is taken and both
        sides are reported as `reachable_fractions`. The attribute `search` says why a search ended:
        "near enough", "jump" or "out of solves".
    n_points : int
        Solves of a sweep over all fractions, which operating points, accuracies and costs need.
    rejection_classes : int
        Into how many equal classes rejection is divided; 1 is the paper's rule. On Indian Pines a
        solve with 4 takes a quarter fewer iterations and keeps more accuracy.
    novelty : bool
        Whether a `p_value` (y, x) of :class:`hsreject.Novelty` in the maps counts: the odds of
        failure are divided by (1 + min(1, p / 0.1)) / 2, and pixels with p below 0.025 are
        `unknown` and rejected in any case, in addition to what is asked for.
    n_workers : int, optional
        Solves that run at the same time in a sweep; by default one per core.
    store : str or Path, optional
        Folder in which finished solves are kept. An interrupted sweep continues from there; solves
        of other inputs or settings are never mistaken for its own.

    See Also
    --------
    hsreject.SequentialRejector : one solve instead of many.
    hsreject.SegSALSA : the context inside.
    hsreject.compare_rejectors : compares both.

    Examples
    --------
    The right half is unlike anything the classifier knows:

    >>> import numpy as np
    >>> from hsreject import JointRejector
    >>> probability = np.full((4, 8, 8), 0.02)
    >>> probability[0] = 0.94
    >>> probability[:, :, 4:] = 0.25
    >>> import hsreject as hr
    >>> context = hr.SegSALSA(hr.VectorTV(weight=0.5))
    >>> maps = JointRejector(context).reject(probability, fraction=0.5)
    >>> maps.label_with_rejection.values[0]
    array([1, 1, 1, 1, 0, 0, 0, 0], dtype=uint8)
    >>> maps.attrs["reachable_fractions"], maps.attrs["n_solves"] <= 12
    ([0.5, 0.5], True)
    """

    indifferent_options = ("n_workers", "store")

    context: SegSALSA = field(default_factory=default_context)
    _: KW_ONLY
    fraction_tol: float = 0.005
    n_points: int = 20
    rejection_classes: int = 1
    novelty: bool = True
    n_workers: int | None = field(default=None, repr=False)
    store: str | Path | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_context(self.context)
        check_novelty(self.novelty)
        check_number("fraction_tol", self.fraction_tol, above=0, below=1)
        check_count("n_points", self.n_points, least=2)
        check_count("rejection_classes", self.rejection_classes, least=1)
        if self.n_workers is not None:
            check_count("n_workers", self.n_workers, least=1)
        if self.store is not None and not isinstance(self.store, str | PathLike):
            raise InputError(f"store must be the path of a folder (got {self.store!r}).")

    def reject(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        *,
        fraction: float | None = None,
        threshold: float | None = None,
        accuracy: float | None = None,
        rejection_cost: float | None = None,
        failure_probability: float | None = None,
        calibration: Calibration | None = None,
        progress: ProgressCallback = no_progress,
    ) -> xr.Dataset:
        """Return the maps of one rejection (see :meth:`hsreject.Rejector.reject`).

        `failure_probability` is the paper's parameter itself, in [0, 1). It has no `threshold`.
        """
        requested = {FRACTION: fraction, ACCURACY: accuracy, REJECTION_COST: rejection_cost}
        if failure_probability is not None:
            q = check_number(FAILURE_PROBABILITY, failure_probability, least=0, below=1)
            if any(one is not None for one in requested.values()):
                Goal.one_of({**requested, FAILURE_PROBABILITY: q})  # raises: there are two
            problem = self._problem(maps)
            found = JointPoint(q, problem.solve(q, progress=progress))
            return _stack(problem, [found]).at(0, attrs={"rejector": repr(self)})
        return super().reject(
            maps,
            **requested,
            threshold=threshold,
            calibration=calibration,
            progress=progress,
        )

    def rank(
        self,
        maps: xr.Dataset | xr.DataArray | NDArray[Any],
        *,
        fraction: float | None = None,
        reference: xr.DataArray | NDArray[Any] | None = None,
        progress: ProgressCallback = no_progress,
    ) -> Stack:
        """Return the maps of a sweep (see :meth:`hsreject.Rejector.rank`).

        They are placed where the rejected fraction of the reference pixels changes, without a
        reference that of all pixels. The first rejects nothing, the last everything; one more is
        searched for a `fraction`.
        """
        problem = self._problem(maps)
        if fraction is not None and reference is None:
            return _stack(problem, [self._search(problem, fraction, progress)])
        # without rejection every pixel with data has a label, so these are all that can be measured
        used = problem.has_data
        if reference is not None:
            used, _ = reference_pixels(problem.label(problem.solve(0.0)), reference)
        n_workers = self.n_workers or usable_cores()
        sweep = sweep_fractions(
            problem, used, n_points=self.n_points, n_workers=n_workers, progress=progress
        )
        candidates = [*sweep, everything_rejected(problem)]
        if fraction is not None:
            near = self._search(problem, fraction, progress)
            if all(near.failure_probability != one.failure_probability for one in candidates):
                candidates.append(near)
        return _stack(problem, candidates)

    def _problem(self, maps: xr.Dataset | xr.DataArray | NDArray[Any]) -> JointProblem:
        return JointProblem(
            Evidence.of(maps),
            context=self.context,
            novelty=self.novelty,
            rejection_classes=self.rejection_classes,
            store=None if self.store is None else Path(self.store),
        )

    def _search(
        self, problem: JointProblem, fraction: float, progress: ProgressCallback
    ) -> JointPoint:
        return search_fraction(problem, fraction, fraction_tol=self.fraction_tol, progress=progress)


def _stack(problem: JointProblem, candidates: list[JointPoint]) -> Stack:
    """Return the maps of solves, with what was reached in their attributes."""
    label = xr.concat([problem.label(one.solution) for one in candidates], dim=OPERATING_POINT)
    confidence = np.stack([one.solution.confidence for one in candidates])
    # 0, where the field itself decides; infinity at the end of the scale, which rejects everything
    threshold = np.reshape([one.threshold for one in candidates], (-1, 1, 1))
    facts = []
    for one in candidates:
        found: dict[str, Any] = {"threshold": one.threshold}
        if one.reachable is not None:
            found |= {"reachable_fractions": list(one.reachable), "search": one.ended}
        of_problem = {FAILURE_PROBABILITY: one.failure_probability, "n_solves": problem.n_solves}
        facts.append(found | of_problem)
    return Stack(
        label,
        label.copy(data=confidence).drop_attrs(deep=False).rename("confidence"),
        None if problem.unknown is None else label[0].copy(data=problem.unknown).drop_attrs(),
        rejected=label.copy(data=(confidence < threshold) & problem.has_data).drop_attrs(),
        facts=facts,
    )
