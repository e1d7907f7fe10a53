"""A configuration whose scene has a larger sister with the same classes and spectra."""

from typing import Any

import numpy as np
import xarray as xr

import hsreject as hr

CONFIG: dict[str, Any] = {
    "title": "Small",
    "scene": {"name": "synthetic", "rows": 64, "columns": 64, "n_bands": 12, "noise": 0.4},
    "sampling": {"name": "per_class", "n_per_class": 15},
    "features": [{"name": "pca", "n_components": 4}],
    "classifier": "lda",
    "context": {"prior": "vector_tv", "weight": 1.0},
}


def larger_scene(rows: int, columns: int, *, noise: float = 0.01) -> xr.DataArray:
    """Return the scene of `CONFIG` mirrored and repeated to a size, with fresh noise."""
    small, _ = hr.synthetic_scene(rows=64, columns=64, n_bands=12, noise=0.4)
    reach = {"y": (0, rows), "x": (0, columns)}
    tiled = small.pad(reach, mode="symmetric").isel(y=slice(rows), x=slice(columns))
    values = np.array(tiled.values)
    values += np.random.default_rng(5).normal(0, noise, values.shape).astype(np.float32)
    corner = {"y": small.y[0].item(), "x": small.x[0].item()}
    place = {
        "y": corner["y"] - 30.0 * np.arange(rows),
        "x": corner["x"] + 30.0 * np.arange(columns),
    }
    bands = {name: coord for name, coord in small.coords.items() if coord.dims == ("band",)}
    cube = xr.DataArray(values, dims=("band", "y", "x"), coords={**place, **bands})
    return cube.rio.write_crs("EPSG:32633")
