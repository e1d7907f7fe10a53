"""Solvers by name. They minimise the same problem and agree to tolerance."""

from hsreject.context.solvers.admm import ADMM
from hsreject.context.solvers.base import Solver
from hsreject.context.solvers.preconditioned_admm import PreconditionedADMM
from hsreject.registry import Registry

SOLVERS: Registry[Solver] = Registry(
    "solver", {"preconditioned_admm": PreconditionedADMM, "admm": ADMM}
)

__all__ = ["ADMM", "SOLVERS", "PreconditionedADMM", "Solver"]
