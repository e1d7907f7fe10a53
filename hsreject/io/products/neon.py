"""NEON AOP: HDF5 on a map, spectra last.

The layout::

    /{SITE}/Reflectance/Reflectance_Data (row, column, band) int16, Scale_Factor, Data_Ignore_Value
    .../Metadata/Spectral_Data/{Wavelength, FWHM}
    .../Metadata/Coordinate_System/{Map_Info (as in an ENVI header), EPSG Code}
    attributes Band_Window_{1, 2}_Nanometers of /{SITE}/Reflectance: where bands are bad

Radiance since 2021 is kept in two arrays, /{SITE}/Radiance/{RadianceIntegerPart,
RadianceDecimalPart}: radiance = integer part + decimal part / 50000.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import h5py
import numpy as np
from affine import Affine

from hsreject.errors import FileError
from hsreject.io.arrays import Layer, Pixels, StoredScene
from hsreject.io.lookup import Located
from hsreject.io.products import layout
from hsreject.io.products.layout import attribute, child, maybe_number, numbers, text

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
    layer = Layer.of_hdf5(dataset, "yxb")
    divisor = maybe_number(attribute(dataset, "Scale_Factor", "Scale"))
    gain = 1 / divisor if divisor else None
    if dataset.name.endswith("IntegerPart"):
        layer, gain = _in_two_parts(layer, Layer.of_hdf5(group[f"{what}DecimalPart"], "yxb")), 1.0
    elif layer.dtype.kind == "f":  # true already
        gain = gain or 1.0
    bands = layout.stated_bands(group.get("Metadata/Spectral_Data", {}))
    place, notes = _located(group, layer)
    fill = layout.stated_values(dataset, fill=-9999.0)["fill"]
    return StoredScene(
        product=f"NEON AOP {what.lower()}",
        pixels=Pixels.of(layer, fill=fill, gain=gain or 1.0),
        bands=replace(bands, good=_good(group, bands.wavelength)),
        place=place,
        notes=notes,
        warnings=() if gain else (layout.unscaled(layer.path, what.lower()),),
    )


def _in_two_parts(whole: Layer, decimals: Layer) -> Layer:
    if whole.stored_shape != decimals.stored_shape:
        raise FileError(
            f"{whole.path}: the integer part has {whole.stored_shape} values, the decimal part "
            f"{decimals.stored_shape}. The file is damaged: download it again."
        )
    joined = partial(_read_joined, whole, decimals)
    return replace(whole, dtype=np.dtype("float32"), read_part=joined)


def _read_joined(whole: Layer, decimals: Layer, key: tuple[slice, ...]) -> NDArray[np.float32]:
    """Read radiance from its two parts; no data, which is negative, stays as it is."""
    integer = whole.part(key)
    radiance = np.where(integer < 0, integer, integer + decimals.part(key) / _DECIMALS)
    return radiance.astype(np.float32)


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
