"""Arrays in files, not read yet: one lazy array behind every reader.

A reader says where things are: :class:`Layer` objects, which read blocks, and what their values
mean. :class:`Pixels` makes true values (band, y, x) of them, and :func:`read_or_lazy` an array.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks
from xarray.backends import BackendArray
from xarray.core import indexing

from hsreject.errors import FileError, InputError
from hsreject.files import reading
from hsreject.io.remote import RemotePath
from hsreject.progress import report_read
from hsreject.schema import CUBE_DIMS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

AXES = "byx"
_AT_ONCE = 128 * 2**20  # bytes: the most that is read at once to keep stored chunks whole
_SLAB = 16 * 2**20  # bytes that are read together
_PIECE = 2**20  # bytes that are scaled together, in the cache
_TURNED = 256  # pixels whose spectra become bands together, in the cache
_LARGE = 2 * _SLAB  # bytes beyond which a block is laid out band by band
_MOST_BANDS = 65_535
_LARGE_CLAIM = 2**28  # bytes
_PACKED = 12_000  # bytes of pixels that come out of one byte at most, by LZW


# Layers: arrays on disk.


@dataclass(frozen=True, eq=False)
class Layer:
    """An array in a file, not read yet: little more than a path, so that dask can send it."""

    path: Path
    name: str  # what the array is called inside of the file, or nothing
    axes: str  # in the order of the file: b (bands), y, x and 1 (of length one), such as "1yxb"
    stored_shape: tuple[int, ...]  # lengths of these axes
    dtype: np.dtype[Any]  # of the values in the file
    format: str  # what people call it
    read_part: Callable[[tuple[slice, ...]], NDArray[Any]]  # given a slice or 0 per axis
    stored_chunks: tuple[int, ...] | None = None  # how much is stored together; None: rows
    length: float | None = None  # bytes of the files with its pixels; None: of that at `path`
    cached: bool = False  # whether GDAL keeps all blocks of a row, so that parts of them are cheap

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return what identifies the array, without reading its values."""
        state = None if isinstance(self.path, RemotePath) else self.path.stat()
        version = state and (state.st_size, state.st_mtime_ns)
        return str(self.path), version, self.name, self.axes, self.stored_shape, str(self.dtype)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of bands, rows and columns."""
        return self._sorted(self.stored_shape)

    @property
    def chunks(self) -> tuple[int, int, int]:
        """How many bands, rows and columns are stored together."""
        row = (1 if "y" in self.axes[place:] else n for place, n in enumerate(self.stored_shape))
        return self._sorted(self.stored_chunks or tuple(row))

    def _sorted(self, sizes: tuple[int, ...]) -> tuple[int, int, int]:
        by_axis = dict(zip(self.axes, sizes, strict=True))
        return by_axis.get("b", 1), by_axis["y"], by_axis["x"]

    def part(self, key: tuple[slice, ...]) -> NDArray[Any]:
        """Read a part, in the order of the file but the byte order of the machine."""
        with reading(self.path):
            values = np.asarray(self.read_part(key))
            check_real(values.dtype, self.path)
            return values.astype(native_type(self.dtype), copy=False)

    def whole(self) -> NDArray[Any]:
        """Read all of it, in the order of the file."""
        return self.part((slice(None),) * len(self.stored_shape))

    def read(self, bands: slice, rows: slice, columns: slice) -> NDArray[Any]:
        """Read a block (band, y, x): a view of it in the order of the file."""
        window: dict[str, Any] = {"b": bands, "y": rows, "x": columns, "1": 0}
        block = self.part(tuple(window[axis] for axis in self.axes))
        axes = self.axes.replace("1", "")
        if "b" not in axes:
            axes, block = f"b{axes}", block[None]
        return block.transpose([axes.index(axis) for axis in AXES])


def native_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of values once read: the machine's byte order, single or double precision."""
    if dtype.kind == "f" and dtype.itemsize not in {4, 8}:
        return np.dtype(np.float32 if dtype.itemsize < 4 else np.float64)
    return dtype.newbyteorder("=")


def check_real(dtype: np.dtype[Any], path: Path) -> None:
    """Raise unless a type is that of real numbers."""
    if dtype.kind == "c" or dtype.names == ("real", "imag"):  # as in MATLAB's new files
        raise FileError(f"{path} holds complex numbers ({dtype}). Store their amplitude.")
    if dtype.kind not in "iufb":
        raise FileError(f"{path} holds {dtype}, not numbers.")


def usable_nodata(nodata: float | None, dtype: np.dtype[Any]) -> float | None:
    """Return a nodata value if pixels of a type can have it, as it was rounded."""
    if nodata is None:
        return None
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            rounded = dtype.type(nodata)
        return None if np.isinf(rounded) and not np.isinf(nodata) else nodata
    limits = np.iinfo(dtype)
    fits = nodata == np.round(nodata) and limits.min <= nodata <= limits.max
    return nodata if fits else None


# Pixels: true values.


@dataclass(frozen=True)
class Mask:
    """A layer that says where a product has no pixels of the ground."""

    name: str
    layer: Layer
    bands: tuple[int, ...] = (0,)  # which of its bands count
    values: tuple[int, ...] | None = None  # which values say so; None: all above 0
    spared: str = ""  # what it flags, where that is ground to some: used on request only

    def read(self, rows: slice, columns: slice) -> NDArray[np.bool_]:
        """Return where there is no data (y, x)."""
        whole = self.layer.read(slice(0, max(self.bands) + 1), rows, columns)[list(self.bands)]
        bad = whole > 0 if self.values is None else np.isin(whole, self.values)
        return np.asarray(bad.any(axis=0))


@dataclass(frozen=True, eq=False)
class Pixels:
    """The true values of a scene (band, y, x), NaN where it has no data, read when indexed.

    True value = value in the file * gain + offset, where it differs from `fill`. Where bytes are
    codes, `meanings` has their values; a scale of a pixel multiplies all of its bands.
    """

    layers: tuple[Layer, ...]  # whose bands follow one another
    order: NDArray[np.intp]  # which of these bands the scene has
    gain: NDArray[np.float64]  # of each band in the file, as offset and fill
    offset: NDArray[np.float64]
    fill: tuple[float | None, ...]  # the value that means no data
    fill_in_all: bool = False  # whether a pixel lacks data only where all bands have that value
    masks: tuple[Mask, ...] = ()  # where else there is no data
    more_fills: tuple[float, ...] = ()  # other values that mean no data, in all bands
    meanings: NDArray[np.float32] | None = None  # of the codes -128 to 127; NaN is no data
    pixel_scale: Layer | None = None  # (y, x); where it is not finite there is no data

    @classmethod
    def of(
        cls,
        *layers: Layer,
        gain: NDArray[np.float64] | float = 1.0,
        offset: NDArray[np.float64] | float = 0.0,
        fill: tuple[float | None, ...] | float | None = None,
        fill_in_all: bool = False,
        masks: tuple[Mask, ...] = (),
        more_fills: tuple[float, ...] = (),
        pixel_scale: Layer | None = None,
    ) -> Pixels:
        """Return the pixels of all bands of some layers; a single number is for all bands."""
        n_bands = sum(layer.shape[0] for layer in layers)
        if n_bands > _MOST_BANDS:
            raise FileError(
                f"{layers[0].path} claims {n_bands} bands; hsreject opens 1 to {_MOST_BANDS}. It "
                "is damaged, or its bands lie along another axis."
            )
        check_counts(layers[0].path, n_bands, gains=gain, offsets=offset)
        scale = [np.broadcast_to(np.asarray(v, np.float64), n_bands) for v in (gain, offset)]
        if not (np.all(scale[0] != 0) and np.isfinite(scale).all()):
            raise FileError(
                f"{layers[0].path}: the scale of a band must be a number other than 0 and its "
                f"offset a number (found: {_scaling(*scale)}). Correct them, or remove them."
            )
        stored = np.result_type(*(native_type(layer.dtype) for layer in layers))
        fills = fill if isinstance(fill, tuple) else (fill,) * n_bands
        usable = tuple(usable_nodata(value, stored) for value in fills)
        order = np.arange(n_bands)
        return cls(
            layers,
            order,
            scale[0],
            scale[1],
            usable,
            fill_in_all,
            masks,
            more_fills,
            pixel_scale=pixel_scale,
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the true values: float where they can be missing or are scaled."""
        stored = np.result_type(*(native_type(layer.dtype) for layer in self.layers))
        can_lack = any(value is not None for value in self.fill) or self.masks
        decoded = self.meanings is not None or self.pixel_scale is not None
        plain = stored.kind == "f" or not (can_lack or self.scaled or decoded)
        return stored if plain else np.result_type(stored, np.float32)

    @property
    def scaled(self) -> bool:
        """Whether the values in the file are not the true ones."""
        return bool(np.any(self.gain != 1) or np.any(self.offset != 0))

    @property
    def scaling(self) -> str:
        """How values become true, in words."""
        return _scaling(self.gain[self.order], self.offset[self.order])

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of bands, rows and columns."""
        return self.order.size, *self.layers[0].shape[1:]

    @property
    def ndim(self) -> int:
        """Three; with `shape`, `dtype` and indexing this is what dask needs."""
        return 3

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Read a part: whole numbers and slices along each axis.

        A small one, as mapping reads them, is a view (band, y, x) of memory in the order of the
        file: turning spectra into bands takes longer than reading them. A large one is turned here,
        while it passes through the cache, because copying it later would be slow.
        """
        (bands, rows, columns), picked = zip(*map(_span, key, self.shape), strict=True)
        shape = (bands.stop - bands.start, rows.stop - rows.start, columns.stop - columns.start)
        large = math.prod(shape) * self.dtype.itemsize > _LARGE
        axes = self.layers[0].axes
        block = _empty(shape, self.dtype, AXES if large else axes)
        cuts = self._cuts(rows, block.nbytes) if block.size else []
        for start, stop in pairwise(cuts):
            part = block[:, start - rows.start : stop - rows.start]
            self._read_into(part, self.order[bands], slice(start, stop), columns)
            if len(cuts) > 2:
                report_read(stop - rows.start, shape[1])
        return np.asarray(block[picked])

    def _cuts(self, rows: slice, size: int) -> list[int]:
        """Return where rows that take `size` bytes are cut: where stored chunks begin."""
        # from a server, each part is a step of progress
        slab = min(_SLAB, max(_SLAB // 2, size // 8))
        slab = _PIECE if isinstance(self.layers[0].path, RemotePath) else slab
        whole = rows.stop - rows.start == self.shape[1]  # by one reader, who has all of the cache
        stored = 1 if whole and self.layers[0].cached else self.layers[0].chunks[1]
        step = max(slab * (rows.stop - rows.start) // size // stored, 1) * stored
        inner = range(rows.start // step * step + step, rows.stop, step)
        return [rows.start, *inner, rows.stop]

    def _read_into(
        self, block: NDArray[Any], places: NDArray[np.intp], rows: slice, columns: slice
    ) -> None:
        """Read bands of a window: a piece of what is read at a time becomes true in its place."""
        stored = self._stored(places, rows, columns)
        missing = [mask.read(rows, columns) for mask in self.masks]
        if self.fill_in_all:
            every = self.order
            whole = stored if places.size == every.size else self._stored(every, rows, columns)
            missing.append(np.all(self._lacking(whole, every), axis=0))
        scale = None
        if self.pixel_scale is not None:
            scale = self.pixel_scale.read(slice(0, 1), rows, columns)[0]
            missing.append(~np.isfinite(scale))
            scale = np.where(missing[-1], 0, scale)
        hidden = np.any(missing, axis=0) if missing else None
        step = _TURNED if stored.strides[0] < stored.strides[2] else block.shape[2]
        n_rows = max(_PIECE * block.shape[1] // block.nbytes, 1)
        for row in range(0, block.shape[1], n_rows):
            some = slice(row, row + n_rows)
            source = stored[:, some]
            lacking = None if self.fill_in_all else self._lacking(source, places)
            values = self._true(source, places, None if scale is None else scale[some])
            if lacking is not None:
                np.copyto(values, np.nan, where=lacking)
            if hidden is not None:
                np.copyto(values, np.nan, where=hidden[some])
            for column in range(0, block.shape[2], step):
                across = slice(column, column + step)
                block[:, some, across] = values[..., across]

    def _true(
        self, stored: NDArray[Any], places: NDArray[np.intp], scale: NDArray[Any] | None
    ) -> NDArray[Any]:
        """Return the true values of bands, whether or not they mean no data."""
        values = stored.astype(self.dtype, copy=False)
        if self.meanings is not None:
            values = self.meanings[np.nan_to_num(stored, nan=-128).astype(np.intp) + 128]
        if scale is not None:
            values = values * scale.astype(self.dtype)
        if self.scaled:
            gain, offset = (of_band[places, None, None] for of_band in (self.gain, self.offset))
            np.multiply(values, gain, out=values, dtype=np.float64, casting="same_kind")
            if offset.any():
                np.add(values, offset, out=values, dtype=np.float64, casting="same_kind")
        return values

    def _lacking(self, stored: NDArray[Any], places: NDArray[np.intp]) -> NDArray[np.bool_] | None:
        """Return where bands have a value that means no data."""
        lacking = self._filled(stored, places)
        for value in self.more_fills:
            also = stored == stored.dtype.type(value)
            lacking = also if lacking is None else lacking | also
        return lacking

    def _filled(self, stored: NDArray[Any], places: NDArray[np.intp]) -> NDArray[np.bool_] | None:
        fills = [self.fill[place] for place in places]
        if len(set(fills)) == 1:
            return None if fills[0] is None else stored == stored.dtype.type(fills[0])
        values = np.array([fill or 0 for fill in fills], stored.dtype)[:, None, None]
        stated = np.array([fill is not None for fill in fills])[:, None, None]
        return np.asarray((stored == values) & stated)

    def _stored(self, places: NDArray[np.intp], rows: slice, columns: slice) -> NDArray[Any]:
        """Read the values in the file of bands at `places`, which may lie in several layers."""
        pieces, first = [], 0
        for layer in self.layers:
            own = np.flatnonzero((places >= first) & (places < first + layer.shape[0]))
            if own.size:
                bands = places[own] - first
                span = slice(int(bands.min()), int(bands.max()) + 1)
                block, inside = layer.read(span, rows, columns), bands - span.start
                in_a_row = np.array_equal(inside, np.arange(len(block)))  # then without a copy
                pieces.append((own, block if in_a_row else block[inside]))
            first += layer.shape[0]
        if len(pieces) == 1:
            return pieces[0][1]
        shape = (places.size, *pieces[0][1].shape[1:])
        joined = _empty(shape, pieces[0][1].dtype, self.layers[0].axes)
        for own, block in pieces:
            joined[own] = block
        return joined


def _span(part: Any, size: int) -> tuple[slice, Any]:
    """Return the stretch of an axis that holds what an index picks, and what that is in it."""
    places = range(size)[part]
    if not isinstance(places, range):
        return slice(places, places + 1), 0
    first, last = sorted((places[0], places[-1])) if places else (0, -1)
    return slice(first, last + 1), slice(None, None, places.step)


def check_counts(path: Path, n_bands: int, **lists: Any) -> None:
    """Raise unless each list is None, a single number, or has a value for every band."""
    for name, values in lists.items():
        if values is not None and np.ndim(values) and np.size(values) != n_bands:
            raise FileError(
                f"{path} has {np.size(values)} {name.replace('_', ' ')} for {n_bands} bands. It is "
                "damaged, or does not belong to this image."
            )


def _scaling(gain: NDArray[np.float64], offset: NDArray[np.float64]) -> str:
    return ", ".join(
        f"{word} {v.min():.6g}" if v.min() == v.max() else f"{word} {v.min():.6g} to {v.max():.6g}"
        for v, word in ((gain, "times"), (offset, "plus"))
    )


def _empty(shape: tuple[int, int, int], dtype: np.dtype[Any], axes: str) -> NDArray[Any]:
    """Return an array (band, y, x) whose axes lie in memory as those of a layer."""
    in_file = [AXES.index(axis) for axis in (axes if "b" in axes else AXES) if axis in AXES]
    return np.empty([shape[axis] for axis in in_file], dtype).transpose(np.argsort(in_file))


def read_or_lazy(pixels: Pixels, chunks: Any) -> Any:
    """Return pixels, or with `chunks` a dask array of them that reads when it is computed.

    Blocks smaller than what the file stores together are cut from whole ones.
    """
    for layer in pixels.layers:
        every = math.prod(layer.stored_shape) if chunks is None else 0
        n_values = max(every, math.prod(layer.chunks))
        check_claim(layer.path, n_values * max(layer.dtype.itemsize, 4), layer.length)
    if chunks is None:
        return pixels[:, :, :]
    stored = pixels.layers[0].chunks
    blocks = _block_sizes(chunks, pixels.shape, pixels.dtype, stored)
    _, *whole = (min(sizes) for sizes in zip(stored, pixels.shape, strict=True))
    n_bands, *largest = map(max, blocks)
    small = whole[0] > 1 and (largest[0] < whole[0] or largest[1] < whole[1])
    small &= n_bands * math.prod(whole) * pixels.dtype.itemsize <= _AT_ONCE
    small |= stored == pixels.layers[0].shape  # one piece
    meta = np.empty((0, 0, 0), dtype=pixels.dtype)
    at_once: Any = (blocks[0], *whole) if small else blocks
    return da.from_array(pixels, chunks=at_once, meta=meta, fancy=False).rechunk(blocks)


def check_claim(path: Path, claimed: int, length: float | None = None) -> None:
    """Raise if a file cannot hold as many bytes as it claims, however well it is packed.

    Only large claims matter: they are what would fill the memory. Nobody knows the length of a
    folder, or of what is not on this machine.
    """
    if length is None:
        local = not isinstance(path, RemotePath) and path.is_file()
        length = path.stat().st_size if local else math.inf
    if claimed > max(_LARGE_CLAIM, _PACKED * length):
        raise FileError(
            f"{path} claims {claimed} bytes of pixels, but has only {length}: it is damaged, or "
            "nearly empty. Copy it again, or open it with chunks='auto'."
        )


def _block_sizes(
    chunks: Any, shape: tuple[int, ...], dtype: np.dtype[Any], stored: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    """Return the sizes of the blocks along (band, y, x).

    Classifiers and features work pixel by pixel on whole spectra: "auto" and True make blocks that
    hold all bands of some pixels, whole rows if those are small enough, and so does a mapping that
    does not name the bands. Sizes that are left open become multiples of the chunks that are
    `stored` together.
    """
    limit = 64 * 2**20  # bytes
    if chunks is True or (isinstance(chunks, str) and chunks == "auto"):
        row = shape[0] * min(stored[1], shape[1]) * shape[2] * dtype.itemsize
        chunks = (-1, "auto", -1 if row <= limit else "auto")
    elif isinstance(chunks, Mapping):
        if unknown := [str(dim) for dim in chunks if dim not in CUBE_DIMS]:
            raise InputError(
                f"chunks names {', '.join(unknown)}, which a cube does not have. "
                f"It has {', '.join(CUBE_DIMS)}."
            )
        chunks = tuple(chunks.get(dim, -1) for dim in CUBE_DIMS)
    # all bands of the pixels in one chunk, unless that is far too much
    together = shape[0] * stored[1] * stored[2] * dtype.itemsize
    limit = max(limit, min(together, 2 * limit))
    try:
        sizes: tuple[tuple[int, ...], ...] = normalize_chunks(
            chunks, shape=shape, dtype=dtype, limit=limit, previous_chunks=stored
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"chunks={chunks!r} does not fit a cube of {shape} (band, y, x): {error}."
        ) from error
    return sizes


def unread(array: Any, path: Path) -> indexing.LazilyIndexedArray:
    """Return an array of a file as values that xarray reads when they are used."""
    return indexing.LazilyIndexedArray(_Unread(array, path))


class _Unread(BackendArray):
    """An array of xarray or dask that is loaded when indexed; errors name `path`."""

    def __init__(self, array: Any, path: Path) -> None:
        self.array, self.path = array, path
        self.shape, self.dtype = array.shape, array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER_1VECTOR
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    def _read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        with reading(self.path):
            return np.asarray(self.array[key])
