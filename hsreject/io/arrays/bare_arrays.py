"""Bare arrays: NumPy .npy files and MATLAB .mat files, old (scipy) and new (HDF5)."""

from __future__ import annotations

import zlib
from functools import partial
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from hsreject.errors import FileError
from hsreject.files import reading, starts_with
from hsreject.io.arrays.hdf5 import HDF5, open_hdf5, read_hdf5
from hsreject.io.arrays.stored_pixels import Layer, native_type

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_MATLAB_TYPES = {"single": "float32", "double": "float64", "logical": "bool"}
_MATLAB_TYPES |= {f"{u}int{bits}": f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)}
# Of old .mat files: byte orders, the type of a deflated element, the types of numbers.
_BYTE_ORDERS = {b"IM": "<u4", b"MI": ">u4"}
_DEFLATED, _NUMBERS = 15, (1, 2, 3, 4, 5, 6, 7, 9, 12, 13)


def stored_arrays(path: Path) -> list[Layer]:
    """Return the arrays of numbers in a .npy or .mat file without reading them, axes not named.

    Axes come in the order in which the users of a format write them.
    """
    path = path.absolute()  # a lazy array may be read from another working folder

    def layer(
        kind: str, read: Any, name: str, shape: tuple[int, ...], dtype: Any, chunks: Any = None
    ) -> Layer:
        reader = partial(read, path, name)
        return Layer(path, name, "", shape, native_type(np.dtype(dtype)), kind, reader, chunks)

    with reading(path):
        if path.suffix.lower() == ".npy":
            if not starts_with(path, b"\x93NUMPY"):
                raise FileError(f"{path} is not a NumPy file. Save the array with numpy.save.")
            array = np.load(path, mmap_mode="r")
            return [layer("numpy", _read_npy, "", array.shape, array.dtype)]
        # HDF5 files by MATLAB start with 512 bytes of their own
        if any(starts_with(path, HDF5, offset=offset) for offset in (0, 512)):
            with open_hdf5(path) as file:
                # not .values(), whose iterator keeps h5py locked after an error
                entries = [entry for name in list(file) if _holds_numbers(entry := file[name])]
                return [
                    layer(
                        "matlab-hdf5",
                        _read_matlab_hdf5,
                        entry.name.strip("/"),
                        entry.shape[::-1],  # axes are stored in reverse
                        entry.dtype,
                        entry.chunks and entry.chunks[::-1],
                    )
                    for entry in entries
                ]
        _check_matrices(path)
        from scipy.io import whosmat  # noqa: PLC0415  (slow)

        # compressed as one piece, and of the type that MATLAB shows, not that of the packed one
        return [
            layer("matlab", _read_mat, name, shape, _MATLAB_TYPES[stored_as], shape)
            for name, shape, stored_as in whosmat(path)
            if stored_as in _MATLAB_TYPES
        ]


def _holds_numbers(entry: Any) -> bool:
    """Tell whether an HDF5 entry is an array: MATLAB stores text and empty ones as numbers, too."""
    if not (isinstance(entry, h5py.Dataset) and entry.shape and entry.dtype.kind in "iufV"):
        return False
    text = entry.attrs.get("MATLAB_class", b"") in {b"char", "char"}
    return not text and "MATLAB_empty" not in entry.attrs


def _read_npy(path: Path, _name: str, key: tuple[slice, ...]) -> NDArray[Any]:
    return np.asarray(np.load(path, mmap_mode="r")[key])


def _read_matlab_hdf5(path: Path, name: str, key: tuple[slice, ...]) -> NDArray[Any]:
    return read_hdf5(path, name, key[::-1]).T


def _read_mat(path: Path, name: str, key: tuple[slice, ...]) -> NDArray[Any]:
    from scipy.io import loadmat  # noqa: PLC0415  (slow)

    return np.asarray(loadmat(path, variable_names=[name])[name][key])


def _check_matrices(path: Path) -> None:
    """Raise where scipy would crash: at numbers of a type that MATLAB does not have."""
    # "MAT-File Format", MathWorks: elements with a type and a length, matrices maybe deflated. In a
    # matrix of numbers, flags (4 words), sides and name come before the numbers; each has a type
    # and a length, which fill one word if what follows fits into another.
    with path.open("rb") as stream:
        order = _BYTE_ORDERS.get(stream.read(128)[126:])  # none in an older kind of files
        while order is not None and len(tag := stream.read(8)) == 8:
            kind, length = np.frombuffer(tag, order).tolist()
            start = stream.read(min(length, 4096))
            stream.seek(length - len(start), 1)
            if kind == _DEFLATED:
                start = zlib.decompressobj().decompress(start, 4096)[8:]
            words = np.frombuffer(start[: len(start) // 4 * 4], order).tolist()
            at = 4
            for _ in ("sides", "name"):
                if at + 1 < len(words):
                    at += 2 if words[at] >> 16 else 2 + 2 * -(-words[at + 1] // 8)
            if at >= len(words) or words[2] & 255 not in range(6, 16):  # text, a struct, a cell
                continue
            stated = words[at] & 0xFFFF if words[at] >> 16 else words[at]
            if stated not in _NUMBERS:
                raise FileError(
                    f"{path} is damaged: it holds numbers of the unknown type {stated}. Copy or "
                    "save it again."
                )


def choose_array(
    arrays: list[Layer], *, path: Path, n_axes: int, what: str, variable: str | None
) -> Layer:
    """Return the only array that could be the scene or the labels, or the one that was named."""
    named = [array for array in arrays if variable in {None, array.name}]
    fitting = [a for a in named if len(a.stored_shape) == n_axes and min(a.stored_shape) > 0]
    if n_axes == 2 and len(fitting) > 1:  # MATLAB keeps numbers and lists as matrices too
        fitting = [array for array in fitting if min(array.stored_shape) > 1] or fitting
    if not fitting:
        which = f"array '{variable}'" if variable else "array"
        raise FileError(
            f"{path} has no {which} with {n_axes} axes for the {what}. "
            f"It has: {_listed(arrays) or 'no array of numbers'}; what is inside structs, cells, "
            "sparse matrices or groups is not looked at: save it as an array of its own."
        )
    if len(fitting) > 1:
        raise FileError(
            f"{path} has several arrays that could be the {what}: {_listed(fitting)}. "
            f"Choose one with variable='{fitting[0].name}'."
        )
    return fitting[0]


def _listed(arrays: list[Layer]) -> str:
    return ", ".join(f"{one.name or 'an array'} ({sides(one.stored_shape)})" for one in arrays)


def sides(shape: tuple[int, ...]) -> str:
    """Return a shape in words, such as "3 x 4"."""
    return " x ".join(map(str, shape))
