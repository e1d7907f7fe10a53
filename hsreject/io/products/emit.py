"""EMIT (JPL): NetCDF in sensor geometry, spectra last, with a lookup table.

The layout::

    /reflectance (downtrack, crosstrack, bands) float32; of L1B files /radiance
    /sensor_band_parameters/{wavelengths, fwhm, good_wavelengths}, the last only sometimes
    /location/{glt_x, glt_y}: column and row of the sensor for each pixel of the map, from 1
    root attributes spatial_ref, geotransform (in the order of GDAL)

The masks of the same scene are a file of their own, often downloaded beside it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hsreject.errors import FileError
from hsreject.io.arrays import Layer, Mask, existing_path, open_hdf5
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
    import h5py

_CUBES = {"reflectance": "EMIT L2A reflectance", "radiance": "EMIT L1B radiance"}
_OTHER = {"mask": "masks", "reflectance_uncertainty": "uncertainties", "obs": "viewing geometry"}
_COVERS = re.compile(r"(spectf-)?(dilated )?cloud flag|cirrus flag|spacecraft flag", re.IGNORECASE)


def describe(file: h5py.File) -> Product | None:
    """Return the description of an EMIT scene, or None for another file."""
    parameters = file.get("sensor_band_parameters")
    if parameters is None or "location" not in file:
        return None
    dataset = child(file, *_CUBES)
    if dataset is None:
        held = next((words for name, words in _OTHER.items() if name in file), "no spectra")
        raise FileError(
            f"{existing_path(file)} is an EMIT file that holds {held}. Open the reflectance of the "
            "same scene (its name has L2A_RFL); masks are read from the folder that it is in."
        )
    notes: list[str] = []
    layer = Layer.of_hdf5(dataset, "yxb")
    centres, widths = child(parameters, "wavelengths"), child(parameters, "fwhm")
    good = child(parameters, "good_wavelengths")
    gain, offset = cf_scale(dataset)
    return Product(
        name=_CUBES[dataset.name.strip("/")],
        layers=(layer,),
        wavelength=None if centres is None else numbers(centres),
        unit=_unit(centres),
        fwhm=None if widths is None else numbers(widths),
        fwhm_unit=_unit(widths),
        good=None if good is None else numbers(good) == 1,
        fill=cf_fill(dataset, -9999.0),
        masks=_masks(layer, notes),
        place=_lookup(file, layer, notes),
        notes=tuple(notes),
        gain=gain,
        offset=offset,
    )


def _unit(dataset: h5py.Dataset | None) -> str:
    return text(attribute(dataset, "units", "Units")) or "nm" if dataset is not None else "nm"


def _lookup(file: h5py.File, layer: Layer, notes: list[str]) -> LookupTable | None:
    rows, columns = (file["location"].get(name) for name in ("glt_y", "glt_x"))
    if rows is None or columns is None:
        notes.append("The file has no lookup table: maps stay in sensor geometry.")
        return None
    crs = reference_system(text(attribute(file, "spatial_ref", "crs_wkt")), notes)
    transform = gdal_transform(attribute(file, "geotransform", "GeoTransform"))
    grid = grid_of(rows.shape, transform, crs, notes)
    return stored_table(rows, columns, grid, layer, infilled=False)


def _masks(layer: Layer, notes: list[str]) -> tuple[Mask, ...]:
    """Return the mask of clouds and of the space station, if its file lies beside the scene."""
    beside = layer.path.with_name(re.sub("_RFL_", "_MASK_", layer.path.name))
    if beside == layer.path or not beside.is_file():
        return ()
    with open_hdf5(beside) as file:
        mask = Layer.of_hdf5(file["mask"], "yxb")
        names = [text(name) for name in file["sensor_band_parameters/mask_bands"][()]]
    flags = tuple(place for place, name in enumerate(names) if _COVERS.fullmatch(name.strip()))
    if mask.shape[1:] != layer.shape[1:] or not flags:
        notes.append(f"{beside.name} does not fit the scene: not used.")
        return ()
    listed = ", ".join(names[place] for place in flags)
    return (Mask(f"{beside.name} ({listed})", mask, flags),)
