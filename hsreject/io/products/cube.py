"""Cubes of any origin in NetCDF, HDF5 and Zarr, which say what they are the CF way."""

from __future__ import annotations

import re
import warnings
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from numbers import Real
from operator import getitem
from typing import TYPE_CHECKING, Any

import dask.array as da
import h5py
import numpy as np
import pyproj
import xarray as xr
from affine import Affine
from rasterio.crs import CRS
from rasterio.errors import CRSError

from hsreject import schema
from hsreject.errors import FileError
from hsreject.files import starts_with
from hsreject.io.arrays.bare_arrays import sides
from hsreject.io.arrays.hdf5 import HDF5, hdf5_layer, open_hdf5
from hsreject.io.arrays.stored_pixels import AXES, Layer, Pixels
from hsreject.io.embeddings import TESSERA, check_scaled
from hsreject.io.grid import PixelGrid, names_system_elsewhere
from hsreject.io.lookup import Located
from hsreject.io.products.layout import CENTRES, stated_bands, stated_values
from hsreject.io.remote import is_store
from hsreject.io.stored_scene import StoredScene
from hsreject.registry import nearest

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from hsreject.io.wavelengths import BandInfo

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
_SYSTEM = ("spatial_ref", "crs_wkt", "grid_mapping_name")  # attributes of a grid mapping
_NORTH = re.compile(r"degrees?[ _]?n(orth)?", re.IGNORECASE)
_KILOMETRES = re.compile(r"km|kilomet(er|re)s?", re.IGNORECASE)
_EPSG = re.compile(r"(?:EPSG:)?(\d{4,6})", re.IGNORECASE)
_SCALES = "scales"  # the array of the scales of embeddings
_EVEN = 0.01  # of a pixel: how far a centre may lie from where even steps would put it


def describe_cube(path: Path, variable: str | None, band_axis: int | None) -> StoredScene:
    """Return the cube of a NetCDF, HDF5 or Zarr file: the only one, or the one that is named."""
    named, shapes = (variable or "").strip("/"), _shapes_in_groups(path)
    groups = {name.rpartition("/")[0] for name, shape in shapes.items() if _may_be_cube(shape)}
    group = named.rpartition("/")[0] if named or len(groups) != 1 else groups.pop()
    if group and not _has_group(path, group):
        group = ""
    # xarray warns of stores, and of grid mappings that a file names but lacks
    with warnings.catch_warnings(action="ignore"), _opened(path, group) as dataset:
        arrays = {
            f"{group}/{name}".lstrip("/"): array
            for name, array in dataset.data_vars.items()
            if array.ndim > 1 and array.dtype.kind in "iuf" and array.size
        }
        shapes |= {name: array.shape for name, array in arrays.items()}
        cubes = {name: array for name, array in arrays.items() if _may_be_cube(array.shape)}
        likely = [name for name, array in cubes.items() if not set(_axes_of(array)) & set("tc")]
        name = named or (likely[0] if len(likely) == 1 else "")
        scene = {name: cubes[name]} if name in cubes else {}
        if not (named or cubes):
            scene = _numbered(arrays)
        first = next(iter(scene.values()), None)
        axes = None if first is None else _sorted_axes(first, dataset, band_axis)
        if first is None or axes is None:
            known = {f"{group}/{name}".lstrip("/") for name in dataset.variables}
            raise FileError(_refusal(path, shapes, named, known))
        for name, array in scene.items():
            unsigned = str(array.attrs.get("_Unsigned", "false")).lower() == "true"
            if unsigned and array.dtype.kind == "i":
                raise FileError(
                    f"{path}: '{name}' keeps unsigned numbers as signed ones (_Unsigned). Save it "
                    "in an unsigned type."
                )
        place, notes = _located(first, axes, dataset)
        layers = _layers(path, scene, axes)
        if "b" in axes:
            product = f"the array '{name}'"
            values = stated_values(first)
            bands = _listed_bands(first.dims[axes.index("b")], dataset)
        else:
            product = f"the arrays '{next(iter(scene))}' to '{name}'"
            values = _values_of_images(scene)
            bands = _bands_of_images(scene)
        note = f"The scene is {product}, {_why(path, scene, shapes)}."
        scale = _pixel_scale(path, name, first, axes, dataset)
        if scale is not None:
            note, product = f"{note} Its bytes are times the array '{scale.name}'.", TESSERA
        return StoredScene(
            product=product,
            pixels=Pixels.of(*layers, **values, pixel_scale=scale),
            bands=bands,
            place=place,
            notes=notes if variable else (note, *notes),
        )


def _shapes_in_groups(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the arrays with two axes or more in the groups of an HDF5 file or a Zarr store."""
    shapes: dict[str, tuple[int, ...]] = {}

    def note(name: str, entry: Any) -> None:
        if isinstance(entry, h5py.Dataset) and entry.ndim > 1 and entry.dtype.kind in "iuf":
            shapes[name] = entry.shape

    if _in_hdf5(path):
        with open_hdf5(path) as file:
            file.visititems(note)
    elif is_store(path) and hasattr(root := _store(path), "groups"):
        for group, members in root.groups():
            of_group = {name: array for name, array in members.arrays() if array.ndim > 1}
            shapes |= {f"{group}/{name}": array.shape for name, array in of_group.items()}
    return shapes


def _may_be_cube(shape: tuple[int, ...]) -> bool:
    """Tell whether an array has three axes, beside one of length one."""
    return len(shape) == 3 or (len(shape) == 4 and 1 in shape)


def _numbered(arrays: Mapping[str, xr.DataArray]) -> dict[str, xr.DataArray]:
    """Return the images that are the bands of a scene: Band1, Band2, as GDAL writes NetCDF."""
    named = {name: re.fullmatch(r"(.*?)(\d+)", name) for name in arrays if arrays[name].ndim == 2}
    parts = {name: match.groups() for name, match in named.items() if match}
    alike = {(stem, arrays[name].dims, arrays[name].dtype) for name, (stem, _) in parts.items()}
    if len(parts) < 2 or len(alike) > 1:
        return {}
    return {name: arrays[name] for name in sorted(parts, key=lambda name: int(parts[name][1]))}


def _why(path: Path, scene: Mapping[str, xr.DataArray], shapes: Mapping[str, Any]) -> str:
    """Return why arrays were taken for the scene, in words."""
    if len(scene) > 1:
        return "in the order of their numbers"
    others = [name for name, shape in shapes.items() if _may_be_cube(shape) and name not in scene]
    if others:
        return f"but variable can name another: {', '.join(others)}"
    return f"the only cube {'at the top of the store' if is_store(path) else 'in the file'}"


def _refusal(path: Path, shapes: Mapping[str, Any], named: str, known: set[str]) -> str:
    """Return why no array of a file was taken, and what to do."""
    cubes = {name: shape for name, shape in shapes.items() if len(shape) > 2}
    has = ", ".join(f"{name} ({sides(shape)})" for name, shape in cubes.items()) or "none"
    if named and named not in known:
        hint = nearest(named, list(cubes))
        return f"There is no array '{named}' in {path}. It has: {has}.{hint}"
    asked = [named] if named in cubes else [*cubes]
    if asked and not any(_may_be_cube(cubes[name]) for name in asked):
        return (
            f"{path}: a scene has three axes, {asked[0]} ({sides(cubes[asked[0]])}) has more. If "
            "one holds dates, select one date, such as with isel(time=0) of xarray, and save it."
        )
    return (
        f"{path} is not a product that hsreject knows ({_KNOWN}), and which of its arrays with "
        f"three axes is the scene, or which axis holds the bands, is open. It has: {has}. Name the "
        "scene with variable and the axis of its bands (0, 1, ...) with band_axis; a dataset that "
        "hsreject wrote is opened with open_dataset."
    )


def _in_hdf5(path: Path) -> bool:
    return not is_store(path) and starts_with(path, HDF5)


def _has_group(path: Path, group: str) -> bool:
    """Tell whether a file has a group; classic NetCDF has none."""
    if is_store(path):
        root = _store(path)
        return hasattr(root, "groups") and group in root
    if not _in_hdf5(path):
        return False
    with open_hdf5(path) as file:
        return group in file


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
        with (
            path.open("rb") as stream,
            _named_axes(path),
            xr.open_dataset(stream, **options) as one,
        ):
            yield one
    else:
        yield xr.open_dataset(path, engine="scipy", **options)


@contextmanager
def _named_axes(path: Path) -> Iterator[None]:
    """Say in a sentence what h5netcdf does not read: an array of which some axes have a name."""
    try:
        yield
    except ValueError as error:
        if "unlabeled" not in str(error):
            raise
        raise FileError(
            f"{path}: only some axes of an array have a name (dimension scale). Give a scale to "
            "all of its axes, or to none."
        ) from None


def _store(path: Path) -> Any:
    """Return the group or the array that a Zarr store is."""
    if find_spec("zarr") is None:
        raise FileError(f"{path} needs the package zarr. Install it: pip install zarr.")
    import zarr  # noqa: PLC0415  (an extra)

    return zarr.open(str(path), mode="r")


def _opened_store(path: Path, group: str, options: dict[str, Any]) -> xr.Dataset:
    """Return a group of a Zarr store as a dataset, also of one that is a bare array."""
    root = _store(path)
    if hasattr(root, "groups"):
        return xr.open_dataset(str(path), engine="zarr", group=group or None, **options)
    dims: Any = getattr(root.metadata, "dimension_names", None)
    dims = dims or root.attrs.get("_ARRAY_DIMENSIONS")
    array = xr.DataArray(da.from_zarr(root), dims=dims, name=path.stem, attrs=dict(root.attrs))
    return array.to_dataset()


def _axes_of(array: xr.DataArray) -> str:
    """Return what the axes of an array are by their names, such as "yxb".

    Of four, one of length one is called 1: that of time, if there is one.
    """
    axes = [_AXES.get(str(dim).lower(), "b") for dim in array.dims]
    if array.ndim == 4 and 1 in array.shape:
        short = [place for place, size in enumerate(array.shape) if size == 1]
        axes[min(short, key=lambda place: axes[place] != "t")] = "1"
    return "".join(axes)


def _sorted_axes(cube: xr.DataArray, dataset: xr.Dataset, band_axis: int | None) -> str | None:
    """Return the axes of a cube: as a user says, by their names, or by the list of wavelengths."""
    axes, places = _axes_of(cube), range(cube.ndim)
    if cube.ndim == 2:
        return "xy" if axes == "xy" else "yx"
    by_name = sorted(axes.replace("1", "")) == sorted(AXES)
    if band_axis is None and by_name:
        return axes
    if band_axis is None:
        centres = next((dataset[n] for n in CENTRES if n in dataset.variables), None)
        size = 0 if centres is None or centres.ndim != 1 else centres.size
        band_axis = cube.shape.index(size) if cube.shape.count(size) == 1 else None
    in_range = band_axis is not None and -cube.ndim <= band_axis < cube.ndim
    if band_axis is None or not in_range or axes[band_axis] == "1":
        return None
    if by_name and axes[band_axis] == "b":
        return axes
    others = iter("yx")
    return "".join(
        "b" if place == places[band_axis] else "1" if axes[place] == "1" else next(others)
        for place in places
    )


def _listed_bands(dim: Hashable, dataset: xr.Dataset) -> BandInfo:
    """Return what lists along the axis of the bands say."""
    lists = {
        str(name).lower(): values
        for name, values in dataset.variables.items()
        if values.dims == (dim,) and values.dtype.kind in "iufb"
    }
    for values in [*lists.values()]:
        if values.attrs.get("standard_name") == "radiation_wavelength":
            lists["wavelength"] = values
    return stated_bands(lists)


def _bands_of_images(images: Mapping[str, xr.DataArray]) -> BandInfo:
    """Return what the attributes of bands that are arrays of their own say."""
    attrs = [image.attrs for image in images.values()]
    units = {"units": attrs[0].get("wavelength_units", "")}
    lists = {
        key: xr.Variable("band", [one[key] for one in attrs], units)
        for key in ("wavelength", "fwhm")
        if all(isinstance(one.get(key), Real) for one in attrs)
    }
    return stated_bands(lists)


def _values_of_images(images: Mapping[str, xr.DataArray]) -> dict[str, Any]:
    """Return what bands that are arrays of their own say of their values."""
    stated = [stated_values(image) for image in images.values()]
    scale = {key: np.array([one[key] for one in stated]) for key in ("gain", "offset")}
    others = dict.fromkeys(value for one in stated for value in one["more_fills"])
    return {**scale, "fill": tuple(one["fill"] for one in stated), "more_fills": tuple(others)}


def _layers(path: Path, scene: Mapping[str, xr.DataArray], axes: str) -> list[Layer]:
    """Return the pixels of arrays: HDF5 is read as that of products is."""
    if _in_hdf5(path):
        with open_hdf5(path) as file:
            return [hdf5_layer(file[name], axes) for name in scene]
    kind = "Zarr" if is_store(path) else "NetCDF"

    def layer(name: str, array: xr.DataArray) -> Layer:
        read: Any = partial(getitem, array.variable)
        chunks = array.encoding.get("chunks") or array.encoding.get("chunksizes")
        return Layer(path, name, axes, array.shape, array.dtype, kind, read, chunks and (*chunks,))

    return [layer(name, array) for name, array in scene.items()]


def _pixel_scale(
    path: Path, name: str, cube: xr.DataArray, axes: str, dataset: xr.Dataset
) -> Layer | None:
    """Return the scales of codes of one byte, an array beside theirs; None of numbers."""
    if cube.dtype != np.int8 or "b" not in axes:
        return None
    beside = name.removesuffix(str(cube.name)) + _SCALES
    wanted = [dim for dim, axis in zip(cube.dims, axes, strict=True) if axis != "b"]
    scale = dataset.get(_SCALES)
    if scale is None or [*scale.dims] != wanted or scale.dtype.kind != "f":
        n_bands = cube.shape[axes.index("b")]
        check_scaled(path, cube.dtype, n_bands, looked_for=f"the array '{beside}'")
        return None
    (layer,) = _layers(path, {beside: scale}, axes.replace("b", ""))
    return layer


def _located(cube: xr.DataArray, axes: str, dataset: xr.Dataset) -> Located:
    """Return the place that coordinates and the grid mapping of a cube say."""
    unknown = "The file does not say where the scene lies: no place on a map."
    dims, notes = dict(zip(axes, map(str, cube.dims), strict=True)), list[str]()
    for dim in (dims["y"], dims["x"]):
        centres = cube.coords.get(dim)
        if centres is not None and centres.size > 1 and not _evenly_spaced(centres.values):
            uneven = f"The coordinate {dim} is not evenly spaced: not used."
            return Located(None, (uneven, unknown))
    image = cube.isel({dim: 0 for axis, dim in dims.items() if axis not in "yx"})
    image = image.rename({dims["y"]: schema.Y, dims["x"]: schema.X})
    if mapping := _grid_mapping(cube, dims["x"], dataset):
        image = image.assign_coords(spatial_ref=((), 0, mapping))
        image.encoding["grid_mapping"] = "spatial_ref"
    if not _system_understood(image):
        image = image.drop_vars("spatial_ref", errors="ignore")
        image.attrs = {name: value for name, value in image.attrs.items() if name != "crs"}
        notes.append("The reference system of the file is not understood: not used.")
    crs = image.rio.crs
    metres = crs.linear_units_factor[1] if crs is not None and crs.is_projected else 1.0
    units = {dim: str(image[dim].attrs.get("units")) for dim in (schema.Y, schema.X)}
    for dim, unit in units.items():
        if _KILOMETRES.fullmatch(unit):
            image = image.assign_coords({dim: image[dim].values * np.float64(1000 / metres)})
    grid = PixelGrid.of(image)
    if grid.transform == Affine.identity():  # a reference system alone is not a place
        return Located(None, (*notes, unknown))
    if grid.crs is None and _NORTH.fullmatch(units[schema.Y]):
        grid = replace(grid, crs=CRS.from_epsg(4326))
        notes.append("Latitude and longitude without a reference system: taken for WGS 84.")
    elif grid.crs is None:
        notes.append("The file has coordinates, but does not say their reference system.")
    return Located(grid, tuple(notes))


def _system_understood(image: xr.DataArray) -> bool:
    """Tell whether an array has a reference system that can be read from its text, or none."""
    stated = image.coords["spatial_ref"].attrs if "spatial_ref" in image.coords else {}
    if names_system_elsewhere(stated) or names_system_elsewhere(image.attrs):
        return False
    try:
        image.rio.crs  # noqa: B018  which reads the text
    except (CRSError, pyproj.exceptions.CRSError):
        return False
    return True


def _grid_mapping(cube: xr.DataArray, across: str, dataset: xr.Dataset) -> dict[str, Any]:
    """Return what says the reference system: what a cube names, the only one, or the root."""
    stated = str(cube.encoding.get("grid_mapping", cube.attrs.get("grid_mapping", "")))
    # CF 1.7 has "crs: x y other: lat lon", too
    extended = re.search(rf"(\S+?)\s*:[^:]*\b{re.escape(across)}\b", stated)
    mappings = {
        str(name): values.attrs
        for name, values in dataset.variables.items()
        if not values.attrs.keys().isdisjoint(_SYSTEM)
    }
    named = mappings.get(extended[1] if extended else stated)
    if named is None and len(mappings) == 1:
        (named,) = mappings.values()
    return (
        named
        or {key: dataset.attrs[key] for key in _SYSTEM[:2] if key in dataset.attrs}
        or _proj_system(cube.attrs | dataset.attrs)
    )


def _proj_system(attrs: Mapping[Hashable, Any]) -> dict[str, Any]:
    """Return the reference system that the convention proj: of Zarr states by its EPSG code."""
    code = _EPSG.fullmatch(str(attrs.get("proj:code", attrs.get("proj:epsg", ""))))
    return {} if code is None else {"crs_wkt": CRS.from_epsg(int(code[1])).to_wkt()}


def _evenly_spaced(centres: NDArray[Any]) -> bool:
    """Tell whether coordinates are even steps from the first to the last, up to rounding."""
    places = centres.astype(np.float64)
    even = np.linspace(places[0], places[-1], places.size)
    rounding = np.spacing(np.abs(centres).max()) if centres.dtype.kind == "f" else 0.5
    allowed = _EVEN * abs(even[1] - even[0]) + float(rounding)
    return bool(even[0] != even[-1]) and bool(np.all(np.abs(places - even) <= allowed))
