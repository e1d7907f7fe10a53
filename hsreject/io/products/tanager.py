"""Tanager (Planet): HDF-EOS5, bands first; "ortho" files are maps, "basic" ones as the sensor sees.

The layout::

    /HDFEOS/{GRIDS, SWATHS}/HYP/Data Fields/{surface_reflectance, toa_radiance} (band, y, x)
    wavelengths and fwhm as attributes of it, or as arrays beside it
    .../{nodata_pixels, beta_cloud_mask, beta_cirrus_mask} (y, x): 1 where there is no ground
    /HDFEOS INFORMATION/StructMetadata.0: corners of the grid; epsg_code of the group, or UTM zone
    of basic files, Geolocation Fields/{Latitude, Longitude} (y, x)
"""

from __future__ import annotations

import re

import h5py
from rasterio.transform import from_bounds

from hsreject.io.arrays.hdf5 import hdf5_layer
from hsreject.io.arrays.stored_pixels import Layer, Mask, Pixels
from hsreject.io.lookup import Located, located_swath
from hsreject.io.products import layout
from hsreject.io.products.layout import attribute, child, text
from hsreject.io.stored_scene import StoredScene

_CUBES = {
    "surface_reflectance": "surface reflectance",
    "ortho_surface_reflectance": "surface reflectance",
    "toa_radiance": "radiance",
    "ortho_radiance": "radiance",
}
_MASKS = ("nodata_pixels", "beta_cloud_mask", "beta_cirrus_mask")
_METADATA = "HDFEOS INFORMATION/StructMetadata.0"


def describe(file: h5py.File) -> StoredScene | None:
    """Return the description of a Tanager scene, or None for another file."""
    places = (f"HDFEOS/{kind}/HYP/Data Fields" for kind in ("GRIDS", "SWATHS"))
    dataset = child(file, *(f"{place}/{name}" for place in places for name in _CUBES))
    if dataset is None:
        return None
    layer, fields = hdf5_layer(dataset, "byx"), dataset.parent
    masks: tuple[Mask, ...] = ()
    notes: tuple[str, ...] = ()
    for name in _MASKS:
        if name in fields and fields[name].shape == layer.shape[1:]:
            masks += (Mask(name, hdf5_layer(fields[name], "yx")),)
        elif name in fields:
            notes += (f"The mask {name} has another size than the image: not used.",)
    if "/GRIDS/" in dataset.name:
        kind, located = "ortho", _located(file, layer)
    else:
        kind = "basic"
        located = located_swath(fields.parent.get("Geolocation Fields", {}), layer)
    unit = text(attribute(dataset, "wavelengths_units"))
    bands = layout.stated_bands(fields, unit=unit)
    if bands.wavelength is None:
        bands = layout.stated_bands(dataset.attrs, unit=unit)
    return StoredScene(
        product=f"Tanager {_CUBES[dataset.name.rpartition('/')[2]]} ({kind})",
        pixels=Pixels.of(layer, masks=masks, **layout.stated_values(dataset, fill=-9999.0)),
        bands=bands,
        place=located.place,
        notes=(*notes, *located.notes),
    )


def _located(file: h5py.File, layer: Layer) -> Located:
    stated = text(file.get(_METADATA))
    number = r"\s*(-?[\d.]+(?:[eE][-+]?\d+)?)\s*"
    corners = [
        match.groups()
        for name in ("UpperLeftPointMtrs", "LowerRightMtrs")
        if (match := re.search(rf"{name}\s*=\s*\({number},{number}\)", stated))
    ]
    code = layout.maybe_number(attribute(file["HDFEOS/GRIDS/HYP"], "epsg_code"))
    zone = re.search(r"ZoneCode\s*=\s*(-?\d+)", stated)
    if code is None and zone is not None and "GCTP_UTM" in stated:
        code = 32600 + int(zone[1]) if int(zone[1]) > 0 else 32700 - int(zone[1])
    transform = None
    if len(corners) == 2:
        (left, top), (right, bottom) = (map(float, corner) for corner in corners)
        rows, columns = layer.shape[1:]
        transform = from_bounds(left, bottom, right, top, columns, rows)
    return layout.located(layer.shape, transform, code)
