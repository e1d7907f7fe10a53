"""Call the command line in this process, as a user does."""

import sys

import pytest

from hsreject.cli import main


def call(*arguments: object) -> int:
    """Run ``hsreject`` with these arguments and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["hsreject", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
    return int(stopped.value.code or 0)
