"""Opening products: the families are asked in turn, and what they describe becomes a scene."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import h5py
import numpy as np

from hsreject.errors import FileError, InputError
from hsreject.files import check_heaps, starts_with
from hsreject.io.arrays import Mask, Pixels, StoredScene, native_type, open_hdf5
from hsreject.io.products import aviris, desis, emit, enmap, neon, pace, prisma, tanager
from hsreject.io.products.cube import describe_cube
from hsreject.io.products.layout import Product
from hsreject.io.rasters.raster import HDF5, gdal, read_raster_scene
from hsreject.io.remote import RemotePath, is_store
from hsreject.io.wavelengths import BandInfo, nanometres

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

HDF5_FAMILIES: list[Callable[[h5py.File], Product | None]] = [
    emit.describe,
    aviris.describe,
    prisma.describe,
    tanager.describe,
    neon.describe,
    pace.describe,
]
"""Asked in turn: each describes a file of its own family, and returns None for any other."""


def is_raster_product(path: Path) -> bool:
    """Tell whether a file belongs to a product of several files, by its name and its neighbours."""
    return enmap.recognise(path) or desis.recognise(path)


def read_product(
    path: Path, *, variable: str | None, band_axis: int | None, masks: bool | Literal["all"]
) -> StoredScene:
    """Return the scene of a product; of any other NetCDF, HDF5 or Zarr file, its cube."""
    with gdal():
        product = _describe(path, variable, band_axis)
    if product is None:
        scene = read_raster_scene(path)
        lack = enmap.missing_description(path, scene)
        return scene if lack is None else replace(scene, warnings=(lack,))
    used, notes = _used_masks(product, masks=masks)
    bands, order = _bands(product, path)
    pixels = Pixels.of(
        product.layers,
        order=order,
        gain=1.0 if product.gain is None else product.gain,
        offset=product.offset,
        fill=product.fill,
        fill_in_all=product.fill_in_all,
        masks=used,
    )
    attrs: dict[str, Any] = {
        "source": path.name,
        "product": product.name,
        "format": product.layers[0].format,
        "type_in_file": str(native_type(product.layers[0].dtype)),
    }
    if pixels.fill[0] is not None:
        attrs["nodata_in_file"] = pixels.fill[0]
    if used:
        attrs["masks"] = ", ".join(mask.name for mask in used)
    warnings = product.warnings
    if product.gain is None:
        unscaled = (
            f"{path.name} does not say how its values are scaled: they are the numbers in the "
            f"file, not {'radiance' if 'radiance' in product.name else 'reflectance'}."
        )
        warnings = (*warnings, unscaled)
    notes = (*product.notes, *notes, *bands.notes)
    return StoredScene(pixels, bands, attrs, notes, warnings, product.place)


def _used_masks(
    product: Product, *, masks: bool | Literal["all"]
) -> tuple[tuple[Mask, ...], tuple[str, ...]]:
    """Return the masks that are wanted, and what to note of the others."""
    if masks not in (True, False, "all"):
        raise InputError(f"masks must be True, False or 'all' (got {masks!r}).")
    used = tuple(m for m in product.masks if masks == "all" or (masks and not m.spared))
    spared = " and ".join(mask.spared for mask in product.masks if mask.spared)
    if masks is not True or not spared:
        return used, ()
    return used, (f"Pixels flagged as {spared} keep their data; masks='all' takes it away.",)


def _describe(path: Path, variable: str | None, band_axis: int | None) -> Product | None:
    """Return what the family of a file says about it; None for an image without description."""
    if is_store(path):
        return describe_cube(path.absolute(), variable, band_axis)
    if not starts_with(path, HDF5):
        if starts_with(path, b"CDF"):
            return describe_cube(path.absolute(), variable, band_axis)
        return enmap.describe(path) if enmap.recognise(path) else desis.describe(path)
    check_heaps(path, n_bytes=2**18 if isinstance(path, RemotePath) else 2**24)
    if variable is None:
        with open_hdf5(path) as file:
            for describe in HDF5_FAMILIES:
                product = describe(file)
                if product is not None:
                    _check_links(product, path)
                    return product
    return describe_cube(path.absolute(), variable, band_axis)


def _check_links(product: Product, path: Path) -> None:
    """Raise if a link inside of a file leads to another file for the pixels."""
    for layer in product.layers:
        if layer.path != path.absolute():
            raise FileError(
                f"{path}: its pixels are a link to {layer.path}, which is not followed. Open that "
                "file, if you know where this one comes from."
            )


def _bands(product: Product, path: Path) -> tuple[BandInfo, NDArray[np.intp]]:
    """Return what is known of the bands that are used, and their places in the file.

    Bands come in the order of their wavelengths, whatever their order in the file.
    """
    stated = {
        "wavelengths": product.wavelength,
        "band widths": product.fwhm,
        "flags of good bands": product.good,
    }
    for name, values in stated.items():
        if values is not None and values.size != product.n_bands:
            raise FileError(
                f"{path} has {values.size} {name} for {product.n_bands} bands. The file is not "
                f"laid out like {product.name}."
            )
    used = np.ones(product.n_bands, dtype=bool) if product.used is None else product.used
    order, notes = np.flatnonzero(used), list[str]()
    if order.size < used.size:
        notes.append(f"{used.size - order.size} of {used.size} bands hold nothing: left out.")
    bands = BandInfo(notes=("The file does not say the wavelengths of its bands.",))
    if product.wavelength is not None:
        widths = None if product.fwhm is None else product.fwhm[order]
        bands = nanometres(product.wavelength[order], product.unit, widths, product.fwhm_unit)
    good = None if product.good is None else product.good[order]
    if good is not None and not good.any():
        notes.append("The file calls every band bad: not followed.")
        good = None
    centre, width = bands.wavelength, bands.fwhm
    rank = np.arange(order.size)
    if centre is not None and not np.isnan(centre).any() and np.any(np.diff(centre) < 0):
        rank = np.argsort(centre, kind="stable")
        notes.append("The file has its bands in another order: sorted by wavelength.")

    def ranked(values: Any) -> Any:
        return None if values is None else values[rank]

    every = (*notes, *bands.notes)
    return BandInfo(ranked(centre), ranked(width), ranked(good), every), order[rank]
