"""Map a scene with a trained model, block by block: the whole way from scene to reject map."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import rasterio
import xarray as xr

from hsreject.errors import InputError
from hsreject.files import check_folder, complete_folder
from hsreject.io.maps import open_map, write_maps
from hsreject.mapping.map_model import MapModel
from hsreject.mapping.model_file import load_map_model
from hsreject.mapping.ranked_scene import CutScene, SceneFile, rank_scene, scene_in_blocks
from hsreject.mapping.summary import MapSummary, Rejection, class_shares, pixel_hectares
from hsreject.mapping.tasks import local_threads, reading_threads
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.rejector import (
    ACCURACY,
    FRACTION,
    REJECTION_COST,
    THRESHOLD,
    Goal,
    rejection_maps,
)
from hsreject.rejection.thresholds import threshold_for_fraction
from hsreject.schema import REJECTED

MAPS = ("label", "label_with_rejection", "confidence")
SUMMARY = "summary.toml"
_GDAL_CACHE = 128  # MB; part of memory.PROGRAM


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

    Every block is classified and solved in a window that is wider by the reach of the model (16
    pixels a unit of context weight, and that of its features), and keeps its inside: at least 99.9
    % of the labels are those of the whole scene solved at once. What priors take from the image as
    a whole is gathered first. Labels and confidences are kept on disk; the threshold of a wanted
    fraction is found in them exactly, so that nothing is computed twice.

    Blocks are run by dask: on threads of this process, or on the cluster of the active
    `dask.distributed` client, whose workers must see scene and `out` under the same paths. The
    answer is the same.

    Parameters
    ----------
    scene : DataArray (band, y, x) or path
        A cube, best opened with ``chunks``, or a file that :func:`hsreject.open_scene` opens.
    model : MapModel or path
        Of :func:`hsreject.train`.
    out : path, optional
        A folder for `label.tif`, `label_with_rejection.tif`, `confidence.tif` and `summary.toml`.
        They appear together when all are complete.
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
        thread needs. :func:`hsreject.mapping.memory.share_memory` has the formula.
    block_size : int, optional
        Side of a block in pixels; by default as large as is useful within `memory`. The map
        depends on it a little, on the number of workers not at all.
    n_workers : int, optional
        Blocks to work on at once; by default as many as cores and memory allow.
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
    named = "a model in memory" if isinstance(model, MapModel) else str(model)
    model = model if isinstance(model, MapModel) else load_map_model(model)
    known = None if goal.name == FRACTION else _known_threshold(model, goal)
    cut = scene_in_blocks(
        scene if isinstance(scene, xr.DataArray) else SceneFile(scene, variable, band_axis),
        model,
        match_bands=match_bands,
        memory=memory,
        block_size=block_size,
        n_workers=n_workers,
    )
    n_threads = cut.share.n_workers
    with _folder(out, overwrite=overwrite) as folder, _blocks(folder) as blocks:
        with local_threads(n_threads):
            ranking = rank_scene(cut, model, blocks, progress=progress)
        with reading_threads(n_threads):
            rejection = known or _for_fraction(ranking["confidence"], goal.value, progress)
            made = _rejected(ranking, rejection, cut, named)
            if out is None:
                return SceneMap(made.maps.load(), made.summary)
            _write(made, folder, progress)
    return SceneMap(_written(Path(out), made.maps), made.summary)


@contextmanager
def _folder(out: str | PathLike[str] | None, *, overwrite: bool) -> Iterator[Path]:
    """Give a folder to work in, whose files end up in `out` if there is one."""
    if out is not None:
        with complete_folder(Path(out), overwrite=overwrite) as work:
            yield work
        return
    with tempfile.TemporaryDirectory(prefix="hsreject-") as work:
        yield Path(work)


@contextmanager
def _blocks(folder: Path) -> Iterator[Path]:
    """Give a folder for finished blocks inside another, and bound what GDAL keeps in memory."""
    with (
        rasterio.Env(GDAL_CACHEMAX=_GDAL_CACHE),
        tempfile.TemporaryDirectory(dir=folder, prefix="blocks-") as blocks,
    ):
        yield Path(blocks)


def _write(made: SceneMap, folder: Path, progress: ProgressCallback) -> None:
    write_maps({folder / f"{name}.tif": made.maps[name] for name in MAPS}, progress=progress)
    (folder / SUMMARY).write_text(made.summary.to_toml(), encoding="utf-8")


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


def _for_fraction(
    confidence: xr.DataArray, fraction: float, progress: ProgressCallback
) -> Rejection:
    found = threshold_for_fraction(confidence, fraction, progress=progress)
    reachable = (found.reachable_below, found.reachable_above)
    source = "the confidence at the wanted rank among all pixels of this scene"
    return Rejection(FRACTION, fraction, found.value, source, reachable)


def _rejected(ranking: xr.Dataset, rejection: Rejection, cut: CutScene, model: str) -> SceneMap:
    """Return the lazy maps of a rejection, and what they say in numbers."""
    attrs = {rejection.asked: rejection.value, "threshold_source": rejection.source}
    maps = rejection_maps(
        ranking["label"], ranking["confidence"], threshold=rejection.threshold, attrs=attrs
    )
    if not maps.attrs["n_pixels"]:
        raise InputError(
            "No pixel of the scene has data in every band that the model needs, so there is "
            "nothing to map."
        )
    summary = MapSummary(
        rejection,
        class_shares(maps),
        n_without_data=maps["label"].size - maps.attrs["n_pixels"],
        pixel_hectares=pixel_hectares(maps["label"]),
        side=cut.share.blocks.side,
        halo=cut.share.blocks.halo,
        n_blocks=len(cut.share.blocks),
        n_workers=cut.share.n_workers,
        scene=cut.name,
        model=model,
    )
    return SceneMap(maps, summary)


def _written(folder: Path, maps: xr.Dataset) -> xr.Dataset:
    """Return the maps as they are on disk, lazily."""
    opened = {name: open_map(folder / f"{name}.tif", chunks="auto") for name in MAPS}
    rejected = opened["label_with_rejection"] == REJECTED
    return xr.Dataset({**opened, "rejected": rejected.drop_attrs()}, attrs=maps.attrs)
