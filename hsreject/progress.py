"""Progress of long work: a callback, which the command line turns into a progress bar."""

from collections.abc import Iterator
from contextlib import contextmanager
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
