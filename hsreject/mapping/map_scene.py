"""Map a scene with a trained model, block by block: the whole way from scene to reject map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
import rasterio
import xarray as xr

from hsreject.errors import InputError
from hsreject.files import check_folder, check_space, complete_folder
from hsreject.io.maps import open_map, write_maps
from hsreject.io.scene import open_scene
from hsreject.mapping.blocks import Blocks, cut_scene, local_threads, telling_of_lost_workers
from hsreject.mapping.finished_blocks import finished_blocks, keeping_blocks
from hsreject.mapping.map_model import MapModel
from hsreject.mapping.map_summary import MapSummary, Rejection, class_shares, pixel_hectares
from hsreject.mapping.model_file import load_model
from hsreject.progress import ProgressCallback, counting_tasks, no_progress
from hsreject.rejection.evidence import Evidence
from hsreject.rejection.rejector import (
    ACCURACY,
    FRACTION,
    THRESHOLD,
    Goal,
    rejection_maps,
)
from hsreject.rejection.thresholds import threshold_for_fraction
from hsreject.schema import (
    BAND,
    CATEGORY,
    CUBE_DIMS,
    FIELD_DIMS,
    MAP_DIMS,
    REJECTED,
    REJECTION_COST,
    WAVELENGTH,
    attach_classes,
    check_dims,
    label_dtype,
    nodata_label,
    valid_pixels,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.rejection import RankedRejector

GDAL_CACHE = 128  # MB; part of blocks.PROGRAM
CONFIDENCE = np.dtype(np.float32)
BYTES_PER_PIXEL = 64  # of a block besides its classes: label, confidence, masks, edge weights


@dataclass(frozen=True, eq=False)
class SceneMap:
    """A map that says where it does not know.

    Attributes
    ----------
    maps : Dataset
        `label`, `label_with_rejection`, `confidence` and `rejected` (y, x); read from the written
        files when they are needed, if there are any, else in memory.
    summary : MapSummary
        The rejection and the classes in numbers.
    """

    maps: xr.Dataset
    summary: MapSummary


def map_scene(  # noqa: PLR0913 (all but two are options)
    scene: xr.DataArray | str | PathLike[str],
    model: MapModel | str | PathLike[str],
    *,
    out: str | PathLike[str] | None = None,
    fraction: float | None = None,
    threshold: float | None = None,
    accuracy: float | None = None,
    rejection_cost: float | None = None,
    variable: str | None = None,
    band_axis: int | None = None,
    match_bands: str = "exact",
    memory: str | float = "2GB",
    block_size: int | None = None,
    n_workers: int | None = None,
    overwrite: bool = False,
    progress: ProgressCallback = no_progress,
) -> SceneMap:
    """Map a scene with a trained model; scenes larger than memory are mapped in blocks.

    Every pixel is read and classified once. The context of a block is solved with a halo of
    probabilities around it (16 pixels per unit of context weight), and the block keeps its inside:
    at least 99.9 % of the labels are those of the whole scene solved at once. Label and confidence
    go to disk first; the threshold of a wanted fraction is then found exactly in all confidences.

    dask runs the blocks: on threads of this process, or on the cluster of the active
    `dask.distributed` client, whose workers must see scene and `out` under the same paths. The
    map is the same.

    Parameters
    ----------
    scene : DataArray (band, y, x) or path
        A file that :func:`hsreject.open_scene` opens, or a cube. A lazy cube keeps its chunks: they
        should hold all bands of a few thousand pixels.
    model : MapModel or path
        Of :func:`hsreject.train`.
    out : path, optional
        A folder for `label.tif`, `label_with_rejection.tif` and `confidence.tif`, with what
        :func:`hsreject.write_map` puts beside them, and `summary.toml`.
        They appear together when all are complete. Finished blocks are kept in it meanwhile: if
        the work is stopped, the same call goes on from them.
    fraction : float in [0, 1]
        Share of the pixels with data to reject; the nearest that a threshold reaches is taken.
    threshold : float
        The smallest confidence to keep.
    accuracy, rejection_cost : float in [0, 1]
        Take the threshold that kept this accuracy while rejecting least, or that was cheapest for
        this cost of a rejected pixel (a misclassified one costs 1), on the test pixels of the
        training scene. Exactly one of these four must be given.
    variable, band_axis : optional
        Of a .mat or .npy file, as for :func:`hsreject.open_scene`.
    match_bands : {"exact", "nearest", "interpolate"}
        What to do with a scene that has other bands than the training scene.
    memory : str or float
        Bound of the memory of this process, like "2GB"; on a cluster, what one worker with one
        thread needs. :func:`hsreject.mapping.blocks.cut_scene` has the formula.
    block_size : int, optional
        Side of a block in pixels, raised to the halo if it is smaller; by default as large as is
        useful within `memory`. The map depends on it a little, on the number of workers not at all.
    n_workers : int, optional
        Blocks to work on at once, fewer where memory does not allow as many; by default the
        number of cores.
    overwrite : bool
        Write into a folder that is not empty.
    progress : callable
        Called with (stage, done, total).

    Examples
    --------
    >>> from hsreject import synthetic_scene, train
    >>> model = train({"scene": {"name": "synthetic", "rows": 32, "columns": 32},
    ...                "features": [{"name": "pca", "n_components": 5}], "classifier": "lda"})
    >>> other, _ = synthetic_scene(rows=40, columns=40, seed=0)
    >>> made = map_scene(other, model, fraction=0.1)
    >>> round(made.summary.rejected_fraction, 2), made.maps.label_with_rejection.dims
    (0.1, ('y', 'x'))
    """
    goal = Goal.one_of(
        {
            FRACTION: fraction,
            THRESHOLD: threshold,
            ACCURACY: accuracy,
            REJECTION_COST: rejection_cost,
        }
    )
    if out is not None:
        check_folder(Path(out), overwrite=overwrite)  # before the work, not after it
    trained = model if isinstance(model, MapModel) else _map_model(model)
    known = None if goal.name == FRACTION else _known_threshold(trained, goal)
    opened = partial(_opened, scene, variable=variable, band_axis=band_axis)
    blocks = _cut(opened("auto"), trained, memory=memory, side=block_size, n_workers=n_workers)
    cube = opened(dict(zip(MAP_DIMS, blocks.pieces, strict=True)))
    options = (variable, band_axis, match_bands, blocks.side, blocks.halo)
    with (
        rasterio.Env(GDAL_CACHEMAX=GDAL_CACHE),
        local_threads(blocks.n_workers),
        finished_blocks(out, model, scene, options) as kept,
        _folder(out, overwrite=overwrite) as folder,
        telling_of_lost_workers(),
    ):
        finished = [] if kept is None else list(kept.glob("*.npy"))
        if out is not None:
            _check_space(Path(out), cube, trained, finished)
        ranking = rank_scene(
            cube, trained, blocks, match_bands=match_bands, kept=kept, progress=progress
        )
        ranking = _computed(ranking, folder, progress)
        rejection = known or _for_fraction(ranking["confidence"], goal.value, progress)
        maps = rejection_maps(
            ranking["label"],
            ranking["confidence"],
            threshold=rejection.threshold,
            attrs={rejection.asked: rejection.value, "threshold_source": rejection.source},
        )
        summary = _summary(
            maps,
            rejection,
            blocks,
            n_continued=len(finished),
            scene=_name(scene, "scene"),
            model=_name(model, "model"),
        )
        if folder is not None:
            target = folder / "label_with_rejection.tif"
            write_maps({target: maps["label_with_rejection"]}, progress=progress)
            (folder / "summary.toml").write_text(summary.to_toml(), encoding="utf-8")
    return SceneMap(maps if out is None else _written(Path(out), maps), summary)


def _map_model(path: str | PathLike[str]) -> MapModel:
    model = load_model(path)
    if not isinstance(model, MapModel):
        raise InputError(
            f"{path} holds a classifier without a rejector. Make a map model with 'hsreject train'."
        )
    return model


def _known_threshold(model: MapModel, goal: Goal) -> Rejection:
    """Return the threshold of a goal that does not depend on the scene."""
    if goal.name == THRESHOLD:
        return Rejection(goal.name, goal.value, goal.value, "given")
    wish = {
        ACCURACY: f"the smallest rejection that kept an accuracy of {goal.value:g}",
        REJECTION_COST: f"the cheapest if a rejected pixel costs {goal.value:g} of a wrong one",
    }
    where = f"{model.n_calibration_pixels} test pixels of the training scene ('{model.title}')"
    source = f"{wish[goal.name]}, on {where}"
    return Rejection(goal.name, goal.value, model.threshold_for(goal), source)


def _opened(
    scene: xr.DataArray | str | PathLike[str],
    chunks: object,
    *,
    variable: str | None,
    band_axis: int | None,
) -> xr.DataArray:
    """Return the cube (band, y, x), lazy if it comes from a file."""
    if not isinstance(scene, xr.DataArray):
        # workers of a cluster have working folders of their own
        scene = Path(scene).absolute() if Path(scene).exists() else scene
        scene = open_scene(scene, chunks=chunks, variable=variable, band_axis=band_axis)
    return check_dims(scene, CUBE_DIMS, name="scene")


def _cut(
    cube: xr.DataArray,
    model: MapModel,
    *,
    memory: str | float,
    side: int | None,
    n_workers: int | None,
) -> Blocks:
    """Return the blocks of a scene: probabilities are overlapped, so the rejector's halo counts."""
    n_bands, n_rows, n_columns = cube.shape
    stored = cube.encoding.get("preferred_chunks", {})
    grain = tuple(stored[dim] for dim in MAP_DIMS) if set(MAP_DIMS) <= set(stored) else None
    n_classes = len(model.classes.values)
    per_pixel = BYTES_PER_PIXEL + n_classes * model.rejector.bytes_per_class
    if model.halo is None:  # the image itself is kept, and a copy while it is put together
        per_pixel += 2 * n_bands * max(cube.dtype.itemsize, 4)
    return cut_scene(
        (n_rows, n_columns),
        n_bands=n_bands,
        bytes_per_pixel=per_pixel,
        bytes_waiting=4 * n_classes,
        halo=None if model.halo is None else model.rejector.halo,
        memory=memory,
        grain=grain,
        side=side,
        n_workers=n_workers,
    )


def _check_space(out: Path, cube: xr.DataArray, model: MapModel, finished: Sequence[Path]) -> None:
    """Raise if the disk has no room for all that mapping writes: to be asked before the work.

    That is label and confidence in blocks, as plain files and in the end, and a second label map.
    """
    _, n_rows, n_columns = cube.shape
    label = label_dtype(max(model.classes.values)).itemsize
    size = n_rows * n_columns * (3 * (label + CONFIDENCE.itemsize) + label)
    check_space(out, size - sum(path.stat().st_size for path in finished))


@contextmanager
def _folder(out: str | PathLike[str] | None, *, overwrite: bool) -> Iterator[Path | None]:
    """Give a folder whose files end up in `out`, or None where nothing is to be written."""
    if out is None:
        yield None
        return
    with complete_folder(Path(out).absolute(), overwrite=overwrite) as work:
        yield work


def rank_scene(
    cube: xr.DataArray,
    model: MapModel,
    blocks: Blocks,
    *,
    match_bands: str,
    kept: Path | None,
    progress: ProgressCallback,
) -> xr.Dataset:
    """Return `label` and `confidence` (y, x) of a scene, lazy where it is mapped in blocks.

    The probabilities of the whole scene are one lazy array, so every pixel is read and classified
    once. It is cut into blocks that overlap by the halo, each block is solved by itself, and the
    halo is trimmed away. Finished blocks are kept in the folder `kept`, and taken from there.
    """
    if cube.chunks is None:
        cube = cube.chunk(dict(zip(MAP_DIMS, blocks.pieces, strict=True)))
    matched = _with_bands_of(model, cube, match_bands)
    probability = model.classifier.predict_proba(matched)
    image = cube if match_bands == "exact" else matched
    if model.halo is None:  # one block, whose priors see the image itself
        evidence = Evidence(probability.compute(), image=image.compute())
        label, confidence = model.rejector.label_and_confidence(evidence, progress)
        return xr.Dataset({"label": label, "confidence": confidence})
    layers = probability.data
    guide = model.rejector.guide(image)
    if guide is not None:
        layers = da.concatenate([layers, guide.data.astype(layers.dtype)])
    kind = np.dtype([("label", label_dtype(max(model.classes.values))), ("confidence", CONFIDENCE)])
    ranked = da.map_overlap(
        partial(_rank_block, model=model, dtype=kind),
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
    confidence = _on_grid(probability, ranked["confidence"])
    return xr.Dataset({"label": attach_classes(label, model.classes), "confidence": confidence})


def _with_bands_of(model: MapModel, cube: xr.DataArray, how: str) -> xr.DataArray:
    """Return the scene with the bands of the training scene; a guess is told here, once."""
    wanted = model.classifier.band_requirements_
    matched: xr.DataArray = wanted.match(cube, how=how)
    if wanted.wavelength is not None and WAVELENGTH not in matched.coords:
        matched = matched.assign_coords({WAVELENGTH: (BAND, wanted.wavelength)})
    return matched


def _rank_block(
    layers: NDArray[np.floating[Any]], *, model: MapModel, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return label and confidence (y, x) of a block: its probabilities, then what guides priors."""
    ranked = np.empty(layers.shape[1:], dtype)
    n_classes = len(model.classes.values)
    probability = xr.DataArray(
        layers[:n_classes], dims=FIELD_DIMS, coords={CATEGORY: list(model.classes.values)}
    )
    if not valid_pixels(probability).any():
        ranked["label"], ranked["confidence"] = nodata_label(dtype["label"]), np.nan
        return ranked
    rejector: RankedRejector = model.rejector.in_block(layers[n_classes:])
    label, confidence = rejector.label_and_confidence(Evidence(probability), no_progress)
    ranked["label"], ranked["confidence"] = label.values, confidence.values
    return ranked


def _on_grid(field: xr.DataArray, data: Any) -> xr.DataArray:
    """Return a lazy map on the grid of a field (category, y, x)."""
    coords = {name: coord for name, coord in field.coords.items() if CATEGORY not in coord.dims}
    return xr.DataArray(data, dims=MAP_DIMS, coords=coords)


def _computed(ranking: xr.Dataset, folder: Path | None, progress: ProgressCallback) -> xr.Dataset:
    """Compute label and confidence together: into memory, or into files that are read lazily."""
    if folder is None:
        with counting_tasks("mapping", progress):
            return ranking.load()
    files = {name: folder / f"{name}.tif" for name in ranking}
    write_maps(
        {path: ranking[name] for name, path in files.items()},
        progress=lambda _stage, done, total: progress("mapping", done, total),
    )
    return ranking.copy(
        data={name: open_map(path, chunks="auto").data for name, path in files.items()}
    )


def _for_fraction(
    confidence: xr.DataArray, fraction: float, progress: ProgressCallback
) -> Rejection:
    """Return the threshold that rejects the wanted share of this scene."""
    found = threshold_for_fraction(confidence, fraction, progress=progress)
    reachable = (found.reachable_below, found.reachable_above)
    source = "the confidence at the wanted rank among all pixels of this scene"
    return Rejection(FRACTION, fraction, found.value, source, reachable)


def _summary(
    maps: xr.Dataset,
    rejection: Rejection,
    blocks: Blocks,
    *,
    n_continued: int,
    scene: str,
    model: str,
) -> MapSummary:
    """Return what maps say in numbers."""
    if not maps.attrs["n_pixels"]:
        raise InputError(
            "No pixel of the scene has data in every band that the model needs, so there is "
            "nothing to map. Check its nodata value, and mark bands without data as bad."
        )
    return MapSummary(
        rejection,
        class_shares(maps),
        n_without_data=maps["label"].size - maps.attrs["n_pixels"],
        pixel_hectares=pixel_hectares(maps["label"]),
        side=blocks.side,
        halo=blocks.halo,
        n_blocks=len(blocks),
        n_continued=n_continued,
        n_workers=blocks.n_workers,
        scene=scene,
        model=model,
    )


def _name(given: object, what: str) -> str:
    return str(given) if isinstance(given, str | PathLike) else f"a {what} in memory"


def _written(folder: Path, maps: xr.Dataset) -> xr.Dataset:
    """Return the maps as they are on disk, lazily."""
    opened = {
        name: open_map(folder / f"{name}.tif", chunks="auto")
        for name in ("label", "label_with_rejection", "confidence")
    }
    rejected = opened["label_with_rejection"] == REJECTED
    return xr.Dataset({**opened, "rejected": rejected.drop_attrs()}, attrs=maps.attrs)
