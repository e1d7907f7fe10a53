"""Pixelwise rejection: the classifier's own confidence, pixel by pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hsreject.confidence import Maximum, TieBrokenMaximum, named_confidence
from hsreject.rejection.ranked import FieldRejector
from hsreject.rejection.ranking import LABEL_PROBABILITY, RANK
from hsreject.schema import CALIBRATED

if TYPE_CHECKING:
    from hsreject.confidence import Confidence
    from hsreject.rejection.evidence import Evidence


@dataclass(frozen=True)
class PixelwiseRejector(FieldRejector):
    """Rejects the pixels with the least certain class probabilities (paper, section V-A).

    Parameters
    ----------
    confidence : str or Confidence
        "maximum" (the paper's maximum probability), "margin" (breaking ties), "entropy", or an
        object.
    novelty : bool
        Whether a `p_value` (y, x) of :class:`hsreject.Novelty` in the maps counts: pixels with p
        below 0.1 are rejected earlier, and those below 0.025 are `unknown` and rejected in any
        case, in addition to what is asked for.

    See Also
    --------
    hsreject.SequentialRejector : with context.
    hsreject.Confidence : what it ranks by.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import PixelwiseRejector
    >>> probability = np.array([[[0.9, 0.6, 0.2, np.nan]], [[0.1, 0.4, 0.8, np.nan]]])
    >>> maps = PixelwiseRejector("margin").reject(probability, fraction=1 / 3)
    >>> maps.label_with_rejection.values  # 0 is rejected, 255 no data
    array([[  1,   0,   2, 255]], dtype=uint8)
    >>> maps.attrs["reachable_fractions"]
    [0.3333333333333333, 0.3333333333333333]
    """

    confidence: str | Confidence = "maximum"

    def meaning(self, evidence: Evidence) -> str:
        """Return that the maximum of calibrated probabilities is the probability of the label."""
        by_maximum = isinstance(named_confidence(self.confidence), Maximum | TieBrokenMaximum)
        is_calibrated = by_maximum and evidence.probability.attrs.get(CALIBRATED)
        return LABEL_PROBABILITY if is_calibrated else RANK
