"""`import hsreject` is quick and quiet, and every public name resolves."""

import subprocess
import sys

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
