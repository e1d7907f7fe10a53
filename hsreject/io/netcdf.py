"""Datasets: written as NetCDF that follows the CF conventions, and opened again as they were."""

from __future__ import annotations

import io
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import h5netcdf
import numpy as np
import xarray as xr
from dask.base import is_dask_collection
from xarray.backends import H5NetCDFStore

from hsreject import schema
from hsreject.errors import FileError, InputError
from hsreject.files import existing, reading, replacing
from hsreject.io.arrays.hdf5 import check_hdf5
from hsreject.io.arrays.stored_pixels import check_claim, unread
from hsreject.io.grid import PixelGrid, names_system_elsewhere

_GRID_MAPPING = "spatial_ref"
_AS_STORED: dict[str, Any] = {
    "engine": "h5netcdf", "mask_and_scale": False, "decode_coords": "all",
}  # fmt: skip


def write_dataset(
    dataset: xr.Dataset, path: str | PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write a dataset as NetCDF that follows the CF conventions.

    Class tables become CF flags, CRS and transform a grid mapping, the nodata of label maps the
    fill value. Lazy arrays are written block by block. The file appears when it is complete.

    Parameters
    ----------
    dataset : Dataset
        Result maps, fields or cubes with the dims of `hsreject.schema`.
    path : path
        The file to make, ending in ``.nc``; its folder must exist.
    overwrite : bool
        Replace a file that is already there.

    Returns
    -------
    Path
        The file.

    See Also
    --------
    hsreject.open_dataset : its inverse.
    hsreject.write_map : files for GIS programs.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from hsreject import open_dataset, write_dataset
    >>> import tempfile
    >>> labels = xr.DataArray(np.array([[1, 255]], dtype="uint8"), dims=("y", "x"), name="label")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_dataset(labels.to_dataset(), f"{folder}/result.nc")
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
    if not is_dask_collection(dataset):
        return write_tree(xr.DataTree(dataset), target, overwrite=overwrite)
    ready = _ready(dataset)
    ready.attrs = {"Conventions": "CF-1.11", **ready.attrs}
    with replacing(target, overwrite=overwrite) as work:
        ready.to_netcdf(work, engine="h5netcdf")
    return target


def write_tree(tree: xr.DataTree, path: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Write a tree of datasets, such as the result of :func:`hsreject.run`, as one NetCDF file.

    Each dataset is written as :func:`write_dataset` writes it, into the group of its name.

    Parameters
    ----------
    tree : DataTree
        The datasets, in memory.
    path : path
        The file to make, ending in ``.nc``; its folder must exist.
    overwrite : bool
        Replace a file that is already there.

    Returns
    -------
    Path
        The file.

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
    ...     _ = write_tree(tree, f"{folder}/result.nc")
    ...     open_tree(f"{folder}/result.nc").load()["part/x"].item()
    2
    """
    # On a full disk HDF5 crashes the process, so the file is made in memory and then written.
    memory = io.BytesIO()
    with h5netcdf.File(memory, "w") as file:
        for node in tree.subtree:
            group = file if node is tree else file.create_group(node.relative_to(tree))
            _ready(node.to_dataset(inherit=False)).dump_to_store(H5NetCDFStore(group))
        file.attrs["Conventions"] = "CF-1.11"
    target = Path(path)
    with replacing(target, overwrite=overwrite) as work:
        work.write_bytes(memory.getbuffer())
    return target


def _ready(dataset: xr.Dataset) -> xr.Dataset:
    """Return a dataset as NetCDF can hold it, its variables with their encoding."""
    maps = [one for one in dataset.data_vars.values() if set(schema.MAP_DIMS) <= set(one.dims)]
    grid = PixelGrid.of(maps[0]) if maps else None
    ready = dataset.copy()
    if grid is not None and grid.georeferenced:
        ready = ready.rio.write_transform(grid.transform, grid_mapping_name=_GRID_MAPPING)
        if grid.crs is not None:
            ready = ready.rio.write_crs(grid.crs, grid_mapping_name=_GRID_MAPPING)
        if schema.X in ready.coords:
            ready = ready.rio.write_coordinate_system()
    ready.attrs = _plain(dataset.attrs, "the dataset")
    for name, array in ready.data_vars.items():
        attrs = _plain(array.attrs, f"'{name}'")
        if "flag_values" in attrs and array.dtype.kind in "iu":
            # CF requires flags in the type of the variable
            attrs["flag_values"] = np.asarray(attrs["flag_values"], dtype=array.dtype)
        for stated in ("_FillValue", "grid_mapping"):  # the encoding says these
            attrs.pop(stated, None)
        ready[name].attrs = attrs
        encoding: dict[str, Any] = {"zlib": True, "complevel": 4} if array.ndim > 1 else {}
        if array.dims == schema.MAP_DIMS and array.dtype.kind == "u":
            encoding["_FillValue"] = array.dtype.type(schema.nodata_label(array.dtype))
        if _GRID_MAPPING in array.coords and set(schema.MAP_DIMS) <= set(array.dims):
            encoding["grid_mapping"] = _GRID_MAPPING
        ready[name].encoding = encoding
    return ready


def open_dataset(path: str | PathLike[str], *, chunks: Any = None) -> xr.Dataset:
    """Open a dataset that :func:`write_dataset` wrote, as it was.

    Labels stay integers with their nodata value; xarray's own reader would turn them into floats.

    Parameters
    ----------
    path : path
        A NetCDF file.
    chunks : optional
        As for ``xarray.open_dataset``: ``"auto"`` or sizes by dimension make dask arrays.

    See Also
    --------
    hsreject.write_dataset : its inverse.
    hsreject.open_tree : the result of a run.

    Examples
    --------
    >>> import tempfile
    >>> import hsreject as hr
    >>> curve = hr.rejection_curve([True, True, False], [0.9, 0.5, 0.1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     back = hr.open_dataset(hr.write_dataset(curve, f"{folder}/curve.nc")).load()
    >>> back.equals(curve)
    True
    """
    file = existing(path)
    with reading(file):
        check_hdf5(file)
        dataset = _as_written(xr.open_dataset(file, **_AS_STORED), file)
    return dataset if chunks is None else dataset.chunk(chunks)


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

    Examples
    --------
    >>> import tempfile
    >>> import xarray as xr
    >>> import hsreject as hr
    >>> curve = hr.rejection_curve([True, True, False], [0.9, 0.5, 0.1])
    >>> tree = xr.DataTree.from_dict({"/curves": curve})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     back = hr.open_tree(hr.write_tree(tree, f"{folder}/result.nc")).load()
    >>> back["curves/nonrejected_accuracy"].values.round(2)
    array([0.67, 1.  , 1.  ,  nan])
    """
    file = existing(path)
    with reading(file):
        check_hdf5(file)
        tree = xr.open_datatree(file, **_AS_STORED)
        for node in tree.subtree:
            node.dataset = _as_written(node.to_dataset(inherit=False), file)
    return tree


def _as_written(stored: xr.Dataset, path: Path) -> xr.Dataset:
    """Return a dataset whose values are read when they are used, without what marks missing ones.

    Missing labels stay as they are; missing floats are NaN already.
    """
    check_claim(path, stored.nbytes)
    for name, array in stored.data_vars.items():
        fill = array.attrs.pop("_FillValue", np.nan)
        if array.dtype.kind == "f" and not np.isnan(fill).all():
            raise FileError(
                f"'{name}' in {path} marks missing values by {fill}, not by NaN: hsreject did not "
                "write it. Open it with xarray.open_dataset."
            )
    for name, variable in stored.variables.items():
        if names_system_elsewhere(variable.attrs):
            raise FileError(
                f"'{name}' in {path} gives an address or a path as reference system, which is not "
                "followed: hsreject did not write it. Open it with xarray.open_dataset."
            )
        if name not in stored.indexes:
            values = unread(variable, path)
            stored[name] = variable.dims, values, variable.attrs, variable.encoding
    return stored


def _plain(attrs: Mapping[Any, Any], owner: str) -> dict[str, Any]:
    """Return attributes in types that NetCDF has: truth values become 0 and 1."""
    for name, value in attrs.items():
        if not isinstance(value, str | int | float | list | tuple | np.ndarray | np.generic):
            raise InputError(
                f"NetCDF cannot hold the attribute '{name}' of {owner}: it is a "
                f"{type(value).__name__}. Turn it into text, for example with json.dumps."
            )
    truths = bool | np.bool_
    return {str(n): int(v) if isinstance(v, truths) else v for n, v in attrs.items()}
