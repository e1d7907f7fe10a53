"""Map a scene with a trained model, block by block: the whole way from scene to reject map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dask
import xarray as xr

from hsreject import schema
from hsreject.errors import FileError, InputError, shown
from hsreject.files import check_folder, check_space, complete_folder, unfinished_folder
from hsreject.handover.filled_map import FILLED, filled_map, filled_raster, open_filled_map
from hsreject.handover.provenance import Provenance, write_map_item
from hsreject.io.grid import PixelGrid
from hsreject.io.maps import Raster, open_map, write_maps
from hsreject.mapping.blocks import Resources, cut_scene, workers
from hsreject.mapping.map_model import MapModel, window_chunks
from hsreject.mapping.map_summary import (
    MapSummary,
    asked_for,
    check_evidence,
    rejection_of,
    shares_of,
)
from hsreject.mapping.model_file import load_model
from hsreject.mapping.ranked_blocks import MapJob, key_of_work, rank_scene, ranking_dtype
from hsreject.mapping.reading import Reading
from hsreject.progress import ProgressCallback, no_progress
from hsreject.rejection.ranking import GROUP_FLAG, UNKNOWN_FLAG, Ranking, levels_as_field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.certification.certificate import Certificate
    from hsreject.certification.sample import Sample
    from hsreject.measures.choosing import Goal

SUMMARY_FILE = "summary.toml"
FILES = ("label", "confidence", schema.LABEL_WITH_REJECTION, "flag")
FIELD_FILES = {schema.LEVEL_CONFIDENCE: "level_confidence.tif", "probability": "probabilities.tif"}
"""Maps of several bands, where there are groups and where probabilities are asked for."""


@dataclass(frozen=True, eq=False)
class SceneMap:
    """A map that says where it does not know, and the rejection and the classes in numbers.

    `maps` has `label`, `label_with_rejection`, `confidence`, `rejected`, `flag` and `second` choice
    (y, x), `unknown` where novelty counts, `level_confidence` (level, y, x) where answers may be
    groups, and `probability` (category, y, x) on demand; lazily from files that were written.
    """

    maps: xr.Dataset
    summary: MapSummary


@dataclass(frozen=True, kw_only=True)
class Layers:
    """What a map of :func:`hsreject.map_scene` consists of, where there is a choice.

    Parameters
    ----------
    flat : bool
        Of a model with groups: reject what is not one class, for readers that know no groups;
        `confidence` is that of the class then.
    probabilities : bool
        Keep what the classifier says in `probability` and `probabilities.tif`, a band per class.
    write_more : callable, optional
        Called with the map and a folder before anything appears in `out`: what it writes there,
        such as a page, appears with the rest.

    See Also
    --------
    hsreject.map_scene : takes it.

    Examples
    --------
    >>> import hsreject as hr
    >>> cube, labels = hr.synthetic_scene(rows=16, columns=16, n_bands=4)
    >>> model = hr.MapModel(hr.SceneClassifier("lda").fit(cube, labels), hr.PixelwiseRejector())
    >>> layers = hr.Layers(probabilities=True)
    >>> hr.map_scene(cube, model, hr.Goal(fraction=0.1), layers=layers).maps.probability.dims
    ('category', 'y', 'x')
    """

    flat: bool = False
    probabilities: bool = False
    write_more: Callable[[SceneMap, Path], object] | None = None


def map_scene(  # noqa: PLR0913 (each is a choice by itself)
    scene: xr.DataArray | str | PathLike[str],
    model: MapModel | str | PathLike[str],
    goal: Goal | Mapping[str, float] | Certificate | str | PathLike[str],
    *,
    out: str | PathLike[str] | None = None,
    sample: Sample | xr.DataArray | NDArray[Any] | str | PathLike[str] | None = None,
    reading: Reading | None = None,
    layers: Layers | None = None,
    resources: Resources | None = None,
    overwrite: bool = False,
    progress: ProgressCallback = no_progress,
) -> SceneMap:
    """Map a scene with a trained model; scenes larger than memory are mapped in blocks.

    Every pixel is read and classified once. The context of a block is solved with a halo around it
    (8 pixels per unit of context weight): at least 99.9 % of the labels are those of the whole
    scene solved at once (99 % where the spectra hardly separate the classes). Pixels unlike all
    training pixels (:class:`hsreject.Novelty`) are *unknown*: they are rejected in addition to what
    is asked for, with a confidence below all others. dask runs the blocks on threads, or on the
    cluster of the active `dask.distributed` client, whose workers must see scene and `out` under
    the same paths.

    Parameters
    ----------
    scene : DataArray (band, y, x) or path
        A file that :func:`hsreject.open_scene` opens, or a cube. A lazy cube keeps its chunks: they
        should hold all bands of a few thousand pixels.
    model : MapModel or path
        Of :func:`hsreject.train`.
    goal : Goal, mapping such as ``{"fraction": 0.1}``, Certificate, or path of a certificate
        How much is rejected (:class:`hsreject.Goal`). A `fraction` is one of the pixels that have
        data and are not unknown; the nearest that a threshold reaches is taken. The threshold of an
        `accuracy` or a `rejection_cost` is that of the `sample`; on the training scene itself, of
        its test pixels. A certificate of :func:`hsreject.certify` brings the threshold that it
        certified for exactly this map; for any other it is refused.
    out : path, optional
        A folder for `label.tif`, `label_with_rejection.tif`, `confidence.tif` and `flag.tif` (why a
        pixel has no label: 1 kept, 2 rejected, 3 unknown, 4 a group), with what
        :func:`hsreject.write_map` puts beside them, `map_filled.tif` (:func:`hsreject.filled_map`)
        and `summary.toml`; of a model with groups also `level_confidence.tif`, on which
        :func:`hsreject.certify` works. They appear together when all are complete. If the work is
        stopped, the same call continues from the finished blocks, which it keeps there.
    sample : Sample, array (y, x) of int, or path, optional
        A simple random sample of this scene with its classes, for an accuracy or a rejection cost.
    reading : Reading, optional
        How the scene is opened, and what is taken for granted of it.
    layers : Layers, optional
        Whether the map is flat, whether it holds probabilities, and what else is written with it.
    resources : Resources, optional
        Memory, blocks and workers.
    overwrite : bool
        Write into a folder that is not empty.
    progress : callable
        Called with (stage, done, total).

    See Also
    --------
    hsreject.train : makes the model.
    hsreject.load_model : reads it.
    hsreject.run : trains, maps and evaluates one scene.

    Examples
    --------
    >>> from hsreject import Goal, map_scene, synthetic_scene, train
    >>> model = train({"scene": {"name": "synthetic", "rows": 32, "columns": 32},
    ...                "features": [{"name": "pca", "n_components": 5}], "classifier": "lda"})
    >>> scene, _ = synthetic_scene(rows=32, columns=32)
    >>> summary = map_scene(scene[:, 8:], model, Goal(fraction=0.1)).summary
    >>> n_asked_for = summary.n_rejected - summary.n_unknown
    >>> round(n_asked_for / (summary.n_pixels - summary.n_unknown), 2)
    0.1
    """
    goal, certificate = asked_for(goal, sample)
    reading, layers, resources = reading or Reading(), layers or Layers(), resources or Resources()
    if out is not None:
        check_folder(Path(out), overwrite=overwrite)  # before the work, not after it
    trained = model if isinstance(model, MapModel) else open_map_model(model)
    is_file = isinstance(scene, str | PathLike)
    state = key_of_work(scene) if is_file else scene
    is_watched = is_file and key_of_work(scene) == state  # some servers name no version
    cube = reading.open(scene, "auto")
    record = ranking_dtype(trained, probabilities=layers.probabilities)
    blocks = cut_scene(cube, trained, record, resources)
    names = [
        shown(one) if isinstance(one, str | PathLike) else "in memory" for one in (scene, model)
    ]
    job = MapJob(
        cube,
        trained,
        goal,
        certificate,
        sample,
        blocks=blocks,
        record=record,
        reading=reading,
        flat=layers.flat,
        names=names,
    )
    with workers(blocks.n_workers) as in_memory:
        from_file = in_memory and not isinstance(scene, xr.DataArray)
        job = _prepare(job, partial(reading.open, scene), read_once=from_file)
        if out is None:
            return _finish(job, rank_scene(job, None, progress), progress)
        target = Path(out).absolute()
        options = (
            reading.variable,
            reading.band_axis,
            reading.match_bands,
            blocks.side,
            blocks.halo,
            record.descr,
        )
        with (
            unfinished_folder(target, key_of_work(model, state, options)) as folder_of_blocks,
            complete_folder(target, overwrite=overwrite) as folder,
        ):
            sizes = [path.stat().st_size for path in folder_of_blocks.glob("*.npy")]
            # blocks, maps as plain files and in the end, whose filled map has three bands
            maps = record.itemsize + 4 * record["label"].itemsize + 1
            check_space(target, cube[0].size * (record.itemsize + 2 * maps) - sum(sizes))
            job = replace(job, n_finished=len(sizes))
            result = _finish(job, rank_scene(job, folder_of_blocks, progress), progress)
            _write(result, folder, progress)
            if layers.write_more is not None:
                with dask.config.set(scheduler="threads"):
                    layers.write_more(result, folder)
            if is_watched and key_of_work(scene) != state:  # it is opened several times
                raise FileError(f"{shown(scene)} was changed while it was mapped. Map it again.")
    return replace(result, maps=_written(target, result.maps))


def open_map_model(path: str | PathLike[str]) -> MapModel:
    """Return the model in a file, or say that it cannot map."""
    model = load_model(path)
    if not isinstance(model, MapModel):
        raise InputError(
            f"{path} holds a classifier without a rejector. Make a map model with 'hsreject train'."
        )
    return model


def _prepare(job: MapJob, open_in: Callable[[Any], xr.DataArray], *, read_once: bool) -> MapJob:
    """Look at some pixels of a scene and decide whether it may be mapped as it is asked for."""
    blocks, model = job.blocks, job.model
    cube = open_in(dict(zip(schema.MAP_DIMS, blocks.pieces, strict=True)))
    is_small = 1.5 * cube.nbytes <= blocks.bytes_left  # not all that is freed returns
    in_memory = read_once and is_small and len(blocks.pieces[1]) > 1
    if in_memory:  # read once: to look at a few pixels of a tiled file, many are unpacked
        cube = cube.persist()
    similarity = None
    if model.training_scene is not None:
        windows = cube if in_memory else open_in(window_chunks((cube.shape[1], cube.shape[2])))
        similarity = model.training_scene.compare(
            windows, model.classifier, match_bands=job.reading.match_bands
        )
        similarity.check(job.reading.foreign)
    return check_evidence(replace(job, cube=cube, similarity=similarity))


def _finish(job: MapJob, ranking: Ranking, progress: ProgressCallback) -> SceneMap:
    """Reject what is asked for, and count."""
    with dask.config.set(scheduler="threads"):  # light, and reads files of this process
        rejection = rejection_of(job, ranking, progress)
        unknown = ranking.unknown
        if job.certificate and unknown is not None and job.certificate.map_id != ranking.id:
            # of a map whose unknown pixels were not rejected beforehand: the promise is about the
            # pixels that it keeps, no more and no fewer
            kept_pixels = ranking.coarsest >= rejection.threshold
            ranking = replace(ranking, unknown=unknown & ~kept_pixels)
        attrs = {rejection.asked: rejection.value, "threshold_source": rejection.source}
        if job.flat:
            ranking = ranking.flat()
        maps = ranking.at(rejection.threshold, attrs=attrs)
        if not maps.attrs["n_pixels"]:
            raise InputError(
                "No pixel of the scene has data in every band that the model needs, so there is "
                "nothing to map. Check its nodata value, and mark bands without data as bad."
            )
        more = {"second": ranking.second, "probability": ranking.probability}
        if ranking.tree is not None:
            more[schema.LEVEL_CONFIDENCE] = ranking.confidence
        maps = maps.assign({name: one for name, one in more.items() if one is not None})
        if rejection.assumption:
            maps.attrs["assumption"] = rejection.assumption
            for name in FILES:
                maps[name].attrs["comment"] = rejection.assumption
        classes, groups = shares_of(maps)
        n_unknown = int(maps["unknown"].sum()) if "unknown" in maps else None
    summary = MapSummary(
        replace(rejection, threshold=maps.attrs["threshold"]),
        classes,
        groups,
        n_without_data=maps["label"].size - maps.attrs["n_pixels"],
        n_unknown=n_unknown,
        pixel_hectares=PixelGrid.of(maps["label"]).pixel_hectares,
        scene=job.names[0],
        model=job.names[1],
        similarity=job.similarity,
        blocks=job.blocks,
        n_continued=job.n_finished,
    )
    return SceneMap(maps, summary)


def _write(result: SceneMap, folder: Path, progress: ProgressCallback) -> None:
    """Write everything that a map leaves on disk into a folder that appears when it is complete."""
    summary, maps, rejection = result.summary, result.maps, result.summary.rejection
    source = Provenance(
        Path(summary.scene).name,
        Path(summary.model).name,
        f"{rejection.asked} = {rejection.value:g}",
        rejection.assumption or f"threshold {rejection.source}",
    )
    filled = filled_map(
        maps["label"],
        maps["rejected"],
        unknown=maps.get("unknown"),
        group=maps["flag"] == GROUP_FLAG if summary.groups else None,
        second=maps["second"],
    )
    targets: dict[str | PathLike[str], xr.DataArray | Raster] = {
        folder / f"{name}.tif": maps[name] for name in FILES
    }
    targets[folder / FILLED] = filled_raster(filled)
    fields = {name: maps[name] for name in FIELD_FILES if name in maps}
    if schema.LEVEL_CONFIDENCE in fields:
        fields[schema.LEVEL_CONFIDENCE] = levels_as_field(fields[schema.LEVEL_CONFIDENCE])
    targets |= {folder / FIELD_FILES[name]: field for name, field in fields.items()}
    with dask.config.set(scheduler="threads"):
        write_maps(targets, tags=source.tags(maps[schema.LABEL_WITH_REJECTION]), progress=progress)
    (folder / SUMMARY_FILE).write_text(summary.to_toml(), encoding="utf-8")
    files = {"map": f"{schema.LABEL_WITH_REJECTION}.tif", "filled": FILLED, "summary": SUMMARY_FILE}
    written = open_map(folder / files["map"], chunks="auto")
    write_map_item(folder, written, source, files)


def _written(folder: Path, maps: xr.Dataset) -> xr.Dataset:
    """Return the maps as they are on disk, lazily."""
    layers = {name: open_map(folder / f"{name}.tif", chunks="auto") for name in FILES}
    layers["rejected"] = (layers[schema.LABEL_WITH_REJECTION] == schema.REJECTED).drop_attrs()
    if "unknown" in maps:
        layers["unknown"] = (layers["flag"] == UNKNOWN_FLAG).drop_attrs()
    layers["second"] = open_filled_map(folder / FILLED, chunks="auto")["second"]
    for name in set(FIELD_FILES) & set(maps):
        # a file has bands and their names; which classes or levels these are, the maps know
        bands = open_map(folder / FIELD_FILES[name], chunks="auto").drop_attrs()
        bands = bands.drop_vars((schema.CATEGORY, schema.CLASS_NAME))
        dim = str(maps[name].dims[0])
        along = {key: one for key, one in maps[name].coords.items() if one.dims == (dim,)}
        field = bands.rename({schema.CATEGORY: dim}).assign_coords(along)
        layers[name] = field.assign_attrs(maps[name].attrs)
    return xr.Dataset(layers, attrs=maps.attrs)
