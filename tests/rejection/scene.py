"""A small scene with regions, noise, nodata and a split of its reference pixels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

import hsreject as hr
from hsreject import schema

CONTEXT = hr.SegSALSA(hr.VectorTV(weight=0.3))  # weak, so that a small scene is not all one region


@dataclass(frozen=True)
class Scene:
    probability: xr.DataArray
    reference: xr.DataArray
    training: xr.DataArray
    calibration: xr.DataArray
    test: xr.DataArray


def make_scene(*, shape: tuple[int, int] = (14, 15)) -> Scene:
    """Return three vertical stripes seen through noisy class scores; a corner has no data."""
    rng = np.random.default_rng(0)
    reference = np.repeat([1, 2, 3], shape[1] // 3)[None, :].repeat(shape[0], axis=0)
    score = 1.3 * rng.normal(size=(3, *shape))
    score += 1.5 * (np.arange(1, 4)[:, None, None] == reference)
    probability = np.exp(score) / np.exp(score).sum(axis=0)
    probability[:, :3, :2] = np.nan
    coords = {"y": 100.0 - 2 * np.arange(shape[0]), "x": 2.0 * np.arange(shape[1])}
    table = hr.ClassTable.from_names(["soil", "water", "wood"], values=[2, 5, 9])
    field = xr.DataArray(
        probability.astype(np.float32),
        dims=schema.FIELD_DIMS,
        coords={"category": [2, 5, 9], **coords},
        name="probability",
    )
    labels = xr.DataArray(
        np.array([0, 2, 5, 9], dtype=np.uint8)[reference], dims=schema.MAP_DIMS, coords=coords
    )
    part = rng.integers(0, 6, shape)  # 0 training, 1 to 2 calibration, the others test
    return Scene(
        schema.attach_classes(field, table),
        labels,
        labels.where(part == 0, 0),
        labels.where((part == 1) | (part == 2), 0),
        labels.where(part > 2, 0),
    )


def with_p_value(scene: Scene, p_value: np.ndarray | float) -> xr.Dataset:
    """Return the probabilities of a scene and a p-value (y, x)."""
    like = xr.zeros_like(scene.reference, dtype=np.float64).drop_attrs()
    data = np.broadcast_to(p_value, like.shape)
    return xr.Dataset({"probability": scene.probability, "p_value": like.copy(data=data.copy())})


SMALL = make_scene()
LARGE = make_scene(shape=(30, 33))
