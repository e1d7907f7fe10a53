"""Threads: they divide the rows of a scene, and linear algebra runs on one of them.

Results never depend on the number of threads. A matrix product that is divided among threads is
summed in an order that depends on their number, so linear algebra has one thread; rows or blocks of
a scene run side by side.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import scipy.linalg  # noqa: F401  # brings a BLAS library of its own, which must be limited as well
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

PARTS_OF_A_THREAD = 4


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Threads:
    """A fixed number of threads, to be used in a ``with`` block; 1 is the caller's thread alone.

    Examples
    --------
    >>> from hsreject.threads import Threads
    >>> squares = [0] * 5
    >>> def fill(start, stop):
    ...     squares[start:stop] = [number**2 for number in range(start, stop)]
    >>> with Threads(2) as threads:
    ...     threads.share(5, fill)
    >>> squares
    [0, 1, 4, 9, 16]
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads - 1) if n_threads > 1 else None

    def share(
        self, count: int, work: Callable[[int, int], object], *, most: int | None = None
    ) -> None:
        """Call `work(start, stop)` on equal parts of range(count), each of `most` numbers at most.

        There are a few parts per thread, and each thread takes the next one when it is done, so
        that a slow core does fewer. Small parts keep the results of `work` in the cache.
        """
        n_parts = 1 if self._pool is None else min(PARTS_OF_A_THREAD * self.n_threads, count)
        n_parts = max(n_parts, 1, -(-count // most) if most else 1)
        # a queue instead of equal shares: a thread that is done takes the next part, the caller
        # included
        edges = [count * part // n_parts for part in range(n_parts + 1)]
        parts = deque(pairwise(edges))
        n_others = min(self.n_threads, n_parts) - 1
        others = [self._pool.submit(_work_off, parts, work) for _ in range(n_others) if self._pool]
        _work_off(parts, work)
        for other in others:
            other.result()

    def __enter__(self) -> Threads:
        return self

    def __exit__(self, *error: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()


def _work_off(parts: deque[tuple[int, int]], work: Callable[[int, int], object]) -> None:
    while True:
        try:
            start, stop = parts.popleft()  # safe among threads
        except IndexError:  # nothing is left
            return
        work(start, stop)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Run linear algebra on one thread within; for functions that compute at once.

    A lazy array is computed later, outside: the code that computes it sets the limit, as
    :func:`~hsreject.map_scene` does.

    Examples
    --------
    >>> from hsreject.threads import one_blas_thread
    >>> from threadpoolctl import threadpool_info
    >>> with one_blas_thread():
    ...     {library["num_threads"] for library in threadpool_info()
    ...      if library["user_api"] == "blas"}
    {1}
    """
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limit


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all libraries of the process: milliseconds
