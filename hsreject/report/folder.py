"""A folder of results that appears complete or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hsreject.errors import FileError
from hsreject.io.replace import free_space, reason

PARTIAL = ".partial."
"""How the name of a hidden folder begins in which results wait to be complete."""


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Raise unless results may go into `folder`: it is new or empty, or may be overwritten.

    A look before the work, so that nobody waits for results that have no place to go.
    """
    family = (folder, *folder.absolute().parents)
    there = next(path for path in family if os.access(path, os.F_OK))
    if not there.is_dir():
        raise FileError(f"{there} is a file. Give the name of a folder.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise FileError(f"Cannot write into the folder {folder}: {there} may not be written to.")
    if not overwrite and folder.is_dir() and any(folder.iterdir()):
        raise FileError(
            f"The folder {folder} is not empty. Choose another one, or allow overwriting "
            "(--overwrite, in Python overwrite=True)."
        )


@contextmanager
def complete_folder(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a hidden folder to write into; at the end what it holds is moved into `folder`.

    A folder inside takes the place of an old one with its name. When the block fails nothing is
    left behind, and what was in `folder` stays as it was.
    """
    check_folder(folder, overwrite=overwrite)
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=folder, prefix=PARTIAL))
    except OSError as error:
        raise FileError(f"Cannot write into the folder {folder}: {reason(error)}.") from error
    complete = False
    try:
        yield work
        for entry in sorted(work.iterdir()):
            _put(entry, folder / entry.name)
        complete = True
    except FileError as error:  # which names the hidden folder, unknown to the reader
        raise FileError(str(error).replace(str(work), str(folder))) from error
    except OSError as error:
        raise FileError(
            f"Cannot write into the folder {folder}: {reason(error)} ({free_space(work)})."
        ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if made and not complete:
            shutil.rmtree(folder, ignore_errors=True)


def _put(entry: Path, place: Path) -> None:
    if entry.is_dir() and place.is_dir():
        shutil.rmtree(place)
    entry.replace(place)
