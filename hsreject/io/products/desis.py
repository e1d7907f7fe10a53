"""DESIS L2A (DLR, Teledyne): a GeoTIFF and an ENVI header that describes its bands.

The layout::

    DESIS-HSI-L2A-*-SPECTRAL_IMAGE.tif, int16, -32768 = no data
    DESIS-HSI-L2A-*-SPECTRAL_IMAGE.hdr: wavelength, fwhm, data gain values, data offset values
    DESIS-HSI-L2A-*-QL_QUALITY-2.tif: shadow, clear land, snow, haze over land, haze over water,
    cloud over land, cloud over water, clear water, aerosols, water vapour
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from hsreject.errors import FileError
from hsreject.io.arrays import Mask, StoredScene
from hsreject.io.products.layout import quality_layer, unscaled
from hsreject.io.rasters.raster import RasterInfo, raster_info, read_raster_scene

if TYPE_CHECKING:
    from pathlib import Path

_NAME = re.compile(r"(DESIS-.*)(?:SPECTRAL_IMAGE\.(?:TIFF?|HDR)|METADATA\.XML)", re.IGNORECASE)
_IMAGE = re.compile(r"SPECTRAL_IMAGE\.TIFF?", re.IGNORECASE)
_HEADER = re.compile(r"SPECTRAL_IMAGE\.HDR", re.IGNORECASE)
_QUALITY = re.compile(r"QL_QUALITY-2\.TIFF?", re.IGNORECASE)
_COVERED, _SNOW = (0, 3, 4, 5, 6), (2,)  # of its bands: shadow, haze, cloud; snow


def recognise(path: Path) -> bool:
    """Tell whether a file is the image, the header or the description of a DESIS scene."""
    return all(_beside(path, part) is not None for part in (_IMAGE, _HEADER))


def describe(path: Path) -> StoredScene:
    """Return the description of a DESIS scene, given any of its files."""
    image, header = _beside(path, _IMAGE), _beside(path, _HEADER)
    if image is None or header is None:
        raise FileError(f"{path} is not a DESIS scene with its header beside it.")
    info = raster_info(image.absolute(), header=header)
    scene = read_raster_scene(info, usual_nodata=-32768.0)
    masks, notes = _masks(path, info)
    level = re.search(r"L\d[A-D]", image.name)
    raw = info.dtype.kind in "iu" and not scene.pixels.scaled
    return replace(
        scene,
        product=f"DESIS {level[0] if level else 'L2A'}",
        pixels=replace(scene.pixels, masks=masks),
        warnings=(unscaled(image, "reflectance"),) if raw else (),
        notes=(*scene.notes, *notes),
    )


def _masks(path: Path, info: RasterInfo) -> tuple[tuple[Mask, ...], tuple[str, ...]]:
    file = _beside(path, _QUALITY)
    layer, notes = (None, ()) if file is None else quality_layer(file, info, n_bands=8)
    if layer is None:
        return (), notes
    covered = Mask("QL_QUALITY-2 (shadow, haze, cloud)", layer, _COVERED)
    return (covered, Mask("QL_QUALITY-2 (snow)", layer, _SNOW, spared="snow")), notes


def _beside(path: Path, part: re.Pattern[str]) -> Path | None:
    """Return the file of the same scene with that part, in whatever case it is written."""
    own = _NAME.fullmatch(path.name)
    if own is None:
        return None
    for file in sorted(path.parent.iterdir()):
        if file.name.upper().startswith(own[1].upper()) and part.fullmatch(file.name[own.end(1) :]):
            return file
    return None
