"""Files: the first 256 rows of an EMIT-like scene against a bare read of the same bytes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import xarray as xr

import hsreject as hr
from benchmarks.timing import Row

MINUTES = 1
SHAPE = (512, 1242, 285)  # rows, columns, bands: less than half of a granule
ROWS = 256


def rows() -> Iterator[Row]:
    """Yield times of reading 256 rows, wall and CPU, of a file in one piece and one in chunks."""
    with tempfile.TemporaryDirectory() as folder:
        layouts = (
            ("in one piece", None, {"y": 13}),
            ("in chunks", (32, 32, SHAPE[2]), {"y": 256, "x": 64}),
        )
        for name, chunks, pieces in layouts:
            path = _write(Path(folder, "emit.nc"), chunks)
            cube = hr.open_scene(path, chunks={"y": ROWS}).data
            ways = {
                "bare h5py": lambda path=path: _bare(path),
                "open_scene(chunks='auto')": lambda path=path: (
                    hr.open_scene(path, chunks="auto")[:, :ROWS].values
                ),
                "open_scene(chunks={'y': 256})": lambda cube=cube: cube[:, :ROWS].compute(),
                "in pieces, as mapping reads them": lambda path=path, pieces=pieces: _in_pieces(
                    path, pieces
                ),
                "engine='hsreject'": lambda path=path: (
                    xr.open_dataarray(path, engine="hsreject")[:, :ROWS].values
                ),
            }
            for way, read in ways.items():
                bound = "about the bare read, and one pass over memory" if way[:4] != "bare" else ""
                yield Row(f"{name}, {way}", _best(read), bound)


def _write(path: Path, chunks: tuple[int, int, int] | None) -> Path:
    with h5py.File(path, "w") as file:
        data = file.create_dataset("reflectance", SHAPE, "float32", chunks=chunks)
        data.attrs["_FillValue"] = np.float32(-9999)
        for start in range(0, SHAPE[0], 64):
            data[start : start + 64] = np.random.default_rng(start).random(
                (64, *SHAPE[1:]), dtype=np.float32
            )
        file["sensor_band_parameters/wavelengths"] = np.linspace(381, 2493, SHAPE[2])
        file.create_group("location")
    return path


def _bare(path: Path) -> object:
    with h5py.File(path) as file:
        return file["reflectance"][:ROWS]


def _in_pieces(path: Path, pieces: dict[str, int]) -> object:
    """Read a piece at a time, and look at one value of each only."""
    cube = hr.open_scene(path, chunks=pieces)[:, : ROWS // pieces["y"] * pieces["y"]].data
    return cube.map_blocks(lambda part: part[:1, :1, :1], chunks=(1, 1, 1)).compute()


def _best(function: Callable[[], object], repeat: int = 4) -> str:
    """Return the shortest wall and CPU time of some calls."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter(), time.process_time()
        function()
        times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    wall, processor = (min(column) for column in zip(*times, strict=True))
    return f"{wall:.2f} s, {processor:.2f} s of CPU"
