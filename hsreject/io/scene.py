"""Scenes: any product, ENVI, GeoTIFF, .mat or .npy file becomes a labelled cube.

:func:`file_kind` recognises a file, and the reader of its kind describes it as a
:class:`~hsreject.io.stored_scene.StoredScene`, of which the cube is made.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr

from hsreject.errors import FileError, GuessWarning, InputError
from hsreject.files import reading, starts_with
from hsreject.io.arrays.bare_arrays import choose_array, sides, stored_arrays
from hsreject.io.arrays.hdf5 import HDF5
from hsreject.io.arrays.stored_pixels import (
    Layer,
    Pixels,
    check_real,
)
from hsreject.io.embeddings import TESSERA, check_scaled, may_be_tessera, scales_beside
from hsreject.io.grid import PixelGrid
from hsreject.io.rasters import envi
from hsreject.io.rasters.raster import raster_info, read_raster_scene, trusting_vrt
from hsreject.io.remote import RemotePath, existing_scene, is_store
from hsreject.io.stored_scene import StoredScene, make_cube
from hsreject.io.wavelengths import BandInfo, nanometres
from hsreject.schema import (
    BAND,
    FWHM,
    GOOD_BAND,
    MAP_DIMS,
    SOURCE_SCENE,
    WAVELENGTH,
    check_same_grid,
    good_bands,
)

if TYPE_CHECKING:
    from pathlib import Path


_VECTOR_SUFFIXES = {".gpkg", ".shp", ".geojson", ".json", ".fgb", ".gml", ".kml", ".csv"}
_NETCDF = (HDF5, b"CDF\1", b"CDF\2", b"CDF\5")  # how NetCDF begins, now and in its classic forms
_HDF5_SUFFIXES = {".nc", ".nc4", ".h5", ".he5", ".hdf", ".hdf5"}
_PRODUCT_NAME = re.compile(r"SPECTRAL_IMAGE|METADATA\.XML$", re.IGNORECASE)
_GUESSED = "it is the shorter one, and the values do not tell"
_OF_BANDS = (BAND, WAVELENGTH, FWHM, GOOD_BAND)
_WAVELENGTH_NAME = re.compile(r"wave_?lengths?|wave|wl|lambda|centers?", re.IGNORECASE)


class Kind(Enum):
    """The kinds of files that hsreject opens."""

    RASTER = "raster"
    PRODUCT = "product"
    ARRAY = "array"  # .npy and .mat
    VECTOR = "vector"


def open_scene(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    chunks: Any = None,
    variable: str | None = None,
    band_axis: int | None = None,
    masks: bool | Literal["all"] = True,
    trust_vrt: bool = False,
) -> xr.DataArray:
    """Open a hyperspectral scene as a cube.

    Parameters
    ----------
    path : str or path, or a list of them
        A product as it is downloaded (EMIT, EnMAP, PRISMA L2C and L2D, AVIRIS-3 and -5, NEON AOP,
        Tanager, DESIS L2A, PACE OCI; of several files, the image or its description, their folder,
        or the archive they are packed in), an ENVI file (the data or its header), a GeoTIFF, ERDAS
        Imagine or JPEG 2000 file, a cube in a NetCDF or HDF5 file or in a Zarr store (a folder
        ``*.zarr``), a MATLAB .mat or a NumPy .npy file. Of all but the last two also a URL
        (``https://``, ``http://``, ``s3://``), of which only the parts that are needed are read.
        Embeddings of AlphaEarth and TESSERA are decoded.

        Of a list, such as dates, or a scene and its embedding, the bands are stacked. All scenes
        lie on one grid; `source_scene` (band) is the number of the scene that a band comes from,
        and no band has a wavelength: those of two dates would be the same twice.
    chunks : optional
        Opens lazily: anything dask takes for (band, y, x), such as ``{"y": 512, "x": 512}``.
        "auto" makes blocks of whole spectra. No pixel is read before it is needed.
    variable : str, optional
        Which array of a .mat file, a Zarr store, or an HDF5 or NetCDF file that is not one of the
        products, if it has several that could be the scene.
    band_axis : int, optional
        Which axis of such an array, or of a .npy file, holds the bands (0, 1 or 2; -1 is the last).
    masks : bool or "all"
        Whether pixels that the quality masks of a product flag (clouds and their shadows, haze,
        background) have no data; "all" takes snow and thin cirrus for covered, too.
        ``attrs["masks"]`` names the masks.
    trust_vrt : bool
        Whether a virtual raster may name files outside of its own folder, and URLs. Only for one
        whose origin you know: it can read any file that you can.

    Returns
    -------
    DataArray, dims (band, y, x)
        With the coords `band` (1 to B), and as far as the file tells them `wavelength` and `fwhm`
        (nm), `good_band`, x and y of pixel centres and `spatial_ref` (a rotated grid has no x
        and y, only its transform). A file that can have pixels without data, or that is scaled,
        becomes float with NaN for no data; other integers keep their type. What had to be guessed
        is in ``attrs["guesses"]``, a list of sentences.

    See Also
    --------
    hsreject.open_labels : the reference that belongs to it.
    hsreject.describe : looks before opening.
    hsreject.load_scene : scenes by name.

    Notes
    -----
    The values are those of the file times its band scale plus offset, or divided by its
    `reflectance scale factor`. Bands without any data are marked bad, of a lazily opened scene only
    by ``hsreject.io.scene.mark_empty_bands``, because it reads everything.

    A product in sensor geometry keeps it: the coordinate `lookup_table` says where each pixel
    belongs, and :func:`hsreject.write_map` follows it.

    Examples
    --------
    >>> from hsreject import open_scene
    >>> import numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "scene.npy")
    ...     np.save(path, np.ones((4, 4, 30), dtype="uint16"))
    ...     cube = open_scene(path)
    >>> dict(cube.sizes)
    {'band': 30, 'y': 4, 'x': 4}
    """
    if not isinstance(path, str | PathLike):
        return _stack(
            [
                open_scene(
                    one,
                    chunks=chunks,
                    variable=variable,
                    band_axis=band_axis,
                    masks=masks,
                    trust_vrt=trust_vrt,
                )
                for one in path
            ]
        )
    file = existing_scene(path)
    if masks not in (True, False, "all"):
        raise InputError(f"masks must be True, False or 'all' (got {masks!r}).")
    with reading(file), trusting_vrt(trust_vrt):
        stored = _described(file, variable=variable, band_axis=band_axis)
        cube = make_cube(stored, file, masks=masks, chunks=chunks)
    for warning in stored.warnings:
        warnings.warn(warning, GuessWarning, stacklevel=2)
    if chunks is not None:
        return cube
    cube = mark_empty_bands(cube)
    if cube.dtype.kind == "f" and not good_bands(cube).any() and not cube.notnull().any():
        raise FileError(f"{file} has no data: every pixel of every band is nodata or NaN.")
    return cube


def _stack(cubes: Sequence[xr.DataArray]) -> xr.DataArray:
    """Return scenes on one grid as one cube, which has the place of the first."""
    if not cubes:
        raise InputError("A stack of scenes needs at least one scene (got an empty list).")
    first, names = cubes[0], [str(cube.attrs["source"]) for cube in cubes]
    for cube, name in zip(cubes[1:], names[1:], strict=True):
        check_same_grid(first, cube, names=(names[0], name))
        systems = {str(PixelGrid.of(one).crs) for one in (first, cube)}
        if len(systems) > 1:
            raise InputError(
                f"{names[0]} and {name} lie in different reference systems ({', '.join(systems)}). "
                f"Warp {name} onto the grid of {names[0]}, for example with gdalwarp."
            )
    good = np.concatenate([good_bands(cube) for cube in cubes])
    source = np.repeat(np.arange(1, len(cubes) + 1), [cube.sizes[BAND] for cube in cubes])
    dtype = np.result_type(*(cube.dtype for cube in cubes))
    place = {name: first.coords[name].values for name in MAP_DIMS if name in first.coords}
    plain = [cube.drop_vars(_OF_BANDS, errors="ignore").astype(dtype, copy=False) for cube in cubes]
    alike = [cube.assign_coords(place) for cube in plain]
    stack = xr.concat(alike, BAND, coords="minimal", compat="override", join="override")
    notes = [
        f"{name}: {note}"
        for name, cube in zip(names, cubes, strict=True)
        for note in cube.attrs.get("guesses", ())
    ]
    stack.attrs = {"source": " + ".join(names)} | ({"guesses": notes} if notes else {})
    stack.encoding = dict(first.encoding)
    bands = {BAND: np.arange(1, source.size + 1), SOURCE_SCENE: (BAND, source)}
    stack = stack.assign_coords(bands)
    return stack if good.all() else stack.assign_coords({GOOD_BAND: (BAND, good)})


def _described(path: Path, *, variable: str | None, band_axis: int | None) -> StoredScene:
    """Return the scene in a file by the reader of its kind, without its pixels."""
    kind = file_kind(path)
    if kind is Kind.VECTOR:
        raise FileError(f"{path} holds vector features, not a scene. Open it with open_labels.")
    if kind is Kind.RASTER:
        return read_raster_scene(raster_info(path))
    if kind is Kind.ARRAY:
        return _read_bare_array(path, variable=variable, band_axis=band_axis)
    from hsreject.io.products.product import read_product  # noqa: PLC0415  (slow)

    return read_product(path, variable=variable, band_axis=band_axis)


def mark_empty_bands(cube: xr.DataArray) -> xr.DataArray:
    """Return the cube with the bands that have no data at all marked bad.

    This reads every pixel of a lazily opened cube. Integers have data everywhere.
    """
    if cube.dtype.kind != "f":
        return cube
    # band by band: flags of the whole cube would take a quarter of its room
    good = good_bands(cube)
    if cube.chunks is None:
        good = good & [not np.isnan(band).all() for band in cube.values]
    else:
        good = good & cube.notnull().any(MAP_DIMS).values
    return cube if good.all() else cube.assign_coords({GOOD_BAND: (BAND, good)})


def file_kind(path: Path) -> Kind:
    """Return the kind of an existing file, by its name and its first bytes."""
    suffix = path.suffix.lower()
    if is_store(path):
        return Kind.PRODUCT
    if isinstance(path, RemotePath) and suffix in {".npy", ".mat"}:
        raise FileError(f"{path}: {suffix} files are read from disk only. Download it.")
    if suffix in {".npy", ".mat"}:
        return Kind.ARRAY
    if suffix in _VECTOR_SUFFIXES:
        return Kind.VECTOR
    return Kind.PRODUCT if _is_product(path) else Kind.RASTER


def _is_product(path: Path) -> bool:
    """Tell whether a file is HDF5 or NetCDF, or has the name of a product of several files."""
    if starts_with(path, *_NETCDF):  # so may the pixels of an ENVI file: its header knows better
        header = envi.header_of(path)
        return path.suffix.lower() in _HDF5_SUFFIXES or not (header and envi.belongs(path, header))
    if not _PRODUCT_NAME.search(path.name):
        return False
    from hsreject.io.products.product import is_raster_product  # noqa: PLC0415

    return is_raster_product(path)


# The reader of bare arrays.


def _read_bare_array(path: Path, *, variable: str | None, band_axis: int | None) -> StoredScene:
    """Return the scene in a bare array; wavelengths may be in a list beside it."""
    arrays = stored_arrays(path)
    array = choose_array(arrays, path=path, n_axes=3, what="scene", variable=variable)
    if array.dtype.kind == "b":
        raise FileError(f"{path} holds true and false, but a scene holds numbers.")
    check_real(array.dtype, path)
    notes, guesses = list[str](), list[str]()
    if variable is None and len(arrays) > 1:
        notes.append(f"The scene is '{array.name}', the only array with three axes.")
    bands, n_centres = BandInfo(), None
    for one in arrays:
        is_list = max(one.stored_shape) == np.prod(one.stored_shape) > 1
        if is_list and n_centres is None and _WAVELENGTH_NAME.fullmatch(one.name):
            centres = np.ravel(one.whole()).astype(np.float64)
            bands, n_centres = nanometres(centres, None), centres.size
            notes.append(f"The wavelengths are the array '{one.name}'.")
    if band_axis is None and may_be_tessera(array.dtype, array.stored_shape[-1]):
        axis = 2
        notes.append("The last axis holds the bands, as in tiles of TESSERA.")
    elif band_axis is None:
        axis, reason = _band_axis(array, n_centres)
        note = f"Axis {axis} of {sides(array.stored_shape)} was taken for the bands: {reason}. "
        (guesses if reason == _GUESSED else notes).append(f"{note}Pass band_axis to choose.")
    elif band_axis in range(-3, 3):
        axis = band_axis % 3
    else:
        raise InputError(f"band_axis must be 0, 1 or 2, or -1 for the last (got {band_axis}).")
    axes = ["y", "x"]
    axes.insert(axis, "b")
    layer, product = replace(array, axes="".join(axes)), ""
    scale = _pixel_scale(path, layer)
    if scale is not None:
        product = TESSERA
        notes.append(f"The bytes are codes, which are times the scales of {scale.path.name}.")
    return StoredScene(
        pixels=Pixels.of(layer, pixel_scale=scale),
        bands=bands,
        product=product,
        notes=tuple(notes),
        warnings=tuple(guesses),
    )


def _pixel_scale(path: Path, layer: Layer) -> Layer | None:
    """Return the scales that lie beside a NumPy file of codes; None of a file of numbers."""
    beside = scales_beside(path)
    if layer.dtype != np.int8 or layer.format != "numpy" or not beside.is_file():
        check_scaled(path, layer.dtype, layer.shape[0], looked_for=beside.name)
        return None
    (scale,) = stored_arrays(beside)
    if scale.stored_shape != layer.shape[1:] or scale.dtype.kind != "f":
        raise FileError(
            f"{beside} must hold a number per pixel, {sides(layer.shape[1:])} (found "
            f"{scale.dtype}, {sides(scale.stored_shape)}). Download it again with its embedding."
        )
    return replace(scale, axes="yx")


def _band_axis(array: Layer, n_centres: int | None) -> tuple[int, str]:
    """Return which axis holds the bands, by its length or looks, and why."""
    first, middle, last = shape = array.stored_shape
    if n_centres is not None and shape.count(n_centres) == 1:
        return shape.index(n_centres), "it is as long as the list of wavelengths"
    if first == middle != last:
        return 2, "the other two axes are equally long"
    if array.format != "numpy" and middle != last:
        return 2, "MATLAB scenes have it last"
    # Bands differ in brightness far more than rows do: of the variance of up to 16 x 16 x 16
    # values, the mean spectrum explains more than the mean row. Pixels without data, which are the
    # same in all bands, would make whole rows differ: they do not count, whichever axis is theirs.
    steps = tuple(slice(None, None, -(-size // 16)) for size in array.stored_shape)
    sample = np.ma.masked_invalid(np.asarray(array.part(steps), dtype=np.float64))
    same = [np.ptp(sample, axis=axis, keepdims=True) == 0 for axis in (0, 2)]
    empty = np.broadcast_to(np.ma.filled(same[0], fill_value=True), sample.shape)
    sample[empty | np.ma.filled(same[1], fill_value=True)] = np.ma.masked
    explained = [
        float(np.ma.filled(sample.mean(axis=others).var(), 0.0)) for others in ((1, 2), (0, 1))
    ]
    least, most = sorted(explained)
    if most > max(0.05 * float(np.ma.filled(sample.var(), np.inf)), 2 * least):
        return (0 if explained[0] == most else 2), "brightness changes most along it"
    if first != middle == last:
        return 0, "the other two axes are equally long"
    return (0 if first < last else 2), _GUESSED
