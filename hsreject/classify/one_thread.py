"""Linear algebra on one thread: the same bits on every machine, however many cores it has.

A matrix product that is divided among threads is added up in an order that depends on their number.
What runs side by side here are blocks of a scene, each on one thread.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import scipy.linalg  # noqa: F401  # brings a BLAS library of its own, which must be limited as well
from threadpoolctl import OpenBLASController, ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Limit:
    """The limit that all threads of the process share: the first one sets it, the last lifts it.

    Limits that each thread set and restored by itself would undo each other.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_inside = 0
        self._limiter: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._n_inside == 0:
                _take_control()
                self._limiter = _libraries().limit(limits=1, user_api="blas")
            self._n_inside += 1

    def leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            if self._n_inside == 0:
                _take_control()
                self._limiter.restore_original_limits()
                _take_control()


def _take_control() -> None:
    """Let this thread, whichever it is, change the limit next.

    From version 3.8 on threadpoolctl heeds only the thread that changed it first, which may not be
    the one that leaves last.
    """
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looks at all libraries of the process: a millisecond


_limit = _Limit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run linear algebra on one thread within.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> with one_blas_thread():
    ...     {library["num_threads"] for library in threadpool_info()
    ...      if library["user_api"] == "blas"}
    {1}
    """
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()
