"""Mapping in blocks: the labels of the whole scene, CPU by file layout, two workers, memory."""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dask
import h5py
import numpy as np
import rasterio
import xarray as xr
from affine import Affine
from distributed import Client, LocalCluster
from rasterio.windows import Window

import hsreject as hr
from benchmarks.timing import Row, best_in_turns, peak_bytes
from hsreject.errors import GuessWarning
from hsreject.features.chains import Projection
from hsreject.features.pixels import PIXELS_AT_ONCE
from hsreject.files import check_space
from hsreject.handover.filled_map import second_choice
from hsreject.rejection.novelty import p_value_of

MINUTES = 10
SIDE = 1000  # rows and columns of the scenes whose layouts are compared
GRANULE = (1280, 1242, 285)  # rows, columns and bands of EMIT
NETCDF_CHUNKS = (167, 167, 34)  # rows, columns, bands: what netCDF-C chooses by itself
CONFIG = {
    "scene": "indian_pines",
    "features": [{"name": "mnf", "n_components": 15}],
    "context": {"prior": "vector_tv", "weight": 2.0},
}
RASTERS: dict[str, dict[str, Any]] = {
    "ENVI BIL": {"driver": "ENVI", "interleave": "bil"},
    "ENVI BSQ": {"driver": "ENVI", "interleave": "bsq"},
    "striped GeoTIFF": {"driver": "GTiff"},
    "tiled, deflated GeoTIFF": {
        "driver": "GTiff",
        "tiled": True,
        "blockxsize": 256,
        "blockysize": 256,
        "compress": "deflate",
    },
}
ROWS_AT_ONCE = 16  # of files without tiles, when they are read the plainest way


def rows() -> Iterator[Row]:
    """Yield agreement by weight, CPU per pixel by layout, the gain of a second worker, memory."""
    warnings.simplefilter("ignore", GuessWarning)  # the files do not say their wavelengths
    yield from _agreement()
    model = hr.train(CONFIG)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        check_space(folder, 3_000_000_000)
        yield from _layouts(model, folder)
        yield from _two_workers(model, folder)
        yield _memory(folder)


def _agreement() -> Iterator[Row]:
    """Yield how many labels of blocks are those of Indian Pines, mirrored, solved at once."""
    scene = _mosaic(290, 290)
    for weight, edges in ((1.0, None), (2.0, None), (4.0, None), (4.0, "image")):
        context = {"prior": "vector_tv", "weight": weight}
        if edges is not None:
            context["edges"] = edges
        model = hr.train({**CONFIG, "context": context})
        whole = _in_memory(model, scene).label
        mapped = hr.map_scene(
            scene, model, hr.Goal(fraction=0.1), resources=hr.Resources(block_size=97)
        )
        same = float((mapped.maps["label"].values == whole.values).mean())
        yield Row(
            f"{len(mapped.summary.blocks)} blocks of 97 pixels, weight {weight:g}"
            f"{', image edges' if edges else ''}, halo {mapped.summary.blocks.halo}",
            f"{100 * same:.3f} % of the labels of the whole scene",
            "at least 99.9 %",
        )


def _layouts(model: hr.MapModel, folder: Path) -> Iterator[Row]:
    """Yield CPU per pixel over that of the same stages in memory and the plainest read."""
    cube = _mosaic(SIDE, SIDE)
    for layout, options in RASTERS.items():
        path = folder / ("scene.tif" if options["driver"] == "GTiff" else "scene.dat")
        _write_raster(path, cube, options)
        yield from _ratio(layout, model, cube, path, partial(_read_raster, path))
        path.unlink()
    path = folder / "scene.nc"
    cube = cube.astype("float32")
    _write_netcdf(path, cube)
    yield from _ratio("NetCDF of EMIT, deflated", model, cube, path, partial(_read_netcdf, path))
    path.unlink()


def _ratio(
    layout: str, model: hr.MapModel, cube: xr.DataArray, path: Path, read: Callable[[], None]
) -> list[Row]:
    """Return a map of a file beside its stages, beside its arithmetic, and beside no novelty."""
    calls = {
        "arithmetic": partial(_arithmetic, model, cube),
        "stages": partial(_in_memory, model, cube),
        "read": read,
        "map": partial(_map, path, model, n_workers=1),
        "known": partial(_map, path, replace(model, training_scene=None), n_workers=1),
    }
    seconds = best_in_turns(calls, rounds=5, clock=time.process_time)
    arithmetic, stages, plain, mapped, known = (
        1e6 * second / cube[0].size for second in seconds.values()
    )
    return [
        Row(
            f"{layout}: {mapped:.2f} us CPU per pixel, {stages:.2f} for the stages in memory, "
            f"{plain:.2f} to read",
            f"{mapped / (stages + plain):.2f} times both",
            "at most 1.3",
        ),
        Row(
            f"{layout}: the arithmetic in single precision, {arithmetic:.2f} us",
            f"{mapped / (arithmetic + plain):.2f} times that and the read",
            "at most 2",
        ),
        Row(
            f"{layout}: without novelty, {known:.2f} us",
            f"{mapped / known:.2f} times that",
            "at most 1.4",
        ),
    ]


def _two_workers(model: hr.MapModel, folder: Path) -> Iterator[Row]:
    """Yield how much quicker two threads are than one, and two processes than one."""
    path = folder / "scene.tif"
    _write_raster(path, _mosaic(2 * SIDE, 2 * SIDE), RASTERS["tiled, deflated GeoTIFF"])
    calls = {n: partial(_map, path, model, n_workers=int(n)) for n in "12"}
    yield _gain("two threads", calls)
    with _cluster(1) as one, _cluster(2) as two:
        calls = {"1": partial(_map_on, one, path, model), "2": partial(_map_on, two, path, model)}
        yield _gain("two workers of dask.distributed, set up as the guide says", calls)
    path.unlink()


def _gain(who: str, calls: dict[str, Callable[[], None]]) -> Row:
    best = best_in_turns(calls, rounds=4)
    seconds = " and ".join(f"{second:.1f} s" for second in best.values())
    return Row(f"one and {who}: {seconds}", f"{best['1'] / best['2']:.2f} times", "at least 1.7")


def _memory(folder: Path) -> Row:
    """Return the peak memory of a process that maps a scene of the size of an EMIT granule."""
    n_rows, n_columns, n_bands = GRANULE
    small, labels = hr.synthetic_scene(rows=145, columns=145, n_classes=16, n_bands=n_bands)
    path, model = folder / "granule.dat", folder / "model.skops"
    hr.save_model(hr.train({**CONFIG, "scene": (small, labels)}), model)
    _write_raster(path, _mosaic(n_rows, n_columns, small), RASTERS["ENVI BIL"])
    code = (
        "from hsreject import Goal, map_scene\n"
        f"map_scene({str(path)!r}, {str(model)!r}, Goal(fraction=0.1), "
        f"out={str(folder / 'out')!r})"
    )
    return Row(
        f"{n_rows} x {n_columns} pixels, {n_bands} bands, {path.stat().st_size / 1e6:.0f} MB",
        f"peak {peak_bytes(code) / 1e6:.0f} MB",
        "under 1000 MB",
    )


# What is measured.


def _in_memory(model: hr.MapModel, cube: xr.DataArray) -> hr.Ranking:
    """Classify a scene, look for novelty and solve the context in one go."""
    maps = {
        "probability": model.classifier.predict_proba(cube),
        "p_value": model.novelty.p_value(cube, shift=(0, 0)),
        "image": cube,
    }
    return model.rejector.rank(xr.Dataset(maps))


def _arithmetic(model: hr.MapModel, cube: xr.DataArray) -> None:
    """Compute a map as plain arithmetic, in one process and single precision, without its checks.

    Projections of all chains are one product, distances to training pixels are taken for all of
    them, the classifier has its features, the context is solved once on the whole scene.
    """
    classifier, novelty = model.classifier, model.novelty
    chains = {"classifier": classifier.features_, **novelty.chains_}
    projections = Projection.of({name: chains[name] for name in chains if name != "normalized"})
    bands = novelty.chains_["raw"][0].bands_used_
    spectra = cube.values.reshape(len(cube), -1)
    probability = np.empty((len(model.classes), spectra.shape[1]), dtype=np.float32)
    score = np.empty(spectra.shape[1], dtype=np.float32)
    for start in range(0, spectra.shape[1], PIXELS_AT_ONCE):
        part = slice(start, start + PIXELS_AT_ONCE)
        of_chain = {
            name: features
            for project in projections
            for name, features in project(spectra[bands, part].T).items()
        }
        probability[:, part] = classifier.classifier_.predict_proba(of_chain["classifier"].T).T
        scores = [novelty.spaces_[name].score(of_chain[name]) for name in ("mnf", "raw")]
        score[part] = np.maximum(*scores)
    field = xr.DataArray(
        probability.reshape(-1, *cube.shape[1:]),
        dims=("category", "y", "x"),
        coords={"category": list(model.classes.values)},
    )
    p_value = xr.DataArray(p_value_of(score.reshape(cube.shape[1:])), dims=("y", "x"))
    maps = model.rejector.rank(
        xr.Dataset({"probability": field, "p_value": p_value, "image": cube})
    )
    values = np.moveaxis(field.values, 0, -1)
    second_choice(maps.label.values, values, np.array(model.classes.values))


def _map(path: Path, model: hr.MapModel, *, n_workers: int | None = None) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as out:
        hr.map_scene(
            path,
            model,
            hr.Goal(fraction=0.1),
            out=Path(out, "maps"),
            resources=hr.Resources(n_workers=n_workers),
        )


def _map_on(cluster: LocalCluster, path: Path, model: hr.MapModel) -> None:
    with Client(cluster):
        _map(path, model)


def _read_raster(path: Path) -> None:
    """Read all pixels along the grain of a file."""
    with rasterio.open(path) as file:
        n_rows, n_columns = file.block_shapes[0]
        n_rows = max(n_rows, ROWS_AT_ONCE)
        for row in range(0, file.height, n_rows):
            for column in range(0, file.width, n_columns):
                whole = Window(0, 0, file.width, file.height)
                file.read(window=Window(column, row, n_columns, n_rows).intersection(whole))


def _read_netcdf(path: Path) -> None:
    with h5py.File(path) as file:
        cube = file["reflectance"]
        for row in range(0, SIDE, NETCDF_CHUNKS[0]):
            for column in range(0, SIDE, NETCDF_CHUNKS[1]):
                cube[row : row + NETCDF_CHUNKS[0], column : column + NETCDF_CHUNKS[1]]


# Scenes.


def _mosaic(n_rows: int, n_columns: int, small: xr.DataArray | None = None) -> xr.DataArray:
    """Return a scene, by default Indian Pines, mirrored again and again to a size."""
    if small is None:
        small, _ = hr.load_indian_pines()
    _, height, width = small.shape
    reach = ((0, 0), (0, n_rows - height), (0, n_columns - width))
    coords = {name: coord for name, coord in small.coords.items() if coord.dims == ("band",)}
    values = np.pad(small.values, reach, mode="symmetric")
    return xr.DataArray(values, dims=("band", "y", "x"), coords=coords)


def _write_raster(path: Path, cube: xr.DataArray, options: dict[str, Any]) -> None:
    count, height, width = cube.shape
    profile = {"count": count, "height": height, "width": width, "dtype": cube.dtype.name}
    place = {"crs": "EPSG:32616", "transform": Affine(20, 0, 5e5, 0, -20, 4.5e6)}
    with rasterio.open(path, "w", **profile, **place, **options) as file:
        file.write(cube.values)


def _write_netcdf(path: Path, cube: xr.DataArray) -> None:
    with h5py.File(path, "w") as file:
        options = {"chunks": NETCDF_CHUNKS, "compression": "gzip", "compression_opts": 1}
        file.create_dataset("reflectance", data=cube.values.transpose(1, 2, 0), **options)
        file.create_group("sensor_band_parameters")
        file.create_group("location")


@contextmanager
def _cluster(n_workers: int) -> Iterator[LocalCluster]:
    """Give a cluster whose workers keep freed memory and are not watched, as the guide says."""
    environment = {"MALLOC_TRIM_THRESHOLD_": str(2**28), "MALLOC_MMAP_THRESHOLD_": str(2**25)}
    unwatched = {
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "500ms",
    }
    with (
        patch.dict(os.environ, environment),
        dask.config.set(unwatched),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        ) as cluster,
    ):
        yield cluster
