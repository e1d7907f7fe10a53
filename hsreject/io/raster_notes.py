"""What a raster says in a way that cannot be followed, or only by a decision: told, not hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rasterio
from affine import Affine
from rasterio.crs import CRS
from rasterio.errors import CRSError

from hsreject.io import envi_header

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hsreject.io.raster_file import RasterInfo


def raster_notes(info: RasterInfo, header: Mapping[str, str]) -> Iterator[str]:
    """Yield one sentence about each thing that was decided.

    Parameters
    ----------
    info : RasterInfo
        The file as GDAL sees it.
    header : mapping of str to str
        Fields of the ENVI header beside it; empty if there is none.
    """
    yield from _place_notes(info, header)
    for band, alpha in enumerate(info.alpha, start=1):
        if alpha:
            yield f"Band {band} is an alpha channel: no data where it is 0, and no band of light."
    if info.n_nodata_values > 1:
        yield "Bands have different nodata values: each band its own."
    names = envi_header.items(header, "band names")
    if names and len(names) != info.n_bands:
        yield f"The header has {len(names)} band names for {info.n_bands} bands: not used."


def _place_notes(info: RasterInfo, header: Mapping[str, str]) -> Iterator[str]:
    unplaced = info.grid.transform == Affine.identity()
    if unplaced and info.n_control_points:
        yield (
            f"The file lies on the map by {info.n_control_points} ground control points only, "
            "which are not used: warp it first, for example with gdalwarp."
        )
    elif unplaced and header.get("map info"):
        yield "The map info of the header is not understood: no place on a map."
    elif unplaced and info.grid.crs is not None:
        yield "The file has a reference system but no coordinates: pixels count from 0."
    stated = header.get("coordinate system string")
    if stated and not _is_understood(stated):
        yield "The coordinate system string of the header is not understood: not used."


def _is_understood(wkt: str) -> bool:
    try:
        with rasterio.Env():  # else GDAL complains on the screen
            CRS.from_wkt(wkt, morph_from_esri_dialect=True)
    except CRSError:
        return False
    return True
