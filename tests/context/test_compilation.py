"""Kernels compiled in this process and kernels loaded from disk compute the same."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

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
        subprocess.run(command, env=environment, capture_output=True, check=True).stdout.split()
        for _ in range(2)
    )
    assert compiled == kept
    assert compiled[-2:] == [b"loading", b"kernels"]  # what a user sees while waiting
