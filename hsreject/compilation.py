"""Compiling Python functions with numba: without the interpreter lock, and once per machine."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound="Callable[..., Any]")
FloatArray = NDArray[np.floating[Any]]
Number = float | np.floating[Any]

# Of fastmath only what cannot change a result except for the sign of a zero. Fused products and
# reciprocals ("contract", "arcp") gain under 5 % and round in an order that the compiler chooses
# anew wherever a function is inlined: kernels loaded from disk then differ in the last digit from
# those compiled in this process, and so do machines.
# No reference counts either: kernels make no arrays, and counting every slice took a tenth of the
# time.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"nsz"}, "_nrt": False}

# Constants of kernels: a bare 1 or 1.0 would turn float32 arithmetic into float64, these do not.
ZERO, HALF, ONE, TWO, FOUR = (np.float32(number) for number in (0, 0.5, 1, 2, 4))


class Compiled:
    """A function that is compiled on first use, and whose code is kept on disk.

    Where no folder can be written to, it is compiled once in every process.
    """

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        try:
            self._function: Any = numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # no folder that a cache could be written to
            self._function = numba.njit(nogil=True, **options)(function)

    def __call__(self, *arguments: Any) -> Any:
        """Call the function; Ctrl-C waits for its end, since a compiler cut short may crash."""
        with _interrupts_later():
            try:
                return self._function(*arguments)
            except OSError:  # the compiled code is ready, but could not be kept, as on a full disk
                return self._function(*arguments)

    @property
    def first_use(self) -> str | None:
        """What the next call does first, in words; None if the code is ready."""
        if self._function.signatures:
            return None
        if self._function.stats.cache_path is None:
            return "compiling kernels (set NUMBA_CACHE_DIR to keep them)"
        return "loading kernels" if any(self._kept()) else "compiling kernels (only once)"

    def forget_stale(self) -> None:
        """Remove compiled code older than any kernel file beside the function, or than this file.

        numba compares a kernel with its own file only, but its code holds inner functions of
        others.
        """
        source = Path(self._function.py_func.__code__.co_filename)
        beside = source.parent.glob("*_kernels.py")
        newest = max(path.stat().st_mtime for path in (Path(__file__), *beside))
        for index in self._kept():
            with suppress(OSError):  # another process may have removed it, or may own it
                if index.stat().st_mtime < newest:
                    index.unlink()

    def _kept(self) -> Iterator[Path]:
        """Yield the files that list the code kept on disk."""
        folder = self._function.stats.cache_path
        return Path(folder).glob(f"*.{self._function.__name__}-*.nbi") if folder else iter(())


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back while the block runs; only the main thread ever sees them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []

    def keep(number: int, _frame: object) -> None:
        received.append(number)

    # None is a handler that a program in C has set: it cannot be put back
    numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is not None]
    before = {n: signal.signal(n, keep) for n in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for one in received:
            signal.raise_signal(one)


def compiled(function: F) -> F:
    """Compile a function that is called from Python, with numba's own options."""
    return cast("F", Compiled(function))


def kernel(function: F) -> F:
    """Compile a function that is called from Python, with the options of all kernels."""
    compiled_function = Compiled(function, **_OPTIONS)
    compiled_function.forget_stale()
    return cast("F", compiled_function)


def inner(function: F) -> F:
    """Compile a function that only kernels call: no way in from Python, so it takes less time."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}
    compiled_function: F = numba.njit(**options)(function)
    return compiled_function


def spliced(function: F) -> F:
    """Splice a function into the kernels that call it, before they are compiled.

    For functions that mostly call others: compiled by themselves, all that they call would be
    compiled once more. Splicing everything takes twice as long as splicing only these.
    """
    compiled_function: F = numba.njit(inline="always", **_OPTIONS)(function)
    return compiled_function


def _fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    kind = typing_context.unify_types(a, b, c)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return kind(kind, kind, kind), generate


# a b + c in one instruction and rounded once. Written out, it is the same wherever it is compiled.
fma: Callable[[Number, Number, Number], Any] = cast("Any", numba.extending.intrinsic(_fma))
