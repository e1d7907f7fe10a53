"""Pixelwise rejection: the classifier's own confidence, pixel by pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.confidence import Maximum, TieBrokenMaximum, named_confidence
from hsreject.context.problem import valid_probability_pixels
from hsreject.rejection.ranked import FieldRejector
from hsreject.rejection.rejector import LABEL_PROBABILITY, RANK
from hsreject.schema import CALIBRATED, CATEGORY

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.confidence import Confidence
    from hsreject.progress import ProgressCallback
    from hsreject.rejection.evidence import Evidence

ROUNDING = 1e-6  # of a few operations in float32 on numbers up to 1


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
        below 0.1 are rejected earlier, and those below 0.05 are `unknown` and rejected in any case,
        in addition to what is asked for.

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

    @property
    def halo(self) -> int:
        """0: a pixel is decided by its own probabilities alone."""
        return 0

    def meaning(self, evidence: Evidence) -> str:
        """Return that the maximum of calibrated probabilities is the probability of the label."""
        by_maximum = isinstance(named_confidence(self.confidence), Maximum | TieBrokenMaximum)
        honest = by_maximum and evidence.probability.attrs.get(CALIBRATED)
        return LABEL_PROBABILITY if honest else RANK

    def field_of(self, evidence: Evidence, progress: ProgressCallback) -> xr.DataArray:
        """Return the class probabilities, or say what is wrong with them."""
        probability = evidence.probability
        if probability.chunks is None:
            evidence.check_same_categories()  # otherwise some classes would have no value
            _checked(probability.values)
            return probability
        lazy = probability.chunk({CATEGORY: -1})  # checked when they are computed
        nothing = np.empty((0, 0, 0), lazy.dtype)
        return lazy.copy(data=lazy.data.map_blocks(_checked, meta=nothing))


def _checked(probability: NDArray[Any]) -> NDArray[Any]:
    """Return values (category, y, x), or say why the context would not take them.

    Unlike there, all pixels may lack data, and rounding may leave values a little below 0.
    """
    if not np.isnan(probability).all():
        rounded_below = -ROUNDING <= np.nanmin(probability) < 0
        valid_probability_pixels(np.maximum(probability, 0) if rounded_below else probability)
    return probability
