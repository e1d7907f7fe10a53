"""Priors by name. A new one is one file beside these and one line here."""

from hsreject.context.prior import Prior
from hsreject.context.priors.graph_tv import GraphTV
from hsreject.context.priors.structure_tensor import StructureTensor
from hsreject.context.priors.vector_tv import VectorTV
from hsreject.registry import Registry

PRIORS: Registry[Prior] = Registry(
    "prior", {"vector_tv": VectorTV, "graph_tv": GraphTV, "structure_tensor": StructureTensor}
)

__all__ = ["PRIORS", "GraphTV", "StructureTensor", "VectorTV"]
