"""Confidences: how sure the label of a pixel is. A new one is a file and a line here."""

from hsreject.confidence.at_label import LabelConfidence
from hsreject.confidence.base import Confidence
from hsreject.confidence.decision import (
    label_and_confidence,
    reference_samples,
    samples_of_maps,
    without_confidence,
)
from hsreject.confidence.entropy import Entropy
from hsreject.confidence.label import label_map, label_map_of_positions
from hsreject.confidence.margin import Margin
from hsreject.confidence.maximum import Maximum
from hsreject.confidence.posterior import Posterior
from hsreject.confidence.tie_broken_maximum import TieBrokenMaximum
from hsreject.errors import InputError
from hsreject.registry import Registry

CONFIDENCES: Registry[Confidence] = Registry(
    "confidence",
    {
        "maximum": Maximum,
        "tie_broken_maximum": TieBrokenMaximum,
        "margin": Margin,
        "entropy": Entropy,
        "posterior": Posterior,
    },
)


def named_confidence(confidence: str | Confidence) -> Confidence:
    """Return the confidence of that name with its defaults, or the object itself.

    Examples
    --------
    >>> named_confidence("margin")
    Margin()
    """
    if isinstance(confidence, str):
        return CONFIDENCES.create(confidence)
    if not isinstance(confidence, Confidence):
        raise InputError(
            f"confidence must be a name, such as 'margin', or an object, such as Margin() "
            f"(got {confidence!r})."
        )
    return confidence


__all__ = [
    "CONFIDENCES",
    "Confidence",
    "Entropy",
    "LabelConfidence",
    "Margin",
    "Maximum",
    "Posterior",
    "TieBrokenMaximum",
    "label_and_confidence",
    "label_map",
    "label_map_of_positions",
    "named_confidence",
    "reference_samples",
    "samples_of_maps",
    "without_confidence",
]
