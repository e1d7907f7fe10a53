"""What dask runs blocks on: threads of this process, or a cluster and what may be wrong with it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

import dask
from dask.base import get_scheduler

from hsreject.errors import HsrejectError, InputError
from hsreject.threads import one_blas_thread

SECONDS_TO_CONNECT = 10.0


@contextmanager
def local_threads(n_workers: int) -> Iterator[bool]:
    """Run dask on `n_workers` threads within, unless a scheduler was chosen already; yield whether.

    Each task has one thread for its linear algebra: results do not depend on the number of tasks.
    """
    if get_scheduler() is not None:
        yield False
        return
    with dask.config.set(scheduler="threads", num_workers=n_workers), one_blas_thread():
        yield True


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
            client: Any = Client(address)
        except (OSError, ValueError) as error:
            raise InputError(
                f"There is no dask scheduler at '{address}' ({type(error).__name__}). Start one "
                "with 'dask scheduler', or leave --cluster out."
            ) from None
        with client:
            yield


@contextmanager
def explained_loss_of_workers() -> Iterator[None]:
    """Say in our words that a cluster failed within; on local threads there is nothing to say."""
    if "distributed" not in sys.modules:  # nobody has a cluster without it
        yield
        return
    from distributed import KilledWorker  # noqa: PLC0415
    from distributed.comm.core import CommClosedError  # noqa: PLC0415

    try:
        yield
    except KilledWorker as error:
        raise HsrejectError(
            f"The workers of the cluster died {error.allowed_failures + 1} times over the same "
            "block, most likely because it needs more memory than they have. Give each more "
            "('dask worker --memory-limit'), or allow this work less (--memory, in Python "
            "memory=). The same command continues from the finished blocks."
        ) from None
    except (CancelledError, CommClosedError):
        raise HsrejectError(
            "The connection to the dask scheduler was lost. Start it again with its workers, and "
            "give the same command: it continues from the finished blocks."
        ) from None
