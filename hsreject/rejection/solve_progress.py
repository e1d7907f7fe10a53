"""Progress of several solves as one bar, whichever threads they run in."""

from __future__ import annotations

from threading import Lock

from hsreject.progress import ProgressCallback, no_progress


class SolveProgress:
    """Adds up the progress of solves and passes it on, never backwards.

    Parameters
    ----------
    progress : ProgressCallback
        Called by one thread at a time.
    stage : str
    n_solves : int
        How many solves there will be, at most.

    Examples
    --------
    >>> heard = []
    >>> solves = SolveProgress(lambda *news: heard.append(news), "sweep", 2)
    >>> solves.of_solve()("context", 5, 10)
    >>> solves.finish()
    >>> heard
    [('sweep', 0.5, 2), ('sweep', 2, 2)]
    """

    def __init__(self, progress: ProgressCallback, stage: str, n_solves: int) -> None:
        self._progress = progress
        self._stage = stage
        self._n_solves = n_solves
        self._shares: list[float] = []
        self._lock = Lock()

    def of_solve(self) -> ProgressCallback:
        """Return the callback of one more solve."""
        if self._progress is no_progress:
            return no_progress
        with self._lock:
            self._shares.append(0.0)
            number = len(self._shares) - 1

        def callback(stage: str, done: float, total: float | None) -> None:
            share = min(done / total, 1.0) if total else 0.0
            with self._lock:
                if share > self._shares[number]:
                    self._shares[number] = share
                    self._progress(self._stage, sum(self._shares), self._n_solves)

        return callback

    def finish(self) -> None:
        """Say that nothing is left to do."""
        with self._lock:
            self._progress(self._stage, self._n_solves, self._n_solves)
