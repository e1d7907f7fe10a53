"""Opening products: the families are asked in turn, and what they describe becomes a scene."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

import dask.array as da
import h5py
import numpy as np

from hsreject.errors import FileError, InputError
from hsreject.files import check_heaps, starts_with
from hsreject.io.grid import Grid
from hsreject.io.products import aviris, desis, emit, enmap, neon, prisma, tanager
from hsreject.io.products.layout import (
    AXES,
    AXIS_NAMES,
    HdfArray,
    Product,
    ZarrArray,
    attribute,
    cf_fill,
    cf_scale,
    native_type,
    open_hdf5,
    open_store,
    text,
)
from hsreject.io.products.remote import RemotePath, is_store
from hsreject.io.raster import HDF5, block_sizes, usable_nodata
from hsreject.io.scene import StoredScene
from hsreject.io.wavelengths import BandInfo, nanometres

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

KNOWN = "EMIT, EnMAP, PRISMA L2D, AVIRIS-3 and -5, NEON AOP, Tanager and DESIS"
HDF5_FAMILIES: list[Callable[[h5py.File], Product | None]] = [
    emit.describe,
    aviris.describe,
    prisma.describe,
    tanager.describe,
    neon.describe,
]
"""Asked in turn: each describes a file of its own family, and returns None for any other."""

_AT_ONCE = 128 * 2**20  # bytes: the most that is read at once to keep stored chunks whole
_SLAB = 16 * 2**20  # bytes that are read and scaled together
_TURNED = 256  # pixels whose spectra become bands together, in the cache
_LARGE = 2 * _SLAB  # bytes beyond which a block is laid out band by band


def is_raster_product(path: Path) -> bool:
    """Tell whether a file belongs to a product of several files, by its name and its neighbours."""
    return enmap.recognise(path) or desis.recognise(path)


def read_product(
    path: Path, *, chunks: Any, variable: str | None, band_axis: int | None, masks: bool
) -> StoredScene:
    """Return the scene of a product; of any other HDF5 file, the array that `variable` names."""
    product = _describe(path, variable, band_axis)
    if not masks:
        product = replace(product, masks=())
    guesses = list(product.guesses)
    bands, order = _bands(product, path, guesses)
    pixels = ProductPixels.of(product, order)
    attrs: dict[str, Any] = {
        "source": path.name,
        "product": product.name,
        "format": product.layers[0].format,
        "type_in_file": str(native_type(product.layers[0].dtype)),
    }
    if pixels.fill is not None:
        attrs["nodata_in_file"] = pixels.fill
    if pixels.scaled:
        attrs["scaling"] = f"times {_span(pixels.gain)}, plus {_span(pixels.offset)}"
    if product.masks:
        attrs["masks"] = ", ".join(mask.name for mask in product.masks)
    read = pixels[:, :, :] if chunks is None else _lazy(pixels, chunks)
    return StoredScene(read, bands, attrs, guesses, product.place, product.layers[0].chunks[1:])


def _describe(path: Path, variable: str | None, band_axis: int | None) -> Product:
    """Return what the family of a file says about it."""
    if is_store(path):
        return _in_store(path.absolute(), variable, band_axis)
    if not starts_with(path, HDF5):
        return enmap.describe(path) if enmap.recognise(path) else desis.describe(path)
    check_heaps(path, n_bytes=2**18 if isinstance(path, RemotePath) else 2**24)
    with open_hdf5(path) as file:
        if variable is not None:
            return _named(file, path, variable, band_axis)
        found = (describe(file) for describe in HDF5_FAMILIES)
        product = next((one for one in found if one is not None), None)
        if product is None:
            raise _unknown(file, path)
        return product


def _named(file: h5py.File, path: Path, variable: str, band_axis: int | None) -> Product:
    """Return the array that a user names, in a file of any origin."""
    dataset = file.get(variable)
    if not isinstance(dataset, h5py.Dataset) or dataset.ndim != 3:
        raise FileError(
            f"{path} has no array '{variable}' with three axes. It has: {_cubes(file) or 'none'}."
        )
    gain, offset = cf_scale(dataset)
    return Product(
        name=f"the array '{variable}'",
        layers=(HdfArray.of(dataset, _axes(variable, dataset.shape, band_axis)),),
        fill=cf_fill(dataset),
        gain=gain,
        offset=offset,
    )


def _axes(variable: str, shape: tuple[int, ...], band_axis: int | None) -> str:
    """Return the axes of an array, such as "yxb", by the one that a user names."""
    if band_axis is None or band_axis not in range(-3, 3):
        raise InputError(
            f"Which axis of '{variable}' ({_sides(shape)}) holds the bands? "
            f"Pass band_axis 0, 1 or 2 (got {band_axis})."
        )
    axes = ["y", "x"]
    axes.insert(band_axis % 3, "b")
    return "".join(axes)


def _unknown(file: h5py.File, path: Path) -> FileError:
    found = _cubes(file)
    if not found:
        return FileError(
            f"{path} is an HDF5 or NetCDF file without a scene in it. A dataset that hsreject "
            "wrote is opened with open_dataset."
        )
    return FileError(
        f"{path} is an HDF5 or NetCDF file, but not a product that hsreject knows ({KNOWN}). It "
        f"has: {found}. Name the scene with variable and the axis of its bands (0, 1 or 2) with "
        "band_axis; a dataset that hsreject wrote is opened with open_dataset."
    )


def _cubes(file: h5py.File) -> str:
    """Return the arrays with three axes in words, the largest first."""
    found: list[h5py.Dataset] = []

    def note(_name: str, entry: Any) -> None:
        if isinstance(entry, h5py.Dataset) and entry.ndim == 3 and entry.dtype.kind in "iuf":
            found.append(entry)

    file.visititems(note)
    largest = sorted(found, key=lambda entry: -entry.size)[:5]
    return ", ".join(f"{entry.name[1:]} ({_sides(entry.shape)})" for entry in largest)


def _in_store(path: Path, variable: str | None, band_axis: int | None) -> Product:
    """Return the scene in a Zarr store: the only array with three axes, or the one named."""
    dataset = open_store(path)
    cubes = {
        str(name): array
        for name, array in dataset.data_vars.items()
        if array.ndim == 3 and array.dtype.kind in "iuf"
    }
    name = variable or (next(iter(cubes)) if len(cubes) == 1 else None)
    if name not in cubes:
        has = ", ".join(f"{found} ({_sides(array.shape)})" for found, array in cubes.items())
        raise FileError(
            f"The scene in {path} must be an array with three axes. It has: {has or 'none'}. Name "
            "the scene with variable."
        )
    cube = cubes[name]
    axes = "".join(AXIS_NAMES.get(str(dim).lower(), "b") for dim in cube.dims)
    if band_axis is not None or sorted(axes) != sorted(AXES):
        axes = _axes(name, cube.shape, band_axis)
    dims = dict(zip(axes, cube.dims, strict=True))

    def along_bands(*names: str) -> Any:
        found = (dataset[one] for one in names if one in dataset.variables)
        return next((one for one in found if one.dims == (dims["b"],)), None)

    wavelength, fwhm = along_bands("wavelength", "wavelengths"), along_bands("fwhm")
    good = along_bands("good_band", "good_wavelengths")
    gain, offset = cf_scale(cube)
    grid = Grid.of(cube.isel({dims["b"]: 0}).rename({dims["y"]: "y", dims["x"]: "x"}))
    return Product(
        name=f"the array '{name}'",
        layers=(ZarrArray(path, cube, axes),),
        wavelength=None if wavelength is None else wavelength.values.astype(np.float64),
        unit="" if wavelength is None else text(attribute(wavelength, "units")),
        fwhm=None if fwhm is None else fwhm.values.astype(np.float64),
        fwhm_unit=None if fwhm is None else text(attribute(fwhm, "units")) or None,
        good=None if good is None else good.values.astype(bool),
        fill=cf_fill(cube),
        gain=gain,
        offset=offset,
        place=grid if grid.georeferenced else None,
    )


def _sides(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))


def _span(values: NDArray[np.float64]) -> str:
    low, high = values.min(), values.max()
    return f"{low:.6g}" if low == high else f"{low:.6g} to {high:.6g}"


def _bands(product: Product, path: Path, guesses: list[str]) -> tuple[BandInfo, NDArray[np.intp]]:
    """Return what is known of the bands that are used, and their places in the file.

    Bands come in the order of their wavelengths, whatever their order in the file.
    """
    stated = {
        "wavelengths": product.wavelength,
        "band widths": product.fwhm,
        "flags of good bands": product.good,
    }
    for name, values in stated.items():
        if values is not None and values.size != product.n_bands:
            raise FileError(
                f"{path} has {values.size} {name} for {product.n_bands} bands. The file is not "
                f"laid out like {product.name}."
            )
    used = np.ones(product.n_bands, dtype=bool) if product.used is None else product.used
    order = np.flatnonzero(used)
    if used.sum() < used.size:
        guesses.append(f"{used.size - used.sum()} of {used.size} bands hold nothing: left out.")
    centre = width = None
    if product.wavelength is not None:
        centre, width = nanometres(
            product.wavelength[order],
            product.unit,
            None if product.fwhm is None else product.fwhm[order],
            product.fwhm_unit,
            guesses,
        )
    good = None if product.good is None else product.good[order]
    if good is not None and not good.any():
        guesses.append("The file calls every band bad: not followed.")
        good = None
    if centre is None or np.isnan(centre).any() or np.all(np.diff(centre) >= 0):
        return BandInfo(centre, width, good), order
    rank = np.argsort(centre, kind="stable")
    guesses.append("The file has its bands in another order: sorted by wavelength.")
    width = None if width is None else width[rank]
    return BandInfo(centre[rank], width, None if good is None else good[rank]), order[rank]


# Pixels.


@dataclass(frozen=True, eq=False)
class ProductPixels:
    """The true values of a product (band, y, x), NaN where it has no data, read when indexed."""

    product: Product
    order: NDArray[np.intp]  # places of the bands in the file
    gain: NDArray[np.float64]
    offset: NDArray[np.float64]
    fill: float | None  # only a value that pixels of this type can have
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, product: Product, order: NDArray[np.intp]) -> ProductPixels:
        """Return the pixels of the bands at `order`."""
        stored = np.result_type(*(native_type(layer.dtype) for layer in product.layers))
        gain, offset = (
            np.broadcast_to(np.asarray(values, dtype=np.float64), product.n_bands)[order]
            for values in (product.gain, product.offset)
        )
        if not (np.all(gain != 0) and np.isfinite([gain, offset]).all()):
            raise FileError(
                f"{product.layers[0].path}: the scale of a band must be a number other than 0 and "
                "its offset a number. The file is damaged."
            )
        fill = usable_nodata(product.fill, stored)
        plain = fill is None and not product.masks and np.all(gain == 1) and np.all(offset == 0)
        dtype = stored if plain or stored.kind == "f" else np.result_type(stored, np.float32)
        return cls(product, order, gain, offset, fill, dtype)

    @property
    def scaled(self) -> bool:
        """Whether the values in the file are not the true ones."""
        return bool(np.any(self.gain != 1) or np.any(self.offset != 0))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of bands, rows and columns."""
        return self.order.size, *self.product.layers[0].shape[1:]

    @property
    def ndim(self) -> int:
        """Three; with `shape`, `dtype` and indexing this is what dask needs."""
        return 3

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Read a part: whole numbers, slices and lists of places along each axis.

        A small one, as mapping reads them, is a view (band, y, x) of memory in the order of the
        file: turning spectra into bands takes longer than reading them. A large one is turned here,
        while it passes through the cache, because whoever copies it later would do it slowly.
        """
        wanted = [np.arange(size)[part] for size, part in zip(self.shape, key, strict=True)]
        bands, rows, columns = (np.atleast_1d(places) for places in wanted)
        shape = (bands.size, rows.size, columns.size)
        large = prod(shape) * self.dtype.itemsize > _LARGE
        block = _empty(shape, self.dtype, AXES if large else self.product.layers[0].axes)
        if block.size == 0:
            return block[tuple(slice(None) if places.ndim else 0 for places in wanted)]
        across = slice(int(columns.min()), int(columns.max()) + 1)
        inside = _as_slice(columns - across.start)
        # some rows at a time, so that little more than the result takes memory
        for part in np.split(np.arange(rows.size), self._cuts(rows, block[:, :1].nbytes)):
            down = slice(int(rows[part].min()), int(rows[part].max()) + 1)
            read = self._read(bands, down, across)
            for row, place in zip(part, rows[part] - down.start, strict=True):
                spectra = read[:, place, inside]
                for start in range(0, columns.size, _TURNED):
                    some = slice(start, start + _TURNED)
                    block[:, row, some] = spectra[:, some]
        return block[tuple(slice(None) if places.ndim else 0 for places in wanted)]

    def _cuts(self, rows: NDArray[np.intp], row_size: int) -> NDArray[np.intp]:
        """Return where rows are cut: where stored chunks begin, or every 16 MB."""
        step = max(_SLAB // row_size, 1)
        stored = self.product.layers[0].chunks[1]
        return np.flatnonzero(np.diff(rows // (-(-step // stored) * stored))) + 1

    def _read(self, bands: NDArray[np.intp], rows: slice, columns: slice) -> NDArray[Any]:
        """Read bands (places in `order`) of a window; what is read is changed in place."""
        stored = self._stored(self.order[bands], rows, columns)
        missing = None if self.fill is None else stored == stored.dtype.type(self.fill)
        if missing is not None and self.product.fill_in_all:
            if bands.size < self.order.size:
                missing = self._stored(self.order, rows, columns) == self.fill
            missing = missing.all(axis=0)
        block = stored.astype(self.dtype, copy=False)
        if self.scaled:
            gain, offset = (
                values[bands, None, None].astype(self.dtype) for values in (self.gain, self.offset)
            )
            block *= gain
            block += offset
        if missing is not None:
            np.copyto(block, np.nan, where=missing)
        for mask in self.product.masks:
            np.copyto(block, np.nan, where=mask.read(rows, columns))
        return block

    def _stored(self, places: NDArray[np.intp], rows: slice, columns: slice) -> NDArray[Any]:
        """Read the values in the file of bands at `places`, which may lie in several layers."""
        pieces = []
        first = 0
        for layer in self.product.layers:
            inside = np.flatnonzero((places >= first) & (places < first + layer.shape[0]))
            if inside.size:
                own = places[inside] - first
                span = slice(int(own.min()), int(own.max()) + 1)
                block = layer.read(span, rows, columns)
                pieces.append((inside, block[_as_slice(own - span.start)]))
            first += layer.shape[0]
        if len(pieces) == 1:
            return pieces[0][1]
        shape = (places.size, *pieces[0][1].shape[1:])
        joined = _empty(shape, pieces[0][1].dtype, self.product.layers[0].axes)
        for inside, block in pieces:
            joined[inside] = block
        return joined


def _empty(shape: tuple[int, int, int], dtype: np.dtype[Any], axes: str) -> NDArray[Any]:
    """Return an array (band, y, x) whose axes lie in memory as `axes` says, such as "yxb"."""
    in_file = [AXES.index(axis) for axis in axes]
    return np.empty([shape[axis] for axis in in_file], dtype).transpose(np.argsort(in_file))


def _as_slice(places: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """Return places that follow one another as a slice, which needs no copy."""
    in_a_row = places.size > 0 and np.all(np.diff(places) == 1)
    return slice(int(places[0]), int(places[-1]) + 1) if in_a_row else places


def _lazy(pixels: ProductPixels, chunks: Any) -> Any:
    """Return a dask array; blocks smaller than the chunks of the file are cut from whole ones."""
    stored = pixels.product.layers[0].chunks
    blocks = block_sizes(chunks, shape=pixels.shape, dtype=pixels.dtype, stored=stored)
    _, *whole = (min(sizes) for sizes in zip(stored, pixels.shape, strict=True))
    n_bands, *largest = map(max, blocks)
    small = whole[0] > 1 and (largest[0] < whole[0] or largest[1] < whole[1])
    small &= n_bands * prod(whole) * pixels.dtype.itemsize <= _AT_ONCE
    meta = np.empty((0, 0, 0), dtype=pixels.dtype)
    at_once: Any = (blocks[0], *whole) if small else blocks
    return da.from_array(pixels, chunks=at_once, meta=meta, fancy=False).rechunk(blocks)
