"""Replace files all at once: work in a hidden folder beside them, then rename."""

from __future__ import annotations

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
    _check_target(path)
    _check_free(family, overwrite=overwrite)
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
        raise FileError(f"Could not write {path}: {error}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _check_target(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileError(f"Cannot write {path}: there is no folder {path.parent}. Create it first.")
    if path.is_dir():
        raise FileError(f"Cannot write {path}: it is a folder. Give the name of a file.")


def _check_free(family: Sequence[Path], *, overwrite: bool) -> None:
    there = [path for path in family if path.exists()]
    if there and not overwrite:
        raise FileError(
            f"{there[0]} is already there. Pass overwrite=True to replace it, or choose another "
            "name."
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
