"""Turn a plain GeoTIFF into an ENVI file; label maps become an ENVI classification."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import rasterio
import rasterio.shutil
from affine import Affine
from rasterio.errors import RasterioIOError

from hsreject.errors import InputError
from hsreject.io.block_store import quiet_without_georeference
from hsreject.io.class_names import unused_name
from hsreject.io.georeference import placed

if TYPE_CHECKING:
    from pathlib import Path

    from hsreject.io.category_table import CategoryTable
    from hsreject.io.raster import Raster

SUFFIXES = (".img", ".dat", ".bsq")

_EXACT_ENOUGH = 1e-6  # of a pixel, at the far corner: what the angle of a rotated grid can hold


def side_files(path: Path) -> list[str]:
    """Return the names of the files that may stand beside an ENVI file and belong to it."""
    return [path.with_suffix(".hdr").name, f"{path.name}.hdr", f"{path.name}.aux.xml"]


def check_names(raster: Raster) -> None:
    """Raise when the header cannot hold the names of the map, before anything is computed."""
    classes = () if raster.categories is None else raster.categories.names.values()
    for name in (*raster.band_names, *classes):
        if re.search(r"[,{}\n]", name):
            raise InputError(
                f"An ENVI header cannot hold the name '{name}': commas and braces separate its "
                "fields. Rename the class, or write a GeoTIFF (.tif)."
            )


def finish_envi(raster: Raster, plain: Path, path: Path) -> None:
    """Write the ENVI file and its header.

    GDAL writes both; the header then gets what GDAL leaves out: every digit of the place, and the
    classes.
    """
    with quiet_without_georeference():
        rasterio.shutil.copy(plain, path, driver="ENVI", interleave="BSQ")
    if path.stat().st_size < raster.bands.nbytes:  # rasterio keeps silent if closing fails
        raise RasterioIOError("the file is shorter than its pixels")
    path.with_name(f"{path.name}.aux.xml").unlink(missing_ok=True)  # says nothing the header lacks
    header = path.with_suffix(".hdr")
    text = _with_all_digits(header.read_text("utf-8"), raster.place.transform)
    text = re.sub(r"description = \{[^}]*\}", "description = {hsreject}", text)
    if raster.categories is not None:
        text = text.replace("file type = ENVI Standard", "file type = ENVI Classification")
        text = text.rstrip("\n") + "\n" + _class_fields(raster.categories)
    header.write_text(text, encoding="utf-8", newline="\n")
    _check_place(raster, path)


def _with_all_digits(text: str, transform: Affine) -> str:
    """Return the header with origin and pixel size as exact as a float prints."""
    found = re.search(r"map info = \{([^}]*)\}", text)
    if found is None:
        return text
    fields = [field.strip() for field in found[1].split(",")]
    fields[3:5] = repr(transform.c), repr(transform.f)
    if transform.b == 0 and transform.d == 0:
        fields[5:7] = repr(abs(transform.a)), repr(abs(transform.e))
    return text.replace(found[0], "map info = {" + ", ".join(fields) + "}")


def _class_fields(categories: CategoryTable) -> str:
    names = categories.names
    count = max(names) + 1
    listed = ", ".join(names.get(value, unused_name(value)) for value in range(count))
    colors = [categories.colors.get(value, (0, 0, 0)) for value in range(count)]
    lookup = ", ".join(str(channel) for color in colors for channel in color)
    return f"classes = {count}\nclass names = {{{listed}}}\nclass lookup = {{{lookup}}}\n"


def _check_place(raster: Raster, path: Path) -> None:
    """Raise when the header cannot say where the map lies: it knows rotation but no shear."""
    with quiet_without_georeference(), rasterio.open(path) as file:
        back, (height, width) = file.transform, file.shape
    corners = [(0, 0), (width, 0), (0, height), (width, height)]
    apart = [
        np.subtract(placed(~raster.place.transform, placed(back, corner)), corner)
        for corner in corners
    ]
    if np.abs(apart).max() > _EXACT_ENOUGH:
        raise InputError(
            "An ENVI header cannot hold the transform of this map (pixels that are sheared or "
            f"flipped: {tuple(raster.place.transform)[:6]}). Write a GeoTIFF (.tif) instead."
        )
