"""Turn a plain GeoTIFF into a Cloud-Optimised GeoTIFF with names that GIS programs show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rasterio
import rasterio.shutil
from rasterio.errors import RasterioIOError

from hsreject.io.block_store import TILE, quiet_without_georeference

if TYPE_CHECKING:
    from pathlib import Path

    from hsreject.io.raster import Raster

SUFFIXES = (".tif", ".tiff")


def side_files(path: Path) -> list[str]:
    """Return the names of the files that may stand beside a GeoTIFF and belong to it."""
    return [f"{path.name}{suffix}" for suffix in (".aux.xml", ".ovr", ".msk")]


def finish_geotiff(raster: Raster, plain: Path, path: Path) -> None:
    """Write the tiled, compressed file with overviews at `path`, and the names beside it.

    Overviews of label maps take the most frequent value, those of float maps the mean: an overview
    never shows a class that is not there.
    """
    labels = raster.categories is not None
    with quiet_without_georeference():
        rasterio.shutil.copy(
            plain,
            path,
            driver="COG",
            compress="DEFLATE",
            predictor="NO" if labels else "YES",
            blocksize=TILE,
            overview_resampling="MODE" if labels else "AVERAGE",
            bigtiff="IF_SAFER",
        )
        _check_end(path)
    if raster.categories is not None:
        path.with_name(f"{path.name}.aux.xml").write_bytes(raster.categories.to_pam())


def _check_end(path: Path) -> None:
    """Raise if a tile lies behind the end of the file: the disk was full when GDAL closed it.

    GDAL writes the tiles of the full size last, and rasterio keeps silent if that fails.
    """
    length = path.stat().st_size
    with rasterio.open(path) as file:
        down, across = (-(-size // TILE) for size in file.shape)
        for row in range(down):
            for column in range(across):
                offset, size = (
                    file.get_tag_item(f"BLOCK_{what}_{column}_{row}", "TIFF", bidx=1)
                    for what in ("OFFSET", "SIZE")
                )
                if offset is not None and int(offset) + int(size) > length:
                    raise RasterioIOError("the file ends before its last tile")
