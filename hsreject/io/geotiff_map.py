"""Turn a plain GeoTIFF into a Cloud-Optimised GeoTIFF with names that GIS programs show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rasterio.shutil

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
    if raster.categories is not None:
        path.with_name(f"{path.name}.aux.xml").write_bytes(raster.categories.to_pam())
