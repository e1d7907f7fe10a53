"""Label and confidence of a field: what every rejection by a threshold follows from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hsreject.confidence.label import (
    label_map,
    label_map_of_positions,
    label_values,
    on_map_of,
)
from hsreject.schema import FIELD_DIMS, MAP_DIMS, check_dims

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from numpy.typing import NDArray

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
    if _is_lazy(field, probability):
        return label_map(field), confidence(field, probability=probability)
    field = check_dims(field, FIELD_DIMS, name="field")
    probability = check_dims(probability, FIELD_DIMS, name="probability")
    position, sure = confidence.decide(field.values, probability=probability.values)
    label = label_map_of_positions(position, field)
    return label, on_map_of(field, sure, name="confidence")


def label_and_confidence_at(
    pixels: NDArray[np.intp],
    field: xr.DataArray,
    confidence: Confidence,
    *,
    probability: xr.DataArray,
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.floating[Any]]]:
    """Return the label and the confidence of some pixels, both (pixel) and in memory.

    The same as picking them from the maps of :func:`label_and_confidence`, but no map is made, and
    what is known of the other pixels is left alone where the confidence can.

    Parameters
    ----------
    pixels : array of int (pixel)
        Positions in row order, ascending.
    field, confidence, probability
        As for :func:`label_and_confidence`.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> from hsreject.confidence import Margin
    >>> field = xr.DataArray(np.array([[[0.75, 0.375]], [[0.25, 0.625]]]), dims=FIELD_DIMS)
    >>> label_and_confidence_at(np.array([1]), field, Margin(), probability=field)
    (array([2], dtype=uint8), array([0.25]))
    """
    if _is_lazy(field, probability):
        label, sure = label_and_confidence(field, confidence, probability=probability)
        return picked(label, pixels), picked(sure, pixels)
    field = check_dims(field, FIELD_DIMS, name="field")
    probability = check_dims(probability, FIELD_DIMS, name="probability")
    position, found = confidence.decide(field.values, probability=probability.values, pixels=pixels)
    return label_values(field).take(position, mode="clip"), found


def picked(values: xr.DataArray, pixels: NDArray[np.intp]) -> NDArray[Any]:
    """Return some pixels of a map (y, x), by their positions in row order."""
    found: NDArray[Any] = check_dims(values, MAP_DIMS, name=str(values.name)).values.ravel()[pixels]
    return found


def _is_lazy(*arrays: xr.DataArray) -> bool:
    # the property .chunks of xarray takes as long as a tenth of all that operating points need
    return any(hasattr(array.data, "chunks") for array in arrays)
