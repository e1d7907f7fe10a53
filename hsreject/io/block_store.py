"""Write the blocks of lazy rasters as they are computed, several rasters in one pass."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import rasterio
from dask.callbacks import Callback
from rasterio.errors import NotGeoreferencedWarning, RasterioIOError
from rasterio.windows import Window

from hsreject.progress import ProgressCallback, no_progress

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from hsreject.io.raster import Raster

TILE = 512


def store(
    rasters: Sequence[Raster],
    paths: Sequence[Path],
    *,
    progress: ProgressCallback = no_progress,
) -> None:
    """Write each raster to a plain tiled GeoTIFF at its path.

    Lazy rasters are computed together, so that work they share is done once, and no more of them is
    in memory than the blocks at hand. Any dask scheduler will do.
    """
    lazy: list[tuple[Any, _GeoTiffBlocks]] = []
    for raster, path in zip(rasters, paths, strict=True):
        _create(raster, path)
        if hasattr(raster.bands, "dask"):
            lazy.append((raster.bands, _GeoTiffBlocks(path)))
        else:
            blocks = _GeoTiffBlocks(path)
            count, height, width = raster.bands.shape
            for start in range(0, height, TILE):
                rows = slice(start, min(start + TILE, height))
                blocks[slice(0, count), rows, slice(0, width)] = raster.bands[:, rows]
    if lazy:
        sources, targets = zip(*lazy, strict=True)
        with _Steps(progress):
            da.store(list(sources), list(targets), lock=True)


def stored_size(raster: Raster) -> int:
    """Return how many bytes the plain GeoTIFF of a raster may take: whole tiles."""
    count, height, width = raster.bands.shape
    tiles = -(-height // TILE) * -(-width // TILE)
    return int(count * tiles * TILE**2 * raster.bands.dtype.itemsize)


@contextmanager
def quiet_without_georeference() -> Iterator[None]:
    """Silence rasterio's remark on files that lie nowhere: such scenes are common and fine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotGeoreferencedWarning)
        yield


@dataclass(frozen=True)
class _GeoTiffBlocks:
    """A GeoTIFF that takes blocks by assignment; it holds a path only, so it can travel."""

    path: Path

    def __setitem__(self, key: tuple[slice, slice, slice], block: NDArray[Any]) -> None:
        bands, rows, columns = key
        indexes = list(range(bands.start + 1, bands.stop + 1))
        window = Window.from_slices(rows, columns)
        with quiet_without_georeference():
            with rasterio.open(self.path, "r+", driver="GTiff") as file:
                file.write(block, indexes=indexes, window=window)
            # Most is written when the file is closed, and rasterio keeps silent if that fails.
            with rasterio.open(self.path, driver="GTiff") as file:
                back = file.read(indexes, window=window)
        if not np.array_equal(back, block, equal_nan=block.dtype.kind == "f"):
            raise RasterioIOError("what was written does not come back from the disk")


def _create(raster: Raster, path: Path) -> None:
    count, height, width = raster.bands.shape
    profile = {
        "driver": "GTiff",
        "count": count,
        "height": height,
        "width": width,
        "dtype": raster.bands.dtype.name,
        "nodata": raster.nodata,
        "crs": raster.place.crs,
        "transform": raster.place.transform,
        "tiled": True,
        "blockxsize": TILE,
        "blockysize": TILE,
        "interleave": "band",
        "sparse_ok": True,
        "bigtiff": "if_safer",
    }
    with quiet_without_georeference(), rasterio.open(path, "w", **profile) as file:
        for number, name in enumerate(raster.band_names, start=1):
            if name:
                file.set_band_description(number, name)
        if raster.categories is not None:
            file.write_colormap(1, raster.categories.colors)
            file.update_tags(1, **raster.categories.tags())


class _Steps(Callback):
    """Tell how many tasks are done, for the schedulers of one machine."""

    def __init__(self, progress: ProgressCallback) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # dask's
        self._progress = progress

    def _posttask(self, key: object, result: object, dsk: Any, state: Any, worker: Any) -> None:
        done = len(state["finished"])
        left = sum(len(state[kind]) for kind in ("ready", "waiting", "running"))
        self._progress("writing", done, done + left)
