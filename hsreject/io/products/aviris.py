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

from hsreject.io.arrays.hdf5 import hdf5_layer
from hsreject.io.arrays.stored_pixels import Layer, Pixels
from hsreject.io.lookup import Located, located_table
from hsreject.io.products import layout
from hsreject.io.products.layout import attribute, child, text
from hsreject.io.stored_scene import StoredScene

if TYPE_CHECKING:
    from affine import Affine

_SENSORS = {"AV3": "AVIRIS-3", "AV5": "AVIRIS-5"}  # how the names of files begin


def describe(file: h5py.File) -> StoredScene | None:
    """Return the description of an AVIRIS scene, or None for another file."""
    dataset = child(file, "reflectance/reflectance", "radiance/radiance")
    if dataset is None or "wavelength" not in dataset.parent:
        return None
    layer = hdf5_layer(dataset, "byx")
    place, notes = _located(file, layer)
    what = dataset.name.rpartition("/")[2]
    return StoredScene(
        product=f"{_SENSORS.get(layer.path.name[:3].upper(), 'AVIRIS')} {what}",
        pixels=Pixels.of(layer, **layout.stated_values(dataset, fill=-9999.0)),
        bands=layout.stated_bands(dataset.parent),
        place=place,
        notes=notes,
    )


def _located(file: h5py.File, layer: Layer) -> Located:
    transform, crs = _projection(file)
    table = file.get("geolocation_lookup_table")
    if table is None:
        return layout.located(layer.shape, transform, crs)
    rows, columns = table["line"], table["sample"]
    # files that are maps already may keep the table they were made with
    if rows.shape == layer.shape[1:] and {"easting", "northing"} <= set(file):
        return layout.located(layer.shape, transform, crs)
    grid = layout.located(rows.shape, transform, crs)
    return located_table(rows, columns, grid, layer, "filled table")


def _projection(file: h5py.File) -> tuple[Affine | None, str]:
    """Return what the grid variable says, whatever its name is."""
    for entry in list(file.values()):  # an iterator that is not through keeps h5py locked
        crs = text(attribute(entry, "spatial_ref", "crs_wkt"))
        if isinstance(entry, h5py.Dataset) and crs:
            return layout.gdal_transform(attribute(entry, "GeoTransform", "geotransform")), crs
    return None, ""
