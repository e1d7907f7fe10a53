"""Land-cover maps from hyperspectral images that say where they do not know.

Every public name is imported on first use, so that ``import hsreject`` is quick and quiet.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

if TYPE_CHECKING:
    from hsreject.classes import ClassTable
    from hsreject.datasets.indian_pines import load_indian_pines
    from hsreject.errors import HsrejectError

# name -> module that defines it; the block above says the same to type checkers
_HOME = {
    "ClassTable": "hsreject.classes",
    "HsrejectError": "hsreject.errors",
    "load_indian_pines": "hsreject.datasets.indian_pines",
}

__all__ = [
    "ClassTable",
    "HsrejectError",
    "__version__",
    "load_indian_pines",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'hsreject' has no attribute '{name}'")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
