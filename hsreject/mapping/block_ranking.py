"""Label and confidence of one block: what a worker does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from dask.base import compute, optimize

from hsreject.mapping.blocks import Block
from hsreject.progress import no_progress
from hsreject.rejection.evidence import Evidence
from hsreject.schema import MAP_DIMS, X, Y, label_dtype, nodata_label, valid_pixels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.classify.scene_classifier import SceneClassifier
    from hsreject.rejection import RankedRejector


class Window:
    """The part of a scene that a block needs; only this part travels to another process.

    Parameters
    ----------
    cube : DataArray (band, y, x)
        The scene, in memory or lazy.
    block : Block
        Whose window is wanted.
    """

    def __init__(self, cube: xr.DataArray, block: Block) -> None:
        self._cube = cube
        self._block: Block | None = block

    def __call__(self) -> xr.DataArray:
        """Return the part, lazy if the scene is."""
        if self._block is None:
            return self._cube
        return self._cube.isel({Y: self._block.y.window, X: self._block.x.window})

    def __getstate__(self) -> dict[str, Any]:
        (part,) = optimize(self())  # type: ignore[no-untyped-call]  # dask has few types
        return {"_cube": part, "_block": None}


@dataclass(frozen=True, eq=False)
class BlockRanker:
    """What is the same for every block of a scene.

    Parameters
    ----------
    classifier : SceneClassifier
    rejector : RankedRejector
        Fixed to the scene (``rejector.on_scene(image)``).
    layers : callable
        From a part of the scene to what its priors see of it, or None:
        :class:`hsreject.context.scene_image.ImageLayers`, or :func:`whole_image`.
    folder : Path
        Where blocks are put: `label-N.npy` and `confidence-N.npy`.
    """

    classifier: SceneClassifier
    rejector: RankedRejector
    layers: Callable[[xr.DataArray], xr.DataArray | None]
    folder: Path

    def __call__(self, window: Window, block: Block) -> str:
        """Write label and confidence of a block, and return the type of the confidences."""
        label, confidence = self.rank(window(), block)
        np.save(label_file(self.folder, block), label)
        np.save(confidence_file(self.folder, block), confidence)
        return confidence.dtype.name

    def rank(self, cube: xr.DataArray, block: Block) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return label and confidence (y, x) of a block, given its window."""
        # In this thread: blocks run side by side already, and a piece at a time bounds the memory.
        probability, layers = compute(  # type: ignore[no-untyped-call]
            self.classifier.predict_proba(cube), self.layers(cube), scheduler="synchronous"
        )
        inside = {Y: block.y.inside, X: block.x.inside}
        if not valid_pixels(probability.isel(inside)).any():
            return self._nothing(block.shape)
        evidence = Evidence(probability, image=layers)
        label, confidence = self.rejector.label_and_confidence(evidence, no_progress)
        return (
            np.ascontiguousarray(label.isel(inside).transpose(*MAP_DIMS).values),
            np.ascontiguousarray(confidence.isel(inside).transpose(*MAP_DIMS).values),
        )

    def _nothing(self, shape: tuple[int, int]) -> tuple[NDArray[Any], NDArray[Any]]:
        dtype = label_dtype(max(self.classifier.class_table_.values))
        return np.full(shape, nodata_label(dtype), dtype), np.full(shape, np.nan, np.float32)


def label_file(folder: Path, block: Block) -> Path:
    """Return where the labels of a block are put."""
    return folder / f"label-{block.number}.npy"


def confidence_file(folder: Path, block: Block) -> Path:
    """Return where the confidences of a block are put."""
    return folder / f"confidence-{block.number}.npy"


def whole_image(part: xr.DataArray) -> xr.DataArray:
    """Return the part as it is: for priors that need the image itself, in a single block."""
    return part
