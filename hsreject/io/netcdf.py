"""Datasets: written as NetCDF and opened again as they were; cubes in NetCDF, HDF5 and Zarr."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5netcdf
import h5py
import numpy as np
import xarray as xr
from dask.base import is_dask_collection
from rasterio.crs import CRS
from xarray.backends import BackendArray, H5NetCDFStore
from xarray.core import indexing

from hsreject import schema
from hsreject.errors import FileError, InputError
from hsreject.files import check_heaps, existing, reading, replacing, starts_with
from hsreject.io.arrays import AXES, Layer, file_length, open_hdf5, sides
from hsreject.io.grid import Grid
from hsreject.io.products.layout import Product, cf_fill, cf_scale, text
from hsreject.io.rasters.raster import HDF5
from hsreject.io.remote import RemotePath, is_store

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GRID_MAPPING = "spatial_ref"


def write_dataset(
    dataset: xr.Dataset, path: str | PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a dataset as NetCDF that follows the CF conventions.

    Class tables become CF flags, CRS and transform a grid mapping, the nodata of label maps the
    fill value. Lazy arrays are computed and written block by block. The file appears under its name
    only when it is complete. Read it with :func:`open_dataset`, or with any NetCDF program.

    Parameters
    ----------
    dataset : Dataset
        Result maps, fields or cubes with the dims of `hsreject.schema`.
    path : path
        The file to make, ending in ``.nc``; its folder must exist.
    overwrite : bool
        Replace a file that is already there.

    See Also
    --------
    hsreject.open_dataset : its inverse.
    hsreject.write_map : files for GIS programs.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from hsreject import open_tree, write_tree
    >>> from hsreject import open_dataset, write_dataset
    >>> import tempfile
    >>> labels = xr.DataArray(np.array([[1, 255]], dtype="uint8"), dims=("y", "x"), name="label")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_dataset(labels.to_dataset(), f"{folder}/result.nc")
    ...     open_dataset(f"{folder}/result.nc")["label"].values
    array([[  1, 255]], dtype=uint8)
    """
    target = Path(path)
    if not isinstance(dataset, xr.Dataset):
        raise InputError(
            f"write_dataset takes an xarray.Dataset (got {type(dataset).__name__}). "
            "Make one with .to_dataset(name=...)."
        )
    if target.suffix.lower() not in {".nc", ".nc4"}:
        raise InputError(f"A dataset is written as NetCDF: '{target.name}' must end in .nc.")
    ready, encoding = _ready(dataset)
    ready.attrs = {"Conventions": "CF-1.11", **ready.attrs}
    with replacing(target, overwrite=overwrite) as work:
        if is_dask_collection(ready):
            ready.to_netcdf(work, engine="h5netcdf", encoding=encoding)
            return
        # On a full disk HDF5 crashes the process, so the file is made in memory and then written.
        made = io.BytesIO()
        with h5netcdf.File(made, "w") as file:
            ready.dump_to_store(H5NetCDFStore(file), encoding=encoding)
        work.write_bytes(made.getbuffer())


def write_tree(tree: xr.DataTree, path: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write a tree of datasets, such as the result of :func:`hsreject.run`, as one NetCDF file.

    Each dataset is written as :func:`write_dataset` writes it, into the group of its name; the root
    is what :func:`open_dataset` opens. Read it with :func:`open_tree`.

    Parameters
    ----------
    tree : DataTree
        The datasets, in memory.
    path : path
        The file to make, ending in ``.nc``; its folder must exist.
    overwrite : bool
        Replace a file that is already there.

    See Also
    --------
    hsreject.open_tree : its inverse.
    hsreject.run : makes such a tree.

    Examples
    --------
    >>> import xarray as xr
    >>> from hsreject import open_tree, write_tree
    >>> import tempfile
    >>> tree = xr.DataTree.from_dict({"/": xr.Dataset({"x": 1}), "/part": xr.Dataset({"x": 2})})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_tree(tree, f"{folder}/result.nc")
    ...     open_tree(f"{folder}/result.nc").load()["part/x"].item()
    2
    """
    made = io.BytesIO()
    with h5netcdf.File(made, "w") as file:
        for node in tree.subtree:
            ready, encoding = _ready(node.to_dataset(inherit=False))
            group = file if node is tree else file.create_group(node.relative_to(tree))
            ready.dump_to_store(H5NetCDFStore(group), encoding=encoding)
        file.attrs["Conventions"] = "CF-1.11"
    with replacing(Path(path), overwrite=overwrite) as work:
        work.write_bytes(made.getbuffer())


def _ready(dataset: xr.Dataset) -> tuple[xr.Dataset, dict[str, dict[str, Any]]]:
    """Return a dataset as NetCDF can hold it, and how its variables are encoded."""
    ready = _with_grid_mapping(dataset)
    ready = ready.assign({name: _with_flags(array) for name, array in ready.data_vars.items()})
    ready.attrs = _plain(dataset.attrs, "the dataset")
    return ready, {str(name): _encoding(ready[name]) for name in ready.data_vars}


def open_dataset(path: str | PathLike[str], *, chunks: Any = None) -> xr.Dataset:
    """Open a dataset that :func:`write_dataset` wrote, as it was.

    Labels stay integers with their nodata value; xarray's own reader would turn them into floats.

    Parameters
    ----------
    path : path
        A NetCDF file.
    chunks : optional
        As for ``xarray.open_dataset``: None loads nothing until it is used; ``"auto"`` or sizes
        by dimension make lazy dask arrays.

    See Also
    --------
    hsreject.write_dataset : its inverse.
    hsreject.open_tree : the result of a run.
    """
    found = existing(path)
    with reading(found):
        check_heaps(found)
        dataset = xr.open_dataset(
            found, engine="h5netcdf", mask_and_scale=False, decode_coords="all", chunks=chunks
        )
    _drop_fill_values(dataset, path)
    return dataset


def open_tree(path: str | PathLike[str]) -> xr.DataTree:
    """Open a tree that :func:`write_tree` wrote, such as the ``result.nc`` of a run, as it was.

    Parameters
    ----------
    path : path
        A NetCDF file.

    See Also
    --------
    hsreject.write_tree : its inverse.
    hsreject.run : makes such a tree.
    """
    found = existing(path)
    with reading(found):
        check_heaps(found)
        tree = xr.open_datatree(found, engine="h5netcdf", mask_and_scale=False, decode_coords="all")
    for node in tree.subtree:
        _drop_fill_values(node, path)
    return tree


def _drop_fill_values(dataset: xr.Dataset | xr.DataTree, path: str | PathLike[str]) -> None:
    """Drop what marks missing labels, which stay as they are; floats are marked by NaN alone."""
    for variable in dataset.data_vars.values():
        fill = variable.attrs.pop("_FillValue", None)
        if fill is not None and variable.dtype.kind == "f" and not np.isnan(fill):
            raise FileError(
                f"'{variable.name}' in {path} marks missing values by {fill}, not by NaN: hsreject "
                "did not write it. Open it with xarray.open_dataset."
            )


def _with_grid_mapping(dataset: xr.Dataset) -> xr.Dataset:
    maps = [
        array for array in dataset.data_vars.values() if set(schema.MAP_DIMS) <= set(array.dims)
    ]
    grid = Grid.of(maps[0]) if maps else None
    if grid is None or not grid.georeferenced:
        return dataset
    placed: xr.Dataset = dataset.rio.write_transform(
        grid.transform, grid_mapping_name=_GRID_MAPPING
    )
    if grid.crs is not None:
        placed = placed.rio.write_crs(grid.crs, grid_mapping_name=_GRID_MAPPING)
    if schema.X in placed.coords:
        placed = placed.rio.write_coordinate_system()
    return placed


def _with_flags(array: xr.DataArray) -> xr.DataArray:
    attrs = _plain(array.attrs, f"'{array.name}'")
    if "flag_values" in attrs and array.dtype.kind in "iu":
        # CF wants flags in the type of the variable
        attrs["flag_values"] = np.asarray(attrs["flag_values"], dtype=array.dtype)
    for name in ("_FillValue", "grid_mapping"):  # the encoding says these
        attrs.pop(name, None)
    flagged = array.copy(deep=False)
    flagged.attrs = attrs
    return flagged


def _encoding(array: xr.DataArray) -> dict[str, Any]:
    encoding: dict[str, Any] = {"zlib": True, "complevel": 4} if array.ndim > 1 else {}
    if array.dims == schema.MAP_DIMS and array.dtype.kind == "u":
        encoding["_FillValue"] = array.dtype.type(schema.nodata_label(array.dtype))
    if _GRID_MAPPING in array.coords and set(schema.MAP_DIMS) <= set(array.dims):
        encoding["grid_mapping"] = _GRID_MAPPING
    return encoding


def _plain(attrs: Mapping[Any, Any], owner: str) -> dict[str, Any]:
    """Return attributes in types that NetCDF has: truth values become 0 and 1."""
    plain: dict[str, Any] = {}
    for name, value in attrs.items():
        if isinstance(value, bool | np.bool_):
            plain[str(name)] = int(value)
        elif isinstance(value, str | int | float | list | tuple | np.ndarray | np.number):
            plain[str(name)] = value
        else:
            raise InputError(
                f"NetCDF cannot hold the attribute '{name}' of {owner}: it is a "
                f"{type(value).__name__}. Turn it into text, for example with json.dumps."
            )
    return plain


# Cubes of any origin, which say what they are the CF way.

_Y = ("y", "lat", "latitude", "northing", "row", "rows", "line", "lines", "downtrack", "ny")
_X = ("x", "lon", "longitude", "easting", "column", "columns", "sample", "samples", "crosstrack")
_AXES = dict.fromkeys((*_Y, "number_of_lines"), "y") | dict.fromkeys((*_X, "nx"), "x")
_AXES |= {"pixels_per_line": "x", "time": "t", "t": "t", "date": "t", "category": "c"}
"""What axes of an array are usually called; any other may be that of the bands."""
_KNOWN = "EMIT, EnMAP, PRISMA L2C and L2D, AVIRIS-3 and -5, NEON AOP, Tanager, DESIS and PACE OCI"
_CENTRES = ("wavelength", "wavelengths", "wl", "wave_length", "center_wavelength")
_EVEN = 0.01  # of a pixel: how far a centre may lie from where even steps would put it


def describe_cube(path: Path, variable: str | None, band_axis: int | None) -> Product:
    """Return the cube of a NetCDF, HDF5 or Zarr file: the only one, or the one that is named."""
    with _quiet(), _opened(path, variable) as (dataset, group):
        cubes = {
            str(name): array
            for name, array in dataset.data_vars.items()
            if array.ndim == 3 and array.dtype.kind in "iuf" and array.size
        }
        leaf = None if variable is None else variable.rpartition("/")[2]
        likely = [name for name, array in cubes.items() if not set(_axes_of(array)) & set("tc")]
        name = leaf or (likely[0] if len(likely) == 1 else None)
        if name not in cubes:
            raise _no_cube(path, variable, cubes)
        cube = cubes[name]
        if str(cube.attrs.get("_Unsigned", "false")).lower() == "true" and cube.dtype.kind == "i":
            raise FileError(
                f"{path}: '{name}' keeps unsigned numbers as signed ones (_Unsigned). Save it in "
                "an unsigned type."
            )
        notes = [] if variable else [f"The scene is '{name}', the only cube in the file."]
        axes = _sorted_axes(cube, dataset, band_axis)
        if axes is None and variable is None and band_axis is None:
            raise _no_cube(path, variable, cubes)
        if axes is None:
            raise InputError(
                f"Which axis of '{name}' ({sides(cube.shape)}) holds the bands? "
                f"Pass band_axis 0, 1 or 2 (got {band_axis})."
            )
        dims = dict(zip(axes, map(str, cube.dims), strict=True))
        layer = _layer(path, group, name, cube, axes)
        place = _place(cube.isel({dims["b"]: 0}), dims, notes)
        if place is None:
            notes.append("The file does not say where the scene lies: no place on a map.")
        return Product(
            name=f"the array '{variable or name}'",
            layers=(layer,),
            fill=cf_fill(cube),
            gain=cf_scale(cube)[0],
            offset=cf_scale(cube)[1],
            place=place,
            notes=tuple(notes),
            **_stated_bands(dataset, cube, dims["b"]),
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what xarray says of stores, and of grid mappings that a file names but lacks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Failed to open Zarr store with consol", RuntimeWarning)
        warnings.filterwarnings("ignore", "Variable.s. referenced in", UserWarning)
        yield


@contextmanager
def _opened(path: Path, variable: str | None) -> Iterator[tuple[xr.Dataset, str]]:
    """Give the dataset that holds a cube, pixels as they are stored and unread, and its group."""
    options: dict[str, Any] = {
        "chunks": None, "mask_and_scale": False, "decode_times": False, "decode_coords": "all",
    }  # fmt: skip
    group = "" if variable is None else variable.strip("/").rpartition("/")[0]
    if is_store(path):
        yield _opened_store(path, group, options), group
    elif starts_with(path, b"CDF\5"):
        raise FileError(
            f"{path} is a NetCDF file of the kind '64-bit data', which is not read. Convert it: "
            "nccopy -k nc4 OLD.nc NEW.nc"
        )
    elif starts_with(path, b"CDF"):
        yield xr.open_dataset(path, engine="scipy", **options), group
    else:
        with path.open("rb") as stream:  # not the path: no lock, and a URL is read the same way
            if variable is None:
                group = _only_group(stream)
            options |= {"group": group or None, "phony_dims": "sort"}
            with xr.open_dataset(stream, engine="h5netcdf", **options) as dataset:
                yield dataset, group


def _opened_store(path: Path, group: str, options: dict[str, Any]) -> xr.Dataset:
    """Return a Zarr store as a dataset, also one that is a bare array."""
    if find_spec("zarr") is None:
        raise FileError(f"{path} needs the package zarr. Install it: pip install 'hsreject[zarr]'.")
    import zarr  # noqa: PLC0415  (an extra)

    address = path.url if isinstance(path, RemotePath) else str(path)
    root = zarr.open(address, mode="r")
    if not isinstance(root, zarr.Array):
        return xr.open_dataset(address, engine="zarr", group=group or None, **options)
    dims = getattr(root.metadata, "dimension_names", None) or root.attrs.get("_ARRAY_DIMENSIONS")
    named = dims or [f"axis_{axis}" for axis in range(root.ndim)]
    lazy = indexing.LazilyIndexedArray(_ZarrPixels(root))
    attrs = {key: value for key, value in root.attrs.items() if key != "_ARRAY_DIMENSIONS"}
    variable = xr.Variable(named, lazy, attrs, encoding={"chunks": root.chunks})
    return xr.Dataset({path.stem: variable})


class _ZarrPixels(BackendArray):
    """A bare array of a Zarr store, which xarray reads when it is needed."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.BASIC
        return indexing.explicit_indexing_adapter(key, self.shape, support, self.array.__getitem__)


def _only_group(stream: Any) -> str:
    """Return the group of an HDF5 file that has an array with three axes, if only one has."""
    groups: set[str] = set()

    def note(name: str, entry: Any) -> None:
        if isinstance(entry, h5py.Dataset) and entry.ndim == 3 and entry.dtype.kind in "iuf":
            groups.add(name.rpartition("/")[0])

    with h5py.File(stream, "r") as file:
        file.visititems(note)
    stream.seek(0)
    return groups.pop() if len(groups) == 1 else ""


def _no_cube(path: Path, variable: str | None, cubes: Mapping[str, xr.DataArray]) -> FileError:
    has = ", ".join(f"{name} ({sides(array.shape)})" for name, array in cubes.items())
    if variable is not None:
        return FileError(
            f"{path} has no array '{variable}' with three axes. It has: {has or 'none'}."
        )
    if not has:
        return FileError(
            f"{path} is a file without a scene in it: no array with three axes. A dataset that "
            "hsreject wrote is opened with open_dataset."
        )
    return FileError(
        f"{path} is not a product that hsreject knows ({_KNOWN}), and which of its arrays is the "
        f"scene is open. It has: {has}. Name the scene with variable and, if its axes are not "
        "named, the axis of its bands (0, 1 or 2) with band_axis; a dataset that hsreject wrote is "
        "opened with open_dataset."
    )


def _axes_of(array: xr.DataArray) -> str:
    """Return what the axes of an array are by their names, such as "yxb"."""
    return "".join(_AXES.get(str(dim).lower(), "b") for dim in array.dims)


def _sorted_axes(cube: xr.DataArray, dataset: xr.Dataset, band_axis: int | None) -> str | None:
    """Return the axes of a cube: as a user says, by their names, or by the list of wavelengths."""
    axes = _axes_of(cube)
    if band_axis is None and sorted(axes) == sorted(AXES):
        return axes
    if band_axis is None:
        centres = next((dataset[n] for n in _CENTRES if n in dataset.variables), None)
        size = 0 if centres is None or centres.ndim != 1 else centres.size
        band_axis = cube.shape.index(size) if cube.shape.count(size) == 1 else None
    if band_axis is None or band_axis not in range(-3, 3):
        return None
    others = ["y", "x"]
    others.insert(band_axis % 3, "b")
    return "".join(others)


def _layer(path: Path, group: str, name: str, cube: xr.DataArray, axes: str) -> Layer:
    """Return the pixels of a cube: HDF5 is read as that of products is."""
    if not is_store(path) and starts_with(path, HDF5):
        with open_hdf5(path) as file:
            return Layer.of_hdf5(file[f"{group}/{name}"], axes)
    chunks = cube.encoding.get("chunks") or cube.encoding.get("chunksizes")
    kind = "Zarr" if is_store(path) else "NetCDF"
    known = (path, name, axes, cube.shape, cube.dtype, kind, partial(_read_variable, cube.variable))
    return Layer(*known, chunks and tuple(chunks), file_length(path))


def _read_variable(variable: xr.Variable, key: tuple[slice, ...]) -> NDArray[Any]:
    return np.asarray(variable[key])


def _stated_bands(dataset: xr.Dataset, cube: xr.DataArray, dim: str) -> dict[str, Any]:
    """Return what a dataset says of the bands of a cube, as a product does."""
    along = {str(n): v for n, v in dataset.variables.items() if v.dims == (dim,)}
    by_name = {name.lower(): name for name in along}
    named = [by_name[name] for name in (*_CENTRES, "wavelength_3d") if name in by_name]
    said = [n for n, v in along.items() if v.attrs.get("standard_name") == "radiation_wavelength"]
    centre = next((along[n] for n in (*said, *named) if along[n].dtype.kind in "iuf"), None)
    width = next((along[by_name[n]] for n in ("fwhm",) if n in by_name), None)
    good = next(
        (along[by_name[n]] for n in ("good_band", "good_wavelengths") if n in by_name), None
    )
    return {
        "wavelength": None if centre is None else centre.values.astype(np.float64),
        "unit": "" if centre is None else text(centre.attrs.get("units")),
        "fwhm": None if width is None or centre is None else width.values.astype(np.float64),
        "fwhm_unit": None if width is None else text(width.attrs.get("units")) or None,
        "good": None if good is None else good.values.astype(bool),
    }


def _place(image: xr.DataArray, dims: Mapping[str, str], notes: list[str]) -> Grid | None:
    """Return the place that coordinates and the grid mapping of an image (y, x) say."""
    down, across = (image.coords.get(dims[axis]) for axis in (schema.Y, schema.X))
    for centres in (down, across):
        if centres is None or centres.size < 2:
            continue
        if not _evenly_spaced(centres.values):
            notes.append(f"The coordinate {centres.name} is not evenly spaced: not used.")
            return None
    grid = Grid.of(image.rename({dims["y"]: schema.Y, dims["x"]: schema.X}))
    if grid.crs is None and down is not None and "degrees_north" in str(down.attrs.get("units")):
        notes.append("Latitude and longitude without a reference system: taken for WGS 84.")
        grid = replace(grid, crs=CRS.from_epsg(4326))
    return grid if grid.georeferenced else None


def _evenly_spaced(centres: NDArray[Any]) -> bool:
    """Tell whether coordinates are even steps from the first to the last, but for rounding."""
    places = centres.astype(np.float64)
    even = np.linspace(places[0], places[-1], places.size)
    rounding = np.spacing(np.abs(centres).max()) if centres.dtype.kind == "f" else 0.5
    allowed = _EVEN * abs(even[1] - even[0]) + float(rounding)
    return bool(even[0] != even[-1]) and bool(np.all(np.abs(places - even) <= allowed))
