"""Labels and confidences of a scene, block by block: all that every rejection follows from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import dask.array as da
import numpy as np
import xarray as xr
from dask.base import compute, tokenize
from dask.delayed import delayed

from hsreject.features.diffusion import with_halo
from hsreject.files import replacing, unfinished_folder
from hsreject.handover.filled_map import second_choice
from hsreject.io.remote import as_path, state_of
from hsreject.keys import key_of
from hsreject.mapping.blocks import Blocks
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
    n_levels = 1 if model.tree is None else model.tree.n_levels
    fields: list[Any] = [
        ("label", label),
        ("second", label),
        ("confidence", np.float32, (n_levels,)),
        ("probability", np.float32, (n_classes,)),
    ]
    return np.dtype(fields if probabilities else fields[:-1])


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
    bands = model.classifier.band_requirements_
    matched = bands.match(cube, how=match_bands)  # a guess is told here, once
    if bands.wavelength is not None and WAVELENGTH not in matched.coords:
        matched = matched.assign_coords({WAVELENGTH: (BAND, bands.wavelength)})
    probability = _probability(model.classifier, matched, blocks)
    p_value = None
    if shift is not None:
        p_value = model.novelty.p_value(needed_bands(matched, model.classifier), shift=shift)
    image = bands.ordered(cube) if match_bands == "exact" else matched
    # not the whole model: every task is sent to its worker by itself
    rank = partial(_ranked, model.rejector, lowest=model.lowest_confidence, dtype=record)
    if model.halo is None:  # one block, whose priors see the image itself
        with counting_tasks("mapping", progress):
            evidence = Evidence(probability.compute(), image=image.compute())
            novelty = None if p_value is None else p_value.values
        ranked: Any = rank(evidence, novelty, progress=progress)
    else:
        guide = model.rejector.guide(image)
        ranked = _rank_blocks(probability, p_value, guide, rank, blocks)
        with counting_tasks("mapping", progress):
            ranked = ranked.persist() if folder is None else _stored_blocks(ranked, folder)
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


def _on_grid(ranked: Any, probability: xr.DataArray, model: MapModel) -> xr.Dataset:
    """Return the maps of records (y, x), on the grid of the probabilities."""
    place = {name: one for name, one in probability.coords.items() if CATEGORY not in one.dims}
    tree, classes = model.tree, model.classes.to_attrs()
    attrs = classes if tree is None else tree.to_attrs()
    label_attrs = {**attrs, **classes, "_FillValue": nodata_label(ranked.dtype["label"])}
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


# ---------------------------------------------------------------------------- finished blocks


@contextmanager
def finished_blocks(
    out: str | PathLike[str], model: object, scene: object, options: object
) -> Iterator[Path]:
    """Give the folder of the blocks that the same work has finished before it was stopped.

    Files count as the same when path, size and time of change are.
    """
    work = [_identity(part) for part in (model, scene)]
    # work that has no key begins anew every time
    with unfinished_folder(Path(out).absolute(), key_of(work, options) or uuid4().hex) as folder:
        yield folder


def _identity(part: object) -> object:
    """Return what tells a file or an object from others."""
    if isinstance(part, str | PathLike):
        return str(part), *state_of(as_path(part))
    return tokenize(part) if isinstance(part, xr.DataArray) else part


def _stored_blocks(ranked: Any, folder: Path) -> Any:
    """Compute the blocks that are not in `folder` yet, and return all of them, read lazily."""
    rows, columns = map(range, ranked.numblocks)
    paths = {(row, column): folder / f"{row}-{column}.npy" for row in rows for column in columns}
    missing = [
        ranked.blocks[place].map_blocks(
            _store_block, path, chunks=(1, 1), dtype=bool, meta=np.empty((0, 0), bool)
        )
        for place, path in paths.items()
        if not path.exists()
    ]
    compute(*missing)
    empty = np.empty((0, 0), ranked.dtype)

    def stored(row: int, column: int) -> Any:
        shape = ranked.chunks[0][row], ranked.chunks[1][column]
        return da.from_delayed(delayed(np.load)(paths[row, column]), shape, meta=empty)

    return da.block([[stored(row, column) for column in columns] for row in rows])


def _store_block(block: NDArray[Any], path: Path) -> NDArray[np.bool_]:
    with replacing(path, overwrite=True) as part:
        np.save(part, block)
    return np.ones((1, 1), dtype=bool)
