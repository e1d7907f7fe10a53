"""AVIRIS-3 and AVIRIS-5 (JPL): NetCDF, bands first.

The layout::

    /reflectance/{reflectance (wavelength, y, x), wavelength, fwhm}; of L1B files /radiance/...
    a variable such as /transverse_mercator or /projection with spatial_ref and GeoTransform
    /geolocation_lookup_table/{sample, line}: column and row of the sensor for each pixel of the
    map, from 1, negative where a gap is filled from beside; only where the image is not a map yet
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h5py

from hsreject.io.arrays import Layer
from hsreject.io.grid import LookupTable, stored_table
from hsreject.io.products.layout import (
    Product,
    attribute,
    cf_fill,
    cf_scale,
    child,
    gdal_transform,
    grid_of,
    numbers,
    reference_system,
    text,
)

if TYPE_CHECKING:
    from affine import Affine
    from rasterio.crs import CRS

    from hsreject.io.grid import Grid

_SENSORS = {"AV3": "AVIRIS-3", "AV5": "AVIRIS-5"}  # how the names of files begin
_LOOKUP = "geolocation_lookup_table"


def describe(file: h5py.File) -> Product | None:
    """Return the description of an AVIRIS scene, or None for another file."""
    what = next((n for n in ("reflectance", "radiance") if f"{n}/{n}" in file), None)
    if what is None or "wavelength" not in file[what]:
        return None
    group, notes = file[what], list[str]()
    dataset = group[what]
    layer = Layer.of_hdf5(dataset, "byx")
    crs, transform = _projection(file, notes)
    widths = child(group, "fwhm")
    gain, offset = cf_scale(dataset)
    return Product(
        name=f"{_SENSORS.get(layer.path.name[:3].upper(), 'AVIRIS')} {what}",
        layers=(layer,),
        wavelength=numbers(group["wavelength"]),
        unit=text(attribute(group["wavelength"], "units", "Units")) or "nm",
        fwhm=None if widths is None else numbers(widths),
        fwhm_unit=None if widths is None else text(attribute(widths, "units", "Units")) or None,
        good=None if "good_wavelengths" not in group else numbers(group["good_wavelengths"]) == 1,
        fill=cf_fill(dataset, -9999.0),
        place=_place(file, layer, transform, crs, notes),
        notes=tuple(notes),
        gain=gain,
        offset=offset,
    )


def _projection(file: h5py.File, notes: list[str]) -> tuple[CRS | None, Affine | None]:
    """Return what the grid variable says, whatever its name is."""
    for entry in file.values():
        stated = attribute(entry, "spatial_ref", "crs_wkt")
        if isinstance(entry, h5py.Dataset) and stated is not None:
            transform = gdal_transform(attribute(entry, "GeoTransform", "geotransform"))
            return reference_system(text(stated), notes), transform
    return None, None


def _place(
    file: h5py.File, layer: Layer, transform: Affine | None, crs: CRS | None, notes: list[str]
) -> Grid | LookupTable | None:
    table = file.get(_LOOKUP)
    if table is None:
        return grid_of(layer, transform, crs, notes)
    rows, columns = table["line"], table["sample"]
    # files that are maps already may keep the table they were made with
    if rows.shape == layer.shape[1:] and "easting" in file and "northing" in file:
        return grid_of(layer, transform, crs, notes)
    grid = grid_of(rows.shape, transform, crs, notes)
    return stored_table(rows, columns, grid, layer, infilled=True)
