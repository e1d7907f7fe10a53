"""Threads that share the rows of a scene. What they compute never depends on how many there are."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

from hsreject.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


def usable_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Workers:
    """A fixed number of threads, to be used in a ``with`` block.

    Parameters
    ----------
    n_threads : int
        How many; with 1 everything runs in the caller's thread.

    Examples
    --------
    >>> squares = [0] * 5
    >>> def fill(start, stop):
    ...     squares[start:stop] = [number**2 for number in range(start, stop)]
    >>> with Workers(2) as workers:
    ...     workers.share(5, fill)
    >>> squares
    [0, 1, 4, 9, 16]
    """

    def __init__(self, n_threads: int = 1) -> None:
        if n_threads < 1:
            raise InputError(f"n_threads must be at least 1 (got {n_threads}).")
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads - 1) if n_threads > 1 else None

    def share(self, count: int, work: Callable[[int, int], object]) -> None:
        """Call `work(start, stop)` on equal parts of range(count), one part a thread."""
        n_parts = min(self.n_threads, count)
        if self._pool is None or n_parts < 2:
            work(0, count)
            return
        edges = [count * part // n_parts for part in range(n_parts + 1)]
        others = [self._pool.submit(work, start, stop) for start, stop in pairwise(edges[1:])]
        work(0, edges[1])
        for other in others:
            other.result()

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()


class Rehearsal(Workers):
    """Calls all work with no rows to do, which compiles it and changes nothing."""

    def share(self, count: int, work: Callable[[int, int], object]) -> None:
        """Call `work(0, 0)`."""
        work(0, 0)
