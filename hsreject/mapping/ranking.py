"""Labels and confidences of a scene, block by block: all that every rejection follows from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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

from hsreject.features.windows import with_halo
from hsreject.files import replacing, unfinished_folder
from hsreject.handover.filled_map import second_choice
from hsreject.io.remote import as_path, state_of
from hsreject.keys import key_of
from hsreject.mapping.blocks import Blocks
from hsreject.mapping.dial import Dial
from hsreject.mapping.foreign import Similarity, needed_bands
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
    label_dtype,
    nodata_label,
    valid_pixels,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.classes import ClassTable
    from hsreject.classify.scene_model import SceneModel
    from hsreject.rejection import RankedRejector


READ_AT_ONCE = 50_000_000  # bytes of label and confidence that are read whole


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


@dataclass(frozen=True, eq=False)
class MapJob:
    """A scene to be mapped, and all that its map depends on."""

    cube: xr.DataArray
    model: MapModel
    dial: Dial
    blocks: Blocks
    record: np.dtype[Any]  # of a pixel, before anything is rejected
    match_bands: str
    names: tuple[str, str]  # of scene and model
    flat: bool  # whether groups are rejected
    similarity: Similarity | None = None  # to the training scene, where the model remembers that
    n_finished: int = 0  # finished blocks, when stopped work is continued

    @property
    def shift(self) -> Sequence[float] | None:
        """By how much novelty is shifted on this scene; None where it does not count."""
        if self.similarity is None or not self.model.rejector.needs_p_value:
            return None
        return self.similarity.shift

    @property
    def lowest(self) -> float:
        """The confidence below which pixels are unknown; minus infinity where none is."""
        return -np.inf if self.shift is None else self.model.lowest_confidence

    @property
    def size_of_files(self) -> int:
        """Bytes of all blocks, and of all maps as plain files and in the end."""
        label = self.record["label"].itemsize
        maps = self.record.itemsize + label + 1 + 3 * label  # the last three are the filled map
        return self.cube[0].size * (self.record.itemsize + 2 * maps)


def rank_scene(job: MapJob, folder: Path | None, progress: ProgressCallback) -> xr.Dataset:
    """Return `label`, `confidence` and `second` (y, x) of a scene, the last the second choice.

    Where answers may be coarser there is `level_confidence` (level, y, x), and where the record of
    a pixel holds them, the probabilities of the classes. Where novelty counts, unknown pixels have
    confidences below all others. Finished blocks are kept in `folder` and taken from there, as a
    whole where they are small; without a folder all are in memory.

    The probabilities of the whole scene are one lazy array, so every pixel is read and classified
    once. It is cut into blocks that overlap by the halo, each block is solved by itself, and the
    halo is trimmed away.
    """
    cube, model, blocks = job.cube, job.model, job.blocks
    if cube.chunks is None:
        cube = cube.chunk(dict(zip(MAP_DIMS, blocks.pieces, strict=True)))
    bands = model.classifier.band_requirements_
    matched = bands.match(cube, how=job.match_bands)  # guesses are warned about here, once
    if bands.wavelength is not None and WAVELENGTH not in matched.coords:
        matched = matched.assign_coords({WAVELENGTH: (BAND, bands.wavelength)})
    probability = _probability(model.classifier, matched, blocks)
    layers = [probability]
    if job.shift is not None:
        needed = needed_bands(matched, model.classifier)
        layers.append(model.novelty.p_value(needed, shift=job.shift).expand_dims(BAND))
    image = bands.ordered(cube) if job.match_bands == "exact" else matched
    guide = None if model.halo is None else model.rejector.guide(image)
    layers += [] if guide is None else [guide]
    stack = da.concatenate([layer.data.astype(probability.dtype) for layer in layers])
    rank = partial(  # not the whole model: every task is sent to its worker by itself
        _ranked,
        rejector=model.rejector,
        classes=model.classes,
        lowest=None if job.shift is None else model.lowest_confidence,
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
    return ranking.load(scheduler="threads") if ranking.nbytes <= READ_AT_ONCE else ranking


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


def _ranked(
    layers: NDArray[np.floating[Any]],
    *,
    rejector: RankedRejector,
    classes: ClassTable,
    lowest: float | None,
    record: np.dtype[Any],
    image: xr.DataArray | None = None,
    progress: ProgressCallback = no_progress,
) -> NDArray[Any]:
    """Return the records (y, x) of a block, or of a scene with its image.

    The layers are probabilities, p-values where novelty counts, and what guides priors.
    """
    n_classes, has_novelty = len(classes), lowest is not None
    values, p_value, guide = np.split(layers, [n_classes, n_classes + has_novelty])
    probability = np.moveaxis(values, 0, -1)
    ranked = np.empty(values.shape[1:], record)
    if "probability" in (record.names or ()):
        ranked["probability"] = probability
    if not np.isfinite(values).all(axis=0).any():
        ranked["label"] = ranked["second"] = nodata_label(record["label"])
        ranked["confidence"] = np.nan
        return ranked
    field = xr.DataArray(values, dims=FIELD_DIMS, coords={CATEGORY: list(classes.values)})
    if image is None:
        rejector = rejector.in_block(guide)
    evidence = Evidence(attach_classes(field, classes), image=image)
    label, answers = rejector.label_and_confidence(evidence, progress)
    confidence = np.asarray(answers.values)
    if lowest is not None:
        confidence = below_all_others(confidence, p_value[0], lowest=lowest)
    ranked["label"] = label.values
    ranked["second"] = second_choice(label.values, probability, np.array(classes.values))
    ranked["confidence"] = np.moveaxis(confidence.reshape(-1, *ranked.shape), 0, -1)
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
    """Return what identifies a file or an object."""
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
