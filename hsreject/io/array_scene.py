"""A scene out of a bare array: finding its band axis, reading it whole or in blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np

from hsreject.errors import FileError
from hsreject.io import wavelengths
from hsreject.io.arrays import StoredArray, check_real, choose_array, stored_arrays, wavelength_list
from hsreject.io.band_axis import axis_by_profile, axis_by_shape, given_axis
from hsreject.io.bands import BandInfo
from hsreject.io.chunking import block_sizes
from hsreject.io.source import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def read_array_scene(
    path: Path, kind: Kind, *, chunks: Any, variable: str | None, band_axis: int | None
) -> tuple[Any, BandInfo]:
    """Return the pixels (band, y, x) of a bare array, and what the file tells of its bands."""
    arrays = stored_arrays(path, kind)
    array = choose_array(arrays, path=path, n_axes=3, what="scene", variable=variable)
    check_real(array.dtype, path)
    if array.dtype.kind == "b":
        raise FileError(f"{path} holds true and false, a scene has numbers.")
    guesses = []
    if variable is None and len(arrays) > 1:
        guesses.append(f"The scene is '{array.name}', the only array with three axes.")
    centres = wavelength_list(arrays)
    numbers = None if centres is None else np.ravel(centres.read()).astype(np.float64)
    axis = _band_axis(array, numbers, band_axis, guesses)
    info = _bands(array.shape[axis], numbers, guesses, centres)
    order = (axis, *(other for other in range(3) if other != axis))
    if chunks is None:
        return np.ascontiguousarray(array.read().transpose(order)), info
    return _lazy(array, order, chunks), info


def _band_axis(
    array: StoredArray,
    centres: NDArray[np.float64] | None,
    given: int | None,
    guesses: list[str],
) -> int:
    if given is not None:
        return given_axis(given)
    if centres is not None and array.shape.count(centres.size) == 1:
        return array.shape.index(centres.size)
    found = axis_by_shape(array.shape)
    if found is None and array.kind is Kind.NUMPY:
        found = axis_by_profile(np.load(array.path, mmap_mode="r"))
    axis, reason = found or (2, "MATLAB scenes have it last")
    guesses.append(
        f"Axis {axis} of {' x '.join(map(str, array.shape))} was taken for the bands: {reason}. "
        "Pass band_axis to choose."
    )
    return axis


def _bands(
    n_bands: int,
    centres: NDArray[np.float64] | None,
    guesses: list[str],
    stored: StoredArray | None,
) -> BandInfo:
    if centres is None or stored is None:
        return BandInfo(guesses=tuple(guesses))
    if centres.size != n_bands:
        raise FileError(
            f"{stored.path}: '{stored.name}' has {centres.size} wavelengths for {n_bands} bands. "
            "Give one a band, or choose the band axis with band_axis."
        )
    guesses.append(f"The wavelengths are the array '{stored.name}'.")
    unit = wavelengths.decide_unit(centres, None, guesses)
    nanometres = None if unit is None else wavelengths.to_nanometres(centres, unit)
    return BandInfo(wavelength=nanometres, guesses=tuple(guesses))


def _lazy(array: StoredArray, order: tuple[int, ...], chunks: Any) -> Any:
    shape = tuple(array.shape[axis] for axis in order)
    blocks = block_sizes(chunks, shape=shape, dtype=array.dtype)
    stored_blocks = tuple(blocks[order.index(axis)] for axis in range(3))
    meta = np.empty((0, 0, 0), dtype=array.dtype)
    # An old .mat file is compressed as one piece: read once, cut afterwards.
    at_once = array.shape if array.kind is Kind.MATLAB else stored_blocks
    lazy = da.from_array(array, chunks=at_once, meta=meta)  # type: ignore[no-untyped-call]
    return lazy.rechunk(stored_blocks).transpose(order)
