"""A scene cut into blocks, and label and confidence of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import xarray as xr
from dask.delayed import delayed

from hsreject.context.scene_image import SceneImage
from hsreject.errors import InputError
from hsreject.io.scene import open_scene
from hsreject.mapping.block_files import ranking_on_disk
from hsreject.mapping.block_ranking import BlockRanker, Window, whole_image
from hsreject.mapping.map_model import MapModel
from hsreject.mapping.memory import (
    BYTES_OF_A_PIXEL,
    Load,
    Share,
    bytes_of,
    share_memory,
)
from hsreject.mapping.tasks import compute_all, counted
from hsreject.progress import ProgressCallback
from hsreject.rejection import RankedRejector, SequentialRejector
from hsreject.schema import BAND, CUBE_DIMS, MAP_DIMS, WAVELENGTH, check_dims

_BYTES_OF_A_CLASS_BY_ITSELF = 24  # without a context: probabilities, and what a confidence makes


@dataclass(frozen=True)
class SceneFile:
    """A scene on disk and how it is opened: the options of :func:`hsreject.open_scene`."""

    path: str | PathLike[str]
    variable: str | None = None
    band_axis: int | None = None

    def open(self, chunks: object) -> xr.DataArray:
        """Return the scene, lazy, in such chunks."""
        return open_scene(
            self.path, chunks=chunks, variable=self.variable, band_axis=self.band_axis
        )


@dataclass(frozen=True, eq=False)
class CutScene:
    """A lazy scene and how it is cut.

    Parameters
    ----------
    name : str
        What it is called.
    image : DataArray (band, y, x)
        The scene with the bands that are good in itself, which its priors look at.
    cube : DataArray (band, y, x)
        The scene with the bands that the classifier needs.
    share : Share
        Blocks and workers.
    """

    name: str
    image: xr.DataArray
    cube: xr.DataArray
    share: Share


def scene_in_blocks(
    scene: xr.DataArray | SceneFile,
    model: MapModel,
    *,
    match_bands: str,
    memory: str | float,
    block_size: int | None,
    n_workers: int | None,
) -> CutScene:
    """Return a scene with the bands of a model, cut into blocks; nothing is read yet."""
    if block_size is not None and block_size < 1:
        raise InputError(f"block_size must be at least 1 pixel (got {block_size}).")
    if n_workers is not None and n_workers < 1:
        raise InputError(f"n_workers must be at least 1 (got {n_workers}).")
    cube = scene.open("auto") if isinstance(scene, SceneFile) else scene
    cube = check_dims(cube, CUBE_DIMS, name="scene")
    share = share_memory(
        (cube.sizes[MAP_DIMS[0]], cube.sizes[MAP_DIMS[1]]),
        _load(cube, model),
        halo=model.reach,
        memory=bytes_of(memory),
        side=block_size,
        n_workers=n_workers,
    )
    if isinstance(scene, SceneFile):
        cube = scene.open(share.blocks.chunks)
    elif cube.chunks is None:
        cube = cube.chunk(share.blocks.chunks)
    matched = _with_bands_of(model, cube, match_bands)
    name = str(scene.path) if isinstance(scene, SceneFile) else "a scene in memory"
    return CutScene(name, cube if match_bands == "exact" else matched, matched, share)


def rank_scene(
    scene: CutScene, model: MapModel, folder: Path, *, progress: ProgressCallback
) -> xr.Dataset:
    """Return lazy `label` and `confidence` (y, x); the blocks are computed into `folder` now."""
    rejector: RankedRejector = model.rejector
    layers: Callable[[xr.DataArray], xr.DataArray | None] = whole_image
    if model.reach is not None:
        image = SceneImage(scene.image)
        with counted("image of the scene", progress):
            rejector, layers = model.rejector.on_scene(image), image.layers
    ranker = delayed(BlockRanker(model.classifier, rejector, layers, folder), traverse=False)
    tasks = [ranker(Window(scene.cube, block), block) for block in scene.share.blocks]
    kinds = compute_all(tasks, "mapping", progress)
    return ranking_on_disk(
        scene.cube,
        scene.share.blocks,
        folder,
        classes=model.classes,
        confidence_dtype=np.result_type(*sorted(set(kinds))),
    )


def _with_bands_of(model: MapModel, cube: xr.DataArray, how: str) -> xr.DataArray:
    """Return the scene with the bands of the training scene, checked once for all blocks."""
    wanted = model.classifier.band_requirements_
    matched: xr.DataArray = wanted.match(cube, how=how)
    if wanted.wavelength is not None and WAVELENGTH not in matched.coords:
        matched = matched.assign_coords({WAVELENGTH: (BAND, wanted.wavelength)})
    return matched


def _load(cube: xr.DataArray, model: MapModel) -> Load:
    bytes_of_a_class = _BYTES_OF_A_CLASS_BY_ITSELF
    if isinstance(model.rejector, SequentialRejector):
        context = model.rejector.context
        bytes_of_a_class = context.working_size * np.dtype(context.dtype).itemsize
    bytes_of_a_pixel = BYTES_OF_A_PIXEL
    if model.reach is None:  # the image itself is kept, and a copy while it is put together
        bytes_of_a_pixel += 2 * cube.sizes[BAND] * max(cube.dtype.itemsize, 4)
    return Load(cube.sizes[BAND], len(model.classes.values), bytes_of_a_class, bytes_of_a_pixel)
