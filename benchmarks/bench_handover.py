"""Hand-over: polygons, sieve and points to label of a map of 10,000 x 10,000 pixels."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import rasterio
from scipy.ndimage import gaussian_filter

from benchmarks.timing import Row, peak_bytes

MINUTES = 6
SIDE, CLASSES, PATCH = 10_000, 6, 10.0  # pixels, classes, smoothness of the patches in pixels
SPECKS = 0.01  # share of pixels of another class, in the map that is sieved
WANTED = "120 s, 2 GB"


def rows() -> Iterator[Row]:
    """Yield seconds (wall and CPU) and peak memory of commands, each in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for specks in (0.0, SPECKS):
            write_map(folder / f"map{specks:g}.tif", specks)
        commands = {
            "polygons of smooth patches": f"polygons map0.tif --out {folder}/plain.gpkg",
            "polygons and sieve of 12 pixels, 1 % specks": (
                f"polygons map{SPECKS:g}.tif --out {folder}/sieved.gpkg --minimum-area 12px "
                f"--sieved {folder}/sieved.tif"
            ),
            "next": f"next map0.tif --out {folder}/points.gpkg",
        }
        for what, command in commands.items():
            arguments = command.replace("map0", f"{folder}/map0").split()
            code = f"from hsreject.cli import main\nimport sys\nsys.argv[1:] = {arguments!r}\n"
            code += "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
            wall, cpu = time.perf_counter(), _children()
            peak = peak_bytes(code)
            wall, cpu = time.perf_counter() - wall, _children() - cpu
            yield Row(what, f"{wall:.0f} s, CPU {cpu:.0f} s, {peak / 1e9:.2f} GB", WANTED)


def write_map(path: Path, specks: float) -> None:
    """Write a map of smooth patches, rejected between them, some pixels being specks."""
    block = 1000
    profile = {"driver": "GTiff", "count": 1, "dtype": "uint8", "nodata": 255, "tiled": True,
               "compress": "deflate", "width": SIDE, "height": SIDE, "crs": "EPSG:32633",
               "transform": rasterio.Affine(10, 0, 4e5, 0, -10, 5e6)}  # fmt: skip
    with rasterio.open(path, "w", **profile) as file:
        for row in range(0, SIDE, block):
            for column in range(0, SIDE, block):
                rng = np.random.default_rng([row, column])
                noise = rng.normal(size=(CLASSES, block, block)).astype(np.float32)
                fields = gaussian_filter(noise, (0, PATCH, PATCH), mode="wrap")
                order = np.sort(fields, axis=0)
                label = fields.argmax(axis=0).astype(np.uint8) + 1
                label[order[-1] - order[-2] < 0.1 * fields.std()] = 0
                speck = rng.random(label.shape) < specks
                label[speck] = rng.integers(1, CLASSES + 1, int(speck.sum()))
                file.write(label, 1, window=((row, row + block), (column, column + block)))


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
