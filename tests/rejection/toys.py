"""Toy rankings whose decisions are pinned: 60 pixels each, made by arithmetic."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

import hsreject as hr
from hsreject import schema

SHAPE = (5, 12)
TREE = hr.ClassTree.from_groups(["oak", "pine", "lake"], {"forest": ["oak", "pine"]})


def as_map(values: np.ndarray, **attrs: object) -> xr.DataArray:
    return xr.DataArray(values.reshape(SHAPE), dims=schema.MAP_DIMS, attrs=attrs)


def toy_rankings() -> Iterator[tuple[str, xr.Dataset, xr.DataArray]]:
    """Return names, rankings as Datasets, and their reference, 0 where there is none."""
    n = 60
    rank = np.arange(n) * 37 % n  # every rank once
    confidence = ((rank + 1) / (n + 4)).astype(np.float32)
    truth = (np.arange(n) * 7 % 3 + 1).astype(np.uint8)
    doubtful = rank * 23 % n / n < 0.8 * (1 - rank / n)
    label = np.where(doubtful, truth % 3 + 1, truth).astype(np.uint8)
    label[[0, 31]], confidence[[0, 31]] = 255, np.nan
    reference = np.where(np.arange(n) % 7 == 3, 0, truth).astype(np.uint8)
    table = TREE.classes.to_attrs()

    def ranking(label: np.ndarray, confidence: np.ndarray, **more: xr.DataArray) -> xr.Dataset:
        maps = {"label": as_map(label, **table), "confidence": as_map(confidence)}
        return xr.Dataset(maps | more)

    known = as_map(reference)
    missing = label == 255
    wrong = np.where(missing, label, truth % 3 + 1).astype(np.uint8)
    right = np.where(missing, label, truth).astype(np.uint8)
    alike = np.where(missing, np.nan, np.ceil(rank / 8) / 8).astype(np.float32)
    unknown = (np.arange(n) % 9 == 4) & ~missing
    few = np.where(np.arange(n) % 4 == 1, reference, 0)
    upper = np.where(label < 3, np.sqrt(confidence), confidence).astype(np.float32)
    levels = xr.DataArray(
        np.stack([confidence, upper]).reshape(2, *SHAPE), dims=schema.LEVEL_DIMS
    ).assign_attrs(TREE.to_attrs())
    no_fewer = np.where(rank < 50, wrong, right)  # what is right would do, but is too little
    yield "plain", ranking(label, confidence), known
    yield "ties", ranking(label, alike), known
    yield "unknown", ranking(label, confidence, unknown=as_map(unknown)), known
    yield "groups", ranking(label, upper, level_confidence=levels), known
    yield (
        "groups and unknown",
        ranking(label, upper, level_confidence=levels, unknown=as_map(unknown)),
        known,
    )
    yield "nothing right", ranking(wrong, confidence), known
    yield "nothing wrong", ranking(right, confidence), known
    yield "out of reach", ranking(no_fewer, confidence), known
    yield "few pixels", ranking(label, confidence), as_map(few)
    yield "all equal", ranking(label, np.where(missing, np.nan, 0.5).astype(np.float32)), known
    planes = [np.where(rank < 12 * k, truth, label).astype(np.uint8) for k in range(5)]
    planes = [np.where(missing, 255, plane).astype(np.uint8) for plane in planes]
    rejected = [(rank < 14 * k) & ~missing for k in range(5)]
    stack = xr.Dataset(
        {
            "label": xr.concat([as_map(p, **table) for p in planes], schema.OPERATING_POINT),
            "confidence": xr.concat([as_map(confidence)] * 5, schema.OPERATING_POINT),
            "rejected": xr.concat([as_map(g) for g in rejected], schema.OPERATING_POINT),
        }
    )
    yield "stack", stack, known
    yield "stack and unknown", stack.assign(unknown=as_map(unknown)), known
