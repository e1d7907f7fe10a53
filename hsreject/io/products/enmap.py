"""EnMAP (DLR): a raster, a description in XML and masks, side by side in a folder.

The layout::

    *-SPECTRAL_IMAGE*.TIF, int16, -32768 = no data; also .BSQ, .BIL or .BIP with a header
    *-METADATA.XML: specific/bandCharacterisation/bandID/{wavelengthCenterOfBand, FWHMOfBand,
    GainOfBand, OffsetOfBand}, and product/bandStatistics/bandID/stdDeviation
    *-QL_QUALITY_{CLASSES, CLOUD, CLOUDSHADOW, HAZE, CIRRUS, SNOW}*.TIF

L1B products have an image per detector, VNIR and SWIR, whose bands follow one another in the XML.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np

from hsreject.errors import FileError
from hsreject.io.arrays import Mask, Pixels, StoredScene
from hsreject.io.products.layout import quality_layer
from hsreject.io.rasters.raster import (
    RasterInfo,
    raster_info,
    raster_layer,
    raster_source,
    read_raster_scene,
)
from hsreject.io.wavelengths import nanometres

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_ENDING = r"\.(?:TIFF?|BSQ|BIL|BIP)"
_IMAGE = re.compile(rf"(.*)SPECTRAL_IMAGE(?:_(VNIR|SWIR))?(.*){_ENDING}", re.IGNORECASE)
_METADATA = re.compile(r"(.*)METADATA\.XML", re.IGNORECASE)
_QUALITY = re.compile(
    rf"(.*)QL_QUALITY_(CLASSES|CLOUD|CLOUDSHADOW|HAZE|CIRRUS|SNOW)(?:_COG)?{_ENDING}", re.IGNORECASE
)
_SCENE = re.compile(r"DT\d{10}_\d{8}T\d{6}Z_\d{3}", re.IGNORECASE)  # what names of a scene share
_LEVEL = re.compile(r"L\d[A-C]")
_BACKGROUND = (0, 3)  # of the classes; 1 is land, 2 is water
_THIN, _THICKER = (1,), (2, 3)  # of cirrus


def recognise(path: Path) -> bool:
    """Tell whether a file is the image or the description of an EnMAP scene, by its name."""
    name = path.name.upper()
    if name.startswith("DESIS"):
        return False
    if _METADATA.fullmatch(name):
        return True
    image = _IMAGE.fullmatch(re.sub(r"\.HDR$", ".BSQ", name))
    return image is not None and (
        "ENMAP" in name or any(_METADATA.fullmatch(file.name) for file in path.parent.iterdir())
    )


def describe(path: Path) -> StoredScene:
    """Return an EnMAP scene, given its image or its XML file.

    An image whose description is missing is opened as any raster, with a warning.
    """
    by_metadata = _METADATA.fullmatch(path.name) is not None
    source = raster_source((_image_of(path) if by_metadata else path).absolute())
    image, info = source.path, raster_info(source)
    described = path if by_metadata else _metadata_of(image, info)
    if described is None:
        return _undescribed(path, read_raster_scene(path))
    detector = _parts(image)[1]
    level = _LEVEL.search(image.name)
    masks, notes = _masks(image, info)
    root = _parsed(described)
    # the bands of SWIR come after those of VNIR
    part = {"": slice(None), "VNIR": slice(info.n_bands), "SWIR": slice(-info.n_bands, None)}
    centre, gain, offset, width = (
        _numbers(root, name, described, needed=name != "FWHMOfBand")[part[detector]]
        for name in ("wavelengthCenterOfBand", "GainOfBand", "OffsetOfBand", "FWHMOfBand")
    )
    bands = nanometres(centre, "nm", width if width.size else None)
    return StoredScene(
        product=f"EnMAP {level[0] if level else 'L2A'} {detector}".strip(),
        pixels=Pixels.of(
            raster_layer(info),
            fill=-32768.0 if info.nodata is None and info.dtype == np.int16 else info.nodata,
            gain=gain,
            offset=offset,
            masks=masks,
        ),
        bands=replace(bands, good=None if detector else _good(root)),
        place=info.grid,
        notes=(
            f"{(image if by_metadata else described).name}, found beside, belongs to it.",
            *notes,
        ),
    )


def _undescribed(path: Path, scene: StoredScene) -> StoredScene:
    """Return a scene with a warning of what it lacks without its description."""
    lacks = []
    if scene.pixels.layers[0].dtype.kind in "iu" and not scene.pixels.scaled:
        lacks.append("scale (its values are the numbers in the file, of L2A 10000 x reflectance)")
    if scene.bands.wavelength is None:
        lacks.append("wavelengths")
    if not lacks:
        return scene
    warning = (
        f"{path.name} has the name of an EnMAP image, but no METADATA.XML that fits is beside it: "
        f"it has no {', no '.join(lacks)} and no masks. Put the METADATA.XML into its folder."
    )
    return replace(scene, warnings=(warning,))


def _image_of(described: Path) -> Path:
    """Return the image that a description belongs to."""
    own = _parts(described)[0]
    images = [file for file in sorted(described.parent.iterdir()) if _IMAGE.fullmatch(file.name)]
    same = [file for file in images if _parts(file)[0] == own] or (
        images if len(images) == 1 else []
    )
    if not same:
        raise FileError(
            f"{described} describes an EnMAP scene, but its image *-SPECTRAL_IMAGE.TIF is not "
            "beside it. Put both into one folder."
        )
    detectors = [file for file in same if _parts(file)[1]]
    if len(detectors) == len(same):
        raise FileError(
            f"{described} belongs to an EnMAP L1B product, whose two detectors do not see the same "
            "pixels. Download the L2A product, or open the image of one detector."
        )
    whole = [file for file in same if file not in detectors]
    return min(whole, key=lambda file: (len(file.name), file.name))


def _metadata_of(image: Path, info: RasterInfo) -> Path | None:
    """Return the description that fits an image: of its name, of its scene, or the only one."""
    prefix, detector, rest = _parts(image)
    there = [file for file in sorted(image.parent.iterdir()) if _METADATA.fullmatch(file.name)]
    same = [file for file in there if _parts(file)[0] == prefix]
    if same and (detector or rest in {"", "_COG"}):  # as it was downloaded
        return same[0]
    scene = _SCENE.search(image.name)
    if scene is not None:
        there = [file for file in there if scene[0].upper() in file.name.upper()]
    fitting = same or there
    if len(fitting) != 1:
        return None
    n_described = _numbers(_parsed(fitting[0]), "wavelengthCenterOfBand", fitting[0]).size
    return fitting[0] if n_described == info.n_bands else None


def _parts(path: Path) -> tuple[str, str, str]:
    """Return what the names of a scene begin with, the detector, and what was added to a name."""
    name = path.name.upper()
    if image := _IMAGE.fullmatch(name):
        return image[1], image[2] or "", image[3]
    described = _METADATA.fullmatch(name)
    return (described[1] if described else ""), "", ""


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


def _masks(image: Path, info: RasterInfo) -> tuple[tuple[Mask, ...], list[str]]:
    """Return the masks of the quality layers that lie on the pixels of the image."""
    masks: dict[str, Mask] = {}
    notes: list[str] = []
    for file in sorted(image.parent.iterdir()):
        match = _QUALITY.fullmatch(file.name)
        if match is None or match[1].upper() != _parts(image)[0]:
            continue
        layer, note = quality_layer(file, info)
        notes += note
        if layer is None:
            continue
        kind = match[2].upper()
        name = f"QL_QUALITY_{kind}"
        if kind == "CIRRUS":
            thin = f"{name} (thin)"
            masks.setdefault(thin, Mask(thin, layer, values=_THIN, spared="thin cirrus"))
        values = {"CLASSES": _BACKGROUND, "CIRRUS": _THICKER}.get(kind)
        spared = "snow" if kind == "SNOW" else ""
        masks.setdefault(name, Mask(name, layer, values=values, spared=spared))
    return tuple(masks.values()), notes
