"""The convex problem of SegSALSA, made of given probabilities, and what a solver returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hsreject.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike

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
        """The gap as a fraction of the objective."""
        return self.gap / self.objective if self.objective > 0 else float(self.gap > 0)


@dataclass(frozen=True)
class Solution:
    """Where a solver stopped, and the certificates on its way there (the last one is its own)."""

    field: Array  # (y, category, x), on the simplex
    history: tuple[Checkpoint, ...]
    converged: bool


def valid_probability_pixels(probability: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which pixels of (category, y, x) have data, (y, x), or say what is wrong.

    Probabilities are NaN in every class of a pixel without data, else at least 0 with a sum of 1.
    """
    if probability.ndim != 3 or 0 in probability.shape:
        raise InputError(
            "probability must be a non-empty array with the axes (category, y, x) "
            f"(got shape {probability.shape})."
        )
    total = probability.sum(axis=0, dtype=np.result_type(probability, np.float32))
    least = probability.min()
    valid = np.ones(total.shape, dtype=np.bool_)
    if np.isnan(least):
        valid = _complete_pixels(probability)
        least = np.fmin.reduce(probability, axis=None)
    if not valid.any():
        raise InputError("probability is NaN in every pixel: there is nothing to solve.")
    if least < 0:
        raise InputError(
            f"probability must be at least 0 (found {least:g}). "
            "Pass the output of predict_proba, not scores or log-probabilities."
        )
    _check_sums(total if valid.all() else total[valid])
    return valid


def _complete_pixels(probability: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which pixels have all classes, (y, x), if the others have none."""
    n_missing = np.zeros(probability.shape[1:], dtype=np.int64)
    for plane in probability:
        n_missing += np.isnan(plane)
    partial = (n_missing > 0) & (n_missing < len(probability))
    if partial.any():
        row, column = np.argwhere(partial)[0]
        raise InputError(
            f"probability is NaN in some classes but not in all at {partial.sum()} pixels (first: "
            f"row {row}, column {column}). Set all classes to NaN where there is no data, or fill "
            "the missing ones with 0 and divide by the sum."
        )
    complete: NDArray[np.bool_] = n_missing == 0
    return complete


def _check_sums(total: NDArray[np.floating[Any]]) -> None:
    low, high = total.min(), total.max()
    if low == 0:
        raise InputError(
            f"probability is 0 in every class at {(total == 0).sum()} pixels. "
            "Set these pixels to NaN if they have no data."
        )
    if not max(1 - low, high - 1) <= SUM_TOLERANCE:
        raise InputError(
            f"probability must sum to 1 over 'category' (found sums from {low:.4g} to {high:.4g}). "
            "Divide by probability.sum('category'), or pass the output of predict_proba."
        )


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
    prior = np.asarray(class_prior, dtype=np.float64)
    if prior.shape != (n_classes,):
        raise InputError(
            f"class_prior must have one number per class, {n_classes} (got shape {prior.shape})."
        )
    if not (np.isfinite(prior).all() and (prior > 0).all()):
        raise InputError(
            f"class_prior must be finite and above 0 (got {prior.tolist()}). "
            "Give each class its share of the training samples."
        )
    return prior
