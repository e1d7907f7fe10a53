"""Confidences that look at nothing but the label: one pass over the field finds both."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from hsreject.confidence.base import Confidence
from hsreject.confidence.largest import FirstLargest, first_largest, first_largest_of_samples
from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class LabelConfidence(Confidence):
    """A confidence that follows from the field, and the probability, of the label alone.

    Subclasses implement :meth:`at_label` in place of :meth:`kernel`. The pass that finds the label
    then finds all that the confidence needs, and where only reference pixels are asked for, little
    is computed for the others.

    Examples
    --------
    >>> class Doubt(LabelConfidence):
    ...     '''The negative odds against the label.'''
    ...
    ...     def at_label(self, found):
    ...         return 1 - 1 / found.value
    >>> field = np.array([[0.5, 0.2, 0.0], [0.5, 0.8, 1.0]])  # (category, pixel)
    >>> Doubt()(field)
    array([-1.  , -0.25,  0.  ])
    >>> Doubt().samples(field, reference=np.array([0, 2, 1]), labels=np.array([1, 2]))
    (array([ True, False]), array([-0.25,  0.  ]))
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
        return self.labelled_kernel(field, probability)[1]

    def labelled_kernel(
        self, field: NDArray[np.floating], probability: NDArray[np.floating] | None
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.floating]]:
        """Return the label and the confidence, found in one pass."""
        found = first_largest(field, self._beside(probability))
        return found.position, self.at_label(found)

    def sampled_kernel(
        self,
        field: NDArray[np.floating],
        probability: NDArray[np.floating] | None,
        reference: NDArray[np.integer],
        labels: NDArray[np.integer],
    ) -> tuple[NDArray[np.bool_], NDArray[np.floating]]:
        """Return what the samples need, found in one pass."""
        beside = self._beside(probability)
        found, correct = first_largest_of_samples(field, beside, reference, labels)
        confidence = self.at_label(found)
        if math.isnan(found.value.min(initial=0)):
            confidence = np.where(np.isnan(found.value), np.nan, confidence)
        return correct, confidence

    def _beside(self, probability: NDArray[np.floating] | None) -> NDArray[np.floating] | None:
        if self.needs_probability and probability is None:
            raise InputError(f"{type(self).__name__} needs the class probabilities.")
        return probability
