"""Label and confidence of a scene, block by block: all that every rejection follows from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import xarray as xr

from hsreject.features.diffusion import with_halo
from hsreject.mapping.blocks import Blocks
from hsreject.mapping.finished_blocks import stored_blocks
from hsreject.mapping.foreign import needed_bands
from hsreject.mapping.map_model import MapModel
from hsreject.progress import ProgressCallback, counting_tasks, no_progress
from hsreject.rejection.evidence import Evidence
from hsreject.rejection.novelty import below_all_others
from hsreject.schema import (
    BAND,
    CATEGORY,
    CUBE_DIMS,
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

    from hsreject.classify.scene_model import SceneModel
    from hsreject.rejection import RankedRejector


CONFIDENCE = np.dtype(np.float32)


def rank_scene(
    cube: xr.DataArray,
    model: MapModel,
    blocks: Blocks,
    *,
    match_bands: str,
    shift: Sequence[float] | None,
    folder: Path | None,
    progress: ProgressCallback,
) -> xr.Dataset:
    """Return `label` and `confidence` (y, x) of a scene.

    Finished blocks are kept in `folder` and taken from there; without one they are in memory. With
    the `shift` of the scene, novelty counts: unknown pixels have confidences below all others.
    """
    if cube.chunks is None:
        cube = cube.chunk(dict(zip(MAP_DIMS, blocks.pieces, strict=True)))
    matched = with_bands_of(model, cube, match_bands)
    probability = _probability(model.classifier, matched, blocks)
    p_value = None
    if shift is not None:
        p_value = model.novelty.p_value(needed_bands(matched, model.classifier), shift=shift)
    image = model.classifier.band_requirements_.ordered(cube) if match_bands == "exact" else matched
    if model.halo is None:  # one block, whose priors see the image itself
        with counting_tasks("mapping", progress):
            evidence = Evidence(probability.compute(), image=image.compute())
            p_value = None if p_value is None else p_value.compute()
        label, confidence = model.rejector.label_and_confidence(evidence, progress)
        if p_value is not None:
            lowest = model.lowest_confidence
            data = below_all_others(confidence.values, p_value.values, lowest=lowest)
            confidence = confidence.copy(data=data)
        return xr.Dataset({"label": label, "confidence": confidence.astype(CONFIDENCE)})
    ranked = _rank_blocks(probability, p_value, model.rejector.guide(image), model, blocks)
    with counting_tasks("mapping", progress):
        ranked = ranked.persist() if folder is None else stored_blocks(ranked, folder)
    label = _on_grid(probability, ranked["label"])
    label.attrs["_FillValue"] = nodata_label(label.dtype)
    confidence = _on_grid(probability, ranked["confidence"])
    return xr.Dataset({"label": attach_classes(label, model.classes), "confidence": confidence})


def _probability(classifier: SceneModel, matched: xr.DataArray, blocks: Blocks) -> xr.DataArray:
    """Return the lazy probabilities (category, y, x) of a lazy scene.

    A classifier that looks around a pixel gets pieces with its halo around them.
    """
    if not classifier.halo:
        return classifier.predict_proba(matched)
    reach = [blocks.reach if len(sizes) > 1 else 0 for sizes in blocks.pieces]
    categories = classifier.class_table_.values
    bands = {str(name): c.variable for name, c in matched.coords.items() if c.dims == (BAND,)}
    probability = with_halo(
        matched.data.rechunk((-1, *blocks.pieces)),
        partial(_classify_piece, classifier=classifier, bands=bands),
        {0: 0, 1: reach[0], 2: reach[1]},
        n_outputs=len(categories),
        dtype=np.float32,
    )
    return xr.DataArray(
        probability,
        dims=FIELD_DIMS,
        coords={
            **{name: c for name, c in matched.coords.items() if BAND not in c.dims},
            CATEGORY: list(categories),
        },
    )


def _classify_piece(
    values: NDArray[Any], *, classifier: SceneModel, bands: dict[str, xr.Variable]
) -> NDArray[np.float32]:
    piece = xr.DataArray(values, dims=CUBE_DIMS, coords=bands)
    n_classes = len(classifier.class_table_.values)
    if not valid_pixels(piece).any():
        return np.full((n_classes, *values.shape[1:]), np.nan, np.float32)
    return np.asarray(classifier.predict_proba(piece).values, dtype=np.float32)


def _rank_blocks(
    probability: xr.DataArray,
    p_value: xr.DataArray | None,
    guide: xr.DataArray | None,
    model: MapModel,
    blocks: Blocks,
) -> Any:
    """Return label and confidence (y, x) of every pixel as one lazy array of records.

    The probabilities of the whole scene are one lazy array, so every pixel is read and classified
    once. It is cut into blocks that overlap by the halo, each block is solved by itself, and the
    halo is trimmed away.
    """
    novelty = None if p_value is None else p_value.expand_dims(BAND)
    fields = [field.data for field in (probability, novelty, guide) if field is not None]
    layers = da.concatenate([field.astype(probability.dtype) for field in fields])
    kind = np.dtype([("label", label_dtype(max(model.classes.values))), ("confidence", CONFIDENCE)])
    rank = partial(  # not the whole model: every task is sent to its worker by itself
        _rank_block,
        rejector=model.rejector,
        categories=model.classes.values,
        lowest=None if p_value is None else model.lowest_confidence,
        dtype=kind,
    )
    return da.map_overlap(
        rank,
        layers.rechunk((-1, *blocks.sizes)),
        depth=(0, *blocks.depth),
        boundary="none",  # at the border of the scene there is nothing
        drop_axis=0,
        dtype=kind,
        meta=np.empty((0, 0), kind),
    )


def _rank_block(
    layers: NDArray[np.floating[Any]],
    *,
    rejector: RankedRejector,
    categories: Sequence[int],
    lowest: float | None,
    dtype: np.dtype[Any],
) -> NDArray[Any]:
    """Return label and confidence (y, x) of a block.

    Its layers are probabilities, p-values where novelty counts, and what guides priors.
    """
    ranked = np.empty(layers.shape[1:], dtype)
    n_classes = len(categories)
    probability = xr.DataArray(
        layers[:n_classes], dims=FIELD_DIMS, coords={CATEGORY: list(categories)}
    )
    if not valid_pixels(probability).any():
        ranked["label"], ranked["confidence"] = nodata_label(dtype["label"]), np.nan
        return ranked
    inside = rejector.in_block(layers[n_classes if lowest is None else n_classes + 1 :])
    label, confidence = inside.label_and_confidence(Evidence(probability), no_progress)
    ranked["label"], ranked["confidence"] = label.values, confidence.values
    if lowest is not None:
        ranked["confidence"] = below_all_others(
            ranked["confidence"], layers[n_classes], lowest=lowest
        )
    return ranked


def with_bands_of(model: MapModel, cube: xr.DataArray, how: str) -> xr.DataArray:
    """Return the scene with the bands of the training scene; a guess is told here, once."""
    wanted = model.classifier.band_requirements_
    matched: xr.DataArray = wanted.match(cube, how=how)
    if wanted.wavelength is not None and WAVELENGTH not in matched.coords:
        matched = matched.assign_coords({WAVELENGTH: (BAND, wanted.wavelength)})
    return matched


def _on_grid(field: xr.DataArray, data: Any) -> xr.DataArray:
    """Return a map on the grid of a field (category, y, x)."""
    coords = {name: coord for name, coord in field.coords.items() if CATEGORY not in coord.dims}
    return xr.DataArray(data, dims=MAP_DIMS, coords=coords)
