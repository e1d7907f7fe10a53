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
from hsreject.files import reading
from hsreject.io.arrays.stored_pixels import Mask, Pixels
from hsreject.io.products.layout import files_beside, quality_layer, undescribed
from hsreject.io.rasters.raster import RasterInfo, raster_info, raster_layer, read_raster_scene
from hsreject.io.stored_scene import StoredScene
from hsreject.io.wavelengths import nanometres

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

# Names in capitals; what those of a scene begin with comes first.
_ENDING = r"\.(?:TIFF?|BSQ|BIL|BIP)"
_IMAGE = re.compile(rf"(.*)SPECTRAL_IMAGE(?:_(VNIR|SWIR))?(.*){_ENDING}")
_METADATA = re.compile(r"(.*)METADATA\.XML")
_QUALITY = re.compile(
    rf"(.*)QL_QUALITY_(CLASSES|CLOUD|CLOUDSHADOW|HAZE|CIRRUS|SNOW)(?:_COG)?{_ENDING}"
)
_AS_DOWNLOADED = ("", "_COG")  # what the name of an image has after SPECTRAL_IMAGE
_SCENE = re.compile(r"DT\d{10}_\d{8}T\d{6}Z_\d{3}")  # what all names of a scene have in them
_VALUES: dict[str, tuple[int, ...]] = {
    "CLASSES": (0, 3),  # background; 1 is land, 2 is water
    "CIRRUS (thin)": (1,),
    "CIRRUS": (2, 3),
}
"""Which values of a quality layer hide the ground; of others, all above 0."""
_SPARED = {"CIRRUS (thin)": "thin cirrus", "SNOW": "snow"}


def recognise(path: Path) -> bool:
    """Tell whether a file is the image or the description of an EnMAP scene, by its name."""
    name = path.name.upper()
    if name.startswith("DESIS"):
        return False
    if _METADATA.fullmatch(name):
        return True
    image = _IMAGE.fullmatch(re.sub(r"\.HDR$", ".BSQ", name))
    return image is not None and ("ENMAP" in name or bool(files_beside(path, _METADATA)))


def describe(path: Path) -> StoredScene:
    """Return an EnMAP scene, given its image or its XML file.

    An image whose description is missing is opened as any raster, with a warning.
    """
    by_metadata = _METADATA.fullmatch(path.name.upper()) is not None
    info = raster_info((_image_of(path) if by_metadata else path).absolute())
    described = path if by_metadata else _metadata_of(info)
    usual_nodata = -32768.0 if info.dtype == np.int16 else None
    if described is None:
        scene = read_raster_scene(info, usual_nodata=usual_nodata)
        return replace(scene, warnings=undescribed(path, scene, "an EnMAP", "METADATA.XML"))
    detector = _parts(info.path)[1]
    level = re.search(r"L\d[A-C]", info.path.name)
    masks, notes = _masks(info)
    stated = [
        _numbers(described, f"bandCharacterisation/bandID/{name}")
        for name in ("wavelengthCenterOfBand", "GainOfBand", "OffsetOfBand", "FWHMOfBand")
    ]
    # the bands of SWIR come after those of VNIR
    part = {"": slice(None), "VNIR": slice(info.n_bands), "SWIR": slice(-info.n_bands, None)}
    centre, gain, offset, width = (values[part[detector]] for values in stated)
    if not (centre.size and gain.size and offset.size):
        raise FileError(
            f"{described} does not describe an EnMAP scene: it lacks wavelengths, gains or offsets "
            "of bands (bandCharacterisation). Download it again."
        )
    if centre.size != info.n_bands:
        raise FileError(
            f"{described} describes {stated[0].size} bands, but {info.path.name} has "
            f"{info.n_bands}. Open the image that was downloaded with it; one with other bands "
            "opens from a folder of its own, without scale and wavelengths."
        )
    beside = info.path if by_metadata else described
    notes = [f"{beside.name}, found beside, belongs to it.", *notes]
    scaled = info.dtype.kind != "f"
    if not scaled:
        notes.append(f"{info.path.name} holds floats: not scaled as {described.name} says.")
    bands = nanometres(centre, "nm", width if width.size else None)
    # bands without any data do not vary
    spread = _numbers(described, "bandStatistics/bandID/stdDeviation")
    good = spread != 0 if spread.size and not detector else None
    return StoredScene(
        product=f"EnMAP {level[0] if level else 'L2A'} {detector}".strip(),
        pixels=Pixels.of(
            raster_layer(info),
            fill=usual_nodata if info.nodata is None else info.nodata,
            gain=gain if scaled else 1.0,
            offset=offset if scaled else 0.0,
            masks=masks,
        ),
        bands=replace(bands, good=good),
        place=info.grid,
        notes=tuple(notes),
    )


def _image_of(described: Path) -> Path:
    """Return the image that a description belongs to."""
    prefix = described.name.upper().removesuffix("METADATA.XML")
    images = files_beside(described, _IMAGE)
    same = [(file, parts) for file, parts in images if parts[1] == prefix]
    same = same or (images if len(images) == 1 else [])
    whole = [file for file, parts in same if not parts[2]]
    plain = [file for file, parts in same if not parts[2] and parts[3] in _AS_DOWNLOADED]
    if same and not whole:
        raise FileError(
            f"{described} belongs to an EnMAP L1B product, whose two detectors do not see the same "
            "pixels. Download the L2A product, or open the image of one detector."
        )
    if not whole:
        raise FileError(
            f"{described} describes an EnMAP scene, but its image *-SPECTRAL_IMAGE.TIF is not "
            "beside it. Put both into one folder."
        )
    if len(whole) > 1 and not plain:
        names = ", ".join(file.name for file in whole)
        raise FileError(f"{described} has several images beside it: {names}. Open one of them.")
    return min(plain or whole, key=lambda file: (len(file.name), file.name))


def _metadata_of(info: RasterInfo) -> Path | None:
    """Return the description that fits an image: of its name, of its scene, or the only one."""
    prefix, detector, rest = _parts(info.path)
    there = files_beside(info.path, _METADATA)
    same = [file for file, parts in there if parts[1] == prefix]
    if same and (detector or rest in _AS_DOWNLOADED):
        return same[0]
    scene = _SCENE.search(info.path.name.upper())
    fitting = same or [file for file, parts in there if scene is None or scene[0] in parts[1]]
    if len(fitting) != 1:
        return None
    n_described = _numbers(fitting[0], "bandCharacterisation/bandID/wavelengthCenterOfBand").size
    return fitting[0] if n_described == info.n_bands else None


def _parts(image: Path) -> tuple[str, str, str]:
    """Return what the names of a scene begin with, the detector, and what was added to a name."""
    match = _IMAGE.fullmatch(image.name.upper())
    return ("", "", "") if match is None else (match[1], match[2] or "", match[3])


def _numbers(path: Path, entry: str) -> NDArray[np.float64]:
    """Read what a description states of each band; empty if not stated."""
    with reading(path):
        root = ET.fromstring(path.read_bytes())  # noqa: S314  read, never expanded
        return np.array([float(e.text or "nan") for e in root.iterfind(f".//{entry}")])


def _masks(info: RasterInfo) -> tuple[tuple[Mask, ...], list[str]]:
    """Return the masks of the quality layers that lie on the pixels of the image."""
    masks: dict[str, Mask] = {}
    notes: list[str] = []
    for file, parts in files_beside(info.path, _QUALITY):
        if parts[1] != _parts(info.path)[0]:
            continue
        layer, notes_on_layer = quality_layer(file, info)
        notes += notes_on_layer
        for kind in ("CIRRUS (thin)", "CIRRUS") if parts[2] == "CIRRUS" else (parts[2],):
            if layer is not None and kind not in masks:
                values, spared = _VALUES.get(kind), _SPARED.get(kind, "")
                masks[kind] = Mask(f"QL_QUALITY_{kind}", layer, values=values, spared=spared)
    return tuple(masks.values()), notes
