"""Land-cover maps from hyperspectral images that say where they do not know.

Every public name is imported on first use, so that ``import hsreject`` is quick and quiet. The stub
``__init__.pyi`` beside this file lists the names, once: type checkers and editors read it as it is,
and here it says which module a name comes from.
"""

from importlib import import_module
from pathlib import Path

__version__ = "0.1.0.dev0"


def _homes() -> dict[str, str]:
    """Return the module of each name; a line of the stub is ``from MODULE import NAME as NAME``."""
    stub = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    words = [line.split() for line in stub.splitlines() if line.startswith("from ")]
    return {name: module for _, module, _, name, _, _ in words}


_HOME = _homes()
__all__ = sorted(("__version__", *_HOME))  # noqa: PLE0605 (not a literal: the stub is the list)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'hsreject' has no attribute '{name}'")
    if _HOME[name] == __name__:
        return import_module(f"{__name__}.{name}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
