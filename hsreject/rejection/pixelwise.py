"""Pixelwise rejection: the classifier's own confidence, pixel by pixel."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

from hsreject.confidence import Confidence, label_map, named_confidence
from hsreject.rejection.class_balance import Thresholds, check_thresholds
from hsreject.rejection.novelty_weight import DEFAULT_EXPONENT, check_exponent, field_confidence
from hsreject.rejection.ranked import RankedRejector

if TYPE_CHECKING:
    import xarray as xr

    from hsreject.progress import ProgressCallback
    from hsreject.rejection.evidence import Evidence


@dataclass(frozen=True)
class PixelwiseRejector(RankedRejector):
    """Rejects the pixels whose class probabilities are least decided (paper, section V-A).

    Parameters
    ----------
    confidence : str or Confidence
        "maximum" (the paper's maximum probability), "margin" (breaking ties), "entropy", or an
        object.
    thresholds : {"common", "equal_rejection", "equal_accuracy"}
        One threshold for all pixels, or one a class that equalises the rejected share or, on the
        calibration pixels, the kept accuracy of the classes.
    novelty_exponent : float
        The confidence is multiplied by ``novelty_p_value ** novelty_exponent`` when the maps hold
        novelty p-values: 0 ignores them, 1 is the plain product.

    Examples
    --------
    >>> import numpy as np
    >>> probability = np.array([[[0.9, 0.6, 0.2, np.nan]], [[0.1, 0.4, 0.8, np.nan]]])
    >>> maps = PixelwiseRejector("margin").reject(probability, fraction=1 / 3)
    >>> maps.label_with_rejection.values  # 0 is rejected, 255 no data
    array([[  1,   0,   2, 255]], dtype=uint8)
    >>> maps.attrs["reachable_fractions"]
    [0.3333333333333333, 0.3333333333333333]
    """

    confidence: str | Confidence = "maximum"
    _: KW_ONLY
    thresholds: Thresholds = "common"
    novelty_exponent: float = DEFAULT_EXPONENT

    def __post_init__(self) -> None:
        named_confidence(self.confidence)
        check_thresholds(self.thresholds)
        check_exponent(self.novelty_exponent)

    @property
    def reach(self) -> int:
        """None of its neighbours matter to a pixel."""
        return 0

    def label_and_confidence(
        self, evidence: Evidence, progress: ProgressCallback
    ) -> tuple[xr.DataArray, xr.DataArray]:
        """Return the most probable class and the confidence of the probabilities."""
        confidence = field_confidence(
            named_confidence(self.confidence),
            evidence.probability,
            evidence,
            exponent=self.novelty_exponent,
        )
        return label_map(evidence.probability), confidence
