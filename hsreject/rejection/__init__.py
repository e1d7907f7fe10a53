"""Rejectors: which pixels get no label. A new one is a file and a line here."""

from hsreject.registry import Registry
from hsreject.rejection.base import Rejector
from hsreject.rejection.calibration import Calibration
from hsreject.rejection.novelty import Novelty
from hsreject.rejection.pixelwise import PixelwiseRejector
from hsreject.rejection.ranked import RankedRejector

REJECTORS: Registry[Rejector] = Registry(
    "rejector",
    {
        "pixelwise": PixelwiseRejector,
    },
)

__all__ = [
    "REJECTORS",
    "Calibration",
    "Novelty",
    "PixelwiseRejector",
    "RankedRejector",
    "Rejector",
]
