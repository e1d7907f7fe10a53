"""Compiling Python functions with numba: without the interpreter lock, and once per machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite.binding import get_host_cpu_features
from numpy.typing import NDArray

F = TypeVar("F", bound="Callable[..., Any]")
FloatArray = NDArray[np.floating[Any]]
Number = float | np.floating[Any]

# Of fastmath only what cannot change a result but for the sign of a zero. Fused products and
# reciprocals ("contract", "arcp") gain under 5 % and round in an order that the compiler chooses
# anew wherever a function is inlined: kernels loaded from disk then differ in the last digit from
# those compiled in this process, and so do machines.
# No reference counts either: kernels make no arrays, and counting every slice took a tenth of the
# time.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"nsz"}, "_nrt": False}

# Constants of kernels: a bare 1 or 1.0 would turn float32 arithmetic into float64, these do not.
ZERO, HALF, ONE, TWO, FOUR = (np.float32(number) for number in (0, 0.5, 1, 2, 4))


def compiled(**options: Any) -> Callable[[F], F]:
    """Return a decorator that compiles a function on first use and keeps its code on disk.

    Options are those of ``numba.njit``. Where no folder can be written to, the function is
    compiled once in every process.
    """

    def decorate(function: F) -> F:
        try:
            made: F = numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # no folder that a cache could be written to
            made = numba.njit(nogil=True, **options)(function)
        return made

    return decorate


def kernel(function: F) -> F:
    """Compile a function that is called from Python, with the options of all kernels."""
    made = compiled(**_OPTIONS)(function)
    _forget_stale(made)
    return made


def inner(function: F) -> F:
    """Compile a function that only kernels call: no way in from Python, so it takes less time."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}
    made: F = numba.njit(**options)(function)
    return made


def spliced(function: F) -> F:
    """Splice a function into the kernels that call it, before they are compiled.

    For functions that mostly call others: compiled by themselves, all that they call would be
    compiled once more. Splicing everything takes twice as long as splicing only these.
    """
    made: F = numba.njit(inline="always", **_OPTIONS)(function)
    return made


def _fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    kind = typing_context.unify_types(a, b, c)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return kind(kind, kind, kind), generate


# a b + c in one instruction and rounded once. Written out, it is the same wherever it is compiled;
# processors before 2013, for which it would be a slow function call, round twice.
fma: Callable[[Number, Number, Number], Any] = (
    cast("Any", numba.extending.intrinsic(_fma))
    if get_host_cpu_features().get("fma", True)
    else numba.njit(lambda a, b, c: a * b + c, **_OPTIONS)
)


def _forget_stale(function: Any) -> None:
    """Remove compiled code older than any kernel file beside the function, or than this file.

    numba compares a kernel with its own file only, but its code holds inner functions of others.
    """
    folder = function.stats.cache_path
    if not folder:
        return
    beside = Path(function.py_func.__code__.co_filename).parent.glob("*_kernels.py")
    newest = max(path.stat().st_mtime for path in (Path(__file__), *beside))
    for index in Path(folder).glob(f"*.{function.__name__}-*.nbi"):
        with suppress(OSError):  # another process may have removed it, or may own it
            if index.stat().st_mtime < newest:
                index.unlink()
