"""Replace files all at once: work in a hidden folder beside them, then rename."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hsreject.errors import FileError


@contextmanager
def replacing(path: Path, *, side_files: Sequence[str] = (), overwrite: bool) -> Iterator[Path]:
    """Give a path to write instead of `path`, and put what was written in place at the end.

    The given path has the name of `path` in a new hidden folder beside it. When the block ends
    well, the file and those of `side_files` that were written are renamed into place; when it
    fails, nothing is left. Whatever happens, nobody sees half a file under the final name.

    Parameters
    ----------
    path : Path
        The file to make.
    side_files : sequence of str
        Names of the files that belong to it. When `path` is replaced, old ones go with it.
    overwrite : bool
        Whether files that are already there may be replaced.
    """
    family = [path, *(path.with_name(name) for name in side_files)]
    check_target(path, side_files=side_files, overwrite=overwrite)
    try:
        work = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial"))
    except OSError as error:
        raise FileError(f"Cannot write into the folder {path.parent}: {error.strerror}.") from error
    try:
        yield work / path.name
        _check_free(family, overwrite=overwrite)
        _put_in_place(work, family)
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"Could not write {path}: {reason(error)}.") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def check_target(path: Path, *, side_files: Sequence[str] = (), overwrite: bool) -> None:
    """Raise unless :func:`replacing` could begin: for a look before long work.

    Parameters
    ----------
    path, side_files, overwrite
        As for :func:`replacing`.
    """
    if not path.parent.is_dir():
        raise FileError(f"Cannot write {path}: there is no folder {path.parent}. Create it first.")
    if path.is_dir():
        raise FileError(f"Cannot write {path}: it is a folder. Give the name of a file.")
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"Cannot write {path}: the folder {path.parent} may not be written to.")
    family = [path, *(path.with_name(name) for name in side_files)]
    _check_free(family, overwrite=overwrite)


def reason(error: OSError) -> str:
    """Return why the system refused, in its own words and in one line."""
    # some libraries put the dump of a whole state into the text of the error
    return os.strerror(error.errno) if error.errno else str(error).partition("\n")[0].rstrip(".")


def free_space(folder: Path) -> str:
    """Return how much space a folder has, for errors of libraries that do not tell of a full disk.

    Examples
    --------
    >>> free_space(Path())
    '... MB are free there'
    """
    return f"{shutil.disk_usage(folder).free / 1e6:.1f} MB are free there"


def check_space(path: Path, size: int) -> None:
    """Raise if the disk of a file has less room than the file may need, before work is lost.

    Parameters
    ----------
    path : Path
        The file to make.
    size : int
        How many bytes it may need.
    """
    if size > shutil.disk_usage(path.parent).free:
        raise FileError(
            f"Cannot write {path}: it may need {size / 1e6:.1f} MB, and only "
            f"{free_space(path.parent)}. Make room, or choose another folder."
        )


def _check_free(family: Sequence[Path], *, overwrite: bool) -> None:
    there = [path for path in family if path.exists()]
    if there and not overwrite:
        raise FileError(
            f"{there[0]} is already there. Choose another name, or allow overwriting "
            "(--overwrite, in Python overwrite=True)."
        )


def _put_in_place(work: Path, family: Sequence[Path]) -> None:
    # Old side files go before the new file comes: between two renames there may be a map without
    # names, but never a map with the names of another.
    for path in family[1:]:
        path.unlink(missing_ok=True)
    placed: list[Path] = []
    try:
        for path in family:
            if (work / path.name).exists():
                (work / path.name).replace(path)
                placed.append(path)
    except OSError:
        for path in placed:
            path.unlink(missing_ok=True)
        raise
