"""Labels onto the grid of a scene: only if they are on it already, or if asked to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from rasterio.enums import Resampling
from rasterio.warp import reproject

from hsreject.errors import InputError
from hsreject.io.grid import Grid
from hsreject.schema import NO_REFERENCE

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def align_labels(
    values: NDArray[Any],
    grid: Grid,
    wanted: Grid,
    *,
    how: Literal["exact", "nearest"],
    path: Path,
    guesses: list[str],
) -> tuple[NDArray[Any], Grid]:
    """Return labels on the wanted grid, and that grid.

    Labels without a place on a map fit a scene of their size. Others must have the pixels of the
    scene, or are resampled by nearest neighbour when `how` is "nearest"; pixels outside them
    get no reference.
    """
    same_size = values.shape == (wanted.height, wanted.width)
    placed = grid.georeferenced and wanted.georeferenced
    if same_size and (not placed or grid.same_as(wanted)):
        if wanted.georeferenced and not grid.georeferenced:
            guesses.append(f"{path.name} has no place on a map: its pixels are those of the scene.")
        else:
            _note_missing_crs(grid, wanted, path=path, guesses=guesses)
        return values, wanted if wanted.georeferenced else grid
    if not placed:
        raise InputError(
            f"The labels {path} ({grid}) do not fit the scene ({wanted}), and without a place on "
            "a map for both they cannot be aligned. Crop the labels to the rows and columns of "
            "the scene."
        )
    if how == "exact":
        raise InputError(
            f"The labels {path} lie on another grid than the scene: the labels have {grid}; the "
            f"scene has {wanted}. Pass align='nearest' to bring them onto the grid of the scene."
        )
    _note_missing_crs(grid, wanted, path=path, guesses=guesses)
    aligned = _resampled(values, grid, wanted)
    if values.any() and not aligned.any():
        raise InputError(
            f"No label of {path} meets a pixel of the scene: the labels have {grid}; the scene has "
            f"{wanted}."
        )
    return aligned, wanted


def _resampled(values: NDArray[Any], grid: Grid, wanted: Grid) -> NDArray[Any]:
    """Return labels on the wanted grid by nearest neighbour, no reference outside them."""
    aligned = np.full((wanted.height, wanted.width), NO_REFERENCE, dtype=values.dtype)
    crs = grid.crs or wanted.crs
    reproject(
        values,
        aligned,
        src_transform=grid.transform,
        src_crs=crs,
        dst_transform=wanted.transform,
        dst_crs=wanted.crs or crs,
        resampling=Resampling.nearest,
        init_dest_nodata=False,
    )
    return aligned


def _note_missing_crs(grid: Grid, wanted: Grid, *, path: Path, guesses: list[str]) -> None:
    if grid.crs is None and wanted.crs is not None:
        guesses.append(f"{path.name} has no reference system: taken for that of the scene.")
