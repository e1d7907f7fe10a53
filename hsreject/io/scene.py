"""Scenes: any product, ENVI, GeoTIFF, .mat or .npy file becomes a labelled cube.

:func:`file_kind` recognises a file, the reader of its kind describes it as a :class:`StoredScene`,
and :func:`make_cube` makes the cube. A new format is a new kind and a reader.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import FileError
from hsreject.files import reading, starts_with
from hsreject.io import envi
from hsreject.io.grid import Grid
from hsreject.io.products.remote import RemotePath, existing_scene, is_store
from hsreject.io.raster import (
    HDF5,
    RasterInfo,
    raster_info,
    raster_source,
    read_pixels,
    usable_nodata,
)
from hsreject.io.wavelengths import BandInfo, band_info, raster_notes
from hsreject.schema import BAND, CUBE_DIMS, FWHM, GOOD_BAND, MAP_DIMS, WAVELENGTH, good_bands

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from numpy.typing import NDArray

    from hsreject.io.products.lookup import LookupTable

_VECTOR_SUFFIXES = {".gpkg", ".shp", ".geojson", ".json", ".fgb", ".gml", ".kml"}
_HDF5_SUFFIXES = {".nc", ".nc4", ".h5", ".he5", ".hdf", ".hdf5"}
_SCALE_FACTOR = "reflectance scale factor"
_PRODUCT_NAME = re.compile(r"SPECTRAL_IMAGE|METADATA\.XML$", re.IGNORECASE)


def open_scene(
    path: str | os.PathLike[str],
    *,
    chunks: Any = None,
    variable: str | None = None,
    band_axis: int | None = None,
    masks: bool = True,
) -> xr.DataArray:
    """Open a hyperspectral scene as a cube.

    Parameters
    ----------
    path : str or path
        A product as it is downloaded (EMIT, EnMAP L2A, PRISMA L2D, AVIRIS-3 and -5, NEON AOP,
        Tanager, DESIS L2A; of several files, the image or its description), an ENVI file (the data
        or its header), a GeoTIFF, a Zarr store (a folder that ends in ``.zarr``;
        ``pip install 'hsreject[zarr]'``), a MATLAB .mat or a NumPy .npy file. Of all but the last
        two also a URL (``https://``, ``http://``, ``s3://``, or a /vsi path of GDAL), of which only
        the parts that are needed are read (``pip install 'hsreject[remote]'``).
    chunks : optional
        Opens lazily: anything dask takes for (band, y, x), such as ``{"y": 512, "x": 512}``.
        "auto" makes blocks of whole spectra. No pixel is read before it is needed.
    variable : str, optional
        Which array of a .mat file or a Zarr store, if it has several that could be the scene, or of
        an HDF5 or NetCDF file that is not one of the products.
    band_axis : int, optional
        Which axis of such an array, or of a .npy file, holds the bands (0, 1 or 2; -1 is the last).
    masks : bool
        Whether pixels that the quality masks of a product flag (clouds and their shadows, haze,
        snow, background) have no data; ``attrs["masks"]`` names the masks.

    Returns
    -------
    DataArray, dims (band, y, x)
        With the coords `band` (1 to B), and as far as the file tells them `wavelength` and `fwhm`
        (nm), `good_band`, x and y of pixel centres and `spatial_ref` (a rotated grid has no x
        and y, only its transform). A file that can have pixels without data, or that is scaled,
        becomes float with NaN for no data; other integers keep their type. What had to be
        guessed stands in ``attrs["guesses"]``, a list of sentences.

    Notes
    -----
    The values are those of the file times its band scale plus offset, or divided by its
    `reflectance scale factor`. Bands without any data are marked bad. A lazily opened scene keeps
    the flags of the file, because looking for such bands means reading everything: call
    ``hsreject.io.scene.mark_empty_bands`` to do it.

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
    found = existing_scene(path)
    with reading(found):
        cube = make_cube(
            _read(found, chunks=chunks, variable=variable, band_axis=band_axis, masks=masks)
        )
    if chunks is not None:
        return cube
    cube = mark_empty_bands(cube)
    if cube.dtype.kind == "f" and not good_bands(cube).any() and not cube.notnull().any():
        raise FileError(f"{found} has no data: every pixel of every band is nodata or NaN.")
    return cube


def _read(
    path: Path, *, chunks: Any, variable: str | None, band_axis: int | None, masks: bool
) -> StoredScene:
    """Return the scene in a file by the reader of its kind."""
    kind = file_kind(path)
    if kind is Kind.VECTOR:
        raise FileError(f"{path} holds vector features, not a scene. Open it with open_labels.")
    if kind is Kind.RASTER:
        return read_raster_scene(path, chunks=chunks)
    # imported here: h5py and scipy take half a second
    if kind is Kind.PRODUCT:
        from hsreject.io.products.product import read_product  # noqa: PLC0415

        return read_product(
            path, chunks=chunks, variable=variable, band_axis=band_axis, masks=masks
        )
    from hsreject.io.arrays import read_array_scene  # noqa: PLC0415

    return read_array_scene(path, kind, chunks=chunks, variable=variable, band_axis=band_axis)


def mark_empty_bands(cube: xr.DataArray) -> xr.DataArray:
    """Return the cube with the bands that have no data at all marked bad.

    This reads every pixel of a lazily opened cube. Integers have data everywhere.
    """
    if cube.dtype.kind != "f":
        return cube
    good = good_bands(cube) & cube.notnull().any(MAP_DIMS).values
    return cube if good.all() else cube.assign_coords({GOOD_BAND: (BAND, good)})


class Kind(Enum):
    """The kinds of files that hsreject opens."""

    RASTER = "raster"
    PRODUCT = "product"
    NUMPY = "numpy"
    MATLAB = "matlab"
    MATLAB_HDF5 = "matlab-hdf5"
    VECTOR = "vector"


def file_kind(path: Path) -> Kind:
    """Return the kind of an existing file, by its name and its first bytes."""
    suffix = path.suffix.lower()
    if is_store(path):
        return Kind.PRODUCT
    if isinstance(path, RemotePath):
        if suffix in {".npy", ".mat", *_VECTOR_SUFFIXES}:
            raise FileError(f"{path}: {suffix} files are read from disk only. Download it.")
        if path.only_by_gdal:
            return Kind.RASTER
    if suffix == ".npy":
        if starts_with(path, b"\x93NUMPY"):
            return Kind.NUMPY
        raise FileError(f"{path} is not a NumPy file: it does not start with '\\x93NUMPY'.")
    if suffix == ".mat":
        # HDF5 files by MATLAB start with 512 bytes of their own.
        new = any(starts_with(path, HDF5, offset=offset) for offset in (0, 512))
        return Kind.MATLAB_HDF5 if new else Kind.MATLAB
    if suffix in _VECTOR_SUFFIXES:
        return Kind.VECTOR
    return Kind.PRODUCT if _is_product(path) else Kind.RASTER


def _is_product(path: Path) -> bool:
    """Tell whether a file is HDF5, or has the name of a product of several files."""
    if starts_with(path, HDF5):  # so may the pixels of an ENVI file: its header knows better
        return path.suffix.lower() in _HDF5_SUFFIXES or envi.header_of(path) is None
    if not _PRODUCT_NAME.search(path.name):
        return False
    from hsreject.io.products.product import is_raster_product  # noqa: PLC0415

    return is_raster_product(path)


@dataclass(frozen=True, eq=False)
class StoredScene:
    """A scene as a file describes it: what the reader of a format returns.

    Parameters
    ----------
    pixels : NumPy or dask array, (band, y, x)
        The true values, NaN where there is no data.
    bands : BandInfo
        What the file says of its bands: one value per band, in nm.
    attrs : dict
        Attributes of the cube: `source`, `format`, `type_in_file` and, where the file has them,
        `nodata_in_file` and `scaling`; ``hsreject info`` prints them.
    guesses : list of str
        Whatever was decided without the file saying it, in sentences.
    grid : Grid, LookupTable or None
        The place of the pixels, if the format can tell it.
    grain : tuple of int or None
        Rows and columns that the file stores together, where reading less costs as much.
    """

    pixels: Any
    bands: BandInfo
    attrs: dict[str, Any]
    guesses: list[str] = field(default_factory=list)
    grid: Grid | LookupTable | None = None
    grain: tuple[int, int] | None = None


def make_cube(stored: StoredScene) -> xr.DataArray:
    """Return the cube of a scene with its coordinates and its place."""
    bands = stored.bands
    known = ((WAVELENGTH, bands.wavelength), (FWHM, bands.fwhm), (GOOD_BAND, bands.good))
    coords: dict[str, Any] = {BAND: np.arange(1, stored.pixels.shape[0] + 1)}
    coords |= {name: (BAND, values) for name, values in known if values is not None}
    cube = xr.DataArray(stored.pixels, dims=CUBE_DIMS, coords=coords, name="cube")
    for name in (WAVELENGTH, FWHM):
        if name in cube.coords:
            cube.coords[name].attrs["units"] = "nm"
    if stored.guesses:
        cube.attrs["guesses"] = stored.guesses
    cube.attrs |= stored.attrs
    if stored.grain is not None:
        cube.encoding["preferred_chunks"] = dict(zip(MAP_DIMS, stored.grain, strict=True))
    return cube if stored.grid is None else stored.grid.attach(cube)


# The reader of rasters.


def read_raster_scene(path: Path, *, chunks: Any) -> StoredScene:
    """Return the scene in a file that GDAL opens: its values scaled, NaN where it has no data."""
    info = raster_info(raster_source(path))
    guesses = [*info.source.guesses, *raster_notes(info)]
    bands = band_info(info, guesses)
    scale = _stated_scale(info, guesses)
    nodata = info.nodata if info.nodata is not None else _nodata_of_fields(info, guesses)
    pixels = _scale_pixels(read_pixels(info, chunks=chunks, nodata=nodata), scale)
    attrs: dict[str, Any] = {
        "source": info.source.path.name,
        "format": f"{info.driver} {info.layout}",
        "type_in_file": str(info.dtype),
    }
    if nodata is not None:
        attrs["nodata_in_file"] = nodata
    if not scale.trivial:
        attrs["scaling"] = str(scale)
    return StoredScene(pixels, bands, attrs, guesses, info.grid, info.grain)


def _nodata_of_fields(info: RasterInfo, guesses: list[str]) -> float | None:
    """Return the nodata value that only the ENVI fields tell, if pixels can have it."""
    stated = info.fields.get("data ignore value")
    if stated is None:
        return None
    value = envi.number(stated, name="data ignore value", where=str(info.source.path))
    if usable_nodata(value, info.dtype) is None:
        guesses.append(
            f"The data ignore value {stated} cannot occur in {info.dtype} pixels: ignored."
        )
        return None
    return value


@dataclass(frozen=True)
class _Scale:
    """True value = (value in the file * gain + offset) / divisor, band by band."""

    gain: NDArray[np.float64]
    offset: NDArray[np.float64]
    divisor: float = 1.0

    @property
    def trivial(self) -> bool:
        """Whether the file holds the true values."""
        return self.divisor == 1 and bool(np.all(self.gain == 1) and np.all(self.offset == 0))

    def __str__(self) -> str:
        if self.divisor != 1:
            return f"divided by {self.divisor:g}"
        parts = ((self.gain, "times"), (self.offset, "plus"))
        return ", ".join(
            f"{word} {v.min():g}" if v.min() == v.max() else f"{word} {v.min():g} to {v.max():g}"
            for v, word in parts
        )


def _stated_scale(info: RasterInfo, guesses: list[str]) -> _Scale:
    """Return the scale that a file states: in its bands, or in the header beside it.

    Where a file has band gains and a `reflectance scale factor`, both say the same: only the factor
    counts, so that nothing is scaled twice.
    """
    where = info.source.described_in
    scale = _Scale(*np.array([(band.scale, band.offset) for band in info.bands], dtype=float).T)
    if scale.trivial:  # GDAL reads the header of an ENVI file, not the one beside a TIFF
        gain, offset = (
            envi.band_numbers(info.source.fields, name, n_bands=info.n_bands, where=where)
            for name in ("data gain values", "data offset values")
        )
        scale = _Scale(np.array(gain or scale.gain), np.array(offset or scale.offset))
    if not (np.all(scale.gain != 0) and np.isfinite([scale.gain, scale.offset]).all()):
        raise FileError(
            f"{where}: the scale of a band must be a number other than 0 and its offset a number "
            f"(found: {scale}). Correct them, or remove them."
        )
    text = info.fields.get(_SCALE_FACTOR)
    if not text:
        return scale
    try:
        factor = float(text)
    except ValueError:
        factor = np.nan
    if not (np.isfinite(factor) and factor > 0):
        raise FileError(f"{where}: '{_SCALE_FACTOR} = {text[:40]}' must be a number above 0.")
    if not scale.trivial:
        guesses.append(
            f"The file has band gains or offsets and a {_SCALE_FACTOR} ({factor:g}): "
            "only the factor was applied."
        )
    return _Scale(np.ones(info.n_bands), np.zeros(info.n_bands), factor)


def _scale_pixels(pixels: Any, scale: _Scale) -> Any:
    """Return scaled pixels (band, y, x) as float; NumPy in, NumPy out, and dask likewise."""
    if scale.trivial:
        return pixels
    wanted = np.result_type(pixels.dtype, np.float32 if pixels.dtype.itemsize < 4 else np.float16)
    if not isinstance(pixels, np.ndarray):
        return pixels.rechunk({0: -1}).map_blocks(_scale_pixels, scale, dtype=wanted)
    scaled = np.empty(pixels.shape, dtype=wanted)
    for band in range(pixels.shape[0]):  # one by one, because double precision takes more memory
        scaled[band] = (pixels[band] * scale.gain[band] + scale.offset[band]) / scale.divisor
    return scaled
