"""The fault drill: stop commands at random moments, let them go on, and compare to the last byte.

    python -m tools.fault_drill --rounds 300 --seed 0
    python -m tools.fault_drill --seams

Each round does a command that writes, on a small scene, and disturbs it, once or twice: kill -9 at
a random time or at a seam, Ctrl-C, SIGTERM, a full disk, a folder that cannot be written, a scene
cut short, a dask worker that dies. Then the same command is given again and must end with the files
of an undisturbed one. A seam is the moment before a file is renamed or removed, or a folder made or
removed; `--seams` kills at every one of each command. Faults of disks need small file systems of
their own, which root can mount; others get a limit on the size of files. Commands are forked from a
process that has everything imported.
"""

from __future__ import annotations

import argparse
import csv
import gc
import hashlib
import importlib
import json
import mmap
import os
import pkgutil
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import dask.array as da
import dask.threaded
import matplotlib.font_manager  # noqa: F401  # before disks are full: it writes a cache
import matplotlib.pyplot as plt
import numpy as np

import hsreject as hr
import hsreject.mapping.map_scene
import hsreject.pipeline.run
import hsreject.pipeline.training
from hsreject.cli import main
from hsreject.datasets import scenes
from hsreject.mapping.model_file import read_fitted
from hsreject.pipeline.stages import STAGES

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
_ON_MAP = "mapped/label.tif --confidence mapped/confidence.tif"
CLIMB = "climb.gpkg"
# One line per task: what to call in the folder of a round; all write what is called `out`.
COMMANDS = {
    "run": "run config.toml --out out",
    "map": MAP,
    "archive": MAP.replace(SCENE, f"{SCENE} second.tif"),
    "train": "train config.toml --model out.skops",
    "evaluate": f"evaluate --reference labels.tif --labels {_ON_MAP} --out out",
    "explore": f"explore --reference labels.tif --labels {_ON_MAP} --scene {SCENE} --out out.html",
    "sample": f"sample {_ON_MAP} --for-promise 0.2 --n 60 --seed 1 --out out.gpkg",
    "label": f"label {CLIMB} --scene {SCENE} --labels mapped/label.tif --out out.html",
    "certify": f"certify --labels {_ON_MAP} --sample {CLIMB} --more 20 --out out",
    "assess": "assess mapped/label.tif --sample random.csv --out out",
    "next": f"next ran --scene {SCENE} --out out.gpkg",
    "polygons": "polygons mapped/label_with_rejection.tif --minimum-area 12px "
    "--sieved out_sieved.tif --out out.gpkg",
    "groups": "groups ran --least 1e-9 --out out.toml",
    "init": f"init {SCENE} labels.tif --out out.toml",
    "fetch": "fetch small --folder out",
    "write_map": "",
    "workers": MAP,
}
WITH_SCENE = {"run", "map", "train", "write_map"}  # what cannot do with half a scene


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
    shutil.copy(folder / SCENE, folder / "second.tif")
    made_by = {"train": "model.skops", "map": "mapped", "run": "ran", "sample": CLIMB}
    for task, made in made_by.items():
        assert in_a_child(folder, task).wait() == 0
        (folder / COMMANDS[task].split()[-1]).rename(folder / made)
    on_map = hr.open_map(folder / "mapped/label.tif")
    climb = hr.open_sample(folder / CLIMB, on_map).with_reference(labels)
    climb.write(folder / CLIMB, overwrite=True)
    hr.draw_sample(on_map, 60).with_reference(labels).write(folder / "random.csv")
    (folder / "web").mkdir()
    for name in ("cube.mat", "labels.mat"):
        (folder / "web" / name).write_bytes(random.Random(name).randbytes(200_000))


def small_scenes(folder: Path) -> dict[str, scenes.Scene]:
    """Return a scene to fetch, which a server on this machine has."""
    port = (folder / "web" / "port").read_text()
    remote = []
    for name in ("cube.mat", "labels.mat"):
        content = (folder / "web" / name).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        url = f"http://127.0.0.1:{port}/{name}"
        remote.append(scenes.RemoteFile(url, digest, len(content)))
    return {"small": scenes.Scene("Small", *remote, hr.ClassTable.from_names(["one"]))}


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


class Seams:
    """Counts the seams that a child passes, and kills it before a certain one."""

    events = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir"})

    def __init__(self, deadly: int = 0) -> None:
        self.deadly = deadly
        self._count = mmap.mmap(-1, 8)  # shared with the child

    @property
    def count(self) -> int:
        """How many there were."""
        return int.from_bytes(self._count[:8], "little")

    def watch(self, folder: Path) -> None:
        """Begin to count what happens in a folder, in this process."""
        lock = threading.Lock()

        def pass_one(event: str, arguments: tuple[object, ...]) -> None:
            if event not in self.events:
                return
            if not (Path.cwd() / os.fsdecode(arguments[0])).is_relative_to(folder):  # type: ignore[call-overload]
                return
            with lock:
                count = self.count + 1
                self._count[:8] = count.to_bytes(8, "little")
                if count == self.deadly:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(pass_one)


def in_a_child(
    folder: Path,
    task: str,
    *,
    extra: list[str] | None = None,
    room: int | None = None,
    seams: Seams | None = None,
    in_background: bool = False,
) -> Child:
    """Start a task in `folder`, with files of at most `room` bytes; SIGINT may be ignored."""
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
        handler = signal.SIG_IGN if in_background else signal.default_int_handler
        signal.signal(signal.SIGINT, handler)
        if task == "write_map":
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if room is not None:
            sys.dont_write_bytecode = True  # of which Python 3.11 would leave a half
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
        if seams is not None:
            seams.watch(folder)
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


def warm_up() -> None:
    """Load modules and kernels once instead of in every child, and leave no thread to be forked."""
    for module in pkgutil.walk_packages(hr.__path__, "hsreject."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    sys.argv = ["hsreject", "--version"]
    with suppress(SystemExit), Path(os.devnull).open("w") as nothing, redirect_stdout(nothing):
        main()
    plt.close(plt.figure())
    _, labels = hr.synthetic_scene(rows=24, columns=24, n_bands=4)
    hr.polygonize(hr.sieve(labels, 4), labels.astype(np.float32))
    hr.next_labels(labels)
    scene = {"name": "synthetic", "rows": 24, "columns": 24, "n_bands": 4}
    parts = tomllib.loads(CONFIG[CONFIG.index("[[features]]") :].replace("4", "2"))
    hr.run({"scene": scene, **parts})
    if dask.threaded.default_pool is not None:
        dask.threaded.default_pool.shutdown()
        dask.threaded.default_pool = None
    gc.collect()
    assert threading.active_count() == 1, threading.enumerate()


def _perform(task: str, extra: list[str]) -> int:
    if task != "write_map":
        if task == "fetch":
            scenes.scenes = lambda: small_scenes(Path.cwd())  # type: ignore[assignment]
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
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {
        name: _essence(path)
        for name, path in paths.items()
        if name.startswith(("out", "maps/", CLIMB)) and "/." not in f"/{name}" and path.is_file()
    }


def _essence(path: Path) -> object:
    return ESSENCES.get(path.name, ESSENCES.get(path.suffix, Path.read_bytes))(path)


def _answers(path: Path) -> object:
    """Return what a model predicts for the scene beside it; of a stage, what was fitted for it."""
    if path.parent.name == STAGES:
        return type(read_fitted(path)).__name__
    model = hr.load_model(path)
    scene = hr.open_scene(path.with_name(SCENE))
    calibration = {name: values.tobytes() for name, values in model.calibration.items()}
    return {"out": model.classifier.predict_proba(scene).values.tobytes(), **calibration}


def _rows(path: Path) -> object:
    """Return the tables of a GeoPackage; its list of them has the time of the last change."""
    with closing(sqlite3.connect(path)) as file:
        names = file.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        names = [name for (name,) in names if not name.startswith(("rtree", "gpkg_contents"))]
        return {name: file.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def _variables(path: Path) -> object:
    data = hr.open_dataset(path).load().drop_vars(["seconds", "stage_seconds"], errors="ignore")
    data.attrs.pop("seconds", None)
    return data.to_dict()


def _table(path: Path) -> object:
    """Return the table of an archive, without how long and whether at once."""
    with path.open() as stream:
        return [{**row, "seconds": "", "status": ""} for row in csv.DictReader(stream)]


ESSENCES: dict[str, Callable[[Path], object]] = {
    ".skops": _answers,
    ".gpkg": _rows,
    ".nc": _variables,
    "report.html": lambda path: "</html>" in path.read_text(),  # has a column of seconds
    "summary.toml": lambda path: [
        line for line in path.read_text().splitlines() if "continued" not in line
    ],
    "summary.csv": _table,
}


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
    n_seams: int  # that it passes
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


def cut(trial: Round, seam: int = 0) -> None:
    """Kill -9 at a seam, by default any."""
    seams = Seams(seam or trial.dice.randint(1, trial.n_seams))
    trial.ended(in_a_child(trial.folder, trial.task, seams=seams), -signal.SIGKILL)


def _stop(
    trial: Round, number: signal.Signals, code: int, presses: int, *, in_background: bool = False
) -> None:
    child = in_a_child(trial.folder, trial.task, in_background=in_background)
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


def terminate_in_background(trial: Round) -> None:
    """SIGTERM to a job that was started by `&` in a script: its SIGINT is ignored."""
    code = -signal.SIGTERM if trial.task == "write_map" else 143
    _stop(trial, signal.SIGTERM, code, 1, in_background=True)


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


SERVER = """
import sys
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler

server = HTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=sys.argv[1]))
print(server.server_port)
server.serve_forever()
"""
Fault = Callable[[Round], None]
GROWING = {"out/manifest.txt", "out/summary.csv", "out/config.toml"}  # right in between, too
# how often each is taken; long ones seldom
TASKS = dict.fromkeys(COMMANDS, 8) | {"run": 3, "map": 6, "archive": 2, "evaluate": 4, "workers": 1}
FAULTS: tuple[Fault, ...] = (
    kill,
    kill,
    cut,
    cut,
    press,
    press_often,
    terminate,
    terminate_in_background,
    limit,
    truncate,
)
WITH_DISKS: tuple[Fault, ...] = (fill, protect)


# Rounds.


@dataclass
class Drill:
    """Rounds in a folder, all compared with undisturbed tasks in it."""

    place: Path
    dice: random.Random
    seconds: dict[str, float] = field(default_factory=dict)
    n_seams: dict[str, int] = field(default_factory=dict)
    whole: dict[str, dict[str, object]] = field(default_factory=dict)
    count: Counter[str] = field(default_factory=Counter)

    def undisturbed(self, task: str) -> None:
        """Do a task twice; the second time, with kernels on disk, says how long it takes."""
        for name in ("first", "again"):
            folder, seams = self.new_folder(f"{task}-{name}"), Seams()
            child = in_a_child(folder, task, seams=seams)
            assert child.wait() == 0, child.complaint
            self.seconds[task], self.n_seams[task] = time.monotonic() - child.begun, seams.count
            files = content(folder)
            assert same(self.whole.setdefault(task, files), files), f"{task} differs by itself"
            shutil.rmtree(folder)

    @cached_property
    def inputs(self) -> Path:
        """The folder that every round begins with."""
        folder = self.place / "inputs"
        folder.mkdir()
        prepare(folder)
        return folder

    @cached_property
    def before(self) -> dict[str, object]:
        """What a folder holds before its task."""
        return content(self.inputs)

    def new_folder(self, name: str) -> Path:
        return Path(shutil.copytree(self.inputs, self.place / name))

    def key(self, task: str) -> str:
        """Return the task that does undisturbed what a task does."""
        key = "map" if task == "workers" else task
        if key not in self.whole:
            self.undisturbed(key)
        return key

    def round(self, number: int, task: str, faults: list[Fault]) -> list[str]:
        """Disturb a task, let it go on, and return what went wrong."""
        key = self.key(task)
        folder = self.new_folder(str(number))
        trial = Round(task, folder, self.seconds[key], self.n_seams[key], self.dice)
        whole = self.whole[key]
        for fault in faults:
            fault(trial)
            self.count[f"{task}: {fault.__name__}"] += 1
            files = content(folder)
            final = [n for n in files if not n.startswith("out/stages/") and n not in GROWING]
            right = {name: (whole.get(name), self.before.get(name)) for name in final}
            wrong = [n for n in final if not any(same(files[n], one) for one in right[n])]
            trial.check(right=not wrong, what=f"half or wrong after {fault.__name__}: {wrong}")
            if same(files, whole):
                break  # it was too late: to begin again may be refused
        is_whole = same(content(folder), whole)
        child = in_a_child(folder, key)
        code = child.wait()
        right_codes = (0, 2) if is_whole and "Traceback" not in child.complaint else (0,)
        what = f"does not go on ({code}): {child.complaint[-2000:]}"
        trial.check(right=code in right_codes, what=what)
        # an empty folder of this second may be somebody's who is about to fill it
        left = [p.name for p in folder.rglob(".*") if not p.is_dir() or any(p.iterdir())]
        trial.check(right=not left, what=f"left behind: {left}")
        files = content(folder)
        differing = [n for n in {*files, *whole} if not same(files.get(n), whole.get(n))]
        trial.check(right=not differing, what=f"differs at the end: {differing}")
        if not trial.complaints:
            shutil.rmtree(folder)
        named = ", ".join(fault.__name__ for fault in faults)
        return [f"round {number}, {task} ({named}): {complaint}" for complaint in trial.complaints]


def _at(seam: int) -> Fault:
    def fault(trial: Round) -> None:
        cut(trial, seam)

    fault.__name__ = "cut"
    return fault


BY_NAME = {fault.__name__: fault for fault in (*FAULTS, *WITH_DISKS)}


def faults_here() -> list[Fault]:
    """Return what this user can do to a command."""
    return [*FAULTS, *(WITH_DISKS if can_mount() else ())]


def drill(
    rounds: int,
    place: Path,
    *,
    faults: list[Fault],
    every: int | None,
    seed: int,
    tasks: list[str],
    tell: Callable[[str], object],
) -> tuple[list[str], Counter[str]]:
    """Do so many rounds, or one at every k-th seam; return what went wrong, and what was tried."""
    dice = random.Random(seed)
    complaints: list[str] = []
    with served(place) as port:
        warm_up()
        trials = Drill(place, dice)
        (trials.inputs / "web" / "port").write_text(port)
        for number, (task, some) in enumerate(_plan(trials, rounds, every, tasks, faults)):
            new = trials.round(number, task, some)
            for line in new:
                tell(f"{line}\n")
            complaints += new
    return complaints, trials.count


def _plan(
    trials: Drill, rounds: int, every: int | None, tasks: list[str], faults: list[Fault]
) -> Iterator[tuple[str, list[Fault]]]:
    """Yield a task and what disturbs it, so many times."""
    if every is not None:
        for task in tasks:
            for seam in range(1, trials.n_seams[trials.key(task)] + 1, every):
                yield task, [_at(seam)]
        return
    for _ in range(rounds):
        (task,) = trials.dice.choices(tasks, [TASKS[task] for task in tasks])
        fitting = [one for one in faults if one is not truncate or task in WITH_SCENE]
        some = trials.dice.choices(fitting, k=trials.dice.choice((1, 1, 2)))
        yield task, [lose_worker] if task == "workers" else some


@contextmanager
def served(place: Path) -> Iterator[str]:
    """Serve the folder of what can be fetched, by a process of its own; give the port."""
    place.mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, "-u", "-c", SERVER, str(place / "inputs" / "web")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def _main() -> bool:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seams", action="store_true", help="a kill at each, instead of rounds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--renames", action="store_true", help="seams are these alone")
    parser.add_argument("--every", type=int, default=1, help="only each of so many seams")
    parser.add_argument("--faults", nargs="+", choices=list(BY_NAME), help="no other ones")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--folder", type=Path, help="keeps the folders of rounds that went wrong")
    options = parser.parse_args()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as own:
        place = (options.folder or Path(own)).absolute()
        if options.renames:
            Seams.events = frozenset({"os.rename"})
        settings = {
            "seed": options.seed,
            "faults": [BY_NAME[n] for n in options.faults] if options.faults else faults_here(),
            "every": options.every if options.seams else None,
            "tasks": options.tasks,
            "tell": sys.stdout.write,
        }
        wrong, tried = drill(options.rounds, place, **settings)
    for name, number in sorted(tried.items()):
        sys.stdout.write(f"{number:5d}  {name}\n")
    seconds = time.monotonic() - begun
    sys.stdout.write(f"{sum(tried.values())} faults in {seconds:.0f} s, {len(wrong)} went wrong\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(_main())
