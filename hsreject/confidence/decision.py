"""Label and confidence of a field: what every rejection by a threshold follows from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.confidence.field import WITH_REFERENCE, without_probability
from hsreject.confidence.label import (
    category_labels,
    label_map,
    label_map_of_positions,
    on_map_of,
)
from hsreject.schema import FIELD_DIMS, NO_REFERENCE, check_dims, nodata_label

if TYPE_CHECKING:
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
    >>> import xarray as xr
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


def reference_samples(
    reference: NDArray[np.integer],
    field: xr.DataArray,
    confidence: Confidence,
    *,
    probability: xr.DataArray,
) -> tuple[NDArray[np.bool_], NDArray[np.floating[Any]]]:
    """Return which pixels with a reference are right, and their confidences, both (sample).

    The same as picking those pixels from the maps of :func:`label_and_confidence`, but no map is
    made, and the other pixels are left alone where the confidence can.

    Parameters
    ----------
    reference : array of int (y, x)
        0 where there is no reference.
    field, confidence, probability
        As for :func:`label_and_confidence`.

    Returns
    -------
    correct : array of bool (sample)
        In row order.
    confidence : array of float (sample)
        NaN where there is no data.

    Examples
    --------
    >>> import xarray as xr
    >>> from hsreject.confidence import Margin
    >>> field = xr.DataArray(np.array([[[0.75, 0.375]], [[0.25, 0.625]]]), dims=FIELD_DIMS)
    >>> reference_samples(np.array([[0, 2]]), field, Margin(), probability=field)
    (array([ True]), array([0.25]))
    """
    if _is_lazy(field, probability):
        label, sure = label_and_confidence(field, confidence, probability=probability)
        found, confidences = label.values, sure.values
        n_without = int(
            (without_confidence(found, confidences) & (reference != NO_REFERENCE)).sum()
        )
        if n_without:
            raise without_probability(n_without, pixels=WITH_REFERENCE)
        return samples_of_maps(reference, found, confidences)
    field = check_dims(field, FIELD_DIMS, name="field")
    probability = check_dims(probability, FIELD_DIMS, name="probability")
    return confidence.samples(
        field.values,
        probability=probability.values,
        reference=reference,
        labels=category_labels(field),
    )


def samples_of_maps(
    reference: NDArray[np.integer],
    label: NDArray[np.unsignedinteger],
    confidence: NDArray[np.floating[Any]],
) -> tuple[NDArray[np.bool_], NDArray[np.floating[Any]]]:
    """Return which pixels with a reference have its label, and their confidences, both (sample).

    The label is ``schema.nodata_label`` where there is no data.
    """
    used = reference != NO_REFERENCE
    found = label[used]
    has_data = found != nodata_label(found.dtype)
    correct = np.asarray(found == reference[used])
    return correct & has_data, np.where(has_data, confidence[used], np.nan)


def without_confidence(
    label: NDArray[np.unsignedinteger], confidence: NDArray[np.floating[Any]]
) -> NDArray[np.bool_]:
    """Return which pixels have a label and no confidence, as they must not."""
    return np.asarray(np.isnan(confidence) & (label != nodata_label(label.dtype)))


def _is_lazy(*arrays: xr.DataArray) -> bool:
    # the property .chunks of xarray takes as long as a tenth of all that operating points need
    return any(hasattr(array.data, "chunks") for array in arrays)
