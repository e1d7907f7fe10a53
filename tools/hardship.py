"""Commands under hardship: each kind is tried once on a small scene, and the outcome printed.

    python -m tools.hardship

Needs the locales de_DE.UTF-8 and tr_TR.UTF-8 (``localedef``), and root for disks; what is missing
is said. Kills at random and at the seams are those of ``tools.fault_drill``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import hsreject as hr
from tests.test_at_once import SEEDS, in_processes, reject_map
from tools.fault_drill import COMMANDS, MAP, SCENE, can_mount, content, prepare, same

TASKS = "map run certify polygons"
MESSAGE = "hsreject: "


def start(folder: Path, line: str, **variables: str) -> subprocess.Popen[str]:
    """Start a command in a folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "hsreject", *line.split()],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(hr.__file__).parents[1])} | variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str], *codes: int) -> str:
    """Return how a command ended; raise unless it has one of the codes and no traceback."""
    _, errors = process.communicate(timeout=600)
    assert process.returncode in codes, f"exit code {process.returncode}: {errors[-1500:]}"
    assert "Traceback" not in errors, errors[-1500:]
    last = [line for line in errors.splitlines() if line.startswith(MESSAGE)]
    return last[-1].removeprefix(MESSAGE) if last else ""


def drilled(*faults: str, tasks: str, rounds: int = 8) -> str:
    """Disturb commands by faults of the drill, in a process of its own, which forks safely."""
    command = [sys.executable, "-m", "tools.fault_drill", "--rounds", str(rounds), "--tasks"]
    done = subprocess.run(
        [*command, *tasks.split(), *(["--faults", *faults] if faults else [])],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-1500:]
    number = done.stdout.splitlines()[-1].split()[0]
    return f"{number} times in {tasks}: complete and identical when repeated"


def replaced(folder: Path) -> str:
    """Replace the scene while it is mapped."""
    cube = hr.open_scene(folder / SCENE)
    cube.copy(data=cube.values[:, ::-1]).rio.to_raster(folder / "other.tif")
    process = start(folder, MAP)
    while not list(folder.glob("out/.unfinished.*/*.npy")) and process.poll() is None:
        time.sleep(0.005)
    (folder / "other.tif").replace(folder / SCENE)
    told = ended(process, 2)
    assert "changed" in told, told
    ended(start(folder, MAP), 0)
    ended(start(folder, MAP.replace("--out out", "--out anew")), 0)
    assert same(*(list(content_of(folder, name).values()) for name in ("out", "anew")))
    return "refused in a sentence; the next call maps the new file"


def content_of(folder: Path, name: str) -> Mapping[str, bytes]:
    """Return the files of a result, but for what says how it was stopped."""
    paths = sorted(path for path in (folder / name).rglob("*") if path.is_file())
    return {path.name: path.read_bytes() for path in paths if path.suffix != ".toml"}


def two_at_once(folder: Path) -> str:
    """Give the same command twice at once, into one folder."""
    for task in ("map", "run"):
        both = [start(folder, COMMANDS[task]) for _ in range(2)]
        told = [ended(process, 0, 2) for process in both]
        assert sorted(process.returncode for process in both) == [0, 2], told
        (folder / "out").rename(folder / f"{task}-at-once")
    return "map, run: one ends well, the other is refused in a sentence"


def in_a_locale(folder: Path, name: str) -> str:
    """Do commands in a locale and compare their files with those of the plain one."""
    tasks = ["run", "map", "certify", "polygons", "assess", "sample"]
    for task in tasks:
        whole = []
        for variables in ({"LC_ALL": "C.UTF-8"}, {"LC_ALL": name, "LANG": name}):
            here = Path(tempfile.mkdtemp(dir=folder.parent))
            shutil.copytree(folder, here, dirs_exist_ok=True)
            ended(start(here, COMMANDS[task], **variables), 0)
            whole.append(content(here))
        assert same(*whole), f"{task} differs in {name}"
    return f"{', '.join(tasks)}: the same files"


def spawned_and_forked(_: Path) -> str:
    """Compute maps in processes that are spawned, and forked."""
    in_turn = [reject_map(seed) for seed in SEEDS]
    for method in ("spawn", "fork"):
        assert in_processes(method) == in_turn, method
    return "the same maps as one after the other"


def _main() -> bool:
    disks = can_mount()
    known = subprocess.run(["locale", "-a"], capture_output=True, text=True, check=False).stdout
    hardships: dict[str, Callable[[Path], str]] = {
        "disk full": lambda _: drilled("fill", tasks=TASKS) if disks else "not tried",
        "files that may not grow": lambda _: drilled("limit", tasks=TASKS),
        "read-only disk": lambda _: drilled("protect", tasks=TASKS) if disks else "not tried",
        "SIGTERM where SIGINT is ignored": lambda _: drilled(
            "terminate_in_background", tasks=TASKS
        ),
        "scene replaced while it is mapped": replaced,
        "two processes in one folder": two_at_once,
        "spawn and fork": spawned_and_forked,
        "dask worker killed": lambda _: drilled(tasks="workers", rounds=2),
    }
    for name in ("de_DE", "tr_TR"):
        hardships[f"locale {name}"] = lambda folder, name=name: (
            in_a_locale(folder, f"{name}.UTF-8") if f"{name}.utf8" in known else "not tried"
        )
    failed = False
    with tempfile.TemporaryDirectory() as place:
        inputs = Path(place, "inputs")
        inputs.mkdir()
        prepare(inputs)  # first: it forks
        for number, title in enumerate(sys.argv[1:] or hardships):
            try:
                outcome = hardships[title](Path(shutil.copytree(inputs, Path(place, str(number)))))
            except AssertionError as error:
                outcome, failed = f"WRONG: {error}", True
            sys.stdout.write(f"| {title} | {outcome} |\n")
            sys.stdout.flush()
    return failed


if __name__ == "__main__":
    sys.exit(_main())
