"""Map a scene with a trained model, block by block: the whole way from scene to reject map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path

import dask
import numpy as np
import xarray as xr

from hsreject.errors import InputError
from hsreject.files import check_folder, check_space, complete_folder
from hsreject.io.grid import Grid, LookupTable
from hsreject.io.maps import open_map, write_maps
from hsreject.io.products.remote import as_path
from hsreject.io.scene import open_scene
from hsreject.mapping.blocks import Blocks, cut_scene
from hsreject.mapping.finished_blocks import finished_blocks
from hsreject.mapping.foreign import Kinship, window_chunks
from hsreject.mapping.map_model import MapModel
from hsreject.mapping.map_summary import MapSummary, Rejection, class_shares
from hsreject.mapping.model_file import load_model
from hsreject.mapping.ranking import CONFIDENCE, rank_scene
from hsreject.mapping.schedulers import local_threads, telling_of_lost_workers
from hsreject.progress import ProgressCallback, counting_tasks, no_progress
from hsreject.promise.certificate import Certificate
from hsreject.registry import check_choice
from hsreject.rejection.rejector import ACCURACY, FRACTION, THRESHOLD, Goal, rejection_maps
from hsreject.rejection.thresholds import threshold_for_fraction
from hsreject.schema import CUBE_DIMS, MAP_DIMS, REJECTED, REJECTION_COST, check_dims, label_dtype

CERTIFICATE = "certificate"
READ_AT_ONCE = 50_000_000  # bytes of label and confidence that are read whole
_FILES = ("label", "confidence", "label_with_rejection")
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
    certificate: Certificate | str | PathLike[str] | None = None,
    variable: str | None = None,
    band_axis: int | None = None,
    match_bands: str = "exact",
    foreign: str = "refuse",
    memory: str | float = "2GB",
    block_size: int | None = None,
    n_workers: int | None = None,
    overwrite: bool = False,
    also: Callable[[SceneMap, Path], object] | None = None,
    progress: ProgressCallback = no_progress,
) -> SceneMap:
    """Map a scene with a trained model; scenes larger than memory are mapped in blocks.

    Every pixel is read and classified once. The context of a block is solved with a halo of
    probabilities around it (8 pixels per unit of context weight), and the block keeps its inside:
    at least 99.9 % of the labels are those of the whole scene solved at once (99 % where the
    spectra say next to nothing, and the tolerance of the solver changes more). Label and confidence
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
        :func:`hsreject.write_map` puts beside them, and `summary.toml`. They appear together when
        all are complete. Finished blocks are kept in it meanwhile: if the work is stopped, the same
        call goes on from them.
    fraction : float in [0, 1]
        Share of the pixels with data to reject; the nearest that a threshold reaches is taken.
    threshold : float
        The smallest confidence to keep.
    accuracy, rejection_cost : float in [0, 1]
        Take the threshold that kept this accuracy while rejecting least, or that was cheapest for
        this cost of a rejected pixel (a misclassified one costs 1), on the test pixels of the
        training scene.
    certificate : Certificate or path
        Take the threshold that :func:`hsreject.certify` certified for this very map; another map is
        refused. Exactly one of these five must be given.
    variable, band_axis : optional
        Of a .mat or .npy file, as for :func:`hsreject.open_scene`.
    match_bands : {"exact", "nearest", "interpolate"}
        What to do with a scene that has other bands than the training scene.
    foreign : {"refuse", "allow"}
        What to do with a scene that is unlike the training scene. Before any long work some 4,000
        pixels all over it are read. One is novel if it lies farther from every training pixel, in
        the features that the classifier sees, than 99 % of the training scene does. "refuse" raises
        where more than half of them are novel; where more than a tenth are, it warns
        (:class:`hsreject.errors.DriftWarning`) and rejects every novel pixel, whose confidence then
        lies below all others. "allow" maps every scene as if it were like the training scene.
    memory : str or float
        Bound of the memory of this process, like "2GB"; on a cluster, what one worker with one
        thread needs. ``hsreject.mapping.blocks.cut_scene`` has the formula.
    block_size : int, optional
        Side of a block in pixels, raised to the halo if it is smaller; by default as large as is
        useful within `memory`. The map depends on it a little, on the number of workers not at all.
    n_workers : int, optional
        Blocks to work on at once, fewer where memory does not allow as many; by default the
        number of cores.
    overwrite : bool
        Write into a folder that is not empty.
    also : callable, optional
        Called with the map and a folder when the files are written: what it writes into the folder
        appears in `out` together with them.
    progress : callable
        Called with (stage, done, total).

    Examples
    --------
    >>> from hsreject import synthetic_scene, train
    >>> model = train({"scene": {"name": "synthetic", "rows": 32, "columns": 32},
    ...                "features": [{"name": "pca", "n_components": 5}], "classifier": "lda"})
    >>> scene, _ = synthetic_scene(rows=32, columns=32)
    >>> made = map_scene(scene[:, 8:], model, fraction=0.1)
    >>> round(made.summary.rejected_fraction, 2), made.maps.label_with_rejection.dims
    (0.1, ('y', 'x'))
    """
    certified = (
        Certificate.read(certificate) if isinstance(certificate, str | PathLike) else certificate
    )
    goal = Goal.one_of(
        {
            FRACTION: fraction,
            THRESHOLD: threshold,
            ACCURACY: accuracy,
            REJECTION_COST: rejection_cost,
            CERTIFICATE: None if certified is None else certified.max_error,
        }
    )
    if out is not None:
        check_folder(Path(out), overwrite=overwrite)  # before the work, not after it
    trained = model if isinstance(model, MapModel) else open_map_model(model)
    known = None if goal.name == FRACTION else _known_threshold(trained, goal, certified)
    opened = partial(_opened, scene, variable=variable, band_axis=band_axis)
    cube = opened("auto")
    blocks = _cut(cube, trained, memory=memory, side=block_size, n_workers=n_workers)
    options = (variable, band_axis, match_bands, blocks.side, blocks.halo)
    if certified is not None:
        certified.check_shape(cube.shape[1:])  # before the work, as far as one can tell
    with local_threads(blocks.n_workers) as here, telling_of_lost_workers():
        cube = opened(dict(zip(MAP_DIMS, blocks.pieces, strict=True)))
        small = here and 1.5 * cube.nbytes <= blocks.bytes_left  # not all that is freed returns
        in_tiles = len(blocks.pieces[1]) > 1  # of which one look at a few pixels unpacks many
        if small and in_tiles and not isinstance(scene, xr.DataArray):  # read its file only once
            cube = cube.persist()
            opened = partial(_opened, cube)
        kinship = _kinship(
            opened, cube.shape[1:], trained, match_bands=match_bands, foreign=foreign
        )
        reject_novel = kinship is not None and kinship.drifted and foreign == "refuse"
        results: AbstractContextManager[Path | None] = nullcontext()
        if out is not None:
            results = complete_folder(Path(out).absolute(), overwrite=overwrite)
        with finished_blocks(out, model, scene, options) as kept, results as folder:
            finished = [] if kept is None else list(kept.glob("*.npy"))
            if out is not None:
                _check_space(Path(out), cube, trained, finished)
            ranking = rank_scene(
                cube,
                trained,
                blocks,
                match_bands=match_bands,
                kept=kept,
                lowered=reject_novel,
                progress=progress,
            )
            ranking = _computed(ranking, folder, progress)
            lowest = trained.lowest_confidence if reject_novel else -np.inf
            # what is left is light, and reads files of this process: no work for a cluster
            with dask.config.set(scheduler="threads"):
                if certified is not None:
                    certified.check_map(ranking["label"], ranking["confidence"])
                rejection = known or _for_fraction(
                    ranking["confidence"], goal.value, lowest, progress
                )
                maps = _rejected(ranking, rejection)
                summary = MapSummary(
                    rejection,
                    class_shares(maps),
                    n_without_data=maps["label"].size - maps.attrs["n_pixels"],
                    pixel_hectares=Grid.of(maps["label"]).pixel_hectares,
                    side=blocks.side,
                    halo=blocks.halo,
                    n_blocks=len(blocks),
                    n_continued=len(finished),
                    n_workers=blocks.n_workers,
                    scene=_name(scene, "scene"),
                    model=_name(model, "model"),
                    kinship=kinship,
                    n_novel=int((maps["confidence"] < lowest).sum()) if reject_novel else None,
                )
                if folder is not None:
                    missing = [name for name in _FILES if not (folder / f"{name}.tif").exists()]
                    write_maps({folder / f"{n}.tif": maps[n] for n in missing}, progress=progress)
                    (folder / "summary.toml").write_text(summary.to_toml(), encoding="utf-8")
                    if also is not None:
                        also(SceneMap(_written(folder, maps), summary), folder)
    return SceneMap(maps if out is None else _written(Path(out), maps), summary)


def open_map_model(path: str | PathLike[str]) -> MapModel:
    """Return the model in a file, or say that it cannot map."""
    model = load_model(path)
    if not isinstance(model, MapModel):
        raise InputError(
            f"{path} holds a classifier without a rejector. Make a map model with 'hsreject train'."
        )
    return model


def _known_threshold(model: MapModel, goal: Goal, certified: Certificate | None) -> Rejection:
    """Return the threshold of a goal that does not depend on the scene."""
    if certified is not None:
        source = f"certified. {certified.statement}"
        return Rejection(goal.name, goal.value, certified.applicable_threshold, source)
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
    variable: str | None = None,
    band_axis: int | None = None,
) -> xr.DataArray:
    """Return the cube (band, y, x), lazy if it comes from a file."""
    if not isinstance(scene, xr.DataArray):
        path = as_path(scene).absolute()  # workers of a cluster have working folders of their own
        scene = open_scene(path, chunks=chunks, variable=variable, band_axis=band_axis)
    return check_dims(scene, CUBE_DIMS, name="scene")


def _kinship(
    opened: Callable[[object], xr.DataArray],
    shape: tuple[int, ...],
    model: MapModel,
    *,
    match_bands: str,
    foreign: str,
) -> Kinship | None:
    """Return how like the training scene a scene is; raise or warn where it is not."""
    check_choice("foreign", foreign, ("refuse", "allow"))
    if model.training_scene is None:
        return None
    cube = opened(window_chunks((shape[0], shape[1]), model.classifier.halo))
    kinship = model.training_scene.compare(cube, model.classifier, match_bands=match_bands)
    kinship.check(foreign)
    return kinship


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
    bytes_waiting = 4 * n_classes * (2 if model.rejector.needs_p_value else 1)
    per_pixel = BYTES_PER_PIXEL + n_classes * model.rejector.bytes_per_class
    per_pixel += 2 * (bytes_waiting - 4 * n_classes)  # p-values, and a copy while they overlap
    if model.halo is None:  # the image itself is kept, and a copy while it is put together
        per_pixel += 2 * n_bands * max(cube.dtype.itemsize, 4)
    return cut_scene(
        (n_rows, n_columns),
        n_bands=n_bands,
        bytes_per_pixel=per_pixel,
        bytes_waiting=bytes_waiting,
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


def _computed(ranking: xr.Dataset, folder: Path | None, progress: ProgressCallback) -> xr.Dataset:
    """Compute label and confidence together: into memory, or into files that are read again."""
    # what is written of a scene in sensor geometry lies on another grid: it cannot be read back
    if folder is None or LookupTable.of(ranking["label"]) is not None:
        with counting_tasks("mapping", progress):
            return ranking.load()
    files = {name: folder / f"{name}.tif" for name in ranking}
    write_maps(
        {path: ranking[name] for name, path in files.items()},
        progress=lambda _stage, done, total: progress("mapping", done, total),
    )
    written = ranking.copy(
        data={name: open_map(path, chunks="auto").data for name, path in files.items()}
    )
    return written.load(scheduler="threads") if written.nbytes <= READ_AT_ONCE else written


def _for_fraction(
    confidence: xr.DataArray, fraction: float, lowest: float, progress: ProgressCallback
) -> Rejection:
    """Return the threshold that rejects the wanted share, and whatever lies below `lowest`."""
    found = threshold_for_fraction(confidence, fraction, progress=progress)
    if found.value < lowest:
        source = "pixels unlike the training pixels, which are more than the wanted fraction"
        return Rejection(FRACTION, fraction, lowest, source)
    reachable = (found.reachable_below, found.reachable_above)
    source = "the confidence at the wanted rank among all pixels of this scene"
    return Rejection(FRACTION, fraction, found.value, source, reachable)


def _rejected(ranking: xr.Dataset, rejection: Rejection) -> xr.Dataset:
    """Return the reject maps at a threshold, if there is anything to map."""
    maps = rejection_maps(
        ranking["label"],
        ranking["confidence"],
        threshold=rejection.threshold,
        attrs={rejection.asked: rejection.value, "threshold_source": rejection.source},
    )
    if not maps.attrs["n_pixels"]:
        raise InputError(
            "No pixel of the scene has data in every band that the model needs, so there is "
            "nothing to map. Check its nodata value, and mark bands without data as bad."
        )
    return maps


def _name(given: object, what: str) -> str:
    return str(given) if isinstance(given, str | PathLike) else f"a {what} in memory"


def _written(folder: Path, maps: xr.Dataset) -> xr.Dataset:
    """Return the maps as they are on disk, lazily."""
    opened = {name: open_map(folder / f"{name}.tif", chunks="auto") for name in _FILES}
    rejected = opened["label_with_rejection"] == REJECTED
    return xr.Dataset({**opened, "rejected": rejected.drop_attrs()}, attrs=maps.attrs)
