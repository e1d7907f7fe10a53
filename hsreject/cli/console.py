"""What commands share: options, a check for missing files, progress, Ctrl-C, tables."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from hsreject.errors import FileError, InputError
from hsreject.files import hidden_folder, made_folder
from hsreject.io.remote import RemotePath, as_path
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
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin", help="A Python file, or an installed plugin, with parts to name. Repeatable."
    ),
]
BandAxis = Annotated[
    int | None,
    typer.Option(help="Which axis of a .mat or .npy array holds the bands: 0, 1 or 2."),
]


def _trust_vrt(context: typer.Context, value: bool) -> bool:  # noqa: FBT001
    if value:  # else nothing need be imported yet
        from hsreject.io.rasters.raster import trusting_vrt

        context.with_resource(trusting_vrt(value))
    return value


TrustVrt = Annotated[
    bool,
    typer.Option(
        "--trust-vrt",
        callback=_trust_vrt,
        help="Let virtual rasters (.vrt) name files outside of their folder, and URLs.",
    ),
]


def cache_inside(context: typer.Context, out: Path | None) -> Path | None:
    """Let Matplotlib keep its cache in `out` until the command ends, if nowhere else is writable.

    The callback of options that name a folder. Where home and temporary folders are read-only,
    Matplotlib refuses to be imported.
    """
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        if out is not None and "MPLCONFIGDIR" not in os.environ:
            context.with_resource(made_folder(out))
            os.environ["MPLCONFIGDIR"] = str(context.with_resource(hidden_folder(out, "cache")))
    return out


Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Write into a folder that is not empty.")
]
ReplaceFile = Annotated[
    bool, typer.Option("--overwrite", help="Replace a file that is already there.")
]

_LONGEST_NAME = 32  # columns of a terminal; what is longer breaks between its words


def goal_table(goal: list[str] | None) -> dict[str, object] | None:
    """Return what --goal asks for, as a configuration has it; None if it is not given."""
    from hsreject.pipeline.config import named_value

    if goal and len(goal) > 1:
        raise InputError(f"Give exactly one --goal (got {' and '.join(goal)}).")
    if goal and "=" not in goal[0]:
        raise InputError(
            "--goal needs a kind and its value: accuracy=0.95, max_error=0.05, rejection_cost=0.3 "
            f"or fraction=0.1 (got '{goal[0]}')."
        )
    return dict([named_value(goal[0], "--goal accuracy=0.95")]) if goal else None


def with_plugins(document: dict[str, Any], plugins: list[str] | None) -> dict[str, Any]:
    """Return a configuration with the plugins of the command line beside its own."""
    return (
        {**document, "plugins": [*document.get("plugins", ()), *plugins]} if plugins else document
    )


def check_there(*paths: Path | None) -> None:
    """Raise unless the given files exist; commands call this before their long imports."""
    for path in filter(None, paths):
        if isinstance(as_path(path), RemotePath):
            continue
        try:
            path.stat()
        except FileNotFoundError:
            raise FileError(f"{path} does not exist. Check the path.") from None
        except OSError:
            continue  # opening the file will say what else is wrong with it


def print_lines(console: Console, *lines: str) -> None:
    """Print lines as they are, without breaking or coloring them."""
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)


def result_table(
    console: Console,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
) -> Table:
    """Return a table: names in the first column, which are never cut, and numbers in the others.

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
    """Yield the callback that shows progress on `console`: a live line per stage, or a log.

    A stage without a total ends when another stage reports. The callback also ends the work if
    Ctrl-C was pressed and Python dropped it.
    """
    open_ended: str | None = None
    columns = (TextColumn("{task.description:<32}"), BarColumn(), TimeElapsedColumn())
    bars = Progress(*columns, console=console) if console.is_terminal else None
    show = _Lines(console, bars)
    with _remembered_interrupts() as check, bars or nullcontext():

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
    """After Ctrl-C, say that nothing finished is lost."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write("hsreject: stopped. The same command continues from what is finished.\n")
        raise


class _Lines:
    """One line per stage: a bar with its time, or in a log one line at the beginning and the end.

    Stages nest: a run reports "context", and while that is open its solver reports "loading
    kernels". Only the outermost stage gets a line; whatever reports inside is a step of it.
    """

    def __init__(self, console: Console, bars: Progress | None) -> None:
        self._console, self._bars = console, bars
        self._tasks: dict[str, TaskID] = {}
        self._open: str | None = None
        self._ended: str | None = None
        self._begun = 0.0

    def __call__(self, stage: str, done: float, total: float | None) -> None:
        complete = total is not None and done >= total
        if self._open is None:
            if complete and stage == self._ended:
                return  # its end was shown already
            self._open, self._begun = stage, time.monotonic()
            self._begin(stage)
        if self._bars is not None:
            text = stage if stage == self._open else f"{self._open}: {stage}"
            task = self._tasks[self._open]
            self._bars.update(task, description=text, completed=done, total=total)
        if stage == self._open and complete:
            self._open, self._ended = None, stage
            self._end(stage)

    def _begin(self, stage: str) -> None:
        if self._bars is None:
            self._console.print(f"{stage} ...", highlight=False)
        elif stage in self._tasks:  # another seed
            self._bars.reset(self._tasks[stage])
        else:
            self._tasks[stage] = self._bars.add_task(stage, total=None)

    def _end(self, stage: str) -> None:
        if self._bars is None:
            seconds = time.monotonic() - self._begun
            self._console.print(f"{stage} done in {seconds:.1f} s", highlight=False)
        else:
            self._bars.stop_task(self._tasks[stage])


@contextmanager
def _remembered_interrupts() -> Iterator[Callable[[], None]]:
    """Yield a function that raises KeyboardInterrupt if Ctrl-C was pressed.

    Python itself raises it at once, but drops it inside a finaliser or a callback of compiled code:
    of forty presses while kernels were loaded, one was lost. The work goes on then, calls this
    function at its next report, and ends. Any error after a press counts as the interrupt.
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
        yield check  # never raises: a program that embeds the command line handles Ctrl-C itself
        return
    show_dropped = sys.unraisablehook

    def show_other(dropped: UnraisableHookArgs) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            show_dropped(dropped)

    signal.signal(signal.SIGINT, press)
    sys.unraisablehook = show_other
    try:
        yield check
    except Exception:
        check()  # compiled code, such as that of h5py, may make another error of the interrupt
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = show_dropped
