"""Disks that are full and places that cannot be written: one line, exit code 2, nothing by halves.

A limit on the size of files stands in for a full disk: writing fails in the middle of a file, deep
inside HDF5, GDAL and NumPy, as it does there. It needs a process of its own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hsreject as hr
from tests.cli.calling import call

CONFIG = """
[scene]
name = "files"
path = "scene.tif"
labels = "labels.tif"

[[features]]
name = "pca"
n_components = 3

[classifier]
name = "lda"

[context]
prior = "vector_tv"

[[rejectors]]
name = "sequential"
"""

COMMANDS = {
    "run": "run config.toml --out",
    "map": "map scene.tif --model model.skops --fraction 0.1 --out",
    "train": "train config.toml --model",
    "evaluate": "evaluate --reference labels.tif --labels labels.tif "
    "--confidence confidence.tif --out",
}

# `run` fails at its first stage, and with more room when its results are written: its stages take
# up to 161,000 bytes each, tables and pages more
CASES = [(name, 2_000) for name in COMMANDS] + [("run", 200_000)]

# The first import of fonts and the first use of kernels write caches, which must not be what fails:
# fonts come first here, and the model below was trained before. Python 3.11 would leave half of the
# bytecode of a module.
ON_A_FULL_DISK = """
import contextlib, io, json, resource, sys
import matplotlib.font_manager
from hsreject.cli import main

sys.dont_write_bytecode = True
told = []
for arguments, room in json.loads(sys.argv[1]):
    sys.argv = ["hsreject", *arguments]
    errors = io.StringIO()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as stopped:
            code = stopped.code
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    told.append([code, errors.getvalue()])
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    cube, labels = hr.synthetic_scene(rows=40, columns=44, n_classes=3, n_bands=8)
    cube.rio.to_raster(folder / "scene.tif")
    hr.write_map(labels, folder / "labels.tif")
    hr.write_map(cube[0].drop_vars("wavelength"), folder / "confidence.tif")
    (folder / "config.toml").write_text(CONFIG)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        hr.save_model(hr.train("config.toml"), "model.skops")
    return folder


def in_a_process(script: str, calls: object, folder: Path) -> bytes:
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(calls)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(hr.__file__).parents[1])},
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.posix
def test_a_full_disk_is_told_in_one_line_and_leaves_no_half(folder) -> None:
    targets = [f"full-{name}-{room}" for name, room in CASES]
    calls = [
        [[*COMMANDS[name].split(), target], room]
        for (name, room), target in zip(CASES, targets, strict=True)
    ]
    told = json.loads(in_a_process(ON_A_FULL_DISK, calls, folder))
    for target, (code, errors) in zip(targets, told, strict=True):
        assert code == 2, (target, errors)
        assert "Traceback" not in errors
        complaint = errors.splitlines()[-1]
        assert complaint.startswith("hsreject: ")
        assert target in complaint
        assert ".partial" not in complaint
    left = [path for path in folder.rglob("*") if "full-" in str(path) or path.name[0] == "."]
    kept = {path.name for path in left if path.suffix not in {".nc", ".skops"}}
    assert kept == {"full-run-200000", "config.toml", "stages"}  # its finished stages stay


READ_ONLY_BUT_OUT = """
import json, os, sys, tempfile
nowhere = os.path.join(os.devnull, "home")  # where not even a superuser can make a folder
os.environ |= {"HOME": nowhere, "XDG_CACHE_HOME": nowhere, "XDG_CONFIG_HOME": nowhere}
os.environ.pop("MPLCONFIGDIR", None)
tempfile._candidate_tempdir_list = lambda: [nowhere]
sys.argv = ["hsreject", *json.loads(sys.argv[1])]
from hsreject.cli import main
main()
"""


@pytest.mark.posix
def test_everything_but_the_output_may_be_read_only(folder) -> None:
    """Matplotlib wants a cache and finds no place for it; none of it stays in the result."""
    text = in_a_process(READ_ONLY_BUT_OUT, [*COMMANDS["evaluate"].split(), "only/here"], folder)
    assert b"accuracy" in text
    written = {path.relative_to(folder / "only/here") for path in folder.glob("only/here/*")}
    assert Path("report.html") in written
    assert not [path for path in written if path.name.startswith(".")]


SYSTEM_ACCESS = os.access


def without_writing(path: object, mode: int) -> bool:
    return not mode & os.W_OK and SYSTEM_ACCESS(path, mode)


@pytest.mark.parametrize("name", COMMANDS)
def test_places_that_cannot_be_are_told_before_the_work(
    name, folder, monkeypatch, tmp_path, capsys
) -> None:
    monkeypatch.chdir(folder)
    (tmp_path / "file").write_text("in the way")
    for place, message in ((tmp_path / "file" / "out", "file"), ("closed/out", "closed")):
        with monkeypatch.context() as patch:
            if message == "closed":  # a user who may write anywhere cannot make such a folder
                (folder / "closed").mkdir(exist_ok=True)
                patch.setattr(os, "access", without_writing)
            assert call(*COMMANDS[name].split(), place) == 2
        (complaint,) = capsys.readouterr().err.splitlines()
        assert complaint.startswith("hsreject: ")
        assert message in complaint
    assert not list((folder / "closed").iterdir())
    assert (tmp_path / "file").read_text() == "in the way"


MISSING = (
    "run missing.toml",
    "train missing.toml --model m.skops",
    "map missing.tif --model m.skops --out out --fraction 0.1",
    "info missing.tif",
    "evaluate --reference missing.tif --labels labels.tif",
)
QUICKLY = """
import contextlib, io, json, sys
from hsreject.cli import main

for command in json.loads(sys.argv[1]):
    sys.argv = ["hsreject", *command.split()]
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.suppress(SystemExit):
        main()
    assert errors.getvalue().startswith("hsreject: "), errors.getvalue()
    assert "missing.t" in errors.getvalue()
    assert not {"sklearn", "xarray", "matplotlib", "rasterio"} & set(sys.modules), command
"""


def test_a_missing_file_is_told_before_the_long_imports(tmp_path) -> None:
    in_a_process(QUICKLY, MISSING, tmp_path)


def test_a_folder_for_downloads_that_cannot_be_made_is_told(tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("in the way")
    assert call("fetch", "salinas", "--folder", tmp_path / "file") == 2
    (complaint,) = capsys.readouterr().err.splitlines()
    assert "Cannot make the folder" in complaint
