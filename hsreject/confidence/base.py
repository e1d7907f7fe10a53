"""The contract of a confidence: one number a pixel, larger where the label is surer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np
import xarray as xr

from hsreject.confidence.field import (
    at_pixels,
    check_probability,
    check_shapes,
    in_one_precision,
    plain_field,
)
from hsreject.confidence.label import on_map_of, whole_categories
from hsreject.confidence.largest import first_largest, precision_of
from hsreject.errors import InputError
from hsreject.schema import CATEGORY, NO_REFERENCE

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Confidence(ABC):
    """How sure the label of a pixel is, read from its field; rejectors keep the largest.

    A field has one number a category and pixel: class probabilities or the hidden field of the
    context, nonnegative and with sum 1 over the categories. The label is the first category with
    the largest value. Some confidences also look at the class probabilities from which a hidden
    field was computed.

    Subclasses implement :meth:`kernel` on plain arrays; calling the object takes care of NumPy,
    xarray (coordinates kept, dask-backed arrays stay lazy) and pixels without data (NaN in, NaN
    out). A line in ``hsreject/confidence/__init__.py`` makes it available by name and enrols it in
    the property tests. Sum over the categories in a loop, as below: the rounding of ``np.sum`` and
    ``np.einsum`` depends on the memory layout, and equal pixels must get equal confidences.

    Examples
    --------
    The Gini purity, a confidence in a few lines:

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
    def kernel(
        self, field: NDArray[np.floating], probability: NDArray[np.floating] | None
    ) -> NDArray[np.floating]:
        """Return the confidence of every pixel.

        Parameters
        ----------
        field : array (category, ...)
            NaN in every category where there is no data: what comes out there is not used.
        probability : array (category, ...) or None
            Of the same shape; never None when `needs_probability` is true.

        Returns
        -------
        array (...)
            In the precision of `field`.
        """

    def labelled_kernel(
        self, field: NDArray[np.floating], probability: NDArray[np.floating] | None
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.floating]]:
        """Return where the label of every pixel stands along the categories, and :meth:`kernel`.

        To be overridden where both come from one pass over the field.
        """
        return first_largest(field).position, self.kernel(field, probability)

    def sampled_kernel(
        self,
        field: NDArray[np.floating],
        probability: NDArray[np.floating] | None,
        reference: NDArray[np.integer],
        labels: NDArray[np.integer],
    ) -> tuple[NDArray[np.bool_], NDArray[np.floating]]:
        """Return which pixels with a reference have its label, and their confidences.

        To be overridden where that takes no gathering of pixels first:
        :class:`~hsreject.confidence.at_label.LabelConfidence` does it for confidences that look at
        nothing but the label. Fields without probabilities are for
        :func:`~hsreject.confidence.field.check_probability`.
        """
        pixels = np.flatnonzero(reference != NO_REFERENCE)
        field = at_pixels(field, pixels)
        if probability is not None:
            probability = at_pixels(probability, pixels)
            check_probability(field, probability)
        with np.errstate(invalid="ignore", divide="ignore"):  # pixels without data
            position, confidence = self.labelled_kernel(field, probability)
        has_data = position < len(labels)
        correct = labels.take(position, mode="clip") == reference.ravel()[pixels]
        return correct & has_data, np.where(has_data, confidence, field.dtype.type(np.nan))

    def lowest(self, n_categories: int) -> float:
        """Return a bound below every confidence of a field of that many categories."""
        return 0.0

    @overload
    def __call__(
        self, field: xr.DataArray, *, probability: xr.DataArray | NDArray[Any] | None = None
    ) -> xr.DataArray: ...

    @overload
    def __call__(
        self, field: NDArray[Any], *, probability: xr.DataArray | NDArray[Any] | None = None
    ) -> NDArray[np.floating]: ...

    def __call__(
        self,
        field: xr.DataArray | NDArray[Any],
        *,
        probability: xr.DataArray | NDArray[Any] | None = None,
    ) -> xr.DataArray | NDArray[np.floating]:
        """Return the confidence of every pixel, NaN where there is no data.

        Parameters
        ----------
        field : DataArray with a dimension `category`, or array (category, ...)
            Class probabilities or a hidden field, usually (category, y, x).
        probability : the same, optional
            The class probabilities from which a hidden field was computed.
        """
        if self.needs_probability and probability is None:
            raise InputError(
                f"The confidence {self!r} needs the class probabilities beside the field. "
                "Pass probability=..., or choose 'maximum', 'margin' or 'entropy'."
            )
        if not self.needs_probability:
            probability = None
        if isinstance(field, xr.DataArray):
            return self._labelled(field, probability)
        beside = probability.values if isinstance(probability, xr.DataArray) else probability
        return self._checked(
            plain_field(field, name="field"),
            None if beside is None else plain_field(beside, name="probability"),
        )

    def _labelled(
        self, field: xr.DataArray, probability: xr.DataArray | NDArray[Any] | None
    ) -> xr.DataArray:
        if CATEGORY not in field.dims:
            raise InputError(
                f"field must have the dimension '{CATEGORY}' "
                f"(got {', '.join(map(str, field.dims))}). "
                "Pass class probabilities or a hidden field with dims (category, y, x)."
            )
        arguments = [field]
        if probability is not None:
            if isinstance(probability, xr.DataArray):
                probability = probability.transpose(*field.dims, missing_dims="ignore").data
            check_shapes(field.shape, np.shape(probability))
            arguments.append(field.copy(data=probability))

        if all(argument.chunks is None for argument in arguments):
            axis = field.get_axis_num(CATEGORY)
            planes = [np.moveaxis(argument.values, axis, 0) for argument in arguments]
            found = self._checked(planes[0], planes[1] if len(planes) > 1 else None)
            return on_map_of(field, found, name="confidence")

        def kernel(*arrays: NDArray[Any]) -> NDArray[np.floating]:
            planes = [np.moveaxis(array, -1, 0) for array in arrays]  # apply_ufunc put it last
            return self._checked(planes[0], planes[1] if len(planes) > 1 else None)

        confidence: xr.DataArray = xr.apply_ufunc(
            kernel,
            *map(whole_categories, arguments),
            input_core_dims=[[CATEGORY]] * len(arguments),
            dask="parallelized",
            output_dtypes=[precision_of(field.dtype)],
        )
        return confidence.rename("confidence")

    def _checked(
        self, field: NDArray[Any], probability: NDArray[Any] | None
    ) -> NDArray[np.floating]:
        field, probability = in_one_precision(field, probability)
        with np.errstate(invalid="ignore", divide="ignore"):  # pixels without data
            confidence = self.kernel(field, probability)
        missing = np.isnan(field[0])
        if probability is not None:
            missing = missing | np.isnan(probability[0])
        return _finished(confidence, field.dtype, missing)

    def decide(
        self, field: NDArray[Any], *, probability: NDArray[Any] | None = None
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.floating]]:
        """Return label and confidence of every pixel of plain arrays, in one pass where possible.

        Parameters
        ----------
        field, probability : array (category, ...)
            As for calling the object.

        Returns
        -------
        position : array of int (...)
            Of the first category with the largest value; the number of categories where there is
            no data.
        confidence : array of float (...)
        """
        field, probability = in_one_precision(
            field, probability if self.needs_probability else None
        )
        with np.errstate(invalid="ignore", divide="ignore"):  # pixels without data
            position, confidence = self.labelled_kernel(field, probability)
        missing = position == len(field)
        if probability is not None:
            missing |= np.isnan(probability[0])
        return position, _finished(confidence, field.dtype, missing)

    def samples(
        self,
        field: NDArray[Any],
        *,
        probability: NDArray[Any] | None = None,
        reference: NDArray[np.integer],
        labels: NDArray[np.integer],
    ) -> tuple[NDArray[np.bool_], NDArray[np.floating]]:
        """Return which pixels with a reference are right, and how sure they are: no map is made.

        Parameters
        ----------
        field, probability : array (category, ...)
            As for calling the object.
        reference : array of int (...)
            0 where there is no reference.
        labels : array of int (category)
            What the reference calls the categories.

        Returns
        -------
        correct : array of bool (sample)
            In row order, as in ``label[reference > 0] == reference[reference > 0]``.
        confidence : array of float (sample)
            NaN where there is no data.
        """
        field, probability = in_one_precision(
            field, probability if self.needs_probability else None
        )
        correct, confidence = self.sampled_kernel(field, probability, reference, labels)
        return correct, np.asarray(confidence, dtype=field.dtype)


def _finished(
    confidence: NDArray[np.floating], precision: np.dtype[np.floating], missing: NDArray[np.bool_]
) -> NDArray[np.floating]:
    """Return confidences in the precision of the field, NaN where there is no data."""
    finished = np.asarray(confidence, dtype=precision)
    return np.where(missing, precision.type(np.nan), finished) if missing.any() else finished
