"""What commands share: options, a check for missing files, progress, Ctrl-C, tables."""

from __future__ import annotations

import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from hsreject.errors import FileError
from hsreject.progress import ProgressCallback

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a value of the configuration, such as context.weight=4. Repeatable.",
    ),
]
BandAxis = Annotated[
    int | None,
    typer.Option(help="Which axis of a .mat or .npy array holds the bands: 0, 1 or 2."),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Write into a folder that is not empty.")
]

_LONGEST_NAME = 32  # columns of a terminal; what is longer breaks between its words


def check_there(*paths: Path | None) -> None:
    """Raise unless the given files exist; commands call this before their long imports."""
    for path in filter(None, paths):
        try:
            path.stat()
        except FileNotFoundError:
            raise FileError(f"{path} does not exist. Check the path.") from None
        except OSError:
            continue  # opening the file will say what else is wrong with it


def result_table(
    console: Console,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
) -> Table:
    """Return a table with names, which stay whole, in the first column and numbers in the others.

    On a terminal it has a rule under the headings; in a log it has bare columns.
    """
    frame = box.SIMPLE_HEAD if console.is_terminal else None
    gap = 1 if frame else 2
    table = Table(
        title=title, title_justify="left", box=frame, pad_edge=False, padding=(0, gap, 0, 0)
    )
    first, *others = headings
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="right", overflow="fold")
    for name, *numbers in rows:
        table.add_row(textwrap.fill(name, _LONGEST_NAME), *numbers)
    return table


@contextmanager
def progress_on(console: Console) -> Iterator[ProgressCallback]:
    """Yield the callback that shows progress on `console`: bars on a terminal, lines elsewhere.

    A stage that did not know its total has ended when another stage reports. The callback also
    ends the work if Ctrl-C was pressed and Python dropped it.
    """
    open_ended: str | None = None
    with _remembered_interrupts() as check, _shown(console) as show:

        def progress(stage: str, done: float, total: float | None) -> None:
            nonlocal open_ended
            check()
            if open_ended not in {None, stage}:
                show(open_ended, 1, 1)
            open_ended = stage if total is None else None
            show(stage, done, total)

        yield progress


@contextmanager
def saying_how_to_go_on() -> Iterator[None]:
    """Tell whoever presses Ctrl-C that nothing finished is lost."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("hsreject: stopped. The same command goes on from what is finished.\n")
        raise


@contextmanager
def _shown(console: Console) -> Iterator[ProgressCallback]:
    if not console.is_terminal:
        yield _Log(console)
        return
    columns = (TextColumn("{task.description:<32}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        yield _Bars(progress)


class _Bars:
    """One bar per stage; a bar whose total is unknown pulses."""

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
def _remembered_interrupts() -> Iterator[Callable[[], None]]:
    """Yield a function that raises KeyboardInterrupt if Ctrl-C was pressed.

    Python itself raises it at once, but drops it inside a finaliser or a callback of compiled code:
    of forty presses while kernels were loaded, one was lost. Work that goes on all the same calls
    the function now and then, and ends. Any error after a press counts as the interrupt.
    """
    pressed = threading.Event()

    def press(number: int, frame: FrameType | None) -> None:
        pressed.set()
        raise KeyboardInterrupt

    def check() -> None:
        if pressed.is_set():
            raise KeyboardInterrupt

    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield check  # never raises: whoever embeds the command line handles Ctrl-C themselves
        return
    tell_of_dropped = sys.unraisablehook

    def tell_of_others(dropped: UnraisableHookArgs) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            tell_of_dropped(dropped)

    signal.signal(signal.SIGINT, press)
    sys.unraisablehook = tell_of_others
    try:
        yield check
    except Exception:
        check()  # compiled code, such as that of h5py, may make another error of the interrupt
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = tell_of_dropped
