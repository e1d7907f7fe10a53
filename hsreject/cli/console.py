"""What commands show while they work and at the end: progress, Ctrl-C, tables."""

from __future__ import annotations

import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import TYPE_CHECKING

import typer
from rich import box
from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from hsreject.errors import shown
from hsreject.progress import ProgressCallback, reporting_reads

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_LONGEST_NAME = 32  # columns of a terminal; what is longer breaks between its words


def print_line(text: object = "") -> None:
    """Print a line: what it quotes out of files and addresses, as people may see it."""
    typer.echo(shown(str(text)))


def distinct(numbers: Iterable[float], fewest: int = 4, most: int = 9) -> list[str]:
    """Return numbers with as many decimals as tell the different ones apart."""
    values = [float(number) for number in numbers]
    for digits in range(fewest, most + 1):
        texts = [f"{value:.{digits}f}" for value in values]
        if len(set(texts)) == len(set(values)):
            break
    return texts


def plain_console() -> Console:
    """Return the console of what a command prints: in the width of the terminal, as it is said."""
    return Console(highlight=False, markup=False, emoji=False)


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    justify: JustifyMethod = "right",
    console: Console | None = None,
) -> None:
    """Print a table: names in the first column, which are never cut, numbers or text in the others.

    On a terminal it has a rule under the headings; in a log it has bare columns.
    """
    console = console or plain_console()
    frame = box.SIMPLE_HEAD if console.is_terminal else None
    gap = 1 if frame else 2
    table = Table(box=frame, pad_edge=False, padding=(0, gap, 0, 0))
    first, *others = headings
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify=justify, overflow="fold")
    for name, *cells in rows:
        table.add_row(textwrap.fill(shown(name), _LONGEST_NAME), *map(shown, cells))
    if title is not None:  # which may be wider than the table
        console.print(shown(title), style="italic")
    console.print(table)


@contextmanager
def progress_on(console: Console | None = None, *, log: bool = True) -> Iterator[ProgressCallback]:
    """Yield the callback that shows progress: a live line per stage on a terminal, or a log.

    It is shown on `console`, by default on standard error; short work needs no `log`. What is read
    and unpacked inside the block is shown, too. The callback also ends the work if Ctrl-C was
    pressed and Python dropped it.
    """
    console = console or Console(stderr=True)
    console.quiet = not (log or console.is_terminal)
    columns = (TextColumn("{task.description:<32}"), BarColumn(), TimeElapsedColumn())
    bars = Progress(*columns, console=console) if console.is_terminal else None
    show = _Stages(console, bars)
    with _remembered_interrupts() as check, bars or nullcontext():

        def progress(stage: str, done: float, total: float | None) -> None:
            check()
            show(stage, done, total)

        with reporting_reads(progress):
            yield progress


@contextmanager
def saying_how_to_go_on() -> Iterator[None]:
    """After Ctrl-C, say that nothing finished is lost."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("hsreject: stopped. The same command continues from what is finished.\n")
        raise


class _Stages:
    """One line per stage: a bar with its time, or in a log one line at the beginning and the end.

    Stages nest: a run reports "context", and while that is open its solver reports "loading
    kernels". Only the outermost stage gets a line; whatever reports inside is a step of it. A stage
    without a total ends when another one reports.
    """

    def __init__(self, console: Console, bars: Progress | None) -> None:
        self._console, self._bars = console, bars
        self._tasks: dict[str, TaskID] = {}
        self._open = self._ended = ""  # the outermost stage, and the last one before
        self._has_total = False  # the open one
        self._begun = 0.0

    def __call__(self, stage: str, done: float, total: float | None) -> None:
        complete = total is not None and done >= total
        if self._open not in {"", stage} and not self._has_total:
            self._end()
        if not self._open:
            if complete and stage == self._ended:
                return  # its end was shown already
            self._begin(stage)
        if self._bars is not None:
            text = stage if stage == self._open else f"{self._open}: {stage}"
            task = self._tasks[self._open]
            self._bars.update(task, description=text, completed=done, total=total)
        if stage == self._open:
            self._has_total = total is not None
            if complete:
                self._end()

    def _begin(self, stage: str) -> None:
        self._open, self._begun = stage, time.monotonic()
        if self._bars is None:
            self._console.print(f"{stage} ...", highlight=False)
        elif stage in self._tasks:  # another seed
            self._bars.reset(self._tasks[stage])
        else:
            self._tasks[stage] = self._bars.add_task(stage, total=None)

    def _end(self) -> None:
        stage = self._ended = self._open
        self._open = ""
        if self._bars is None:
            seconds = time.monotonic() - self._begun
            self._console.print(f"{stage} done in {seconds:.1f} s", highlight=False)
        else:
            self._bars.update(self._tasks[stage], completed=1, total=1)
            self._bars.stop_task(self._tasks[stage])


@contextmanager
def _remembered_interrupts() -> Iterator[Callable[[], None]]:
    """Yield a function that raises KeyboardInterrupt if Ctrl-C or SIGTERM has raised one before.

    Python itself raises it at once, but drops it inside a finaliser or a callback of compiled code:
    of forty presses while kernels were loaded, one was lost. The work goes on then, calls this
    function at its next report, and ends. Any error after a press counts as the interrupt. Handlers
    that raise none, those of a program that embeds the command line, are called and nothing else.
    """
    pressed = threading.Event()
    handlers = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM)
        if callable(handler := signal.getsignal(number))
    }

    def press(number: int, frame: FrameType | None) -> None:
        try:
            handlers[signal.Signals(number)](number, frame)
        except KeyboardInterrupt:
            pressed.set()
            raise

    def check() -> None:
        if pressed.is_set():
            raise KeyboardInterrupt

    show_dropped = sys.unraisablehook

    def show_other(dropped: UnraisableHookArgs) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            show_dropped(dropped)

    for number in handlers:
        signal.signal(number, press)
    sys.unraisablehook = show_other
    try:
        yield check
    except Exception:
        check()  # compiled code, such as that of h5py, may make another error of the interrupt
        raise
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        sys.unraisablehook = show_dropped
