"""Compiling Python functions with numba: without the interpreter lock, and once a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound="Callable[..., Any]")


def compiled(**options: Any) -> Callable[[F], F]:
    """Return a decorator that compiles a function on first use and keeps its code on disk.

    Where no folder can be written to, the function is compiled once in every process.

    Parameters
    ----------
    **options
        Of ``numba.njit``, beside `nogil` and `cache`.

    Examples
    --------
    >>> @compiled(error_model="numpy")
    ... def ratio(part, whole):
    ...     return part / whole
    >>> ratio(1.0, 4.0)
    0.25
    """

    def decorate(function: F) -> F:
        try:
            made: F = njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # no folder that a cache could be written to
            made = njit(nogil=True, **options)(function)
        return made

    return decorate
