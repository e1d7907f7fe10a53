"""Maps with known truth, and samples of them."""

import numpy as np
import xarray as xr

import hsreject as hr
from hsreject import schema

NAMES = ("corn", "bare soil", "water")


def ranked_map(
    rows: int = 80, columns: int = 100, *, seed: int = 0, steepness: float = 1.5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return label, confidence and truth (y, x) of a map that errs less where it is surer."""
    rng = np.random.default_rng(seed)
    confidence = rng.uniform(size=(rows, columns))
    wrong = rng.uniform(size=confidence.shape) < 0.6 * (1 - confidence) ** steepness
    truth = rng.integers(1, 4, size=confidence.shape)
    return np.where(wrong, truth % 3 + 1, truth), confidence, truth


def placed(values: np.ndarray, *, names: tuple[str, ...] = ("corn", "bare soil", "water")):
    """Return a label map with names, 30 m pixels and a place in UTM zone 33."""
    rows, columns = values.shape
    place = {"y": 5e6 - 30.0 * np.arange(rows), "x": 4e5 + 30.0 * np.arange(columns)}
    label = xr.DataArray(values.astype(np.uint8), dims=("y", "x"), coords=place)
    table = hr.ClassTable.from_names(names)
    return hr.schema.attach_classes(label, table).rio.write_crs("EPSG:32633")


def kept_error(
    certificate: hr.Certificate, label: np.ndarray, confidence: np.ndarray, truth: np.ndarray
) -> float:
    """Return the true share of wrong pixels among those that a certificate keeps."""
    if certificate.threshold is None:
        return 0.0
    kept = confidence >= certificate.threshold
    return float((label != truth)[kept].mean())


def labelled_to_the_end(
    label: np.ndarray, confidence: np.ndarray, truth: np.ndarray, n: int, *, batch: int = 50, **plan
) -> hr.Sample:
    """Label a sequential design until it has ended or used up its labels."""
    exclude = plan.get("exclude")
    sample = hr.draw_sample(label, n, design="sequential", confidence=confidence, **plan)
    size = 0
    while len(sample) > size:
        size, known = len(sample), sample.with_reference(truth)
        sample = hr.more_points(label, confidence, known, batch, exclude=exclude)
    return sample


# Maps that version 0.3 made certificates and samples of: by arithmetic, as random streams change.


def plain_scene() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return label, confidence and truth (y, x) of a map that errs where it is less certain."""
    n = 2400
    rank = np.arange(n) * 1009 % n
    truth = rank * 7 // 13 % 3 + 1
    wrong = rank * 577 % n / n < 0.6 * (1 - rank / n) ** 2
    label = np.where(wrong, truth % 3 + 1, truth)
    return tuple(one.reshape(40, 60) for one in (label, (rank + 0.5) / n, truth))


def field_scene() -> tuple[xr.DataArray, xr.DataArray, np.ndarray, np.ndarray]:
    """Return label, confidence, truth and excluded pixels of a map with ties, holes and a place."""
    label, confidence, truth = plain_scene()
    label[:4], label[4:7] = 255, 0
    place = {"y": 5e6 - 30.0 * np.arange(40), "x": 4e5 + 30.0 * np.arange(60)}
    on_map = xr.DataArray(label.astype(np.uint8), dims=("y", "x"), coords=place)
    on_map = schema.attach_classes(on_map, hr.ClassTable.from_names(NAMES))
    ties = np.where(label == 255, np.nan, np.ceil(confidence * 80) / 80).astype(np.float32)
    excluded = (np.arange(2400).reshape(40, 60) % 11 == 0).astype(np.uint8)
    return on_map.rio.write_crs("EPSG:32633"), xr.DataArray(ties, on_map.coords), truth, excluded


def grouped_scene() -> tuple[xr.DataArray, xr.DataArray, np.ndarray]:
    """Return label, confidences (level, y, x) and truth of a map that may answer "land"."""
    label, confidence, truth = plain_scene()
    tree = hr.ClassTree.from_groups(list(NAMES), {"land": ["corn", "bare soil"]})
    on_map = xr.DataArray(label.astype(np.uint8), dims=("y", "x"))
    on_map = schema.attach_classes(on_map, hr.ClassTable.from_names(NAMES))
    levels = np.stack([confidence, confidence ** np.where(label == 3, 1.0, 0.5)])
    return on_map, xr.DataArray(levels, dims=("level", "y", "x"), attrs=tree.to_attrs()), truth
