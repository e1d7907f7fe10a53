"""The finished blocks of a map on disk, seen as one lazy map."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import xarray as xr
from dask.delayed import delayed

from hsreject.mapping.block_ranking import confidence_file, label_file
from hsreject.mapping.blocks import Block, Blocks
from hsreject.schema import BAND, MAP_DIMS, attach_classes, label_dtype, nodata_label

if TYPE_CHECKING:
    from hsreject.classes import ClassTable


def ranking_on_disk(
    cube: xr.DataArray,
    blocks: Blocks,
    folder: Path,
    *,
    classes: ClassTable,
    confidence_dtype: np.dtype[Any],
) -> xr.Dataset:
    """Return lazy `label` and `confidence` (y, x) on the grid of `cube`, read from `folder`."""
    dtype = label_dtype(max(classes.values))
    label = _on_grid(cube, _assembled(blocks, folder, label_file, dtype)).rename("label")
    label.attrs["_FillValue"] = nodata_label(dtype)
    confidence = _on_grid(cube, _assembled(blocks, folder, confidence_file, confidence_dtype))
    return xr.Dataset({"label": attach_classes(label, classes), "confidence": confidence})


def _assembled(
    blocks: Blocks, folder: Path, file_of: Callable[[Path, Block], Path], dtype: np.dtype[Any]
) -> Any:
    parts = [
        da.from_delayed(  # type: ignore[no-untyped-call]  # dask has few types
            delayed(_read)(file_of(folder, block), dtype), shape=block.shape, dtype=dtype
        )
        for block in blocks
    ]
    columns = blocks.grid[1]
    rows = [parts[start : start + columns] for start in range(0, len(parts), columns)]
    return da.block(rows)  # type: ignore[no-untyped-call]


def _read(path: Path, dtype: np.dtype[Any]) -> Any:
    return np.load(path).astype(dtype, copy=False)


def _on_grid(cube: xr.DataArray, data: Any) -> xr.DataArray:
    coords = {name: coord for name, coord in cube.coords.items() if BAND not in coord.dims}
    return xr.DataArray(data, dims=MAP_DIMS, coords=coords)
