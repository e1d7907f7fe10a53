"""Threads share parts of the work; what they are given must be done once, whoever does it."""

from __future__ import annotations

from collections import Counter

import pytest
from hsreject.context.workers import Workers


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 3, 100])
def test_every_number_is_worked_on_once(n_threads: int, count: int) -> None:
    done: Counter[int] = Counter()
    with Workers(n_threads) as workers:
        workers.share(count, lambda start, stop: done.update(range(start, stop)))
    assert done == Counter(range(count))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_is_raised(n_threads: int) -> None:
    def fail(start: int, stop: int) -> None:
        raise IndexError("not the end of the work")

    with (
        Workers(n_threads) as workers,
        pytest.raises(IndexError, match="not the end of the work"),
    ):
        workers.share(10, fail)
