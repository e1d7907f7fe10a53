"""The largest value of the field."""

from __future__ import annotations

from dataclasses import dataclass

from hsreject.confidence.at_label import LabelConfidence


@dataclass(frozen=True)
class Maximum(LabelConfidence):
    """The largest value of the field, max_k z_k: the paper's maximum probability (section V-A).

    Lies in [1/K, 1]. On a hidden field it has masses of ties, because the field saturates at 1;
    :class:`~hsreject.confidence.TieBrokenMaximum` orders those.

    Examples
    --------
    >>> import numpy as np
    >>> Maximum()(np.array([[0.7, 0.4], [0.2, 0.3], [0.1, 0.3]]))  # (category, pixel)
    array([0.7, 0.4])
    """

    @property
    def probability_weight(self) -> float:
        """0: the probability has no part."""
        return 0.0
