"""The joint problem of one scene: rejection as a class of its own, for any failure probability."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject import __version__
from hsreject.confidence import label_map_of_positions
from hsreject.confidence.field import OF_THE_SCENE
from hsreject.confidence.label import label_values
from hsreject.confidence.largest import precision_of
from hsreject.context.problem import checked_prior, valid_probability_pixels
from hsreject.errors import InputError
from hsreject.fingerprint import fingerprint
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.joint_solution import JointSolution, SolutionStore, rejected_mass
from hsreject.rejection.novelty_weight import known_weight
from hsreject.rejection.solve_progress import SolveProgress

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.context.segsalsa import SegSALSA
    from hsreject.rejection.evidence import Evidence

TOLERANCE = 1e-4
"""Relative gap of joint solves: at 1e-3 the rejected fraction still depends on the start."""

SMALLEST_ODDS = 1e-9
"""Of failure: below them nothing is looked for, however novel the pixels are.

Nor above their reciprocal, however rare a class is believed to be.
"""

MOST_ITERATIONS = 20_000
"""Next to a jump of the rejected fraction two fields are nearly as good, and solves take longer."""


class JointProblem:
    """The joint problem of one scene; solves it for given failure probabilities, once each.

    Every solve starts cold, so that it depends on its failure probability alone: not on the order
    of the solves, nor on what was kept from an interrupted sweep. Warm starts were measured on
    Indian Pines with vector TV of weight 1 and 2, in sweeps of 20. From the context without
    rejection they bring nothing; from fixed failure probabilities in between they save 7 and 26 %
    of the iterations, but rejected fractions then move by up to 0.014, and every field and dual
    would have to be kept, in memory and on disk.

    Parameters
    ----------
    evidence : Evidence
    context : SegSALSA
    novelty_exponent : float
        The odds of failure are divided by the novelty p-value to this power.
    rejection_classes : int
        Into how many equal classes rejection is divided.
    store : SolutionStore, optional
        Where finished solves are kept.

    Attributes
    ----------
    has_data : array of bool (y, x)
        Pixels with data.
    n_solves : int
        Solves so far, those found in the store not counted.
    """

    def __init__(
        self,
        evidence: Evidence,
        *,
        context: SegSALSA,
        novelty_exponent: float,
        rejection_classes: int = 1,
        store: SolutionStore | None,
    ) -> None:
        self.evidence = evidence
        self.context = context
        self.rejection_classes = rejection_classes
        self.store = store
        given = np.asarray(evidence.probability.values)
        self._probability: NDArray[np.floating] = given.astype(
            precision_of(given.dtype), copy=False
        )
        weight = known_weight(evidence, exponent=novelty_exponent)
        self._weight = None if weight is None else np.asarray(weight.values)
        # here, so that messages speak of what was given and not of the class of rejection
        self.has_data: NDArray[np.bool_] = valid_probability_pixels(self._probability)
        if context.class_prior is not None:
            checked_prior(context.class_prior, len(self._probability))
        self._check_hidden_field()
        self._key = fingerprint(
            __version__,
            self._probability,
            self._weight,
            evidence.image,
            replace(context, n_threads=1),
            rejection_classes,
        )
        self._solved: dict[str, JointSolution] = {}
        self.n_solves = 0

    @property
    def n_classes(self) -> int:
        """Number of classes, rejection not counted."""
        return len(self._probability)

    @property
    def rejects_all(self) -> float:
        """The failure probability from which on everything is rejected, whatever the prior.

        Where the rejection class is at least as likely as every other class in every pixel, the
        constant field of rejection minimises the data term and the priors at once. Without class
        priors that is at 1/2 or before, and the earlier the more novel all pixels are.
        """
        shape = (-1, 1, 1)
        prior = np.ones(1) if self.context.class_prior is None else self.context.class_prior
        odds = self._probability / np.reshape(prior, shape)
        if self._weight is not None:
            odds *= self._weight
        largest = min(max(float(np.nanmax(odds)), SMALLEST_ODDS), 1 / SMALLEST_ODDS)
        return largest / (1 + largest)

    def _check_hidden_field(self) -> None:
        """Raise where a known hidden field has no values though there is data."""
        hidden_field = self.evidence.hidden_field
        if hidden_field is None:
            return
        without = np.isnan(hidden_field.values).any(axis=0) & self.has_data
        if without.any():
            self.evidence.check_same_categories()
            raise InputError(
                f"{OF_THE_SCENE} have class probabilities but no hidden_field ({without.sum()} of "
                "them). Pass the hidden field of these probabilities, or none."
            )

    def likelihood(self, failure_probability: float | NDArray[Any]) -> NDArray[Any]:
        """Return [(1 - q) p, q] (category, y, x); novelty divides the odds of q by its weight.

        With n rejection classes it is [(1 - q) p, q, ..., q] / (1 + (n - 1) q).
        """
        q = self._failure(failure_probability)
        n_classes, *shape = self._probability.shape
        total = 1 + (self.rejection_classes - 1) * q
        extended = np.empty((n_classes + self.rejection_classes, *shape), self._probability.dtype)
        np.multiply((1 - q) / total, self._probability, out=extended[:n_classes])
        extended[n_classes:] = np.where(self.has_data, q / total, np.nan)
        return extended

    def _failure(self, failure_probability: float | NDArray[Any]) -> NDArray[np.float64]:
        """Return the failure probability, a map where novelty makes it one."""
        q = np.asarray(failure_probability, dtype=np.float64)
        if self._weight is None:
            return q
        q = np.broadcast_to(q, self.has_data.shape)
        known = (1 - q) * self._weight
        return np.asarray(np.divide(q, q + known, out=np.zeros_like(q), where=q > 0))

    def solve(
        self,
        failure_probability: float | NDArray[Any],
        *,
        n_threads: int | None = None,
        progress: ProgressCallback = no_progress,
    ) -> JointSolution:
        """Return the solution for one failure probability, a number or a map (y, x).

        Without any rejection this is the context itself: the known hidden field if there is one.
        """
        hidden_field = self.evidence.hidden_field
        if hidden_field is not None and not _rejects(failure_probability):
            known = np.where(self.has_data, hidden_field.values, np.nan)
            return JointSolution.of_field(
                known, n_classes=len(hidden_field), gap=np.nan, n_iterations=0
            )
        key = fingerprint(self._key, np.asarray(failure_probability, dtype=np.float64))
        solution = self._solved.get(key)
        if solution is None and self.store is not None:
            solution = self.store.load(key)
            if solution is not None and not solution.fits(self.has_data.shape, self.n_classes):
                solution = None
        if solution is None:
            solution = self._solve(failure_probability, n_threads, progress)
            if self.store is not None:
                self.store.save(key, solution)
        else:
            progress("context", 1, 1)
        self._solved[key] = solution
        return solution

    def _solve(
        self,
        failure_probability: float | NDArray[Any],
        n_threads: int | None,
        progress: ProgressCallback,
    ) -> JointSolution:
        context, probability = self.context, self._probability
        threads = n_threads or context.n_threads
        if _rejects(failure_probability):
            prior = context.class_prior
            context = replace(
                context,
                tol=min(context.tol, TOLERANCE),
                max_iter=max(context.max_iter, MOST_ITERATIONS),
                class_prior=None if prior is None else (*prior, *[1.0] * self.rejection_classes),
                n_threads=threads,
            )
            probability = self.likelihood(failure_probability)
        elif threads != context.n_threads:
            context = replace(context, n_threads=threads)
        self.n_solves += 1
        result = context.solve(probability, image=self.evidence.image, progress=progress)
        objective = result.objective + self._log_scale(failure_probability)
        return JointSolution.of_field(
            result.hidden_field,
            n_classes=self.n_classes,
            gap=result.relative_gap,
            n_iterations=result.n_iterations,
            objective=objective / self.has_data.sum(),
            rejected_mass=rejected_mass(result.hidden_field, probability, self.n_classes),
        )

    @property
    def rejecting_all_costs(self) -> float:
        """The objective (see `Probe`) of rejecting everything at the end of the scale."""
        if self.context.class_prior is not None:
            return np.nan
        q = np.broadcast_to(self._failure(self.rejects_all), self.has_data.shape)[self.has_data]
        with np.errstate(divide="ignore"):
            return float(np.log((1 - q) / q).mean())

    def _log_scale(self, failure_probability: float | NDArray[Any]) -> float:
        """Return the sum of log s, where the likelihood is s [p, odds of failure] in a pixel."""
        if self.context.class_prior is not None:
            return np.nan
        q = self._failure(failure_probability)
        with np.errstate(divide="ignore", invalid="ignore"):  # pixels without data
            logs = np.log((1 - q) / (1 + (self.rejection_classes - 1) * q))
        return float(logs[self.has_data].sum() if logs.ndim else logs * self.has_data.sum())

    def solve_all(
        self, failure_probabilities: Sequence[float], *, workers: int, progress: SolveProgress
    ) -> list[JointSolution]:
        """Return the solutions of several failure probabilities, `workers` at a time.

        When it is interrupted, the solves that were finished stay in the store.
        """
        if workers == 1:
            return [self.solve(q, progress=progress.of_solve()) for q in failure_probabilities]
        with ThreadPoolExecutor(workers) as pool:
            futures = {  # larger ones take longer and go first, so that the workers end together
                q: pool.submit(self.solve, q, n_threads=1, progress=progress.of_solve())
                for q in sorted(failure_probabilities, reverse=True)
            }
            try:
                return [futures[q].result() for q in failure_probabilities]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def rejected_fraction(self, solution: JointSolution) -> float:
        """Return the rejected share of the pixels with data."""
        return float(solution.rejected[self.has_data].mean())

    def label(self, solution: JointSolution) -> xr.DataArray:
        """Return the label map of a solution: the largest of the K classes of its field."""
        return label_map_of_positions(self._category(solution), self.evidence.probability)

    def labels(self, solutions: Sequence[JointSolution]) -> NDArray[np.unsignedinteger]:
        """Return the values of the label maps of several solutions, (solution, y, x)."""
        values = label_values(self.evidence.probability)
        return np.stack([values[self._category(solution)] for solution in solutions])

    def _category(self, solution: JointSolution) -> NDArray[np.integer]:
        """Return where the label of each pixel stands along the classes; K without data.

        A pixel that is rejected beyond doubt has no class value left to compare; it gets the label
        that the context gives it without rejection.
        """
        category = solution.category
        if (category[self.has_data] < 0).any():
            category = np.where(category < 0, self.solve(0.0).category, category)
        return np.where(self.has_data, category, self.n_classes)


def _rejects(failure_probability: float | NDArray[Any]) -> bool:
    """Return whether anything can be rejected; a map may be NaN where there is no data."""
    return bool(np.any(np.asarray(failure_probability) > 0))
