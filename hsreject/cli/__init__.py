"""The command line: one file a command, one exit code for bad input.

Commands import what they need when they run, so that ``hsreject --help`` is quick.
"""

from __future__ import annotations

import sys

from hsreject.cli.application import app
from hsreject.errors import HsrejectError

BAD_INPUT = 2


def main() -> None:
    """Run the command line; bad input ends in one line on standard error and exit code 2."""
    try:
        app()
    except HsrejectError as error:
        sys.stderr.write(f"hsreject: {error}\n")
        sys.exit(BAD_INPUT)
