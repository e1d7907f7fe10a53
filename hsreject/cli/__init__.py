"""The command line: one file a command, one exit code for bad input.

Commands import what they need when they run, so that ``hsreject --help`` is quick.
"""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Callable
from typing import Any

from hsreject.cli.application import app
from hsreject.errors import HsrejectError, HsrejectWarning

BAD_INPUT = 2
_OF_THE_SYSTEM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO)


def main() -> None:
    """Run the command line; bad input ends in one line on standard error and exit code 2."""
    with warnings.catch_warnings():
        warnings.showwarning = _one_line(warnings.showwarning)
        try:
            app()
        except HsrejectError as error:
            sys.stderr.write(f"hsreject: {error}\n")
            sys.exit(BAD_INPUT)
        except OSError as error:  # of a place that no command has thought of, such as a full /tmp
            if error.errno not in _OF_THE_SYSTEM:
                raise
            where = f": {error.filename}" if error.filename else ""
            sys.stderr.write(f"hsreject: {error.strerror}{where}\n")
            sys.exit(BAD_INPUT)


def _one_line(show: Callable[..., None]) -> Callable[..., None]:
    """Return how warnings are shown: those of hsreject are for users, who need no line of code."""

    def show_warning(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, HsrejectWarning):
            sys.stderr.write(f"hsreject: {message}\n")
        else:
            show(message, category, *place)

    return show_warning
