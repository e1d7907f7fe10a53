"""Bare arrays: NumPy .npy files and MATLAB .mat files, old (scipy) and new (HDF5)."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
from scipy.io import loadmat, whosmat
from scipy.io.matlab import MatReadError

from hsreject.errors import FileError
from hsreject.io.memory import check_memory
from hsreject.io.source import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_MATLAB_TYPES = {"single": "float32", "double": "float64", "logical": "bool"}
_MATLAB_TYPES |= {
    f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_WAVELENGTH_NAME = re.compile(r"wave_?lengths?|wave|wl|lambda|centers?", re.IGNORECASE)


@dataclass(frozen=True)
class StoredArray:
    """An array in a file, not read yet; axes in the order that its users write them.

    Parameters
    ----------
    path : Path
        The file.
    kind : Kind
        Its kind.
    name : str
        Name of the variable; empty in a .npy file.
    shape : tuple of int
        Sizes of the axes.
    dtype : numpy.dtype
        Type of the numbers, in the machine's byte order.
    """

    path: Path
    kind: Kind
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        """Number of axes; with `shape`, `dtype` and indexing this is what dask needs."""
        return len(self.shape)

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Read a part of the array from the file."""
        with _array_errors(self.path):
            if self.kind is Kind.NUMPY:
                return _real(np.load(self.path, mmap_mode="r")[key], self.path)
            if self.kind is Kind.MATLAB_HDF5:
                return self._from_hdf5(key)
            loaded = loadmat(self.path, variable_names=[self.name])
            # The type that MATLAB shows, not the one that packed it smallest.
            return _real(loaded[self.name][key], self.path).astype(self.dtype, copy=False)

    def read(self) -> NDArray[Any]:
        """Read the whole array."""
        check_memory(self.path, self.shape, self.dtype.itemsize)
        return self[(slice(None),) * self.ndim]

    def _from_hdf5(self, key: Any) -> NDArray[Any]:
        with h5py.File(self.path, "r") as file:  # MATLAB's axes are stored in reverse
            return _real(file[self.name][tuple(reversed(key))].T, self.path)


def stored_arrays(path: Path, kind: Kind) -> list[StoredArray]:
    """Return the arrays of numbers in a file without reading them."""
    path = path.absolute()  # a lazy array may be read from another working folder
    with _array_errors(path):
        if kind is Kind.NUMPY:
            array = np.load(path, mmap_mode="r")
            return [StoredArray(path, kind, "", array.shape, _native(array.dtype))]
        if kind is Kind.MATLAB_HDF5:
            return _hdf5_arrays(path)
        return [
            StoredArray(path, kind, name, shape, np.dtype(_MATLAB_TYPES[matlab_class]))
            for name, shape, matlab_class in whosmat(path)
            if matlab_class in _MATLAB_TYPES
        ]


def _hdf5_arrays(path: Path) -> list[StoredArray]:
    found = []
    with h5py.File(path, "r") as file:
        for name, entry in file.items():
            if isinstance(entry, h5py.Dataset) and _holds_numbers(entry) and entry.shape:
                shape = tuple(reversed(entry.shape))
                found.append(StoredArray(path, Kind.MATLAB_HDF5, name, shape, _native(entry.dtype)))
    return found


def _holds_numbers(entry: h5py.Dataset) -> bool:
    """Tell whether an HDF5 entry is an array: MATLAB keeps text and empty arrays as numbers too."""
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


def wavelength_list(arrays: list[StoredArray]) -> StoredArray | None:
    """Return the list of wavelengths stored beside a scene, if there is one."""
    for array in arrays:
        if _WAVELENGTH_NAME.fullmatch(array.name) and max(array.shape) == np.prod(array.shape) > 1:
            return array
    return None


def _listed(arrays: list[StoredArray]) -> str:
    return ", ".join(
        f"{array.name or 'an array'} ({' x '.join(map(str, array.shape))})" for array in arrays
    )


def check_real(dtype: np.dtype[Any], path: Path) -> None:
    """Raise unless an array holds real numbers."""
    if dtype.kind == "c" or dtype.names == ("real", "imag"):  # as in MATLAB's new files
        raise FileError(f"{path} holds complex numbers ({dtype}). Store their amplitude.")
    if dtype.kind not in "iufb":
        raise FileError(f"{path} holds {dtype}, not numbers.")


def _real(values: NDArray[Any], path: Path) -> NDArray[Any]:
    """Return real numbers in the machine's byte order."""
    check_real(values.dtype, path)
    return np.asarray(values, dtype=_native(values.dtype))


def _native(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of values once read: the machine's byte order, single or double precision."""
    if dtype.kind == "f" and dtype.itemsize not in {4, 8}:
        return np.dtype(np.float32 if dtype.itemsize < 4 else np.float64)
    return dtype.newbyteorder("=")


@contextmanager
def _array_errors(path: Path) -> Iterator[None]:
    """Turn what the array readers have to say into one line about the file."""
    try:
        yield
    except FileError:
        raise
    except MemoryError as error:
        raise FileError(f"{path} does not fit into memory. Open it with chunks='auto'.") from error
    except (
        EOFError, IndexError, KeyError, MatReadError, NotImplementedError, OSError, TypeError,
        ValueError, zlib.error,
    ) as error:  # fmt: skip
        said = " ".join(str(error).split()) or type(error).__name__
        raise FileError(f"{path} cannot be read: {said}") from error
