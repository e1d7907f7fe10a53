"""How kernels are compiled: one decorator, so that every kernel has the same options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

F = TypeVar("F", bound="Callable[..., Any]")
FloatArray = NDArray[np.floating[Any]]
Number = float | np.floating[Any]

# Not the whole of fastmath: infinities and NaN keep their meaning, sums keep their order.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "nsz", "arcp"}}


def kernel(function: F) -> F:
    """Compile `function` on first use, without the interpreter lock, and keep it on disk."""
    options = {"nogil": True, **_OPTIONS}
    try:
        compiled: F = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that a cache could be written to
        compiled = numba.njit(**options)(function)
    return compiled


def inner(function: F) -> F:
    """Compile a function that only kernels call: no way in from Python, so it takes less time."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}
    compiled: F = numba.njit(**options)(function)
    return compiled


def needs_compiling(kernels: Iterable[Callable[..., Any]]) -> bool:
    """Return whether a first call of `kernels` compiles rather than loads compiled code."""
    return any(not _compiled_before(function) for function in kernels)


def _compiled_before(function: Any) -> bool:
    if function.signatures:
        return True
    folder = function.stats.cache_path
    pattern = f"*{function.__name__}-*.nbi"
    return folder is not None and any(Path(folder).glob(pattern))
