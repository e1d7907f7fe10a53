"""Linear algebra on one thread: the same bits on every machine, however many cores it has.

A matrix product that is divided among threads is added up in an order that depends on their number.
What runs side by side here are blocks of a scene, each on one thread.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import scipy.linalg  # noqa: F401  # brings a BLAS library of its own, which must be limited as well
from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


def one_blas_thread() -> AbstractContextManager[Any]:
    """Run linear algebra on one thread within; for functions that compute at once.

    A lazy array is computed later, outside: whoever computes it sets the limit, as
    :func:`~hsreject.map_scene` does.

    Examples
    --------
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
