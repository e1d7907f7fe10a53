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

from hsreject.io.arrays.stored_pixels import Mask
from hsreject.io.products.layout import files_beside, quality_layer, undescribed, unscaled
from hsreject.io.rasters.raster import raster_info, read_raster_scene
from hsreject.io.stored_scene import StoredScene

if TYPE_CHECKING:
    from pathlib import Path

_IMAGE, _HEADER, _QUALITY = "SPECTRAL_IMAGE.TIF", "SPECTRAL_IMAGE.HDR", "QL_QUALITY-2.TIF"
_NAME = re.compile(rf"(DESIS-.*)({_IMAGE}|{_HEADER}|{_QUALITY}|METADATA\.XML)F?")
_COVERED, _SNOW = (0, 3, 4, 5, 6), (2,)  # bands of the quality: shadow, haze, cloud; snow


def recognise(path: Path) -> bool:
    """Tell whether a file is the image, the header or the description of a DESIS scene."""
    return _IMAGE in _parts(path)


def describe(path: Path) -> StoredScene:
    """Return the description of a DESIS scene, given any of its files.

    An image whose header is missing is opened as any raster, with a warning.
    """
    parts = _parts(path)
    image = parts[_IMAGE].absolute()
    info = raster_info(image, header=parts.get(_HEADER))
    scene = read_raster_scene(info, usual_nodata=-32768.0)
    notes = scene.notes
    if _QUALITY in parts:
        layer, notes_on_quality = quality_layer(parts[_QUALITY], info, n_bands=8)
        notes += notes_on_quality
        if layer is not None:
            covered = Mask("QL_QUALITY-2 (shadow, haze, cloud)", layer, _COVERED)
            masks = covered, Mask("QL_QUALITY-2 (snow)", layer, _SNOW, spared="snow")
            scene = replace(scene, pixels=replace(scene.pixels, masks=masks))
    warnings: tuple[str, ...] = ()
    if _HEADER not in parts:
        warnings = undescribed(image, scene, "a DESIS", "SPECTRAL_IMAGE.hdr")
    elif info.dtype.kind in "iu" and not scene.pixels.scaled:
        warnings = (unscaled(image, "reflectance"),)
    level = re.search(r"L\d[A-D]", image.name)
    product = f"DESIS {level[0] if level else 'L2A'}"
    return replace(scene, product=product, notes=notes, warnings=warnings)


def _parts(path: Path) -> dict[str, Path]:
    """Return the files of the scene that a file belongs to, by the ends of their names."""
    own = _NAME.fullmatch(path.name.upper())
    if own is None:
        return {}
    return {match[2]: file for file, match in files_beside(path, _NAME) if match[1] == own[1]}
