"""Kernels compiled in this process and kernels loaded from disk compute the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hsreject import compilation

SOLVE = """
import hashlib
import numpy as np
import hsreject as hr
probability = np.random.default_rng(0).dirichlet(np.full(5, 0.3), (60, 70)).transpose(2, 0, 1)
stages = []
for prior in (hr.VectorTV(1.0), hr.StructureTensor(0.5)):
    result = hr.SegSALSA(prior, tol=1e-4).solve(
        probability, progress=lambda stage, *_: stages.append(stage)
    )
    print(hashlib.sha256(np.ascontiguousarray(result.hidden_field).tobytes()).hexdigest())
print(stages[0])
"""


def test_compiled_and_kept_code_give_the_same_bits(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", SOLVE]
    compiled, kept = (
        subprocess.run(
            command, env=environment, capture_output=True, check=True
        ).stdout.splitlines()
        for _ in range(2)
    )
    assert compiled[:2] == kept[:2]
    # what a user sees while waiting
    assert (compiled[2], kept[2]) == (b"compiling kernels (only once)", b"loading kernels")


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import hsreject as hr
probability = np.random.default_rng(0).dirichlet(np.full(5, 0.3), (60, 70)).transpose(2, 0, 1)
hr.SegSALSA, hr.VectorTV  # numba is imported with them, and drops interrupts meanwhile
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
pressed = 0
threading.Timer(float(os.environ["DELAY"]), lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(10_000):
        hr.SegSALSA(hr.VectorTV(1.0), tol=1e-4).solve(probability)
except KeyboardInterrupt:
    pressed += 1
hr.SegSALSA(hr.VectorTV(1.0), tol=1e-4).solve(probability)  # nothing is left by halves
print("pressed", pressed)
"""


@pytest.mark.parametrize("delay", [0.4])
def test_ctrl_c_while_kernels_are_compiled_is_neither_lost_nor_a_crash(
    delay: float, tmp_path: Path
) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "DELAY": str(delay)}
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], env=environment, capture_output=True, check=True
    )
    assert done.stdout.split() == [b"pressed", b"1"]


def test_code_that_cannot_be_kept_is_used_all_the_same(tmp_path: Path) -> None:
    """Without a source file there is no place to keep it; on a full disk the place is too small."""
    made: dict[str, Any] = {}
    exec("def twice(x):\n    return 2 * x", made)
    twice = compilation.compiled(made["twice"])
    assert "NUMBA_CACHE_DIR" in twice.first_use
    assert twice(2) == 4
    (tmp_path / "thrice.py").write_text(
        "import resource\nfrom hsreject.compilation import compiled\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "thrice = compiled(lambda x: 3 * x)\nassert thrice(2) == 6\n"
    )
    root = Path(compilation.__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": str(root), "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "thrice.py"], cwd=tmp_path, env=environment, check=True)
