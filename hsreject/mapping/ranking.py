"""Label and confidence of a scene, block by block: all that every rejection follows from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import xarray as xr

from hsreject.mapping.blocks import Blocks
from hsreject.mapping.finished_blocks import keeping_blocks
from hsreject.mapping.foreign import NOVEL
from hsreject.mapping.map_model import MapModel
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.evidence import Evidence
from hsreject.schema import (
    BAND,
    CATEGORY,
    FIELD_DIMS,
    MAP_DIMS,
    WAVELENGTH,
    attach_classes,
    label_dtype,
    nodata_label,
    valid_pixels,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.rejection import RankedRejector


CONFIDENCE = np.dtype(np.float32)


def rank_scene(
    cube: xr.DataArray,
    model: MapModel,
    blocks: Blocks,
    *,
    match_bands: str,
    kept: Path | None,
    lowered: bool = False,
    progress: ProgressCallback,
) -> xr.Dataset:
    """Return `label` and `confidence` (y, x) of a scene, lazy where it is mapped in blocks.

    Finished blocks are kept in the folder `kept`, and taken from there. With `lowered` the
    confidence of novel pixels lies below all others.
    """
    if cube.chunks is None:
        cube = cube.chunk(dict(zip(MAP_DIMS, blocks.pieces, strict=True)))
    matched = with_bands_of(model, cube, match_bands)
    probability = model.classifier.predict_proba(matched)
    p_value = _class_p_value(model, matched)
    image = model.classifier.band_requirements_.ordered(cube) if match_bands == "exact" else matched
    if model.halo is None:  # one block, whose priors see the image itself
        p_value = None if p_value is None else p_value.compute()
        evidence = Evidence(probability.compute(), class_p_value=p_value, image=image.compute())
        label, confidence = model.rejector.label_and_confidence(evidence, progress)
    else:
        label, confidence = _rank_blocks(probability, p_value, image, model, blocks, kept)
    if lowered:
        confidence = _novel_lowered(confidence, model, matched)
    return xr.Dataset({"label": label, "confidence": confidence})


def _rank_blocks(
    probability: xr.DataArray,
    p_value: xr.DataArray | None,
    image: xr.DataArray,
    model: MapModel,
    blocks: Blocks,
    kept: Path | None,
) -> tuple[xr.DataArray, xr.DataArray]:
    """Return label and confidence (y, x), lazily.

    The probabilities of the whole scene are one lazy array, so every pixel is read and classified
    once. It is cut into blocks that overlap by the halo, each block is solved by itself, and the
    halo is trimmed away.
    """
    guide = model.rejector.guide(image)
    fields = [field.data for field in (probability, p_value, guide) if field is not None]
    layers = da.concatenate([field.astype(probability.dtype) for field in fields])
    kind = np.dtype([("label", label_dtype(max(model.classes.values))), ("confidence", CONFIDENCE)])
    # not the whole model: every task is sent to its worker by itself
    ranked = da.map_overlap(
        partial(_rank_block, rejector=model.rejector, categories=model.classes.values, dtype=kind),
        layers.rechunk((-1, *blocks.sizes)),
        depth=(0, *blocks.depth),
        boundary="none",  # at the border of the scene there is nothing
        drop_axis=0,
        dtype=kind,
        meta=np.empty((0, 0), kind),
    )
    if kept is not None:
        ranked = keeping_blocks(ranked, kept)
    label = _on_grid(probability, ranked["label"])
    label.attrs["_FillValue"] = nodata_label(label.dtype)
    return attach_classes(label, model.classes), _on_grid(probability, ranked["confidence"])


def _class_p_value(model: MapModel, matched: xr.DataArray) -> xr.DataArray | None:
    """Return how well pixels fit the training pixels of each class, if that counts."""
    if not model.rejector.needs_p_value:
        return None
    return model.novelty.p_value(model.classifier.transform(matched))


def _novel_lowered(
    confidence: xr.DataArray, model: MapModel, matched: xr.DataArray
) -> xr.DataArray:
    """Return confidences that lie below all others where a pixel is novel."""
    rarity = model.novelty.rarity(model.classifier.transform(matched))
    lowered = np.minimum(confidence, model.lowest_confidence) - 1
    return confidence.where(~(rarity <= NOVEL), lowered)


def with_bands_of(model: MapModel, cube: xr.DataArray, how: str) -> xr.DataArray:
    """Return the scene with the bands of the training scene; a guess is told here, once."""
    wanted = model.classifier.band_requirements_
    matched: xr.DataArray = wanted.match(cube, how=how)
    if wanted.wavelength is not None and WAVELENGTH not in matched.coords:
        matched = matched.assign_coords({WAVELENGTH: (BAND, wanted.wavelength)})
    return matched


def _rank_block(
    layers: NDArray[np.floating[Any]],
    *,
    rejector: RankedRejector,
    categories: Sequence[int],
    dtype: np.dtype[Any],
) -> NDArray[Any]:
    """Return label and confidence (y, x) of a block: its probabilities, then what guides priors."""
    ranked = np.empty(layers.shape[1:], dtype)
    n_classes = len(categories)
    probability = xr.DataArray(
        layers[:n_classes], dims=FIELD_DIMS, coords={CATEGORY: list(categories)}
    )
    p_value, n_fields = None, n_classes
    if rejector.needs_p_value:
        p_value, n_fields = probability.copy(data=layers[n_classes : 2 * n_classes]), 2 * n_classes
    if not valid_pixels(probability).any():
        ranked["label"], ranked["confidence"] = nodata_label(dtype["label"]), np.nan
        return ranked
    evidence = Evidence(probability, class_p_value=p_value)
    inside = rejector.in_block(layers[n_fields:])
    label, confidence = inside.label_and_confidence(evidence, no_progress)
    ranked["label"], ranked["confidence"] = label.values, confidence.values
    return ranked


def _on_grid(field: xr.DataArray, data: Any) -> xr.DataArray:
    """Return a lazy map on the grid of a field (category, y, x)."""
    coords = {name: coord for name, coord in field.coords.items() if CATEGORY not in coord.dims}
    return xr.DataArray(data, dims=MAP_DIMS, coords=coords)
