"""PRISMA L2D and L2C (ASI): HDF-EOS5, two spectrometers, bands descending; L2D on a UTM grid.

The layout::

    /HDFEOS/SWATHS/PRS_L2D_HCO/Data Fields/{VNIR, SWIR}_Cube (row, band, column) uint16
    root attributes List_Cw_*, List_Fwhm_* (nm, 0 = unused), L2Scale*{Min, Max}, Epsg_Code,
    Product_{UL, LR}corner_{easting, northing}
    of L2C, as the sensor sees: .../Geolocation Fields/{Latitude, Longitude} (row, column)

Reflectance = min + value / 65535 (max - min). A pixel that is 0 in all bands has no data; in some
of them, as over dark water, 0 is the smallest reflectance.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from affine import Affine

from hsreject.errors import FileError
from hsreject.io.arrays.hdf5 import existing_path, hdf5_layer
from hsreject.io.arrays.stored_pixels import Layer, Pixels
from hsreject.io.lookup import Located, located_swath
from hsreject.io.products import layout
from hsreject.io.products.layout import attribute, maybe_number, numbers
from hsreject.io.stored_scene import StoredScene
from hsreject.io.wavelengths import nanometres

if TYPE_CHECKING:
    import h5py

_SWATH = re.compile(r"PRS_(L\w+?)_HCO")
_WATER_VAPOUR = ((1340.0, 1450.0), (1790.0, 1960.0))  # nm
_NOTES = (
    "No data is where all bands are 0; elsewhere 0 counts as the smallest reflectance.",
    "The product flags no bad bands: those where water vapour absorbs (1340 to 1450 and 1790 to "
    "1960 nm) were called bad.",
)


def describe(file: h5py.File) -> StoredScene | None:
    """Return the description of a PRISMA scene, or None for another file."""
    swaths = file.get("HDFEOS/SWATHS", {})
    level = next((match[1] for name in swaths if (match := _SWATH.fullmatch(name))), None)
    if level is None:
        return None
    if level not in {"L2C", "L2D"}:
        raise FileError(
            f"{existing_path(file)} is a PRISMA {level} product, which does not hold surface "
            "reflectance. Download the L2D product of the same scene."
        )
    swath = swaths[f"PRS_{level}_HCO"]
    fields = swath["Data Fields"]
    names = [name for name in ("Vnir", "Swir") if f"{name.upper()}_Cube" in fields]
    layers = tuple(hdf5_layer(fields[f"{name.upper()}_Cube"], "ybx") for name in names)
    halves = [_bands(file, *half) for half in zip(names, layers, strict=True)]
    centre, width, flag, gain, offset = map(np.concatenate, zip(*halves, strict=True))
    absorbed = [(low <= centre) & (centre <= high) for low, high in _WATER_VAPOUR]
    if level == "L2D":
        located = _located(file, layers[0])
    else:
        located = located_swath(swath.get("Geolocation Fields", {}), layers[0])
    used = (centre > 0) & flag
    bands = nanometres(np.where(used, centre, np.nan), "nm", width)
    return StoredScene(
        product=f"PRISMA {level} reflectance",
        pixels=Pixels.of(*layers, fill=0, fill_in_all=True, gain=gain, offset=offset),
        bands=replace(bands, good=~np.any(absorbed, axis=0)),
        used=used,
        place=located.place,
        notes=(*_NOTES, *located.notes),
    )


def _bands(file: h5py.File, name: str, layer: Layer) -> tuple[np.ndarray, ...]:
    """Return wavelength, width, whether used, gain and offset of the bands of a spectrometer."""
    size = layer.shape[0]
    centre, width = (numbers(file.attrs[f"List_{what}_{name}"]) for what in ("Cw", "Fwhm"))
    flags = attribute(file, f"List_Cw_{name}_Flags")
    used = np.ones(size, dtype=bool) if flags is None else numbers(flags) != 0
    low, high = (maybe_number(attribute(file, f"L2Scale{name}{end}")) for end in ("Min", "Max"))
    if low is None or high is None:
        raise FileError(f"{layer.path} does not say how {name.upper()} values are scaled.")
    return centre, width, used, np.full(size, (high - low) / 65535), np.full(size, low)


def _located(file: h5py.File, layer: Layer) -> Located:
    corners = [
        maybe_number(attribute(file, f"Product_{corner}corner_{axis}"))
        for corner in ("UL", "LR")
        for axis in ("easting", "northing")
    ]
    left, top, right, bottom = (np.nan if value is None else value for value in corners)
    rows, columns = layer.shape[1:]
    across, down = (right - left) / max(columns - 1, 1), (bottom - top) / max(rows - 1, 1)
    transform = Affine(across, 0.0, left - across / 2, 0.0, down, top - down / 2)
    grid = layout.located(layer.shape, transform, maybe_number(attribute(file, "Epsg_Code")))
    note = "The corners of PRISMA were taken for centres of pixels."
    return Located(grid.place, (note, *grid.notes))
