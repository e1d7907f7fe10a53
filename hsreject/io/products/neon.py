"""NEON AOP: HDF5 on a map, spectra last.

The layout::

    /{SITE}/Reflectance/Reflectance_Data (row, column, band) int16, Scale_Factor, Data_Ignore_Value
    .../Metadata/Spectral_Data/{Wavelength, FWHM}
    .../Metadata/Coordinate_System/{Map_Info (as in an ENVI header), EPSG Code}
    attributes Band_Window_{1, 2}_Nanometers of /{SITE}/Reflectance: where bands are bad
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h5py
import numpy as np
from affine import Affine

from hsreject.io.products.layout import (
    HdfArray,
    Product,
    attribute,
    cf_fill,
    child,
    grid_of,
    maybe_number,
    numbers,
    reference_system,
    text,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.io.grid import Grid


def describe(file: h5py.File) -> Product | None:
    """Return the description of a NEON scene, or None for another file."""
    for site in file.values():
        for what in ("Reflectance", "Radiance"):
            if isinstance(site, h5py.Group) and f"{what}/{what}_Data" in site:
                return _product(site[what], what)
    return None


def _product(group: h5py.Group, what: str) -> Product:
    guesses: list[str] = []
    dataset = group[f"{what}_Data"]
    layer = HdfArray.of(dataset, "yxb")
    spectral = group["Metadata/Spectral_Data"]
    centres, widths = child(spectral, "Wavelength"), child(spectral, "FWHM")
    centre = None if centres is None else numbers(centres)
    divisor = maybe_number(attribute(dataset, "Scale_Factor", "Scale"))
    ignored = maybe_number(attribute(dataset, "Data_Ignore_Value"))
    return Product(
        name=f"NEON AOP {what.lower()}",
        layers=(layer,),
        wavelength=centre,
        unit="nm" if centres is None else text(attribute(centres, "Units", "units")) or "nm",
        fwhm=None if widths is None else numbers(widths),
        good=None if centre is None else _good(group, centre),
        fill=cf_fill(dataset, -9999.0) if ignored is None else ignored,
        gain=1 / divisor if divisor else 1.0,
        place=_grid(group, layer, guesses),
        guesses=tuple(guesses),
    )


def _good(group: h5py.Group, centre: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    stated = (attribute(group, f"Band_Window_{number}_Nanometers") for number in (1, 2))
    windows = [numbers(window) for window in stated if window is not None]
    if not windows:
        return None
    inside = [(centre >= low) & (centre <= high) for low, high in windows]
    return ~np.asarray(np.any(inside, axis=0), dtype=bool)


def _grid(group: h5py.Group, layer: HdfArray, guesses: list[str]) -> Grid | None:
    """Return the grid of the map info: projection, tie point, its place, sizes of a pixel, ..."""
    system = child(group, "Metadata/Coordinate_System")
    if system is None:
        return None
    fields = [field.strip() for field in text(child(system, "Map_Info")).strip("{}").split(",")]
    transform = None
    turned = any(f.lower().startswith("rotation") and float(f.split("=")[1]) for f in fields)
    if len(fields) >= 7 and not turned:
        column, row, x, y, width, height = map(float, fields[1:7])
        left, top = x - (column - 1) * width, y + (row - 1) * height
        transform = Affine(width, 0.0, left, 0.0, -height, top)
    code = maybe_number(child(system, "EPSG Code", "EPSG_Code"))
    wkt = text(child(system, "Coordinate_System_String"))
    return grid_of(layer, transform, reference_system(int(code) if code else wkt, guesses), guesses)
