"""Maps on disk: written for GIS programs, and opened again as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from rasterio._err import CPLE_BaseError
from rasterio.errors import RasterioError

from hsreject import schema
from hsreject.errors import FileError, InputError
from hsreject.files import check_space, existing, free_space, reading, replacing
from hsreject.io.arrays.bare_arrays import choose_array, stored_arrays
from hsreject.io.grid import PixelGrid
from hsreject.io.labels import open_labels, stated_classes
from hsreject.io.lookup import on_the_map
from hsreject.io.rasters import geotiff
from hsreject.io.rasters.geotiff import CategoryTable
from hsreject.io.rasters.raster import RasterInfo, raster_info, read_pixels
from hsreject.io.remote import existing_scene
from hsreject.io.scene import Kind, file_kind, open_scene
from hsreject.progress import ProgressCallback, no_progress
from hsreject.schema.classes import ClassTable

if TYPE_CHECKING:
    from affine import Affine
    from numpy.typing import NDArray

    MapOrPath = xr.DataArray | NDArray[Any] | str | PathLike[str]


def write_map(
    array: xr.DataArray | NDArray[Any],
    path: str | PathLike[str],
    *,
    transform: Affine | Sequence[float] | None = None,
    crs: Any = None,
    classes: ClassTable | Mapping[int, str] | Sequence[str] | None = None,
    nodata: float | None = None,
    overwrite: bool = False,
    progress: ProgressCallback = no_progress,
) -> Path:
    """Write a map that GIS programs open with its classes, colours and place.

    It is a Cloud-Optimised GeoTIFF (tiled, compressed, with overviews). Beside it lie the names of
    the classes for GDAL (``.tif.aux.xml``), and a style for QGIS (``.qml``): the classes and what
    is rejected, or for a float map (y, x) a ramp over its range. A style that QGIS has saved is
    kept. ``.img``, ``.dat`` or ``.bsq`` make an ENVI file with a header. The file appears under its
    name only when it is complete.

    Parameters
    ----------
    array : DataArray or array, dims (y, x) or (category, y, x)
        Integers are labels: the class table in the attributes gives names and colours, 0 is called
        what `schema.zero_meaning` says, `schema.nodata_label` is no data. Booleans are written as 0
        and 1. Floats (confidence, probability) have NaN for no data. Lazy arrays are computed and
        written block by block. A map in the geometry of a sensor is ortho-rectified with the lookup
        table of its product: the nearest pixel, gaps as no data.
    path : path
        The file to make; its folder must exist.
    transform, crs : optional
        Six numbers from (column, row) of a pixel's corner to map coordinates, as in rasterio, and
        the reference system, such as "EPSG:32633"; by default what the array says.
    classes : ClassTable, mapping or names, optional
        Names of the classes 1, 2, ..., or of values; a mapping may also say what 0 means. By
        default what the array says.
    nodata : number, optional
        Another value of pixels without data.
    overwrite : bool
        Replace a file that is already there.
    progress : ProgressCallback
        Called as blocks of a lazy array are done.

    Returns
    -------
    Path
        The file.

    See Also
    --------
    hsreject.open_map : its inverse.
    hsreject.write_dataset : keeps everything, in NetCDF.

    Examples
    --------
    >>> from hsreject import open_map, write_map
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_map(
    ...         np.array([[0, 2], [1, -1]]),
    ...         f"{folder}/map.tif",
    ...         transform=(30, 0, 500_000, 0, -30, 4_200_000),
    ...         crs="EPSG:32633",
    ...         classes={0: "rejected", 1: "soil", 2: "water"},
    ...         nodata=-1,
    ...     )
    ...     back = open_map(f"{folder}/map.tif")
    >>> back.values.tolist(), back.rio.crs.to_epsg(), back.attrs["class_names"]
    ([[0, 2], [1, 255]], 32633, ['soil', 'water'])
    """
    described = _described(schema.as_map_or_field(array, name="the map to write"), classes, nodata)
    if transform is not None or crs is not None:
        described = PixelGrid.of(described).stated(transform, crs).attach(described)
    write_maps({path: described}, overwrite=overwrite, progress=progress)
    return Path(path)


def _described(array: xr.DataArray, classes: Any, nodata: float | None) -> xr.DataArray:
    """Return a map with the classes and the nodata value that a caller gave."""
    if isinstance(classes, Mapping) and 0 in classes:
        array = array.assign_attrs({schema.ZERO_MEANING: str(classes[0])})
        classes = {value: name for value, name in classes.items() if value != 0}
    if classes is not None:
        table = classes if isinstance(classes, ClassTable) else ClassTable.from_names(classes)
        if len(table) != array.sizes.get(schema.CATEGORY, len(table)):
            raise InputError(
                f"The field has {array.sizes[schema.CATEGORY]} categories, but {len(table)} "
                "classes were given. Name each category once."
            )
        array = schema.attach_classes(array, table)
    if nodata is not None and array.dtype.kind == "f":
        return array.where(array != nodata)
    if nodata is not None and array.dtype.kind in "iu":  # 0, too, may mean no data
        missing, wide = schema.nodata_label(np.int64), array.astype(np.int64)
        stated = schema.nodata_values(array)[-1]
        return wide.where(~wide.isin([nodata, stated]), missing).assign_attrs(_FillValue=missing)
    return array


def write_maps(
    maps: Mapping[str | PathLike[str], xr.DataArray | Raster],
    *,
    tags: Mapping[str, str] | None = None,
    overwrite: bool = False,
    progress: ProgressCallback = no_progress,
) -> None:
    """Write several maps in one pass over their blocks: what they share is computed once.

    None of them appears before all are complete. `tags` are written into each GeoTIFF; other
    options as for :func:`write_map`.
    """
    targets = [Path(path) for path in maps]
    rasters = [one if isinstance(one, Raster) else Raster.from_array(one) for one in maps.values()]
    rasters = [replace(raster, tags={**raster.tags, **(tags or {})}) for raster in rasters]
    for path, raster in zip(targets, rasters, strict=True):
        if path.suffix.lower() in geotiff.ENVI_SUFFIXES:
            geotiff.check_envi(raster, path)
        elif path.suffix.lower() not in {".tif", ".tiff"}:
            raise InputError(
                f"Cannot tell the format of '{path.name}'. A map may end in .tif, or for ENVI in "
                f"{', '.join(geotiff.ENVI_SUFFIXES)}; a dataset (.nc) is written by write_dataset."
            )
    with ExitStack() as stack:
        finals = []
        for path, raster in zip(targets, rasters, strict=True):
            sides = geotiff.side_files(path, raster)
            place = replacing(path, side_files=sides, overwrite=overwrite)
            finals.append(stack.enter_context(place))
        check_space(targets[0], sum(raster.stored_size for raster in rasters))
        plain = [path.with_name("plain.tmp") for path in finals]
        try:
            geotiff.store(rasters, plain, progress=progress)
            for raster, source, path in zip(rasters, plain, finals, strict=True):
                geotiff.finish(raster, source, path)
        except (RasterioError, CPLE_BaseError, SystemError) as error:  # all come through rasterio
            cause = str(error.__cause__ or error).partition(". ")[0]  # not that a disk is full
            raise FileError(
                f"Could not write {targets[0]}: GDAL gave up ({cause}; "
                f"{free_space(targets[0].parent)})."
            ) from error


@dataclass(frozen=True, eq=False)
class Raster:
    """A map as a raster file holds it."""

    bands: Any  # NumPy or dask array (n_bands, y, x), the values as they are written
    nodata: float
    band_names: tuple[str, ...]  # one per band; of fields, the classes
    categories: CategoryTable | None  # what the values of a label map mean
    grid: PixelGrid
    tags: Mapping[str, str] = field(default_factory=dict)  # of the file
    # how QGIS draws bands beside the first: classes, or a ramp from one value to another
    styles: Mapping[str, CategoryTable | tuple[float, float]] = field(default_factory=dict)

    @property
    def stored_size(self) -> int:
        """How many bytes it may take on the disk: whole tiles."""
        count, height, width = self.bands.shape
        tiles = -(-height // geotiff.TILE) * -(-width // geotiff.TILE)
        return int(count * tiles * geotiff.TILE**2 * self.bands.dtype.itemsize)

    @classmethod
    def from_array(cls, array: xr.DataArray) -> Raster:
        """Return a label map, a truth map, a float map (y, x) or a field (category, y, x)."""
        field = schema.CATEGORY in getattr(array, "dims", ())
        array = schema.check_dims(
            array, schema.FIELD_DIMS if field else schema.MAP_DIMS, name="the map to write"
        )
        if not array.size:
            raise InputError(f"The map to write is empty (its shape is {array.shape}).")
        if array.dtype.kind == "b" and not field:
            name = "true" if array.name is None else str(array.name)
            labels = array.astype(np.uint8).assign_attrs({schema.ZERO_MEANING: f"not {name}"})
            array = schema.attach_classes(labels, ClassTable.from_names([name]))
        array = on_the_map(array)
        categories, nodata = None, np.nan
        names: tuple[str, ...] = ("" if array.name is None else str(array.name),)
        if array.dtype.kind == "f":
            names = tuple(schema.class_table(array).names) if field else names
            array = array.astype(np.float32) if array.dtype == np.float16 else array
        elif field or array.dtype.kind not in "iu":
            raise InputError(
                f"Cannot write {array.dtype} values as a map. Label maps hold integers, "
                "confidences and probabilities floats."
            )
        else:
            if ClassTable.from_attrs(array.attrs) is None:
                # the classes are those that occur: values are needed twice
                missing = schema.nodata_values(array)[-1]
                array = array.compute().assign_attrs(_FillValue=missing)
            categories = CategoryTable.of(array)
            array, nodata = categories.encode(array), categories.nodata
        bands = array.data if field else array.data[None]
        comment = str(array.attrs.get("comment", ""))
        tags = {"comment": comment} if comment else {}
        return cls(bands, nodata, names, categories, PixelGrid.of(array), tags)


# Maps that were written.


def open_map(path: str | PathLike[str], *, chunks: Any = None) -> xr.DataArray:
    """Open a map or a field: the inverse of :func:`hsreject.write_map`.

    Unlike `open_labels`, which reads a reference, it keeps pixels without data apart from 0, which
    means rejected in a reject map.

    Parameters
    ----------
    path : path
        A GeoTIFF or an ENVI file, the data or its header.
    chunks : optional
        Opens lazily: anything dask takes for (band, y, x), such as "auto". No pixel is read before
        it is needed, so the classes are those that the file names.

    Returns
    -------
    DataArray, dims (y, x) or (category, y, x)
        Integers are labels: the class table and what 0 means (`schema.zero_meaning`) are in the
        attributes, `schema.nodata_label` is no data. Floats have NaN where there is no data;
        several bands become the categories 1, 2, ...

    See Also
    --------
    hsreject.write_map : its inverse.
    hsreject.evaluate : evaluates maps from anywhere.

    Examples
    --------
    >>> import tempfile
    >>> import hsreject as hr
    >>> _, labels = hr.synthetic_scene(rows=16, columns=16)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     label = hr.open_map(hr.write_map(labels, f"{folder}/labels.tif")).load()
    >>> label.sizes["y"], label.dtype.name, label.attrs["class_names"][:2]
    (16, 'uint8', ['cover 1', 'cover 2'])
    """
    file = existing_scene(path)
    with reading(file):
        return _read_map(file, chunks)


def _read_map(path: Path, chunks: Any) -> xr.DataArray:
    info = raster_info(path)
    bands = read_pixels(info, chunks=chunks)
    if info.dtype.kind == "f":
        return info.grid.attach(_field(bands, info))
    if info.n_bands != 1:
        raise FileError(f"{path} has {info.n_bands} bands of integers, but a label map has one.")
    stated = stated_classes(info)
    classes = {value for value in stated.names if value > 0}
    encode = partial(schema.canonical_labels, name=str(path), error=FileError)
    if chunks is None:  # the type of the file, unless nodata has no room in it
        largest = max(int(np.nanmax(bands, initial=0)), *classes, 0)
        dtype = info.dtype if info.dtype == np.uint16 else schema.label_dtype(largest)
        values = encode(bands[0], dtype=dtype)
        classes |= set(np.unique(values).tolist()) - {0, schema.nodata_label(dtype)}
    else:  # no looking at values: uint8 only if they cannot take the place of nodata
        roomy = info.dtype == np.uint8 and info.nodata == schema.nodata_label(np.uint8)
        dtype = np.dtype(np.uint8 if roomy else np.uint16)
        values = bands[0].map_blocks(partial(encode, dtype=dtype), dtype=dtype)
    labels = xr.DataArray(values, dims=schema.MAP_DIMS).rename(info.names[0] or None)
    labels = schema.attach_classes(labels, stated.table(classes)).assign_attrs(stated.groups)
    if stated.names.get(0):
        labels.attrs[schema.ZERO_MEANING] = stated.names[0]
    return info.grid.attach(labels)


def _field(bands: NDArray[Any], info: RasterInfo) -> xr.DataArray:
    if info.n_bands == 1:
        return xr.DataArray(bands[0], dims=schema.MAP_DIMS).rename(info.names[0] or None)
    values = list(range(1, info.n_bands + 1))
    distinct = all(name.strip() for name in info.names) and len(set(info.names)) == info.n_bands
    table = ClassTable.from_names(info.names) if distinct else ClassTable.plain(values)
    field = xr.DataArray(bands, dims=schema.FIELD_DIMS, coords={schema.CATEGORY: values})
    return schema.attach_classes(field.rename(None), table)  # not what dask calls the array


# Maps of any software, to be evaluated or shown.


def open_maps(
    sources: Mapping[str, MapOrPath], *, nodata: int | None, attribute: str | None
) -> dict[str, xr.DataArray]:
    """Return maps given as arrays or files, all on the grid of `label`.

    Labels from a file are unsigned, and nodata in them is `schema.nodata_label`.
    """
    judged: dict[str, Any] = {name: one for name, one in sources.items() if name != "reference"}
    files = [name for name, one in judged.items() if isinstance(one, str | PathLike)]
    if files and len(files) < len(judged):
        raise InputError(
            f"{' and '.join(judged)} must all be files, or all be arrays (only {files[0]} is a "
            f"file). Open it with hsreject.open_map."
        )
    maps = {
        name: open_band(one) if files else schema.as_map(one, name=name)
        for name, one in judged.items()
    }
    if files:
        label, name = maps["label"], str(judged["label"])
        values = schema.canonical_labels(label.values, nodata=[nodata], name=name, error=FileError)
        maps["label"] = label.copy(data=values)
    if files and "rejected" in maps:
        maps |= _masked(maps["label"], maps["rejected"], judged["rejected"])
    reference = sources.get("reference")
    if isinstance(reference, str | PathLike):
        on_grid = file_kind(existing_scene(reference)) is Kind.VECTOR
        like, attribute = (maps["label"], attribute) if on_grid else (None, None)
        maps = {"reference": open_labels(reference, like=like, attribute=attribute), **maps}
    elif reference is not None:
        maps = {"reference": schema.as_map(reference, name="reference"), **maps}
    for name, one in maps.items():
        grid, target = PixelGrid.of(one), PixelGrid.of(maps["label"])
        if isinstance(sources[name], str | PathLike) and not grid.fits(target):
            first = sources["label"] if files else "label"
            raise InputError(
                f"{sources[name]} and {first} lie on different grids: {grid}, against {target}. "
                "Resample one of them onto the other first, for example with gdalwarp -r near."
            )
    return maps


def open_label_map(path: Path, nodata: int | None) -> xr.DataArray:
    """Open a label map of any software with its class names; 0 in it means rejected."""
    file, missing, dtype = existing(path), [nodata], None
    if file_kind(file) is Kind.RASTER:
        label = open_map(file)
        if label.dtype.kind != "f":  # it is canonical, but for `nodata`
            missing, dtype = [nodata, *schema.nodata_values(label)], label.dtype
    else:
        label = open_band(file)
        if nodata is None:
            open_labels(file)  # asks about a value that may mean no data
    values = schema.canonical_labels(
        label.values, nodata=missing, dtype=dtype, name=str(file), error=FileError
    )
    return label.copy(data=values)


def open_band(path: Any) -> xr.DataArray:
    """Open a map of numbers (y, x), such as a confidence."""
    file = existing_scene(path)
    if file_kind(file) is Kind.ARRAY:
        array = choose_array(stored_arrays(file), path=file, n_axes=2, what="map", variable=None)
        return xr.DataArray(array.whole(), dims=schema.MAP_DIMS)
    cube = open_scene(path)
    if cube.sizes[schema.BAND] != 1:
        raise FileError(
            f"{path} has {cube.sizes[schema.BAND]} bands, but a map has one. "
            "Extract the band that holds it."
        )
    return cube.isel({schema.BAND: 0}, drop=True)


def _masked(label: xr.DataArray, rejected: xr.DataArray, path: Any) -> dict[str, xr.DataArray]:
    """Return the labels without the pixels where the mask has no data, and the mask as truth."""
    values: Any = rejected.values
    if rejected.attrs.get("nodata_in_file") == 0:
        raise FileError(
            f"{path} calls 0 its nodata value, but 0 means kept in a map of what is rejected: no "
            "pixel would be kept. Take the nodata value away, for example with gdal_edit -unsetnd."
        )
    empty = np.isnan(values)
    if np.any(odd := ~empty & (values != np.round(values))):
        raise FileError(
            f"{path} must hold 0 for kept and another whole number for rejected pixels (found "
            f"{values[odd][0]:g}). Is it a confidence? Give it with --confidence."
        )
    if rejected.shape == label.shape:
        label = label.where(~empty, schema.nodata_label(label.dtype)).astype(label.dtype)
    return {"label": label, "rejected": rejected.copy(data=np.where(empty, 0, values) != 0)}
