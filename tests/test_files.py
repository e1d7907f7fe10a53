"""No half file under a final name, nothing replaced unasked, nothing left behind; kept results."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import rasterio

import hsreject as hr
from hsreject.errors import FileError, InputError
from hsreject.files import (
    check_folder,
    complete_folder,
    reading,
    recall,
    replacing,
    unfinished_folder,
)
from tests.io.written_maps import confidence_map, probability_field, reject_map

NAMES = ["map.tif", "map.img"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", NAMES)
def test_existing_files_are_replaced_only_when_asked(tmp_path, name) -> None:
    hr.write_map(reject_map(), tmp_path / name)
    before = content(tmp_path)
    with pytest.raises(FileError, match=f"{name} is already there"):
        hr.write_map(confidence_map(), tmp_path / name)
    assert content(tmp_path) == before
    hr.write_map(confidence_map(), tmp_path / name, overwrite=True)
    with rasterio.open(tmp_path / name) as file:
        assert file.dtypes == ("float32",)


def test_side_files_neither_outlive_their_map_nor_are_taken_over(tmp_path) -> None:
    hr.write_map(reject_map(), tmp_path / "map.tif")
    assert names(tmp_path) == ["map.qml", "map.tif", "map.tif.aux.xml"]
    hr.write_map(confidence_map(), tmp_path / "map.tif", overwrite=True)
    assert names(tmp_path) == ["map.qml", "map.tif"]
    assert "pseudocolor" in (tmp_path / "map.qml").read_text()
    hr.write_map(probability_field(), tmp_path / "map.tif", overwrite=True)
    assert names(tmp_path) == ["map.tif"]
    for side in ("new.tif.aux.xml", "new.tif.ovr"):
        (tmp_path / side).write_text("somebody's")
        with pytest.raises(FileError, match=f"{side} is already there"):
            hr.write_map(reject_map(), tmp_path / "new.tif")
        assert (tmp_path / side).read_text() == "somebody's"
        (tmp_path / side).unlink()


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_style_of_somebody_else_stays(tmp_path, overwrite) -> None:
    (tmp_path / "map.qml").write_text("<!DOCTYPE qgis>\n<qgis/>")
    hr.write_map(reject_map(), tmp_path / "map.tif", overwrite=overwrite)
    hr.write_map(probability_field(), tmp_path / "map.tif", overwrite=True)
    assert (tmp_path / "map.qml").read_text() == "<!DOCTYPE qgis>\n<qgis/>"
    assert names(tmp_path) == ["map.qml", "map.tif"]


def failing(labels):
    def fail(block: np.ndarray, block_info=None) -> np.ndarray:
        if block_info and block_info[0]["chunk-location"] == (2, 1):
            raise InputError("this block cannot be computed")
        return block

    lazy = da.from_array(labels.values, chunks=(10, 10)).map_blocks(fail, dtype=labels.dtype)
    return labels.copy(data=lazy)


@pytest.mark.parametrize("name", [*NAMES, "map.nc"])
def test_a_failing_write_leaves_things_as_they_were(tmp_path, name) -> None:
    def write(array, *, overwrite: bool = False) -> None:
        if name.endswith(".nc"):
            hr.write_dataset(array.to_dataset(), tmp_path / name, overwrite=overwrite)
        else:
            hr.write_map(array, tmp_path / name, overwrite=overwrite)

    with pytest.raises(InputError, match="cannot be computed"):
        write(failing(reject_map()))
    assert names(tmp_path) == []
    write(reject_map())
    before = content(tmp_path)
    with pytest.raises(InputError, match="cannot be computed"):
        write(failing(reject_map()), overwrite=True)
    assert content(tmp_path) == before


def test_a_killed_process_leaves_no_file_under_the_final_name(tmp_path) -> None:
    code = """
import os, sys
import dask.array as da
import hsreject as hr
from tests.io.written_maps import reject_map
labels = reject_map()
def die(block, block_info=None):
    if block_info and block_info[0]["chunk-location"] == (3, 4):
        os._exit(9)
    return block
lazy = da.from_array(labels.values, chunks=(10, 10)).map_blocks(die, dtype="uint8")
hr.write_map(labels.copy(data=lazy), sys.argv[1])
"""
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "map.tif")],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=False,
    )
    assert done.returncode == 9
    left = names(tmp_path)
    assert len(left) == 1  # the hidden work folder: nobody was there to clear it away
    assert left[0].startswith(".partial.map.tif.")
    # the next write does, and leaves alone what belongs to somebody who is still writing
    with replacing(tmp_path / "map.tif", overwrite=False) as part:
        part.write_text("of another process")
        hr.write_map(reject_map(), tmp_path / "map.tif")
        assert part.exists()
        assert names(tmp_path) == [part.parent.name, "map.qml", "map.tif", "map.tif.aux.xml"]
        (tmp_path / "map.tif").unlink()
    assert (tmp_path / "map.tif").read_text() == "of another process"


def test_impossible_places_are_named(tmp_path) -> None:
    with pytest.raises(FileError, match="there is no folder"):
        hr.write_map(reject_map(), tmp_path / "nowhere" / "map.tif")
    (tmp_path / "map.tif").mkdir()
    with pytest.raises(FileError, match="it is a folder"):
        hr.write_map(reject_map(), tmp_path / "map.tif", overwrite=True)


def test_errors_of_the_system_become_ours(tmp_path) -> None:
    def write() -> None:
        with replacing(tmp_path / "out.txt", overwrite=False) as path:
            path.write_text("half")
            raise OSError(28, "No space left on device")

    with pytest.raises(FileError, match=r"Could not write .*out.txt: .*No space left"):
        write()
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (KeyError("no such\nthing"), r"a\.tif cannot be read: 'no such\\nthing'\."),
        (RuntimeError("bad \0 heap\n at 8"), r"a\.tif cannot be read: bad heap at 8\."),
        (RecursionError(), r"a\.tif cannot be read: RecursionError\."),
        (MemoryError("8 TB"), r"memory \(8 TB\).*chunks"),
        (FileError("x\ny"), "^x y$"),
    ],
)
def test_what_a_library_raises_is_said_about_the_file(raised, told) -> None:
    with pytest.raises(FileError, match=told), reading(Path("a.tif")):
        raise raised


def test_our_errors_and_interrupts_pass(tmp_path) -> None:
    for raised in (InputError("wrong"), KeyboardInterrupt(), UserWarning("odd")):
        with pytest.raises(type(raised)) as caught, reading(tmp_path / "a.tif"):
            raise raised
        assert caught.value is raised


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path) -> None:
    def write() -> None:
        with replacing(tmp_path / "out.txt", overwrite=False) as path:
            path.write_text("mine")
            (tmp_path / "out.txt").write_text("theirs")

    with pytest.raises(FileError, match="already there"):
        write()
    assert (tmp_path / "out.txt").read_text() == "theirs"


def test_a_folder_is_filled_at_the_end_or_not_at_all(tmp_path) -> None:
    def fill(text: str, *, fail: bool = False, overwrite: bool = False) -> None:
        with complete_folder(tmp_path / "results", overwrite=overwrite) as work:
            (work / "maps").mkdir()
            (work / "maps" / "a.txt").write_text(text)
            if fail:
                raise OSError(28, "No space left on device")

    with pytest.raises(FileError, match="No space left"):
        fill("half", fail=True)
    assert names(tmp_path) == []
    fill("whole")
    with pytest.raises(FileError, match="results is not empty"):
        fill("again")
    with pytest.raises(FileError, match="No space left"):
        fill("half", fail=True, overwrite=True)
    assert (tmp_path / "results" / "maps" / "a.txt").read_text() == "whole"
    fill("new", overwrite=True)
    assert (tmp_path / "results" / "maps" / "a.txt").read_text() == "new"
    assert names(tmp_path / "results") == ["manifest.txt", "maps"]


KEEP = {
    "read": lambda path: int(path.read_text()),
    "write": lambda number, path: path.write_text(str(number)),
}


@pytest.mark.parametrize("kept", [None, "", "4", "damaged"])
def test_results_are_computed_unless_they_are_kept_whole(tmp_path, kept) -> None:
    asked = []
    path = tmp_path / "folder" / "result"
    if kept is not None:
        path.parent.mkdir()
        path.write_text(kept)

    def compute() -> int:
        asked.append(1)
        return 4

    for _ in range(2):
        assert recall(path, compute, **KEEP) == 4
    assert len(asked) == (0 if kept == "4" else 1)
    assert names(path.parent) == ["result"]


def test_without_a_place_or_a_result_nothing_is_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert recall(None, lambda: 4, **KEEP) == 4
    with pytest.raises(ZeroDivisionError):
        recall(tmp_path / "result", lambda: 1 // 0, **KEEP)
    assert names(tmp_path) == []
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FileError, match="Cannot make the folder"):
        recall(tmp_path / "file" / "result", lambda: 4, **KEEP)


@pytest.mark.posix
def test_a_result_cut_short_while_it_was_moved_is_replaced(tmp_path) -> None:
    """kill -9 between two renames: the same command goes on, and only its own files count."""

    def write(*names: str) -> None:
        with complete_folder(tmp_path / "out", overwrite=False) as work:
            for name in names:
                (work / name).parent.mkdir(exist_ok=True)
                (work / name).write_text("ours")

    rename = Path.replace

    def killed(path: Path, target: Path) -> Path:
        if path.name == "b.tif":
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(path, target)

    process = multiprocessing.get_context("fork").Process(
        target=lambda: (setattr(Path, "replace", killed), write("maps/a.tif", "maps/b.tif"))
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert (tmp_path / "out" / "maps" / "a.tif").exists()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(FileError, match="not empty"):
        write("maps/a.tif", "maps/b.tif")
    (tmp_path / "out" / "mine.txt").unlink()
    write("maps/a.tif", "maps/b.tif")
    assert names(tmp_path / "out") == ["manifest.txt", "maps"]
    with pytest.raises(FileError, match="not empty"):
        write("maps/a.tif")


@pytest.mark.posix
def test_what_a_kill_after_the_last_rename_left_is_removed_by_the_next_command(tmp_path) -> None:
    """The result is complete then, so the next command may well be refused; it tidies up first."""
    out = tmp_path / "out"

    def write() -> None:
        with unfinished_folder(out, "key") as parts:
            (parts / "block.npy").write_text("finished")
            with complete_folder(out, overwrite=False) as work:
                (work / "map.tif").write_text("ours")

    def killed(path: Path, **_) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    process = multiprocessing.get_context("fork").Process(
        target=lambda: (setattr(shutil, "rmtree", killed), write())
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    (partial,) = out.glob(".partial.*")
    os.utime(partial, (0, 0))  # an empty one of this second may be somebody's who will lock it
    assert (out / ".unfinished.key").exists()
    with pytest.raises(FileError, match="not empty"):
        check_folder(out, overwrite=False)
    assert names(out) == ["manifest.txt", "map.tif"]

    later = out / ".unfinished.other"  # work that began after the result can still go on
    later.mkdir()
    (later / "block.npy").write_text("finished")
    completed = (out / "manifest.txt").stat().st_mtime_ns
    os.utime(later / "block.npy", ns=(completed + 1, completed + 1))
    with pytest.raises(FileError, match="not empty"):
        check_folder(out, overwrite=False)
    assert later.exists()


def write_family(folder: Path, *, overwrite: bool = False) -> None:
    with replacing(folder / "a.tif", side_files=("a.qml", "a.xml"), overwrite=overwrite) as part:
        for name in ("a.tif", "a.qml"):
            part.with_name(name).write_text("new")


def killed_at_rename(number: int, folder: Path, *, overwrite: bool) -> None:
    rename, count = Path.replace, iter(range(1, 9))

    def killed(path: Path, target: Path) -> Path:
        if next(count) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(path, target)

    process = multiprocessing.get_context("fork").Process(
        target=lambda: (setattr(Path, "replace", killed), write_family(folder, overwrite=overwrite))
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.posix
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_kill_between_a_file_and_its_side_file_is_begun_anew(tmp_path, number, overwrite) -> None:
    if overwrite:
        for name in ("a.tif", "a.qml", "a.xml"):
            (tmp_path / name).write_text("old")
    killed_at_rename(number, tmp_path, overwrite=overwrite)
    assert (tmp_path / "a.tif").exists() == (overwrite or number == 2)
    with replacing(tmp_path / "b.tif", overwrite=False) as other:  # which leaves it alone
        other.write_text("other")
    assert (tmp_path / "a.tif").exists() == (overwrite or number == 2)
    write_family(tmp_path, overwrite=overwrite)
    assert content(tmp_path) == {"a.tif": b"new", "a.qml": b"new", "b.tif": b"other"}


@pytest.mark.posix
def test_what_somebody_has_put_there_since_a_kill_stays(tmp_path) -> None:
    killed_at_rename(2, tmp_path, overwrite=False)
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "mine").replace(tmp_path / "a.tif")
    with pytest.raises(FileError, match="already there"):
        write_family(tmp_path)
    assert content(tmp_path) == {"a.tif": b"mine"}


def test_a_result_replaces_its_predecessor_and_nothing_else(tmp_path) -> None:
    def write(*names: str) -> None:
        with complete_folder(tmp_path / "out", overwrite=True) as work:
            for name in names:
                (work / name).parent.mkdir(exist_ok=True)
                (work / name).write_text("ours")

    write("maps/a.tif", "maps/b.tif", "figures/c.png", "report.html")
    mine = [tmp_path / "out" / name for name in ("maps/mine.tif", "notes.txt")]
    for path in mine:
        path.write_text("mine")
    manifest = tmp_path / "out" / "manifest.txt"
    manifest.write_text(manifest.read_text() + "\n../outside.txt")
    (tmp_path / "outside.txt").write_text("mine")
    write("maps/a.tif", "report.html")
    there = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    ours = {"out/manifest.txt", "out/maps/a.tif", "out/report.html"}
    assert there == ours | {"out/maps/mine.tif", "out/notes.txt", "outside.txt"}
    assert not (tmp_path / "out" / "figures").exists()
    assert manifest.read_text().split() == ["maps/a.tif", "report.html"]
