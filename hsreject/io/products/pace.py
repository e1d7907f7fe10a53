"""PACE OCI L2 surface reflectance (NASA): NetCDF as the sensor sees, spectra last.

The layout::

    /geophysical_data/rhos (number_of_lines, pixels_per_line, wavelength_3d), scaled
    /sensor_band_parameters/wavelength_3d
    /navigation_data/{latitude, longitude} (number_of_lines, pixels_per_line)

Level 3 files, which are maps, are cubes that follow the CF conventions and need no family.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hsreject.io.arrays.hdf5 import hdf5_layer
from hsreject.io.arrays.stored_pixels import Pixels
from hsreject.io.lookup import located_swath
from hsreject.io.products.layout import child, stated_bands, stated_values
from hsreject.io.stored_scene import StoredScene

if TYPE_CHECKING:
    import h5py


def describe(file: h5py.File) -> StoredScene | None:
    """Return the description of a PACE OCI scene, or None for another file."""
    dataset = child(file, "geophysical_data/rhos")
    if dataset is None:
        return None
    layer = hdf5_layer(dataset, "yxb")
    place, notes = located_swath(file.get("navigation_data", {}), layer)
    return StoredScene(
        product="PACE OCI surface reflectance",
        pixels=Pixels.of(layer, **stated_values(dataset, fill=-32767.0)),
        # beside it are the wavelengths of bands that reflectance has not
        bands=stated_bands({"wavelength": child(file, "sensor_band_parameters/wavelength_3d")}),
        place=place,
        notes=notes,
    )
