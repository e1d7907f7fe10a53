"""From given probabilities to the likelihoods of the problem, with every check at this boundary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import DTypeLike, NDArray

SUM_TOLERANCE = 1e-3  # float16 and rounded text files stay below it


def valid_probability_pixels(probability: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which pixels have data, (y, x), or say what is wrong with the probabilities.

    Parameters
    ----------
    probability : array, (category, y, x)
        NaN in every class of a pixel without data; else at least 0 and with sum 1.
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
) -> NDArray[np.floating[Any]]:
    """Return the likelihoods in the solvers' layout, (y, category, x); 1 where there is no data.

    With a class prior they are probability / prior, divided by their sum over the classes: a
    factor of each pixel changes the objective by a constant and the answer not at all.
    """
    n_classes, n_rows, n_columns = probability.shape
    arranged: NDArray[np.floating[Any]] = np.empty((n_rows, n_classes, n_columns), dtype)
    prior = np.ones(n_classes) if class_prior is None else checked_prior(class_prior, n_classes)
    for k, plane in enumerate(probability):  # plane by plane: no second copy of a large scene
        arranged[:, k] = plane if class_prior is None else plane / prior[k]
    if not valid.all():
        np.copyto(arranged, 1, where=~valid[:, np.newaxis])
    if class_prior is not None:
        scale = np.where(valid, arranged.sum(axis=1, dtype=np.float64), 1.0)
        arranged /= scale[:, np.newaxis].astype(dtype)
    return arranged


def checked_prior(
    class_prior: Sequence[float] | NDArray[Any], n_classes: int
) -> NDArray[np.float64]:
    """Return class priors, or say why they are none."""
    prior = np.asarray(class_prior, dtype=np.float64)
    if prior.shape != (n_classes,):
        raise InputError(
            f"class_prior must have one number a class, {n_classes} (got shape {prior.shape})."
        )
    if not (np.isfinite(prior).all() and (prior > 0).all()):
        raise InputError(
            f"class_prior must be finite and above 0 (got {prior.tolist()}). "
            "Give each class its share of the training samples."
        )
    return prior
