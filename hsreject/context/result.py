"""What SegSALSA returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import xarray as xr
from numpy.typing import NDArray

from hsreject.confidence import Confidence, label_map, named_confidence
from hsreject.schema import FIELD_DIMS

if TYPE_CHECKING:
    from hsreject.context.problem import Checkpoint, State

ArrayT = TypeVar("ArrayT", xr.DataArray, NDArray[Any])


@dataclass(frozen=True)
class SegSALSAResult(Generic[ArrayT]):
    """The hidden field of a scene, how good it is, and where a next solve can start.

    Arrays are DataArrays if probabilities were given as one, else NumPy arrays.

    Attributes
    ----------
    hidden_field : (category, y, x)
        On the simplex; NaN where there is no data.
    objective : float
        Its objective F.
    gap : float
        An upper bound of F minus the optimum: the certificate.
    n_iterations : int
    converged : bool
        Whether the gap is within the tolerance.
    history : tuple of Checkpoint
        Objective and gap at the certificates on the way; the last is that of this result.
    probability : (category, y, x)
        The probabilities that were given.
    state : State
        For a warm start: ``solve(..., start=result)``.
    """

    hidden_field: ArrayT
    objective: float
    gap: float
    n_iterations: int
    converged: bool
    history: tuple[Checkpoint, ...]
    probability: ArrayT = field(repr=False)
    state: State = field(repr=False)

    @cached_property
    def label(self) -> ArrayT:
        """The first class with the largest value of the hidden field, (y, x).

        ``schema.nodata_label`` where there is no data.
        """
        if isinstance(self.hidden_field, xr.DataArray):
            return label_map(self.hidden_field)
        labels: ArrayT = label_map(xr.DataArray(self.hidden_field, dims=FIELD_DIMS)).values
        return labels

    @property
    def relative_gap(self) -> float:
        """The gap as a fraction of the objective."""
        return self.history[-1].relative_gap

    def confidence(self, confidence: str | Confidence = "tie_broken_maximum") -> ArrayT:
        """Return how sure the label of every pixel is, (y, x), larger is surer.

        Parameters
        ----------
        confidence : str or Confidence
            A name in ``hsreject.confidence.CONFIDENCES``, or an object. By default the largest
            value of the hidden field with the probability tie-break, because the hidden field
            saturates.
        """
        return named_confidence(confidence)(self.hidden_field, probability=self.probability)
