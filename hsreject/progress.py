"""Progress of long work: a callback, which the command line turns into a progress bar."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol


class ProgressCallback(Protocol):
    """A callable that long work calls now and then.

    Parameters
    ----------
    stage : str
        What is being done, in a few words ("context", "joint sweep").
    done : float
        How much of it is done, in the unit of `total`.
    total : float or None
        How much there is in all; None while nobody knows.
    """

    def __call__(self, stage: str, done: float, total: float | None) -> None:
        """Take note of the progress."""


def no_progress(stage: str, done: float, total: float | None) -> None:
    """Ignore the progress: the default of every function that reports some."""


@contextmanager
def counting_tasks(stage: str, progress: ProgressCallback) -> Iterator[None]:
    """Report how many of dask's tasks are done; a cluster reports begin and end."""
    from dask.callbacks import Callback  # noqa: PLC0415  (whoever counts has imported dask)

    total = 1

    def count(_key: object, _result: object, _graph: Any, state: Any, _worker: Any) -> None:
        nonlocal total
        done = len(state["finished"])
        total = done + sum(len(state[kind]) for kind in ("ready", "waiting", "running"))
        progress(stage, done, total)

    progress(stage, 0, None)
    with Callback(posttask=count):
        yield
    progress(stage, total, total)


_READING: ContextVar[ProgressCallback] = ContextVar("progress of reading", default=no_progress)


@contextmanager
def reporting_reads(progress: ProgressCallback) -> Iterator[None]:
    """Report the pixels that are read inside of the block, by whatever opens scenes there.

    A scene may be opened by any function that a configuration names: so the callback is not handed
    down, but kept for the block.
    """
    before = _READING.set(progress)
    try:
        yield
    finally:
        _READING.reset(before)


def report_read(done: float, total: float) -> None:
    """Report how many rows of a scene have been read, if somebody wants to know."""
    _READING.get()("reading pixels", done, total)
