"""Products: the families are asked in turn whose file it is; any other file may hold a cube."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import h5py

from hsreject.errors import FileError
from hsreject.files import starts_with
from hsreject.io.arrays.hdf5 import HDF5, open_hdf5
from hsreject.io.products import aviris, desis, emit, enmap, neon, pace, prisma, tanager
from hsreject.io.products.cube import describe_cube
from hsreject.io.rasters.raster import gdal
from hsreject.io.remote import RemotePath, is_store
from hsreject.io.stored_scene import StoredScene

if TYPE_CHECKING:
    from pathlib import Path

HDF5_FAMILIES: list[Callable[[h5py.File], StoredScene | None]] = [
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


def read_product(path: Path, *, variable: str | None, band_axis: int | None) -> StoredScene:
    """Return the scene of a product; of any other NetCDF, HDF5 or Zarr file, its cube."""
    in_hdf5 = not is_store(path) and starts_with(path, HDF5)
    if not (in_hdf5 or is_store(path) or starts_with(path, b"CDF")):
        with gdal(online=isinstance(path, RemotePath)):
            return enmap.describe(path) if enmap.recognise(path) else desis.describe(path)
    if in_hdf5:
        scene = _scene_of_family(path, variable)
        if scene is not None:
            return scene
    return describe_cube(path.absolute(), variable, band_axis)


def _scene_of_family(path: Path, variable: str | None) -> StoredScene | None:
    """Return the scene of a family, if `variable` is None or names its array; else None."""
    try:
        with open_hdf5(path) as file:
            scenes = (describe(file) for describe in HDF5_FAMILIES)
            scene = next((scene for scene in scenes if scene is not None), None)
    except FileError:
        if variable is None:
            raise
        return None  # what a family misses does not matter to another array
    if scene is None or variable is None:
        return scene
    ending = f"/{variable.strip('/')}"
    return scene if all(layer.name.endswith(ending) for layer in scene.pixels.layers) else None
