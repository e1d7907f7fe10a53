"""Scenes in folders and archives, as downloads come: which file is the scene.

Archives are unpacked by hand, not by Python's own ``extractall``, whose filter for untrusted tar
archives could be bypassed for years (CVE-2025-4517): plain files and folders only, which is all
that products have, no more than a scene fills, and each write goes into a folder that holds no
links, because none was made.
"""

from __future__ import annotations

import atexit
import gzip
import re
import shutil
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path, PureWindowsPath
from tempfile import gettempdir
from typing import IO, Any, NamedTuple, cast
from zipfile import ZipFile, is_zipfile

from hsreject.errors import FileError
from hsreject.files import hidden_folder, remove_leftovers, starts_with
from hsreject.progress import report_unpacked

_ENDINGS = {".zip", ".tar", ".tgz", ".gz"}
_SCENES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"ENMAP.*METADATA\.XML|DESIS.*SPECTRAL_IMAGE\.TIFF?",
        r"(?!.*(?:_MASK_|UNCERT|_OBS_)).*\.(?:nc4?|he5|h5|hdf5?)",
        r"(?!.*QL_).*\.(?:tiff?|hdr|img|jp2)",
        r".*\.(?:mat|npy)",
    )
)
"""What the scene of a folder is called, the likeliest first."""
_HIDDEN = "unpacked"  # what errors.shown looks for
_PLAIN = {tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE}
# Scenes shrink a few times, maps of few classes and empty margins more; bombs a thousand times.
_LARGEST_RATIO = 50
_ALWAYS_ALLOWED = 500_000_000  # bytes
_BLOCK = 4096  # bytes: what an empty file takes
_PIECE = 2**16  # bytes: more than any header of a tar archive
_LONGEST_NAME, _LONGEST_PATH = 255, 1000  # bytes
_folders: dict[tuple[Path, tuple[int, int]], tuple[Path, Callable[[], None]]] = {}
"""Of each archive, by its path and state: where it is unpacked, and what removes that."""


def scene_in(folder: Path, source: Path) -> Path:
    """Return the only scene in a folder, or in those inside of it."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.name[0] != "."]
    for pattern in _SCENES:  # products before plain rasters, which may be their parts
        fitting = [file for file in files if pattern.fullmatch(file.name)]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            names = ", ".join(file.relative_to(folder).as_posix() for file in fitting[:5])
            raise FileError(f"{source} holds {len(fitting)} scenes: {names}. Give one of them.")
    raise FileError(f"{source} is a folder or an archive without a scene in it. Give the scene.")


def is_archive(path: Path) -> bool:
    """Tell whether a file is a zip or tar archive, maybe in gzip, by its name and its content."""
    if path.suffix.lower() not in _ENDINGS:
        return False
    if is_zipfile(path):
        return True
    try:
        with path.open("rb") as stream, _tar(stream, path):
            return True
    except (tarfile.TarError, OSError, EOFError, zlib.error):
        return False


def unpacked(path: Path, state: tuple[int, int]) -> Path:
    """Return a folder with the content of an archive, which lives as long as the process.

    That of a process that was killed is removed by the next one.
    """
    if (path, state) not in _folders:
        place = Path(gettempdir())
        remove_leftovers(place, _HIDDEN)
        with ExitStack() as stack:
            folder = stack.enter_context(hidden_folder(place, _HIDDEN)) / path.name
            folder.mkdir()
            _unpack(path, folder)
            remove = stack.pop_all().close
        atexit.register(remove)
        _folders[path, state] = folder, remove
    return _folders[path, state][0]


@contextmanager
def unpacked_for_now() -> Iterator[None]:
    """Remove at the end what is unpacked in between: many archives would fill the disk."""
    earlier = set(_folders)
    try:
        yield
    finally:
        for key in _folders.keys() - earlier:
            _, remove = _folders.pop(key)
            atexit.unregister(remove)
            remove()


class _Member(NamedTuple):
    """A file or a folder in an archive."""

    name: str
    size: int  # bytes, unpacked
    is_folder: bool
    is_plain: bool  # not a link, a device, or a file with holes
    open: Callable[[], Any]


def _members(path: Path, stream: IO[bytes]) -> Iterator[_Member]:
    """Yield what an open archive holds, in its order."""
    read: Any
    if is_zipfile(path):
        with ZipFile(stream) as archive:
            for info in archive.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)  # 0 where the archive has none
                is_plain = kind in {0, stat.S_IFREG, stat.S_IFDIR}
                read = partial(archive.open, info)
                yield _Member(info.filename, info.file_size, info.is_dir(), is_plain, read)
        return
    with _tar(stream, path) as tar:
        for entry in tar:
            is_plain = entry.type in _PLAIN and not entry.issparse()
            read = partial(tar.extractfile, entry)
            yield _Member(entry.name, entry.size, entry.isdir(), is_plain, read)


def _unpack(path: Path, folder: Path) -> None:
    """Unpack an archive into an empty folder, or raise if a scene would not come like that."""
    packed_size = path.stat().st_size
    most = max(_LARGEST_RATIO * packed_size, _ALWAYS_ALLOWED)
    size = 0
    with path.open("rb") as stream:
        for member in _members(path, stream):
            target = folder.joinpath(*_parts(member, path))
            size += member.size + _BLOCK
            if size > most:
                raise FileError(
                    f"{path} would unpack to more than {most / 1e6:.0f} MB from "
                    f"{packed_size / 1e6:.1f} MB, which scenes do not. If you know where it comes "
                    "from, unpack it yourself and give the folder."
                )
            if member.size > shutil.disk_usage(folder).free:
                raise FileError(
                    f"{path} does not fit into {gettempdir()}, where it is unpacked. Make room "
                    "there, set TMPDIR to another folder, or unpack it yourself."
                )
            (target if member.is_folder else target.parent).mkdir(parents=True, exist_ok=True)
            if member.is_folder:
                continue
            with member.open() as source, target.open("wb") as copy:
                while piece := source.read(_PIECE):
                    copy.write(piece)
                    report_unpacked(stream.tell(), packed_size)


def _parts(member: _Member, path: Path) -> tuple[str, ...]:
    """Return the folders and the name of a member, which lie inside of any folder."""
    name = PureWindowsPath(member.name)  # takes both slashes, and knows drives
    parts = name.relative_to(name.anchor).parts
    too_long = max((len(part.encode()) for part in parts), default=0) > _LONGEST_NAME
    if too_long or len(member.name.encode()) > _LONGEST_PATH:
        raise FileError(
            f"{path} holds a file whose name is too long ({member.name[:40]}...), as none of a "
            "scene is. Nothing was unpacked. Do not use this archive."
        )
    if not member.is_plain or ".." in parts:
        raise FileError(
            f"{path} holds a link, a device or a way out of its folder ({member.name}), which "
            "scenes do not need. Nothing was unpacked. If you know where it comes from, unpack it "
            "yourself and give the folder."
        )
    return parts


@contextmanager
def _tar(stream: IO[bytes], path: Path) -> Iterator[tarfile.TarFile]:
    """Open a tar archive, maybe in gzip."""
    in_gzip = starts_with(path, b"\x1f\x8b")
    with (
        gzip.GzipFile(fileobj=stream) if in_gzip else nullcontext(stream) as plain,
        tarfile.open(fileobj=cast("Any", _Bounded(plain)), mode="r:") as tar,
    ):
        yield tar


class _Bounded:
    """A stream that gives so much at once only: tarfile reads headers of any size in one go."""

    def __init__(self, stream: Any) -> None:
        self._stream, self.seek, self.tell = stream, stream.seek, stream.tell

    def read(self, size: int) -> bytes:
        """Read some bytes."""
        if size > _PIECE:
            raise tarfile.ReadError("a name in it is longer than a name can be")
        return bytes(self._stream.read(size))
