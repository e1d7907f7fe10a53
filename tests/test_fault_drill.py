"""A few rounds of the fault drill; `python -m tools.fault_drill` does as many as one likes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMANDS = {
    "at any time": "--rounds 3 --seed 2 --tasks map write_map",
    "between two steps": "--seams --renames --every 2 --tasks certify polygons next",
}


@pytest.mark.posix
@pytest.mark.parametrize("options", COMMANDS.values(), ids=COMMANDS)
def test_what_is_stopped_goes_on_to_the_same_files(options) -> None:
    """In a process without threads, which alone can be forked safely."""
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "tools.fault_drill", *options.split()],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root), "OMP_NUM_THREADS": "1"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
