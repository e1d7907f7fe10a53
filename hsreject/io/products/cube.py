"""Cubes of any origin in NetCDF, HDF5 and Zarr, which say what they are the CF way."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from operator import getitem
from typing import TYPE_CHECKING, Any

import dask.array as da
import h5py
import numpy as np
import xarray as xr
from rasterio.crs import CRS

from hsreject import schema
from hsreject.errors import FileError
from hsreject.files import starts_with
from hsreject.io.arrays import (
    AXES,
    HDF5,
    Layer,
    Pixels,
    StoredScene,
    open_hdf5,
    sides,
)
from hsreject.io.grid import Grid
from hsreject.io.lookup import Located
from hsreject.io.products.layout import CENTRES, stated_bands, stated_values
from hsreject.io.remote import is_store

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_AXES = {
    **dict.fromkeys(("y", "lat", "latitude", "northing", "row", "rows", "ny"), "y"),
    **dict.fromkeys(("line", "lines", "downtrack", "number_of_lines"), "y"),
    **dict.fromkeys(("x", "lon", "longitude", "easting", "column", "columns", "nx"), "x"),
    **dict.fromkeys(("sample", "samples", "crosstrack", "pixels_per_line"), "x"),
    **dict.fromkeys(("time", "t", "date"), "t"),
    "category": "c",
}
"""What axes of an array are usually called; any other may be that of the bands."""
_KNOWN = "EMIT, EnMAP, PRISMA L2C and L2D, AVIRIS-3 and -5, NEON AOP, Tanager, DESIS and PACE OCI"
_EVEN = 0.01  # of a pixel: how far a centre may lie from where even steps would put it


def describe_cube(path: Path, variable: str | None, band_axis: int | None) -> StoredScene:
    """Return the cube of a NetCDF, HDF5 or Zarr file: the only one, or the one that is named."""
    named, shapes = (variable or "").strip("/"), _shapes_of_cubes(path)
    groups = {name.rpartition("/")[0] for name in shapes}
    group = named.rpartition("/")[0] if named or len(groups) != 1 else groups.pop()
    # xarray warns of stores, and of grid mappings that a file names but lacks
    with warnings.catch_warnings(action="ignore"), _opened(path, group) as dataset:
        cubes = {
            f"{group}/{name}".lstrip("/"): array
            for name, array in dataset.data_vars.items()
            if array.ndim == 3 and array.dtype.kind in "iuf" and array.size
        }
        likely = [name for name, array in cubes.items() if not set(_axes_of(array)) & set("tc")]
        name = named or (likely[0] if len(likely) == 1 else "")
        axes = _sorted_axes(cubes[name], dataset, band_axis) if name in cubes else None
        if axes is None:
            shapes |= {name: array.shape for name, array in cubes.items()}
            has = ", ".join(f"{name} ({sides(shape)})" for name, shape in shapes.items())
            raise FileError(
                f"{path} is not a product that hsreject knows ({_KNOWN}), and which of its arrays "
                "with three axes is the scene, or which axis holds the bands, is open. It has: "
                f"{has or 'none'}. Name the scene with variable and the axis of its bands (0, 1 or "
                "2) with band_axis; a dataset that hsreject wrote is opened with open_dataset."
            )
        cube = cubes[name]
        if str(cube.attrs.get("_Unsigned", "false")).lower() == "true" and cube.dtype.kind == "i":
            raise FileError(
                f"{path}: '{name}' keeps unsigned numbers as signed ones (_Unsigned). Save it in "
                "an unsigned type."
            )
        dims = dict(zip(axes, map(str, cube.dims), strict=True))
        place, notes = _located(cube.isel({dims["b"]: 0}), dims)
        note_on_name = () if variable else (f"The scene is '{name}', the only cube in the file.",)
        lists = {
            str(name).lower(): values
            for name, values in dataset.variables.items()
            if values.dims == (dims["b"],) and values.dtype.kind in "iufb"
        }
        for values in [*lists.values()]:
            if values.attrs.get("standard_name") == "radiation_wavelength":
                lists["wavelength"] = values
        return StoredScene(
            product=f"the array '{variable or name}'",
            pixels=Pixels.of(_layer(path, name, cube, axes), **stated_values(cube)),
            bands=stated_bands(lists),
            place=place,
            notes=(*note_on_name, *notes),
        )


def _shapes_of_cubes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the arrays with three axes in all groups of an HDF5 file; none of another."""
    shapes: dict[str, tuple[int, ...]] = {}

    def note(name: str, entry: Any) -> None:
        if isinstance(entry, h5py.Dataset) and entry.ndim == 3 and entry.dtype.kind in "iuf":
            shapes[name] = entry.shape

    if _in_hdf5(path):
        with open_hdf5(path) as file:
            file.visititems(note)
    return shapes


def _in_hdf5(path: Path) -> bool:
    return not is_store(path) and starts_with(path, HDF5)


@contextmanager
def _opened(path: Path, group: str) -> Iterator[xr.Dataset]:
    """Give a group of a file as a dataset, pixels as they are stored and unread."""
    options: dict[str, Any] = {
        "chunks": None, "mask_and_scale": False, "decode_times": False, "decode_coords": "all",
    }  # fmt: skip
    if is_store(path):
        yield _opened_store(path, group, options)
    elif _in_hdf5(path):
        options |= {"engine": "h5netcdf", "group": group or None, "phony_dims": "sort"}
        # not the path: no lock, and a URL is read the same way
        with path.open("rb") as stream, xr.open_dataset(stream, **options) as dataset:
            yield dataset
    else:
        yield xr.open_dataset(path, engine="scipy", **options)


def _opened_store(path: Path, group: str, options: dict[str, Any]) -> xr.Dataset:
    """Return a group of a Zarr store as a dataset, also of one that is a bare array."""
    if find_spec("zarr") is None:
        raise FileError(f"{path} needs the package zarr. Install it: pip install zarr.")
    import zarr  # noqa: PLC0415  (an extra)

    root = zarr.open(str(path), mode="r")
    if not isinstance(root, zarr.Array):
        return xr.open_dataset(str(path), engine="zarr", group=group or None, **options)
    dims: Any = getattr(root.metadata, "dimension_names", None)
    dims = dims or root.attrs.get("_ARRAY_DIMENSIONS")
    array = xr.DataArray(da.from_zarr(root), dims=dims, name=path.stem, attrs=dict(root.attrs))
    return array.to_dataset()


def _axes_of(array: xr.DataArray) -> str:
    """Return what the axes of an array are by their names, such as "yxb"."""
    return "".join(_AXES.get(str(dim).lower(), "b") for dim in array.dims)


def _sorted_axes(cube: xr.DataArray, dataset: xr.Dataset, band_axis: int | None) -> str | None:
    """Return the axes of a cube: as a user says, by their names, or by the list of wavelengths."""
    axes = _axes_of(cube)
    if band_axis is None and sorted(axes) == sorted(AXES):
        return axes
    if band_axis is None:
        centres = next((dataset[n] for n in CENTRES if n in dataset.variables), None)
        size = 0 if centres is None or centres.ndim != 1 else centres.size
        band_axis = cube.shape.index(size) if cube.shape.count(size) == 1 else None
    if band_axis is None or band_axis not in range(-3, 3):
        return None
    others = ["y", "x"]
    others.insert(band_axis % 3, "b")
    return "".join(others)


def _layer(path: Path, name: str, cube: xr.DataArray, axes: str) -> Layer:
    """Return the pixels of a cube: HDF5 is read as that of products is."""
    if _in_hdf5(path):
        with open_hdf5(path) as file:
            return Layer.of_hdf5(file[name], axes)
    read: Any = partial(getitem, cube.variable)
    kind = "Zarr" if is_store(path) else "NetCDF"
    chunks = cube.encoding.get("chunks") or cube.encoding.get("chunksizes")
    return Layer(path, name, axes, cube.shape, cube.dtype, kind, read, chunks and tuple(chunks))


def _located(image: xr.DataArray, dims: Mapping[str, str]) -> Located:
    """Return the place that coordinates and the grid mapping of an image (y, x) say."""
    unknown = "The file does not say where the scene lies: no place on a map."
    down, across = (image.coords.get(dims[axis]) for axis in (schema.Y, schema.X))
    for centres in (down, across):
        if centres is not None and centres.size > 1 and not _evenly_spaced(centres.values):
            uneven = f"The coordinate {centres.name} is not evenly spaced: not used."
            return Located(None, (uneven, unknown))
    grid = Grid.of(image.rename({dims["y"]: schema.Y, dims["x"]: schema.X}))
    if grid.crs is None and down is not None and "degrees_north" in str(down.attrs.get("units")):
        note = "Latitude and longitude without a reference system: taken for WGS 84."
        return Located(replace(grid, crs=CRS.from_epsg(4326)), (note,))
    return Located(grid) if grid.georeferenced else Located(None, (unknown,))


def _evenly_spaced(centres: NDArray[Any]) -> bool:
    """Tell whether coordinates are even steps from the first to the last, up to rounding."""
    places = centres.astype(np.float64)
    even = np.linspace(places[0], places[-1], places.size)
    rounding = np.spacing(np.abs(centres).max()) if centres.dtype.kind == "f" else 0.5
    allowed = _EVEN * abs(even[1] - even[0]) + float(rounding)
    return bool(even[0] != even[-1]) and bool(np.all(np.abs(places - even) <= allowed))
