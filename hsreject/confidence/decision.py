"""Label and confidence of a field: what every rejection by a threshold follows from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hsreject.confidence.label import label_map, label_map_of_positions, on_map_of
from hsreject.schema import FIELD_DIMS, check_dims

if TYPE_CHECKING:
    import xarray as xr

    from hsreject.confidence.base import Confidence


def label_and_confidence(
    field: xr.DataArray, confidence: Confidence, *, probability: xr.DataArray
) -> tuple[xr.DataArray, xr.DataArray]:
    """Return the label and the confidence of every pixel, both (y, x).

    The same as :func:`label_map` and calling the confidence, in one pass over the memory where the
    confidence can. Lazy where the field is.

    Parameters
    ----------
    field : DataArray (category, y, x)
        Class probabilities or a hidden field.
    confidence : Confidence
    probability : DataArray (category, y, x)
        The class probabilities, for confidences that look at them.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> from hsreject.confidence import Margin
    >>> field = xr.DataArray(np.array([[[0.75, 0.375]], [[0.25, 0.625]]]), dims=FIELD_DIMS)
    >>> label, confidence = label_and_confidence(field, Margin(), probability=field)
    >>> label.values, confidence.values
    (array([[1, 2]], dtype=uint8), array([[0.5 , 0.25]]))
    """
    if field.chunks is not None or probability.chunks is not None:
        return label_map(field), confidence(field, probability=probability)
    field = check_dims(field, FIELD_DIMS, name="field")
    probability = check_dims(probability, FIELD_DIMS, name="probability")
    position, sure = confidence.decide(field.values, probability=probability.values)
    label = label_map_of_positions(position, field)
    return label, on_map_of(field, sure, name="confidence")
