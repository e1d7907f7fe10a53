"""NEON AOP: HDF5 on a map, spectra last.

The layout::

    /{SITE}/Reflectance/Reflectance_Data (row, column, band) int16, Scale_Factor, Data_Ignore_Value
    .../Metadata/Spectral_Data/{Wavelength, FWHM}
    .../Metadata/Coordinate_System/{Map_Info (as in an ENVI header), EPSG Code}
    attributes Band_Window_{1, 2}_Nanometers of /{SITE}/Reflectance: where bands are bad

Radiance since 2021 is kept in two arrays, /{SITE}/Radiance/{RadianceIntegerPart,
RadianceDecimalPart}: radiance = integer part + decimal part / 50000. No data is where the integer
part has its Data_Ignore_Value, usually 255 in bytes, or is negative.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import h5py
import numpy as np
from affine import Affine

from hsreject.errors import FileError
from hsreject.io.arrays.hdf5 import hdf5_layer
from hsreject.io.arrays.stored_pixels import Layer, Pixels, native_type, usable_nodata
from hsreject.io.lookup import Located
from hsreject.io.products import layout
from hsreject.io.products.layout import attribute, child, maybe_number, numbers, text
from hsreject.io.stored_scene import StoredScene

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DECIMALS = 50_000.0
_CUBES = [
    f"{what}/{what}{part}"
    for what in ("Reflectance", "Radiance")
    for part in ("_Data", "IntegerPart")
]


def describe(file: h5py.File) -> StoredScene | None:
    """Return the description of a NEON scene, or None for another file."""
    # a list: an iterator that is not through keeps h5py locked for other threads
    sites = [site for site in file.values() if isinstance(site, h5py.Group)]
    dataset = next(filter(None, (child(site, *_CUBES) for site in sites)), None)
    if dataset is None:
        return None
    group, what = dataset.parent, dataset.parent.name.rpartition("/")[2]
    layer = hdf5_layer(dataset, "yxb")
    divisor = maybe_number(attribute(dataset, "Scale_Factor", "Scale"))
    gain = 1 / divisor if divisor else None
    usual = 255.0 if dataset.dtype == np.uint8 else -9999.0
    values = layout.stated_values(dataset, fill=usual)
    fills = (values["fill"], *values["more_fills"])
    attrs = {}
    if dataset.name.endswith("IntegerPart"):
        decimals = hdf5_layer(group[f"{what}DecimalPart"], "yxb")
        nodata = usable_nodata(fills[0], layer.dtype)
        attrs = {"type_in_file": str(native_type(layer.dtype)), "nodata_in_file": nodata}
        layer, fills, gain = _in_two_parts(layer, decimals, fills), (None,), 1.0
    elif layer.dtype.kind == "f":  # true already
        gain = gain or 1.0
    bands = layout.stated_bands(group.get("Metadata/Spectral_Data", {}))
    place, notes = _located(group, layer)
    return StoredScene(
        product=f"NEON AOP {what.lower()}",
        pixels=Pixels.of(layer, fill=fills[0], more_fills=fills[1:], gain=gain or 1.0),
        bands=replace(bands, good=_good(group, bands.wavelength)),
        place=place,
        attrs=attrs,
        notes=notes,
        warnings=() if gain else (layout.unscaled(layer.path, what.lower()),),
    )


def _in_two_parts(whole: Layer, decimals: Layer, fills: tuple[float, ...]) -> Layer:
    if whole.stored_shape != decimals.stored_shape:
        raise FileError(
            f"{whole.path}: the integer part has {whole.stored_shape} values, the decimal part "
            f"{decimals.stored_shape}. The file is damaged: download it again."
        )
    joined = partial(_read_joined, whole, decimals, fills)
    return replace(whole, dtype=np.dtype("float32"), read_part=joined)


def _read_joined(
    whole: Layer, decimals: Layer, fills: tuple[float, ...], key: tuple[slice, ...]
) -> NDArray[np.float32]:
    """Read radiance from its two parts, NaN where it has no data."""
    integer = whole.part(key)
    radiance = (integer + decimals.part(key) / _DECIMALS).astype(np.float32)
    radiance[(integer < 0) | np.isin(integer, fills)] = np.nan
    return radiance


def _good(group: h5py.Group, centre: NDArray[np.float64] | None) -> NDArray[np.bool_] | None:
    stated = (attribute(group, f"Band_Window_{number}_Nanometers") for number in (1, 2))
    windows = [numbers(window) for window in stated if window is not None]
    if centre is None or not windows:
        return None
    inside = [(centre >= low) & (centre <= high) for low, high in windows]
    return ~np.asarray(np.any(inside, axis=0), dtype=bool)


def _located(group: h5py.Group, layer: Layer) -> Located:
    """Return the grid of the map info: projection, tie point, its place, sizes of a pixel, ..."""
    system = child(group, "Metadata/Coordinate_System")
    if system is None:
        return Located(None, ("The file does not say where it lies: no place on a map.",))
    fields = [field.strip() for field in text(child(system, "Map_Info")).strip("{}").split(",")]
    transform = None
    turned = any(f.lower().startswith("rotation") and float(f.split("=")[1]) for f in fields)
    if len(fields) >= 7 and not turned:
        column, row, x, y, width, height = map(float, fields[1:7])
        left, top = x - (column - 1) * width, y + (row - 1) * height
        transform = Affine(width, 0.0, left, 0.0, -height, top)
    code = maybe_number(child(system, "EPSG Code", "EPSG_Code"))
    crs = code or text(child(system, "Coordinate_System_String"))
    return layout.located(layer.shape, transform, crs)
