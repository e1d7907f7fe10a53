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
from hsreject.io.arrays.hdf5 import existing_path, hdf5_layer, open_hdf5
from hsreject.io.arrays.stored_pixels import Layer, Mask, Pixels
from hsreject.io.lookup import Located, located_table
from hsreject.io.products import layout
from hsreject.io.products.layout import attribute, child, text
from hsreject.io.stored_scene import StoredScene

if TYPE_CHECKING:
    import h5py

_CUBES = {"reflectance": "EMIT L2A reflectance", "radiance": "EMIT L1B radiance"}
_OTHER = {"mask": "masks", "reflectance_uncertainty": "uncertainties", "obs": "viewing geometry"}
_COVERS = re.compile(r"(spectf-)?(dilated )?cloud flag|cirrus flag|spacecraft flag", re.IGNORECASE)


def describe(file: h5py.File) -> StoredScene | None:
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
    layer = hdf5_layer(dataset, "yxb")
    masks, notes = _masks(layer)
    place, notes_on_place = _located(file, layer)
    values = layout.stated_values(dataset, fill=-9999.0)
    return StoredScene(
        product=_CUBES[dataset.name.strip("/")],
        pixels=Pixels.of(layer, masks=masks, **values),
        bands=layout.stated_bands(parameters),
        place=place,
        notes=(*notes, *notes_on_place),
    )


def _located(file: h5py.File, layer: Layer) -> Located:
    rows, columns = (file["location"].get(name) for name in ("glt_y", "glt_x"))
    if rows is None or columns is None:
        return Located(None, ("The file has no lookup table: maps stay in sensor geometry.",))
    transform = layout.gdal_transform(attribute(file, "geotransform", "GeoTransform"))
    grid = layout.located(rows.shape, transform, text(attribute(file, "spatial_ref", "crs_wkt")))
    return located_table(rows, columns, grid, layer)


def _masks(layer: Layer) -> tuple[tuple[Mask, ...], tuple[str, ...]]:
    """Return the mask of clouds and of the space station, if its file lies beside the scene."""
    beside = layer.path.with_name(re.sub("_RFL_", "_MASK_", layer.path.name))
    if beside.name == layer.path.name or not beside.is_file():
        return (), ()
    with open_hdf5(beside) as file:
        mask = hdf5_layer(file["mask"], "yxb")
        names = [text(name) for name in file["sensor_band_parameters/mask_bands"][()]]
    flags = tuple(place for place, name in enumerate(names) if _COVERS.fullmatch(name.strip()))
    if mask.shape[1:] != layer.shape[1:] or not flags:
        return (), (f"{beside.name} does not fit the scene: not used.",)
    listed = ", ".join(names[place] for place in flags)
    return (Mask(f"{beside.name} ({listed})", mask, flags),), ()
