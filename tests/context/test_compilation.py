"""Kernels compiled in this process and kernels loaded from disk compute the same."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hsreject import compilation

ROOT = str(Path(compilation.__file__).parents[1])
SOLVE = """
import hashlib
for prior in (hr.VectorTV(1.0), hr.StructureTensor(0.5)):
    result = hr.SegSALSA(prior, tol=1e-4).solve(probability)
    print(hashlib.sha256(np.ascontiguousarray(result.hidden_field).tobytes()).hexdigest())
"""
PREPARE = """
import numpy as np
import hsreject as hr
probability = np.random.default_rng(0).dirichlet(np.full(5, 0.3), (60, 70)).transpose(2, 0, 1)
hr.SegSALSA, hr.VectorTV  # numba is imported with them, and drops interrupts meanwhile
"""
# Root may write wherever it likes, unless it gives that up.
WITHOUT_PRIVILEGES = """
import ctypes, struct
ctypes.CDLL(None).capset(struct.pack("Ii", 0x20080522, 0), bytes(24))
"""
INTERRUPTED = """
import os, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
pressed, stages = 0, []
threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(10_000):
        hr.SegSALSA(hr.VectorTV(1.0), tol=1e-4).solve(
            probability, progress=lambda stage, *_: stages.append(stage)
        )
except KeyboardInterrupt:
    pressed += 1
print(pressed, stages[0])
"""


def test_sigterm_waits_for_the_end_of_a_kernel(monkeypatch) -> None:
    heard = []
    kernel = compilation.compiled(lambda: 0.0)
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))

    def stopped() -> list[int]:
        signal.raise_signal(signal.SIGTERM)
        return [*heard]

    monkeypatch.setattr(kernel, "_function", stopped)
    try:
        assert kernel() == []
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.posix
@pytest.mark.skipif(sys.platform != "linux", reason="privileges are dropped the way of Linux")
def test_kernels_compile_in_read_only_places_through_ctrl_c_to_the_bits_of_kept_ones(
    tmp_path: Path,
) -> None:
    """Nothing can be written: not the package, not the home, not the place named for kernels.

    Ctrl-C while they are compiled is neither lost nor a crash, and leaves nothing by halves.
    """
    package, home = tmp_path / "package", tmp_path / "home"
    home.mkdir()
    shutil.copytree(Path(compilation.__file__).parent, package / "hsreject", ignore=_caches)
    for folder in (home, package, *filter(Path.is_dir, package.rglob("*"))):
        folder.chmod(0o555)
    nowhere = {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home),
        "PYTHONPATH": str(package),
        "NUMBA_CACHE_DIR": str(home / "kernels"),
    }
    said, *compiled = _run(WITHOUT_PRIVILEGES + PREPARE + INTERRUPTED + SOLVE, nowhere, tmp_path)
    assert said == "1 compiling kernels (set NUMBA_CACHE_DIR to keep them)"
    assert not list(home.iterdir())
    assert compiled == _run(PREPARE + SOLVE, {"PYTHONPATH": ROOT}, tmp_path)


def _caches(_folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


def _run(code: str, environment: dict[str, str], place: Path) -> list[str]:
    """Run code in a process of its own and return the lines that it prints; it may not complain."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        cwd=place,
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.posix
def test_code_that_cannot_be_kept_is_used_all_the_same(tmp_path: Path) -> None:
    """Without a source file there is no place to keep it; on a full disk the place is too small."""
    made: dict[str, Any] = {}
    exec("def twice(x):\n    return 2 * x", made)
    twice = compilation.compiled(made["twice"])
    assert "NUMBA_CACHE_DIR" in twice.first_use
    assert twice(2) == 4
    (tmp_path / "thrice.py").write_text(
        "import resource\nfrom hsreject.compilation import compiled\n"
        "def twice(x):\n    return 2 * x\n"
        "for said in ('compiling kernels (only once)', 'loading kernels'):\n"
        "    made = compiled(twice)\n    assert made.first_use == said\n    assert made(2) == 4\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "thrice = compiled(lambda x: 3 * x)\nassert thrice(2) == 6\n"
    )
    environment = {"PYTHONPATH": ROOT, "NUMBA_CACHE_DIR": str(tmp_path)}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # of which Python 3.11 would leave a half
    _run("import thrice", environment, tmp_path)
