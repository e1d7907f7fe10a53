"""The posterior probability of the label, given the hidden field and the pixel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from hsreject.confidence.base import Confidence
from hsreject.confidence.largest import first_largest
from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Posterior(Confidence):
    """The probability of the label given hidden field and pixel, p_k z_k / p'z.

    The hidden field z holds the class probabilities of the surroundings, p those of the pixel
    itself; k is the label, the first category with the largest z. Lies in [0, 1]; it is 0 where the
    classifier gives no probability to any class that the field allows.

    Examples
    --------
    The pixel disagrees with its surroundings:

    >>> field, probability = np.array([[0.75], [0.25]]), np.array([[0.25], [0.75]])
    >>> Posterior()(field, probability=probability)
    array([0.5])
    """

    needs_probability: ClassVar[bool] = True

    def kernel(
        self, field: NDArray[np.floating], probability: NDArray[np.floating] | None
    ) -> NDArray[np.floating]:
        """Return p_k z_k / p'z at the label k."""
        return self.labelled_kernel(field, probability)[1]

    def labelled_kernel(
        self, field: NDArray[np.floating], probability: NDArray[np.floating] | None
    ) -> tuple[NDArray[np.unsignedinteger], NDArray[np.floating]]:
        """Return the label and the confidence; the label is looked for once."""
        if probability is None:
            raise InputError("Posterior needs the class probabilities.")
        position, largest = first_largest(field)
        places = np.minimum(position, len(field) - 1)[np.newaxis].astype(np.intp)
        likely = np.take_along_axis(probability, places, axis=0)[0]
        total = np.zeros(field.shape[1:], field.dtype)
        for plane, likelihood in zip(field, probability, strict=True):
            total += plane * likelihood
        posterior: NDArray[np.floating] = np.divide(
            largest * likely, total, out=np.zeros_like(total), where=total != 0
        )
        return position, posterior
