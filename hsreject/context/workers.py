"""Threads that share the rows of a scene. What they compute never depends on how many there are."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

from hsreject.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

PARTS_OF_A_THREAD = 4


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
        """Call `work(start, stop)` on equal parts of range(count), a few parts a thread.

        Threads take one part after the other, so that a core which others slow down does fewer.
        """
        n_parts = min(PARTS_OF_A_THREAD * self.n_threads, count)
        if self._pool is None or n_parts < 2:
            work(0, count)
            return
        edges = [count * part // n_parts for part in range(n_parts + 1)]
        parts = deque(pairwise(edges))
        others = [self._pool.submit(_work_off, parts, work) for _ in range(self.n_threads - 1)]
        _work_off(parts, work)
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


def _work_off(parts: deque[tuple[int, int]], work: Callable[[int, int], object]) -> None:
    while True:
        try:
            start, stop = parts.popleft()  # safe among threads
        except IndexError:  # nothing is left
            return
        work(start, stop)


class Rehearsal(Workers):
    """Calls all work with no rows to do, which compiles it and changes nothing."""

    def share(self, count: int, work: Callable[[int, int], object]) -> None:
        """Call `work(0, 0)`."""
        work(0, 0)
