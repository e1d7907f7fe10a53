"""Maps with known truth, and samples of them."""

import numpy as np
import xarray as xr

import hsreject as hr


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


def climbed(
    label: np.ndarray, confidence: np.ndarray, truth: np.ndarray, n: int, *, batch: int = 50, **plan
) -> hr.Sample:
    """Return the labelled sample of a climb that has ended or used up its labels."""
    sample = hr.draw_sample(label, n, design="climb", confidence=confidence, **plan)
    size = 0
    while len(sample) > size:
        size = len(sample)
        sample = hr.more_points(label, confidence, sample.with_reference(truth), batch)
    return sample
