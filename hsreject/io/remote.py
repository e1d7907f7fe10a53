"""Scenes by URL: https, http and s3 stand where the path of a file may stand.

GDAL reads rasters by itself and asks only for the bytes it needs; fsspec does the same for HDF5 and
NetCDF files and for Zarr stores, which are folders. Credentials come from where both look for
them: the environment, ~/.aws and ~/.netrc.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from io import BufferedReader
from os import PathLike, stat_result
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname
from uuid import uuid4
from zlib import crc32

from hsreject.errors import FileError
from hsreject.files import existing, reading
from hsreject.io.packed_scenes import is_archive, scene_in, unpacked

_URL = re.compile(r"(https?|s3):/+", re.IGNORECASE)
_BLOCK = 2**18  # bytes that are asked for at least
SILENCE = 60  # seconds: how long a server may say nothing
OFFLINE = {
    "CPL_VSIL_CURL_ALLOWED_FILENAME": "none",  # what GDAL reads in parts, such as /vsicurl
    **dict.fromkeys(("GDAL_HTTP_PROXY", "GDAL_HTTPS_PROXY"), "127.0.0.1:1"),  # nobody answers there
}
"""Settings under which GDAL asks no server."""
_REFUSED = {
    401: "the server asks for a login (401). Put name and password into ~/.netrc.",
    403: "the server does not let you read it (403). Ask for access, or check the address.",
    **{n: f"the server has a problem ({n}). Try again later." for n in (500, 502, 503, 504)},
}
_METADATA = ("zarr.json", ".zmetadata", ".zgroup", ".zarray")  # one makes a folder a Zarr store


def as_path(source: str | PathLike[str]) -> Path:
    """Return a path, one that reads from the network for a URL."""
    text = str(source)
    if text.lower().startswith("file:/"):
        return Path(url2pathname(urlparse(text).path))
    text = re.sub("^/vsis3/", "s3://", text.removeprefix("/vsicurl/"))
    if not _URL.match(text):
        return Path(source)
    if text.lower().startswith("http"):  # slashes in a query do not part folders
        address, mark, query = text.partition("?")
        if mark:  # and nothing hides where a query begins
            text = f"{address}?{query.replace('/', '%2F')}".replace(" ", "%20")
    return RemotePath(text)


def existing_scene(source: str | PathLike[str]) -> Path:
    """Return the path or the URL of a file that is there and may be read."""
    if not str(source).strip():
        raise FileError("The path is empty. Give the name of a file.")
    path = as_path(source)
    if is_store(path):
        _metadata(path)
    elif isinstance(path, RemotePath):
        path.check()
    elif os.path.isdir(path):  # noqa: PTH112 (of a name that is too long it says no)
        return scene_in(path, path)
    else:
        path = existing(path)
        with reading(path):
            if is_archive(path):
                return scene_in(unpacked(path.absolute(), state_of(path)), path)
    return path


def is_store(path: Path) -> bool:
    """Tell whether a path is named like a Zarr store."""
    return path.suffix.lower() == ".zarr"


def _metadata(store: Path) -> Path:
    """Return the file that describes a Zarr store."""
    metadata = next((store / name for name in _METADATA if (store / name).exists()), None)
    if metadata is None:
        raise FileError(f"{store} does not exist, or is not a Zarr store. Check the path.")
    return metadata


def state_of(path: Path) -> tuple[int, int]:
    """Return size and time of change, which show whether a scene has changed."""
    files = [path]
    if is_store(path):
        files = [_metadata(path)]
        files += [] if isinstance(path, RemotePath) else path.rglob("*")
    states = [file.stat() for file in files]
    return sum(state.st_size for state in states), max(state.st_mtime_ns for state in states)


def gdal_name(path: Path) -> str:
    """Return the name under which GDAL opens a file."""
    if not isinstance(path, RemotePath):
        return str(path.absolute())
    url = str(path)
    return url.replace("s3://", "/vsis3/", 1) if url.startswith("s3") else f"/vsicurl/{url}"


class RemotePath(type(Path())):  # type: ignore[misc]  # a class of its own in each system
    """A file on the network, as far as readers use a path: its name, its size, its bytes."""

    remedy = "Check the connection, or download the file and open it from disk."

    def __str__(self) -> str:
        """Return the URL, whose slashes a path would lose."""
        return _URL.sub(r"\1://", str(super().__str__()).replace("\\", "/"), count=1)

    @property
    def name(self) -> str:
        """The last part, without a query."""
        return str(super().name).partition("?")[0]

    def check(self) -> None:
        """Raise unless the file is there, and its parts can be asked for."""
        opened = self._asked(lambda files: files.open(str(self), "rb", cache_type="none"))
        try:
            opened.seek(1)
            opened.read(1)
        except ValueError:
            raise FileError(
                f"{self}: the server sends the file as a whole only, not in parts (byte ranges). "
                "Download it and open it from disk."
            ) from None
        except Exception as error:
            raise FileError(f"{self} cannot be read: {error}. {self.remedy}") from error

    def open(self, *_args: Any, **_kwargs: Any) -> BufferedReader:
        """Open it for reading bytes."""
        return _Stream(self)

    def _asked(self, question: Callable[[Any], Any]) -> Any:
        """Return what the file system says, or why it says nothing, in one line."""
        try:
            from fsspec.core import url_to_fs  # type: ignore[import-untyped]  # noqa: PLC0415

            options = {}
            if str(self).lower().startswith("http"):
                from aiohttp import ClientTimeout  # noqa: PLC0415  (an extra)

                limit = ClientTimeout(total=None, sock_connect=SILENCE, sock_read=SILENCE)
                options = {"client_kwargs": {"timeout": limit}}
            return question(url_to_fs(str(self), **options)[0])
        except ImportError as error:
            raise FileError(
                f"{self} cannot be opened ({error}). Install what reads URLs: "
                "pip install aiohttp s3fs."
            ) from error
        except Exception as error:
            # of a file that is not there, and of a server that is not there, fsspec says the same
            status = getattr(error.__cause__, "status", 404 if error.__cause__ is None else None)
            status = getattr(error, "status", status)
            if status in _REFUSED:
                raise FileError(f"{self}: {_REFUSED[status]}") from None
            if isinstance(error, FileNotFoundError) and status == 404:
                raise FileError(f"{self} does not exist. Check the address.") from None
            cause = str(error.__cause__ or error).rstrip(".")
            raise FileError(f"{self} cannot be opened: {cause}. {self.remedy}") from error

    def stat(self, **_kwargs: Any) -> stat_result:
        """Return the size, and as time of change what the server says of the version."""
        facts: dict[str, Any] = self._asked(lambda files: files.info(str(self)))
        versions = (facts.get(key) for key in ("ETag", "LastModified", "Last-Modified"))
        version = next(filter(None, versions), uuid4())
        state = {"st_size": facts.get("size") or 0, "st_mtime_ns": crc32(str(version).encode())}
        return SimpleNamespace(**state)  # type: ignore[return-value]

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield the files beside, where the server lists them."""
        try:
            # S3 lists names without "s3://"
            names = self._asked(
                lambda fs: [fs.unstrip_protocol(name) for name in fs.ls(f"{self}/", detail=False)]
            )
            yield from map(RemotePath, names)
        except FileError as error:
            raise FileError(
                f"The files of the product in {self} cannot be listed. Download them into a folder."
            ) from error

    def exists(self, **_kwargs: Any) -> bool:
        """Tell whether the server has it."""
        return bool(self._asked(lambda files: files.exists(str(self))))

    is_file = exists

    def is_dir(self, **_kwargs: Any) -> bool:
        """Tell that it is not a folder."""
        return False

    def absolute(self, **_kwargs: Any) -> RemotePath:
        """Return itself: it is the same from everywhere."""
        return self


class _Stream(BufferedReader):
    """The bytes of a remote file; h5py takes what it is called for the name of the file."""

    def __init__(self, path: RemotePath) -> None:
        self._path = path
        opened = path._asked(  # noqa: SLF001
            lambda files: files.open(str(path), "rb", block_size=_BLOCK, cache_type="readahead")
        )
        super().__init__(opened, buffer_size=2**13)

    def __repr__(self) -> str:
        return str(self._path)
