"""Progress on the screen: bars on a terminal, a plain log of finished stages elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from hsreject.cli.interrupts import remembered_interrupts
from hsreject.progress import ProgressCallback


class _Bars:
    """One bar a stage; a bar whose total is unknown pulses."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: float, total: float | None) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total)
        self._progress.update(self._tasks[stage], completed=done, total=total)


class _Log:
    """One line when a stage begins and one when it is complete, with the seconds it took."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun: dict[str, float] = {}
        self._ended: set[str] = set()

    def __call__(self, stage: str, done: float, total: float | None) -> None:
        if stage not in self._begun:
            self._begun[stage] = time.monotonic()
            self._console.print(f"{stage} ...", highlight=False)
        if total is not None and done >= total and stage not in self._ended:
            self._ended.add(stage)
            seconds = time.monotonic() - self._begun[stage]
            self._console.print(f"{stage} done in {seconds:.1f} s", highlight=False)


@contextmanager
def progress_on(console: Console) -> Iterator[ProgressCallback]:
    """Yield the callback that shows progress on `console`: bars on a terminal, lines elsewhere.

    It also ends the work if Ctrl-C was pressed and Python dropped it.
    """
    with remembered_interrupts() as check, _shown(console) as show:

        def progress(stage: str, done: float, total: float | None) -> None:
            check()
            show(stage, done, total)

        yield progress


@contextmanager
def _shown(console: Console) -> Iterator[ProgressCallback]:
    if not console.is_terminal:
        yield _Log(console)
        return
    columns = (TextColumn("{task.description:<32}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        yield _Bars(progress)
