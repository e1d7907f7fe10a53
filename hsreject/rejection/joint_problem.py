"""The joint problem of one scene: rejection as a class of its own, for any failure probability."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from dask.base import tokenize

from hsreject.confidence import label_map_of_positions
from hsreject.context.problem import checked_prior, valid_probability_pixels
from hsreject.errors import InputError
from hsreject.files import recall
from hsreject.keys import key_of
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.joint_search import Probe
from hsreject.rejection.novelty import UNKNOWN_BELOW, known_weight
from hsreject.schema import good_bands

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.context.segsalsa import SegSALSA
    from hsreject.rejection.evidence import Evidence

TOLERANCE = 1e-4
"""Relative gap of joint solves: at 1e-3 the rejected fraction still depends on the start."""

MOST_ITERATIONS = 20_000
"""Next to a jump of the rejected fraction two fields are nearly as good: solves take longer."""

SMALLEST_ODDS = 1e-9
"""Odds of failure that a search still looks at; their reciprocal is the largest."""

NO_OPINION = 1e-3
"""Largest class value below which a field says nothing about the class of a rejected pixel."""


@dataclass(frozen=True, eq=False)
class JointSolution:
    """What one solve says of each pixel (y, x), and of the optimum.

    :mod:`hsreject.rejection.joint_search` needs value and negative slope of the optimum, per pixel.
    The value is the certified lower bound: one too low, as of the coarser solve without rejection,
    makes a search try below the change, which is harmless.
    """

    category: NDArray[np.int32]  # of the largest class value; -1 without data or below `NO_OPINION`
    confidence: NDArray[np.float32]  # largest class value minus rejection; NaN without data
    objective: float = math.nan  # the value; NaN where unknown
    rejected_mass: float = math.nan  # the negative slope

    @classmethod
    def of_field(cls, field: NDArray[Any], n_classes: int, **numbers: float) -> JointSolution:
        """Return the solution of a hidden field of `n_classes` classes, then those of rejection."""
        category = field[:n_classes].argmax(axis=0).astype(np.int32)
        largest = field[:n_classes].max(axis=0)
        # summed class by class: the order of np.sum depends on the layout of the field
        confidence = largest - sum(field[n_classes:]) if len(field) > n_classes else largest
        beyond_doubt = (largest < NO_OPINION) & (confidence < 0)
        category[np.isnan(largest) | beyond_doubt] = -1
        return cls(category, confidence.astype(np.float32), **numbers)

    @property
    def rejected(self) -> NDArray[np.bool_]:
        """Pixels that are rejected, (y, x); False where there is no data."""
        return self.confidence < 0


class JointProblem:
    """The joint problem of one scene, solved for given failure probabilities, once each.

    Every solve starts cold, so that it depends on its failure probability alone: not on the order
    of the solves, nor on what was kept from an interrupted sweep. Warm starts were measured on
    Indian Pines with vector TV of weight 1 and 2, in sweeps of 20. From the context without
    rejection they gain nothing; from fixed failure probabilities in between they save 7 and 26 %
    of the iterations, but rejected fractions then move by up to 0.014, and every field and dual
    would have to be kept, in memory and on disk.

    Attributes
    ----------
    has_data : array of bool (y, x)
    unknown : array of bool (y, x), or None where novelty does not count
    solved : dict of float to JointSolution
        The finished solves by failure probability.
    n_solves : int
        Solves so far; those found in the folder `store` do not count.
    """

    def __init__(
        self,
        evidence: Evidence,
        *,
        context: SegSALSA,
        novelty: bool,
        rejection_classes: int,
        store: Path | None,
    ) -> None:
        self.evidence = evidence
        self.context = context
        self.rejection_classes = rejection_classes
        self.store = store
        values = np.asarray(evidence.probability.values)
        single = values.dtype.kind == "f" and values.dtype.itemsize <= 4
        self._probability: NDArray[np.floating] = values.astype(
            np.float32 if single else np.float64, copy=False
        )
        # checked here, so that messages speak of what was given, not of the class of rejection
        self.has_data: NDArray[np.bool_] = valid_probability_pixels(self._probability)
        self._check_hidden_field()
        p_value = evidence.novelty if novelty else None
        self._weight = None if p_value is None else known_weight(p_value)
        self.unknown: NDArray[np.bool_] | None = (
            None if p_value is None else (p_value < UNKNOWN_BELOW) & self.has_data
        )
        self.n_classes = len(values)
        prior = context.class_prior
        self._prior = None if prior is None else checked_prior(prior, self.n_classes)
        self._guided = self._with_image(context)
        self.solved: dict[float, JointSolution] = {}
        self.n_solves = 0

    @property
    def asked_of(self) -> NDArray[np.bool_]:
        """Pixels (y, x) that a rejected fraction refers to: with data, and not unknown."""
        pixels = self.has_data if self.unknown is None else self.has_data & ~self.unknown
        return pixels if pixels.any() else self.has_data

    def _check_hidden_field(self) -> None:
        """Raise where a known hidden field has no values though there is data."""
        hidden_field = self.evidence.hidden_field
        if hidden_field is None:
            return
        without = np.isnan(hidden_field.values).any(axis=0) & self.has_data
        if without.any():
            self.evidence.check_same_categories()
            raise InputError(
                "Pixels of the scene have class probabilities but no hidden_field "
                f"({without.sum()} of them). Pass the hidden field of these probabilities, or none."
            )

    def _with_image(self, context: SegSALSA) -> SegSALSA:
        """Return the context with what its priors take from the image, the same for every solve."""
        image = self.evidence.image
        if image is None:
            return context
        if not self.has_data.all():  # an edge to a pixel that is left out is no edge
            image = image.where(self.has_data)
        try:
            layers = context.guide(image)
        except InputError:  # edges given as an array need no image; of others, a solve will say why
            return context
        return context if layers is None else context.in_block(layers.values)

    @cached_property
    def _likelihood(self) -> NDArray[np.floating]:
        """Class probabilities, divided by the class prior if there is one, (category, y, x)."""
        if self._prior is None:
            return self._probability
        return np.asarray(self._probability / self._prior[:, np.newaxis, np.newaxis])

    @cached_property
    def rejects_all(self) -> float:
        """The failure probability from which on everything is rejected, whatever the prior.

        Where rejection is at least as likely as every class in every pixel, the constant field of
        rejection minimises the data term and the priors at once. Without class priors that is at
        1/2 or before, and the earlier the more novel all pixels are.
        """
        odds = self._likelihood if self._weight is None else self._likelihood * self._weight
        largest = min(max(float(np.nanmax(odds)), SMALLEST_ODDS), 1 / SMALLEST_ODDS)
        return largest / (1 + largest)

    @property
    def everything(self) -> Probe:
        """The end of the scale: everything is rejected, at -log of the odds of failure."""
        failure, _ = self._failure_and_sum(self.rejects_all)
        return Probe(self.rejects_all, 1.0, self._mean_log_ratio(1 - failure, failure), 1.0)

    def solve(
        self,
        q: float,
        *,
        n_threads: int | None = None,
        progress: ProgressCallback = no_progress,
    ) -> JointSolution:
        """Return the solution for one failure probability.

        With 0 this is the context itself: the known hidden field if there is one.
        """
        if q not in self.solved:
            if q == 0 and self.evidence.hidden_field is not None:
                field = np.where(self.has_data, self.evidence.hidden_field.values, np.nan)
                solution = JointSolution.of_field(field, self.n_classes, rejected_mass=0.0)
            else:
                solution = recall(
                    self._path(q),
                    lambda: self._solve(q, n_threads, progress),
                    read=self._read,
                    write=_write,
                )
            self.solved[q] = solution
        progress("context", 1, 1)
        return self.solved[q]

    def _solve(self, q: float, n_threads: int | None, progress: ProgressCallback) -> JointSolution:
        context = replace(self._guided, n_threads=n_threads or self.context.n_threads)
        probability = self._probability
        if q > 0:
            context = replace(
                context,
                tol=min(context.tol, TOLERANCE),
                max_iter=max(context.max_iter, MOST_ITERATIONS),
                class_prior=None,  # the likelihoods are divided by it already
            )
            probability = self._extended(q)
        self.n_solves += 1
        result = context.solve(
            probability,
            image=self.evidence.image,
            train=self.evidence.train,
            n_rejection_classes=len(probability) - self.n_classes,
            progress=progress,
        )
        # Values of G must be comparable from q to q, but the solver sees likelihoods that sum to 1:
        # the likelihoods of a pixel are s [p, odds of failure, ...] with s = (1 - q) / sum
        failure, total = self._failure_and_sum(q)
        # so each data term contains -log s, and the mean of log s takes it away
        log_scale = self._mean_log_ratio(1 - failure, total)
        return JointSolution.of_field(
            result.hidden_field,
            self.n_classes,
            objective=(result.objective - result.gap) / self.has_data.sum() + log_scale,
            rejected_mass=rejected_mass(result.hidden_field, probability, self.n_classes),
        )

    def _extended(self, q: float) -> NDArray[np.floating]:
        """Return [(1 - q) p, q, ..., q] (category, y, x), divided by its sum."""
        failure, total = self._failure_and_sum(q)
        shape = (self.n_classes + self.rejection_classes, *self.has_data.shape)
        extended = np.empty(shape, self._probability.dtype)
        np.multiply((1 - failure) / total, self._likelihood, out=extended[: self.n_classes])
        extended[self.n_classes :] = np.where(self.has_data, failure / total, np.nan)
        return extended

    def _mean_log_ratio(self, above: NDArray[np.float64], below: NDArray[np.float64]) -> float:
        """Return the mean log(above / below) over the pixels with data, of numbers or maps."""
        with np.errstate(divide="ignore", invalid="ignore"):  # where there is no data
            logs = np.broadcast_to(np.log(above / below), self.has_data.shape)
        return float(logs[self.has_data].mean())

    def _failure_and_sum(self, q: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return q with its odds divided by the weight of known pixels, and sum([(1 - q) p, q])."""
        failure = np.asarray(q, dtype=np.float64)
        if self._weight is not None and q > 0:
            # the weight is above 1/2 (`known_weight`), so nothing is divided by 0
            failure = q / (q + (1 - q) * self._weight)
        classes = np.asarray(1.0 if self._prior is None else self._likelihood.sum(axis=0))
        return failure, np.asarray((1 - failure) * classes + self.rejection_classes * failure)

    def _path(self, q: float) -> Path | None:
        """Return where a solve is kept, if there is a place and if all it depends on has a key."""
        if self.store is None or self._key is None:
            return None
        return self.store / f"{tokenize(self._key, float(q))}.npz"

    @cached_property
    def _key(self) -> str | None:
        """Hash of all that a solve depends on beside its failure probability."""
        arrays, image = self.evidence.token, self.evidence.image
        if arrays is None:
            # what a solve takes from it: attributes such as its CRS may change in a file
            seen = None if image is None else (image.values, good_bands(image))
            train = self.evidence.train
            labels = None if train is None else train.values
            arrays = tokenize(self._probability, self._weight, seen, labels)
        context = replace(self.context, n_threads=1)
        return key_of(arrays, self._weight is not None, context, self.rejection_classes)

    def _read(self, path: Path) -> JointSolution:
        """Return a kept solution, or raise where the file cannot be one of this problem."""
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            category, confidence = archive["category"], archive["confidence"]
            numbers = [float(archive[name]) for name in ("objective", "rejected_mass")]
        if (
            not category.shape == confidence.shape == self.has_data.shape
            or (category.dtype, confidence.dtype) != (np.int32, np.float32)
            or category.min() < -1
            or category.max() >= self.n_classes
        ):
            raise ValueError(path)
        return JointSolution(category, confidence, *numbers)

    def label(self, solution: JointSolution) -> xr.DataArray:
        """Return the label map of a solution: the largest of the K classes of its field.

        A pixel that is rejected beyond doubt has no class value left to compare; it gets the label
        that the context gives it without rejection.
        """
        category = solution.category
        if (category[self.has_data] < 0).any():
            category = np.where(category < 0, self.solve(0.0).category, category)
        position = np.where(self.has_data, category, self.n_classes)
        return label_map_of_positions(position, self.evidence.probability)


def rejected_mass(field: NDArray[Any], likelihood: NDArray[Any], n_classes: int) -> float:
    """Return the mean posterior probability of rejection over the pixels with data."""
    total = np.einsum("kyx,kyx->yx", field, likelihood)
    rejection = np.einsum("kyx,kyx->yx", field[n_classes:], likelihood[n_classes:])
    return float(np.nanmean(rejection / total, dtype=np.float64))


def _write(solution: JointSolution, path: Path) -> None:
    np.savez_compressed(path, **asdict(solution))
