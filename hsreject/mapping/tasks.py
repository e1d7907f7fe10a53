"""Run the tasks of a map on whatever dask is set to: threads of this process, or a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dask
from dask.base import compute, get_scheduler
from dask.callbacks import Callback

from hsreject.errors import InputError
from hsreject.progress import ProgressCallback
from hsreject.threads import one_blas_thread

SECONDS_TO_CONNECT = 10.0


def compute_all(tasks: Sequence[Any], stage: str, progress: ProgressCallback) -> list[Any]:
    """Return the results of delayed tasks, and tell how many are done.

    Parameters
    ----------
    tasks : sequence of Delayed
        Their results must be small: all are kept.
    stage : str
        What progress calls them.
    progress : ProgressCallback
    """
    progress(stage, 0, len(tasks))
    client = _active_client()
    if client is None:
        with _Count(stage, len(tasks), progress):
            return list(compute(*tasks))  # type: ignore[no-untyped-call]
    from distributed import as_completed  # noqa: PLC0415 (an optional dependency)

    futures = client.compute(list(tasks))
    try:
        for done, future in enumerate(as_completed(futures), start=1):  # type: ignore[no-untyped-call]
            if future.status == "error":
                future.result()  # raises what the task raised
            progress(stage, done, len(tasks))
        return list(client.gather(futures))
    finally:
        client.cancel(futures)


@contextmanager
def local_threads(n_workers: int) -> Iterator[None]:
    """Run dask on `n_workers` threads within, unless a scheduler was chosen already.

    Each task has one thread for its linear algebra: as many tasks as cores run side by side, and
    results do not depend on how many that are.
    """
    if get_scheduler() is not None:  # type: ignore[no-untyped-call]
        yield
        return
    with (
        dask.config.set(scheduler="threads", num_workers=n_workers),
        one_blas_thread(),
    ):
        yield


@contextmanager
def reading_threads(n_workers: int) -> Iterator[None]:
    """Run dask on threads of this process within, a cluster or not: for work that only reads."""
    if _active_client() is None:
        with local_threads(n_workers):
            yield
        return
    with dask.config.set(scheduler="threads", num_workers=n_workers):
        yield


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Run dask on the cluster with that address within; None changes nothing.

    Parameters
    ----------
    address : str or None
        Of a dask.distributed scheduler, such as ``tcp://127.0.0.1:8786``.
    """
    if address is None:
        yield
        return
    try:
        from distributed import Client  # noqa: PLC0415 (an optional dependency)
    except ImportError:
        raise InputError(
            "A cluster needs the package distributed. Install it: pip install "
            "'hsreject[distributed]'."
        ) from None
    try:
        client = Client(address, timeout=SECONDS_TO_CONNECT)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InputError(
            f"There is no dask scheduler at '{address}' ({type(error).__name__}). Start one with "
            "'dask scheduler', or leave --scheduler out."
        ) from None
    with client:
        yield


def _active_client() -> Any:
    """Return the client of the cluster that dask is set to, or None."""
    get = get_scheduler()  # type: ignore[no-untyped-call]
    owner = getattr(get, "__self__", None)
    return owner if hasattr(owner, "gather") else None


@contextmanager
def counted(stage: str, progress: ProgressCallback) -> Iterator[None]:
    """Tell how many tasks dask has done within, of a number that nobody knows, if there are any."""
    if _active_client() is not None:  # whose tasks are counted elsewhere
        yield
        return
    with _Count(stage, None, progress) as count:
        yield
    if count.done:
        progress(stage, count.done, count.done)


class _Count(Callback):
    """Tell how many tasks are done, for the schedulers of one machine."""

    def __init__(self, stage: str, total: int | None, progress: ProgressCallback) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._stage, self._total, self._progress = stage, total, progress
        self.done = 0

    def _posttask(self, key: object, result: object, dsk: Any, state: Any, worker: Any) -> None:
        self.done += 1
        done = self.done if self._total is None else min(self.done, self._total)
        self._progress(self._stage, done, self._total)
