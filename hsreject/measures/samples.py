"""From maps to samples: the pixels that have both a reference and data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject import schema
from hsreject.errors import InputError
from hsreject.measures import inputs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

ConfidenceT_co = TypeVar("ConfidenceT_co", bound=NDArray[Any] | None, covariant=True)


@dataclass(frozen=True)
class EvaluationSamples(Generic[ConfidenceT_co]):
    """The pixels of a map that can be evaluated, as flat arrays in row order.

    Attributes
    ----------
    reference, label : ndarray of int, shape (n,)
        True and assigned class.
    confidence : ndarray of float, shape (n,), or None
        None when no confidence map was given.
    rejected : ndarray of bool, shape (n,), or None
        None when no rejection map was given.
    row, column : ndarray of int, shape (n,)
        Where the pixels lie: what spatial resampling needs.
    n_without_data : int
        Pixels with a reference that were left out because they have no data.
    sample_weight : ndarray, shape (n,), or None
        What each sample stands for; None when no weights were given.
    """

    reference: NDArray[Any]
    label: NDArray[Any]
    confidence: ConfidenceT_co
    rejected: NDArray[np.bool_] | None
    row: NDArray[np.intp]
    column: NDArray[np.intp]
    n_without_data: int
    sample_weight: NDArray[Any] | None = None

    @property
    def correct(self) -> NDArray[np.bool_]:
        """The paper's accuracy vector a."""
        return np.asarray(self.reference == self.label)

    def at(self, field: ArrayLike | xr.DataArray) -> NDArray[Any]:
        """Pick the values of another (y, x) map, such as area weights, at these pixels."""
        if isinstance(field, xr.DataArray):
            field = schema.check_dims(field, schema.MAP_DIMS, name="map")
        return np.asarray(field)[self.row, self.column]


@overload
def evaluation_samples(
    reference: ArrayLike | xr.DataArray,
    label: ArrayLike | xr.DataArray,
    confidence: ArrayLike | xr.DataArray,
    *,
    rejected: ArrayLike | xr.DataArray | None = ...,
    sample_weight: ArrayLike | xr.DataArray | None = ...,
    nodata: int | None = ...,
) -> EvaluationSamples[NDArray[Any]]: ...
@overload
def evaluation_samples(
    reference: ArrayLike | xr.DataArray,
    label: ArrayLike | xr.DataArray,
    confidence: None = ...,
    *,
    rejected: ArrayLike | xr.DataArray | None = ...,
    sample_weight: ArrayLike | xr.DataArray | None = ...,
    nodata: int | None = ...,
) -> EvaluationSamples[None]: ...
def evaluation_samples(
    reference: ArrayLike | xr.DataArray,
    label: ArrayLike | xr.DataArray,
    confidence: ArrayLike | xr.DataArray | None = None,
    *,
    rejected: ArrayLike | xr.DataArray | None = None,
    sample_weight: ArrayLike | xr.DataArray | None = None,
    nodata: int | None = None,
) -> EvaluationSamples[NDArray[Any] | None]:
    """Choose the pixels that have a reference and data, ready for the measures.

    Parameters
    ----------
    reference : (y, x) array of int
        True classes; 0, or the `_FillValue` of a DataArray, where there is no reference.
    label : (y, x) array of int
        Assigned classes *before* rejection: the class of a rejected pixel decides whether its
        rejection was right.
    confidence : (y, x) array of float, optional
        Larger is more certain; NaN where there is no data.
    rejected : (y, x) array of bool, optional
        Where the map rejects.
    sample_weight : (y, x) array of float, optional
        What each reference pixel stands for, such as the size of its stratum over the number
        drawn from it.
    nodata : int, optional
        The label that means "no data"; the largest value of an unsigned label type when not given.

    Returns
    -------
    EvaluationSamples
        The pixels as flat arrays; its method `at` reads another map at the same pixels.

    See Also
    --------
    hsreject.rejection_curve : takes what it returns.
    hsreject.evaluate : does everything at once.

    Examples
    --------
    >>> from hsreject import evaluation_samples
    >>> import numpy as np
    >>> reference = np.array([[1, 2], [0, 2]])
    >>> label = np.array([[1, 1], [1, 2]], dtype="uint8")
    >>> samples = evaluation_samples(reference, label, np.array([[0.9, 0.4], [0.8, np.nan]]))
    >>> samples.correct, samples.confidence, samples.n_without_data
    (array([ True, False]), array([0.9, 0.4]), 1)
    """
    plain = inputs.same_layout(
        {
            "reference": reference,
            "label": label,
            "confidence": confidence,
            "rejected": rejected,
            "sample_weight": sample_weight,
        }
    )
    if plain["reference"].ndim != 2:
        raise InputError(f"reference must be a map (y, x) (got shape {plain['reference'].shape}).")
    for name in ("reference", "label"):
        schema.check_label_type(plain[name].dtype, name=name)
    if "rejected" in plain:
        inputs.rejected_values(plain["rejected"])
    plain["reference"] = schema.reference_values(
        plain["reference"], fill=schema.fill_value(reference), name="reference"
    )
    has_reference = plain["reference"] != schema.NO_REFERENCE
    if not has_reference.any():
        raise InputError(
            "There are no reference pixels: reference is 0 everywhere. Give a reference map with "
            "class values from 1."
        )
    used = has_reference & _has_data(plain, nodata)
    if not used.any():
        raise InputError(
            f"None of the {np.count_nonzero(has_reference)} reference pixels has data. Check that "
            "the maps show the same place and which value means no data."
        )
    if (lowest := plain["label"][used].min()) < 0:
        raise InputError(
            f"label holds {lowest} at reference pixels, which is not a class: classes start at 1 "
            "(int8 has room for 127 of them). If it means no data, give it as nodata."
        )
    n_rejected = np.count_nonzero(plain["label"][used] == schema.REJECTED)
    if n_rejected:
        raise InputError(
            f"label is 0 at {n_rejected} reference pixels. If 0 means rejected, give the labels "
            "before rejection and the rejection as 'rejected'; if it means no data, say nodata=0."
        )
    row, column = np.nonzero(used)
    return EvaluationSamples(
        reference=plain["reference"][used],
        label=plain["label"][used],
        confidence=plain["confidence"][used] if "confidence" in plain else None,
        rejected=plain["rejected"][used] if "rejected" in plain else None,
        row=row,
        column=column,
        n_without_data=int(np.count_nonzero(has_reference) - row.size),
        sample_weight=inputs.weight_values(plain["sample_weight"][used])
        if "sample_weight" in plain
        else None,
    )


def _has_data(plain: dict[str, NDArray[Any]], nodata: int | None) -> NDArray[np.bool_]:
    """Tell where the label is not `nodata` and the confidence is not NaN."""
    label = plain["label"]
    if nodata is None and label.dtype.kind == "u":
        nodata = schema.nodata_label(label.dtype)
    has_data = np.ones(label.shape, dtype=bool) if nodata is None else label != nodata
    if "confidence" in plain:
        has_data &= ~np.isnan(plain["confidence"])
    return np.asarray(has_data)
