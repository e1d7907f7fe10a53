"""Rejectors that read label and confidence off one field: probabilities, or that of the context."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from hsreject.confidence import (
    Confidence,
    label_and_confidence,
    named_confidence,
    reference_samples,
)
from hsreject.rejection.class_balance import Thresholds, check_thresholds
from hsreject.rejection.novelty import (
    DEFAULT_EXPONENT,
    check_exponent,
    lowered_by_novelty,
    samples_lowered_by_novelty,
)
from hsreject.rejection.ranked import RankedRejector
from hsreject.schema import CATEGORY

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.progress import ProgressCallback
    from hsreject.rejection.evidence import Evidence


@dataclass(frozen=True)
class FieldRejector(RankedRejector):
    """Rejects the pixels whose field is least decided; subclasses say which field.

    Parameters
    ----------
    confidence : str or Confidence
        How decided a pixel of the field is: a name in ``hsreject.confidence.CONFIDENCES``, or an
        object.
    thresholds : {"common", "equal_rejection", "equal_accuracy"}
        One threshold for all pixels, or one a class that equalises the rejected share or, on the
        calibration pixels, the kept accuracy of the classes.
    novelty_exponent : float
        The confidence is multiplied by ``novelty_p_value ** novelty_exponent`` when the maps hold
        novelty p-values: 0 ignores them, 1 is the plain product.
    """

    _: KW_ONLY
    confidence: str | Confidence = "maximum"
    thresholds: Thresholds = "common"
    novelty_exponent: float = DEFAULT_EXPONENT

    def __post_init__(self) -> None:
        self._rule  # noqa: B018  # says now, not at first use, that there is no such confidence
        check_thresholds(self.thresholds)
        check_exponent(self.novelty_exponent)

    @cached_property
    def _rule(self) -> Confidence:
        """The confidence itself: to look it up by name takes longer than to use it."""
        return named_confidence(self.confidence)

    @abstractmethod
    def field_of(self, evidence: Evidence, progress: ProgressCallback) -> xr.DataArray:
        """Return the field (category, y, x) that decides."""

    def label_and_confidence(
        self, evidence: Evidence, progress: ProgressCallback
    ) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the class with the largest value of the field, and its confidence."""
        field = self.field_of(evidence, progress)
        label, confidence = label_and_confidence(
            field, self._rule, probability=evidence.probability
        )
        return label, lowered_by_novelty(confidence, evidence, **self._lowering(field))

    def reference_samples(
        self, reference: NDArray[np.integer], evidence: Evidence, progress: ProgressCallback
    ) -> tuple[NDArray[np.bool_], NDArray[np.floating]]:
        """Return what a reference says of the pixels, without a map of label and confidence."""
        field = self.field_of(evidence, progress)
        correct, confidence = reference_samples(
            reference, field, self._rule, probability=evidence.probability
        )
        if evidence.novelty_p_value is None:
            return correct, confidence
        return correct, samples_lowered_by_novelty(
            reference, confidence, evidence, **self._lowering(field)
        )

    def _lowering(self, field: xr.DataArray) -> dict[str, float]:
        """Return how novelty lowers the confidence of that field."""
        lowest = self._rule.lowest(field.sizes[CATEGORY])
        return {"exponent": self.novelty_exponent, "lowest": lowest}
