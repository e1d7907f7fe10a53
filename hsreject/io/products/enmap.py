"""EnMAP L2A and L1C (DLR): a GeoTIFF, a description in XML and masks, side by side in a folder.

The layout::

    *-SPECTRAL_IMAGE*.TIF, int16, -32768 = no data
    *-METADATA.XML: specific/bandCharacterisation/bandID/{wavelengthCenterOfBand, FWHMOfBand,
    GainOfBand, OffsetOfBand}, and product/bandStatistics/bandID/stdDeviation
    *-QL_QUALITY_{CLASSES, CLOUD, CLOUDSHADOW, HAZE, CIRRUS, SNOW}*.TIF
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np

from hsreject.errors import FileError
from hsreject.io.products.layout import Mask, Product, RasterArray

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_IMAGE = re.compile(r"(.*)SPECTRAL_IMAGE(_COG)?\.TIFF?", re.IGNORECASE)
_DETECTOR = re.compile(r".*SPECTRAL_IMAGE_(VNIR|SWIR).*\.TIFF?", re.IGNORECASE)
_METADATA = re.compile(r"(.*)METADATA\.XML", re.IGNORECASE)
_QUALITY = re.compile(
    r"(.*)QL_QUALITY_(CLASSES|CLOUD|CLOUDSHADOW|HAZE|CIRRUS|SNOW)(_COG)?\.TIFF?", re.IGNORECASE
)
_BACKGROUND = (0, 3)  # of the classes; 1 is land, 2 is water


def recognise(path: Path) -> bool:
    """Tell whether a file is the image or the description of an EnMAP scene."""
    if path.name.upper().startswith("DESIS"):
        return False
    if _METADATA.fullmatch(path.name):
        return True
    return bool(_IMAGE.fullmatch(path.name)) and _beside(path, _METADATA) is not None


def describe(path: Path) -> Product:
    """Return the description of an EnMAP scene, given its image or its XML file."""
    described = _beside(path, _METADATA) or path
    image = _beside(path, _IMAGE)
    if image is None:
        other = _beside(path, _DETECTOR)
        raise FileError(
            f"{other or path} belongs to an EnMAP L1B product, whose two detectors do not see the "
            "same pixels. Download the L2A product."
            if other
            else f"{path} describes an EnMAP scene, but its image *-SPECTRAL_IMAGE.TIF is not "
            "beside it. Put both into one folder."
        )
    layer = RasterArray(image.absolute())
    other = described if path == image else image
    guesses = [f"{other.name}, found beside, belongs to it."]
    root = _parsed(described)
    info = layer.info
    fill = -32768.0 if info.nodata is None and info.dtype == np.int16 else info.nodata
    masks = _masks(path, layer, guesses)
    level = re.search(r"L\d[A-C]", image.name)
    return Product(
        name=f"EnMAP {level[0] if level else 'L2A'}",
        layers=(layer,),
        wavelength=_numbers(root, "wavelengthCenterOfBand", described),
        fwhm=_numbers(root, "FWHMOfBand", described, needed=False),
        good=_good(root),
        fill=fill,
        gain=_numbers(root, "GainOfBand", described),
        offset=_numbers(root, "OffsetOfBand", described),
        masks=masks,
        place=info.grid,
        guesses=tuple(guesses),
    )


def _beside(path: Path, pattern: re.Pattern[str]) -> Path | None:
    """Return the file of the same scene whose name fits, or the only one in the folder."""
    own = next((m[1] for p in (_IMAGE, _METADATA) if (m := p.fullmatch(path.name))), "")
    fitting = [file for file in sorted(path.parent.iterdir()) if pattern.fullmatch(file.name)]
    same = [file for file in fitting if file.name.upper().startswith(own.upper())] if own else []
    if same:
        return path if path in same else same[0]
    return fitting[0] if len(fitting) == 1 and not own else None


def _parsed(path: Path) -> ET.Element:
    try:
        return ET.fromstring(path.read_bytes())  # noqa: S314  read, never expanded
    except (ET.ParseError, UnicodeDecodeError, ValueError) as error:
        raise FileError(f"{path} is not well-formed XML ({error}). Download it again.") from error


def _numbers(
    root: ET.Element, name: str, path: Path, *, needed: bool = True
) -> NDArray[np.float64]:
    texts = [e.text or "" for e in root.iterfind(f".//bandCharacterisation/bandID/{name}")]
    try:
        values = np.array([float(entry) for entry in texts])
    except ValueError as error:
        raise FileError(f"{path}: a {name} is not a number ({error}).") from error
    if not values.size and needed:
        raise FileError(
            f"{path} has no {name} in bandCharacterisation: it does not describe an EnMAP scene."
        )
    return values


def _good(root: ET.Element) -> NDArray[np.bool_] | None:
    """Return which bands vary: those without any data do not."""
    spread = [e.text for e in root.iterfind(".//bandStatistics/bandID/stdDeviation")]
    try:
        good = np.array([float(entry or "nan") != 0 for entry in spread])
    except ValueError:
        return None
    return good if good.size else None


def _masks(path: Path, layer: RasterArray, guesses: list[str]) -> tuple[Mask, ...]:
    own = next((m[1] for p in (_IMAGE, _METADATA) if (m := p.fullmatch(path.name))), "")
    masks: dict[str, Mask] = {}
    for file in sorted(path.parent.iterdir()):
        match = _QUALITY.fullmatch(file.name)
        if match is None or match[1].upper() != own.upper():
            continue
        mask = RasterArray(file.absolute())
        if mask.shape[1:] != layer.shape[1:]:
            guesses.append(f"{file.name} has another size than the image: not used.")
            continue
        values = _BACKGROUND if match[2].upper() == "CLASSES" else None
        name = f"QL_QUALITY_{match[2].upper()}"
        masks.setdefault(name, Mask(name, mask, values=values))
    return tuple(masks.values())
