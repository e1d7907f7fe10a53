"""Pixelwise rejection: the classifier's own confidence, pixel by pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.confidence.label import whole_categories
from hsreject.context.problem import valid_probability_pixels
from hsreject.errors import InputError
from hsreject.rejection.field_rejector import FieldRejector

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.confidence import Confidence
    from hsreject.progress import ProgressCallback
    from hsreject.rejection.evidence import Evidence

ROUNDING = 1e-6  # of a few operations in float32 on numbers up to 1


@dataclass(frozen=True)
class PixelwiseRejector(FieldRejector):
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

    @property
    def reach(self) -> int:
        """None of its neighbours matter to a pixel."""
        return 0

    def field_of(self, evidence: Evidence, progress: ProgressCallback) -> xr.DataArray:
        """Return the class probabilities, or say why they are none."""
        probability = evidence.probability
        if probability.chunks is not None:  # checked when they are computed
            lazy = whole_categories(probability)
            nothing = np.empty((0, 0, 0), lazy.dtype)
            return lazy.copy(data=lazy.data.map_blocks(_checked_block, meta=nothing))
        try:
            _check_probabilities(probability.values)
        except InputError:
            evidence.check_same_categories()  # which leaves some classes without a value
            raise
        return probability


def _checked_block(values: NDArray[Any]) -> NDArray[Any]:
    _check_probabilities(values)
    return values


def _check_probabilities(values: NDArray[Any]) -> None:
    """Raise unless values (category, y, x) are probabilities: those that the context accepts.

    Unlike there, the whole scene may be without data, and rounding may leave values below 0.
    """
    least = values.min(initial=1)
    if np.isnan(least):
        least = np.fmin.reduce(values, axis=None)
    if -ROUNDING <= least < 0:
        values = np.maximum(values, 0)
    if not np.isnan(least):
        valid_probability_pixels(values)
