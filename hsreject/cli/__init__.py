"""The command line: one file per group of commands, one exit code for bad input.

Commands import what they need when they run, so that ``hsreject --help`` is quick and a missing
file is reported at once.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Annotated, Any

import typer

from hsreject import __version__
from hsreject.cli.certify_commands import assess_command, certify_command
from hsreject.cli.config_command import config_app
from hsreject.cli.evaluate_commands import evaluate_command, explore_command
from hsreject.cli.fetch_command import fetch_command
from hsreject.cli.handover_commands import next_command, polygons_command
from hsreject.cli.info_command import info_command
from hsreject.cli.init_commands import groups_command, init_command
from hsreject.cli.map_command import map_command
from hsreject.cli.run_commands import run_command, train_command
from hsreject.cli.sample_commands import label_command, sample_command
from hsreject.errors import HsrejectError, HsrejectWarning, shown

BAD_INPUT = 2
STOPPED = 130  # how typer ends after Ctrl-C
TERMINATED = 143
_SYSTEM_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO)

app = typer.Typer(
    name="hsreject",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

# in the order in which a newcomer needs them
app.command("init")(init_command)
app.command("run")(run_command)
app.command("info")(info_command)
app.command("train")(train_command)
app.command("map")(map_command)
app.command("evaluate")(evaluate_command)
app.command("sample")(sample_command)
app.command("label")(label_command)
app.command("certify")(certify_command)
app.command("assess")(assess_command)
app.command("next")(next_command)
app.command("polygons")(polygons_command)
app.command("groups")(groups_command)
app.command("explore")(explore_command)
app.command("fetch")(fetch_command)
app.add_typer(config_app, name="config")


def _show_version(show: bool) -> None:  # noqa: FBT001
    if show:
        typer.echo(f"hsreject {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Land-cover maps from hyperspectral images that say where they do not know."""


def main() -> None:
    """Run the command line; bad input ends in one line on standard error and exit code 2."""
    terminated = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        terminated.set()
        raise KeyboardInterrupt  # by itself: jobs in the background have SIGINT ignored

    # batch systems end jobs with SIGTERM: it is treated as Ctrl-C
    before = signal.signal(signal.SIGTERM, interrupt)
    with warnings.catch_warnings():
        warnings.showwarning = partial(_show_warning, warnings.showwarning)
        try:
            app()
        except HsrejectError as error:
            sys.stderr.write(f"hsreject: {error}\n")
            sys.exit(BAD_INPUT)
        except (KeyboardInterrupt, SystemExit) as ended:
            # typer turns an interrupt into STOPPED, except while it is still building its commands
            if isinstance(ended, SystemExit) and ended.code != STOPPED:
                raise
            sys.stdout.flush()
            sys.stderr.flush()
            # at once: Python would wait for the tasks of its threads
            os._exit(TERMINATED if terminated.is_set() else STOPPED)
        except OSError as error:  # where no command expects one, such as a full /tmp
            if error.errno not in _SYSTEM_ERRORS:
                raise
            where = f": {error.filename}" if error.filename else ""
            sys.stderr.write(shown(f"hsreject: {error.strerror}{where}\n"))
            sys.exit(BAD_INPUT)
        finally:
            signal.signal(signal.SIGTERM, before)


def _show_warning(
    show_other: Callable[..., None], message: Warning | str, category: type[Warning], *place: Any
) -> None:
    """Show warnings of hsreject in one line, without the code that raised them, others as usual."""
    if issubclass(category, HsrejectWarning):
        sys.stderr.write(f"hsreject: {message}\n")
    else:
        show_other(shown(str(message)), category, *place)
