"""How kernels are compiled: one decorator, so that every kernel has the same options."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numba
import numpy as np
from llvmlite.binding import get_host_cpu_features
from numba.core import event
from numpy.typing import NDArray

from hsreject.compilation import F, compiled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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


def kernel(function: F) -> F:
    """Compile `function` on first use, without the interpreter lock, and keep it on disk."""
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
    compiled once more.
    """
    made: F = numba.njit(inline="always", **_OPTIONS)(function)
    return made


def are_loaded(kernels: Iterable[Callable[..., Any]], dtype: np.dtype[Any]) -> bool:
    """Return whether `kernels` were called in this process with fields of `dtype`.

    Kernels have arrays in double precision beside fields of any kind, but float32 only in fields.
    """
    single = dtype == np.float32
    return all(
        any(("float32" in str(signature)) == single for signature in _signatures(function))
        for function in kernels
    )


@contextmanager
def announcing(announce: Callable[[], None]) -> Iterator[None]:
    """Call `announce`, once, if something is compiled inside rather than loaded from disk."""
    with event.install_listener("numba:compile", _Announcer(announce)):
        yield


class _Announcer(event.Listener):
    def __init__(self, announce: Callable[[], None]) -> None:
        self.announce: Callable[[], None] | None = announce

    def on_start(self, event: object) -> None:
        announce, self.announce = self.announce, None
        if announce is not None:
            announce()

    def on_end(self, event: object) -> None:
        """Do nothing."""


def _signatures(function: Any) -> list[Any]:
    return list(function.signatures)


def _cached(function: Any) -> list[Path]:
    """Return the index files of a kernel's compiled code."""
    folder = function.stats.cache_path
    return list(Path(folder).glob(f"*.{function.__name__}-*.nbi")) if folder else []


def _forget_stale(function: Any) -> None:
    """Remove compiled code older than any kernel source.

    numba compares a kernel with its own file only, but its code holds the inner functions of
    others.
    """
    newest = max(path.stat().st_mtime for path in Path(__file__).parent.glob("*.py"))
    for index in _cached(function):
        with suppress(OSError):  # another process may have removed it, or may own it
            if index.stat().st_mtime < newest:
                index.unlink()
