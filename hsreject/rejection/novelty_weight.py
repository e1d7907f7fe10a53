"""How a novelty p-value enters a rejection: as the weight with which a pixel counts as known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hsreject.errors import InputError
from hsreject.schema import CATEGORY

if TYPE_CHECKING:
    import xarray as xr

    from hsreject.confidence import Confidence
    from hsreject.rejection.evidence import Evidence

DEFAULT_LEVEL = 0.05


def check_level(level: float) -> None:
    """Raise unless `level` is a significance level."""
    if not 0 < level <= 1:
        raise InputError(f"novelty_level must lie in (0, 1] (got {level}); 0.05 is usual.")


def known_weight(evidence: Evidence, *, level: float) -> xr.DataArray | None:
    """Return how far each pixel counts as known, min(1, p-value / level), or None without p-values.

    A p-value above `level` is no sign of novelty and changes nothing; below it the weight falls in
    proportion. As p-values of known classes are uniform or larger, no more than a share `level` of
    the known pixels is touched.
    """
    p_value = evidence.novelty_p_value
    if p_value is None:
        return None
    missing = p_value.isnull() & evidence.probability.notnull().all(CATEGORY)
    outside = (p_value < 0) | (p_value > 1)
    if bool((missing | outside).any()):
        raise InputError(
            f"novelty_p_value must lie in [0, 1] wherever there are probabilities "
            f"({int(missing.sum())} values are missing, {int(outside.sum())} lie outside)."
        )
    return (p_value / level).clip(max=1.0)


def field_confidence(
    confidence: Confidence, field: xr.DataArray, evidence: Evidence, *, level: float
) -> xr.DataArray:
    """Return the confidence of a field, lowered where the pixel looks like no training sample.

    With w the known weight and b the lowest confidence that the field could have,
    ``b + w (c - b)``: the product with the confidence, also where confidences are negative.
    """
    found = confidence(field, probability=evidence.probability)
    weight = known_weight(evidence, level=level)
    if weight is None:
        return found
    lowest = confidence.lowest(field.sizes[CATEGORY])
    weighted: xr.DataArray = lowest + weight.astype(found.dtype) * (found - lowest)
    return weighted.rename("confidence").assign_attrs(found.attrs)
