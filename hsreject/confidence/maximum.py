"""The largest value of the field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hsreject.confidence.at_label import LabelConfidence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hsreject.confidence.largest import FirstLargest


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

    def at_label(self, found: FirstLargest) -> NDArray[np.floating]:
        """Return max_k z_k."""
        return found.value
