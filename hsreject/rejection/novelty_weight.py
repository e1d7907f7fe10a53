"""How a novelty p-value enters a rejection: as the weight with which a pixel counts as known."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hsreject.errors import InputError
from hsreject.schema import CATEGORY, NO_REFERENCE

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.rejection.evidence import Evidence

MapOrPixels = TypeVar("MapOrPixels", "xr.DataArray", "NDArray[np.floating[Any]]")

DEFAULT_EXPONENT = 1 / 3
"""Separates unknown classes of Indian Pines nearly as well as the p-value alone does.

The plain product (exponent 1) separates them a little better, but costs a point of accuracy at 10 %
rejected when all classes are known, of which the cube root leaves a third (`hsreject novelty`).
"""


def check_exponent(exponent: Any) -> None:
    """Raise unless `exponent` is a number from 0."""
    if not isinstance(exponent, Real) or not 0 <= float(exponent) < np.inf:
        raise InputError(
            f"novelty_exponent must be a number, at least 0 and finite (got {exponent}); "
            "0 ignores novelty, 1 multiplies with the p-value."
        )


def known_weight(evidence: Evidence, *, exponent: float) -> xr.DataArray | None:
    """Return how far each pixel counts as known, p-value ** exponent, or None without p-values."""
    p_value = _checked_p_value(evidence)
    return None if p_value is None else p_value**exponent


def lowered_by_novelty(
    confidence: xr.DataArray, evidence: Evidence, *, exponent: float, lowest: float
) -> xr.DataArray:
    """Return a confidence (y, x), lowered where the pixel looks like no training sample.

    With w the known weight and b the lowest confidence that there could be, ``b + w (c - b)``: the
    product with the confidence, also where confidences are negative.
    """
    weight = known_weight(evidence, exponent=exponent)
    if weight is None:
        return confidence
    return _weighted(confidence, weight, lowest).rename("confidence").assign_attrs(confidence.attrs)


def samples_lowered_by_novelty(
    reference: NDArray[np.integer],
    confidence: NDArray[np.floating],
    evidence: Evidence,
    *,
    exponent: float,
    lowest: float,
) -> NDArray[np.floating]:
    """Return confidences of the pixels with a reference, as :func:`lowered_by_novelty` would."""
    p_value = _checked_p_value(evidence)
    if p_value is None:
        return confidence
    known = p_value.values[reference != NO_REFERENCE]
    return _weighted(confidence, known**exponent, lowest)


def _checked_p_value(evidence: Evidence) -> xr.DataArray | None:
    p_value = evidence.novelty_p_value
    if p_value is None:
        return None
    if p_value.dtype.kind not in "fiub":
        raise InputError(f"novelty_p_value must hold real numbers (got {p_value.dtype}).")
    has_data = evidence.probability.notnull().all(CATEGORY)
    missing = p_value.isnull() & has_data
    outside = ((p_value < 0) | (p_value > 1)) & has_data
    if bool((missing | outside).any()):
        raise InputError(
            f"novelty_p_value must lie in [0, 1] wherever there are probabilities "
            f"({int(missing.sum())} values are missing, {int(outside.sum())} lie outside)."
        )
    return p_value


def _weighted(confidence: MapOrPixels, weight: MapOrPixels, lowest: float) -> MapOrPixels:
    weighted: MapOrPixels = lowest + weight.astype(confidence.dtype) * (confidence - lowest)
    return weighted
