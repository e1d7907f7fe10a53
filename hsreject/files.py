"""Files that are there, files and folders that appear whole or not at all, results kept by key."""

from __future__ import annotations

import errno
import glob
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TypeVar

from hsreject.errors import FileError, HsrejectError

T = TypeVar("T")

PARTIAL = ".partial."  # how the name of a hidden folder begins that is still being filled
UNFINISHED = ".unfinished."  # and of one from which work that was stopped can go on
MANIFEST = "manifest.txt"  # lists the files of a result, one per line
INCOMPLETE = "(incomplete)"  # a line of it while they are moved into place
_PLACING = (
    ".placing"  # in a hidden folder: the files that are being put in place, with their inodes
)


def existing(path: str | PathLike[str]) -> Path:
    """Return the path of a file that is there and may be read, or say what is wrong with it."""
    file = Path(path)
    try:
        if file.is_fifo() or file.is_char_device():  # opening a pipe would wait for ever
            raise FileError(f"{file} is a pipe or a device. Give a file.")
        str(file.absolute()).encode("utf-8")  # the readers take no other names
        with file.open("rb"):
            return file
    except FileError:
        raise
    except ValueError:
        raise FileError(f"The name {str(file)!a} is not in UTF-8. Rename the file.") from None
    except FileNotFoundError:
        if re.match(r"\w{2,}:/", str(file)):
            raise FileError(f"{file} is not read by URL here. Download the file.") from None
        raise FileError(f"{file} does not exist. Check the path.") from None
    except IsADirectoryError:
        raise FileError(f"{file} is a folder. Give the file inside it.") from None
    except OSError as error:
        raise FileError(f"{file} cannot be opened: {reason(error)}.") from None


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever is raised while a file is opened or read into one line about the file.

    This is the boundary to the libraries that read files: of damaged ones they raise anything.
    """
    try:
        yield
    except Warning:
        raise
    except HsrejectError as error:
        if str(error).isprintable():
            raise
        raise type(error)(_one_line(str(error))) from error  # it quotes names out of the file
    except MemoryError as error:
        raise FileError(
            f"{path} does not fit into memory ({error}). Open it with chunks='auto'."
        ) from error
    except Exception as error:
        cause = error.__cause__ or error  # GDAL tells the reason first, rasterio that it failed
        complaint = _one_line(str(cause)).rstrip(".").replace(f"'{path.absolute()}' not", "not")
        raise FileError(
            f"{path} cannot be read: {complaint or type(cause).__name__}. "
            f"{getattr(path, 'remedy', 'If it is damaged, copy or export it again.')}"
        ) from error


def _one_line(message: str) -> str:
    printable = "".join(letter if letter.isprintable() else " " for letter in message)
    return " ".join(printable.split())


def starts_with(path: Path, *marks: bytes, offset: int = 0) -> bool:
    """Tell whether a file has one of the marks at `offset`."""
    with path.open("rb") as stream:
        stream.seek(offset)
        return stream.read(16).startswith(marks)


@contextmanager
def replacing(path: Path, *, side_files: Sequence[str] = (), overwrite: bool) -> Iterator[Path]:
    """Give a path to write instead of `path`, and put what was written in place at the end.

    The given path has the name of `path` in a new hidden folder beside it. When the block ends
    well, the file and those of `side_files` (names) that were written are renamed into place, and
    old side files that were not written are removed; when it fails, nothing is left. Whatever
    happens, nobody sees half a file under the final name, and after a kill between two renames the
    next call begins anew. What replaces a file is on the disk before.
    """
    family = [path, *(path.with_name(name) for name in side_files)]
    check_target(path, side_files=side_files, overwrite=overwrite)
    with hidden_folder(path.parent, path.name) as work:
        try:
            yield work / path.name
            _check_free(family, overwrite=overwrite)
            _put_in_place(work, family)
        except FileError:
            raise
        except OSError as error:
            raise FileError(f"Could not write {path}: {reason(error)}.") from error


@contextmanager
def hidden_folder(folder: Path, name: str) -> Iterator[Path]:
    """Give a new hidden folder inside `folder`, and remove it at the end."""
    try:
        work = Path(tempfile.mkdtemp(dir=folder, prefix=f"{PARTIAL}{name}."))
    except OSError as error:
        raise FileError(f"Cannot write into the folder {folder}: {reason(error)}.") from error
    try:
        with folder_lock(work):
            yield work
    except FileError as error:  # which may name the hidden folder, unknown to the reader
        raise FileError(str(error).replace(str(work), str(folder))) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove the hidden folders that killed processes have left behind, those for `name` or all.

    A living process holds a lock on its own.
    """
    for left in folder.glob(f"{PARTIAL}{glob.escape(name)}*"):
        with suppress(OSError), folder_lock(left) as certain:
            if certain and not _is_new(left) and not _half_placed(left):
                shutil.rmtree(left, ignore_errors=True)


def _remove_all_leftovers(folder: Path) -> None:
    """Remove what killed processes have left behind in the folder of a result.

    Finished parts stay, so that the work can go on, unless the result has been completed since:
    then their process was killed at the end.
    """
    remove_leftovers(folder)
    parts = list(folder.glob(f"{UNFINISHED}*"))
    if parts and (folder / MANIFEST).is_file() and INCOMPLETE not in _listed(folder):
        completed = (folder / MANIFEST).stat().st_mtime_ns
        with suppress(OSError), folder_lock(folder) as certain:
            for left in parts:
                if certain and all(p.stat().st_mtime_ns <= completed for p in left.rglob("*")):
                    shutil.rmtree(left, ignore_errors=True)


def _half_placed(work: Path) -> dict[str, int]:
    """Return names and inodes of the files that were being put in place, if some still wait."""
    try:
        placing: dict[str, int] = json.loads((work / _PLACING).read_text("utf-8"))
    except (OSError, ValueError):  # there is none, or nothing was placed yet
        return {}
    return placing if any((work / name).exists() for name in placing) else {}


def _take_back(path: Path) -> None:
    """Remove what a killed process has put in place of `path` and its side files, if not all."""
    for left in path.parent.glob(f"{PARTIAL}{glob.escape(path.name)}.*"):
        with suppress(OSError), folder_lock(left) as certain:
            if not certain:
                continue
            for name, inode in _half_placed(left).items():
                placed = path.with_name(name)
                if placed.exists() and placed.stat().st_ino == inode:
                    placed.unlink()
            (left / _PLACING).unlink(missing_ok=True)


def _is_new(work: Path) -> bool:
    """Tell whether a folder is so new that its process may be about to lock it."""
    return not any(work.iterdir()) and time.time() - work.stat().st_mtime < 1


def check_target(path: Path, *, side_files: Sequence[str] = (), overwrite: bool) -> None:
    """Raise unless :func:`replacing` could begin: to be asked before long work."""
    if not path.parent.is_dir():
        raise FileError(f"Cannot write {path}: there is no folder {path.parent}. Create it first.")
    if path.is_dir():
        raise FileError(f"Cannot write {path}: it is a folder. Give the name of a file.")
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"Cannot write {path}: the folder {path.parent} may not be written to.")
    _take_back(path)
    _remove_all_leftovers(path.parent)
    family = [path, *(path.with_name(name) for name in side_files)]
    _check_free(family, overwrite=overwrite)


def reason(error: OSError) -> str:
    """Return why the system refused, in its own words and in one line."""
    # some libraries dump their whole state into the text of the error
    return os.strerror(error.errno) if error.errno else str(error).partition("\n")[0].rstrip(".")


def free_space(folder: Path) -> str:
    """Say how much space a folder has: many libraries do not tell that a disk is full."""
    return f"{shutil.disk_usage(folder).free / 1e6:.1f} MB are free there"


def check_space(path: Path, size: int) -> None:
    """Raise if the disk has less room than the `size` bytes that a file or folder may need."""
    there = next(place for place in (path, *path.absolute().parents) if place.exists())
    if size > shutil.disk_usage(there).free:
        raise FileError(
            f"Cannot write {path}: it may need {size / 1e6:.1f} MB, and only "
            f"{free_space(there)}. Make room, or choose another folder."
        )


def _check_free(family: Sequence[Path], *, overwrite: bool) -> None:
    there = [path for path in family if path.exists()]
    if there and not overwrite:
        raise FileError(
            f"{there[0]} is already there. Choose another name, or allow overwriting "
            "(--overwrite, in Python overwrite=True)."
        )


def _put_in_place(work: Path, family: Sequence[Path]) -> None:
    # Old side files go first: between two renames a map may lack its names, but it never has those
    # of another map.
    new = [path for path in family if (work / path.name).exists()]
    if len(new) > 1:
        inodes = {path.name: (work / path.name).stat().st_ino for path in new}
        (work / _PLACING).write_text(json.dumps(inodes), encoding="utf-8")
    for path in family[1:]:
        path.unlink(missing_ok=True)
    placed: list[Path] = []
    try:
        for path in new:
            is_replaced = path.exists()
            if is_replaced:
                _settle(work / path.name)
            (work / path.name).replace(path)
            placed.append(path)
            if is_replaced and sys.platform != "win32":  # where folders cannot be opened
                _settle(path.parent)
    except OSError:
        for path in placed:
            path.unlink(missing_ok=True)
        raise


def _settle(path: Path) -> None:
    """Have a file or the names in a folder on the disk: what is replaced may be labels."""
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # folders of some file systems cannot be
            raise
    finally:
        os.close(handle)


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Raise unless results may go into `folder`: it is new or empty, or may be overwritten."""
    family = (folder, *folder.absolute().parents)
    there = next(path for path in family if os.access(path, os.F_OK))
    if not there.is_dir():
        raise FileError(f"{there} is a file. Give the name of a folder.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise FileError(f"Cannot write into the folder {folder}: {there} may not be written to.")
    if folder.is_dir():
        _remove_all_leftovers(folder)
    if not overwrite and folder.is_dir() and not (is_empty(folder) or _was_cut_short(folder)):
        raise FileError(
            f"The folder {folder} is not empty. Choose another one, or allow overwriting "
            "(--overwrite, in Python overwrite=True)."
        )


def is_empty(folder: Path) -> bool:
    """Tell whether a folder holds nothing but what stopped processes have left behind."""
    return all(entry.name.startswith((PARTIAL, UNFINISHED)) for entry in folder.iterdir())


def _was_cut_short(folder: Path) -> bool:
    """Tell whether a folder holds part of one result only: its process was killed at the end."""
    listed = _listed(folder)
    if INCOMPLETE not in listed:
        return False
    there = [path for path in folder.rglob("*") if path.is_file()]
    names = {path.relative_to(folder).as_posix() for path in there}
    return all(name.startswith((PARTIAL, UNFINISHED)) for name in names - listed - {MANIFEST})


@contextmanager
def complete_folder(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a hidden folder to write into; at the end its content is moved into `folder`.

    A list of what was written, `MANIFEST`, is kept with it: files of an earlier result that this
    one does not have are removed, and no others. When the block fails, nothing is left behind, and
    what was in `folder` stays as it was.
    """
    check_folder(folder, overwrite=overwrite)
    with made_folder(folder), hidden_folder(folder, "result") as work:
        try:
            yield work
            _move(work, folder)
        except FileError:
            raise
        except OSError as error:
            raise FileError(
                f"Cannot write into the folder {folder}: {reason(error)} ({free_space(work)})."
            ) from error


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder; it goes again at the end if it is empty then and was not there before."""
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot write into the folder {folder}: {reason(error)}.") from error
    try:
        yield
    finally:
        if is_new:
            with suppress(OSError):  # not empty
                folder.rmdir()


@contextmanager
def unfinished_folder(folder: Path, key: str) -> Iterator[Path]:
    """Give a hidden folder inside `folder` for parts of a result, which outlives a failure.

    It is named after `key`, a token of everything that the parts depend on: the same work finds
    its finished parts again, and what other work has left behind is removed. When the block ends
    well, the parts are removed, too.
    """
    work = folder / f"{UNFINISHED}{key}"
    with made_folder(folder), folder_lock(folder):
        for left in (*folder.glob(f"{PARTIAL}*"), *folder.glob(f"{UNFINISHED}*")):
            if left != work:
                shutil.rmtree(left, ignore_errors=True)
        with made_folder(work):
            yield work
            shutil.rmtree(work, ignore_errors=True)


@contextmanager
def folder_lock(folder: Path) -> Iterator[bool]:
    """Keep other processes that ask for the same out of a folder, until this one ends.

    Gives whether that is certain: not every file system has locks.
    """
    if sys.platform == "win32":  # has no such locks
        yield False
        return
    import fcntl  # noqa: PLC0415

    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            certain = True
        except BlockingIOError:
            raise FileError(
                f"Another process is writing into the folder {folder}. Wait until it has ended, "
                "or choose another folder."
            ) from None
        except OSError:
            certain = False
        yield certain
    finally:
        os.close(handle)


def _listed(folder: Path) -> set[str]:
    """Return the lines of the manifest of a folder."""
    manifest = folder / MANIFEST
    return set(manifest.read_text("utf-8").splitlines()) if manifest.is_file() else set()


def _move(work: Path, folder: Path) -> None:
    """Move all files of a result into `folder`, and remove those of the result before it."""

    def write_manifest(names: set[str]) -> None:
        (work / MANIFEST).write_text("\n".join(sorted(names)), encoding="utf-8")
        (work / MANIFEST).replace(folder / MANIFEST)

    new = {path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file()}
    old = _listed(folder)
    # before anything moves: a process that is killed in between leaves no unlisted file
    write_manifest(old | new | {INCOMPLETE})
    for name in sorted(new):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).replace(folder / name)
    for name in old - new:
        if folder.resolve() in (folder / name).resolve().parents:  # never outside
            (folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # not empty
                for parent in Path(name).parents[:-1]:
                    (folder / parent).rmdir()
    write_manifest(new)


def recall(
    path: Path | None,
    compute: Callable[[], T],
    *,
    read: Callable[[Path], T],
    write: Callable[[T, Path], object],
) -> T:
    """Return the result kept at `path`, or compute it and keep it there.

    Name the file after a token of everything that the result depends on. Its folder is made if it
    is missing; without a path nothing is kept. Whatever `read` raises means that nothing useful is
    there. The file is there whole or not at all, even if the run is killed.
    """
    if path is None:
        return compute()
    try:
        return read(path)
    except Exception:  # noqa: BLE001  # missing, cut short or changed: libraries raise anything
        result = compute()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder {path.parent}: {reason(error)}.") from error
    with replacing(path, overwrite=True) as part:
        write(result, part)
    return result
