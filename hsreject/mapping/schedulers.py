"""What dask runs blocks on: threads of this process, or a cluster and what may be wrong with it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress

import dask
from dask.base import get_scheduler

from hsreject.errors import HsrejectError, InputError
from hsreject.threads import one_blas_thread

SECONDS_TO_CONNECT = 10.0


@contextmanager
def workers(number: int) -> Iterator[bool]:
    """Run dask on that many threads within, unless a scheduler was chosen already; yield whether.

    Each task has one thread for its linear algebra: results do not depend on the number of tasks.
    """
    if get_scheduler() is None:
        with dask.config.set(scheduler="threads", num_workers=number), one_blas_thread():
            yield True
        return
    failures: list[type[Exception]] = [CancelledError]
    with suppress(ImportError):  # schedulers of dask itself do not need it
        from distributed import KilledWorker  # noqa: PLC0415
        from distributed.comm.core import CommClosedError  # noqa: PLC0415

        failures += [KilledWorker, CommClosedError]
    try:
        yield False
    except tuple(failures) as error:
        raise HsrejectError(
            f"The dask cluster failed ({type(error).__name__}). Either its workers died, most "
            "likely for lack of memory: give each more ('dask worker --memory-limit'), or allow "
            "this work less (--memory, in Python memory=). Or its scheduler was lost: start it "
            "again. The same command continues from the finished blocks."
        ) from None


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Run dask on the `dask.distributed` cluster with that address within; None changes nothing."""
    if address is None:
        yield
        return
    try:
        from distributed import Client  # noqa: PLC0415 (an optional dependency)
    except ImportError:
        raise InputError(
            "A cluster needs the package distributed. Install it: pip install distributed."
        ) from None
    # We say ourselves what is wrong; after Ctrl-C every task that was waited for would complain.
    for name in ("distributed.client", "distributed.core", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with dask.config.set({"distributed.comm.timeouts.connect": SECONDS_TO_CONNECT}):
        try:
            client = Client(address)
        except (OSError, ValueError) as error:
            raise InputError(
                f"There is no dask scheduler at '{address}' ({type(error).__name__}). Start one "
                "with 'dask scheduler', or leave --cluster out."
            ) from None
        with client:
            yield
