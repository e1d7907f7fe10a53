"""Scenes: any ENVI, GeoTIFF, .mat or .npy file becomes a labelled cube."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.errors import FileError
from hsreject.io import envi_header
from hsreject.io.array_scene import read_array_scene
from hsreject.io.bands import BandInfo, BandSources, band_info
from hsreject.io.raster_file import RasterInfo, raster_info, read_pixels, usable_nodata
from hsreject.io.raster_notes import raster_notes
from hsreject.io.scaling import scale_pixels, stated_scale
from hsreject.io.source import Kind, RasterSource, existing, file_kind, raster_source
from hsreject.schema import BAND, CUBE_DIMS, FWHM, GOOD_BAND, MAP_DIMS, WAVELENGTH, good_bands

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray


def open_scene(
    path: str | os.PathLike[str],
    *,
    chunks: Any = None,
    variable: str | None = None,
    band_axis: int | None = None,
) -> xr.DataArray:
    """Open a hyperspectral scene as a cube.

    Parameters
    ----------
    path : str or path
        An ENVI file (the data or its header), a GeoTIFF, a MATLAB .mat or a NumPy .npy file.
    chunks : optional
        Opens lazily: anything dask takes for (band, y, x), such as ``{"y": 512, "x": 512}``.
        "auto" makes blocks of whole spectra. No pixel is read before it is needed.
    variable : str, optional
        Which array of a .mat file, if it has several that could be the scene.
    band_axis : int, optional
        Which axis of a .mat or .npy array holds the bands (0, 1 or 2; -1 is the last).

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
    :func:`hsreject.io.scene.mark_empty_bands` to do it.

    Examples
    --------
    >>> import numpy as np, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "scene.npy")
    ...     np.save(path, np.ones((4, 4, 30), dtype="uint16"))
    ...     cube = open_scene(path)
    >>> dict(cube.sizes)
    {'band': 30, 'y': 4, 'x': 4}
    """
    found = existing(path)
    kind = file_kind(found)
    if kind is Kind.RASTER:
        cube = _open_raster(raster_source(found), chunks=chunks)
    elif kind is Kind.VECTOR:
        raise FileError(f"{found} holds vector features, not a scene. Open it with open_labels.")
    else:
        pixels, bands = read_array_scene(
            found, kind, chunks=chunks, variable=variable, band_axis=band_axis
        )
        cube = make_cube(pixels, bands, guesses=list(bands.guesses))
        cube = cube.assign_attrs(source=found.name, format=kind.value, type_in_file=str(cube.dtype))
    return cube if chunks is not None else _with_data(mark_empty_bands(cube), found)


def mark_empty_bands(cube: xr.DataArray) -> xr.DataArray:
    """Return the cube with the bands that have no data at all marked bad.

    This reads every pixel of a lazily opened cube, once.

    Parameters
    ----------
    cube : DataArray, dims (band, y, x)
        NaN where there is no data. An integer cube has data everywhere and is returned as it is.

    Returns
    -------
    DataArray
        With the coord `good_band`, if there are bad bands.

    Examples
    --------
    >>> cube = xr.DataArray([[[1.0, 2.0]], [[np.nan, np.nan]]], dims=("band", "y", "x"))
    >>> mark_empty_bands(cube).good_band.values
    array([ True, False])
    """
    if cube.dtype.kind != "f":
        return cube
    full = cube.notnull().any(MAP_DIMS).values
    good = good_bands(cube) & full
    return cube if good.all() else cube.assign_coords({GOOD_BAND: (BAND, good)})


def _with_data(cube: xr.DataArray, path: object) -> xr.DataArray:
    if cube.dtype.kind == "f" and not cube.notnull().any():
        raise FileError(f"{path} has no data: every pixel of every band is nodata or NaN.")
    return cube


def _open_raster(source: RasterSource, *, chunks: Any) -> xr.DataArray:
    info = raster_info(source.path, driver=source.driver)
    fields = source.fields or envi_header.fields_from_tags(info.envi, info.tags, info.n_bands)
    where = str(source.header or source.path)
    bands = band_info(_band_sources(info, fields, where=where, header_only=bool(source.fields)))
    if any(info.alpha):
        stated = np.ones(info.n_bands, dtype=bool) if bands.good is None else bands.good
        bands = replace(bands, good=stated & ~np.array(info.alpha))
    guesses = [*source.guesses, *raster_notes(info, source.fields), *bands.guesses]
    scale = stated_scale(info, fields, header=source.fields, where=where, guesses=guesses)
    info = _with_stated_nodata(info, fields, guesses)
    pixels = read_pixels(info, chunks=chunks)
    cube = make_cube(scale_pixels(pixels, scale), bands, guesses=guesses)
    layout = info.interleave if info.driver != "ENVI" else fields["interleave"].lower()
    cube = cube.assign_attrs(
        source=source.path.name, format=f"{info.driver} {layout}", type_in_file=str(info.dtype)
    )
    if info.nodata is not None:
        cube.attrs["nodata_in_file"] = info.nodata
    if not scale.trivial:
        cube.attrs["scaling"] = str(scale)
    return info.grid.attach(cube)


def _band_sources(
    info: RasterInfo, fields: dict[str, str], *, where: str, header_only: bool
) -> BandSources:
    """Return where to look for wavelengths; what GDAL makes of an ENVI header adds nothing."""
    if not header_only:
        return BandSources(where, info.n_bands, fields, info.band_tags, info.names)
    names = envi_header.items(fields, "band names")
    return BandSources(
        where, info.n_bands, fields, names=names if len(names) == info.n_bands else ()
    )


def make_cube(pixels: NDArray[Any], bands: BandInfo, *, guesses: list[str]) -> xr.DataArray:
    """Return the cube of pixels (band, y, x) with what is known of its bands."""
    coords: dict[str, Any] = {BAND: np.arange(1, pixels.shape[0] + 1)}
    for name, values in (
        (WAVELENGTH, bands.wavelength),
        (FWHM, bands.fwhm),
        (GOOD_BAND, bands.good),
    ):
        if values is not None:
            coords[name] = (BAND, values)
    cube = xr.DataArray(pixels, dims=CUBE_DIMS, coords=coords, name="cube")
    for name in (WAVELENGTH, FWHM):
        if name in cube.coords:
            cube.coords[name].attrs["units"] = "nm"
    if guesses:
        cube.attrs["guesses"] = list(guesses)
    return cube


def _with_stated_nodata(info: RasterInfo, fields: dict[str, str], guesses: list[str]) -> RasterInfo:
    """Return the file with the nodata value that only its ENVI fields tell, if it can occur."""
    stated = fields.get("data ignore value")
    if stated is None or info.nodata is not None:
        return info
    value = usable_nodata(
        envi_header.number(stated, name="data ignore value", where=str(info.path)), info.dtype
    )
    if value is None:
        guesses.append(
            f"The data ignore value {stated} cannot occur in {info.dtype} pixels: ignored."
        )
        return info
    return replace(info, nodata=value, overlooked=True)
