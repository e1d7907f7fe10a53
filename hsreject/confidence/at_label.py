"""Confidences that look at nothing but the label: one pass over the field finds both."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from hsreject.confidence.base import Confidence
from hsreject.confidence.field import at_pixels, check_probability
from hsreject.confidence.largest import first_largest, first_largest_of_samples
from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class LabelConfidence(Confidence):
    """A mean of the field and the class probability at the label alone.

    With k the label, the first category with the largest z, and w the weight of the probability::

        confidence = (z_k + w p_k) / (1 + w)

    The pass that finds the label finds the confidence too, and where only reference pixels are
    asked for, little is computed for the others.
    """

    @property
    @abstractmethod
    def probability_weight(self) -> float:
        """The weight of the probability; 0 unless `needs_probability` is true."""

    def kernel(
        self, field: NDArray[np.floating], probability: NDArray[np.floating] | None
    ) -> NDArray[np.floating]:
        """Return the confidence of every pixel."""
        return self.labelled_kernel(field, probability)[1]

    def labelled_kernel(
        self, field: NDArray[np.floating], probability: NDArray[np.floating] | None
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.floating]]:
        """Return the label and the confidence, found in one pass."""
        self._check(probability)
        return first_largest(field, probability, self.probability_weight)

    def sampled_kernel(
        self,
        field: NDArray[np.floating],
        probability: NDArray[np.floating] | None,
        reference: NDArray[np.integer],
        labels: NDArray[np.integer],
    ) -> tuple[NDArray[np.bool_], NDArray[np.floating]]:
        """Return which samples are right and their confidences, found in one pass."""
        self._check(probability)
        weight = self.probability_weight
        found = first_largest_of_samples(field, probability, weight, reference, labels)
        if probability is not None and math.isnan(found[1].min(initial=0)):
            pixels = np.flatnonzero(reference)[np.isnan(found[1])]
            check_probability(at_pixels(field, pixels), at_pixels(probability, pixels))
        return found

    def _check(self, probability: NDArray[np.floating] | None) -> None:
        if self.needs_probability and probability is None:
            raise InputError(f"{type(self).__name__} needs the class probabilities.")
