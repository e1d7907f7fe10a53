"""Rejectors that read label and confidence off one field: probabilities, or that of the context."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from hsreject.confidence import Confidence, label_and_confidence, named_confidence
from hsreject.rejection.class_balance import Thresholds, check_thresholds
from hsreject.rejection.novelty_weight import DEFAULT_EXPONENT, check_exponent, lowered_by_novelty
from hsreject.rejection.ranked import RankedRejector
from hsreject.schema import CATEGORY

if TYPE_CHECKING:
    import xarray as xr

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
        named_confidence(self.confidence)
        check_thresholds(self.thresholds)
        check_exponent(self.novelty_exponent)

    @abstractmethod
    def field_of(self, evidence: Evidence, progress: ProgressCallback) -> xr.DataArray:
        """Return the field (category, y, x) that decides."""

    def label_and_confidence(
        self, evidence: Evidence, progress: ProgressCallback
    ) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the class with the largest value of the field, and its confidence."""
        field = self.field_of(evidence, progress)
        rule = named_confidence(self.confidence)
        label, confidence = label_and_confidence(field, rule, probability=evidence.probability)
        lowest = rule.lowest(field.sizes[CATEGORY])
        return label, lowered_by_novelty(
            confidence, evidence, exponent=self.novelty_exponent, lowest=lowest
        )
