"""Sequential rejection (SegSALSA-SCR): context first, then a threshold on its confidence."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.rejection.ranked import FieldRejector
from hsreject.rejection.rejector import check_context, default_context

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.confidence import Confidence
    from hsreject.context.segsalsa import SegSALSA
    from hsreject.progress import ProgressCallback
    from hsreject.rejection.evidence import Evidence


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
        below 0.1 are rejected earlier, and those below 0.05 are `unknown` and rejected in any case,
        in addition to what is asked for.

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

    @property
    def halo(self) -> int | None:
        """That of the context."""
        return self.context.halo

    @property
    def bytes_per_class(self) -> int:
        """Those of the context."""
        return self.context.working_size * np.dtype(self.context.dtype).itemsize

    def guide(self, image: xr.DataArray) -> xr.DataArray | None:
        """Return what the priors take from the image."""
        return self.context.guide(image)

    def in_block(self, layers: NDArray[np.floating[Any]]) -> SequentialRejector:
        """Return this rejector with its context guided, and solved by one thread."""
        return replace(self, context=replace(self.context.in_block(layers), n_threads=1))

    def field_of(self, evidence: Evidence, progress: ProgressCallback) -> xr.DataArray:
        """Return the hidden field: the known one, or the solution of the context."""
        if evidence.hidden_field is not None:
            return evidence.hidden_field
        return self.context.solve(
            evidence.probability, image=evidence.image, train=evidence.train, progress=progress
        ).hidden_field
