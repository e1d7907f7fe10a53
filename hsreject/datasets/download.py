"""Files from the web, kept in one folder and used only when their checksum is right."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from urllib.parse import urlsplit

import pooch

from hsreject.errors import FileError
from hsreject.files import reason, replacing
from hsreject.progress import ProgressCallback, no_progress

FOLDER_VARIABLE = "HSREJECT_DATA"
_TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class RemoteFile:
    """A file on the web and how to recognise it.

    Parameters
    ----------
    url : str
        Where it can be downloaded; the last part is its name.
    sha256 : str
        Its checksum, in hexadecimal digits.
    size : int
        Its size in bytes.
    """

    url: str
    sha256: str
    size: int

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.url.rpartition("/")[2]


def data_folder() -> Path:
    """Return the folder that keeps downloads: HSREJECT_DATA if set, else the user's cache."""
    return Path(os.environ.get(FOLDER_VARIABLE) or pooch.os_cache("hsreject"))


def fetch_file(
    file: RemoteFile,
    *,
    page: str,
    folder: str | PathLike[str] | None = None,
    progress: ProgressCallback = no_progress,
) -> Path:
    """Return the path of a file, downloaded unless it is there already.

    Parameters
    ----------
    file : RemoteFile
        What to fetch.
    page : str
        The page that describes it, for people who must download it by hand.
    folder : path, optional
        Where to keep it; :func:`data_folder` unless given. A file put there by hand will do.
    progress : ProgressCallback
        Called as bytes arrive.
    """
    place = Path(folder) if folder is not None else data_folder()
    path = place / file.name
    if path.is_dir():
        raise FileError(f"{path} is a folder, where the file {file.name} should be. Remove it.")
    if path.exists():
        difference = _difference(path, file)
        if difference:
            raise FileError(
                f"{path} is not the published {file.name}: {difference}. "
                "Remove it and fetch it again."
            )
        return path
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"Cannot make the folder {place}: {reason(error)}.") from error
    with replacing(path, overwrite=False) as work:
        failure = _download(file, work, progress)
        if failure:
            raise FileError(
                f"Could not download {file.name}: {failure}.\n"
                f"Download it by hand from {file.url}\n"
                f"(see {page})\n"
                f"and put it into the folder {place}\n"
                f"It has {file.size} bytes and the SHA-256 {file.sha256}."
            )
    return path


def _download(file: RemoteFile, path: Path, progress: ProgressCallback) -> str | None:
    """Download a file and return what went wrong, if anything did."""
    progress(file.name, 0, file.size)
    download = pooch.HTTPDownloader(progressbar=_Bytes(file, progress), timeout=_TIMEOUT_SECONDS)
    try:
        download(file.url, str(path), None)
    except OSError as error:  # every error of requests is one
        host = urlsplit(file.url).netloc
        if type(error).__name__ == "ChunkedEncodingError":  # requests belongs to pooch, not to us
            return f"{host} broke off before all {file.size} bytes had come"
        said = str(error).rstrip(".")
        return said if len(said) < 100 else f"{host} cannot be reached ({type(error).__name__})"
    difference = _difference(path, file)
    return f"what is there is another file, {difference}" if difference else None


def _difference(path: Path, file: RemoteFile) -> str | None:
    """Return how a file differs from the published one, or None if it is the same."""
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found == file.sha256:
        return None
    return (
        f"it has {path.stat().st_size} bytes and the SHA-256 {found}, "
        f"not {file.size} bytes and {file.sha256}"
    )


class _Bytes:
    """What pooch takes for a progress bar."""

    def __init__(self, file: RemoteFile, progress: ProgressCallback) -> None:
        self.total = file.size
        self._done = 0
        self._file = file
        self._progress = progress

    def update(self, count: int) -> None:
        """Count bytes that have arrived."""
        self._done = min(self._done + count, self._file.size)
        self._progress(self._file.name, self._done, self._file.size)

    def reset(self) -> None:
        """Start from nothing."""
        self._done = 0

    def close(self) -> None:
        """Do nothing: the caller owns the bar."""
