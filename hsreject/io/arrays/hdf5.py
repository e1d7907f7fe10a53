"""HDF5 files: opened after one walk over all members, and their arrays as layers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from hsreject.errors import FileError
from hsreject.files import reading
from hsreject.io.arrays.stored_pixels import Layer, check_real
from hsreject.io.remote import RemotePath, as_path

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

HDF5 = b"\x89HDF\r\n\x1a\n"
_HEAP = b"GCOL\1"  # how a heap of texts begins; HDF5 looks at no more
_REFERENCE = np.dtype([("length", "<u4"), ("address", "<u8"), ("index", "<u4")])  # into a heap
# Of an attribute: a datatype of variable length (of 16 bytes, the reference, by what its elements
# are), whose literal bytes come first so that it is found quickly, and the dataspace after it.
_OF_VARIABLE_LENGTH = re.compile(
    rb"\0\x10\0\0\0(?<=[\x19\x29\x39\x49]..\0\x10\0\0\0)"
    rb"(?:[\x10\x20\x30\x40].{11}|[\x11\x21\x31\x41].{19}|[\x13\x17\x23\x27\x33\x37\x43\x47].{7})"
    rb"(?:\0{4})?(?:\x01(.)([\0-\3])\0{3}..|\x02(.)([\0\1])[\0-\2])",
    re.DOTALL,
)


def hdf5_layer(dataset: h5py.Dataset, axes: str) -> Layer:
    """Return an array of an open HDF5 file, its axes named in the order of the file."""
    path, name = existing_path(dataset.file), dataset.name
    if dataset.ndim != len(axes):
        raise FileError(f"{path}: '{name}' has {dataset.ndim} axes, {len(axes)} were expected.")
    check_real(dataset.dtype, path)
    read = partial(read_hdf5, path, name)
    return Layer(path, name, axes, dataset.shape, dataset.dtype, "HDF5", read, dataset.chunks)


def read_hdf5(path: Path, name: str, key: tuple[slice, ...]) -> NDArray[Any]:
    """Read a part of an array."""
    with _opened(path) as file:
        return np.asarray(file[name][key])


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """Open an HDF5 file, and turn whatever goes wrong with it into one line about the file.

    One that leads to other files is refused: an untrusted file could read local files.
    """
    with _opened(path) as file:
        _check_claims(path)
        elsewhere = file.visititems_links(partial(_leads_elsewhere, file))
        if elsewhere is not None:
            raise FileError(
                f"{path}: '{elsewhere}' lies in another file, which is not followed. If you know "
                "where it comes from, copy what you need into one file."
            )
        yield file


def _leads_elsewhere(file: h5py.File, name: str, link: Any) -> str | None:
    """Return the name of a member if it lies in another file."""
    entry = file[name] if isinstance(link, h5py.HardLink) else link  # soft: to a member
    is_array = isinstance(entry, h5py.Dataset)
    elsewhere = is_array and (entry.external or entry.is_virtual)
    if is_array and not elsewhere:
        _check_texts(entry)
    return name if elsewhere or isinstance(entry, h5py.ExternalLink) else None


def _check_texts(array: h5py.Dataset) -> None:
    """Raise if an array refers to texts that are longer than the file."""
    of_file, start = array.id.get_type(), array.id.get_offset()
    is_text = isinstance(of_file, h5py.h5t.TypeStringID) and of_file.is_variable_str()
    if start is None or not (is_text or isinstance(of_file, h5py.h5t.TypeVlenID)):
        return
    path = existing_path(array.file)
    with path.open("rb") as stream:
        stream.seek(start)
        length = path.stat().st_size
        raw = stream.read(min(_REFERENCE.itemsize * array.size, length))
    _check_references(raw, path, length)


def _check_references(raw: bytes, path: Path, length: int) -> None:
    """Raise if a reference claims more than there is: HDF5 would make room for it, unasked."""
    references = np.frombuffer(raw, _REFERENCE, len(raw) // _REFERENCE.itemsize)
    if references["length"].max(initial=0) > length:
        raise FileError(f"{path} is damaged: one of its texts or lists is longer than the file.")


def _check_claims(path: Path) -> None:
    """Raise if HDF5 would read a damaged file for ever, or make room for what is not there.

    It does at an entry without a length in a heap, at a heap that claims to be longer than the
    file, and at an attribute that refers to a text that does.
    """
    # "HDF5 File Format Specification", III.E and IV.A.2; heaps and attributes lie near the start
    with path.open("rb") as stream:
        raw = stream.read(2**18 if isinstance(path, RemotePath) else 2**24)
    length = path.stat().st_size
    start = raw.find(_HEAP)
    while start >= 0:
        entry, end = start + 16, start + int.from_bytes(raw[start + 8 : start + 16], "little")
        if end > length:  # HDF5 would make room for it
            raise FileError(f"{path} is damaged: one of its heaps is longer than the file.")
        while entry < min(end, len(raw)) - 15:
            used = any(raw[entry : entry + 2])  # else what is free, which counts its own 16 bytes
            size = int.from_bytes(raw[entry + 8 : entry + 16], "little")
            step = (16 + -(-size // 8) * 8 if used else size) % 2**64
            if step == 0:
                raise FileError(f"{path} is damaged: an entry of its heap has no length.")
            entry += step
        start = raw.find(_HEAP, start + 1)
    for match in _OF_VARIABLE_LENGTH.finditer(raw):
        rank, flags = (group[0] for group in match.groups() if group is not None)
        start = match.end()
        sizes = np.frombuffer(raw[start : start + 8 * rank].ljust(8 * rank, b"\0"), "<u8").tolist()
        start += 8 * rank * (1 + flags % 2)  # with the largest sizes
        end = start + _REFERENCE.itemsize * math.prod(sizes)
        _check_references(raw[start:end], path, length)


def check_hdf5(path: Path) -> None:
    """Raise unless :func:`open_hdf5` opens a file that another library is about to read."""
    with open_hdf5(path):
        pass


@contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    """Open an HDF5 file that has been looked at."""
    with (
        reading(path),
        path.open("rb") if isinstance(path, RemotePath) else nullcontext(path) as source,
        _hdf5(source) as file,
    ):
        yield file


def _hdf5(source: Any) -> h5py.File:
    # Locks do not help reading, and fail on some network drives. But if this process already has
    # the file open, HDF5 requires the same setting: then as h5py does by default, or as configured.
    for locking in (False, None, True):
        try:
            return h5py.File(source, "r", locking=locking)
        except OSError as error:
            if "locking" not in str(error):
                raise
    return h5py.File(source, "r", locking="best-effort")


def existing_path(file: h5py.File) -> Path:
    """Return the absolute path of an open file."""
    return as_path(file.filename).absolute()
