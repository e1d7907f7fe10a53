"""Confidences rank pixels by how certain their label is; label and confidence are decided here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import xlogy

from hsreject.errors import InputError
from hsreject.registry import Registry
from hsreject.schema import (
    CATEGORY,
    FIELD_DIMS,
    check_dims,
    label_values,
    nodata_label,
    plain_field,
)
from hsreject.schema.classes import ClassTable

Floats = NDArray[np.floating[Any]]
ArrayT = TypeVar("ArrayT", xr.DataArray, NDArray[Any])


class Confidence(ABC):
    """How certain the label of a pixel is, computed from its field; rejectors keep the largest.

    A field has one number per category and pixel: class probabilities or the hidden field of the
    context, nonnegative and with sum 1 over the categories. The label is the first category with
    the largest value. Some confidences also look at the class probabilities from which a hidden
    field was computed.

    Subclasses implement :meth:`kernel` on plain arrays; calling the object takes care of NumPy,
    xarray (coordinates kept, dask-backed arrays stay lazy) and pixels without data (NaN in, NaN
    out). A line in `CONFIDENCES` makes it available by name and enrols it in the property tests.
    Sum over the categories in a loop, as below: the rounding of ``np.sum`` and ``np.einsum``
    depends on the memory layout, and equal pixels must get equal confidences.

    See Also
    --------
    hsreject.PixelwiseRejector : ranks pixels by one.
    hsreject.SequentialRejector : ranks the hidden field by one.

    Examples
    --------
    The Gini purity, a confidence in a few lines:

    >>> import numpy as np
    >>> import xarray as xr
    >>> from hsreject import Confidence
    >>> class Purity(Confidence):
    ...     '''Sum of squares of the field: 1 where one category has everything.'''
    ...
    ...     def kernel(self, field, probability):
    ...         return sum(plane * plane for plane in field)
    >>> field = np.array([[[1.0, 0.5, np.nan]], [[0.0, 0.5, np.nan]]])  # (category, y, x)
    >>> Purity()(field)
    array([[1. , 0.5, nan]])
    >>> Purity()(xr.DataArray(field, dims=("category", "y", "x"))).dims
    ('y', 'x')
    """

    needs_probability: ClassVar[bool] = False
    """Whether the confidence needs the class probabilities beside the field."""

    @abstractmethod
    def kernel(self, field: Floats, probability: Any) -> Floats:
        """Return the confidence of every pixel.

        Parameters
        ----------
        field : array (category, ...)
            NaN in every category where there is no data: what comes out there is not used.
        probability : array (category, ...) or None
            Of the same shape and precision; None unless `needs_probability` is true.

        Returns
        -------
        array (...)
        """

    def __call__(
        self, field: ArrayT, *, probability: xr.DataArray | NDArray[Any] | None = None
    ) -> ArrayT:
        """Return the confidence of every pixel, NaN where there is no data.

        Parameters
        ----------
        field : DataArray with a dimension `category`, or array (category, ...)
            Class probabilities or a hidden field, usually (category, y, x).
        probability : the same, optional
            The class probabilities from which a hidden field was computed.
        """
        named = _with_dims(field)
        positions = np.arange(named.sizes[CATEGORY] + 1)
        confidence = _decided(named, self, probability, positions)[1]
        return confidence if isinstance(field, xr.DataArray) else confidence.values


def label_and_confidence(
    field: ArrayT,
    confidence: Confidence,
    probability: xr.DataArray | NDArray[Any] | None = None,
) -> tuple[ArrayT, ArrayT]:
    """Return the label and the confidence of every pixel: what every threshold works on.

    The label is that of the first category with the largest value, ``schema.nodata_label`` without
    data. The confidence has the precision of the field. Both are lazy where the field is.
    """
    named = _with_dims(field)
    values = label_values(named)
    label, certainty = _decided(named, confidence, probability, values)
    if not isinstance(field, xr.DataArray):
        return label.values, certainty.values
    return label.assign_attrs(_label_attrs(named, values)), certainty


def label_map(field: xr.DataArray) -> xr.DataArray:
    """Return the label map (y, x) of a field (category, y, x), with its class table."""
    return label_and_confidence(check_dims(field, FIELD_DIMS, name="field"), Maximum())[0]


def label_map_of_positions(position: NDArray[np.integer], field: xr.DataArray) -> xr.DataArray:
    """Return the label map of positions (y, x) along `category`, on the grid of a field.

    Positions count from 0; the number of categories means that there is no data.
    """
    values = label_values(field)
    on_grid = check_dims(field, FIELD_DIMS, name="field").isel({CATEGORY: 0}, drop=True)
    label = on_grid.copy(data=values[position]).rename("label")
    return label.drop_attrs().assign_attrs(_label_attrs(field, values))


def _label_attrs(field: xr.DataArray, values: NDArray[Any]) -> dict[str, Any]:
    """Return the attributes of a label map: its nodata and the class table of the field."""
    table = ClassTable.from_attrs(field.attrs) or ClassTable.plain(values[:-1].tolist())
    return {"_FillValue": nodata_label(values.dtype), **table.to_attrs()}


def _with_dims(field: xr.DataArray | NDArray[Any]) -> xr.DataArray:
    """Return a field whose dimension `category` is known, or say what it lacks."""
    if not isinstance(field, xr.DataArray):
        plain = plain_field(field, name="field")
        field = xr.DataArray(plain, dims=[CATEGORY, *(f"axis_{n}" for n in range(1, plain.ndim))])
    if CATEGORY not in field.dims:
        raise InputError(
            f"field must have the dimension '{CATEGORY}' "
            f"(got {', '.join(map(str, field.dims))}). "
            "Pass class probabilities or a hidden field with dims (category, y, x)."
        )
    if field.sizes[CATEGORY] == 0:
        raise InputError(f"field must have at least one category (got the shape {field.shape}).")
    return field


def _decided(
    field: xr.DataArray,
    confidence: Confidence,
    probability: xr.DataArray | NDArray[Any] | None,
    labels: NDArray[Any],
) -> tuple[xr.DataArray, xr.DataArray]:
    """Return label and confidence; `labels` has one entry per category and one for no data."""
    arrays = [field]
    if confidence.needs_probability:
        arrays.append(_on_grid_of(field, probability, confidence))
    single = field.dtype.kind == "f" and field.dtype.itemsize <= 4
    precision = np.dtype(np.float32 if single else np.float64)
    label, certainty = xr.apply_ufunc(
        _decide_arrays,
        *(array if array.chunks is None else array.chunk({CATEGORY: -1}) for array in arrays),
        kwargs={"confidence": confidence, "labels": labels, "precision": precision},
        input_core_dims=[[CATEGORY]] * len(arrays),
        output_core_dims=[[], []],
        dask="parallelized",
        output_dtypes=[labels.dtype, precision],
        keep_attrs=True,  # those of coordinates: the reference system is one
    )
    label, certainty = (array.drop_attrs(deep=False) for array in (label, certainty))
    return label.rename("label"), certainty.rename("confidence")


def _decide_arrays(
    field: NDArray[Any],
    probability: NDArray[Any] | None = None,
    *,
    confidence: Confidence,
    labels: NDArray[Any],
    precision: np.dtype[np.floating],
) -> tuple[NDArray[Any], Floats]:
    """Return label and confidence of arrays (..., category): xarray puts the categories last."""
    field = np.moveaxis(field, -1, 0).astype(precision, copy=False)
    # NaN and infinity show in the extremes
    usable = np.isfinite(field.max(axis=0)) & np.isfinite(field.min(axis=0))
    label = np.where(usable, _at_label(field, labels[:-1]), labels[-1])
    if probability is not None:
        probability = np.moveaxis(probability, -1, 0).astype(precision, copy=False)
        usable &= ~np.isnan(probability[0])
    with np.errstate(invalid="ignore", divide="ignore"):  # pixels without data
        certainty = confidence.kernel(field, probability)
    return label, np.where(usable, certainty, np.nan).astype(precision, copy=False)


def _at_label(field: Floats, values: NDArray[Any]) -> NDArray[Any]:
    """Return what `values` hold at the label; they are (category, ...), or one per category.

    From the last category to the first, so that the first of equal ones stays. np.argmax along the
    first axis takes twice as long, because it copies the field.
    """
    largest = field.max(axis=0)
    at_label = np.zeros(largest.shape, values.dtype)
    for plane, value in zip(field[::-1], values[::-1], strict=True):
        np.copyto(at_label, value, where=plane == largest)
    return at_label


def _on_grid_of(
    field: xr.DataArray,
    probability: xr.DataArray | NDArray[Any] | None,
    confidence: Confidence,
) -> xr.DataArray:
    """Return the class probabilities on the grid of the field, or say why they do not fit."""
    if probability is None:
        raise InputError(
            f"The confidence {confidence!r} needs the class probabilities beside the field. "
            "Pass probability=..., or choose 'maximum', 'margin' or 'entropy'."
        )
    if isinstance(probability, xr.DataArray):
        probability = probability.transpose(*field.dims, missing_dims="ignore").data
    else:
        probability = plain_field(probability, name="probability")
    if probability.shape != field.shape:
        raise InputError(
            f"probability must have the shape of field (got {probability.shape} and "
            f"{field.shape}). Pass the probabilities from which this hidden field was computed."
        )
    return field.copy(data=probability)


@dataclass(frozen=True)
class Maximum(Confidence):
    """The largest value of the field, max_k z_k: the paper's maximum probability (section V-A).

    Lies in [1/K, 1]. On a hidden field it has many ties, because the field saturates at 1;
    :class:`TieBrokenMaximum` orders those.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject.confidence import Maximum
    >>> Maximum()(np.array([[0.7, 0.4], [0.2, 0.3], [0.1, 0.3]]))  # (category, pixel)
    array([0.7, 0.4])
    """

    def kernel(self, field: Floats, probability: Any) -> Floats:
        """Return max_k z_k."""
        return np.asarray(field.max(axis=0))


@dataclass(frozen=True)
class TieBrokenMaximum(Confidence):
    """The largest value of the hidden field and a little of the probability of that class.

    With k the label, the first category with the largest z::

        confidence = (z_k + weight * p_k) / (1 + weight)

    which lies in [0, 1] and is 1 exactly where context and classifier are both certain. A hidden
    field saturates: most of its pixels have max z within the solver's tolerance of 1, so max z
    alone is full of ties in a meaningless order. The probability decides between pixels whose z
    differ by less than `weight`; where z differs by more, z decides.

    Parameters
    ----------
    weight : float
        Weight of the probability, above 0. The default, 1e-3, is a rule of thumb: about as far as
        the context is solved by default, so that smaller differences of z say little.

    Examples
    --------
    Two saturated pixels that the classifier distinguishes, and one on a border of two regions:

    >>> import numpy as np
    >>> from hsreject.confidence import TieBrokenMaximum
    >>> field = np.array([[1.0, 1.0, 0.6], [0.0, 0.0, 0.4]])  # (category, pixel)
    >>> probability = np.array([[0.9, 0.3, 0.9], [0.1, 0.7, 0.1]])
    >>> TieBrokenMaximum()(field, probability=probability).round(4)
    array([0.9999, 0.9993, 0.6003])
    """

    weight: float = 1e-3

    needs_probability: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.weight < np.inf:
            raise InputError(
                f"weight must be above 0 and finite (got {self.weight}). "
                "For no tie-break choose the confidence 'maximum'."
            )

    def kernel(self, field: Floats, probability: Any) -> Floats:
        """Return (z_k + w p_k) / (1 + w) at the label k."""
        # In float64: near 1 a float32 sum would leave the probability only four digits.
        largest = field.max(axis=0).astype(np.float64)
        likely = _at_label(field, probability).astype(np.float64)
        return np.asarray((largest + self.weight * likely) / (1 + self.weight))


@dataclass(frozen=True)
class Margin(Confidence):
    """The largest minus the second largest value: the paper's breaking ties (section V-A).

    Lies in [0, 1]; a field of one category has no rival, so its margin is its value.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject.confidence import Margin
    >>> Margin()(np.array([[0.75, 0.25], [0.25, 0.5], [0.0, 0.25]]))  # (category, pixel)
    array([0.5 , 0.25])
    """

    def kernel(self, field: Floats, probability: Any) -> Floats:
        """Return the difference of the two largest z, in one pass over the categories."""
        largest = np.array(field[0])
        second = np.full_like(largest, -np.inf if len(field) > 1 else 0)
        for plane in field[1:]:
            second = np.maximum(second, np.minimum(largest, plane))
            largest = np.maximum(largest, plane)
        return np.asarray(largest - second)


@dataclass(frozen=True)
class Entropy(Confidence):
    """The negative entropy of the field, sum_k z_k log z_k with 0 log 0 = 0.

    Lies in [-log K, 0]: 0 where one category has everything, -log K where all are equal.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject.confidence import Entropy
    >>> Entropy()(np.array([[1.0, 0.5], [0.0, 0.5]])).round(4)  # (category, pixel)
    array([ 0.    , -0.6931])
    """

    def kernel(self, field: Floats, probability: Any) -> Floats:
        """Return sum_k z_k log z_k, one category at a time."""
        total: Floats = np.zeros_like(field[0])
        for plane in field:
            total += xlogy(plane, plane)
        return total


@dataclass(frozen=True)
class Posterior(Confidence):
    """The probability of the label given hidden field and pixel, p_k z_k / p'z.

    The hidden field z holds the class probabilities of the surroundings, p those of the pixel
    itself; k is the label, the first category with the largest z. Lies in [0, 1]; it is 0 where the
    classifier gives no probability to any class that the field allows.

    Examples
    --------
    The pixel disagrees with its surroundings:

    >>> import numpy as np
    >>> from hsreject.confidence import Posterior
    >>> field, probability = np.array([[0.75], [0.25]]), np.array([[0.25], [0.75]])
    >>> Posterior()(field, probability=probability)
    array([0.5])
    """

    needs_probability: ClassVar[bool] = True

    def kernel(self, field: Floats, probability: Any) -> Floats:
        """Return p_k z_k / p'z at the label k."""
        joint = field.max(axis=0) * _at_label(field, probability)
        total = np.zeros(field.shape[1:], field.dtype)
        for plane, likelihood in zip(field, probability, strict=True):
            total += plane * likelihood
        safe: Floats = np.divide(joint, total, out=np.zeros_like(total), where=total != 0)
        return safe


CONFIDENCES: Registry[Confidence] = Registry(
    "confidence",
    {
        "maximum": Maximum,
        "tie_broken_maximum": TieBrokenMaximum,
        "margin": Margin,
        "entropy": Entropy,
        "posterior": Posterior,
    },
)


def named_confidence(confidence: str | Confidence) -> Confidence:
    """Return the confidence of that name with its defaults, or the object itself."""
    if isinstance(confidence, str):
        return CONFIDENCES.create(confidence)
    if not isinstance(confidence, Confidence):
        raise InputError(
            f"confidence must be a name, such as 'margin', or an object, such as Margin() "
            f"(got {confidence!r})."
        )
    return confidence
