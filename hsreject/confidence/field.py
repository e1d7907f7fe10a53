"""A field and the class probabilities beside it, on plain arrays: do they fit, have both data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.confidence.largest import precision_of
from hsreject.errors import InputError
from hsreject.schema import check_no_mask

if TYPE_CHECKING:
    from numpy.typing import NDArray

WITH_REFERENCE = "Pixels with a reference"
OF_THE_SCENE = "Pixels of the scene"


def plain_field(values: Any, *, name: str) -> NDArray[Any]:
    """Return a field given as an array, or say that some of it is masked."""
    check_no_mask(values, name=name, remedy=f"Fill them with NaN (no data): {name}.filled(np.nan).")
    return np.asarray(values)


def in_one_precision(
    field: NDArray[Any], probability: NDArray[Any] | None
) -> tuple[NDArray[np.floating], NDArray[np.floating] | None]:
    """Return both in one precision, or say why they do not fit."""
    if field.ndim < 1 or len(field) == 0:
        raise InputError(
            f"field must have at least one category along its first axis (shape {field.shape})."
        )
    precision = precision_of(field.dtype)
    if probability is not None:
        check_shapes(field.shape, probability.shape)
        probability = probability.astype(precision, copy=False)
    return field.astype(precision, copy=False), probability


def check_shapes(field: tuple[int, ...], probability: tuple[int, ...]) -> None:
    """Raise unless the probabilities have the shape of the field."""
    if field != probability:
        raise InputError(
            f"probability must have the shape of field (got {probability} and {field}). "
            "Pass the probabilities from which this hidden field was computed."
        )


def at_pixels(field: NDArray[Any], pixels: NDArray[np.intp]) -> NDArray[Any]:
    """Return the pixels of a field (category, ...) that are asked for, (category, pixel)."""
    # "clip" spares the check of every position; and unlike [:, pixels], planes stay in one piece
    return field.reshape(len(field), -1).take(pixels, axis=1, mode="clip")


def check_probability(field: NDArray[np.floating], probability: NDArray[np.floating]) -> None:
    """Raise where a pixel with a reference has a field, but no class probabilities.

    Parameters
    ----------
    field, probability : arrays (category, pixel)
        At pixels with a reference.
    """
    without = np.isnan(probability.min(axis=0))  # NaN where any category is
    if without.any():
        without &= ~np.isnan(field.min(axis=0))
    if without.any():
        raise without_probability(int(without.sum()), pixels=WITH_REFERENCE)


def without_probability(n_pixels: int, *, pixels: str) -> InputError:
    """Return the error of pixels that have a field, but no class probabilities."""
    return InputError(
        f"{pixels} have a field but no class probabilities ({n_pixels} of them). "
        "Pass the probabilities from which this hidden field was computed."
    )
