"""What a product says of itself, in the same words for every family: arrays, bands, masks, place.

A family describes its file as a :class:`Product`; :mod:`hsreject.io.products.product` opens it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import rasterio
import xarray as xr
from affine import Affine
from rasterio.crs import CRS
from rasterio.errors import CRSError

from hsreject.io.arrays import Layer, Mask
from hsreject.io.grid import Grid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.io.grid import LookupTable


@dataclass(frozen=True, kw_only=True, eq=False)
class Product:
    """A product as its family describes it, over all bands of its layers one after the other.

    True value = value in the file * gain + offset, where it differs from `fill`. A gain that the
    file should state and does not is None: the values stay as they are, and a warning says so.
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
    gain: NDArray[np.float64] | float | None = 1.0
    offset: NDArray[np.float64] | float = 0.0
    masks: tuple[Mask, ...] = ()
    place: Grid | LookupTable | None = None
    notes: tuple[str, ...] = ()  # what the file does not say and was assumed
    warnings: tuple[str, ...] = ()  # what is wrong with the values or their place if nobody acts

    @property
    def n_bands(self) -> int:
        """Number of bands in the file."""
        return sum(layer.shape[0] for layer in self.layers)


# How files say things.


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


def reference_system(stated: str | int | None, notes: list[str]) -> CRS | None:
    """Return a reference system given as EPSG code or as text; note one that is not understood."""
    if not stated:
        return None
    try:
        with rasterio.Env():  # else GDAL complains on the screen
            return CRS.from_epsg(stated) if isinstance(stated, int) else CRS.from_string(stated)
    except (CRSError, ValueError):
        notes.append("The reference system of the file is not understood: not used.")
        return None


def grid_of(
    layer: Layer | tuple[int, int], transform: Affine | None, crs: CRS | None, notes: list[str]
) -> Grid | None:
    """Return the grid of a layer (or of rows and columns), or None where the place is unknown."""
    height, width = layer if isinstance(layer, tuple) else layer.shape[1:]
    if transform is None or not (np.isfinite(transform[:6]).all() and transform.determinant):
        notes.append("The place of the pixels on a map is not understood: not used.")
        return None
    return Grid(height, width, transform, crs)


def gdal_transform(value: Any) -> Affine | None:
    """Return the transform that six numbers in the order of GDAL say."""
    found = None if value is None else numbers(value)
    return Affine.from_gdal(*found[:6].tolist()) if found is not None and found.size >= 6 else None
