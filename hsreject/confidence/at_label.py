"""Confidences that look at nothing but the label: one pass over the field finds both."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from hsreject.confidence.base import Confidence
from hsreject.confidence.largest import FirstLargest, first_largest
from hsreject.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class LabelConfidence(Confidence):
    """A confidence that follows from the field, and the probability, of the label alone.

    Subclasses implement :meth:`at_label` in place of :meth:`kernel`. The pass that finds the label
    then finds all that the confidence needs, and where only some pixels are asked for, nothing is
    computed for the others.

    Examples
    --------
    >>> import numpy as np
    >>> class Doubt(LabelConfidence):
    ...     '''The negative odds against the label.'''
    ...
    ...     def at_label(self, found):
    ...         return 1 - 1 / found.value
    >>> field = np.array([[0.5, 0.2, 0.0], [0.5, 0.8, 1.0]])  # (category, pixel)
    >>> Doubt()(field)
    array([-1.  , -0.25,  0.  ])
    >>> Doubt().decide(field, pixels=np.array([1, 2]))
    (array([1, 1], dtype=uint8), array([-0.25,  0.  ]))
    """

    @abstractmethod
    def at_label(self, found: FirstLargest) -> NDArray[np.floating]:
        """Return the confidence of every pixel, given what stands at its label.

        Parameters
        ----------
        found : FirstLargest
            `value` is the field at the label; `beside` the class probability there, if
            `needs_probability` is true. What comes out where `value` is NaN is not used.
        """

    def kernel(
        self, field: NDArray[np.floating], probability: NDArray[np.floating] | None
    ) -> NDArray[np.floating]:
        """Return the confidence of every pixel."""
        return self.labelled_kernel(field, probability, None)[1]

    def labelled_kernel(
        self,
        field: NDArray[np.floating],
        probability: NDArray[np.floating] | None,
        pixels: NDArray[np.intp] | None,
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.floating]]:
        """Return the label and the confidence, found in one pass."""
        if self.needs_probability and probability is None:
            raise InputError(f"{type(self).__name__} needs the class probabilities.")
        found = first_largest(field, probability, pixels=pixels)
        return found.position, self.at_label(found)
