"""Labels and confidences of a scene, block by block: all that every rejection follows from."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
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

from hsreject import schema
from hsreject.features.pixels import on_the_grid_of
from hsreject.features.windows import with_halo
from hsreject.files import replacing
from hsreject.handover.filled_map import second_choice
from hsreject.io.remote import as_path, state_of
from hsreject.keys import key_of
from hsreject.mapping.blocks import Blocks
from hsreject.mapping.map_model import MapModel, Similarity, needed_bands
from hsreject.progress import ProgressCallback, counting_tasks, no_progress
from hsreject.rejection.evidence import Evidence
from hsreject.rejection.novelty import UNKNOWN_BELOW
from hsreject.rejection.ranking import UNKNOWN, Ranking

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.certification.certificate import Certificate
    from hsreject.classify.scene_model import SceneModel
    from hsreject.mapping.reading import Reading
    from hsreject.measures.choosing import Goal
    from hsreject.rejection import RankedRejector
    from hsreject.schema.classes import ClassTable

READ_AT_ONCE = 50_000_000  # bytes of label and confidence that are read whole


def ranking_dtype(model: MapModel, *, probabilities: bool = False) -> np.dtype[Any]:
    """Return what is known of a pixel before anything is rejected: a confidence per level."""
    label = schema.label_dtype(max(model.classes.values))
    n_levels = 1 if model.tree is None else model.tree.n_levels
    fields: list[Any] = [("label", label), ("second", label)]
    if model.tells_unknown:
        fields.append((UNKNOWN, np.bool_))
    fields.append(("confidence", np.float32, (n_levels,)))
    if probabilities:
        fields.append(("probability", np.float32, (len(model.classes),)))
    return np.dtype(fields)


@dataclass(frozen=True, eq=False)
class MapJob:
    """A scene to be mapped, and all that its map depends on."""

    cube: xr.DataArray
    model: MapModel
    goal: Goal  # of a certificate, what that promises
    certificate: Certificate | None
    sample: Any  # of the scene, with its classes
    blocks: Blocks
    record: np.dtype[Any]  # of a pixel, before anything is rejected
    reading: Reading
    flat: bool  # whether groups are rejected
    names: Sequence[str]  # of scene and model
    similarity: Similarity | None = None  # to the training scene, where the model remembers that
    n_finished: int = 0  # finished blocks, when stopped work is continued


def rank_scene(job: MapJob, folder: Path | None, progress: ProgressCallback) -> Ranking:
    """Return the ranking of a scene, with the second choice and, if asked for, probabilities.

    Finished blocks are kept in `folder`, and read when they are needed; without one, all are in
    memory.

    The probabilities of the whole scene are one lazy array, so every pixel is read and classified
    once. It is cut into blocks that overlap by the halo, which is trimmed away in the end.
    """
    cube, model, blocks = job.cube, job.model, job.blocks
    if cube.chunks is None:
        cube = cube.chunk(dict(zip(schema.MAP_DIMS, blocks.pieces, strict=True)))
    bands = model.classifier.band_requirements_
    matched = bands.match(cube, how=job.reading.match_bands)  # guesses are warned about here, once
    if bands.wavelength is not None and schema.WAVELENGTH not in matched.coords:
        matched = matched.assign_coords({schema.WAVELENGTH: (schema.BAND, bands.wavelength)})
    probability = _probability(model.classifier, matched, blocks)
    layers = [probability]
    if job.similarity is not None and model.tells_unknown:
        needed = needed_bands(matched, model.classifier)
        p_value = model.novelty.p_value(needed, shift=job.similarity.shift)
        layers.append(p_value.expand_dims(schema.BAND))
    image = bands.ordered(cube) if job.reading.match_bands == "exact" else matched
    guide = None if model.halo is None else model.rejector.guide(image)
    layers += [] if guide is None else [guide]
    stack = da.concatenate([layer.data.astype(probability.dtype) for layer in layers])
    rank = partial(  # not the whole model: every task is sent to its worker by itself
        _ranked,
        rejector=model.rejector,
        classes=model.classes,
        record=job.record,
    )
    if model.halo is None:  # one block, whose priors see the image itself
        with counting_tasks("mapping", progress):
            values, image = stack.compute(), image.compute()
        return _on_grid(rank(values, image=image, progress=progress), probability, model)
    ranked: Any = da.map_overlap(
        rank,
        stack.rechunk((-1, *blocks.sizes)),
        depth=(0, *blocks.depth),
        boundary="none",  # at the border of the scene there is nothing
        drop_axis=0,
        dtype=job.record,
        meta=np.empty((0, 0), job.record),
    )
    with counting_tasks("mapping", progress):
        ranked = ranked.persist() if folder is None else _stored_blocks(ranked, folder)
    ranking = _on_grid(ranked, probability, model)
    if folder is None:  # in the memory of the process that computed it
        return ranking.load()
    return ranking.load(scheduler="threads") if ranked.nbytes <= READ_AT_ONCE else ranking


def _probability(classifier: SceneModel, matched: xr.DataArray, blocks: Blocks) -> xr.DataArray:
    """Return the lazy probabilities (category, y, x) of a lazy scene."""
    if not classifier.halo:
        return classifier.predict_proba(matched)
    # a classifier that looks around a pixel gets pieces with its halo around them
    down, across = (blocks.reach if len(sizes) > 1 else 0 for sizes in blocks.pieces)
    bands = dict(matched.isel({schema.Y: 0, schema.X: 0}, drop=True).coords.variables)
    classes = classifier.class_table_

    def classify(values: NDArray[Any]) -> NDArray[np.float32]:
        piece = xr.DataArray(values, dims=schema.CUBE_DIMS, coords=bands)
        if not schema.valid_pixels(piece).any():
            return np.full((len(classes), *values.shape[1:]), np.nan, np.float32)
        return np.asarray(classifier.predict_proba(piece).values, dtype=np.float32)

    probability = with_halo(
        matched.data.rechunk((-1, *blocks.pieces)),
        classify,
        {0: 0, 1: down, 2: across},
        n_outputs=len(classes),
        dtype=np.float32,
    )
    categories = {schema.CATEGORY: list(classes.values)}
    field = on_the_grid_of(matched, probability, dim=schema.CATEGORY, coords=categories)
    return schema.attach_classes(field, classes)


def _ranked(
    layers: NDArray[np.floating[Any]],
    *,
    rejector: RankedRejector,
    classes: ClassTable,
    record: np.dtype[Any],
    image: xr.DataArray | None = None,
    progress: ProgressCallback = no_progress,
) -> NDArray[Any]:
    """Return the records (y, x) of a block, or of a scene with its image.

    The layers are probabilities, p-values where novelty counts, and what guides priors.
    """
    has_novelty = UNKNOWN in (record.names or ())
    values, p_value, guide = np.split(layers, [len(classes), len(classes) + has_novelty])
    probability = np.moveaxis(values, 0, -1)
    ranked = np.empty(values.shape[1:], record)
    if "probability" in (record.names or ()):
        ranked["probability"] = probability
    if not np.isfinite(values).all(axis=0).any():
        ranked["label"] = ranked["second"] = schema.nodata_label(record["label"])
        ranked["confidence"] = np.nan
        if has_novelty:
            ranked[UNKNOWN] = False
        return ranked
    field = xr.DataArray(
        values, dims=schema.FIELD_DIMS, coords={schema.CATEGORY: list(classes.values)}
    )
    if image is None:
        rejector = rejector.in_block(guide)
    evidence = Evidence(schema.attach_classes(field, classes), image=image)
    label, answers = rejector.label_and_confidence(evidence, progress)
    confidence = np.asarray(answers.values)
    if has_novelty:
        ranked[UNKNOWN] = p_value[0] < UNKNOWN_BELOW
    ranked["label"] = label.values
    ranked["second"] = second_choice(label.values, probability, np.array(classes.values))
    ranked["confidence"] = np.moveaxis(confidence.reshape(-1, *ranked.shape), 0, -1)
    return ranked


def _on_grid(ranked: Any, probability: xr.DataArray, model: MapModel) -> Ranking:
    """Return the ranking of records (y, x), on the grid of the probabilities."""
    tree, classes = model.tree, model.classes.to_attrs()
    place = probability.isel({schema.CATEGORY: 0}, drop=True).coords
    attrs = {**(classes if tree is None else tree.to_attrs()), **classes}
    attrs["_FillValue"] = schema.nodata_label(ranked.dtype["label"])

    def layer(name: str, *along: str, **attrs: object) -> xr.DataArray:
        dims = (*schema.MAP_DIMS, *along)
        return xr.DataArray(ranked[name], place, dims, attrs=attrs).transpose(*along, ...)

    field = None
    if "probability" in ranked.dtype.names:
        field = probability.copy(data=layer("probability", schema.CATEGORY).data)
    return Ranking(
        layer("label", **attrs),
        layer("confidence", schema.LEVEL),
        layer(UNKNOWN) if UNKNOWN in ranked.dtype.names else None,
        tree=tree,
        second=layer("second", **attrs),
        probability=field,
    )


def key_of_work(*parts: object) -> str:
    """Return a key of all that blocks depend on: of files, path, size and time of change."""

    def identity(part: object) -> object:
        if isinstance(part, str | PathLike):
            with suppress(OSError):  # opening it will say why
                return str(part), *state_of(as_path(part))
        return tokenize(part) if isinstance(part, xr.DataArray) else part

    return key_of(*map(identity, parts)) or uuid4().hex  # without one, work begins anew


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
