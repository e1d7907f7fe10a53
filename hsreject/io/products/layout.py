"""How products say things: numbers and text, bands, values, the grid, quality layers."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import rasterio
from affine import Affine
from rasterio.crs import CRS
from rasterio.errors import CRSError

from hsreject.io.arrays.stored_pixels import Layer, usable_nodata
from hsreject.io.grid import PixelGrid, names_system_elsewhere
from hsreject.io.lookup import Located
from hsreject.io.rasters.raster import RasterInfo, raster_info, raster_layer
from hsreject.io.stored_scene import StoredScene
from hsreject.io.wavelengths import BandInfo, nanometres

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

CENTRES = (
    *("wavelength", "wavelengths", "Wavelength", "Wavelengths"),
    *("wl", "wave_length", "center_wavelength", "wavelength_3d"),
)
"""What lists of wavelengths are usually called."""
_FILLS = ("Data_Ignore_Value", "_FillValue", "missing_value", "FillValue")

# How files say things: `owner` is an h5py object, or a variable of xarray.


def _stored(value: Any) -> NDArray[Any]:
    """Return what a file keeps as a list; an empty one of nothing."""
    if isinstance(value, h5py.Dataset):
        value = value[()]
    absent = value is None or isinstance(value, h5py.Empty)
    return np.ravel([] if absent else np.asarray(value))


def text(value: Any) -> str:
    """Return text that a file keeps as str, bytes, or an array of one of them; "" for nothing."""
    items = _stored(value)
    first = items[0] if items.size else ""
    decoded = first.decode("utf-8", "replace") if isinstance(first, bytes) else str(first)
    return decoded.strip("\0 \t\r\n")


def numbers(value: Any) -> NDArray[np.float64]:
    """Return numbers that a file keeps as an array, or as text with blanks or commas."""
    items = _stored(value)
    if items.dtype.kind in "SUO" and items.size == 1:
        items = np.asarray(re.findall(r"[^\s,;]+", text(items).strip("{}[]() ")))
    return items.astype(np.float64)


def attribute(owner: Any, *names: str) -> Any:
    """Return the first of some attributes that an array or a group has, or None."""
    return child(getattr(owner, "attrs", {}), *names)


def child(group: Mapping[str, Any], *names: str) -> Any:
    """Return the first of some members that an HDF5 group has, or None."""
    return next((group[name] for name in names if name in group), None)


def maybe_number(value: Any) -> float | None:
    """Return one number that may be absent."""
    stated = numbers(value)
    return float(stated[0]) if stated.size else None


def stated_bands(lists: Mapping[str, Any], *, unit: str = "") -> BandInfo:
    """Return what lists under their usual names say of the bands; None is absent.

    They are the members of an HDF5 group, attributes, or variables of xarray. `unit` is that of
    lists that do not state their own; by default nm.
    """
    centres, widths = child(lists, *CENTRES), child(lists, "fwhm", "FWHM")
    good = child(lists, "good_band", "good_wavelengths")
    if centres is None:
        bands = BandInfo(notes=("The file does not say the wavelengths of its bands.",))
    else:
        units = [text(attribute(owner, "units", "Units")) for owner in (centres, widths)]
        width = None if widths is None else numbers(widths)
        bands = nanometres(numbers(centres), units[0] or unit or "nm", width, units[1])
    return replace(bands, good=None if good is None else numbers(good) == 1)


def stated_values(owner: Any, *, fill: float | None = None) -> dict[str, Any]:
    """Return what an array says of its values the CF way: fills, gain and offset.

    `fill` is what usually means no data in such files, where one does not say.
    """
    stated = (value for name in _FILLS for value in numbers(attribute(owner, name)).tolist())
    usable = dict.fromkeys(v for v in stated if usable_nodata(v, owner.dtype) is not None)
    # all of them mean no data, but NaN does so by itself
    fills = [value for value in usable if not np.isnan(value)] or [*usable] or [fill]
    gain = maybe_number(attribute(owner, "scale_factor"))
    return {
        "fill": fills[0],
        "more_fills": tuple(fills[1:]),
        "gain": 1.0 if gain is None else gain,
        "offset": maybe_number(attribute(owner, "add_offset")) or 0.0,
    }


def located(shape: tuple[int, ...], transform: Affine | None, crs: str | float | None) -> Located:
    """Return the grid of rows and columns, the last of `shape`; `crs` as text or EPSG code."""
    if (
        len(shape) < 2
        or transform is None
        or not (np.isfinite(transform[:6]).all() and transform.determinant)
    ):
        return Located(None, ("The place of the pixels on a map is not understood: not used.",))
    try:
        if names_system_elsewhere({"crs": crs}):
            raise CRSError("not followed")
        with rasterio.Env():  # else GDAL complains on the screen
            named = CRS.from_string(crs) if isinstance(crs, str) else CRS.from_epsg(int(crs or 0))
    except (CRSError, ValueError):
        named = None
    unclear = ("The reference system of the file is not understood: not used.",)
    grid = PixelGrid(shape[-2], shape[-1], transform, named)
    return Located(grid, () if named is not None or not crs else unclear)


def gdal_transform(value: Any) -> Affine | None:
    """Return the transform that six numbers in the order of GDAL say."""
    stated = numbers(value)
    return Affine.from_gdal(*stated[:6].tolist()) if stated.size >= 6 else None


def files_beside(path: Path, pattern: re.Pattern[str]) -> list[tuple[Path, re.Match[str]]]:
    """Return the files in the folder of a file whose names fit a pattern, and how, in capitals."""
    named = ((file, pattern.fullmatch(file.name.upper())) for file in sorted(path.parent.iterdir()))
    return [(file, match) for file, match in named if match is not None]


def quality_layer(
    path: Path, image: RasterInfo, *, n_bands: int = 1
) -> tuple[Layer | None, tuple[str, ...]]:
    """Return a quality layer beside an image, if it lies on its pixels, and what to note."""
    info = raster_info(path.absolute())
    if not info.grid.same_as(image.grid):
        return None, (f"{path.name} does not lie on the pixels of the image: not used.",)
    if info.n_bands < n_bands:
        few = f"{path.name} has {info.n_bands} bands, {n_bands} are needed: not used."
        return None, (few,)
    return raster_layer(info), ()


def unscaled(path: Path, what: str) -> str:
    """Return the warning of a file that should state a scale and does not."""
    return (
        f"{path.name} does not say how its values are scaled: they are the numbers in the file, "
        f"not {what}."
    )


def undescribed(path: Path, scene: StoredScene, kind: str, description: str) -> tuple[str, ...]:
    """Return the warning of what an image lacks because its description is not beside it."""
    lacks = []
    if scene.pixels.layers[0].dtype.kind in "iu" and not scene.pixels.scaled:
        lacks.append("scale (its values are the numbers in the file, of L2A 10000 x reflectance)")
    if scene.bands.wavelength is None:
        lacks.append("wavelengths")
    if not lacks:
        return ()
    if not scene.pixels.masks:
        lacks.append("masks")
    return (
        f"{path.name} has the name of {kind} image, but no {description} that fits is beside it: "
        f"it has no {', no '.join(lacks)}. Put the {description} into its folder.",
    )
