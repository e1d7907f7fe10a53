"""The fault drill: stop commands at random moments, let them go on, and compare to the last byte.

    python -m tools.fault_drill --rounds 300 --seed 0

Each round does one of `run`, `map`, `train` and `write_map` on a small scene and disturbs it, once
or twice: kill -9, Ctrl-C, SIGTERM, a full disk, a folder that cannot be written, a scene cut short,
a dask worker that dies. Then the same command is given again and must end with the files of an
undisturbed one. Faults of disks need small file systems of their own, which root can mount; others
get a limit on the size of files. Commands are forked from a process that has everything imported.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import dask.array as da
import matplotlib.font_manager  # noqa: F401  # before disks are full: it writes a cache
import numpy as np

import hsreject as hr
import hsreject.mapping.map_scene
import hsreject.pipeline.run
import hsreject.pipeline.training
from hsreject.cli import main

LONGEST = 300.0  # seconds that any command may take before it counts as hanging
SCENE = "scene.tif"
CONFIG = """
[scene]
name = "files"
path = "scene.tif"
labels = "labels.tif"

[[features]]
name = "pca"
n_components = 4

[classifier]
name = "lda"

[context]
prior = "vector_tv"

[[rejectors]]
name = "sequential"
"""
MAP = f"map {SCENE} --model model.skops --fraction 0.1 --block-size 24 --n-workers 2 --out out"
# One line per task: what to call in the folder of a round; all end in something called `out`.
COMMANDS = {
    "run": "run config.toml --out out",
    "map": MAP,
    "train": "train config.toml --model out",
    "write_map": "",
    "workers": MAP,
}


def write_map() -> None:
    """Write a map block by block, each of which takes a moment."""
    labels = hr.open_map("labels.tif")

    def slowly(block: np.ndarray) -> np.ndarray:
        time.sleep(0.01)
        return block

    lazy = da.from_array(labels.values, chunks=(20, 20)).map_blocks(slowly, dtype=labels.dtype)
    hr.write_map(labels.copy(data=lazy), "maps/out.tif", overwrite=True)


def prepare(folder: Path) -> None:
    """Write the inputs of all tasks."""
    cube, labels = hr.synthetic_scene(rows=90, columns=80, n_classes=4, n_bands=10, seed=1)
    cube.drop_vars("wavelength").rio.to_raster(folder / SCENE)
    hr.write_map(labels, folder / "labels.tif")
    (folder / "config.toml").write_text(CONFIG)
    (folder / "maps").mkdir()
    assert in_a_child(folder, "train", extra=["--model", "model.skops"]).wait() == 0


@dataclass
class Child:
    """A command in a process of its own, forked from this one."""

    pid: int
    errors: Path
    begun: float = field(default_factory=time.monotonic)
    code: int | None = None

    def poll(self) -> int | None:
        if self.code is None:
            done, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if done else None
        return self.code

    def send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def wait(self, longest: float = LONGEST) -> int:
        """Return the exit code; a command that hangs is killed and gives -999."""
        end = time.monotonic() + longest
        while self.poll() is None:
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
                self.code = -999
                break
            time.sleep(0.005)
        assert self.code is not None
        return self.code

    @property
    def complaint(self) -> str:
        return self.errors.read_text(errors="replace")


def _not_yet(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def in_a_child(
    folder: Path, task: str, *, extra: list[str] | None = None, room: int | None = None
) -> Child:
    """Start a task in `folder`, with files of at most `room` bytes."""
    errors = folder.parent / f"{folder.name}.err"
    errors.touch()
    signal.signal(signal.SIGTERM, _not_yet)  # the command line has its own in a moment
    pid = os.fork()
    if pid:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        return Child(pid, errors)
    code = 1
    try:
        os.chdir(folder)
        with errors.open("w") as stream, Path(os.devnull).open("w") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if task == "write_map":
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if room is not None:
            sys.dont_write_bytecode = True  # of which Python 3.11 would leave a half
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        code = _perform(task, extra or [])
    except SystemExit as ended:
        code = int(ended.code or 0)
    except KeyboardInterrupt:
        code = 130
    except BaseException:  # noqa: BLE001  # a child must never return into the drill
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _perform(task: str, extra: list[str]) -> int:
    if task != "write_map":
        sys.argv = ["hsreject", *COMMANDS[task].split(), *extra]
        main()
        return 0
    try:
        write_map()
    except hr.HsrejectError as error:
        sys.stderr.write(f"hsreject: {error}\n")
        return 2
    return 0


# What a task leaves, in a form that two runs have in common.


def content(folder: Path) -> dict[str, object]:
    """Return what is under the final names, without what times, dates and stops change."""
    out = folder / ("out" if (folder / "out").exists() else "maps")
    if out.is_file():
        model = hr.load_model(out)
        scene = hr.open_scene(folder / SCENE)
        calibration = {name: values.tobytes() for name, values in model.calibration.items()}
        return {"out": model.classifier.predict_proba(scene).values.tobytes(), **calibration}
    files = [path for path in out.rglob("*") if path.is_file()]
    names = {path.relative_to(out).as_posix(): path for path in files}
    return {name: _essence(path) for name, path in names.items() if "/." not in f"/{name}"}


def _essence(path: Path) -> object:
    if path.suffix == ".nc":
        data = hr.open_dataset(path).load().drop_vars(["seconds", "stage_seconds"], errors="ignore")
        data.attrs.pop("seconds", None)
        return data.to_dict()
    if path.suffix == ".html":
        return "</html>" in path.read_text()  # its table has a column of seconds
    if path.name == "summary.toml":
        return [line for line in path.read_text().splitlines() if "continued" not in line]
    return path.read_bytes()


def same(one: object, other: object) -> bool:
    """Compare what `content` gives; NaN is like NaN."""
    return repr(one) == repr(other)


# Faults. Each starts the task in a folder, disturbs it and returns its exit code.


@dataclass
class Round:
    """One disturbed task."""

    task: str
    folder: Path
    seconds: float  # that the task takes undisturbed
    dice: random.Random
    complaints: list[str] = field(default_factory=list)

    def moment(self) -> float:
        return self.dice.uniform(0, 1.1 * self.seconds)

    def check(self, *, right: bool, what: str) -> None:
        if not right:
            self.complaints.append(what)

    def ended(self, child: Child, *codes: int) -> None:
        """Check how a disturbed command ended; it may have been done before."""
        code = child.wait()
        complaint = child.complaint[-500:]
        self.check(right=code in (0, *codes), what=f"exit code {code}, not {codes}: {complaint}")
        self.check(right="Traceback" not in child.complaint, what=child.complaint[-2000:])
        self.check(
            right=code != 2 or child.complaint.splitlines()[-1].startswith("hsreject: "),
            what=f"no clear sentence: {child.complaint[-500:]}",
        )


def kill(trial: Round) -> None:
    """Kill -9: nobody can tidy up."""
    child = in_a_child(trial.folder, trial.task)
    time.sleep(trial.moment())
    child.send(signal.SIGKILL)
    trial.ended(child, -signal.SIGKILL)


def _stop(trial: Round, number: signal.Signals, code: int, presses: int) -> None:
    child = in_a_child(trial.folder, trial.task)
    time.sleep(trial.moment())
    for _ in range(presses):
        child.send(number)
        time.sleep(trial.dice.uniform(0, 0.05))
    trial.ended(child, code)


def press(trial: Round) -> None:
    """Ctrl-C."""
    _stop(trial, signal.SIGINT, 130, 1)


def press_often(trial: Round) -> None:
    """Ctrl-C by somebody who cannot wait."""
    _stop(trial, signal.SIGINT, 130, trial.dice.randint(2, 5))


def terminate(trial: Round) -> None:
    """SIGTERM, as batch systems do; the library itself leaves it to Python."""
    _stop(trial, signal.SIGTERM, -signal.SIGTERM if trial.task == "write_map" else 143, 1)


def limit(trial: Round) -> None:
    """Files that may not grow: writing fails in the middle of one."""
    child = in_a_child(trial.folder, trial.task, room=int(10 ** trial.dice.uniform(3.5, 5)))
    trial.ended(child, 2)


def fill(trial: Round) -> None:
    """A disk with little room, and more of it later."""
    with mounted(trial.folder, size=10 ** trial.dice.uniform(5, 6.2)):
        trial.ended(in_a_child(trial.folder, trial.task), 2)


def protect(trial: Round) -> None:
    """A disk that may not be written to."""
    with mounted(trial.folder, size=10**8):
        _mount("-o", "remount,ro", trial.folder)
        trial.ended(in_a_child(trial.folder, trial.task), 2)
        _mount("-o", "remount,rw", trial.folder)


def truncate(trial: Round) -> None:
    """A scene of which only a part has arrived."""
    scene = trial.folder / SCENE
    whole, state = scene.read_bytes(), scene.stat()
    scene.write_bytes(whole[: trial.dice.randrange(len(whole))])
    child = in_a_child(trial.folder, trial.task)
    trial.ended(child, 2)
    trial.check(right=child.code != 0 or trial.task == "write_map", what="half a scene was taken")
    scene.write_bytes(whole)
    os.utime(scene, ns=(state.st_atime_ns, state.st_mtime_ns))


def lose_worker(trial: Round) -> None:
    """A dask worker that dies in the middle: nobody notices."""
    with cluster() as (address, workers):
        child = in_a_child(trial.folder, "workers", extra=["--cluster", address])
        time.sleep(trial.moment())
        os.kill(trial.dice.choice(workers), signal.SIGKILL)
        code = child.wait()
    trial.check(right=code == 0, what=f"exit code {code}: {child.complaint[-1000:]}")
    trial.check(right="Traceback" not in child.complaint, what=child.complaint[-2000:])


def _mount(*arguments: object) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True, capture_output=True)


@contextmanager
def mounted(folder: Path, *, size: float) -> Iterator[None]:
    """Put a small file system under a folder; what is in it moves in, and out again."""
    aside = folder.with_name(f"{folder.name}.aside")
    folder.rename(aside)
    folder.mkdir()
    _mount("-t", "tmpfs", "-o", "size=16m", "tmpfs", folder)
    try:
        shutil.copytree(aside, folder, dirs_exist_ok=True)
        taken = sum(path.stat().st_blocks * 512 for path in folder.rglob("*"))
        _mount("-o", f"remount,size={int(size) + taken}", folder)
        yield
        shutil.rmtree(aside)
        shutil.copytree(folder, aside, symlinks=True)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
        folder.rmdir()
        aside.rename(folder)


def can_mount() -> bool:
    """Tell whether this user may mount a file system."""
    with tempfile.TemporaryDirectory() as folder, suppress(OSError, subprocess.SubprocessError):
        _mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", folder)
        subprocess.run(["umount", folder], check=True)
        return True
    return False


CLUSTER = """
import json, sys, time
from distributed import LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0",
                      scheduler_kwargs={"dashboard": False}) as cluster:
        pids = [worker.pid for worker in cluster.workers.values()]
        print(json.dumps([cluster.scheduler_address, pids]), flush=True)
        sys.stdin.read()
"""


@contextmanager
def cluster() -> Iterator[tuple[str, list[int]]]:
    """Give the address of a scheduler and the processes of its two workers."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "cluster.py").write_text(CLUSTER)
        with subprocess.Popen(
            [sys.executable, "cluster.py"],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(Path(hr.__file__).parents[1])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:
            assert process.stdout is not None
            yield tuple(json.loads(process.stdout.readline()))
            process.communicate()


Fault = Callable[[Round], None]
TASKS = {"run": 8, "map": 8, "train": 8, "write_map": 8, "workers": 1}  # how often each is taken
FAULTS: tuple[Fault, ...] = (kill, kill, press, press_often, terminate, limit, truncate)
WITH_DISKS: tuple[Fault, ...] = (fill, protect)


# Rounds.


@dataclass
class Drill:
    """Rounds in a folder, all compared with undisturbed tasks in it."""

    place: Path
    dice: random.Random
    seconds: dict[str, float] = field(default_factory=dict)
    whole: dict[str, dict[str, object]] = field(default_factory=dict)
    count: Counter[str] = field(default_factory=Counter)

    def undisturbed(self, task: str) -> None:
        """Do a task twice; the second time, with kernels on disk, says how long it takes."""
        for name in ("first", "again"):
            folder = self.new_folder(f"{task}-{name}")
            child = in_a_child(folder, task)
            assert child.wait() == 0, child.complaint
            self.seconds[task] = time.monotonic() - child.begun
            files = content(folder)
            assert same(self.whole.setdefault(task, files), files), f"{task} differs by itself"

    def new_folder(self, name: str) -> Path:
        inputs = self.place / "inputs"
        if not inputs.exists():
            inputs.mkdir()
            prepare(inputs)
        return Path(shutil.copytree(inputs, self.place / name))

    def round(self, number: int, task: str, faults: list[Fault]) -> list[str]:
        """Disturb a task, let it go on, and return what went wrong."""
        key = "map" if task == "workers" else task
        if key not in self.whole:
            self.undisturbed(key)
        trial = Round(task, self.new_folder(str(number)), self.seconds[key], self.dice)
        whole = self.whole[key]
        for fault in faults:
            fault(trial)
            self.count[f"{task}: {fault.__name__}"] += 1
            files = content(trial.folder)
            final = [n for n in files if not n.startswith("stages/") and n != "manifest.txt"]
            wrong = [n for n in final if n in whole and not same(files[n], whole[n])]
            trial.check(right=not wrong, what=f"half or wrong after {fault.__name__}: {wrong}")
            if same(files, whole):
                break  # it was too late: to begin again would be refused
        if task in ("run", "write_map") or not same(content(trial.folder), whole):
            child = in_a_child(trial.folder, key)
            code = child.wait()
            trial.check(right=code == 0, what=f"does not go on ({code}): {child.complaint[-2000:]}")
            left = [path.name for path in trial.folder.rglob(".*")]
            trial.check(right=not left, what=f"left behind: {left}")
        files = content(trial.folder)
        differing = [n for n in {*files, *whole} if not same(files.get(n), whole.get(n))]
        trial.check(right=not differing, what=f"differs at the end: {differing}")
        if not trial.complaints:
            shutil.rmtree(trial.folder)
        named = ", ".join(fault.__name__ for fault in faults)
        return [f"round {number}, {task} ({named}): {complaint}" for complaint in trial.complaints]


def drill(
    rounds: int,
    place: Path,
    *,
    seed: int,
    tasks: list[str],
    tell: Callable[[str], object],
) -> tuple[list[str], Counter[str]]:
    """Do so many rounds; return what went wrong, and how often each fault was tried."""
    dice = random.Random(seed)
    faults = [*FAULTS, *(WITH_DISKS if can_mount() else ())]
    trials = Drill(place, dice)
    complaints: list[str] = []
    for number in range(rounds):
        (task,) = dice.choices(tasks, [TASKS[task] for task in tasks])
        some = dice.choices(faults, k=dice.choice((1, 1, 2)))
        new = trials.round(number, task, [lose_worker] if task == "workers" else some)
        for line in new:
            tell(f"{line}\n")
        complaints += new
    return complaints, trials.count


def _main() -> bool:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--folder", type=Path, help="keeps the folders of rounds that went wrong")
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as own:
        place = (options.folder or Path(own)).absolute()
        settings = {"seed": options.seed, "tasks": options.tasks, "tell": sys.stdout.write}
        wrong, tried = drill(options.rounds, place, **settings)
    for name, number in sorted(tried.items()):
        sys.stdout.write(f"{number:5d}  {name}\n")
    seconds = time.monotonic() - begun
    sys.stdout.write(f"{options.rounds} rounds in {seconds:.0f} s, {len(wrong)} went wrong\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(_main())
