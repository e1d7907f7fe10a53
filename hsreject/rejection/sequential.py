"""Sequential rejection (SegSALSA-SCR): context first, then a threshold on its confidence."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from hsreject.rejection.ranked import FieldRejector
from hsreject.rejection.rejector import check_context, default_context

if TYPE_CHECKING:
    from hsreject.confidence import Confidence
    from hsreject.context.segsalsa import SegSALSA


@dataclass(frozen=True)
class SequentialRejector(FieldRejector):
    """Rejects the pixels of which the context is least certain: the paper's SegSALSA-SCR.

    The context is solved once (paper, section V-B); the labels never change, and every operating
    point follows from one sort of the confidences. A hidden field that is known already
    (`hidden_field` in the maps) is taken as it is, whatever context it is the solution of, and
    nothing is solved.

    Parameters
    ----------
    context : SegSALSA
        How the hidden field is found; by default with vector TV of weight 1.
    confidence : str or Confidence
        "tie_broken_maximum" (the largest value of the hidden field, ties broken by the class
        probability), "maximum", "margin", "entropy", "posterior", or an object.
    novelty : bool
        Whether a `p_value` (y, x) of :class:`hsreject.Novelty` in the maps counts: pixels with p
        below 0.1 are rejected earlier, and those below 0.025 are `unknown` and rejected in any
        case, in addition to what is asked for.

    See Also
    --------
    hsreject.JointRejector : rejects while solving.
    hsreject.PixelwiseRejector : without context.
    hsreject.SegSALSA : the context.

    Examples
    --------
    Two regions; the pixels on their border are rejected first:

    >>> import numpy as np
    >>> from hsreject import SequentialRejector
    >>> import hsreject as hr
    >>> probability = np.empty((2, 4, 6))
    >>> probability[0] = [0.9, 0.9, 0.6, 0.4, 0.1, 0.1]
    >>> probability[1] = 1 - probability[0]
    >>> context = hr.SegSALSA(hr.VectorTV(weight=0.3))
    >>> maps = SequentialRejector(context).reject(probability, fraction=1 / 3)
    >>> maps.label_with_rejection.values[0]
    array([1, 1, 0, 0, 2, 2], dtype=uint8)
    """

    context: SegSALSA = field(default_factory=default_context)
    _: KW_ONLY
    confidence: str | Confidence = "tie_broken_maximum"

    def __post_init__(self) -> None:
        check_context(self.context)
        super().__post_init__()
