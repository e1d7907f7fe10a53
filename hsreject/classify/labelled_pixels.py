"""The training samples of a scene: its labelled pixels that have data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject import schema
from hsreject.errors import InputError

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray


def labelled_samples(
    features: xr.DataArray, labels: xr.DataArray
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the features and label values of the labelled pixels that have data.

    Parameters
    ----------
    features : DataArray (band, y, x)
        Of a dask-backed cube only the chunks with labelled pixels are computed.
    labels : DataArray (y, x) of integers
        0 (and ``_FillValue``, if the attributes name one) is no label.

    Returns
    -------
    samples : ndarray (n_samples, band)
        In double precision, finite, row-major over the labelled pixels.
    values : ndarray (n_samples,) of int
        Their labels: at least two different ones.
    """
    reference = np.asarray(labels.values)
    labelled = (reference != schema.NO_REFERENCE) & (reference != labels.attrs.get("_FillValue"))
    rows, columns = np.nonzero(labelled)
    if not rows.size:
        raise InputError(
            "labels hold no training pixel: all are 0 (no reference). "
            "Label some pixels of at least two classes."
        )
    samples = _at(features, rows, columns)
    has_data = np.isfinite(samples).all(axis=1)
    if not has_data.any():
        raise InputError(
            f"None of the {rows.size} labelled pixels has data: the scene is NaN at all of them. "
            "Check that labels and scene show the same place, and that bands without any data are "
            "marked bad by the coordinate 'good_band'."
        )
    values = reference[rows[has_data], columns[has_data]].astype(np.int64)
    _check_values(values)
    return samples[has_data], values


def _at(
    features: xr.DataArray, rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> NDArray[np.float64]:
    data: Any = features.data
    if features.chunks is None:
        return np.ascontiguousarray(data[:, rows, columns].T, dtype=np.float64)
    # dask puts the dimension of the points first
    return np.ascontiguousarray(data.vindex[:, rows, columns].compute(), dtype=np.float64)


def _check_values(values: NDArray[np.int64]) -> None:
    found = np.unique(values)
    if found[0] < 0:
        raise InputError(
            f"Label values must be positive (found {found[0]}); 0 is reserved for no reference. "
            "Set unlabelled pixels to 0."
        )
    if found.size < 2:
        raise InputError(
            f"The labelled pixels with data hold a single class ({found[0]}); a classifier needs "
            "at least two. Label pixels of another class."
        )
