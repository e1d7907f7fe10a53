"""Rejectors: which pixels get no label. A new one is a file and a line here."""

from hsreject.registry import Registry
from hsreject.rejection.decision import Calibration
from hsreject.rejection.hierarchical import HierarchicalRejector
from hsreject.rejection.joint import JointRejector
from hsreject.rejection.novelty import Novelty
from hsreject.rejection.pixelwise import PixelwiseRejector
from hsreject.rejection.ranked import FieldRejector, RankedRejector
from hsreject.rejection.rejector import Rejector, compare_rejectors
from hsreject.rejection.sequential import SequentialRejector

REJECTORS: Registry[Rejector] = Registry(
    "rejector",
    {
        "pixelwise": PixelwiseRejector,
        "sequential": SequentialRejector,
        "joint": JointRejector,
        "hierarchical": HierarchicalRejector,
    },
)

__all__ = [
    "REJECTORS",
    "Calibration",
    "FieldRejector",
    "HierarchicalRejector",
    "JointRejector",
    "Novelty",
    "PixelwiseRejector",
    "RankedRejector",
    "Rejector",
    "SequentialRejector",
    "compare_rejectors",
]
