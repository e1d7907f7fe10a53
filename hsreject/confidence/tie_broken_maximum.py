"""The largest value of a hidden field, ties broken by the class probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hsreject.confidence.at_label import LabelConfidence
from hsreject.errors import InputError


@dataclass(frozen=True)
class TieBrokenMaximum(LabelConfidence):
    """The largest value of the hidden field and a little of the probability of that class.

    With k the label, the first category with the largest z::

        confidence = (z_k + weight * p_k) / (1 + weight)

    which lies in [0, 1] and is 1 exactly where context and classifier are both certain. A hidden
    field saturates: most of its pixels have max z within the solver's tolerance of 1, so max z
    alone is a mass of ties in an order that means nothing. The probability decides between pixels
    whose z differ by less than `weight`; where z differs by more, z decides.

    Parameters
    ----------
    weight : float
        Weight of the probability, above 0. The default, 1e-3, is a rule of thumb: about as far as
        the context is solved by default, so that smaller differences of z say little.

    Examples
    --------
    Two saturated pixels that the classifier tells apart, and one on a border of two regions:

    >>> field = np.array([[1.0, 1.0, 0.6], [0.0, 0.0, 0.4]])  # (category, pixel)
    >>> probability = np.array([[0.9, 0.3, 0.9], [0.1, 0.7, 0.1]])
    >>> TieBrokenMaximum()(field, probability=probability).round(4)
    array([0.9999, 0.9993, 0.6003])
    """

    weight: float = 1e-3

    needs_probability: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.weight < np.inf:
            raise InputError(
                f"weight must be above 0 and finite (got {self.weight}). "
                "For no tie-break choose the confidence 'maximum'."
            )

    @property
    def probability_weight(self) -> float:
        """The weight of the probability."""
        return self.weight
