"""Labels and confidences of a scene, block by block: all that every rejection follows from."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import xarray as xr

from hsreject.features.diffusion import with_halo
from hsreject.handover.filled_map import second_choice
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
    LEVEL,
    LEVEL_CONFIDENCE,
    LEVEL_DIMS,
    MAP_DIMS,
    WAVELENGTH,
    attach_classes,
    class_table,
    label_dtype,
    nodata_label,
    valid_pixels,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.classes import ClassTable
    from hsreject.classify.scene_model import SceneModel
    from hsreject.rejection import RankedRejector


def ranking_dtype(model: MapModel, *, probabilities: bool = False) -> np.dtype[Any]:
    """Return what is known of a pixel before anything is rejected, as one record.

    `confidence` has a number for each level of answers, the coarsest last: one without groups.
    """
    n_classes = len(model.classes.values)
    label = label_dtype(max(model.classes.values))
    fields: list[Any] = [
        ("label", label),
        ("second", label),
        ("confidence", np.float32, (model.n_levels,)),
    ]
    if probabilities:
        fields.append(("probability", np.float32, (n_classes,)))
    return np.dtype(fields)


def rank_scene(
    cube: xr.DataArray,
    model: MapModel,
    blocks: Blocks,
    *,
    match_bands: str,
    shift: Sequence[float] | None,
    record: np.dtype[Any],
    folder: Path | None,
    progress: ProgressCallback,
) -> xr.Dataset:
    """Return `label`, `confidence` and `second` (y, x) of a scene, the last the second choice.

    Where answers may be coarser there is `level_confidence` (level, y, x), and where the `record`
    of a pixel holds them, the probabilities of the classes. Finished blocks are kept in `folder`
    and taken from there; without one they are in memory. With the `shift` of the scene, novelty
    counts: unknown pixels have confidences below all others.
    """
    if cube.chunks is None:
        cube = cube.chunk(dict(zip(MAP_DIMS, blocks.pieces, strict=True)))
    matched = with_bands_of(model, cube, match_bands)
    probability = _probability(model.classifier, matched, blocks)
    p_value = None
    if shift is not None:
        p_value = model.novelty.p_value(needed_bands(matched, model.classifier), shift=shift)
    image = model.classifier.band_requirements_.ordered(cube) if match_bands == "exact" else matched
    rank = partial(  # not the whole model: every task is sent to its worker by itself
        _ranked,
        model.rejector,
        lowest=model.lowest_confidence,
        dtype=record,
    )
    if model.halo is None:  # one block, whose priors see the image itself
        with counting_tasks("mapping", progress):
            evidence = Evidence(probability.compute(), image=image.compute())
            novelty = None if p_value is None else p_value.values
        ranked: Any = rank(evidence, novelty, progress=progress)
    else:
        guide = model.rejector.guide(image)
        ranked = _rank_blocks(probability, p_value, guide, rank, blocks)
        with counting_tasks("mapping", progress):
            ranked = ranked.persist() if folder is None else stored_blocks(ranked, folder)
    return _on_grid(ranked, probability, model)


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
    place = {name: coord for name, coord in matched.coords.items() if BAND not in coord.dims}
    coords = {**place, CATEGORY: list(categories)}
    field = xr.DataArray(probability, dims=FIELD_DIMS, coords=coords)
    return attach_classes(field, classifier.class_table_)


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
    rank: partial[NDArray[Any]],
    blocks: Blocks,
) -> Any:
    """Return the records of all pixels (y, x) as one lazy array.

    The probabilities of the whole scene are one lazy array, so every pixel is read and classified
    once. It is cut into blocks that overlap by the halo, each block is solved by itself, and the
    halo is trimmed away.
    """
    novelty = None if p_value is None else p_value.expand_dims(BAND)
    fields = [field.data for field in (probability, novelty, guide) if field is not None]
    layers = da.concatenate([field.astype(probability.dtype) for field in fields])
    dtype = rank.keywords["dtype"]
    return da.map_overlap(
        partial(
            _rank_block,
            rank=rank,
            classes=class_table(probability),
            has_novelty=novelty is not None,
        ),
        layers.rechunk((-1, *blocks.sizes)),
        depth=(0, *blocks.depth),
        boundary="none",  # at the border of the scene there is nothing
        drop_axis=0,
        dtype=dtype,
        meta=np.empty((0, 0), dtype),
    )


def _rank_block(
    layers: NDArray[np.floating[Any]],
    *,
    rank: partial[NDArray[Any]],
    classes: ClassTable,
    has_novelty: bool,
) -> NDArray[Any]:
    """Return the records (y, x) of a block.

    Its layers are probabilities, p-values where novelty counts, and what guides priors.
    """
    values, p_value, guide = np.split(layers, [len(classes), len(classes) + has_novelty])
    field = xr.DataArray(values, dims=FIELD_DIMS, coords={CATEGORY: list(classes.values)})
    evidence = Evidence(attach_classes(field, classes))
    return rank(evidence, p_value[0] if has_novelty else None, guide)


def _ranked(
    rejector: RankedRejector,
    evidence: Evidence,
    p_value: NDArray[Any] | None,
    guide: NDArray[Any] | None = None,
    *,
    lowest: float,
    dtype: np.dtype[Any],
    progress: ProgressCallback = no_progress,
) -> NDArray[Any]:
    """Return the records (y, x) of a scene, or of a block with its part of the guide."""
    probability = np.moveaxis(evidence.probability.values, 0, -1)
    ranked = np.empty(probability.shape[:-1], dtype)
    if "probability" in (dtype.names or ()):
        ranked["probability"] = probability
    if not np.isfinite(probability).all(axis=-1).any():
        ranked["label"] = ranked["second"] = nodata_label(dtype["label"])
        ranked["confidence"] = np.nan
        return ranked
    if guide is not None:
        rejector = rejector.in_block(guide)
    label, confidence = rejector.label_and_confidence(evidence, progress)
    values = np.asarray(confidence.values)
    if p_value is not None:
        values = below_all_others(values, p_value, lowest=lowest)
    categories = evidence.probability[CATEGORY].values
    ranked["label"] = label.values
    ranked["second"] = second_choice(label.values, probability, categories)
    ranked["confidence"] = np.moveaxis(values.reshape(-1, *ranked.shape), 0, -1)
    return ranked


def with_bands_of(model: MapModel, cube: xr.DataArray, how: str) -> xr.DataArray:
    """Return the scene with the bands of the training scene; a guess is told here, once."""
    wanted = model.classifier.band_requirements_
    matched: xr.DataArray = wanted.match(cube, how=how)
    if wanted.wavelength is not None and WAVELENGTH not in matched.coords:
        matched = matched.assign_coords({WAVELENGTH: (BAND, wanted.wavelength)})
    return matched


def _on_grid(ranked: Any, probability: xr.DataArray, model: MapModel) -> xr.Dataset:
    """Return the maps of records (y, x), on the grid of the probabilities."""
    place = {name: one for name, one in probability.coords.items() if CATEGORY not in one.dims}
    tree = model.tree
    attrs = model.classes.to_attrs() if tree is None else tree.to_attrs()
    label_attrs = {
        **attrs,
        **model.classes.to_attrs(),
        "_FillValue": nodata_label(ranked.dtype["label"]),
    }
    maps: dict[str, Any] = {
        "label": (MAP_DIMS, ranked["label"], label_attrs),
        "second": (MAP_DIMS, ranked["second"], label_attrs),
        "confidence": (MAP_DIMS, ranked["confidence"][..., -1]),
    }
    if tree is not None:
        levels = xr.Variable((*MAP_DIMS, LEVEL), ranked["confidence"], attrs)
        maps[LEVEL_CONFIDENCE] = levels.transpose(*LEVEL_DIMS)
    ranking = xr.Dataset(maps, coords=place)
    if "probability" in ranked.dtype.names:
        field = xr.Variable((*MAP_DIMS, CATEGORY), ranked["probability"])
        ranking["probability"] = probability.copy(data=field.transpose(*FIELD_DIMS).data)
    return ranking
