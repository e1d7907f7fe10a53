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
from typing import TYPE_CHECKING, Any

import h5py
from affine import Affine

from hsreject.io.arrays import Layer, Mask
from hsreject.io.grid import place_of_swath
from hsreject.io.products.layout import (
    Product,
    attribute,
    cf_fill,
    cf_scale,
    child,
    grid_of,
    maybe_number,
    numbers,
    reference_system,
    text,
)

if TYPE_CHECKING:
    from hsreject.io.grid import Grid

_CUBES = {
    "surface_reflectance": "surface reflectance",
    "ortho_surface_reflectance": "surface reflectance",
    "toa_radiance": "radiance",
    "ortho_radiance": "radiance",
}
_MASKS = ("nodata_pixels", "beta_cloud_mask", "beta_cirrus_mask")
_METADATA = "HDFEOS INFORMATION/StructMetadata.0"


def describe(file: h5py.File) -> Product | None:
    """Return the description of a Tanager scene, or None for another file."""
    for kind in ("GRIDS", "SWATHS"):
        fields = file.get(f"HDFEOS/{kind}/HYP/Data Fields")
        dataset = None if fields is None else child(fields, *_CUBES)
        if dataset is not None:
            return _product(file, fields, dataset, on_map=kind == "GRIDS")
    return None


def _product(
    file: h5py.File, fields: h5py.Group, dataset: h5py.Dataset, *, on_map: bool
) -> Product:
    notes: list[str] = []
    layer = Layer.of_hdf5(dataset, "byx")
    centres, unit = _stated(fields, dataset, "wavelengths", "wavelength", "Wavelengths")
    widths, width_unit = _stated(fields, dataset, "fwhm", "FWHM")
    good, _ = _stated(fields, dataset, "good_wavelengths")
    there = [name for name in _MASKS if name in fields]
    masks = [name for name in there if fields[name].shape == layer.shape[1:]]
    notes += [
        f"The mask {name} has another size than the image: not used."
        for name in there
        if name not in masks
    ]
    located = fields.parent.get("Geolocation Fields", {})
    kind = "ortho" if on_map else "basic"
    gain, offset = cf_scale(dataset)
    return Product(
        name=f"Tanager {_CUBES[dataset.name.rpartition('/')[2]]} ({kind})",
        layers=(layer,),
        wavelength=None if centres is None else numbers(centres),
        unit=unit or "nm",
        fwhm=None if widths is None else numbers(widths),
        fwhm_unit=width_unit,
        good=None if good is None else numbers(good) == 1,
        fill=cf_fill(dataset, -9999.0),
        masks=tuple(Mask(name, Layer.of_hdf5(fields[name], "yx")) for name in masks),
        place=_grid(file, layer, notes) if on_map else place_of_swath(located, layer, notes),
        notes=tuple(notes),
        gain=gain,
        offset=offset,
    )


def _stated(fields: h5py.Group, dataset: h5py.Dataset, *names: str) -> tuple[Any, str | None]:
    """Return one number per band, from an array beside the cube or an attribute, and its unit."""
    beside = child(fields, *names)
    if beside is not None:
        return beside, text(attribute(beside, "units", "Units")) or None
    return attribute(dataset, *names), text(attribute(dataset, f"{names[0]}_units")) or None


def _grid(file: h5py.File, layer: Layer, notes: list[str]) -> Grid | None:
    stated = text(file.get(_METADATA))
    number = r"\s*(-?[\d.]+(?:[eE][-+]?\d+)?)\s*"
    corners = [
        re.search(rf"{name}\s*=\s*\({number},{number}\)", stated)
        for name in ("UpperLeftPointMtrs", "LowerRightMtrs")
    ]
    code = maybe_number(attribute(file["HDFEOS/GRIDS/HYP"], "epsg_code"))
    zone = re.search(r"ZoneCode\s*=\s*(-?\d+)", stated)
    if code is None and zone is not None and "GCTP_UTM" in stated:
        code = 32600 + int(zone[1]) if int(zone[1]) > 0 else 32700 - int(zone[1])
    transform = None
    if corners[0] is not None and corners[1] is not None:
        (left, top), (right, bottom) = (map(float, found.groups()) for found in corners if found)
        rows, columns = layer.shape[1:]
        across, down = (right - left) / columns, (bottom - top) / rows
        transform = Affine(across, 0.0, left, 0.0, down, top)
    crs = reference_system(None if code is None else int(code), notes)
    return grid_of(layer, transform, crs, notes)
