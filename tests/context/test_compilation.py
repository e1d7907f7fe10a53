"""Compiled kernels: kept on disk, announced when they must be made, dropped when they are old."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hsreject.context.kernels.compilation import announcing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SOURCE = """
from hsreject.compilation import kernel


@kernel
def increment(number):
    return number + 1
"""

SOLVE = """
import hashlib
import numpy as np
import hsreject as hr
probability = np.random.default_rng(0).dirichlet(np.full(5, 0.3), (60, 70)).transpose(2, 0, 1)
for dtype in ("float32", "float32", "float64"):
    stages = []
    segsalsa = hr.SegSALSA(hr.VectorTV(1.0), tol=1e-4, dtype=dtype)
    result = segsalsa.solve(probability, progress=lambda stage, *_: stages.append(stage))
    print("compiling" if stages[0].startswith("compiling") else "loaded")
    print(hashlib.sha256(np.ascontiguousarray(result.hidden_field).tobytes()).hexdigest())
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[[], Any]:
    """A function that imports a file with a kernel afresh, as a new process would."""
    path = tmp_path / "increment_kernel.py"
    path.write_text(SOURCE, encoding="utf-8")

    def load() -> Any:
        spec = importlib.util.spec_from_file_location("increment_kernel", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.increment

    return load


def compiles(increment: Callable[[int], int]) -> bool:
    """Return whether a call is announced as one that compiles."""
    announcements: list[str] = []
    with announcing(lambda: announcements.append("compiling")):
        assert increment(1) == 2
    assert len(announcements) <= 1
    return bool(announcements)


def test_only_the_first_use_compiles(load: Callable[[], Any]) -> None:
    first = load()
    assert compiles(first)
    assert not compiles(first)
    assert not compiles(load())


def test_code_older_than_the_kernel_sources_is_dropped(
    load: Callable[[], Any], tmp_path: Path
) -> None:
    load()(1)
    indices = list(tmp_path.rglob("*.nbi"))
    assert len(indices) == 1
    os.utime(indices[0], (0, 0))
    assert compiles(load())


def test_compiled_and_kept_code_give_the_same_bits(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    compiled, kept = (
        subprocess.run(
            [sys.executable, "-c", SOLVE], env=environment, capture_output=True, check=True
        ).stdout.split()
        for _ in range(2)
    )
    assert compiled[1::2] == kept[1::2]
    # every precision is compiled once, and the user is told each time
    assert compiled[::2] == [b"compiling", b"loaded", b"compiling"]
    assert kept[::2] == [b"loaded"] * 3
