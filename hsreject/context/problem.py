"""The convex problem of SegSALSA, made of given probabilities, and how far a solver got."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from hsreject.errors import InputError
from hsreject.schema import real_array

if TYPE_CHECKING:
    from hsreject.context.prior import Term

Array = NDArray[np.floating[Any]]

WEAKEST, STRONGEST = 0.05, 15.0
SUM_TOLERANCE = 1e-3  # float16 and rounded text files stay below it


@dataclass(frozen=True)
class Problem:
    r"""Minimise :math:`\sum_i -\log(p_i'z_i) + \sum_j g_j(H_j Z)` over fields on the simplex.

    Where there is no data, p is 1 in every class, so that the data term is 0.
    """

    probability: Array  # p, (y, category, x)
    terms: tuple[Term, ...]  # the priors, bound to the grid

    @property
    def strength(self) -> float:
        """How strongly all priors pull together, which sets the step sizes.

        It is bounded: with weak priors longer steps gain nothing and cost digits; with strong ones
        the duals no longer grow with the weights, because they balance the data.
        """
        total = float(sum(term.strength for term in self.terms))
        return min(max(total, WEAKEST), STRONGEST)

    @property
    def rounding(self) -> float:
        """How precisely an objective can be reached: 8 roundings of one number per pixel."""
        n_rows, _, n_columns = self.probability.shape
        return float(8 * np.finfo(self.probability.dtype).eps * n_rows * n_columns)

    def uncertainty(self, objective: float) -> float:
        r"""How far a gap may lie below that of the probabilities and edges that were given.

        They were rounded to u = eps / 2, likelihoods twice: so the data term of a pixel is off by
        at most 2 u, and a prior by u times its value, both at Z and at the optimum, where the
        prior is at most F(Z). Sums of double precision add less than a rounding per pixel and sum.
        """
        n_rows, n_classes, n_columns = self.probability.shape
        eps = float(np.finfo(self.probability.dtype).eps)
        summed = float(np.finfo(np.float64).eps) * (n_rows + n_columns + n_classes)
        bound = 2 * eps * n_rows * n_columns + (eps + summed) * abs(objective)
        return bound if math.isfinite(bound) else math.inf

    def start(self) -> tuple[Array, tuple[Array, ...]]:
        """Return the Z and Y from which solvers start: the uniform field and zero duals."""
        shape = self.probability.shape
        uniform = np.full(shape, 1 / shape[1], self.probability.dtype)
        return uniform, tuple(term.new_dual() for term in self.terms)


@dataclass(frozen=True)
class Checkpoint:
    """The objective F of the field after some iterations, and its distance from the optimum."""

    n_iterations: int
    objective: float  # F(Z)
    gap: float  # the certificate: an upper bound of F(Z) - min F

    @property
    def relative_gap(self) -> float:
        """The gap as a fraction of the objective; infinite where that is infinite or no number."""
        if not math.isfinite(self.gap) or not math.isfinite(self.objective):
            return math.inf
        return self.gap / self.objective if self.objective > 0 else float(self.gap > 0)


def valid_probability_pixels(probability: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which pixels of (category, y, x) have data, (y, x), or say what is wrong.

    Probabilities are NaN in every class of a pixel without data, else at least 0 with a sum of 1.
    """
    if probability.ndim != 3 or 0 in probability.shape:
        raise InputError(
            "probability must be a non-empty array with the axes (category, y, x) "
            f"(got shape {probability.shape})."
        )
    least = np.fmin.reduce(probability, axis=None)
    if least < 0:
        raise InputError(
            f"probability must be at least 0 (found {least:g}). "
            "Pass the output of predict_proba, not scores or log-probabilities."
        )
    total = probability.sum(axis=0, dtype=np.result_type(probability, np.float32))
    valid: NDArray[np.bool_] = ~np.isnan(total)
    incomplete = ~valid
    if incomplete.any():  # plane by plane: no second copy of a large scene
        incomplete &= sum(np.isnan(plane) for plane in probability) < len(probability)
    if incomplete.any():
        row, column = np.argwhere(incomplete)[0]
        raise InputError(
            f"probability is NaN in some classes but not in all at {incomplete.sum()} pixels "
            f"(first: row {row}, column {column}). Set all classes to NaN where there is no data, "
            "or fill the missing ones with 0 and divide by the sum."
        )
    if not valid.any():
        raise InputError("probability is NaN in every pixel: there is nothing to solve.")
    sums = total[valid]
    low, high = sums.min(), sums.max()
    if low == 0:
        raise InputError(
            f"probability is 0 in every class at {(sums == 0).sum()} pixels. "
            "Set these pixels to NaN if they have no data."
        )
    if not max(1 - low, high - 1) <= SUM_TOLERANCE:
        raise InputError(
            f"probability must sum to 1 over 'category' (found sums from {low:.4g} to {high:.4g}). "
            "Divide by probability.sum('category'), or pass the output of predict_proba."
        )
    return valid


def likelihood(
    probability: NDArray[Any],
    valid: NDArray[np.bool_],
    class_prior: Sequence[float] | NDArray[Any] | None,
    dtype: DTypeLike,
) -> Array:
    """Return the likelihoods in the solvers' layout, (y, category, x); 1 where there is no data.

    With a class prior they are probability / prior, divided by their sum over the classes: a
    factor per pixel adds a constant to the objective and does not change the answer.
    """
    n_classes, n_rows, n_columns = probability.shape
    arranged: Array = np.empty((n_rows, n_classes, n_columns), dtype)
    prior = np.ones(n_classes) if class_prior is None else checked_prior(class_prior, n_classes)
    for k, plane in enumerate(probability):  # plane by plane: no second copy of a large scene
        arranged[:, k] = plane if class_prior is None else plane / prior[k]
    if not valid.all():
        # their data term is then -log(1'z) = 0 for every z, and no NaN enters the kernels
        np.copyto(arranged, 1, where=~valid[:, np.newaxis])
    if class_prior is not None:
        scale = np.where(valid, arranged.sum(axis=1, dtype=np.float64), 1.0)
        arranged /= scale[:, np.newaxis].astype(dtype)
    return arranged


def checked_prior(
    class_prior: Sequence[float] | NDArray[Any], n_classes: int
) -> NDArray[np.float64]:
    """Return class priors, one number above 0 per class, or say what is wrong with them."""
    prior = real_array(class_prior, name="class_prior", fill="1").astype(np.float64)
    if prior.shape != (n_classes,) or not (np.isfinite(prior).all() and (prior > 0).all()):
        raise InputError(
            f"class_prior must have one number per class, {n_classes}, finite and above 0 "
            f"(got {prior.tolist()}). Give each class its share of the training samples."
        )
    return prior
