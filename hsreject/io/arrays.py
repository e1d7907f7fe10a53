"""Arrays in files, not read yet: one lazy array behind every reader.

A reader says where things are: :class:`Layer` objects, which read blocks, and what their values
mean. :class:`Pixels` makes true values (band, y, x) of them, and :func:`read_or_lazy` an array.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import dask.array as da
import h5py
import numpy as np
from dask.array.core import normalize_chunks
from xarray.backends import BackendArray
from xarray.core import indexing

from hsreject.errors import FileError, InputError
from hsreject.files import reading, starts_with
from hsreject.io.remote import RemotePath, as_path
from hsreject.io.wavelengths import BandInfo
from hsreject.progress import report_read
from hsreject.schema import CUBE_DIMS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from hsreject.io.grid import Grid
    from hsreject.io.lookup import LookupTable

AXES = "byx"
HDF5 = b"\x89HDF\r\n\x1a\n"
_HEAP = b"GCOL\1\0\0\0"  # how a heap of texts begins
_AT_ONCE = 128 * 2**20  # bytes: the most that is read at once to keep stored chunks whole
_SLAB = 16 * 2**20  # bytes that are read together
_PIECE = 2**20  # bytes that are scaled together, in the cache
_TURNED = 256  # pixels whose spectra become bands together, in the cache
_LARGE = 2 * _SLAB  # bytes beyond which a block is laid out band by band
_MOST_BANDS = 65_535
_LARGE_CLAIM = 2**28  # bytes
_PACKED = 12_000  # bytes of pixels that come out of one byte at most, by LZW
_MATLAB_TYPES = {"single": "float32", "double": "float64", "logical": "bool"}
_MATLAB_TYPES |= {f"{u}int{bits}": f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)}
# Of old .mat files: byte orders, the type of a deflated element, the types of numbers.
_BYTE_ORDERS = {b"IM": "<u4", b"MI": ">u4"}
_DEFLATED, _NUMBERS = 15, (1, 2, 3, 4, 5, 6, 7, 9, 12, 13)


class Kind(Enum):
    """The kinds of files that hsreject opens."""

    RASTER = "raster"
    PRODUCT = "product"
    ARRAY = "array"  # .npy and .mat
    VECTOR = "vector"


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredScene:
    """A scene as the reader of a format describes it, over all bands in the file."""

    pixels: Pixels
    bands: BandInfo = field(default_factory=BandInfo)
    used: NDArray[np.bool_] | None = None  # False for bands that hold nothing: left out
    product: str = ""  # what people call it; bands of a product are sorted by wavelength
    place: Grid | LookupTable | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)  # of the cube, beside the usual ones
    notes: tuple[str, ...] = ()  # what the file does not say and was decided, in sentences
    warnings: tuple[str, ...] = ()  # what makes the values wrong if nobody acts


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

    @classmethod
    def of_hdf5(cls, dataset: h5py.Dataset, axes: str) -> Layer:
        """Return an array of an open HDF5 file."""
        path, name = existing_path(dataset.file), dataset.name
        if dataset.ndim != len(axes):
            raise FileError(f"{path}: '{name}' has {dataset.ndim} axes, {len(axes)} were expected.")
        check_real(dataset.dtype, path)
        read = partial(_read_hdf5, path, name)
        return cls(path, name, axes, dataset.shape, dataset.dtype, "HDF5", read, dataset.chunks)

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


def _read_hdf5(path: Path, name: str, key: tuple[slice, ...]) -> NDArray[Any]:
    with _opened(path) as file:
        return np.asarray(file[name][key])


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """Open an HDF5 file, and turn whatever goes wrong with it into one line about the file.

    One that leads to other files is refused: an untrusted file could read local files.
    """
    remote = isinstance(path, RemotePath)

    def check(name: str, link: Any) -> None:
        entry = file[name] if isinstance(link, h5py.HardLink) else link  # soft: to a member
        is_array = isinstance(entry, h5py.Dataset)
        elsewhere = is_array and (entry.external or entry.is_virtual)
        if elsewhere or isinstance(entry, h5py.ExternalLink):
            raise FileError(
                f"{path}: '{name}' lies in another file, which is not followed. If you know where "
                "it comes from, copy what you need into one file."
            )
        if is_array and _is_variable(entry) and entry.id.get_offset() and not remote:
            # kept as length, and where it is: HDF5 makes room for what is not there
            layout = np.dtype([("length", "<u4"), ("address", "V12")])
            texts = np.fromfile(path, layout, entry.size, offset=entry.id.get_offset())
            if np.any(texts["length"] > path.stat().st_size):
                raise FileError(f"{path} is damaged: '{name}' claims to be longer than the file.")

    with _opened(path) as file:
        _check_heaps(path)
        file.visititems_links(check)
        yield file


def _is_variable(dataset: h5py.Dataset) -> bool:
    kind = dataset.id.get_type()  # numpy has no type for some of them
    texts = isinstance(kind, h5py.h5t.TypeStringID) and kind.is_variable_str()
    return texts or isinstance(kind, h5py.h5t.TypeVlenID)


def _check_heaps(path: Path) -> None:
    """Raise if HDF5 would read a damaged file for ever: at an entry without a length in a heap."""
    # "HDF5 File Format Specification", III.E; heaps lie near the start
    with path.open("rb") as stream:
        raw = stream.read(2**18 if isinstance(path, RemotePath) else 2**24)
    start = raw.find(_HEAP)
    while start >= 0:
        entry, end = start + 16, start + int.from_bytes(raw[start + 8 : start + 16], "little")
        while entry < min(end, len(raw)) - 15:
            used = any(raw[entry : entry + 2])  # else what is free, which counts its own 16 bytes
            length = int.from_bytes(raw[entry + 8 : entry + 16], "little")
            step = (16 + -(-length // 8) * 8 if used else length) % 2**64
            if step == 0:
                raise FileError(f"{path} is damaged: an entry of its heap has no length.")
            entry += step
        start = raw.find(_HEAP, start + 1)


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


def native_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of values once read: the machine's byte order, single or double precision."""
    if dtype.kind == "f" and dtype.itemsize not in {4, 8}:
        return np.dtype(np.float32 if dtype.itemsize < 4 else np.float64)
    return dtype.newbyteorder("=")


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


# Bare arrays: NumPy .npy files and MATLAB .mat files, old (scipy) and new (HDF5).


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
    return _read_hdf5(path, name, key[::-1]).T


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


def check_real(dtype: np.dtype[Any], path: Path) -> None:
    """Raise unless a type is that of real numbers."""
    if dtype.kind == "c" or dtype.names == ("real", "imag"):  # as in MATLAB's new files
        raise FileError(f"{path} holds complex numbers ({dtype}). Store their amplitude.")
    if dtype.kind not in "iufb":
        raise FileError(f"{path} holds {dtype}, not numbers.")
