"""A folder of results that appears complete or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hsreject.errors import FileError


def check_folder(folder: Path, *, overwrite: bool) -> None:
    """Raise unless results may go into `folder`: it is new or empty, or may be overwritten."""
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder} is a file. Give the name of a folder.")
    if not overwrite and folder.is_dir() and any(folder.iterdir()):
        raise FileError(
            f"The folder {folder} is not empty. Choose another one, or allow overwriting "
            "(--overwrite, in Python overwrite=True)."
        )


@contextmanager
def complete_folder(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a hidden folder to write into; at the end its files are moved into `folder`.

    When the block fails nothing is left behind, and files that were in `folder` stay as they were.
    """
    check_folder(folder, overwrite=overwrite)
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=folder, prefix=".partial."))
    except OSError as error:
        raise FileError(f"Cannot write into the folder {folder}: {error.strerror}.") from error
    complete = False
    try:
        yield work
        for file in sorted(work.iterdir()):
            file.replace(folder / file.name)
        complete = True
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"Cannot write into the folder {folder}: {error.strerror}.") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
        if made and not complete:
            shutil.rmtree(folder, ignore_errors=True)
