"""A scene as the reader of a format describes it, and the cube that is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr

from hsreject.io.arrays.stored_pixels import Pixels, check_counts, native_type, read_or_lazy
from hsreject.io.wavelengths import BandInfo
from hsreject.schema import BAND, CUBE_DIMS, FWHM, GOOD_BAND, MAP_DIMS, WAVELENGTH

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from hsreject.io.grid import PixelGrid
    from hsreject.io.lookup import LookupTable


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredScene:
    """A scene as the reader of a format describes it, over all bands in the file."""

    pixels: Pixels
    bands: BandInfo = field(default_factory=BandInfo)
    used: NDArray[np.bool_] | None = None  # False for bands that hold nothing: left out
    product: str = ""  # what people call it; bands of a product are sorted by wavelength
    place: PixelGrid | LookupTable | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)  # of the cube, beside the usual ones
    notes: tuple[str, ...] = ()  # what the file does not say and was decided, in sentences
    warnings: tuple[str, ...] = ()  # what makes the values wrong if nobody acts


def make_cube(
    stored: StoredScene, path: Path, *, masks: bool | Literal["all"], chunks: Any
) -> xr.DataArray:
    """Return the cube of a scene with its coordinates and its place."""
    bands, order, notes = stored.bands, stored.pixels.order, [*stored.notes]
    lists = {"wavelengths": bands.wavelength, "band_widths": bands.fwhm}
    check_counts(path, order.size, **lists, flags_of_good_bands=bands.good)
    if stored.used is not None and not stored.used.all():
        order = np.flatnonzero(stored.used)
        n_bands = stored.used.size
        notes.append(f"{n_bands - order.size} of {n_bands} bands hold nothing: left out.")
    if bands.good is not None and not bands.good[order].any():
        notes.append("The file calls every band bad: not followed.")
        bands = replace(bands, good=None)
    centre = np.zeros(0) if bands.wavelength is None else bands.wavelength[order]
    if stored.product and np.any(np.diff(centre) < 0) and not np.isnan(centre).any():
        order = order[np.argsort(centre, kind="stable")]
        notes.append("The file has its bands in another order: sorted by wavelength.")
    every_mask = stored.pixels.masks
    used = tuple(mask for mask in every_mask if masks == "all" or (masks and not mask.spared))
    spared = " and ".join(mask.spared for mask in every_mask if mask.spared)
    if spared and masks is True:
        notes.append(f"Pixels flagged as {spared} keep their data; masks='all' takes it away.")
    notes += [*bands.notes, *stored.warnings]
    coords: dict[str, Any] = {BAND: np.arange(1, order.size + 1)}
    for name, values in ((WAVELENGTH, bands.wavelength), (FWHM, bands.fwhm)):
        if values is not None:
            coords[name] = (BAND, values[order], {"units": "nm"})
    if bands.good is not None:
        coords[GOOD_BAND] = (BAND, bands.good[order])
    pixels = replace(stored.pixels, order=order, masks=used)
    cube = xr.DataArray(read_or_lazy(pixels, chunks), coords, CUBE_DIMS, name="cube")
    layer = pixels.layers[0]
    stated = {
        "guesses": notes or None,
        "source": path.name,
        "product": stored.product or None,
        "format": layer.format,
        "type_in_file": str(native_type(layer.dtype)),
        "nodata_in_file": pixels.fill[0],
        "masks": ", ".join(mask.name for mask in used) or None,
        "scaling": pixels.scaling if pixels.scaled else None,
        **stored.attrs,
    }
    cube.attrs |= {name: value for name, value in stated.items() if value is not None}
    cube.encoding["preferred_chunks"] = dict(zip(MAP_DIMS, layer.chunks[1:], strict=True))
    return cube if stored.place is None else stored.place.attach(cube)
