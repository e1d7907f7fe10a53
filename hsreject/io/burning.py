"""Polygons and points burnt onto the grid of a scene."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from rasterio._err import CPLE_BaseError  # rasterio raises it here and exports it nowhere
from rasterio.features import rasterize
from rasterio.warp import transform as transform_coordinates

from hsreject.errors import InputError
from hsreject.io.grid import Grid, crs_name, same_crs
from hsreject.schema import NO_REFERENCE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from hsreject.io.vector import Features


def burn(
    features: Features,
    numbers: NDArray[np.int64],
    grid: Grid,
    *,
    path: Path,
    guesses: list[str],
) -> NDArray[np.int64]:
    """Return the map of class numbers on a grid: of each pixel, the polygon that has its centre.

    Points count for the pixel they lie in. Where features overlap, the last one in the file counts.
    """
    geometries = _onto(features, grid, path=path, guesses=guesses)
    shape = (grid.height, grid.width)
    burnt: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
    if len(geometries):
        pairs = list(zip(geometries, numbers.tolist(), strict=True))
        burnt = rasterize(
            pairs, out_shape=shape, transform=grid.transform, fill=NO_REFERENCE, dtype=np.int64
        )
    if not burnt.any():
        west, south, east, north = shapely.total_bounds(geometries)
        raise InputError(
            f"No feature of {path} meets a pixel of the scene: the features reach from "
            f"({west:.10g}, {south:.10g}) to ({east:.10g}, {north:.10g}); the scene has {grid}."
        )
    _note_losses(geometries, numbers, burnt, grid, guesses)
    return burnt


def _onto(features: Features, grid: Grid, *, path: Path, guesses: list[str]) -> NDArray[Any]:
    if not grid.georeferenced:
        raise InputError(
            f"{path} cannot be put onto a scene without a place on a map. "
            "Give it a reference system and a transform (.rio.write_crs, .rio.write_transform)."
        )
    if features.crs is None or grid.crs is None:
        if features.crs is not None:
            raise InputError(
                f"{path} is in {crs_name(features.crs)}, but the scene does not say what it is in. "
                "Set it with scene.rio.write_crs(...)."
            )
        guesses.append(f"{path.name} has no reference system: taken for that of the scene.")
        return features.geometries
    if same_crs(features.crs, grid.crs):
        return features.geometries
    source, target = features.crs, grid.crs

    def move(points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.column_stack(
            transform_coordinates(source, target, points[:, 0], points[:, 1])[:2]
        )

    try:
        moved: NDArray[Any] = shapely.transform(features.geometries, move)
    except CPLE_BaseError as error:
        west, south, east, north = shapely.total_bounds(features.geometries)
        raise InputError(
            f"The coordinates of {path}, from ({west:.10g}, {south:.10g}) to ({east:.10g}, "
            f"{north:.10g}), are not in {crs_name(source)}, as it says, and cannot be brought into "
            f"{crs_name(target)}: {error.errmsg}. Correct its reference system."
        ) from error
    return moved


def _note_losses(
    geometries: NDArray[Any],
    numbers: NDArray[np.int64],
    burnt: NDArray[np.int64],
    grid: Grid,
    guesses: list[str],
) -> None:
    """Note where classes overlap, and classes whose features have no pixel centre."""
    covered = np.zeros(burnt.shape, dtype=np.int32)
    for number in np.unique(numbers):
        own: Sequence[Any] = list(geometries[numbers == number])
        covered += rasterize(
            own, out_shape=burnt.shape, transform=grid.transform, default_value=1, dtype=np.uint8
        )
    if (shared := int((covered > 1).sum())) > 0:
        guesses.append(
            f"{shared} pixels lie in features of several classes: the last feature counts."
        )
    lost = sorted(set(numbers.tolist()) - set(np.unique(burnt).tolist()))
    if lost:
        guesses.append(
            f"The features of class {', '.join(map(str, lost))} have no pixel centre: not burnt."
        )
