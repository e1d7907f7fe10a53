"""DESIS L2A (DLR, Teledyne): a GeoTIFF and an ENVI header that describes its bands.

The layout::

    DESIS-HSI-L2A-*-SPECTRAL_IMAGE.tif, int16, -32768 = no data
    DESIS-HSI-L2A-*-SPECTRAL_IMAGE.hdr: wavelength, fwhm, data gain values, data offset values
    DESIS-HSI-L2A-*-QL_QUALITY-2.tif: shadow, clear land, snow, haze over land, haze over water,
    cloud over land, cloud over water, clear water, aerosols, water vapour
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from hsreject.errors import FileError
from hsreject.io import envi
from hsreject.io.products.layout import Mask, Product, RasterArray

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_NAME = re.compile(r"(DESIS-.*)(?:SPECTRAL_IMAGE\.(?:TIFF?|HDR)|METADATA\.XML)", re.IGNORECASE)
_IMAGE = re.compile(r"SPECTRAL_IMAGE\.TIFF?", re.IGNORECASE)
_HEADER = re.compile(r"SPECTRAL_IMAGE\.HDR", re.IGNORECASE)
_QUALITY = re.compile(r"QL_QUALITY-2\.TIFF?", re.IGNORECASE)
_COVERED = (0, 2, 3, 4, 5, 6)  # of its bands: shadow, snow, haze, cloud


def recognise(path: Path) -> bool:
    """Tell whether a file is the image, the header or the description of a DESIS scene."""
    return all(_beside(path, part) is not None for part in (_IMAGE, _HEADER))


def describe(path: Path) -> Product:
    """Return the description of a DESIS scene, given any of its files."""
    image, header = _beside(path, _IMAGE), _beside(path, _HEADER)
    if image is None or header is None:
        raise FileError(f"{path} is not a DESIS scene with its header beside it.")
    fields = envi.parse_fields(envi.read_text(header), path=header)
    layer = RasterArray(image.absolute())
    n_bands = layer.shape[0]

    def listed(name: str) -> NDArray[np.float64] | None:
        found = envi.band_numbers(fields, name, n_bands=n_bands, where=str(header))
        return None if found is None else np.array(found)

    gain, offset = listed("data gain values"), listed("data offset values")
    flags = listed("bbl")
    info = layer.info
    stated = fields.get("data ignore value")
    fill = info.nodata
    if fill is None and stated:
        fill = envi.number(stated, name="data ignore value", where=str(header))
    if fill is None and info.dtype == np.int16:
        fill = -32768.0
    guesses = [f"Bands are described by {header.name}, found beside {image.name}."]
    level = re.search(r"L\d[A-D]", image.name)
    return Product(
        name=f"DESIS {level[0] if level else 'L2A'}",
        layers=(layer,),
        wavelength=listed("wavelength"),
        unit=fields.get("wavelength units", "nm"),
        fwhm=listed("fwhm"),
        good=None if flags is None else flags > 0,
        fill=fill,
        gain=1.0 if gain is None else gain,
        offset=0.0 if offset is None else offset,
        masks=_masks(path, layer, guesses),
        place=info.grid,
        guesses=tuple(guesses),
    )


def _masks(path: Path, layer: RasterArray, guesses: list[str]) -> tuple[Mask, ...]:
    file = _beside(path, _QUALITY)
    if file is None:
        return ()
    mask = RasterArray(file.absolute())
    if mask.shape[1:] != layer.shape[1:] or mask.shape[0] < 8:
        guesses.append(f"{file.name} does not fit the image: not used.")
        return ()
    return (Mask("QL_QUALITY-2 (shadow, snow, haze, cloud)", mask, _COVERED),)


def _beside(path: Path, part: re.Pattern[str]) -> Path | None:
    """Return the file of the same scene with that part, in whatever case it is written."""
    own = _NAME.fullmatch(path.name)
    if own is None:
        return None
    for file in sorted(path.parent.iterdir()):
        if file.name.upper().startswith(own[1].upper()) and part.fullmatch(file.name[own.end(1) :]):
            return file
    return None
