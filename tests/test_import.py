"""`import hsreject` is quick and quiet, and every public name resolves."""

import signal
import subprocess
import sys

import pytest

import hsreject as hr

HEAVY = ("dask", "matplotlib", "numba", "numpy", "rasterio", "sklearn", "spectral", "xarray")


def test_import_is_light_and_silent() -> None:
    code = f"import sys, hsreject; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


def test_every_public_name_resolves() -> None:
    assert {"plot", "errors", "schema", "HsrejectError", "rejection_curve"} <= set(hr.__all__)
    for name in hr.__all__:
        assert getattr(hr, name) is not None
        assert name in dir(hr)
    for name in hr.plot.__all__:
        assert getattr(hr.plot, name) is not None


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = hr.no_such_name


RECEIVING = """
import os, signal, sys

class Receiving:
    def find_spec(self, name, *_):
        if name == "typer":
            os.kill(os.getpid(), int(sys.argv[1]))

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
sys.meta_path.insert(0, Receiving())
from hsreject.__main__ import main
main()
"""

BUILDING = """
import os, signal, sys
import hsreject.cli
from hsreject.__main__ import main

signal.signal(signal.SIGINT, signal.default_int_handler)
hsreject.cli.app = lambda: os.kill(os.getpid(), int(sys.argv[1]))  # before typer listens
main()
"""

BACKGROUND = BUILDING.replace("default_int_handler", "SIG_IGN")  # as in "command &" of a script


@pytest.mark.posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", [RECEIVING, BUILDING], ids=["import", "commands"])
def test_a_signal_while_the_command_line_loads_is_silent(
    moment: str, number: signal.Signals
) -> None:
    command = [sys.executable, "-c", moment, str(int(number))]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", b"")


@pytest.mark.posix
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 0)])
def test_jobs_in_the_background_heed_sigterm_alone(number: signal.Signals, code: int) -> None:
    command = [sys.executable, "-c", BACKGROUND, str(int(number))]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")
