"""Bare arrays: NumPy .npy files and MATLAB .mat files, old (scipy) and new (HDF5)."""

from __future__ import annotations

import math
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask.array as da
import h5py
import numpy as np
from scipy.io import loadmat, whosmat

from hsreject.errors import FileError, InputError
from hsreject.files import check_heaps, reading
from hsreject.io.products.layout import native_type
from hsreject.io.raster import block_sizes
from hsreject.io.scene import Kind, StoredScene
from hsreject.io.wavelengths import BandInfo, decide_unit, to_nanometres

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_MATLAB_TYPES = {"single": "float32", "double": "float64", "logical": "bool"}
_MATLAB_TYPES |= {
    f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
# Of old .mat files: byte orders, the type of a deflated element, the types of numbers.
_BYTE_ORDERS = {b"IM": "<u4", b"MI": ">u4"}
_DEFLATED, _NUMBERS = 15, (1, 2, 3, 4, 5, 6, 7, 9, 12, 13)
_WAVELENGTH_NAME = re.compile(r"wave_?lengths?|wave|wl|lambda|centers?", re.IGNORECASE)


@dataclass(frozen=True)
class StoredArray:
    """An array in a file, not read yet; axes in the order that its users write them."""

    path: Path
    kind: Kind
    name: str  # of the variable; empty in a .npy file
    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # in the machine's byte order

    def __post_init__(self) -> None:
        claimed, found = math.prod(self.shape), self.path.stat().st_size
        # Deflate saves at most 1032 to 1, a number takes a byte; HDF5 need not store what is empty.
        if self.kind is Kind.MATLAB and claimed > 1032 * found:
            raise FileError(
                f"{self.path} is damaged: {_listed([self])} would have {claimed} numbers, but the "
                f"file has only {found} bytes. Copy or save it again."
            )

    @property
    def ndim(self) -> int:
        """Number of axes; with `shape`, `dtype` and indexing this is what dask needs."""
        return len(self.shape)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Read a part of the array from the file."""
        with reading(self.path):
            if self.kind is Kind.NUMPY:
                return _real(np.load(self.path, mmap_mode="r")[key], self.path)
            if self.kind is Kind.MATLAB_HDF5:
                with h5py.File(self.path, "r") as file:  # MATLAB's axes are stored in reverse
                    return _real(file[self.name][tuple(reversed(key))].T, self.path)
            loaded = loadmat(self.path, variable_names=[self.name])
            # The type that MATLAB shows, not the one that packed it smallest.
            return _real(loaded[self.name][key], self.path).astype(self.dtype, copy=False)

    def read(self) -> NDArray[Any]:
        """Read the whole array."""
        return self[(slice(None),) * self.ndim]


def stored_arrays(path: Path, kind: Kind) -> list[StoredArray]:
    """Return the arrays of numbers in a file without reading them."""
    path = path.absolute()  # a lazy array may be read from another working folder
    with reading(path):
        if kind is Kind.NUMPY:
            array = np.load(path, mmap_mode="r")
            return [StoredArray(path, kind, "", array.shape, native_type(array.dtype))]
        if kind is Kind.MATLAB_HDF5:
            check_heaps(path)
            with h5py.File(path, "r") as file:
                # not .items(), which keeps h5py locked as long as somebody holds an error from here
                return [
                    StoredArray(path, kind, name, entry.shape[::-1], native_type(entry.dtype))
                    for name, entry in [(name, file[name]) for name in list(file)]
                    if isinstance(entry, h5py.Dataset) and _holds_numbers(entry) and entry.shape
                ]
        _check_matrices(path)
        return [
            StoredArray(path, kind, name, shape, np.dtype(_MATLAB_TYPES[matlab_class]))
            for name, shape, matlab_class in whosmat(path)
            if matlab_class in _MATLAB_TYPES
        ]


def _check_matrices(path: Path) -> None:
    """Raise where scipy would crash: at numbers of a type that MATLAB does not have."""
    # "MAT-File Format", MathWorks: elements with a type and a length, matrices maybe deflated
    with path.open("rb") as stream:
        mark = stream.read(128)[126:]
        if mark not in _BYTE_ORDERS:  # of an older kind of files
            return
        while len(tag := stream.read(8)) == 8:
            kind, length = np.frombuffer(tag, _BYTE_ORDERS[mark]).tolist()
            start = stream.read(min(length, 4096))
            stream.seek(length - len(start), 1)
            if kind == _DEFLATED:
                start = zlib.decompressobj().decompress(start, 4096)[8:]
            words = np.frombuffer(start[: len(start) // 4 * 4], _BYTE_ORDERS[mark])
            stated = _type_of_numbers(words)
            if stated not in {None, *_NUMBERS}:
                raise FileError(
                    f"{path} is damaged: it holds numbers of the unknown type {stated}. Copy or "
                    "save it again."
                )


def _type_of_numbers(words: NDArray[np.uint32]) -> int | None:
    """Return the type of the real part of a matrix of numbers, given how it begins."""
    if words.size < 4 or words[2] & 255 not in range(6, 16):  # text, a struct, a cell
        return None
    at = 4  # behind the flags follow the sides and the name, small ones with their tag in a word
    for _ in range(2):
        if at + 2 > words.size:
            return None
        at += 2 if words[at] >> 16 else 2 + 2 * -(-int(words[at + 1]) // 8)
    return int(words[at] & 0xFFFF if words[at] >> 16 else words[at]) if at < words.size else None


def _holds_numbers(entry: h5py.Dataset) -> bool:
    """Tell whether an HDF5 entry is an array: MATLAB stores text and empty ones as numbers, too."""
    kept_as = entry.attrs.get("MATLAB_class", b"")
    return (
        entry.dtype.kind in "iufV"
        and kept_as not in {b"char", "char"}
        and "MATLAB_empty" not in entry.attrs
    )


def choose_array(
    arrays: list[StoredArray], *, path: Path, n_axes: int, what: str, variable: str | None
) -> StoredArray:
    """Return the only array that could be the scene or the labels, or the one that was named."""
    if variable is not None:
        named = [array for array in arrays if array.name == variable]
        if not named:
            raise FileError(f"{path} has no array '{variable}'. It has: {_listed(arrays)}.")
        if named[0].ndim != n_axes:
            raise FileError(
                f"{path}: {_listed(named)} has {named[0].ndim} axes, the {what} must have {n_axes}."
            )
        return named[0]
    fitting = [array for array in arrays if array.ndim == n_axes and min(array.shape) > 0]
    if n_axes == 2 and len(fitting) > 1:  # MATLAB keeps numbers and lists as matrices too
        fitting = [array for array in fitting if min(array.shape) > 1] or fitting
    if not fitting:
        raise FileError(
            f"{path} has no array with {n_axes} axes for the {what}. "
            f"It has: {_listed(arrays) or 'no array of numbers'}; what is inside structs, cells, "
            "sparse matrices or groups is not looked at: save it as an array of its own."
        )
    if len(fitting) > 1:
        raise FileError(
            f"{path} has several arrays that could be the {what}: {_listed(fitting)}. "
            f"Choose one with variable='{fitting[0].name}'."
        )
    return fitting[0]


def _listed(arrays: list[StoredArray]) -> str:
    return ", ".join(f"{array.name or 'an array'} ({_sides(array.shape)})" for array in arrays)


def _sides(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def read_array_scene(
    path: Path, kind: Kind, *, chunks: Any, variable: str | None, band_axis: int | None
) -> StoredScene:
    """Return the scene in a bare array; wavelengths may stand in a list beside it."""
    arrays = stored_arrays(path, kind)
    array = choose_array(arrays, path=path, n_axes=3, what="scene", variable=variable)
    _check_real(array.dtype, path)
    if array.dtype.kind == "b":
        raise FileError(f"{path} holds true and false, but a scene holds numbers.")
    guesses: list[str] = []
    if variable is None and len(arrays) > 1:
        guesses.append(f"The scene is '{array.name}', the only array with three axes.")
    listed = _wavelength_list(arrays)
    centres = None if listed is None else np.ravel(listed.read()).astype(np.float64)
    axis = _band_axis(array, centres, band_axis, guesses)
    wavelength = None
    if listed is not None and centres is not None:
        if centres.size != array.shape[axis]:
            raise FileError(
                f"{listed.path}: '{listed.name}' has {centres.size} wavelengths for "
                f"{array.shape[axis]} bands. Give one per band, or choose the band axis with "
                "band_axis."
            )
        guesses.append(f"The wavelengths are the array '{listed.name}'.")
        unit = decide_unit(centres, None, guesses)
        wavelength = None if unit is None else to_nanometres(centres, unit)
    order = (axis, *(other for other in range(3) if other != axis))
    if chunks is None:
        pixels: Any = np.ascontiguousarray(array.read().transpose(order))
    else:
        pixels = _lazy(array, order, chunks)
    attrs = {"source": path.name, "format": kind.value, "type_in_file": str(pixels.dtype)}
    return StoredScene(pixels, BandInfo(wavelength), attrs, guesses)


def _wavelength_list(arrays: list[StoredArray]) -> StoredArray | None:
    """Return the list of wavelengths stored beside a scene, if there is one."""
    for array in arrays:
        if _WAVELENGTH_NAME.fullmatch(array.name) and max(array.shape) == np.prod(array.shape) > 1:
            return array
    return None


def _lazy(array: StoredArray, order: tuple[int, ...], chunks: Any) -> Any:
    shape = tuple(array.shape[axis] for axis in order)
    blocks = block_sizes(chunks, shape=shape, dtype=array.dtype)
    stored_blocks = tuple(blocks[order.index(axis)] for axis in range(3))
    meta = np.empty((0, 0, 0), dtype=array.dtype)
    # An old .mat file is compressed as one piece: read once, cut afterwards.
    at_once = array.shape if array.kind is Kind.MATLAB else stored_blocks
    lazy = da.from_array(array, chunks=at_once, meta=meta)
    return lazy.rechunk(stored_blocks).transpose(order)


def _band_axis(
    array: StoredArray,
    centres: NDArray[np.float64] | None,
    given: int | None,
    guesses: list[str],
) -> int:
    """Return which axis holds the bands: as told, by the number of wavelengths, or by its looks."""
    if given is not None:
        if given not in range(-3, 3):
            raise InputError(f"band_axis must be 0, 1 or 2, or -1 for the last (got {given}).")
        return given % 3
    first, middle, last = array.shape
    if centres is not None and array.shape.count(centres.size) == 1:
        axis, reason = array.shape.index(centres.size), "it is as long as the list of wavelengths"
        if axis == 2:  # as everybody expects
            return axis
    elif (first == middle) != (middle == last):
        axis, reason = (2 if first == middle else 0), "the other two axes are equally long"
    elif array.kind is Kind.NUMPY:
        axis, reason = _axis_by_profile(np.load(array.path, mmap_mode="r"))
    else:
        axis, reason = 2, "MATLAB scenes have it last"
    guesses.append(
        f"Axis {axis} of {_sides(array.shape)} was taken for the bands: {reason}. "
        "Pass band_axis to choose."
    )
    return axis


def _axis_by_profile(array: NDArray[np.generic]) -> tuple[int, str]:
    """Return the band axis of an array on disk, first or last, and why."""
    # Bands differ in brightness far more than rows do: of the variance of up to 16 x 16 x 16
    # values, the mean spectrum explains more than the mean row.
    steps = tuple(slice(None, None, -(-size // 16)) for size in array.shape)
    sample = np.asarray(array[steps], dtype=np.float64)
    known = np.isfinite(sample)
    mean = sample[known].mean() if known.any() else 0.0
    centred = np.subtract(sample, mean, out=np.zeros(sample.shape), where=known)
    total = float((centred**2).mean()) or np.inf
    first, last = (
        float((centred.mean(axis=others) ** 2).mean()) / total for others in ((1, 2), (0, 1))
    )
    if max(first, last) > max(0.05, 2 * min(first, last)):
        return (0 if first > last else 2), "brightness changes most along it"
    return (0 if array.shape[0] < array.shape[2] else 2), "it is the shorter one"


def _check_real(dtype: np.dtype[Any], path: Path) -> None:
    if dtype.kind == "c" or dtype.names == ("real", "imag"):  # as in MATLAB's new files
        raise FileError(f"{path} holds complex numbers ({dtype}). Store their amplitude.")
    if dtype.kind not in "iufb":
        raise FileError(f"{path} holds {dtype}, not numbers.")


def _real(values: NDArray[Any], path: Path) -> NDArray[Any]:
    """Return real numbers in the machine's byte order."""
    _check_real(values.dtype, path)
    return np.asarray(values, dtype=native_type(values.dtype))
