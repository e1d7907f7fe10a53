"""`import hsreject` is quick and quiet, and every public name resolves."""

import subprocess
import sys
from pathlib import Path

import pytest

import hsreject

HEAVY = (
    "dask",
    "matplotlib",
    "numba",
    "rasterio",
    "rioxarray",
    "sklearn",
    "xarray",
    "spectral",
    "numpy",
)


def test_import_is_light_and_silent() -> None:
    code = f"import sys, hsreject; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


@pytest.mark.parametrize("name", hsreject.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(hsreject, name) is not None
    assert name in dir(hsreject)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = hsreject.no_such_name


def test_the_stub_names_the_module_that_defines_each_name() -> None:
    stub = Path(hsreject.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    lines = [line for line in stub.splitlines() if line.startswith("from ")]
    assert len(lines) == len(hsreject.__all__) - 1  # __version__ is defined here
    for line in lines:
        module, name = line.split()[1], line.split()[3]
        assert line == f"from {module} import {name} as {name}"
        assert getattr(hsreject, name).__module__ == module
