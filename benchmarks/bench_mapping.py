"""Mapping in blocks: agreement with the whole scene, the bound of memory, time by pixels."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import rasterio
import xarray as xr
from affine import Affine

import hsreject as hr
from benchmarks.timing import Row, peak_bytes

BOUND = 800_000_000
CONFIG = {
    "scene": "indian_pines",
    "features": [{"name": "mnf", "n_components": 15}],
    "context": {"prior": "vector_tv", "weight": 2.0},
}


def rows() -> Iterator[Row]:
    """Yield agreement by weight, then peak memory and time of scenes of growing size."""
    yield from _agreement()
    model = hr.train(CONFIG)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hr.save_model(model, folder / "model.skops")
        hr.map_scene(_mosaic(1), model, fraction=0.1)  # compiles what is not compiled yet
        for n_tiles in (3, 6):
            scene = _write_mosaic(folder / f"{n_tiles}.tif", n_tiles)
            start = time.perf_counter()
            hr.map_scene(scene, model, out=folder / str(n_tiles), fraction=0.1, n_workers=1)
            seconds = time.perf_counter() - start
            pixels = (145 * n_tiles) ** 2
            yield Row(
                f"{145 * n_tiles} x {145 * n_tiles} pixels, one worker",
                f"{seconds:.1f} s, {1e6 * seconds / pixels:.1f} us per pixel",
                "the same time per pixel",
            )
        scene = _write_mosaic(folder / "large.tif", 10)
        code = (
            "from hsreject.mapping.map_scene import map_scene\n"
            f"map_scene({str(scene)!r}, {str(folder / 'model.skops')!r}, fraction=0.1, "
            f"out={str(folder / 'large')!r}, memory={BOUND})"
        )
        start = time.perf_counter()
        peak = peak_bytes(code)
        seconds = time.perf_counter() - start
        yield Row(
            f"1450 x 1450 pixels, {scene.stat().st_size / 1e6:.0f} MB file, from start to end",
            f"peak {peak / 1e6:.0f} MB, {seconds:.0f} s",
            f"at most {BOUND / 1e6:.0f} MB",
        )


def _agreement() -> Iterator[Row]:
    """Yield how many labels of blocks are those of Indian Pines, mirrored, solved at once."""
    scene = _mosaic(2)
    for weight, edges in ((1.0, None), (2.0, None), (4.0, None), (4.0, "image")):
        context = {"prior": "vector_tv", "weight": weight}
        if edges is not None:
            context["edges"] = edges
        model = hr.train({**CONFIG, "context": context})
        maps = xr.Dataset({"probability": model.classifier.predict_proba(scene), "image": scene})
        whole = model.rejector.rank(maps)["label"]
        made = hr.map_scene(scene, model, fraction=0.1, block_size=97)
        same = float((made.maps["label"].values == whole.values).mean())
        yield Row(
            f"{made.summary.n_blocks} blocks of 97 pixels, weight {weight:g}"
            f"{', image edges' if edges else ''}, halo {made.summary.halo}",
            f"{100 * same:.3f} % of the labels of the whole scene",
            "at least 99.9 %",
        )


def _mosaic(n_tiles: int) -> xr.DataArray:
    """Return Indian Pines mirrored to `n_tiles` in each direction."""
    cube, _ = hr.load_indian_pines()
    tiled = np.stack([_mirrored(plane, n_tiles) for plane in cube.values])
    coords = {name: coord for name, coord in cube.coords.items() if coord.dims == ("band",)}
    return xr.DataArray(tiled, dims=("band", "y", "x"), coords=coords)


def _write_mosaic(path: Path, n_tiles: int) -> Path:
    """Write the mosaic to a GeoTIFF, band by band."""
    cube, _ = hr.load_indian_pines()
    side = 145 * n_tiles
    profile = {"driver": "GTiff", "count": len(cube), "height": side, "width": side}
    profile |= {"dtype": cube.dtype.name, "tiled": True, "blockxsize": 256, "blockysize": 256}
    profile |= {"crs": "EPSG:32616", "transform": Affine(20, 0, 5e5, 0, -20, 4.5e6)}
    with rasterio.open(path, "w", interleave="band", **profile) as file:
        for band, wavelength in enumerate(cube.wavelength.values, start=1):
            file.write(_mirrored(cube.values[band - 1], n_tiles), band)
            file.update_tags(band, wavelength=f"{wavelength:.4f}", wavelength_units="nm")
    return path


def _mirrored(plane: np.ndarray, n_tiles: int) -> np.ndarray:
    row = np.concatenate([plane[:, :: 1 - 2 * (i % 2)] for i in range(n_tiles)], axis=1)
    return np.concatenate([row[:: 1 - 2 * (i % 2)] for i in range(n_tiles)], axis=0)
