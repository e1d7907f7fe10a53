"""Progress of long work: a callback, which the command line turns into a progress bar."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol


class ProgressCallback(Protocol):
    """A function that long work calls from time to time.

    Parameters
    ----------
    stage : str
        What is being done, in a few words ("context", "joint sweep").
    done : float
        How much of it is done, in the unit of `total`.
    total : float or None
        How much there is in total; None while that is unknown.
    """

    def __call__(self, stage: str, done: float, total: float | None) -> None:
        """Receive the progress."""


def no_progress(stage: str, done: float, total: float | None) -> None:
    """Ignore progress: the default of every function that reports it."""


@contextmanager
def counting_tasks(stage: str, progress: ProgressCallback) -> Iterator[None]:
    """Report how many of dask's tasks are done; a cluster reports only its start and end."""
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
    """Report what is unpacked and read inside the block, no matter which code opens the scenes.

    Any function that a configuration names may open a scene, so the callback is not passed down but
    kept for the block.
    """
    before = _READING.set(progress)
    try:
        yield
    finally:
        _READING.reset(before)


def report_read(done: float, total: float) -> None:
    """Report how many rows of a scene have been read, if that was asked for."""
    _READING.get()("reading pixels", done, total)


def report_unpacked(done: float, total: float) -> None:
    """Report how many bytes of an archive have been unpacked, if that was asked for."""
    size = f"{total / 1e9:.1f} GB" if total >= 1e8 else f"{total / 1e6:.1f} MB"
    _READING.get()(f"unpacking {size}", done, total)
