"""What a product says of itself, in the same words for every family: arrays, bands, masks, place.

A family describes its file as a :class:`Product`; :mod:`hsreject.io.products.product` opens it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import h5py
import numpy as np
import rasterio
import xarray as xr
from affine import Affine
from rasterio.crs import CRS
from rasterio.errors import CRSError
from rasterio.windows import Window

from hsreject.errors import FileError
from hsreject.files import reading
from hsreject.io.grid import Grid
from hsreject.io.products.remote import RemotePath, as_path
from hsreject.io.raster import raster_info, raster_source

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from hsreject.io.products.lookup import LookupTable
    from hsreject.io.raster import RasterInfo

AXES = "byx"
AXIS_NAMES = dict.fromkeys(
    ("y", "lat", "latitude", "northing", "row", "rows", "line", "lines", "downtrack"), "y"
) | dict.fromkeys(
    ("x", "lon", "longitude", "easting", "column", "columns", "sample", "samples", "crosstrack"),
    "x",
)
"""What axes of an array are usually called; any other is that of the bands."""


@dataclass(frozen=True)
class HdfArray:
    """An array in an HDF5 file, not read yet: only a path and a name, so that dask can send it."""

    format: ClassVar[str] = "HDF5"
    path: Path
    name: str
    axes: str  # its axes in the order of the file: b (bands), y and x, such as "yxb"
    stored_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    stored_chunks: tuple[int, ...]  # a row, or a row of a band, where the file has no chunks

    @classmethod
    def of(cls, dataset: h5py.Dataset, axes: str) -> HdfArray:
        """Return the array of an open file."""
        path = existing_path(dataset.file)
        if dataset.ndim != len(axes):
            raise FileError(
                f"{path}: '{dataset.name}' has {dataset.ndim} axes, {len(axes)} were expected."
            )
        if dataset.dtype.kind not in "iuf":
            raise FileError(f"{path}: '{dataset.name}' holds {dataset.dtype}, not numbers.")
        row = (1 if "y" in axes[place:] else n for place, n in enumerate(dataset.shape))
        chunks = tuple(dataset.chunks or row)
        return cls(path, dataset.name, axes, dataset.shape, dataset.dtype, chunks)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of bands, rows and columns."""
        bands, rows, columns = self._sorted(self.stored_shape)
        return bands, rows, columns

    @property
    def chunks(self) -> tuple[int, int, int]:
        """How many bands, rows and columns are stored together."""
        return self._sorted(self.stored_chunks)

    def _sorted(self, sizes: tuple[int, ...]) -> tuple[int, int, int]:
        by_axis = dict(zip(self.axes, sizes, strict=True))
        return by_axis.get("b", 1), by_axis["y"], by_axis["x"]

    def read(self, bands: slice, rows: slice, columns: slice) -> NDArray[Any]:
        """Read a block (band, y, x): a view of it in the order of the file."""
        wanted = dict(zip(AXES, (bands, rows, columns), strict=True))
        with open_hdf5(self.path) as file:
            block = file[self.name][tuple(wanted[axis] for axis in self.axes)]
        axes = self.axes
        if "b" not in axes:
            axes, block = f"b{axes}", block[None]
        native = np.asarray(block, dtype=native_type(self.dtype))
        return native.transpose([axes.index(axis) for axis in AXES])


@dataclass(frozen=True)
class RasterArray:
    """The bands of a raster, not read yet."""

    format: ClassVar[str] = "GTiff"
    path: Path
    axes: ClassVar[str] = AXES

    @cached_property
    def info(self) -> RasterInfo:
        """What GDAL says of the file."""
        return raster_info(raster_source(self.path))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the pixels in the file."""
        return self.info.dtype

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of bands, rows and columns."""
        return self.info.n_bands, self.info.grid.height, self.info.grid.width

    @property
    def chunks(self) -> tuple[int, int, int]:
        """How many bands, rows and columns are stored together."""
        return (self.shape[0] if self.info.layout == "pixel" else 1), *self.info.grain

    def read(self, bands: slice, rows: slice, columns: slice) -> NDArray[Any]:
        """Read a block (band, y, x)."""
        indexes = list(range(bands.start + 1, bands.stop + 1))
        with reading(self.path), rasterio.open(self.info.name) as file:
            block: NDArray[Any] = file.read(indexes, window=Window.from_slices(rows, columns))
        return block


@dataclass(frozen=True, eq=False)
class ZarrArray:
    """An array in a Zarr store, which xarray has opened but not read."""

    format: ClassVar[str] = "Zarr"
    path: Path
    opened: xr.DataArray
    axes: str  # as of an HdfArray

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the pixels in the store."""
        return self.opened.dtype

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of bands, rows and columns."""
        bands, rows, columns = (self.opened.shape[self.axes.index(axis)] for axis in AXES)
        return bands, rows, columns

    @property
    def chunks(self) -> tuple[int, int, int]:
        """How many bands, rows and columns are stored together."""
        stored = self.opened.encoding["chunks"]
        bands, rows, columns = (stored[self.axes.index(axis)] for axis in AXES)
        return bands, rows, columns

    def read(self, bands: slice, rows: slice, columns: slice) -> NDArray[Any]:
        """Read a block (band, y, x): a view of it in the order of the store."""
        wanted = dict(zip(AXES, (bands, rows, columns), strict=True))
        with reading(self.path):
            block = self.opened[tuple(wanted[axis] for axis in self.axes)].values
        native = np.asarray(block, dtype=native_type(self.dtype))
        return native.transpose([self.axes.index(axis) for axis in AXES])


Layer = HdfArray | RasterArray | ZarrArray


@dataclass(frozen=True)
class Mask:
    """A layer that says where a product has no pixels of the ground."""

    name: str
    layer: Layer
    bands: tuple[int, ...] = (0,)  # which of its bands count
    values: tuple[int, ...] | None = None  # which values say so; None: all above 0

    def read(self, rows: slice, columns: slice) -> NDArray[np.bool_]:
        """Return where there is no data (y, x)."""
        whole = self.layer.read(slice(0, max(self.bands) + 1), rows, columns)[list(self.bands)]
        bad = whole > 0 if self.values is None else np.isin(whole, self.values)
        return np.asarray(bad.any(axis=0))


@dataclass(frozen=True, kw_only=True, eq=False)
class Product:
    """A product as its family describes it, over all bands of its layers one after the other.

    True value = value in the file * gain + offset, where it differs from `fill`.
    """

    name: str  # what people call it
    layers: tuple[Layer, ...]
    wavelength: NDArray[np.float64] | None = None
    unit: str = "nm"
    fwhm: NDArray[np.float64] | None = None
    fwhm_unit: str | None = None  # that of the wavelengths, where the file does not say
    good: NDArray[np.bool_] | None = None
    used: NDArray[np.bool_] | None = None  # False for bands that hold nothing: left out
    fill: float | None = None
    fill_in_all: bool = False  # whether a pixel lacks data only where all bands have that value
    gain: NDArray[np.float64] | float = 1.0
    offset: NDArray[np.float64] | float = 0.0
    masks: tuple[Mask, ...] = ()
    place: Grid | LookupTable | None = None
    guesses: tuple[str, ...] = ()

    @property
    def n_bands(self) -> int:
        """Number of bands in the file."""
        return sum(layer.shape[0] for layer in self.layers)


# How files say things.


@contextmanager
def open_hdf5(path: Path) -> Iterator[h5py.File]:
    """Open an HDF5 file, and turn whatever goes wrong with it into one line about the file."""
    # a lock is no use for reading, and fails on some network drives
    with (
        reading(path),
        path.open("rb") if isinstance(path, RemotePath) else nullcontext(path) as source,
        h5py.File(source, "r", locking=False) as file,
    ):
        yield file


def open_store(path: Path) -> xr.Dataset:
    """Open a Zarr store; pixels stay as they are stored, unread."""
    if find_spec("zarr") is None:
        raise FileError(f"{path} needs the package zarr. Install it: pip install 'hsreject[zarr]'.")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Failed to open Zarr store with consol", RuntimeWarning)
        return xr.open_dataset(
            path.url if isinstance(path, RemotePath) else path,
            engine="zarr",
            chunks=None,
            mask_and_scale=False,
            decode_times=False,
            decode_coords="all",
        )


def existing_path(file: h5py.File) -> Path:
    """Return the absolute path of an open file."""
    return as_path(file.filename).absolute()


def native_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of values once read: the machine's byte order, single or double precision."""
    if dtype.kind == "f" and dtype.itemsize not in {4, 8}:
        return np.dtype(np.float32 if dtype.itemsize < 4 else np.float64)
    return dtype.newbyteorder("=")


def text(value: Any) -> str:
    """Return text that a file keeps as str, bytes, or an array of one of them; "" for nothing."""
    if isinstance(value, h5py.Dataset):
        value = value[()]
    if value is None or isinstance(value, h5py.Empty):
        return ""
    items = np.ravel(np.asarray(value))
    if not items.size:
        return ""
    first = items[0]
    decoded = first.decode("utf-8", "replace") if isinstance(first, bytes) else str(first)
    return decoded.strip("\0 \t\r\n")


def numbers(value: Any) -> NDArray[np.float64]:
    """Return numbers that a file keeps as an array, or as text with blanks or commas."""
    if isinstance(value, h5py.Dataset):
        value = value[()]
    items = np.asarray(value)
    if items.dtype.kind in "SUO" and items.size == 1:
        items = np.asarray(re.split(r"[\s,;]+", text(value).strip("{}[]() ")))
    return np.ravel(items).astype(np.float64)


def attribute(owner: h5py.HLObject | xr.DataArray, *names: str) -> Any:
    """Return the first of some attributes that an array or a group has, or None."""
    return next((owner.attrs[name] for name in names if name in owner.attrs), None)


def child(group: h5py.Group, *names: str) -> Any:
    """Return the first of some members that an HDF5 group has, or None."""
    return next((group[name] for name in names if name in group), None)


def maybe_number(value: Any) -> float | None:
    """Return one number that may be absent."""
    found = np.array([]) if value is None or not text(value) else numbers(value)
    return float(found[0]) if found.size else None


def cf_fill(dataset: h5py.Dataset | xr.DataArray, default: float | None = None) -> float | None:
    """Return the value that means no data, as most files state it."""
    stated = maybe_number(attribute(dataset, "_FillValue", "missing_value", "FillValue"))
    return default if stated is None else stated


def cf_scale(dataset: h5py.Dataset | xr.DataArray) -> tuple[float, float]:
    """Return gain and offset as the CF conventions state them."""
    gain = maybe_number(attribute(dataset, "scale_factor"))
    offset = maybe_number(attribute(dataset, "add_offset"))
    return 1.0 if gain is None else gain, offset or 0.0


def reference_system(stated: str | int | None, guesses: list[str]) -> CRS | None:
    """Return a reference system given as EPSG code or as text; note one that is not understood."""
    if not stated:
        return None
    try:
        with rasterio.Env():  # else GDAL complains on the screen
            return CRS.from_epsg(stated) if isinstance(stated, int) else CRS.from_string(stated)
    except (CRSError, ValueError):
        guesses.append("The reference system of the file is not understood: not used.")
        return None


def grid_of(
    layer: Layer | tuple[int, int], transform: Affine | None, crs: CRS | None, guesses: list[str]
) -> Grid | None:
    """Return the grid of a layer (or of rows and columns), or None where the place is unknown."""
    height, width = layer if isinstance(layer, tuple) else layer.shape[1:]
    if transform is None or not (np.isfinite(transform[:6]).all() and transform.determinant):
        guesses.append("The place of the pixels on a map is not understood: not used.")
        return None
    return Grid(height, width, transform, crs)


def gdal_transform(value: Any) -> Affine | None:
    """Return the transform that six numbers in the order of GDAL say."""
    found = None if value is None else numbers(value)
    return Affine.from_gdal(*found[:6].tolist()) if found is not None and found.size >= 6 else None
