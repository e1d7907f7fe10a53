"""Timing on a shared machine: best of several, one process, threads under control."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True)
class Row:
    """One line of a benchmark table: what was measured, the figure, and the bound set for it."""

    what: str
    measured: str
    bound: str = ""


def best_seconds(
    function: Callable[[], object],
    *,
    repeat: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the shortest of `repeat` run times: the one that others disturbed least.

    With the clock `time.process_time` it is the time of the processor, whatever others do.
    """
    times = []
    for _ in range(repeat):
        start = clock()
        function()
        times.append(clock() - start)
    return min(times)


def best_in_turns(
    functions: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    repeat: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Return the shortest run time of each function, run `repeat` times in each turn.

    A slow minute of the machine then falls on all of them, and the ratios stand.
    """
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(rounds):
        for name, function in functions.items():
            best[name] = min(best[name], best_seconds(function, repeat=repeat, clock=clock))
    return best


def peak_bytes(code: str, *, environment: dict[str, str] | None = None) -> int:
    """Return the peak resident memory of a fresh Python process that runs `code`."""
    # not ru_maxrss: a process inherits that from the one that started it
    tail = (
        "\nimport re, sys\n"
        "status = open('/proc/self/status').read()\n"
        "sys.stderr.write('\\n' + re.search(r'VmHWM:\\s+(\\d+)', status)[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + tail],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    return int(done.stderr.splitlines()[-1]) * 1024
